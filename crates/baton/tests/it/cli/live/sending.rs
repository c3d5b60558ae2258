//! Sending, and going on.

use super::super::user::Said;
use super::{AUTH_REQUIRED, CANCELED, COMPLETED, INPUT_REQUIRED, Live};

pub(crate) fn p09_cli_send_001_a_message_opens_an_interaction(live: &Live) {
    let said = live.run(&["send", "tck-complete-task"]).ok();
    assert_eq!(said.field("State"), COMPLETED);
    assert!(said.out.contains("Artifact text:\n  You said: tck-complete-task\n\n"), "{said:?}");
    assert!(!said.field("Task").is_empty() && !said.field("Context").is_empty());
}

pub(crate) fn p09_cli_send_002_waits_by_default_and_leaves_at_once_with_async(live: &Live) {
    let said = live.run(&["send", "tck-stream-basic"]).ok();
    assert_eq!(said.field("State"), COMPLETED);
    let said = live.start_task();
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&said.field("State")), "{said:?}");
    assert!(!said.field("Task").is_empty() && !said.field("Context").is_empty());
}

pub(crate) fn p09_cli_send_003_events_as_they_come_and_a_message_is_a_clean_end(live: &Live) {
    let said = live.run(&["send", "tck-stream-chunked", "--stream", "-o", "json"]).ok();
    let lines = said.lines();
    assert!(lines[0]["task"]["id"].is_string(), "{said:?}");
    assert!(lines.iter().filter(|line| line["artifactUpdate"].is_object()).count() > 1, "{said:?}");
    assert_eq!(lines.last().unwrap()["statusUpdate"]["status"]["state"], COMPLETED, "{said:?}");
    let said = live.run(&["send", "tck-message-response", "--stream", "-o", "json"]).ok();
    assert!(said.lines().len() == 1 && said.lines()[0]["message"].is_object(), "{said:?}");
    // In text each event has its kind, and the last one says where the task stands.
    let said = live.run(&["send", "tck-stream-chunked", "--stream"]).ok();
    assert!(said.out.starts_with("Event: task\nTask: "), "{said:?}");
    let (_, last) = said.out.rsplit_once("Event: ").unwrap();
    for label in ["Task: ", "Context: ", "State: TASK_STATE_COMPLETED"] {
        assert!(last.lines().any(|line| line.starts_with(label)), "{said:?}");
    }
    let said = live.run(&["send", "tck-message-response"]).ok();
    assert_eq!(said.field("Role"), "ROLE_AGENT");
}

pub(crate) fn p09_cli_send_004_artifacts_of_every_kind_are_shown(live: &Live) {
    for (words, kind, shown) in [
        ("tck-complete-task", "text", "You said: "),
        ("tck-artifact-file", "file", "media-type=text/plain size="),
        ("tck-artifact-file-url", "file", "url=https://example.com/"),
        ("tck-artifact-data", "data", "\"dropped\": false"),
    ] {
        let said = live.run(&["send", words]).ok();
        let (_, block) =
            said.out.split_once(&format!("Artifact {kind}:\n  ")).unwrap_or_else(|| panic!("{said:?}"));
        let block = block.split("\n\n").next().unwrap();
        assert!(block.contains(shown), "{words}: {said:?}");
        // And as they come.
        let said = live.run(&["send", words, "--stream"]).ok();
        assert!(said.out.contains(&format!("Artifact {kind}:\n  ")), "{said:?}");
    }
}

pub(crate) fn p09_cli_interact_001_002_conversations_go_on_by_explicit_ids(live: &Live) {
    let first = live.run(&["send", "tck-input-required"]).ok();
    assert_eq!(first.field("State"), INPUT_REQUIRED);
    let (task, context) = (first.field("Task"), first.field("Context"));
    let second = live.run(&["send", "--task-id", task, "--context-id", context, "Ann"]).ok();
    assert_eq!((second.field("Task"), second.field("State")), (task, COMPLETED));
    assert_eq!(second.field("Context"), context);
    let third = live.run(&["send", "--context-id", context, "tck-complete-task"]).ok();
    assert!(third.field("Context") == context && third.field("Task") != task, "{third:?}");
    // The task's id alone is enough.
    let asked = live.run(&["send", "tck-input-required"]).ok();
    let answered = live.run(&["send", "--task-id", asked.field("Task"), "Ann"]).ok();
    assert_eq!((answered.field("Task"), answered.field("State")), (asked.field("Task"), COMPLETED));
}

/// A task that is not there, one that has ended, and a pair that does not belong together.
pub(crate) fn p09_cli_interact_002_a_refused_id_fails_and_begins_nothing(live: &Live) {
    let done = live.run(&["send", "tck-complete-task"]).ok();
    let asked = live.run(&["send", "tck-input-required"]).ok();
    let ended = done.field("Task");
    for (ids, context) in [
        (&["--task-id", "no-such-task"][..], None),
        (&["--task-id", ended], Some(done.field("Context"))),
        (
            &["--task-id", asked.field("Task"), "--context-id", done.field("Context")],
            Some(done.field("Context")),
        ),
    ] {
        let said = live.run(&[&["send", "hi", "-o", "json"], ids].concat()).failed(1);
        let (code, hint) = said.error();
        assert!(code.ends_with("Error") && !code.starts_with("A2ACLI_"), "{said:?}");
        assert!(hint.starts_with("baton task get ") && hint.contains("--debug"), "{said:?}");
        let Some(context) = context else { continue };
        let listed = live.run(&["task", "list", "--context-id", context]).ok();
        assert_eq!(listed.field("Tasks"), "1", "{listed:?}");
    }
}

