//! How a client handles replies: it must accept correct ones and report wrong ones.

use super::{Finding, INTEROP, NEEDS_COMMAND, Rule, Trial, came_out, ends_badly, ends_well};
use crate::acts::document::Level;
use crate::case::{Category, Failure};
use crate::generation::Binding;

const TAKES: Rule = Rule { category: Category::Lifecycle, needs_command: true, check: ends_well, ..INTEROP };
const REPORTS: Rule =
    Rule { category: Category::ErrorHandling, needs_command: true, check: ends_badly, ..INTEROP };

const ERRORS: &[&str] = &[
    "error-task-not-found",
    "error-task-not-cancelable",
    "error-push-not-supported",
    "error-unsupported-operation",
    "error-content-type",
    "error-invalid-agent-response",
    "error-extended-card",
    "error-extension-required",
    "error-version",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "READ-001",
        name: "Accepts a completed task",
        requirement: "A client accepts the completed task in the reply of a correct agent.",
        remedy: "See the command's output; this agent does nothing unusual.",
        sections: ["3.1.1", "7.1", "7.1"],
        scripts: &["send"],
        ..TAKES
    },
    Rule {
        id: "READ-002",
        name: "Accepts a message as reply",
        requirement: "The reply to a message may be a message, without a task.",
        remedy: "Check whether the reply has `task` or `message` (0.3: check `kind`).",
        sections: ["3.1.1", "7.1", ""],
        scripts: &["message"],
        ..TAKES
    },
    Rule {
        id: "READ-003",
        name: "Ignores unknown members",
        level: Level::Should,
        requirement: "Members that a client does not know are ignored, in the card and in replies.",
        remedy: "Parse leniently: later minor versions and other agents have more members.",
        sections: ["5.7", "", ""],
        scripts: &["unknown-members"],
        ..TAKES
    },
    Rule {
        id: "READ-004",
        name: "Works without optional members",
        requirement: "Members that are not required may be left out of a reply: context, timestamp, history, names.",
        remedy: "Give optional members defaults instead of requiring them.",
        sections: ["5.7", "6.1", "6.1"],
        scripts: &["sparse"],
        ..TAKES
    },
    Rule {
        id: "READ-005",
        name: "Reads parts of every kind",
        requirement: "Parts may hold text, bytes, a link or any JSON value.",
        remedy: "Accept every kind of part; show or skip those that you cannot use.",
        sections: ["4.1.6", "6.5", "6.5"],
        scripts: &["all-parts"],
        ..TAKES
    },
    Rule {
        id: "READ-006",
        name: "Accepts a task without artifacts",
        requirement: "A completed task may have no artifacts.",
        remedy: "Do not take the first artifact for granted.",
        sections: ["4.1.1", "6.1", "6.1"],
        scripts: &["no-artifacts"],
        ..TAKES
    },
    Rule {
        id: "ERR-001",
        name: "Reports the protocol's errors",
        requirement: "A message that the agent refuses is reported as failed, whatever the error.",
        remedy: "Look for `error` in the reply (HTTP+JSON: at the status), and pass it on.",
        sections: ["3.3.2", "8", "8"],
        scripts: ERRORS,
        ..REPORTS
    },
    Rule {
        id: "ERR-002",
        name: "Says which error it was",
        level: Level::Should,
        requirement: "A client distinguishes the protocol's errors, by their code.",
        remedy: "Keep code and message of an error, and show them.",
        sections: ["5.4", "8.2", "8.2"],
        bindings: &[Binding::Jsonrpc],
        scripts: ERRORS,
        check: tells,
        ..REPORTS
    },
    // 0.3 does not say how errors are distinguished over HTTP+JSON.
    Rule {
        id: "ERR-004",
        name: "Says which error it was, by its reason",
        level: Level::Should,
        requirement: "A client distinguishes the protocol's errors, by the `reason` in their details: several have the same HTTP status.",
        remedy: "Keep the reason and the message of an error, and show them.",
        sections: ["5.4", "", ""],
        bindings: &[Binding::Rest],
        scripts: ERRORS,
        check: tells,
        ..REPORTS
    },
    Rule {
        id: "ERR-003",
        name: "A refused message is not sent again and again",
        level: Level::Should,
        requirement: "A message that was refused for good is not sent again without end.",
        remedy: "Retry only what may pass (429, 503, a lost connection), a few times, with growing pauses.",
        sections: ["3.3.2", "8", "8"],
        scripts: ERRORS,
        needs_command: false,
        check: gives_up,
        ..REPORTS
    },
    Rule {
        id: "BAD-001",
        name: "A web page is not a reply",
        requirement: "HTML instead of JSON is reported as an error.",
        remedy: "Check that the reply is JSON before you use it, and report what it was instead.",
        sections: ["3.3.2", "8", "8"],
        scripts: &["html"],
        ..REPORTS
    },
    Rule {
        id: "BAD-002",
        name: "A proxy's error is an error",
        requirement: "A 502 with a web page is reported as an error.",
        remedy: "Check the HTTP status if the body is not JSON.",
        sections: ["3.3.2", "8", "8"],
        scripts: &["bad-gateway"],
        ..REPORTS
    },
    Rule {
        id: "BAD-003",
        name: "An empty reply is an error",
        requirement: "A reply without a result is not taken for one.",
        remedy: "Require `result` or `error` (HTTP+JSON: `task` or `message`).",
        sections: ["3.1.1", "6.11.2", "6.11.2"],
        scripts: &["empty-reply"],
        ..REPORTS
    },
    Rule {
        id: "BAD-004",
        name: "A reply to another request is refused",
        level: Level::Should,
        requirement: "A reply whose JSON-RPC id is not that of the request is not accepted as the answer.",
        remedy: "Compare the `id` of the reply with the one you sent.",
        sections: ["9.1", "6.11.2", "6.11.2"],
        bindings: &[Binding::Jsonrpc],
        scripts: &["wrong-id"],
        ..REPORTS
    },
    Rule {
        id: "RUN-001",
        name: "The client ends in time",
        category: Category::Interop,
        requirement: "Whatever the agent does, the client ends within the time limit.",
        remedy: "Put a deadline on every request and every wait; a closed connection ends a stream.",
        sections: ["3.3.2", "8", "8"],
        check: ends,
        ..REPORTS
    },
];

