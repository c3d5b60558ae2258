//! `--exec`: what a program gets to read and to see, and what the command line says about it.

use std::fs;

use serde_json::{Value, json};

use crate::programs::{LINES, output, python, reason, shell, state};
use crate::served::{MASTER_KEY, Served, baton, finished, parts, text};

#[tokio::test]
async fn a_program_sees_what_it_needs_and_none_of_the_servers_secrets() {
    let program = shell("env");
    let mut command =
        program.command(&["--store", "memory:", "--exec-env", "PASSED", "--exec-env", "SET=a=b"]);
    command.env("PLANTED_SECRET", "plain to see").env("BATON_MASTER_KEY", MASTER_KEY).env("PASSED", "on");
    let server = Served::of(&mut command);
    let task = server.answer_to("go").await;
    let seen = output(&task);
    assert!(!seen.contains("PLANTED_SECRET") && !seen.contains("plain to see"), "{seen}");
    assert!(!seen.contains(MASTER_KEY) && !seen.contains("BATON_MASTER_KEY"), "{seen}");
    let has = |line: &str| seen.lines().any(|seen| seen == line);
    let id = |name: &str| task[name].as_str().unwrap().to_owned();
    for line in [
        format!("BATON_TASK_ID={}", id("id")),
        format!("BATON_CONTEXT_ID={}", id("contextId")),
        "BATON_ATTEMPT=1".to_owned(),
        "BATON_SKILL=program".to_owned(),
        "PASSED=on".to_owned(),
        "SET=a=b".to_owned(),
        "PYTHONUNBUFFERED=1".to_owned(),
    ] {
        assert!(has(&line), "{line} is missing:\n{seen}");
    }
    assert!(seen.lines().any(|line| line.starts_with("PATH=/")), "{seen}");
}

#[tokio::test]
async fn text_and_data_are_read_and_a_file_is_rejected_with_the_reason() {
    let program = shell("cat");
    let server = program.serve(&[]);
    let sent = json!([{"text": "one"}, {"text": "; rm -rf / `$(id)`\0é"}, {"data": {"a": [null], "n": 1.0}}]);
    let task = server.send(parts("m-1", sent)).await;
    assert_eq!(output(&task), "one\n; rm -rf / `$(id)`\0é\n{\"a\":[null],\"n\":1.0}");

    let task =
        server.send(parts("m-2", json!([{"text": "see"}, {"raw": "aGk=", "filename": "a.bin"}]))).await;
    assert_eq!(state(&task), "REJECTED");
    assert_eq!(reason(&task), "This agent reads text and data; parts[1] of the message is a file");

    let picture = json!([{"raw": "aGk=", "mediaType": "image/png"}]);
    let refused = server.ask("SendMessage", json!({"message": parts("m-3", picture)})).await;
    assert_eq!(refused["error"]["code"], -32005, "the card says what is read: {refused}");
}

#[tokio::test]
async fn a_line_of_json_holds_the_whole_message_and_where_it_belongs() {
    let program = shell("head -n 1");
    let server = program.serve(&["--exec-input", "json"]);
    let mut sent =
        parts("m-1", json!([{"text": "a\nb"}, {"raw": "aGk=", "filename": "f", "mediaType": "image/png"}]));
    sent["metadata"] = json!({"lang": "de"});
    let task = server.send(sent.clone()).await;
    let read: Value = serde_json::from_str(&output(&task)).unwrap();
    assert_eq!((&read["taskId"], &read["contextId"]), (&task["id"], &task["contextId"]));
    assert_eq!((&read["attempt"], &read["skill"]), (&json!(1), &json!("program")));
    for member in ["messageId", "role", "parts", "metadata"] {
        assert_eq!(read["message"][member], sent[member], "{read}");
    }
    assert_eq!(read.get("history"), None, "there is none yet");
}