/// The printed command is run as it stands: after a question, after an end, after a message, and while the task goes on.
pub(crate) fn p09_cli_interact_004_the_printed_commands_go_on(live: &Live) {
    let asked = live.run(&["send", "tck-input-required"]).ok();
    assert!(!asked.field("Task").is_empty() && !asked.field("Context").is_empty());
    let answered = live.paste(&asked.field("Resume").replace("<reply>", "Ann")).ok();
    assert_eq!((answered.field("Task"), answered.field("State")), (asked.field("Task"), COMPLETED));
    let next = live.paste(&answered.field("Resume").replace("<message>", "tck-message-response")).ok();
    assert_eq!(next.field("Context"), asked.field("Context"));
    let next = live.paste(&next.field("Resume").replace("<message>", "tck-complete-task")).ok();
    assert_eq!((next.field("Context"), next.field("State")), (asked.field("Context"), COMPLETED));
    let begun = live.run(&["send", "tck-stream-basic", "--async"]).ok();
    let ended = live.paste(begun.field("Resume")).ok();
    assert_eq!((ended.field("Task"), ended.field("State")), (begun.field("Task"), COMPLETED));
    // What was typed to reach the agent is in it.
    let typed = live.run(&["send", &live.url, "tck-input-required", "--transport", live.transport]).ok();
    let expected = format!("baton send -a {} --transport {} --task-id=", live.url, live.transport);
    assert!(typed.field("Resume").starts_with(&expected), "{typed:?}");
}

pub(crate) fn p09_cli_exit_002_what_becomes_of_the_task_does_not_change_the_status(live: &Live) {
    for (words, state, warning) in [
        ("tck-task-failure", "TASK_STATE_FAILED", "the task has failed"),
        ("tck-reject-task", "TASK_STATE_REJECTED", "the agent has rejected the task"),
        ("tck-input-required", INPUT_REQUIRED, "waiting for input"),
        ("tck-auth-required", AUTH_REQUIRED, "waiting for an authorization"),
    ] {
        for form in [&[][..], &["--stream"], &["--async", "-o", "json"]] {
            let said = live.run(&[&["send", words], form].concat()).ok();
            // With `--async` the answer may come before the outcome.
            if !form.contains(&"--async") {
                assert!(said.out.contains(&format!("State: {state}\n")), "{said:?}");
                assert!(said.err.contains(warning), "{said:?}");
            }
        }
    }
    let task = live.start_task();
    live.run(&["task", "cancel", task.field("Task")]).ok();
    let said = live.run(&["task", "get", task.field("Task"), "--wait"]).ok();
    assert_eq!(said.field("State"), CANCELED);
    assert!(said.err.contains("the task was canceled"), "{said:?}");
}

pub(crate) fn p09_cli_auth_011_an_authorization_is_asked_for_and_then_the_task_goes_on(live: &Live) {
    let said = live.run(&["send", "tck-auth-required"]).ok();
    assert_eq!(said.field("State"), AUTH_REQUIRED);
    assert!(said.out.contains("Status message:\n  Sign in"), "{said:?}");
    // The user signs in elsewhere. This agent wants to be told.
    let looked = live.paste(said.field("Resume")).ok();
    assert_eq!((looked.field("Task"), looked.field("State")), (said.field("Task"), AUTH_REQUIRED));
    let told = live.run(&["send", "--task-id", said.field("Task"), "done"]).ok();
    assert_eq!((told.field("Task"), told.field("State")), (said.field("Task"), COMPLETED));
}

pub(crate) fn p09_cli_chat_001_context_and_task_are_carried(live: &Live) {
    let typed = "tck-complete-task\ntck-input-required\nAnn\n\ntck-message-response\n";
    let said = Said::with(&mut live.command(&["chat", "-o", "json", "--stream"]), typed).ok();
    let turns = said.lines();
    assert_eq!(turns.len(), 4, "{said:?}");
    let context = |turn: &serde_json::Value| {
        let found = turn["task"]["contextId"].as_str().or(turn["message"]["contextId"].as_str());
        found.map(str::to_owned)
    };
    let contexts: Vec<_> = turns.iter().map(context).collect();
    assert!(contexts.iter().all(|it| *it == contexts[0] && it.is_some()), "{contexts:?}");
    assert_ne!(turns[0]["task"]["id"], turns[1]["task"]["id"]);
    assert_eq!(turns[1]["task"]["id"], turns[2]["task"]["id"], "the answer goes to the task that asked");
    assert_eq!(turns[2]["task"]["status"]["state"], COMPLETED);
    assert!(turns[3]["message"].is_object());
    // An earlier task is taken up again.
    let asked = live.run(&["send", "tck-input-required"]).ok();
    let said = Said::with(&mut live.command(&["chat", "--task-id", asked.field("Task")]), "Ann\n").ok();
    assert_eq!((said.field("Task"), said.field("State")), (asked.field("Task"), COMPLETED));
}
