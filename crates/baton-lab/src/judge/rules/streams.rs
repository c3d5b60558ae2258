//! Streams: how they are requested and read, and what happens when they break.

use super::{Finding, INTEROP, NEEDS_COMMAND, Rule, Trial, came_out, each, ends_badly, ends_well};
use crate::acts::document::Level;
use crate::case::{Category, Failure};
use crate::judge::heard::Heard;
use crate::wire::request::Operation;

const STREAM: Rule = Rule { category: Category::Streaming, ..INTEROP };
/// Rules on how a stream is read: they need the client's output.
const READ: Rule = Rule { needs_command: true, check: ends_well, ..STREAM };

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "STREAM-001",
        name: "Reads a stream to its end",
        requirement: "A client reads the task, its updates and its end from a stream.",
        remedy: "Read events until the stream ends; each `data` is one reply.",
        sections: ["3.1.2", "7.2", "7.2"],
        scripts: &["stream"],
        ..READ
    },
    Rule {
        id: "STREAM-002",
        name: "Comments are no events",
        requirement: "Lines that begin with a colon are comments, and an empty line without data before it ends no event.",
        remedy: "Skip comments; agents and proxies send them to keep a connection alive.",
        sections: ["9.1, 11.1", "3.3", "3.3"],
        scripts: &["sse-comments"],
        ..READ
    },
    Rule {
        id: "STREAM-003",
        name: "Lines end in any of three ways",
        requirement: "Lines of an event stream may end in CR LF.",
        remedy: "Use a reader that keeps to the HTML standard on server-sent events.",
        sections: ["9.1, 11.1", "3.3", "3.3"],
        scripts: &["sse-crlf"],
        ..READ
    },
    Rule {
        id: "STREAM-004",
        name: "Several data lines are one event",
        requirement: "The `data` lines of an event belong together, joined by line feeds.",
        remedy: "Collect `data` lines until the empty line, then parse.",
        sections: ["9.1, 11.1", "3.3", "3.3"],
        scripts: &["sse-multi-line"],
        ..READ
    },
    Rule {
        id: "STREAM-005",
        name: "Other fields do no harm",
        requirement: "Events may have `id`, `event` and `retry`, and unknown fields are ignored; the space after the colon is optional.",
        remedy: "Look at `data` (and at `event: error`) only, with or without the space.",
        sections: ["9.1, 11.1", "3.3", "3.3"],
        scripts: &["sse-fields"],
        ..READ
    },
    Rule {
        id: "STREAM-006",
        name: "Bytes come in any pieces",
        requirement: "A piece of the body may end anywhere, in the middle of a UTF-8 character, too.",
        remedy: "Join bytes before you decode them, or decode incrementally.",
        sections: ["9.1, 11.1", "3.3", "3.3"],
        scripts: &["sse-split"],
        ..READ
    },
    Rule {
        id: "STREAM-007",
        name: "Reads a large event",
        level: Level::May,
        requirement: "An event of 1 MiB is read like any other.",
        remedy: "Raise the limit on the length of lines, or say in the error message that there is one.",
        sections: ["9.1, 11.1", "3.3", "3.3"],
        scripts: &["sse-large"],
        ..READ
    },
    Rule {
        id: "STREAM-008",
        name: "Chunks are put together in order",
        level: Level::Should,
        requirement: "Chunks of an artifact (`append`) are added to it in the order they come.",
        remedy: "Keep artifacts by `artifactId` (0.1: `index`); add the parts of a chunk with `append` to those that are there.",
        sections: ["4.2.2", "7.2.3", "7.2.3"],
        scripts: &["chunks"],
        check: in_order,
        ..READ
    },
    Rule {
        id: "STREAM-009",
        name: "A broken stream is not the end of the task",
        requirement: "A client that loses the connection asks for the task again, or says that it does not know its end.",
        remedy: "Subscribe to the task again or read it (GetTask); if you cannot, report an error.",
        sections: ["3.5.2", "7.9", "7.7"],
        scripts: &["stream-cut"],
        needs_command: false,
        check: not_over,
        ..READ
    },
    Rule {
        id: "STREAM-010",
        name: "A stream that ends early is not the end of the task",
        level: Level::Should,
        requirement: "A client whose stream ends before a terminal or interrupted state asks for the task again, or says so.",
        remedy: "Look at the last state before you call it done; subscribe again, read the task, or report an error.",
        sections: ["3.1.2", "7.2", "7.2"],
        scripts: &["stream-early-end"],
        needs_command: false,
        check: not_over,
        ..READ
    },
    Rule {
        id: "STREAM-011",
        name: "An error in a stream is an error",
        requirement: "An error as the last event of a stream is reported.",
        remedy: "Look for `error` in every event (HTTP+JSON: an event `error`), not only in the first answer.",
        sections: ["9.5, 11.6", "7.2", "7.2"],
        scripts: &["stream-error"],
        check: ends_badly,
        ..READ
    },
    Rule {
        id: "STREAM-012",
        name: "A stream may be one message",
        requirement: "A stream may hold a single message, and no task.",
        remedy: "Do not wait for a task when the first event is a message.",
        sections: ["3.1.2", "7.2", ""],
        scripts: &["message-stream"],
        ..READ
    },
    Rule {
        id: "STREAM-013",
        name: "Accepts what it asks for",
        level: Level::Should,
        requirement: "A client that asks for a stream does not exclude `text/event-stream` by its Accept header.",
        remedy: "Send `Accept: text/event-stream`, or no Accept header.",
        sections: ["9.1, 11.1", "3.3", "3.3"],
        needs_command: false,
        check: accepts,
        ..READ
    },
    Rule {
        id: "STREAM-014",
        name: "Lives with unknown states",
        level: Level::May,
        requirement: "A task state that the client does not know does not keep it from the events after it.",
        remedy: "Show an unknown state as such, and read on: later versions may have more of them.",
        sections: ["4.1.3", "6.3", "6.3"],
        scripts: &["unknown-state"],
        ..READ
    },
    Rule {
        id: "CAP-001",
        name: "No stream where there is none",
        level: Level::Should,
        requirement: "A client looks at the card before it uses streaming, which an agent need not have.",
        remedy: "When `capabilities.streaming` is not true, send without a stream.",
        sections: ["3.3.4", "5.5.2", "5.5.2"],
        scripts: &["no-streaming"],
        needs_command: false,
        check: looks_first,
        ..READ
    },
];

