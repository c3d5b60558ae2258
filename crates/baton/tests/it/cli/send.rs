//! Sending: what goes out, what comes back, and that nothing is kept.

use serde_json::{Value, json};

use super::scripted::{Answer, Scripted, always, card, task};
use super::{Said, User};
use crate::served::Served;

const MINIMAL: &[&str] = &["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--profile", "minimal"];

fn completed() -> Scripted {
    completed_with(json!({}))
}

/// The same with more on its card.
fn completed_with(more: Value) -> Scripted {
    Scripted::start(
        |url| card(url, more),
        |heard, _| match heard.rpc() {
            "GetTask" => Answer::Result(task("TASK_STATE_COMPLETED")),
            _ => Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
        },
    )
}

/// Without streams the task is read again and again, and nothing hangs.
#[test]
fn p09_cli_send_002_003_an_agent_that_does_not_stream_is_waited_for() {
    let (served, user) = (Served::with(MINIMAL), User::new());
    let said = user.run(&["send", &served.url, "work step by step", "--poll-interval", "50ms"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
    let args =
        ["send", &served.url, "work step by step", "--stream", "-o", "json", "--poll-interval", "50ms"];
    let said = user.run(&args).ok();
    let lines = said.lines();
    let state = |line: &Value| {
        let state = [&line["task"], &line["statusUpdate"]].into_iter().find(|object| object.is_object());
        state.map(|object| object["status"]["state"].as_str().unwrap().to_owned())
    };
    assert!(lines.len() > 1 && lines[0]["task"].is_object(), "{said:?}");
    assert_eq!(state(lines.last().unwrap()).as_deref(), Some("TASK_STATE_COMPLETED"), "{said:?}");
    // What it made is shown, although no event brought it.
    let said = user.run(&["send", &served.url, "write a note", "--stream", "--poll-interval", "50ms"]).ok();
    assert!(said.out.contains("Artifact text:\n  A note"), "{said:?}");
    let said = user.run(&["send", &served.url, "just answer", "--stream", "-o", "json"]).ok();
    assert!(said.lines().len() == 1 && said.lines()[0]["message"].is_object(), "{said:?}");
}

/// An agent without webhooks is not sent one.
#[test]
fn s14_a_webhook_comes_with_the_message() {
    let user = User::new();
    let agent = completed_with(json!({"capabilities": {"pushNotifications": true}}));
    let hook = ["--push-url", "https://hooks.example.net/in"];
    for (more, sent) in [
        (&hook[..], json!({"url": "https://hooks.example.net/in"})),
        (
            &[&hook[..], &["--push-token", "t0k", "--async"]].concat(),
            json!({"url": "https://hooks.example.net/in", "token": "t0k"}),
        ),
    ] {
        user.run(&[&["send", &agent.url, "hi"], more].concat()).ok();
        let calls = agent.calls();
        let last = calls.iter().rfind(|call| call.rpc() == "SendMessage").unwrap();
        assert_eq!(last.body["params"]["configuration"]["taskPushNotificationConfig"], sent);
    }
    user.run(&["send", &agent.url, "hi", "--push-token", "t0k"]).failed(2);
    let agent = completed();
    let said = user.run(&[&["send", &agent.url, "hi", "-o", "json"], &hook[..]].concat()).failed(1);
    assert_eq!(said.error().0, "PushNotificationNotSupportedError");
    assert!(agent.calls().iter().all(|call| call.rpc() != "SendMessage"));
}

/// What is configured decides, and a flag goes before it.
#[test]
fn p09_cli_send_002_async_asks_the_agent_to_return_at_once() {
    let (agent, user) = (completed(), User::new());
    for (args, configured, returns) in [
        (&["--async"][..], "false", true),
        (&["--return-immediately"], "false", true),
        (&["--no-wait"], "false", true),
        (&[], "1", true),
        (&["--wait"], "1", false),
        (&["--watch"], "1", false),
    ] {
        let mut command = user.command(&[&["send", &agent.url, "hi"], args].concat());
        Said::of(command.env("A2ACLI_ASYNC", configured)).ok();
        let calls = agent.calls();
        let last = calls.iter().rfind(|call| call.rpc() == "SendMessage").unwrap();
        // Without streams, waiting is reading the task, so the agent need not wait either.
        assert_eq!(last.body["params"]["configuration"]["returnImmediately"], json!(true));
        let waited = calls.last().unwrap().rpc() == "GetTask";
        assert_eq!(!waited, returns, "{args:?} {configured}");
    }
}

/// No part of a reply is left out, whatever it is made of.
#[test]
fn p09_cli_send_004_every_part_of_artifacts_and_messages_is_shown() {
    let parts = json!([
        {"text": "first text"}, {"data": {"n": 1.5}}, {"data": null}, {"text": ""},
        {"raw": "AAEC", "filename": "a b.bin"}, {"url": "https://x.example/f", "mediaType": "image/png"},
        {"hologram": true}, {"text": "last text"},
    ]);
    let shown = |label: &str| {
        let (text, data, file) = match label {
            "" => ("Text", "Data", "File"),
            _ => ("Artifact text", "Artifact data", "Artifact file"),
        };
        let of = if label.is_empty() { "" } else { " artifact=a1" };
        format!(
            "{text}:\n  first text\n\n{data}:\n  {{\n    \"n\": 1.5\n  }}\n\n{data}:\n  null\n\n{text}:\n  \n\n\
             {file}:\n  name=\"a b.bin\" size=3{of}\n\n{file}:\n  media-type=image/png url=https://x.example/f{of}\n\n\
             {data}:\n  {{\n    \"hologram\": true\n  }}\n\n{text}:\n  last text\n\n"
        )
    };
    let user = User::new();
    let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}});
    let said = user.run(&["send", &always(message).url, "hi", "--async"]).ok();
    assert!(said.out.ends_with(&shown("")), "{}", said.out);
    let mut whole = task("TASK_STATE_COMPLETED");
    whole["artifacts"] = json!([{"artifactId": "a1", "parts": parts}]);
    let said = user.run(&["task", "get", &always(whole).url, "t-1"]).ok();
    assert!(said.out.ends_with(&shown("Artifact ")), "{}", said.out);
    // In a stream too.
    let update = json!({"taskId": "t-1", "contextId": "c-1", "artifact": {"artifactId": "a1", "parts": [
        {"text": "one"}, {"data": [1]}, {"raw": "AA==", "mediaType": "text/plain"}]}});
    let agent = Scripted::start(
        |url| card(url, json!({"capabilities": {"streaming": true}})),
        move |_, _| {
            Answer::Events(vec![
                json!({"task": task("TASK_STATE_WORKING")}),
                json!({"artifactUpdate": update}),
                json!({"task": task("TASK_STATE_COMPLETED")}),
            ])
        },
    );
    let said = user.run(&["send", &agent.url, "hi", "--stream"]).ok();
    let expected = "Event: artifact\nArtifact text:\n  one\n\nArtifact data:\n  [\n    1\n  ]\n\n\
                    Artifact file:\n  media-type=text/plain size=1 artifact=a1\n\n";
    assert!(said.out.contains(expected), "{}", said.out);
}