#[tokio::test]
async fn four_megabytes_reach_a_program_that_reads_and_do_not_hold_up_one_that_does_not() {
    // As much as the server takes.
    let long = "x".repeat(4_000_000);
    let program = shell("wc -c");
    let server = program.serve(&[]);
    let task = server.send(text("m-1", &long)).await;
    assert_eq!(output(&task).trim(), "4000000");

    let program = shell("echo read nothing; exit 4");
    let server = program.serve(&[]);
    let task = server.send(text("m-1", &long)).await;
    assert_eq!(
        (output(&task).as_str(), reason(&task)),
        ("read nothing\n", "The agent's program exited with 4; see the server's log")
    );
}

#[tokio::test]
async fn a_program_may_answer_with_a_message_instead_of_a_task() {
    let program = shell(
        "read -r name; [ -n \"$BATON_TASK_ID\" ] && exit 9; [ \"$name\" = no ] && exit 3; echo \"Hello, $name\"",
    );
    let server = program.serve(&["--exec-replies", "message"]);
    let reply = server.call("SendMessage", json!({"message": text("m-1", "Ada")})).await;
    assert_eq!(reply["message"]["parts"], json!([{"text": "Hello, Ada"}]));
    assert_eq!(reply["message"]["role"], "ROLE_AGENT");
    let refused = server.ask("SendMessage", json!({"message": text("m-2", "no")})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("exited with 3"), "{refused}");

    let program = python(
        "import json, sys
said = json.loads(sys.stdin.readline())['message']['parts'][0]['text']
print(json.dumps({'progress': 'nobody sees this'}))
if said == 'nothing': sys.exit()
print(json.dumps({'message': {'parts': [{'data': {'said': said}}]}}))",
    );
    let server = program.serve(&[LINES, &["--exec-replies", "message"]].concat());
    let reply = server.call("SendMessage", json!({"message": text("m-1", "Ada")})).await;
    assert_eq!(reply["message"]["parts"], json!([{"data": {"said": "Ada"}}]));
    let refused = server.ask("SendMessage", json!({"message": text("m-2", "nothing")})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("without an answer"), "{refused}");
}

#[tokio::test]
async fn the_card_is_made_from_the_command_line_or_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    let card = |server: &Served| {
        let url = server.line("card").to_owned();
        async move { reqwest::get(url).await.unwrap().json::<Value>().await.unwrap() }
    };
    let serve = |flags: &[&str]| {
        Served::with(&[&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--exec"], flags].concat())
    };
    let shown = card(&serve(&["tr a-z A-Z"])).await;
    assert_eq!((&shown["name"], &shown["skills"][0]["id"]), (&json!("tr"), &json!("tr")));
    assert_eq!(shown["defaultInputModes"], json!(["text/plain", "application/json"]));
    assert_eq!(shown["capabilities"]["streaming"], true);

    let server = serve(&["tr a-z A-Z", "--name", "Loud One", "--description", "Shouts"]);
    let shown = card(&server).await;
    assert_eq!((&shown["name"], &shown["description"]), (&json!("Loud One"), &json!("Shouts")));
    assert_eq!(shown["skills"][0]["id"], "loud-one");
    assert_eq!(output(&server.answer_to("hello").await), "HELLO");
    assert!(server.welcome.contains(": Loud One"), "{}", server.welcome);

    let skill = r#"{"id":"shout","name":"s","description":"s","tags":[]}"#;
    let write = |skills: &str| {
        let card = format!(
            r#"{{"name":"Filed","description":"d","version":"7","capabilities":{{}},"defaultInputModes":["text/plain"],
                "defaultOutputModes":["text/plain"],"supportedInterfaces":[],"skills":[{skills}]}}"#
        );
        fs::write(&path, card).unwrap();
    };
    write(skill);
    let server = serve(&["echo $BATON_SKILL", "--card", path.to_str().unwrap()]);
    assert_eq!(card(&server).await["name"], "Filed");
    assert_eq!(output(&server.answer_to("hello").await), "shout\n");
}

