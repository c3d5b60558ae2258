//! Sending, waiting, streaming, going on.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::scripted::{Answer, Scripted, card, task};
use super::{Said, User};
use crate::served::Served;

const MINIMAL: &[&str] = &["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--profile", "minimal"];

#[test]
fn p09_cli_send_001_a_message_opens_an_interaction() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["send", &served.url, "hello"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
    assert!(said.out.contains("Artifact text:\n  hello\n\n"), "{said:?}");
    assert!(!said.field("Task").is_empty() && !said.field("Context").is_empty());
}

#[test]
fn p09_cli_send_002_waits_by_default_and_leaves_at_once_with_async() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["send", &served.url, "work step by step"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
    let said = user.run(&["send", &served.url, "wait until I cancel", "--async"]).ok();
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&said.field("State")), "{said:?}");
    // Also with an agent that does not stream.
    let (served, user) = (Served::with(MINIMAL), User::new());
    let said = user.run(&["send", &served.url, "work step by step", "--poll-interval", "50ms"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
}

#[test]
fn p09_cli_out_006_an_async_result_has_both_ids() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["send", &served.url, "wait until I cancel", "--no-wait", "-o", "json"]).ok();
    let task = said.json()["task"].take();
    assert!(
        task["id"].is_string() && task["contextId"].is_string() && task["status"]["state"].is_string(),
        "{task}"
    );
}

#[test]
fn p09_cli_send_003_streams_if_the_agent_does_and_never_hangs_if_not() {
    let user = User::new();
    for served in [Served::start(), Served::with(MINIMAL)] {
        let args =
            ["send", &served.url, "work step by step", "--stream", "-o", "json", "--poll-interval", "50ms"];
        let said = user.run(&args).ok();
        let lines = said.lines();
        assert!(lines.len() > 1, "{said:?}");
        let state = |line: &Value| {
            let state = [&line["task"], &line["statusUpdate"]].into_iter().find(|object| object.is_object());
            state.map(|object| object["status"]["state"].as_str().unwrap().to_owned())
        };
        assert!(lines[0]["task"].is_object(), "{said:?}");
        assert_eq!(state(lines.last().unwrap()).as_deref(), Some("TASK_STATE_COMPLETED"), "{said:?}");
        let said = user.run(&["send", &served.url, "just answer", "--stream", "-o", "json"]).ok();
        assert!(said.lines().len() == 1 && said.lines()[0]["message"].is_object(), "{said:?}");
    }
}

#[test]
fn p09_cli_send_004_artifacts_of_every_kind_are_shown() {
    let (served, user) = (Served::start(), User::new());
    for (words, shown) in [
        ("write a note", "Artifact text:\n  "),
        ("make a file", "Artifact file:\n  name=baton.txt media-type=text/plain size=36 artifact=file\n\n"),
        ("link to a file", "url=https://"),
        ("give me data", "Artifact data:\n  {\n    \""),
    ] {
        let said = user.run(&["send", &served.url, words]).ok();
        assert!(said.out.contains(shown), "{words}: {said:?}");
    }
}

#[test]
fn p09_cli_send_006_parts_are_sent_in_the_order_in_which_they_were_typed() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |_, _| Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
    );
    let user = User::new();
    std::fs::write(user.folder().join("a.csv"), "1,2").unwrap();
    let args = [
        "send",
        &agent.url,
        "one",
        "--file",
        "a.csv",
        "--media-type",
        "text/x-mine",
        "--data",
        "-",
        "--text",
        "two",
        "--file",
        "https://x.example/m.png",
        "--async",
        "--metadata",
        "{\"k\":1}",
    ];
    user.run_with(&args, " {\"n\": 1.0}\n").ok();
    let sent = agent.calls()[0].body["params"].clone();
    let expected = json!([
        {"text": "one"},
        {"raw": "MSwy", "filename": "a.csv", "mediaType": "text/x-mine"},
        {"data": {"n": 1.0}},
        {"text": "two"},
        {"url": "https://x.example/m.png", "filename": "m.png", "mediaType": "image/png"},
    ]);
    assert_eq!(sent["message"]["parts"], expected);
    assert_eq!(sent["metadata"], json!({"k": 1}));
    assert_eq!(sent["configuration"]["returnImmediately"], json!(true));
    user.run_with(&["send", &agent.url, "--data", "-"], "").failed(2);
}

#[test]
fn p09_cli_interact_003_no_id_of_the_server_is_made_up() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |_, _| Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
    );
    let user = User::new();
    for _ in 0..2 {
        user.run(&["send", &agent.url, "hi", "--async"]).ok();
    }
    let messages: Vec<Value> =
        agent.calls().iter().map(|call| call.body["params"]["message"].clone()).collect();
    assert!(
        messages.iter().all(|message| message.get("taskId").is_none() && message.get("contextId").is_none())
    );
    assert_ne!(messages[0]["messageId"], messages[1]["messageId"]);
}

#[test]
fn p09_cli_interact_001_002_conversations_go_on_by_explicit_ids() {
    let (served, user) = (Served::start(), User::new());
    let first = user.run(&["send", &served.url, "ask me something"]).ok();
    assert_eq!(first.field("State"), "TASK_STATE_INPUT_REQUIRED");
    assert!(first.err.contains("Warning: the task is waiting for input"), "{first:?}");
    let (task, context) = (first.field("Task"), first.field("Context"));
    let second = user.run(&["send", &served.url, "--task-id", task, "--context-id", context, "Ann"]).ok();
    assert_eq!((second.field("Task"), second.field("State")), (task, "TASK_STATE_COMPLETED"));
    let third = user.run(&["send", &served.url, "--context-id", context, "hello"]).ok();
    assert!(third.field("Context") == context && third.field("Task") != task, "{third:?}");
}

