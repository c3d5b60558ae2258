//! Tasks that exist.

use std::fs;

use super::{AUTH_REQUIRED, CANCELED, COMPLETED, INPUT_REQUIRED, Live};

pub(crate) fn p09_cli_task_get_001_state_artifacts_and_history(live: &Live) {
    let sent = live.run(&["send", "tck-complete-task"]).ok();
    let id = sent.field("Task");
    let said = live.run(&["task", "get", id, "--history", "1"]).ok();
    assert_eq!((said.field("Task"), said.field("Context")), (id, sent.field("Context")));
    assert_eq!((said.field("State"), said.field("Artifacts"), said.field("History")), (COMPLETED, "1", "1"));
    assert!(said.out.contains("Artifact text:\n  You said: "), "{said:?}");
    assert!(said.out.contains("History message:\n  ROLE_"), "{said:?}");
    let said = live.run(&["task", "get", id, "--history", "0"]).ok();
    assert_eq!(said.field("History"), "0");
    let task = live.run(&["task", "get", id, "-o", "json"]).ok().json();
    assert!(task["id"] == id && task.get("taskId").is_none() && task["artifacts"].is_array(), "{task}");
}

/// A second cancel gives the same state, or the protocol's own error: never another one.
pub(crate) fn p09_cli_task_cancel_001_the_resulting_state_is_shown(live: &Live) {
    let sent = live.start_task();
    let id = sent.field("Task");
    let said = live.run(&["task", "cancel", id]).ok();
    assert_eq!((said.field("Task"), said.field("Context")), (id, sent.field("Context")));
    assert_eq!(said.field("State"), CANCELED);
    let again = live.run(&["task", "cancel", id, "-o", "json"]);
    match again.code {
        Some(0) => assert_eq!(again.json()["status"]["state"], CANCELED),
        _ => assert_eq!((again.code, again.error().0.as_str()), (Some(1), "TaskNotCancelableError")),
    }
    let done = live.run(&["send", "tck-complete-task"]).ok();
    let said = live.run(&["task", "cancel", done.field("Task"), "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "TaskNotCancelableError");
}

pub(crate) fn p09_cli_task_poll_001_one_look_or_until_the_end(live: &Live) {
    let sent = live.run(&["send", "tck-stream-basic", "--async"]).ok();
    let said = live.run(&["task", "get", sent.field("Task"), "--wait"]).ok();
    assert_eq!(said.field("State"), COMPLETED);
    let held = live.start_task();
    let said = live.run(&["task", "get", held.field("Task")]).ok();
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&said.field("State")), "{said:?}");
    assert!(said.field("Resume").contains("--wait"), "{said:?}");
}

pub(crate) fn p09_cli_task_poll_002_a_timeout_ends_the_wait_and_keeps_the_id(live: &Live) {
    let said = live.run(&["send", "tck-cancel", "--timeout", "700ms", "-o", "json"]).failed(5);
    let (code, hint) = said.error();
    assert_eq!(code, "A2ACLI_ERR_TIMEOUT");
    let id = hint.rsplit(' ').next().unwrap();
    assert!(said.err.contains(&format!("Task: {id}")), "{said:?}");
    let said = live.run(&["task", "get", id]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_WORKING", "the task goes on");
    live.run(&["task", "get", id, "--wait", "--timeout", "300ms"]).failed(5);
}

pub(crate) fn p09_cli_task_poll_003_a_pause_ends_the_wait(live: &Live) {
    for (words, state) in [("tck-input-required", INPUT_REQUIRED), ("tck-auth-required", AUTH_REQUIRED)] {
        let sent = live.run(&["send", words]).ok();
        assert_eq!(sent.field("State"), state);
        let said = live.run(&["task", "get", sent.field("Task"), "--wait"]).ok();
        assert_eq!(said.field("State"), state);
    }
}

pub(crate) fn p09_cli_task_list_001_pages_and_filters(live: &Live) {
    let first = live.run(&["send", "tck-complete-task"]).ok();
    let context = first.field("Context");
    let mut ids = vec![first.field("Task").to_owned()];
    for words in ["tck-complete-task", "tck-input-required"] {
        let said = live.run(&["send", "--context-id", context, words]).ok();
        ids.push(said.field("Task").to_owned());
    }
    let list = ["task", "list", "--context-id", context];
    let page = live.run(&[&list[..], &["--page-size", "2"]].concat()).ok();
    assert_eq!((page.field("Tasks"), page.field("Total")), ("2", "3"));
    let token = ["--page-size", "2", "--page-token", page.field("Next page")];
    let next = live.run(&[&list[..], &token].concat()).ok();
    assert!(next.field("Tasks") == "1" && !page.out.contains(next.field("Task")), "{page:?} {next:?}");
    let all = live.run(&[&list[..], &["--page-size", "2", "--all", "-o", "json"]].concat()).ok().json();
    let mut found: Vec<&str> =
        all["tasks"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    found.sort_unstable();
    ids.sort();
    assert_eq!(found, ids);
    assert!(all["nextPageToken"] == "" && all["totalSize"] == 3 && all["pageSize"].is_number(), "{all}");
    let lines = live.run(&[&list[..], &["--all", "-o", "json", "--stream"]].concat()).ok().lines();
    assert!(lines.len() == 3 && lines.iter().all(|task| task["id"].is_string()));
    for (status, count) in [("input-required", "1"), ("TASK_STATE_COMPLETED", "2"), ("working", "0")] {
        let said = live.run(&[&list[..], &["--status", status]].concat()).ok();
        assert_eq!(said.field("Tasks"), count, "{status}");
    }
}

pub(crate) fn p09_cli_task_subscribe_001_the_first_event_is_the_task(live: &Live) {
    let sent = live.run(&["send", "tck-stream-basic", "--async"]).ok();
    let id = sent.field("Task");
    let lines = live.run(&["task", "subscribe", id, "-o", "json", "--stream"]).ok().lines();
    assert_eq!(lines[0]["task"]["id"], id, "{lines:?}");
    assert_eq!(lines.last().unwrap()["statusUpdate"]["status"]["state"], COMPLETED, "{lines:?}");
    // Without `--stream`: one document.
    let sent = live.run(&["send", "tck-stream-basic", "--async"]).ok();
    let said = live.run(&["task", "subscribe", sent.field("Task"), "-o", "json"]).ok();
    assert_eq!(said.json()["status"]["state"], COMPLETED);
    let sent = live.run(&["send", "tck-stream-basic", "--async"]).ok();
    let said = live.run(&["task", "subscribe", sent.field("Task")]).ok();
    assert!(
        said.out.starts_with("Event: task\nTask: ") && said.out.contains("State: TASK_STATE_COMPLETED\n")
    );
}

pub(crate) fn p09_cli_download_001_artifacts_are_saved_in_the_folder(live: &Live) {
    let sent = live.run(&["send", "tck-artifact-file"]).ok();
    let download = ["task", "download", sent.field("Task"), "--dir", "out"];
    let said = live.run(&download).ok();
    let saved = said.field("Saved").to_owned();
    let (path, about) = saved.split_once(' ').unwrap();
    let bytes = fs::read(live.user.folder().join(path)).unwrap();
    assert_eq!(about, format!("text/plain {}", bytes.len()));
    assert!(path.starts_with("out/") && path.ends_with(".txt"), "{path}");
    // Nothing is replaced unless the user says so.
    live.run(&download).failed(2);
    live.run(&[&download[..], &["--force"]].concat()).ok();
}
