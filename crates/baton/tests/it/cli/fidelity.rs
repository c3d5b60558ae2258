//! What an agent of 1.0 sends is printed as it came: members, states and parts that nobody knows are all there.

use serde_json::{Value, json};

use super::User;
use super::scripted::{Answer, Scripted, card};

/// A part of a kind that nobody knows, in a message with members that nobody knows.
fn message() -> Value {
    json!({"messageId": "m-1", "role": "ROLE_AGENT", "x-message": [1.0, "é"],
        "parts": [{"text": "known", "x-part": {"deep": [true, null]}}, {"hologram": {"beams": 1.50}, "x-part": 7}]})
}

fn task(state: &str) -> Value {
    json!({"id": "t-1", "contextId": "c-1", "x-task": {"n": 1.0},
        "status": {"state": state, "timestamp": "2026-08-20T09:14:07.212Z", "message": message(), "x-status": "s"},
        "artifacts": [{"artifactId": "a-1", "x-artifact": 1, "parts": [{"hologram": 1, "mediaType": "x/y"}]}],
        "history": [message()], "metadata": {"m": 1.00}})
}

fn events() -> Vec<Value> {
    let status = |state: &str| {
        json!({"x-event": 1, "statusUpdate": {"taskId": "t-1", "contextId": "c-1", "x-update": {"y": 2.0},
            "status": {"state": state, "x-status": 3, "message": message()}}})
    };
    vec![
        json!({"task": task("TASK_STATE_SUBMITTED"), "x-event": {"a": "b"}}),
        status("TASK_STATE_DREAMING"),
        json!({"x-event": 4, "artifactUpdate": {"taskId": "t-1", "contextId": "c-1", "x-update": 5, "append": true,
            "artifact": {"artifactId": "a-1", "x-artifact": 6, "parts": [{"hologram": 2, "x-part": 7}, {"text": "t"}]}}}),
        status("TASK_STATE_COMPLETED"),
    ]
}

fn config() -> Value {
    json!({"id": "pc-1", "taskId": "t-1", "url": "https://hook.example/in", "x-config": [8.0]})
}

fn page(token: Option<&str>) -> Value {
    let next = if token.is_none() { "second" } else { "" };
    json!({"tasks": [task("TASK_STATE_DREAMING")], "nextPageToken": next, "pageSize": 1, "totalSize": 2, "x-page": 9.0})
}

/// The answer to a call, and whether it is a stream.
fn answer(operation: &str, token: Option<&str>) -> Result<Value, Vec<Value>> {
    Ok(match operation {
        "SendStreamingMessage" | "SubscribeToTask" => return Err(events()),
        "SendMessage" => json!({"task": task("TASK_STATE_COMPLETED"), "x-reply": 1}),
        "GetTask" | "CancelTask" => task("TASK_STATE_COMPLETED"),
        "ListTasks" => page(token),
        "ListTaskPushNotificationConfigs" => json!({"configs": [config()], "x-page": 9.0}),
        "GetExtendedAgentCard" => strange_card("http://127.0.0.1:1"),
        _ => config(),
    })
}

