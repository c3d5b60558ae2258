//! Tasks that exist.

use serde_json::json;

use super::User;
use super::scripted::{Answer, Scripted, always, card, task};
use crate::served::Served;

/// Unchanged: with members that nobody knows, and numbers as they were spelled.
#[test]
fn p09_cli_task_get_001_json_is_the_task_as_the_agent_sent_it() {
    let mut odd = task("TASK_STATE_COMPLETED");
    odd["metadata"] = serde_json::from_str(r#"{"n": 1e2, "ü": ["é"]}"#).unwrap();
    odd["fromTheFuture"] = json!({"x": [1, null]});
    let (agent, user) = (always(odd.clone()), User::new());
    assert_eq!(user.run(&["task", "get", &agent.url, "t-1", "-o", "json"]).ok().json(), odd);
    user.run(&["task", "get", &agent.url, "t-1", "--history", "3"]).ok();
    let calls = agent.calls();
    assert_eq!(calls[0].body["params"].get("historyLength"), None);
    assert_eq!(calls[1].body["params"]["historyLength"], 3);
}

#[test]
fn p09_cli_task_cancel_001_canceling_twice_gives_the_same_state() {
    let (served, user) = (Served::start(), User::new());
    let sent = user.run(&["send", &served.url, "wait until I cancel", "--async"]).ok();
    for _ in 0..2 {
        let said = user.run(&["task", "cancel", &served.url, sent.field("Task")]).ok();
        assert_eq!(said.field("State"), "TASK_STATE_CANCELED");
    }
    let done = user.run(&["send", &served.url, "hello"]).ok();
    let said = user.run(&["task", "cancel", &served.url, done.field("Task"), "-o", "json"]).failed(1);
    let look = format!("baton task get -a {} {}", served.url, done.field("Task"));
    assert_eq!(said.error(), ("TaskNotCancelableError".to_owned(), look));
}

/// What is asked for is in the request; what makes no sense is not sent.
#[test]
fn p09_cli_task_list_001_filters_are_the_agent_s_to_apply() {
    let page =
        json!({"tasks": [task("TASK_STATE_WORKING")], "nextPageToken": "t2", "pageSize": 1, "totalSize": 2});
    let (agent, user) = (always(page), User::new());
    let args = [
        "task",
        "list",
        &agent.url,
        "--status",
        "working",
        "--context-id",
        "c-1",
        "--since",
        "2026-08-20T09:20:00Z",
        "--page-size",
        "1",
        "--page-token",
        "t1",
        "--history",
        "2",
        "--include-artifacts",
    ];
    let said = user.run(&args).ok();
    assert_eq!((said.field("Tasks"), said.field("Total"), said.field("Next page")), ("1", "2", "t2"));
    let sent = agent.calls()[0].body["params"].clone();
    assert_eq!((&sent["status"], &sent["contextId"]), (&json!("TASK_STATE_WORKING"), &json!("c-1")));
    assert_eq!((&sent["pageSize"], &sent["pageToken"]), (&json!(1), &json!("t1")));
    assert_eq!((&sent["historyLength"], &sent["includeArtifacts"]), (&json!(2), &json!(true)));
    assert!(sent["statusTimestampAfter"].as_str().unwrap().starts_with("2026-08-20T09:20:00"), "{sent}");
    user.run(&["task", "list", &agent.url, "--status", "dreaming"]).failed(2);
    user.run(&["task", "list", &agent.url, "--since", "yesterday"]).failed(2);
    assert_eq!(agent.calls().len(), 1);
}

#[test]
fn p09_cli_task_subscribe_002_a_broken_subscription_is_taken_up_again() {
    let agent = Scripted::start(
        |url| card(url, json!({"capabilities": {"streaming": true}})),
        |heard, before| match (heard.rpc(), before) {
            ("SubscribeToTask", 0) => Answer::Cut(vec![json!({"task": task("TASK_STATE_WORKING")})]),
            ("SubscribeToTask", _) => Answer::Events(vec![
                json!({"task": task("TASK_STATE_WORKING")}),
                json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}}}),
            ]),
            _ => Answer::Result(task("TASK_STATE_COMPLETED")),
        },
    );
    let said = User::new().run(&["task", "subscribe", &agent.url, "t-1"]).ok();
    assert_eq!(said.out.matches("Event: task").count(), 1, "{said:?}");
    assert!(
        said.out.contains("Event: status\nTask: t-1\nContext: c-1\nState: TASK_STATE_COMPLETED\n"),
        "{said:?}"
    );
}

