//! The checks that scripts make, and the lines they print about them.

use super::clients::Client;

pub struct Check {
    /// The name that scripts print; it contains ids of the ledger.
    pub name: &'static str,
    /// The column's name on the page.
    pub shown: &'static str,
    pub meaning: &'static str,
}

const fn check(name: &'static str, shown: &'static str, meaning: &'static str) -> Check {
    Check { name, shown, meaning }
}

/// In the order of the page's columns.
pub const CHECKS: &[Check] = &[
    check("p02_discovers_card", "card", "finds the card where it looks, and takes it"),
    check("p02_sends", "send", "a send that waits returns the completed task"),
    check("p02_streams", "stream", "the task, then its updates, then the end of the stream"),
    check("p04_streams_plain_text_in_order", "order", "chunks of an artifact arrive and are stored in order"),
    check("p02_gets_task", "get", "reads a task again as the send returned it"),
    check("p02_lists_with_pages", "pages", "lists the tasks of a context page by page"),
    check("p06_lists_by_context", "list", "the context filter lets nothing else through"),
    check("p02_cancels", "cancel", "cancels a running task"),
    check("p02_subscribes", "subscribe", "joins the stream of a running task and sees its end"),
    check("p02_talks_until_done", "talk", "several turns in one task, with their history"),
    check(
        "p02_resumes_after_input_required",
        "resume",
        "answers a question with the task's id alone, on streams",
    ),
    check(
        "p02_gets_message_reply",
        "message",
        "a message as reply instead of a task, with and without a stream",
    ),
    check("p02_maps_unknown_task_error", "not found", "an unknown task gives the client's own error for it"),
    check("p02_maps_error_of_a_stream", "stream error", "so does a stream that asks for one"),
    check(
        "p02_maps_not_cancelable_error",
        "not cancelable",
        "cancel of a completed task gives the client's own error",
    ),
];

/// The messages of gRPC, held against those in the official Python packages.
pub const MESSAGE_CHECKS: &[Check] = &[
    check(
        "p03_messages_are_those_of_the_official_package",
        "numbers",
        "every message, field, number, type, oneof, JSON name, enum value and method is in both, and nothing else is",
    ),
    check(
        "p03_golden_messages_are_read_as_their_json",
        "golden",
        "the package reads our golden messages, as bytes and as JSON, and both are the same message",
    ),
];

/// Signed cards: the SDKs' functions with cards of ours, and `baton card verify` with theirs.
pub const SIGNING_CHECKS: &[Check] = &[
    check(
        "s02_verifies_signed_cards",
        "verifies",
        "the SDK verifies our cards, as they come by default and in 1.0",
    ),
    check(
        "s02_refuses_a_signed_card_that_was_changed",
        "refuses",
        "it refuses the same cards with one value changed: the name, the address of an interface, a capability, or a tag of a \
         skill",
    ),
    check("p09_signs_cards_for_baton", "signs", "it signs cards with ES256 and EdDSA"),
    check(
        "p09_verifies_cards_that_an_sdk_signed",
        "is verified",
        "`baton card verify` verifies those, with ASCII, with other text, and with an empty description; it refuses them \
         with another name, another address, another skill, or one member more",
    ),
];

/// Webhooks, registered by the SDKs' clients at a receiver of ours.
pub const WEBHOOK_CHECKS: &[Check] = &[
    check(
        "p02_makes_a_webhook",
        "made",
        "makes a webhook for a running task, and reads it again without its secret",
    ),
    check("p02_lists_webhooks", "listed", "lists the webhooks of a task"),
    check("p02_removes_a_webhook", "removed", "removes a webhook, also twice; it is not called any more"),
    check(
        "s14_webhook_bodies_have_no_unknown_member",
        "bodies",
        "all bodies are of the SDK's own types, without a member that they do not have: parts of every kind, and all ends \
         of a task; the last one shows what the reply shows",
    ),
    check(
        "s14_webhooks_show_what_a_stream_shows",
        "as streamed",
        "the events of a stream (1.0), or the task after each (0.3): all of them, in order, also of a later turn",
    ),
    check(
        "s14_webhooks_are_signed",
        "signed",
        "both spellings of the token's header, `Authorization`, and the signature of Standard Webhooks",
    ),
    check(
        "s14_the_final_event_comes_with_the_reply",
        "in time",
        "when a send that waits has returned, the final event is there or comes at once",
    ),
    check(
        "s14_refuses_webhooks_of_local_networks",
        "local",
        "an address of a local network gives the client's own error for bad parameters",
    ),
    check(
        "p02_maps_push_not_supported_error",
        "none",
        "an agent without webhooks gives the client's own error for that",
    ),
];