/// On the wire: the type that was given, else a guess by the name, else none.
#[test]
fn p09_cli_send_005_a_media_type_belongs_to_the_part_before_it() {
    let (agent, user) = (completed(), User::new());
    std::fs::write(user.folder().join("a.csv"), "1,2").unwrap();
    std::fs::write(user.folder().join("d.json"), "[]").unwrap();
    let args = [
        "send",
        &agent.url,
        "--async",
        "--text",
        "# T",
        "--media-type",
        "text/markdown",
        "--file",
        "a.csv",
        "--file",
        "a.csv",
        "--media-type",
        "text/x-mine",
        "--data",
        "d.json",
        "--media-type",
        "application/x+json",
        "plain",
    ];
    user.run(&args).ok();
    let parts = agent.calls()[0].body["params"]["message"]["parts"].clone();
    let types: Vec<&Value> = parts.as_array().unwrap().iter().map(|part| &part["mediaType"]).collect();
    let expected = json!(["text/markdown", "text/csv", "text/x-mine", "application/x+json", null]);
    assert_eq!(json!(types), expected);
    for wrong in [&["--media-type", "a/b", "x"][..], &["x", "--media-type", "a/b", "--media-type", "a/b"]] {
        let said = user.run(&[&["send", &agent.url, "-o", "json"], wrong].concat()).failed(2);
        assert_eq!(said.error().0, "A2ACLI_ERR_USAGE");
    }
    assert_eq!(agent.calls().len(), 1, "nothing is sent after a mistake");
}

#[test]
fn p09_cli_send_006_parts_are_sent_in_the_order_in_which_they_were_typed() {
    let (agent, user) = (completed(), User::new());
    std::fs::write(user.folder().join("a.csv"), "1,2").unwrap();
    let args = [
        "send",
        &agent.url,
        "one",
        "--file",
        "a.csv",
        "--data",
        "-",
        "--text",
        "two",
        "--file",
        "https://x.example/m.png",
        "--text",
        "three",
        "--async",
        "--metadata",
        "{\"k\":1}",
    ];
    user.run_with(&args, " {\"n\": 1.0}\n").ok();
    let sent = agent.calls()[0].body["params"].clone();
    let expected = json!([
        {"text": "one"},
        {"raw": "MSwy", "filename": "a.csv", "mediaType": "text/csv"},
        {"data": {"n": 1.0}},
        {"text": "two"},
        {"url": "https://x.example/m.png", "filename": "m.png", "mediaType": "image/png"},
        {"text": "three"},
    ]);
    assert_eq!(sent["message"]["parts"], expected);
    assert_eq!(sent["metadata"], json!({"k": 1}));
    for (args, input) in
        [(&["--data", "-"][..], ""), (&["--data", "-"], "{"), (&["--data", "-", "--data", "-"], "1")]
    {
        user.run_with(&[&["send", &agent.url], args].concat(), input).failed(2);
    }
    assert_eq!(agent.calls().len(), 1);
}