#[test]
fn p09_cli_ver_003_what_the_card_does_not_offer_is_not_tried() {
    let agent = Scripted::start(|url| card(url, json!({})), |_, _| Answer::Error(-32603, "tried"));
    let user = User::new();
    for (args, code) in [
        (&["task", "subscribe", &agent.url, "t-1"][..], "UnsupportedOperationError"),
        (&["task", "push-config", "list", &agent.url, "t-1"], "PushNotificationNotSupportedError"),
        (&["card", "get", &agent.url, "--extended"], "ExtendedAgentCardNotConfiguredError"),
    ] {
        let said = user.run(&[args, &["-o", "json"]].concat()).failed(1);
        assert_eq!(said.error().0, code);
        assert!(said.json()["error"]["a2aCode"].is_null(), "{said:?}");
    }
    assert!(agent.calls().is_empty(), "{:?}", agent.calls());
    // Streaming has a way around: sending, then looking.
    user.run(&["send", &agent.url, "hi", "--stream"]).failed(1);
    assert_eq!(agent.calls().iter().map(|call| call.rpc().to_owned()).collect::<Vec<_>>(), ["SendMessage"]);
}

#[test]
fn p09_cli_push_001_webhooks_are_made_shown_and_removed() {
    let config = json!({"id": "pc-1", "taskId": "t-1", "url": "https://hook.example/in", "token": "s3cret"});
    let answered = config.clone();
    let agent = Scripted::start(
        |url| card(url, json!({"capabilities": {"pushNotifications": true}})),
        move |heard, _| {
            Answer::Result(match heard.rpc() {
                "ListTaskPushNotificationConfigs" => json!({"configs": [answered]}),
                "DeleteTaskPushNotificationConfig" => json!({}),
                "GetTask" => task("TASK_STATE_WORKING"),
                _ => answered.clone(),
            })
        },
    );
    let user = User::new();
    let url = agent.url.as_str();
    let of = "Task: t-1\nContext: c-1\nState: TASK_STATE_WORKING\n";
    let pair = format!("{of}Push config: pc-1\nURL: https://hook.example/in\n");
    let create = [
        "task",
        "push-config",
        "create",
        url,
        "t-1",
        "--url",
        "https://hook.example/in",
        "--auth-scheme",
        "Bearer",
        "--auth-credentials",
        "c",
    ];
    assert_eq!(user.run(&create).ok().out, pair);
    let sent = agent.calls()[0].body["params"].clone();
    assert_eq!(sent["authentication"], json!({"scheme": "Bearer", "credentials": "c"}), "{sent}");
    assert_eq!(user.run(&["task", "push-config", "get", url, "t-1", "pc-1"]).ok().out, pair);
    assert_eq!(user.run(&["task", "push-config", "list", url, "t-1"]).ok().out, pair);
    let list = user.run(&["task", "push-config", "list", url, "t-1", "-o", "json"]).ok().json();
    assert_eq!(list, json!({"configs": [config]}));
    let lines = user.run(&["task", "push-config", "list", url, "t-1", "-o", "json", "--stream"]).ok().lines();
    assert_eq!(lines, [config]);
    assert_eq!(
        user.run(&["task", "push-config", "delete", url, "t-1", "pc-1"]).ok().out,
        format!("{of}Removed: pc-1\n")
    );
    assert_eq!(
        user.run(&["task", "push-config", "delete", url, "t-1", "pc-1", "-o", "json"]).ok().json(),
        json!({})
    );
}

#[test]
fn p09_cli_download_001_artifacts_are_saved_in_the_folder() {
    let (served, user) = (Served::start(), User::new());
    let sent = user.run(&["send", &served.url, "make a file"]).ok();
    let id = sent.field("Task");
    let said = user.run(&["task", "download", &served.url, id, "--dir", "out"]).ok();
    assert_eq!(said.field("Saved"), "out/baton.txt text/plain 36");
    let saved = user.folder().join("out/baton.txt");
    assert_eq!(std::fs::read_to_string(&saved).unwrap(), "The baton never touched the ground.\n");
    user.run(&["task", "download", &served.url, id, "--dir", "out"]).failed(2);
    user.run(&["task", "download", &served.url, id, "--dir", "out", "--force"]).ok();
    user.run(&["task", "download", &served.url, id, "--artifact", "other"]).failed(2);
}

/// Whatever an agent calls its files, they end up in the folder.
#[test]
fn p09_cli_download_001_a_hostile_name_stays_in_the_folder() {
    let mut hostile = task("TASK_STATE_COMPLETED");
    let names = ["../../escaped", "/tmp/escaped", "..\\..\\escaped", "sub/../../escaped", "a\u{202e}\n.txt"];
    let parts: Vec<_> = names.iter().map(|name| json!({"raw": "AAEC", "filename": name})).collect();
    hostile["artifacts"] = json!([{"artifactId": "a", "parts": parts}]);
    let agent = Scripted::start(|url| card(url, json!({})), move |_, _| Answer::Result(hostile.clone()));
    let user = User::new();
    let said = user.run(&["task", "download", &agent.url, "t-1", "--dir", "x/out"]).ok();
    assert!(!said.out.contains('\u{202e}'), "{said:?}");
    let saved = std::fs::read_dir(user.folder().join("x/out")).unwrap().count();
    assert_eq!(saved, names.len());
    assert_eq!(std::fs::read_dir(user.folder().join("x")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(user.folder()).unwrap().count(), 1);
}