#[test]
fn p09_cli_interact_002_a_refused_id_fails_and_begins_nothing() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["send", &served.url, "--task-id", "nobody", "hi", "-o", "json"]).failed(1);
    let (code, hint) = said.error();
    assert!(code == "TaskNotFoundError" && hint.contains("--debug"), "{said:?}");
    assert_eq!(user.run(&["task", "list", &served.url]).ok().field("Total"), "0");
}

/// The printed command is run as it stands.
#[test]
fn p09_cli_interact_004_the_printed_command_goes_on() {
    let (served, user) = (Served::start(), User::new());
    let asked = user.run(&["send", &served.url, "ask me something"]).ok();
    let line = asked.field("Resume").replace("<reply>", "Ann");
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("PATH", path).env("HOME", user.home()).current_dir(user.folder());
    assert_eq!(Said::of(&mut shell).ok().field("State"), "TASK_STATE_COMPLETED", "{line}");
}

#[test]
fn p09_cli_interact_005_nothing_is_remembered() {
    let (served, user) = (Served::start(), User::new());
    user.run(&["send", &served.url, "ask me something"]).ok();
    let left: Vec<_> =
        [user.home(), user.folder()].iter().flat_map(|at| std::fs::read_dir(at).unwrap()).collect();
    assert!(left.is_empty(), "{left:?}");
    user.run(&["send", &served.url, "--continue", "hi"]).failed(2);
}

#[test]
fn p09_cli_task_poll_002_a_timeout_ends_the_wait_and_keeps_the_id() {
    let (served, user) = (Served::start(), User::new());
    let said =
        user.run(&["send", &served.url, "wait until I cancel", "--timeout", "300ms", "-o", "json"]).failed(5);
    let (code, hint) = said.error();
    assert_eq!(code, "A2ACLI_ERR_TIMEOUT");
    let id = hint.rsplit(' ').next().unwrap();
    assert!(said.err.contains(&format!("Task: {id}")), "{said:?}");
    let said = user.run(&["task", "get", &served.url, id]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_WORKING", "the task goes on");
    user.run(&["task", "get", &served.url, id, "--wait", "--timeout", "300ms"]).failed(5);
}

#[test]
fn p09_cli_task_poll_002_ctrl_c_ends_the_wait_and_shows_how_to_go_on() {
    let (served, user) = (Served::start(), User::new());
    let mut command = user.command(&["send", &served.url, "wait until I cancel", "--stream"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    while !first.contains("TASK_STATE_WORKING") {
        assert!(out.read_line(&mut first).unwrap() > 0, "{first}");
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(status.code(), Some(130), "{err}");
    let id = err.trim().rsplit(' ').next().unwrap();
    assert_eq!(user.run(&["task", "get", &served.url, id]).ok().field("State"), "TASK_STATE_WORKING");
}

#[test]
fn p09_cli_task_poll_004_a_broken_stream_is_taken_up_again_until_the_end() {
    let streaming = json!({"capabilities": {"streaming": true}});
    let agent = Scripted::start(
        move |url| card(url, streaming),
        |heard, before| match heard.rpc() {
            "SendStreamingMessage" => Answer::Cut(vec![json!({"task": task("TASK_STATE_WORKING")})]),
            "SubscribeToTask" => Answer::Error(-32004, "no subscriptions here"),
            _ if before < 4 => Answer::Result(task("TASK_STATE_WORKING")),
            _ => Answer::Result(task("TASK_STATE_COMPLETED")),
        },
    );
    let user = User::new();
    let said = user.run(&["send", &agent.url, "hi", "--poll-interval", "20ms"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
    let calls: Vec<String> = agent.calls().iter().map(|call| call.rpc().to_owned()).collect();
    assert_eq!(calls.iter().filter(|call| call.starts_with("Send")).count(), 1, "{calls:?}");
    assert!(calls.contains(&"SubscribeToTask".to_owned()) && calls.last().unwrap() == "GetTask", "{calls:?}");
}

#[test]
fn p09_cli_exit_002_what_becomes_of_the_task_does_not_change_the_status() {
    let (served, user) = (Served::start(), User::new());
    for (words, state, warning) in [
        ("fail", "TASK_STATE_FAILED", "the task has failed"),
        ("refuse", "TASK_STATE_REJECTED", "the agent has rejected the task"),
        ("ask me something", "TASK_STATE_INPUT_REQUIRED", "waiting for input"),
        ("ask me to sign in", "TASK_STATE_AUTH_REQUIRED", "waiting for an authorization"),
    ] {
        let said = user.run(&["send", &served.url, words]).ok();
        assert_eq!(said.field("State"), state);
        assert!(said.err.contains(warning), "{said:?}");
    }
}

/// An address alone is the message, if an agent is configured.
#[test]
fn an_address_alone_is_the_message_of_a_configured_agent() {
    let (served, user) = (Served::start(), User::new());
    let mut command = user.command(&["send", "https://article.example/7"]);
    let said = Said::of(command.env("A2ACLI_AGENT_CARD", &served.url)).ok();
    assert!(said.out.contains("Artifact text:\n  https://article.example/7\n"), "{said:?}");
    user.run(&["send", &served.url]).failed(2);
}
