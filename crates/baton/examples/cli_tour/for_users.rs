//! Checks for agents that know their users, and have webhooks and an extended card.

use super::live::{Check, Live};
use super::user::Said;

pub(crate) const CHECKS: &[Check] = &[
    ("p09_cli_auth_001_002_the_token_of_the_variable_is_sent_and_a_flag_goes_before_it", tokens),
    ("p09_cli_auth_004_the_token_is_never_shown", redaction),
    ("p09_cli_card_get_003_the_extended_card_for_users", extended_card),
    ("p09_cli_push_001_webhooks_are_made_listed_and_removed", webhooks),
];

fn tokens(live: &Live) {
    assert_eq!(live.run(&["send", "tck-complete-task"]).ok().field("State"), "TASK_STATE_COMPLETED");
    let said = live.run(&["send", "tck-complete-task", "--bearer", "wrong", "-o", "json"]).failed(4);
    assert_eq!(said.error().0, "A2ACLI_ERR_AUTH_FAILED");
    let mut command = live.command(&["send", "tck-complete-task", "-o", "json"]);
    let said = Said::of(command.env_remove("A2ACLI_BEARER")).failed(4);
    assert_eq!(said.error(), ("A2ACLI_ERR_CREDENTIALS_MISSING".to_owned(), "set A2ACLI_BEARER".to_owned()));
    // Another user sees nothing of this one's tasks.
    let mine = live.run(&["send", "tck-complete-task"]).ok();
    let said =
        live.run(&["task", "get", mine.field("Task"), "--bearer", "second-token", "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "TaskNotFoundError");
}

fn redaction(live: &Live) {
    for args in [
        &["send", "tck-complete-task", "--debug", "--verbose"][..],
        &["send", "tck-complete-task", "--debug", "-o", "json", "--stream"],
        &["task", "get", "no-such-task", "--debug"],
        &["config", "show"],
    ] {
        let said = live.run(args);
        assert!(!said.out.contains("first-token") && !said.err.contains("first-token"), "{said:?}");
    }
}

fn extended_card(live: &Live) {
    let public = live.run(&["card", "get"]).ok();
    let said = live.run(&["card", "get", "--extended"]).ok();
    assert_eq!(said.field("Agent"), format!("{}, for users", public.field("Agent")));
    let mut command = live.command(&["card", "get", "--extended"]);
    Said::of(command.env_remove("A2ACLI_BEARER")).failed(4);
}

fn webhooks(live: &Live) {
    let task = live.run(&["send", "tck-cancel", "--async"]).ok();
    let (id, url) = (task.field("Task"), "http://127.0.0.1:9/");
    let create = ["task", "push-config", "create", id, "--url", url, "--id", "hook-1", "--token", "s3cret"];
    let made = live.run(&create).ok();
    let of = format!("Task: {id}\nContext: {}\nState: TASK_STATE_WORKING\n", task.field("Context"));
    assert_eq!(made.out, format!("{of}Push config: hook-1\nURL: {url}\n"));
    let said = live.run(&["task", "push-config", "get", id, "hook-1"]).ok();
    assert_eq!(said.out, made.out);
    let said = live.run(&["task", "push-config", "list", id, "-o", "json"]).ok();
    assert_eq!(said.json()["configs"][0]["id"], "hook-1", "{said:?}");
    let said = live.run(&["task", "push-config", "delete", id, "hook-1"]).ok();
    assert_eq!(said.out, format!("{of}Removed: hook-1\n"));
    let said = live.run(&["task", "push-config", "list", id]).ok();
    assert_eq!(said.out, of);
    live.run(&["task", "cancel", id]).ok();
}
