//! Forms of results, errors and exit statuses.

use super::super::user::Said;
use super::{COMPLETED, Live};

/// In text, as one document, and line by line; the result alone is on stdout.
pub(crate) fn p09_cli_out_001_002_003_ids_and_state_in_every_form(live: &Live) {
    let done = live.run(&["send", "tck-complete-task"]).ok();
    let (id, context) = (done.field("Task"), done.field("Context"));
    let check = |said: &Said, form: &[&str], words: &[&str]| {
        match form {
            [] | ["--stream"] => {
                for label in ["Task: ", "Context: ", "State: "] {
                    assert!(said.out.lines().any(|line| line.starts_with(label)), "{label}: {said:?}");
                }
            }
            ["-o", "json"] => assert!(said.json().is_object(), "{said:?}"),
            _ => assert!(
                !said.lines().is_empty() && said.lines().iter().all(|line| line.is_object()),
                "{said:?}"
            ),
        }
        assert!(words.iter().all(|words| said.out.contains(words)), "{words:?}: {said:?}");
    };
    for form in [&[][..], &["--stream"], &["-o", "json"], &["-o", "json", "--stream"]] {
        for args in [
            &["task", "get", id][..],
            &["task", "list", "--context-id", context],
            &["task", "download", id, "--dir", "out", "--force"],
        ] {
            check(&live.run(&[args, form].concat()).ok(), form, &[id, context, COMPLETED]);
        }
        check(&live.run(&[&["send", "tck-complete-task"], form].concat()).ok(), form, &[COMPLETED]);
        let held = live.start_task();
        let ids = [held.field("Task"), held.field("Context"), "TASK_STATE_CANCELED"];
        check(&live.run(&[&["task", "cancel", held.field("Task")], form].concat()).ok(), form, &ids);
        let lines = live.run(&[&["card", "get"], form].concat()).ok();
        if form == ["-o", "json", "--stream"] {
            assert_eq!(lines.lines().len(), 1);
        }
    }
    // One document with the final object, whatever happened on the way.
    let said = live.run(&["send", "tck-stream-chunked", "-o", "json", "--debug"]).ok();
    let task = said.json()["task"].take();
    assert_eq!(task["status"]["state"], COMPLETED);
    assert!(task["artifacts"].is_array() && task.get("taskId").is_none(), "{task}");
    let said = live.run(&["send", "tck-message-response", "-o", "json"]).ok();
    assert_eq!(said.json()["message"]["role"], "ROLE_AGENT");
}

pub(crate) fn p09_cli_out_004_errors_are_envelopes_with_the_protocol_s_names(live: &Live) {
    let said = live.run(&["task", "get", "no-such-task", "-o", "json"]).failed(1);
    let error = said.json()["error"].take();
    assert_eq!(error["code"], "TaskNotFoundError");
    let code = match live.transport {
        "rest" => 404,
        "grpc" => 5,
        _ => -32001,
    };
    assert_eq!(error["a2aCode"], code);
    assert!(error["message"].is_string() && error["hint"] == "baton task list", "{error}");
    assert!(said.err.is_empty(), "{said:?}");
    let said = live.run(&["task", "subscribe", "no-such-task", "-o", "json", "--stream"]).failed(1);
    assert_eq!(said.lines().len(), 1, "{said:?}");
    assert_eq!(said.lines()[0]["error"]["code"], "TaskNotFoundError");
    let said = live.run(&["task", "cancel", "no-such-task"]).failed(1);
    assert!(said.out.is_empty() && said.err.starts_with("Error: TaskNotFoundError\nMessage: "), "{said:?}");
}

pub(crate) fn p09_cli_out_006_an_async_result_has_both_ids(live: &Live) {
    let said = live.run(&["send", "tck-cancel", "--async", "-o", "json"]).ok();
    let task = said.json()["task"].take();
    for text in [&task["id"], &task["contextId"], &task["status"]["state"]] {
        assert!(text.as_str().is_some_and(|text| !text.is_empty()), "{task}");
    }
}

pub(crate) fn p09_cli_out_007_debug_shows_the_exchanged_messages(live: &Live) {
    let said = live.run(&["send", "tck-complete-task", "--debug"]).ok();
    let words = [
        format!("Debug: interface {} 1.0 ", live.binding()),
        "Debug: > GET ".to_owned(),
        "Debug: > POST ".to_owned(),
        "Debug: > a2a-version: 1.0\n".to_owned(),
        "tck-complete-task".to_owned(),
        "Debug: < 200 after ".to_owned(),
        // Of gRPC the JSON is shown that the messages stand for.
        if live.transport == "grpc" { "Debug: < {\"" } else { "Debug: < data: {" }.to_owned(),
    ];
    for words in words {
        assert!(said.err.contains(&words), "{words}: {said:?}");
    }
    assert!(!said.out.contains("Debug:"), "{said:?}");
}

pub(crate) fn p09_cli_exit_001_statuses_by_kind_of_failure(live: &Live) {
    let nobody = "http://127.0.0.1:1";
    let nothing = format!("{}/.well-known/no-such-card.json", live.url);
    for (args, status, code) in [
        (&["send"][..], 2, "A2ACLI_ERR_USAGE"),
        (&["task", "get", "x", "--no-such-flag"], 2, "A2ACLI_ERR_USAGE"),
        (&["card", "get", "-a", &nothing], 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        (&["send", "-a", nobody, "x"], 3, "A2ACLI_ERR_UNREACHABLE"),
        (&["task", "get", "no-such-task"], 1, "TaskNotFoundError"),
        (&["send", "tck-cancel", "--timeout", "500ms"], 5, "A2ACLI_ERR_TIMEOUT"),
    ] {
        let said = live.run(&[args, &["-o", "json"]].concat()).failed(status);
        assert_eq!(said.error().0, code, "{args:?}: {said:?}");
    }
}

/// The checks of the card: what is wrong with it is listed, and decides the exit status.
pub(crate) fn p09_cli_conform_001_the_agent_s_card_is_checked(live: &Live) {
    let said = live.run(&["conformance", "--select", "agent-card"]);
    let count = |label| said.field(label).parse::<u32>().unwrap();
    assert_eq!(count("Checks"), count("Passed") + count("Failed"), "{said:?}");
    assert!(count("Passed") > 0 && !said.field("Agent").is_empty(), "{said:?}");
    assert_eq!(said.out.matches("\nProblem: ").count(), count("Failed") as usize, "{said:?}");
    assert_eq!(said.code, Some((count("Failed") > 0).into()), "{said:?}");
}
