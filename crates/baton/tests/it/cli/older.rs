//! Agents of the older versions: what they did not say is not made up.

use serde_json::{Value, json};

use super::User;
use super::scripted::{Answer, Scripted};

/// A card of 0.3; agents of 0.1 have one like it.
fn old_card(url: &str) -> Value {
    json!({"name": "Old", "description": "d", "version": "1", "protocolVersion": "0.3.0", "url": format!("{url}/rpc"),
        "preferredTransport": "JSONRPC", "capabilities": {"streaming": true}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"], "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}]})
}

fn agent_of_0_3() -> Scripted {
    Scripted::start(old_card, |heard, _| {
        let task = |status: Value| json!({"kind": "task", "id": "t-1", "contextId": "c-1", "status": status});
        match heard.rpc() {
            "message/stream" => Answer::Events(vec![
                task(json!({"state": "submitted"})),
                json!({"kind": "status-update", "taskId": "t-1", "contextId": "c-1", "status": {}, "final": false}),
                json!({"kind": "status-update", "taskId": "t-1", "contextId": "c-1", "status": {"state": "completed"}, "final": true}),
            ]),
            "message/send" => Answer::Result(task(json!({"state": "dreaming"}))),
            _ => Answer::Result(task(json!({"state": "paused"}))),
        }
    })
}

#[test]
fn p09_cli_task_poll_003_neither_states_nor_times_are_made_up() {
    let (agent, user) = (agent_of_0_3(), User::new());
    let url = agent.url.as_str();
    for (args, state) in [
        (&["task", "get", url, "t-1"][..], "paused"),
        (&["task", "cancel", url, "t-1"], "paused"),
        (&["send", url, "hi", "--async"], "dreaming"),
    ] {
        let args = [args, &["--a2a-version", "0.3"]].concat();
        let said = user.run(&args).ok();
        assert_eq!(said.field("State"), state, "{said:?}");
        assert!(!said.out.contains("1970") && !said.out.contains("Updated"), "{said:?}");
        let said = user.run(&[&args[..], &["-o", "json"]].concat()).ok();
        assert!(said.out.contains(&format!("\"state\": \"{state}\"")), "{said:?}");
        assert!(!said.out.contains("timestamp"), "{said:?}");
    }
    let said = user.run(&["send", url, "hi", "--a2a-version", "0.3", "--stream", "-o", "json"]).ok();
    let states: Vec<Value> =
        said.lines()[1..].iter().map(|it| it["statusUpdate"]["status"].clone()).collect();
    assert_eq!(states, [json!({"state": "unknown"}), json!({"state": "TASK_STATE_COMPLETED"})]);
}

/// 0.1 tells the context of a task only when the task is read.
#[test]
fn p09_cli_out_003_the_context_of_a_0_1_task_is_the_agent_s() {
    let agent = Scripted::start(old_card, |heard, _| {
        let id = heard.body["params"]["id"].clone();
        match heard.rpc() {
            "tasks/sendSubscribe" => Answer::Events(vec![
                json!({"id": id, "status": {"state": "working"}, "final": false}),
                json!({"id": id, "artifact": {"index": 0, "parts": [{"type": "text", "text": "done"}]}}),
                json!({"id": id, "status": {"state": "completed"}, "final": true}),
            ]),
            _ => Answer::Result(json!({"id": id, "sessionId": "session-1", "status": {"state": "completed"},
                "artifacts": [{"index": 0, "parts": [{"type": "text", "text": "done"}]}]})),
        }
    });
    let user = User::new();
    let send = ["send", &agent.url, "hi", "--a2a-version", "0.1"];
    let lines = user.run(&[&send[..], &["--stream", "-o", "json"]].concat()).ok().lines();
    let (last, updates) = lines.split_last().unwrap();
    assert_eq!(last["task"]["contextId"], "session-1", "{lines:?}");
    for update in updates {
        let inner = update.as_object().unwrap().values().next().unwrap();
        assert!(inner["taskId"].is_string() && inner.get("contextId").is_none(), "{update}");
    }
    let said = user.run(&[&send[..], &["--stream"]].concat()).ok();
    assert_eq!((said.field("Context"), said.out.matches("Resume: ").count()), ("session-1", 1), "{said:?}");
    // The user's own context is known from the beginning.
    let lines =
        user.run(&[&send[..], &["--stream", "-o", "json", "--context-id", "mine"]].concat()).ok().lines();
    assert!(
        lines
            .iter()
            .all(|line| line["statusUpdate"].is_null() || line["statusUpdate"]["contextId"] == "mine")
    );
    assert_eq!(user.run(&send).ok().field("Context"), "session-1");
}