#[test]
fn what_cannot_be_served_is_said_before_the_port_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.py");
    fs::write(&script, "print()").unwrap();
    let script = script.to_str().unwrap();
    for (flags, told) in [
        (&["--exec", "surely-not-there"][..], &["no program `surely-not-there`"][..]),
        (&["--exec", "./surely-not-there"], &["./surely-not-there", "No such file"]),
        (&["--exec", script], &["chmod +x", "python3"]),
        (&["--exec", ""], &["the command is empty"]),
        (&["--exec", "cat", "--exec-env", "SURELY_NOT_SET"], &["--exec-env SURELY_NOT_SET"]),
        (&["--exec", "cat", "--exec-env", "BATON_TASK_ID=x"], &["are the server's own"]),
        (&["--exec", "cat", "--profile", "full"], &["--profile"]),
        (&["--exec-input", "json"], &["--exec <CMD>"]),
        (&["--chunk", "x"], &["--exec <CMD>"]),
    ] {
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];
        let (code, said) = finished(&mut baton(&[&fixed, flags].concat()));
        assert_eq!(code, Some(2), "{flags:?}: {said}");
        assert!(told.iter().all(|told| said.contains(told)), "{flags:?}: {said}");
    }
    let (code, said) = finished(&mut baton(&["__guard"]));
    assert!(code == Some(1) && said.contains("not by hand"), "{said}");
}

/// With a flag or in the file: a missing script causes a warning at start, and the default version is the same.
#[tokio::test]
async fn p08_a_program_by_a_flag_and_in_the_file_are_alike() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[[skill]]\nid = \"s\"\nexec = \"python3 nofile.py\"\n";
    fs::write(folder.path().join("agents.toml"), file).unwrap();
    for (agent, place) in [
        (["--exec", "python3 nofile.py"], "--exec: "),
        (["--config", "agents.toml"], "agents.toml, line 3: skill.exec: "),
    ] {
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];
        let server = Served::of(baton(&[&fixed[..], &agent].concat()).current_dir(&folder));
        server.log_with(&format!("{place}there is no file nofile.py in "));
        assert_eq!(server.card().await["version"], "1.0.0", "{place}");
    }
}

/// Other members of the request are in the input line and in the environment; they may be missing.
#[tokio::test]
async fn p08_a_program_learns_what_the_request_said_beside_its_message() {
    for replies in ["task", "message"] {
        let args = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--store",
            "memory:",
            "--exec",
            PRINT,
            "--exec-input",
            "json",
        ];
        let server = Served::with(&[&args[..], &["--exec-replies", replies]].concat());
        let params = json!({
            "message": text("m-1", "hello"),
            "configuration": {"acceptedOutputModes": ["text/plain", "image/*"]},
            "metadata": {"n": 1.0, "deep": {"a": [null]}},
        });
        let heard = server.call("SendMessage", params).await;
        let said = match replies {
            "task" => output(&heard["task"]),
            _ => heard["message"]["parts"][0]["text"].as_str().unwrap().to_owned(),
        };
        let (modes, line) = said.trim_end().split_once('\n').unwrap();
        assert_eq!(modes, "text/plain,image/*");
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["acceptedOutputModes"], json!(["text/plain", "image/*"]));
        assert_eq!(line["metadata"], json!({"n": 1.0, "deep": {"a": [null]}}));
        let silent = server.call("SendMessage", json!({"message": text("m-2", "hello")})).await.to_string();
        assert!(!silent.contains("acceptedOutputModes") && !silent.contains("\\\"metadata"), "{silent}");
        let refused = json!({
            "message": text("m-3", "hello"), "configuration": {"acceptedOutputModes": ["video/mp4"]},
        });
        assert_eq!(server.ask("SendMessage", refused).await["error"]["code"], -32005);
    }
}

const PRINT: &str = "echo $BATON_ACCEPTED_OUTPUT_MODES; cat";