/// More sends than this are not acceptable as retries.
const MOST_SENDS: usize = 6;

fn tells(trial: &Trial<'_>) -> Finding {
    let Some(refusal) = trial.stage.script.refusal() else { return Finding::not_seen("no such error") };
    let ran = match came_out(trial) {
        Ok(ran) => ran,
        Err(finding) => return finding,
    };
    if trial.sends().next().is_none() || ran.code == Some(0) {
        return Finding::not_seen("the client reported no error");
    }
    let said = format!("{}\n{}", ran.stdout, ran.stderr);
    if said.trim().is_empty() {
        return Finding::not_seen("the command printed nothing");
    }
    if refusal.is_told_in(&said) {
        return Finding::Pass;
    }
    let expected = format!("{} ({})", refusal.name, refusal.code);
    Finding::fail_of_all(Failure::expected(expected, ran.in_words()))
}

fn gives_up(trial: &Trial<'_>) -> Finding {
    let sends: Vec<usize> = trial.sends().map(|(at, _)| at).collect();
    match sends.get(MOST_SENDS - 1) {
        Some(at) => Finding::fail(
            Failure::expected(format!("fewer than {MOST_SENDS} tries"), format!("{} messages", sends.len())),
            *at,
        ),
        None if sends.is_empty() => Finding::not_seen("no message"),
        None => Finding::Pass,
    }
}

fn ends(trial: &Trial<'_>) -> Finding {
    match trial.ran() {
        None => Finding::NotSeen(NEEDS_COMMAND.to_owned()),
        Some(_) if trial.heard().is_empty() => Finding::not_seen("the client did not call this script"),
        Some(ran) if ran.hung => {
            Finding::fail_of_all(Failure::expected("that the command ends", ran.in_words()))
        }
        Some(_) => Finding::Pass,
    }
}
