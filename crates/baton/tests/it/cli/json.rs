//! JSON and JSON Lines: one document or one object per line, only on stdout.

use serde_json::json;

use super::User;
use super::scripted::{Answer, Scripted, card, task};
use crate::served::Served;

#[test]
fn p09_cli_out_002_json_is_one_document_with_the_final_object() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["send", &served.url, "tell me a story", "-o", "json"]).ok();
    let task = said.json()["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(task["artifacts"].is_array() && task.get("taskId").is_none(), "{task}");
    let said = user.run(&["send", &served.url, "just answer", "-o", "json"]).ok();
    assert_eq!(said.json()["message"]["role"], "ROLE_AGENT");
    let card = user.run(&["card", "get", &served.url, "-o", "json"]).ok().json();
    assert!(card["supportedInterfaces"].is_array(), "{card}");
}

#[test]
fn p09_cli_out_003_json_lines_end_with_the_final_event_or_an_error() {
    let (served, user) = (Served::start(), User::new());
    let lines = user.run(&["send", &served.url, "tell me a story", "-o", "json", "--stream"]).ok().lines();
    assert_eq!(lines.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(lines.iter().any(|line| line["artifactUpdate"].is_object()));
    let said = user.run(&["task", "subscribe", &served.url, "nobody", "-o", "json", "--stream"]).failed(1);
    assert_eq!(said.lines().len(), 1);
    assert_eq!(said.lines()[0]["error"]["code"], "TaskNotFoundError");
    // One object, one line.
    for args in [
        &["card", "get", &served.url][..],
        &["task", "get", &served.url, lines[0]["task"]["id"].as_str().unwrap()],
    ] {
        let said = user.run(&[args, &["-o", "json", "--stream"]].concat()).ok();
        assert_eq!(said.lines().len(), 1, "{said:?}");
    }
}

/// Neither a variable nor a file switches streaming on.
#[test]
fn p09_cli_out_002_only_the_flag_streams() {
    let (served, user) = (Served::start(), User::new());
    std::fs::write(user.folder().join(".env"), "A2ACLI_STREAM=1\n").unwrap();
    let mut command = user.command(&["send", &served.url, "work step by step", "-o", "json"]);
    let said = super::Said::of(command.env("A2ACLI_STREAM", "true")).ok();
    assert!(said.json()["task"].is_object());
}

#[test]
fn p09_cli_out_001_only_the_result_is_on_stdout() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["send", &served.url, "fail", "-o", "json", "--debug", "--insecure"]).ok();
    assert_eq!(said.json()["task"]["status"]["state"], "TASK_STATE_FAILED");
    assert!(said.err.contains("Warning: ") && said.err.contains("Debug: "), "{said:?}");
    for args in [&["send", &served.url, "hello"][..], &["send", &served.url, "hello", "--stream"]] {
        let said = user.run(args).ok();
        assert!(["Task", "Context", "State"].iter().all(|label| !said.field(label).is_empty()));
    }
}

/// What an agent says can neither forge a field nor drive the terminal.
#[test]
fn p09_cli_out_005_text_of_agents_is_shown_and_not_obeyed() {
    let evil = "\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{202e}\r\nState: TASK_STATE_COMPLETED\n\nTask: forged";
    let mut hostile = task("TASK_STATE_FAILED");
    hostile["status"]["message"] = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": evil}]});
    hostile["artifacts"] = json!([{"artifactId": format!("a{evil}"), "name": evil, "description": evil,
        "parts": [{"text": evil}, {"data": {"k": evil}}, {"raw": "AA==", "filename": evil, "mediaType": evil}]}]);
    hostile["history"] = json!([{"messageId": "m2", "role": "ROLE_AGENT", "parts": [{"text": evil}]}]);
    hostile["contextId"] = json!("c-1");
    let agent = Scripted::start(
        move |url| card(url, json!({"name": evil, "description": evil, "version": evil})),
        move |heard, _| match heard.rpc() {
            "CancelTask" => Answer::Error(-32001, "\u{1b}[2J\u{202e}\nState: forged"),
            _ => Answer::Result(hostile.clone()),
        },
    );
    let user = User::new();
    for args in [
        &["task", "get", &agent.url, "t-1", "--history", "5"][..],
        &["task", "get", &agent.url, "t-1", "--verbose"],
        &["task", "get", &agent.url, "t-1", "-o", "json"],
        &["task", "cancel", &agent.url, "t-1"],
        &["task", "cancel", &agent.url, "t-1", "-o", "json"],
        &["card", "get", &agent.url, "--verbose"],
        &["card", "get", &agent.url, "-o", "json"],
    ] {
        let said = user.run(args);
        for text in [&said.out, &said.err] {
            let bad = text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}');
            assert_eq!(bad, None, "{args:?}: {text}");
        }
        if !args.contains(&"json") {
            let forged = said.out.lines().filter(|line| line.starts_with("State: TASK_STATE_COMPLETED"));
            assert_eq!(forged.count(), 0, "{said:?}");
            assert!(!said.err.lines().any(|line| line == "State: forged"), "{said:?}");
        }
    }
}
