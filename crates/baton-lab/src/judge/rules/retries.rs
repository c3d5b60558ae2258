//! What a client does when the agent is busy, redirects, or does not answer.

use std::time::Duration;

use serde_json::Value;

use super::{Finding, INTEROP, NEEDS_COMMAND, Rule, Trial, came_out};
use crate::acts::document::Level;
use crate::case::{Category, Failure};
use crate::generation::Generation;
use crate::judge::card::{INTERFACE, MOVED};
use crate::judge::heard::{Heard, Place};

const RETRY: Rule =
    Rule { category: Category::ErrorHandling, scripts: &["busy-429", "busy-503", "dropped"], ..INTEROP };

/// The agent says one second; clocks and schedulers may differ slightly.
const PATIENCE: Duration = Duration::from_millis(900);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "RETRY-001",
        name: "The same message keeps its id",
        level: Level::Should,
        requirement: "A message that is sent again has the same `messageId` (0.1: the same task id), so that an agent can see that it is the same.",
        remedy: "Make the id once per message, not once per try.",
        sections: ["3.3.1", "6.4", "7.1"],
        check: same_id,
        ..RETRY
    },
    Rule {
        id: "RETRY-002",
        name: "Waits as long as it is told",
        level: Level::Should,
        requirement: "After `Retry-After: 1` a client waits at least a second before it tries again (RFC 9110, 10.2.3).",
        remedy: "Read the Retry-After header of 429 and 503.",
        sections: ["3.3.2", "8", "8"],
        scripts: &["busy-429", "busy-503"],
        check: waits,
        ..RETRY
    },
    Rule {
        id: "RETRY-003",
        name: "No answer is no success",
        requirement: "A client that was put off or cut off, and does not try again, reports an error.",
        remedy: "Treat every status that is not 2xx, and a connection that closes without an answer, as an error.",
        sections: ["3.3.2", "8", "8"],
        needs_command: true,
        check: reports,
        ..RETRY
    },
    Rule {
        id: "REDIR-001",
        name: "A redirected call stays what it is",
        requirement: "A client that follows a 307 sends the same method with the same body (RFC 9110, 15.4.8).",
        remedy: "Follow 307 and 308 with the request as it was, or report that the agent has moved.",
        sections: ["5", "3.1", "3.1"],
        scripts: &["redirect"],
        check: same_request,
        ..RETRY
    },
];

/// The message's id, and its content without the id, by which a retry of the same message is recognised.
fn id_and_rest(generation: Generation, heard: &Heard) -> (Value, Value) {
    let mut params = heard.params().clone();
    let place = if generation == Generation::V0_1 { "/id" } else { "/message/messageId" };
    // The client may send any JSON.
    let mut taken = |place: &str| params.pointer_mut(place).map(Value::take).unwrap_or_default();
    (taken(place), taken("/message"))
}

fn same_id(trial: &Trial<'_>) -> Finding {
    let generation = trial.generation();
    let mut seen = false;
    for run in trial.runs() {
        let Some((_, first)) = run.first() else { continue };
        let (before, message) = id_and_rest(generation, first);
        for (at, heard) in run.iter().skip(1) {
            let (now, said) = id_and_rest(generation, heard);
            // Another message is not a retry.
            if said != message {
                continue;
            }
            seen = true;
            if now != before {
                let expected = format!("the id {before} again");
                return Finding::fail(Failure::expected(expected, now.to_string()), *at);
            }
        }
    }
    if seen { Finding::Pass } else { Finding::not_seen("no second try") }
}

fn waits(trial: &Trial<'_>) -> Finding {
    let sends: Vec<(usize, &Heard)> =
        trial.runs().into_iter().next().unwrap_or_default().into_iter().take(2).collect();
    let [(_, first), (at, second)] = sends[..] else { return Finding::not_seen("no second try") };
    let waited = second.at.duration_since(first.at);
    if waited >= PATIENCE {
        return Finding::Pass;
    }
    Finding::fail(
        Failure::expected("a second try after 1 s", format!("one after {} ms", waited.as_millis())),
        at,
    )
}

fn reports(trial: &Trial<'_>) -> Finding {
    if trial.ran().is_none() {
        return Finding::NotSeen(NEEDS_COMMAND.to_owned());
    }
    match trial.sends().count() {
        0 => return Finding::not_seen("no message"),
        1 => {}
        _ => return Finding::not_seen("the client tried again"),
    }
    match came_out(trial) {
        Ok(ran) if ran.code == Some(0) => {
            Finding::fail_of_all(Failure::expected("an error, or a second try", ran.in_words()))
        }
        Ok(_) => Finding::Pass,
        Err(finding) => finding,
    }
}

fn same_request(trial: &Trial<'_>) -> Finding {
    let call_to = |wanted: &'static str| move |(_, heard): &(usize, &Heard)| matches!(&heard.place, Place::Door { name, .. } if name == wanted);
    let Some((_, before)) = trial.calls().find(call_to(INTERFACE)) else {
        return Finding::not_seen("no call");
    };
    let Some((at, after)) = trial.calls().find(call_to(MOVED)) else {
        return Finding::not_seen("the client did not follow the redirect");
    };
    if after.method == before.method && after.body == before.body {
        return Finding::Pass;
    }
    let body = if after.body == before.body { "the same body" } else { "another body" };
    let actual = format!("{} with {body}", after.method);
    Finding::fail(Failure::expected(format!("{} with the same body", before.method), actual), at)
}
