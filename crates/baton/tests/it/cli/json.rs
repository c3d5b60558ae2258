//! JSON and JSON Lines: one document or one object per line, only on stdout.

use serde_json::json;

use super::User;
use super::scripted::{Answer, Scripted, card, task};
use crate::served::Served;

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

/// One line per object, and an error is the last of them.
#[test]
fn p09_cli_out_003_an_error_in_the_middle_is_the_last_line() {
    let (served, user) = (Served::start(), User::new());
    let args = ["send", &served.url, "wait until I cancel", "-o", "json", "--stream", "--timeout", "1s"];
    let said = user.run(&args).failed(5);
    let lines = said.lines();
    assert!(lines.len() >= 3 && lines[0]["task"].is_object(), "{said:?}");
    assert_eq!(lines.last().unwrap()["error"]["code"], "A2ACLI_ERR_TIMEOUT");
    assert!(lines[..lines.len() - 1].iter().all(|line| line.get("error").is_none()), "{said:?}");
    // The agent breaks its own stream off.
    let agent = Scripted::start(
        |url| card(url, json!({"capabilities": {"streaming": true}})),
        |heard, _| {
            let frame = |member: &str, value: serde_json::Value| {
                let answer = json!({"jsonrpc": "2.0", "id": heard.body["id"], member: value});
                format!("data: {answer}\n\n")
            };
            let first = frame("result", json!({"task": task("TASK_STATE_WORKING")}));
            let last = frame("error", json!({"code": -32603, "message": "it\nbroke"}));
            Answer::Plain(200, "text/event-stream", first + &last)
        },
    );
    let said = user.run(&["send", &agent.url, "hi", "-o", "json", "--stream"]).failed(1);
    let lines = said.lines();
    assert!(lines.len() == 2 && lines[0]["task"].is_object(), "{said:?}");
    assert_eq!(lines[1]["error"]["code"], "InternalError");
}
