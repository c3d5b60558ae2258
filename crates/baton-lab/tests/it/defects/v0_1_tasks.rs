//! tasks/send, tasks/get and tasks/cancel of 0.1.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, USUAL, V0_1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.1-metadata-is-a-list",
        wrong: "In 0.1, the metadata of a task is a list.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::SendMessage]).saying(COMPLETE),
            &[Edit::Set("metadata", "[]")],
        )],
        caught_by: &["V01-SEND-001"],
        ..USUAL
    },
    Defect {
        name: "v0.1-completed-is-failed",
        wrong: "In 0.1, a completed task is read as failed.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying(COMPLETE),
            &[Edit::Map("status.state", |state| {
                if *state == "completed" {
                    *state = "failed".into()
                }
            })],
        )],
        caught_by: &["V01-SEND-002"],
        related: &["V01-GET-004", "V01-GET-005"],
        ..USUAL
    },
    Defect {
        name: "v0.1-own-ids",
        wrong: "In 0.1, the agent makes its own ids.",
        faults: &[Fault::Quirk(Quirk::OwnIds, V0_1)],
        caught_by: &["V01-SEND-004"],
        related: &["V01-STREAM-007"],
        ..USUAL
    },
    Defect {
        name: "v0.1-session-replaced",
        wrong: "In 0.1, the client's session is replaced.",
        faults: &[Fault::Quirk(Quirk::NewContext, V0_1)],
        caught_by: &["V01-SEND-005"],
        ..USUAL
    },
    Defect {
        name: "v0.1-nulls-refused",
        wrong: "In 0.1, members that are null are refused.",
        faults: &[Fault::Rule(Rule::Nulls, V0_1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V01-SEND-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-answer-refused",
        wrong: "In 0.1, the answer to a question is refused.",
        faults: &[Fault::Rule(
            Rule::FollowUp,
            V0_1.of(&[Operation::SendMessage]).saying("tck-input-required"),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V01-SEND-007"],
        ..USUAL
    },
    Defect {
        name: "v0.1-text-part-of-0.3",
        wrong: "In 0.1, a text part tells its kind as 0.3 does.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying("tck-artifact-text"),
            &[Edit::Rename("artifacts.*.parts.*.type", "kind")],
        )],
        caught_by: &["V01-SEND-008"],
        ..USUAL
    },
    Defect {
        name: "v0.1-file-part-of-1.0",
        wrong: "In 0.1, a file part has its bytes elsewhere.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying("tck-artifact-file"),
            &[Edit::Rename("artifacts.*.parts.*.file.bytes", "raw")],
        )],
        caught_by: &["V01-SEND-009"],
        ..USUAL
    },
    Defect {
        name: "v0.1-link-part-of-1.0",
        wrong: "In 0.1, a link part has its address elsewhere.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying("tck-artifact-file-url"),
            &[Edit::Rename("artifacts.*.parts.*.file.uri", "url")],
        )],
        caught_by: &["V01-SEND-010"],
        ..USUAL
    },
    Defect {
        name: "v0.1-data-part-as-text",
        wrong: "In 0.1, a data part holds JSON as a text.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying("tck-artifact-data"),
            &[Edit::Map("artifacts.*.parts.*.data", |data| *data = data.to_string().into())],
        )],
        caught_by: &["V01-SEND-011"],
        ..USUAL
    },
    Defect {
        name: "v0.1-failure-without-reason",
        wrong: "In 0.1, a task that fails does not say why.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying("tck-task-failure"),
            &[Edit::Remove("status.message")],
        )],
        caught_by: &["V01-SEND-013"],
        ..USUAL
    },
    Defect {
        name: "v0.1-state-of-0.3",
        wrong: "In 0.1, a task is in a state of 0.3.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying("tck-reject-task"),
            &[Edit::Set("status.state", r#""rejected""#)],
        )],
        caught_by: &["V01-SEND-014"],
        ..USUAL
    },
    Defect {
        name: "v0.1-ended-task-goes-on",
        wrong: "In 0.1, a message to an ended task is taken.",
        faults: &[Fault::Rule(Rule::SendToEnded, V0_1.of(&[Operation::SendMessage]), Instead::Allow)],
        caught_by: &["V01-SEND-015"],
        ..USUAL
    },
    Defect {
        name: "v0.1-ended-task-touched",
        wrong: "In 0.1, a refused message changes the time of an ended task.",
        faults: &[Fault::Quirk(Quirk::TouchedByRefusal, V0_1)],
        caught_by: &["V01-SEND-016"],
        ..USUAL
    },
    Defect {
        name: "v0.1-read-metadata-is-a-list",
        wrong: "In 0.1, the metadata of a task is read as a list.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying(COMPLETE),
            &[Edit::Set("metadata", "[]")],
        )],
        caught_by: &["V01-GET-001"],
        ..USUAL
    },
    Defect {
        name: "v0.1-unknown-task-read",
        wrong: "In 0.1, a task that never was can be read.",
        faults: &[Fault::Rule(Rule::UnknownTask, V0_1.of(&[Operation::GetTask]), Instead::Allow)],
        caught_by: &["V01-GET-002"],
        related: &["V01-CARD-008", "V01-GET-006", "V01-RPC-*"],
        ..USUAL
    },
    Defect {
        name: "v0.1-ended-task-flickers",
        wrong: "In 0.1, an ended task is sometimes shown at work.",
        faults: &[Fault::Quirk(Quirk::Flickers, V0_1.saying("tck-stream-basic"))],
        caught_by: &["V01-GET-003"],
        ..USUAL
    },
    Defect {
        name: "v0.1-history-of-one",
        wrong: "In 0.1, a history holds the last state alone.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).saying(COMPLETE),
            &[Edit::Map("history", |list| {
                list.as_array_mut()
                    .into_iter()
                    .for_each(|list| drop(list.drain(..list.len().saturating_sub(1))))
            })],
        )],
        caught_by: &["V01-GET-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-history-whole",
        wrong: "In 0.1, `historyLength` is not read.",
        faults: &[Fault::Quirk(Quirk::WholeHistory, V0_1)],
        caught_by: &["V01-GET-005"],
        ..USUAL
    },
    Defect {
        name: "v0.1-cancel-unknown-is-invalid-params",
        wrong: "In 0.1, tasks/cancel of an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_1.of(&[Operation::CancelTask]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V01-GET-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-cancel-answers-for-another",
        wrong: "In 0.1, tasks/cancel answers with another task.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::CancelTask]),
            &[Edit::Set("id", r#""another""#)],
        )],
        caught_by: &["V01-CANCEL-001"],
        ..USUAL
    },
    Defect {
        name: "v0.1-unknown-task-canceled",
        wrong: "In 0.1, a task that never was can be canceled.",
        faults: &[Fault::Rule(Rule::UnknownTask, V0_1.of(&[Operation::CancelTask]), Instead::Allow)],
        caught_by: &["V01-CANCEL-002"],
        related: &["V01-GET-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-completed-task-canceled",
        wrong: "In 0.1, tasks/cancel of an ended task is answered with the task.",
        faults: &[Fault::Rule(Rule::CancelEnded, V0_1, Instead::Allow)],
        caught_by: &["V01-CANCEL-003"],
        related: &["V01-CANCEL-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-cancel-ended-is-invalid-params",
        wrong: "In 0.1, tasks/cancel of an ended task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(Rule::CancelEnded, V0_1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V01-CANCEL-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-second-cancel-is-an-accident",
        wrong: "In 0.1, a second tasks/cancel is an internal error.",
        faults: &[Fault::Rule(Rule::CancelCanceled, V0_1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V01-CANCEL-005"],
        ..USUAL
    },
];