/// With credentials, over HTTPS.
pub const AUTH_CHECKS: &[Check] = &[
    check("p05_reads_the_schemes_of_the_card", "schemes", "finds every security scheme on the card"),
    check("p05_api_key", "API key", "sends, streams, reads and lists with an API key in a header"),
    check("p05_api_key_in_query", "in query", "the same key as a parameter of the URL"),
    check("p05_api_key_in_cookie", "in cookie", "the same key as a cookie"),
    check("p05_bearer_token", "bearer", "the same calls with a bearer token"),
    check(
        "p05_oauth_client_credentials",
        "OAuth 2.0",
        "with a token of an identity provider, by the client credentials grant that the card names",
    ),
    check("p05_http_basic", "basic", "with a user's password"),
    check("p05_http_digest", "digest", "with a user's password that is never sent"),
    check("p05_client_certificate", "certificate", "with a client certificate"),
    check(
        "p05_certificates_of_strangers_are_refused",
        "strangers",
        "the client refuses a server of an unknown authority, and the server such a client",
    ),
    check("p05_extended_card", "extended card", "reads the card for callers that are known"),
    check(
        "s16_refuses_without_credential",
        "none",
        "without a credential the client reports 401, over gRPC UNAUTHENTICATED",
    ),
    check("s16_refuses_wrong_credentials", "wrong", "with a wrong one, too"),
    check(
        "s16_refuses_a_missing_scope",
        "scope",
        "a token without the scope gives 403, over gRPC PERMISSION_DENIED",
    ),
    check(
        "s16_foreign_tasks_are_not_found",
        "foreign",
        "another owner's task gives the client's own error for an unknown one, and is not listed",
    ),
];

/// Our client with agents of other people.
pub const CLIENT_CHECKS: &[Check] = &[
    check("p09_sends", "send", "a send returns the completed task, and a get the same"),
    check("p09_gets_message_reply", "message", "a message as reply instead of a task"),
    check("p09_streams", "stream", "every event, one artifact in chunks, and the end, on one connection"),
    check("p09_answers_a_question", "talk", "answers a question; the same task completes"),
    check(
        "p09_subscribes_and_cancels",
        "cancel",
        "joins the stream of a running task, cancels it, and sees that",
    ),
    check("p09_maps_unknown_task_error", "not found", "an unknown task is that error, not just any"),
    check("p09_lists_with_pages", "list", "lists all tasks page by page"),
    check("p09_makes_a_webhook", "webhook", "makes a webhook and reads it again"),
    check("p09_lists_webhooks", "webhooks", "lists the webhooks of a task"),
    check("p09_removes_a_webhook", "webhook gone", "removes a webhook; it is gone"),
    check(
        "p09_receives_calls_of_a_webhook",
        "called",
        "our receiver takes the calls of a webhook that came with a message, with its token, up to the task's end",
    ),
    check("p09_reads_the_extended_card", "extended card", "reads the card for authenticated callers"),
];

/// The same, through a gate that wants a credential, over TLS.
pub const GATE_CHECKS: &[Check] = &[
    check(
        "p09_refused_without_credential",
        "none",
        "without a credential the client tells that it was refused, and that none was sent",
    ),
    check("p09_refused_with_a_wrong_credential", "wrong", "with a wrong one, that it was refused"),
    check(
        "p09_distrusts_an_unknown_authority",
        "stranger",
        "a server of an unknown authority is not even asked for its card",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict<'a> {
    Passed,
    Failed(&'a str),
    Skipped(&'a str),
}

/// `(check, verdict)` of every line with a verdict; other output of clients is ignored.
pub fn verdicts(output: &str) -> Vec<(&str, Verdict<'_>)> {
    output.lines().filter_map(verdict).collect()
}

fn verdict(line: &str) -> Option<(&str, Verdict<'_>)> {
    let (word, rest) = line.split_once(' ')?;
    let (name, reason) = rest.split_once(": ").unwrap_or((rest, ""));
    let verdict = match word {
        "ok" => Verdict::Passed,
        "FAIL" => Verdict::Failed(reason),
        "skip" => Verdict::Skipped(reason),
        _ => return None,
    };
    CHECKS
        .iter()
        .chain(WEBHOOK_CHECKS)
        .chain(AUTH_CHECKS)
        .chain(CLIENT_CHECKS)
        .chain(GATE_CHECKS)
        .chain(MESSAGE_CHECKS)
        .chain(SIGNING_CHECKS)
        .any(|check| check.name == name)
        // Those of our own commands are listed where they are made, in `crates/baton/tests/it/cli/live`.
        .then_some((name, verdict))
        .or_else(|| name.starts_with("p09_cli_").then_some((name, verdict)))
}

/// What of these checks, all of which a client runs and passes, did not pass or run.
pub fn unexpected(client: &Client, checks: &[Check], output: &str) -> Vec<String> {
    let found = verdicts(output);
    let names = checks.iter().map(|check| check.name);
    names
        .filter_map(|name| match found.iter().find(|(check, _)| *check == name) {
            Some((_, Verdict::Passed)) => None,
            Some((_, Verdict::Failed(why) | Verdict::Skipped(why))) => {
                Some(format!("{}: {name}: {why}", client.name))
            }
            None => Some(format!("{}: {name} did not run", client.name)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_about_checks_count() {
        let output = "ok p02_sends\nloading: ok\nFAIL p02_cancels: no: nothing\nskip p02_subscribes: cannot\n\
                      ok p99_unknown\n2 passed, 1 failed\n";
        let expected = [
            ("p02_sends", Verdict::Passed),
            ("p02_cancels", Verdict::Failed("no: nothing")),
            ("p02_subscribes", Verdict::Skipped("cannot")),
        ];
        assert_eq!(verdicts(output), expected);
    }
}
