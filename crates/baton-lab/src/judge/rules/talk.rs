//! Conversations: several messages about one task.

use serde_json::Value;

use super::{Finding, INTEROP, Rule, Trial, each};
use crate::acts::document::Level;
use crate::case::{Category, Failure};
use crate::generation::Generation;
use crate::judge::heard::Heard;
use crate::judge::rules::ends_well;

const TALK: Rule = Rule { category: Category::Lifecycle, scripts: &["talk"], ..INTEROP };

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "TALK-001",
        name: "An answer goes to the task that asked",
        requirement: "The answer to a question of the agent's (input-required) names the task that asked.",
        remedy: "Send the answer with `taskId` (0.1: `id`) of the task; without it the agent begins a new one.",
        sections: ["3.4.3", "7.1", "7.1"],
        check: same_task,
        ..TALK
    },
    Rule {
        id: "TALK-002",
        name: "An answer stays in its context",
        requirement: "A message to a task has the task's own `contextId` (0.1: `sessionId`), or none.",
        remedy: "Send the context of the task; an agent has to refuse another one.",
        sections: ["3.4.3", "7.1", ""],
        check: same_context,
        ..TALK
    },
    Rule {
        id: "TALK-003",
        name: "An answer is a new message",
        requirement: "The answer to a question has a `messageId` of its own.",
        remedy: "Make a new id for every message: an agent may take a known one for the same message, sent again.",
        sections: ["4.1.4", "6.4", ""],
        check: new_id,
        ..TALK
    },
    Rule {
        id: "TALK-004",
        name: "Nothing is sent to a task that is over",
        level: Level::Should,
        requirement: "A task in a terminal state takes no more messages.",
        remedy: "Begin a new task (in the same context) once one is completed, failed, canceled or rejected.",
        sections: ["3.1.1", "7.1", "7.1"],
        scripts: &[],
        check: not_late,
        ..TALK
    },
    Rule {
        id: "TALK-005",
        name: "A conversation comes to its end",
        requirement: "A client gets from the agent's question, by its answer, to the completed task.",
        remedy: "Look at the state of the task in the reply: input-required is not the end.",
        sections: ["3.4.3", "7.1", "7.1"],
        needs_command: true,
        check: ends_well,
        ..TALK
    },
];

/// The messages after the question.
fn answers<'a>(trial: &Trial<'a>) -> impl Iterator<Item = (usize, &'a Heard)> {
    trial.runs().into_iter().flat_map(|run| run.into_iter().skip(1))
}

/// The member that names a task.
fn task_of(generation: Generation, heard: &Heard) -> &Value {
    match generation {
        Generation::V0_1 => &heard.params()["id"],
        _ => &heard.params()["message"]["taskId"],
    }
}

fn same_task(trial: &Trial<'_>) -> Finding {
    let mut seen = false;
    for run in trial.runs() {
        let Some(asked) = run.first().and_then(|(_, first)| trial.stage.task_of_message(first)) else {
            continue;
        };
        for (at, heard) in run.iter().skip(1) {
            seen = true;
            let named = task_of(trial.generation(), heard);
            if named != asked {
                return Finding::fail(
                    Failure::expected(format!("the task {asked:?}"), named.to_string()),
                    *at,
                );
            }
        }
    }
    if seen { Finding::Pass } else { Finding::not_seen("no answer to the question") }
}

fn same_context(trial: &Trial<'_>) -> Finding {
    let task =
        |heard: &Heard| task_of(trial.generation(), heard).as_str().and_then(|id| trial.stage.task(id));
    let to_it = answers(trial).filter(|(_, heard)| task(heard).is_some());
    each(to_it, "no answer to the task that asked", |heard| {
        let context = task(heard).map(|task| task.context.as_str()).unwrap_or_default();
        match heard.params()["message"]["contextId"].as_str().filter(|id| !id.is_empty()) {
            Some(id) if id != context => Err(Failure::expected(format!("{context:?}"), format!("{id:?}"))),
            _ => Ok(()),
        }
    })
}

fn new_id(trial: &Trial<'_>) -> Finding {
    let id = |heard: &Heard| heard.params()["message"]["messageId"].clone();
    for run in trial.runs() {
        let Some((_, first)) = run.first() else { continue };
        if let Some((at, _)) = run.iter().skip(1).find(|(_, heard)| id(heard) == id(first)) {
            return Finding::fail(
                Failure::expected("a new `messageId`", format!("{} again", id(first))),
                *at,
            );
        }
    }
    match answers(trial).next() {
        Some(_) => Finding::Pass,
        None => Finding::not_seen("no answer to the question"),
    }
}

fn not_late(trial: &Trial<'_>) -> Finding {
    each(trial.sends(), "no message", |heard| {
        if heard.late {
            return Err(Failure::expected("a new task", "a message to a task that was over"));
        }
        Ok(())
    })
}