fn strange_card(url: &str) -> Value {
    let interfaces = json!([
        {"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "x-interface": 1},
        {"url": format!("{url}/rest"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ]);
    let capabilities =
        json!({"streaming": true, "pushNotifications": true, "extendedAgentCard": true, "x-capability": 2.0});
    card(
        url,
        json!({"supportedInterfaces": interfaces, "capabilities": capabilities, "x-card": {"a": [1.0]}}),
    )
}

/// Speaks both bindings.
fn agent() -> Scripted {
    Scripted::start(strange_card, |heard, _| {
        if heard.target == "/rpc" {
            return match answer(heard.rpc(), heard.body["params"]["pageToken"].as_str()) {
                Ok(result) => Answer::Result(result),
                Err(events) => Answer::Events(events),
            };
        }
        let (path, query) = heard.target.split_once('?').unwrap_or((&heard.target, ""));
        let operation = match path.strip_prefix("/rest").unwrap() {
            "/message:stream" => "SendStreamingMessage",
            "/message:send" => "SendMessage",
            "/tasks/t-1:subscribe" => "SubscribeToTask",
            "/tasks/t-1" => "GetTask",
            "/tasks/t-1:cancel" => "CancelTask",
            "/tasks" => "ListTasks",
            "/extendedAgentCard" => "GetExtendedAgentCard",
            "/tasks/t-1/pushNotificationConfigs" if heard.method == "GET" => {
                "ListTaskPushNotificationConfigs"
            }
            _ => "GetTaskPushNotificationConfig",
        };
        match answer(operation, query.contains("pageToken").then_some("second")) {
            Ok(result) => Answer::Plain(200, "application/a2a+json", result.to_string()),
            Err(events) => {
                let frames: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
                Answer::Plain(200, "text/event-stream", frames)
            }
        }
    })
}

/// Lines are compared as text: members keep their order, and numbers their spelling.
#[test]
fn p09_cli_out_003_events_and_entries_of_lists_are_printed_as_they_came() {
    let (agent, user) = (agent(), User::new());
    let url = agent.url.as_str();
    let tasks = vec![task("TASK_STATE_DREAMING")];
    let pair = [tasks.clone(), tasks.clone()].concat();
    for binding in ["jsonrpc", "rest"] {
        for (args, expected) in [
            (&["send", url, "go"][..], events()),
            (&["task", "subscribe", url, "t-1"], events()),
            (&["task", "list", url], tasks.clone()),
            (&["task", "list", url, "--all"], pair.clone()),
            (&["task", "get", url, "t-1"], vec![task("TASK_STATE_COMPLETED")]),
            (&["task", "push-config", "list", url, "t-1"], vec![config()]),
            (&["card", "get", url], vec![strange_card(url)]),
        ] {
            let said = user.run(&[args, &["-o", "json", "--stream", "--transport", binding]].concat()).ok();
            let lines: Vec<&str> = said.out.lines().collect();
            let expected: Vec<String> = expected.iter().map(Value::to_string).collect();
            assert_eq!(lines, expected, "{binding} {args:?}");
        }
    }
}

#[test]
fn p09_cli_out_002_documents_are_printed_as_they_came() {
    let (agent, user) = (agent(), User::new());
    let url = agent.url.as_str();
    let mut whole = page(Some("second"));
    whole["tasks"] = json!([task("TASK_STATE_DREAMING"), task("TASK_STATE_DREAMING")]);
    for binding in ["jsonrpc", "rest"] {
        for (args, expected) in [
            (&["send", url, "go"][..], json!({"task": task("TASK_STATE_COMPLETED")})),
            (&["send", url, "go", "--async"], json!({"task": task("TASK_STATE_COMPLETED"), "x-reply": 1})),
            (&["task", "subscribe", url, "t-1"], task("TASK_STATE_COMPLETED")),
            (&["task", "cancel", url, "t-1"], task("TASK_STATE_COMPLETED")),
            (&["task", "list", url], page(None)),
            (&["task", "list", url, "--all"], whole.clone()),
            (&["task", "push-config", "list", url, "t-1"], json!({"configs": [config()], "x-page": 9.0})),
            (&["task", "push-config", "get", url, "t-1", "pc-1"], config()),
            (&["task", "push-config", "create", url, "t-1", "--url", "https://hook.example/in"], config()),
            (&["card", "get", url, "--extended"], strange_card("http://127.0.0.1:1")),
        ] {
            let said = user.run(&[args, &["-o", "json", "--transport", binding]].concat()).ok();
            assert_eq!(said.json(), expected, "{binding} {args:?}");
            // Numbers are not reckoned with.
            assert_eq!(said.out.contains("1.0"), expected.to_string().contains("1.0"), "{said:?}");
        }
    }
}

/// An agent that does not stream: the task is read again and again, and each time it is printed as it came.
#[test]
fn p09_cli_out_003_a_polled_task_is_printed_as_it_came() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |heard, before| match heard.rpc() {
            "SendMessage" => Answer::Result(json!({"task": task("TASK_STATE_SUBMITTED"), "x-reply": 1})),
            _ if before == 1 => Answer::Result(task("TASK_STATE_DREAMING")),
            _ => Answer::Result(task("TASK_STATE_COMPLETED")),
        },
    );
    let said = User::new()
        .run(&["send", &agent.url, "go", "-o", "json", "--stream", "--poll-interval", "10ms"])
        .ok();
    let expected = [
        json!({"task": task("TASK_STATE_SUBMITTED"), "x-reply": 1}),
        json!({"task": task("TASK_STATE_DREAMING")}),
        json!({"task": task("TASK_STATE_COMPLETED")}),
    ];
    assert_eq!(said.out.lines().collect::<Vec<_>>(), expected.map(|event| event.to_string()));
}

#[test]
fn p09_cli_send_004_people_see_states_and_parts_that_nobody_knows() {
    let (agent, user) = (agent(), User::new());
    for args in [&["send", &agent.url, "go", "--stream"][..], &["task", "subscribe", &agent.url, "t-1"]] {
        let said = user.run(args).ok();
        assert!(said.out.contains("State: TASK_STATE_DREAMING\n"), "{said:?}");
        for shown in ["\"hologram\": 2", "\"beams\": 1.5", "Artifact text:\n  t\n"] {
            assert!(said.out.contains(shown), "{shown}: {said:?}");
        }
    }
    let said = user.run(&["task", "list", &agent.url, "--all", "--include-artifacts"]).ok();
    assert_eq!(said.out.matches("State: TASK_STATE_DREAMING\n").count(), 2, "{said:?}");
    assert_eq!(said.out.matches("\"hologram\": 1").count(), 2, "{said:?}");
}

/// The older versions have other words; what this tool shows of them has those of 1.0, except for states it does not know.
#[test]
fn p09_cli_task_poll_003_unknown_states_of_0_3_are_shown_as_they_came() {
    let status = |state: &str, last: bool| json!({"kind": "status-update", "taskId": "t-1", "contextId": "c-1", "status": {"state": state}, "final": last});
    let agent = Scripted::start(
        |url| {
            json!({"name": "Old", "description": "d", "version": "1", "protocolVersion": "0.3.0", "url": format!("{url}/rpc"),
                "preferredTransport": "JSONRPC", "capabilities": {"streaming": true}, "defaultInputModes": ["text/plain"],
                "defaultOutputModes": ["text/plain"], "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}]})
        },
        move |heard, _| match heard.rpc() {
            "message/stream" => Answer::Events(vec![
                json!({"kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": "submitted"}}),
                status("dreaming", false),
                status("completed", true),
            ]),
            _ => Answer::Error(-32601, "no"),
        },
    );
    let args = ["send", &agent.url, "go", "-o", "json", "--stream", "--a2a-version", "0.3"];
    let lines = User::new().run(&args).ok().lines();
    let states: Vec<_> = lines[1..].iter().map(|line| &line["statusUpdate"]["status"]["state"]).collect();
    assert_eq!(states, ["dreaming", "TASK_STATE_COMPLETED"]);
}
