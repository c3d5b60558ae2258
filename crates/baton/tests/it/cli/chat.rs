//! `baton chat` without a terminal: each line is a turn.

use super::User;
use super::scripted::{Answer, Scripted, card, task};
use crate::served::Served;
use serde_json::json;

#[test]
fn p09_cli_chat_001_the_context_is_carried_always_and_the_task_while_it_waits() {
    let (served, user) = (Served::start(), User::new());
    let said = user
        .run_with(
            &["chat", &served.url, "-o", "json", "--stream"],
            "hello\nask me something\nAnn\n\njust answer\n",
        )
        .ok();
    let turns = said.lines();
    assert_eq!(turns.len(), 4, "{said:?}");
    let contexts: Vec<_> = turns
        .iter()
        .map(|turn| turn["task"]["contextId"].as_str().or(turn["message"]["contextId"].as_str()))
        .collect();
    assert!(contexts.iter().all(|context| *context == contexts[0] && context.is_some()), "{contexts:?}");
    assert_ne!(turns[0]["task"]["id"], turns[1]["task"]["id"]);
    assert_eq!(turns[1]["task"]["id"], turns[2]["task"]["id"], "the answer goes to the task that asked");
    assert_eq!(turns[2]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(turns[3]["message"].is_object());
    // An earlier task is taken up again; the text form has no control sequences.
    let asked = user.run(&["send", &served.url, "ask me something"]).ok();
    let said = user.run_with(&["chat", &served.url, "--task-id", asked.field("Task")], "Ann\n").ok();
    assert_eq!((said.field("Task"), said.field("State")), (asked.field("Task"), "TASK_STATE_COMPLETED"));
    assert!(!said.out.contains('\u{1b}') && !said.out.contains("> "), "{said:?}");
}

#[test]
fn p09_cli_chat_001_files_long_messages_and_new_conversations() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |_, _| Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
    );
    let user = User::new();
    std::fs::write(user.folder().join("a.txt"), "x").unwrap();
    user.run_with(&["chat", &agent.url], "/file a.txt\none\\\ntwo\n/new\nthree\n/quit\nnever\n").ok();
    let sent: Vec<_> = agent
        .calls()
        .iter()
        .filter(|call| call.rpc() == "SendMessage")
        .map(|call| call.body["params"]["message"].clone())
        .collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0]["parts"][0], json!({"text": "one\ntwo"}));
    assert_eq!(sent[0]["parts"][1]["filename"], "a.txt");
    assert!(sent[1].get("contextId").is_none(), "{}", sent[1]);
    // Empty input never blocks.
    user.run(&["chat", &agent.url]).ok();
}