fn in_order(trial: &Trial<'_>) -> Finding {
    let ran = match came_out(trial) {
        Ok(ran) if ran.code == Some(0) => ran,
        Ok(_) => return ends_well(trial),
        Err(finding) => return finding,
    };
    let chunks = trial.stage.chunks();
    if !ran.stdout.contains(&trial.stage.marker()) {
        return Finding::not_seen("the command did not print the text that it got");
    }
    let mut rest = ran.stdout.as_str();
    for chunk in &chunks {
        match rest.find(chunk.as_str()) {
            Some(at) => rest = &rest[at + chunk.len()..],
            None => {
                let lines = ran.stdout.lines().filter(|line| line.contains(&trial.stage.marker()));
                let actual = format!("{:?}", lines.collect::<Vec<_>>().join(" "));
                return Finding::fail_of_all(Failure::expected(format!("{:?}", chunks.concat()), actual));
            }
        }
    }
    Finding::Pass
}

fn not_over(trial: &Trial<'_>) -> Finding {
    let Some((at, _)) =
        trial.sends().find(|(_, heard)| heard.operation() == Some(Operation::SendStreamingMessage))
    else {
        return Finding::not_seen("no stream was asked for");
    };
    let again = |heard: &Heard| {
        matches!(
            heard.operation(),
            Some(Operation::GetTask | Operation::SubscribeToTask | Operation::SendStreamingMessage)
        )
    };
    if trial.calls().any(|(place, heard)| place > at && again(heard)) {
        return Finding::Pass;
    }
    if trial.ran().is_none() {
        return Finding::NotSeen(NEEDS_COMMAND.to_owned());
    }
    match came_out(trial) {
        Ok(ran) if ran.code == Some(0) => {
            let expected = "another look at the task, or an error";
            Finding::fail(Failure::expected(expected, "exit status 0 as if the task were done"), at)
        }
        Ok(_) => Finding::Pass,
        Err(finding) => finding,
    }
}

fn accepts(trial: &Trial<'_>) -> Finding {
    let streams = trial.calls().filter(|(_, heard)| heard.operation().is_some_and(Operation::streams));
    each(streams, "no stream was asked for", |heard| {
        let accepted = heard.listed("accept");
        let fits = |value: &&str| {
            let media = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            ["text/event-stream", "text/*", "*/*", "*"].contains(&media.as_str())
        };
        if accepted.is_empty() || accepted.iter().any(fits) {
            return Ok(());
        }
        Err(Failure::expected("Accept: text/event-stream", accepted.join(", ")))
    })
}

fn looks_first(trial: &Trial<'_>) -> Finding {
    if !trial.has_card() {
        return Finding::not_seen("the client did not fetch this card");
    }
    each(trial.sends(), "no message", |heard| match heard.operation() {
        Some(Operation::SendStreamingMessage) => Err(Failure::expected(
            "a message without a stream",
            format!("{}, though the card says no", heard.line()),
        )),
        _ => Ok(()),
    })
}
