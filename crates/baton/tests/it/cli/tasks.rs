//! Tasks that exist.

use serde_json::json;

use super::User;
use super::scripted::{Answer, Scripted, card, task};
use crate::served::Served;

#[test]
fn p09_cli_task_get_001_state_artifacts_and_history() {
    let (served, user) = (Served::start(), User::new());
    let sent = user.run(&["send", &served.url, "write a note"]).ok();
    let id = sent.field("Task");
    let said = user.run(&["task", "get", &served.url, id, "--history", "1"]).ok();
    assert_eq!(
        (said.field("State"), said.field("Artifacts"), said.field("History")),
        ("TASK_STATE_COMPLETED", "1", "1")
    );
    assert!(
        said.out.contains("Artifact text:\n  ") && said.out.contains("History message:\n  ROLE_"),
        "{said:?}"
    );
    let task = user.run(&["task", "get", &served.url, id, "-o", "json"]).ok().json();
    assert!(task["id"] == id && task.get("taskId").is_none() && task["artifacts"].is_array(), "{task}");
}

#[test]
fn p09_cli_task_poll_001_one_look_or_until_the_end() {
    let (served, user) = (Served::start(), User::new());
    let sent = user.run(&["send", &served.url, "work step by step", "--async"]).ok();
    let id = sent.field("Task");
    let said = user.run(&["task", "get", &served.url, id, "--wait", "--poll-interval", "20ms"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
    let held = user.run(&["send", &served.url, "wait until I cancel", "--async"]).ok();
    let said = user.run(&["task", "get", &served.url, held.field("Task")]).ok();
    assert!(said.field("Resume").contains("task get") && said.field("Resume").contains("--wait"), "{said:?}");
}

#[test]
fn p09_cli_task_poll_003_unspecified_is_waited_for_and_a_pause_is_not() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |_, before| {
            Answer::Result(task(match before {
                0 => "TASK_STATE_UNSPECIFIED",
                1 => "TASK_STATE_WORKING",
                _ => "TASK_STATE_AUTH_REQUIRED",
            }))
        },
    );
    let user = User::new();
    let said = user.run(&["task", "get", &agent.url, "t-1", "--wait", "--poll-interval", "20ms"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(agent.calls().len(), 3);
}

#[test]
fn p09_cli_task_cancel_001_the_resulting_state_is_shown() {
    let (served, user) = (Served::start(), User::new());
    let sent = user.run(&["send", &served.url, "wait until I cancel", "--async"]).ok();
    let id = sent.field("Task");
    let said = user.run(&["task", "cancel", &served.url, id]).ok();
    assert_eq!((said.field("Task"), said.field("State")), (id, "TASK_STATE_CANCELED"));
    let done = user.run(&["send", &served.url, "hello"]).ok();
    let said = user.run(&["task", "cancel", &served.url, done.field("Task"), "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "TaskNotCancelableError");
}

#[test]
fn p09_cli_task_list_001_pages_and_filters() {
    let (served, user) = (Served::start(), User::new());
    let first = user.run(&["send", &served.url, "hello"]).ok();
    for _ in 0..3 {
        user.run(&["send", &served.url, "hello"]).ok();
    }
    user.run(&["send", &served.url, "ask me something"]).ok();
    let page = user.run(&["task", "list", &served.url, "--page-size", "2"]).ok();
    assert_eq!((page.field("Tasks"), page.field("Total")), ("2", "5"));
    let next = user
        .run(&["task", "list", &served.url, "--page-size", "2", "--page-token", page.field("Next page")])
        .ok();
    assert!(next.field("Task") != page.field("Task") && next.field("Tasks") == "2");
    let all = user.run(&["task", "list", &served.url, "--page-size", "2", "--all", "-o", "json"]).ok().json();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 5);
    assert!(all["nextPageToken"] == "" && all["totalSize"] == 5 && all["pageSize"].is_number(), "{all}");
    let lines = user.run(&["task", "list", &served.url, "--all", "-o", "json", "--stream"]).ok().lines();
    assert!(lines.len() == 5 && lines.iter().all(|task| task["id"].is_string()));
    for (flag, value, count) in [
        ("--status", "input-required", "1"),
        ("--context-id", first.field("Context"), "1"),
        ("--since", "2999-01-01T00:00:00Z", "0"),
    ] {
        let said = user.run(&["task", "list", &served.url, flag, value]).ok();
        assert_eq!(said.field("Tasks"), count, "{flag} {value}");
    }
    user.run(&["task", "list", &served.url, "--status", "dreaming"]).failed(2);
}

#[test]
fn p09_cli_task_subscribe_001_the_first_event_is_the_task() {
    let (served, user) = (Served::start(), User::new());
    let sent = user.run(&["send", &served.url, "take your time", "--async"]).ok();
    let id = sent.field("Task");
    let lines = user.run(&["task", "subscribe", &served.url, id, "-o", "json", "--stream"]).ok().lines();
    assert!(lines[0]["task"]["id"] == id, "{lines:?}");
    assert_eq!(lines.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    // Without `--stream`: one document.
    let sent = user.run(&["send", &served.url, "work step by step", "--async"]).ok();
    let said = user.run(&["task", "subscribe", &served.url, sent.field("Task"), "-o", "json"]);
    // It may have ended before the subscription.
    if said.code == Some(0) {
        assert_eq!(said.json()["status"]["state"], "TASK_STATE_COMPLETED");
    } else {
        assert_eq!(said.error().0, "UnsupportedOperationError");
    }
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
                _ => answered.clone(),
            })
        },
    );
    let user = User::new();
    let url = agent.url.as_str();
    let pair = "Task: t-1\nPush config: pc-1\nURL: https://hook.example/in\n";
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
        "Task: t-1\nRemoved: pc-1\n"
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
