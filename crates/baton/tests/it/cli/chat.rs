//! `baton chat` without a terminal: each line is a turn.

use super::User;
use super::scripted::{Answer, Scripted, card, task};
use serde_json::json;

#[test]
fn p09_cli_chat_001_files_long_messages_and_new_conversations() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |heard, _| {
            Answer::Result(match heard.rpc() {
                "SendMessage" => json!({"task": task("TASK_STATE_COMPLETED")}),
                _ => task("TASK_STATE_COMPLETED"),
            })
        },
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