#[test]
fn p09_cli_interact_003_no_id_of_the_server_is_made_up() {
    let (agent, user) = (completed(), User::new());
    for _ in 0..2 {
        user.run(&["send", &agent.url, "hi", "--async"]).ok();
    }
    // A pair that does not fit is the agent's to refuse: it is sent as it was typed.
    user.run(&["send", &agent.url, "hi", "--async", "--task-id", "t-1", "--context-id", "c-9"]).ok();
    user.run(&["send", &agent.url, "hi", "--async", "--task-id", "t-1"]).ok();
    let messages: Vec<Value> =
        agent.calls().iter().map(|call| call.body["params"]["message"].clone()).collect();
    let ids = |at: usize| (messages[at].get("taskId"), messages[at].get("contextId"));
    assert_eq!((ids(0), ids(1)), ((None, None), (None, None)));
    assert_eq!(ids(2), (Some(&json!("t-1")), Some(&json!("c-9"))));
    assert_eq!(ids(3), (Some(&json!("t-1")), None));
    assert_ne!(messages[0]["messageId"], messages[1]["messageId"]);
}

/// The printed command reaches the agent as the first one did, and has no credential in it.
#[test]
fn p09_cli_interact_004_the_printed_command_has_what_was_typed_to_reach_the_agent() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |heard, _| match heard.rpc() {
            "GetTask" => Answer::Result(task("TASK_STATE_COMPLETED")),
            _ => Answer::Result(json!({"task": task("TASK_STATE_INPUT_REQUIRED")})),
        },
    );
    let user = User::new();
    std::fs::write(user.folder().join("my agent.env"), format!("A2ACLI_AGENT_CARD={}\n", agent.url)).unwrap();
    let said =
        user.run(&["send", "hi", "--async", "--config", "my agent.env", "--svc-param", "X-Mine:s3cret"]).ok();
    assert_eq!(said.field("Resume"), "baton send --config 'my agent.env' --task-id=t-1 \"<reply>\"");
    let mut pasted = user.paste(&said.field("Resume").replace("<reply>", "Ann"));
    Said::of(pasted.env("A2ACLI_POLL_INTERVAL", "20ms")).ok();
    assert_eq!(agent.calls()[1].body["params"]["message"]["taskId"], "t-1");
}

/// Without the version it would not be understood.
#[test]
fn p09_cli_interact_004_the_printed_command_speaks_the_version_that_was_typed() {
    let (served, user) = (Served::start(), User::new());
    let mut card = user.run(&["card", "get", &served.url, "-o", "json"]).ok().json();
    let interfaces = card["supportedInterfaces"].as_array_mut().unwrap();
    interfaces.retain(|interface| interface["protocolVersion"] == "0.3");
    std::fs::write(user.folder().join("old.json"), card.to_string()).unwrap();
    let asked = user.run(&["send", "-a", "./old.json", "--a2a-version", "0.3", "ask me something"]).ok();
    let line = asked.field("Resume").replace("<reply>", "Ann");
    assert_eq!(Said::of(&mut user.paste(&line)).ok().field("State"), "TASK_STATE_COMPLETED", "{line}");
}

/// Neither files nor flags carry a conversation on.
#[test]
fn p09_cli_interact_005_nothing_is_remembered() {
    let (served, user) = (Served::start(), User::new());
    let asked = user.run(&["send", &served.url, "ask me something"]).ok();
    user.run(&["task", "get", &served.url, asked.field("Task")]).ok();
    user.run_with(&["chat", &served.url], "hello\n").ok();
    let left: Vec<_> =
        [user.home(), user.folder()].iter().flat_map(|at| std::fs::read_dir(at).unwrap()).collect();
    assert!(left.is_empty(), "{left:?}");
    // The next message opens another task in another context.
    let next = user.run(&["send", &served.url, "hello"]).ok();
    assert_ne!((next.field("Task"), next.field("Context")), (asked.field("Task"), asked.field("Context")));
    for flag in ["--continue", "--resume", "--last"] {
        user.run(&["send", &served.url, flag, "hi"]).failed(2);
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
