//! GetTask and histories.

use baton_lab::wire::request::Operation;

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "task-in-a-task",
        wrong: "GetTask answers with a member `task` beside the task's own.",
        faults: &[Fault::Edit(What::Reply, V1.of(&[Operation::GetTask]), &[Edit::Set("task", "{}")])],
        caught_by: &["V1-GET-001"],
        ..USUAL
    },
    Defect {
        name: "unknown-task-is-invalid-params",
        wrong: "GetTask of an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V1.of(&[Operation::GetTask]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V1-GET-002"],
        related: &[
            "V1-CARD-004",
            "V1-EQUIV-003",
            "V1-ERR-001",
            "V1-ERR-007",
            "V1-ERR-008",
            "V1-VER-003",
            "V1-VER-005",
        ],
        ..USUAL
    },
    Defect {
        name: "no-id-is-not-found",
        wrong: "GetTask without an id is refused with TaskNotFoundError.",
        faults: &[Fault::Rule(Rule::NoId, V1.of(&[Operation::GetTask]), Instead::Allow)],
        caught_by: &["V1-GET-003"],
        ..USUAL
    },
    Defect {
        name: "roles-of-0.3",
        wrong: "Messages in a history have the role `user`.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetTask]),
            &[Edit::Set("history.*.role", r#""user""#)],
        )],
        caught_by: &["V1-GET-004"],
        related: &["V03-GEN-003"],
        ..USUAL
    },
    Defect {
        name: "zero-is-all",
        wrong: "`historyLength` 0 gives the whole history.",
        faults: &[Fault::Quirk(Quirk::ZeroIsAll, V1.of(&[Operation::GetTask, Operation::SendMessage]))],
        caught_by: &["V1-HIST-001"],
        related: &["V1-HIST-002", "V1-HIST-003"],
        ..USUAL
    },
    Defect {
        name: "history-empty",
        wrong: "`historyLength` 0 gives an empty list.",
        faults: &[Fault::Quirk(Quirk::EmptyHistory, V1.of(&[Operation::GetTask]))],
        caught_by: &["V1-HIST-002"],
        ..USUAL
    },
    Defect {
        name: "history-oldest",
        wrong: "`historyLength` keeps the oldest messages.",
        faults: &[Fault::Quirk(Quirk::OldestHistory, V1.of(&[Operation::GetTask]))],
        caught_by: &["V1-HIST-003"],
        ..USUAL
    },
    Defect {
        name: "negative-history-taken",
        wrong: "A negative `historyLength` is taken.",
        faults: &[Fault::Rule(Rule::NegativeHistory, V1.of(&[Operation::GetTask]), Instead::Allow)],
        caught_by: &["V1-HIST-004"],
        ..USUAL
    },
    Defect {
        name: "history-backwards",
        wrong: "A history has the latest message first.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetTask]),
            &[Edit::Map("history", |list| list.as_array_mut().into_iter().for_each(|list| list.reverse()))],
        )],
        caught_by: &["V1-HIST-005"],
        related: &["V1-HIST-003"],
        ..USUAL
    },
    Defect {
        name: "history-whole-in-lists",
        wrong: "Lists show whole histories.",
        faults: &[Fault::Quirk(Quirk::WholeHistory, V1.of(&[Operation::ListTasks]))],
        caught_by: &["V1-HIST-006"],
        ..USUAL
    },
    Defect {
        name: "history-of-one",
        wrong: "A history holds the last message alone.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetTask]).saying("tck-multi-turn"),
            &[Edit::Map("history", |list| {
                list.as_array_mut().into_iter().for_each(|list| drop(list.drain(..list.len() - 1)))
            })],
        )],
        caught_by: &["V1-HIST-007"],
        ..USUAL
    },
];
