//! From the first state to the last.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "example-fails",
        wrong: "A skill fails with its own example.",
        faults: &[Fault::Behaves("say hello", "tck-task-failure")],
        caught_by: &["V1-LIFE-001", "V03-SEND-003", "V01-SEND-003"],
        ..USUAL
    },
    Defect {
        name: "ended-task-flickers",
        wrong: "An ended task is sometimes shown at work.",
        faults: &[Fault::Quirk(Quirk::Flickers, V1.saying("tck-stream-basic"))],
        caught_by: &["V1-LIFE-002"],
        ..USUAL
    },
    Defect {
        name: "never-working",
        wrong: "A task at work is shown as SUBMITTED.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetTask]).saying("tck-cancel"),
            &[Edit::Map("status.state", |state| {
                if *state == "TASK_STATE_WORKING" {
                    *state = "TASK_STATE_SUBMITTED".into()
                }
            })],
        )],
        caught_by: &["V1-LIFE-003"],
        ..USUAL
    },
    Defect {
        name: "answer-refused",
        wrong: "The answer to a question is refused.",
        faults: &[Fault::Rule(
            Rule::FollowUp,
            V1.saying("tck-input-required"),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V1-LIFE-004"],
        related: &["V1-STREAM-019", "V1-SUB-006"],
        ..USUAL
    },
    Defect {
        name: "one-question",
        wrong: "A task asks only once.",
        faults: &[Fault::Behaves("tck-multi-turn", "tck-input-required")],
        caught_by: &["V1-LIFE-005", "V03-SEND-011"],
        related: &["V1-EQUIV-004", "V1-HIST-*", "V03-EQ-003", "V03-GET-002"],
        ..USUAL
    },
    Defect {
        name: "failure-is-completed",
        wrong: "A task that fails is COMPLETED.",
        faults: &[Fault::Behaves("tck-task-failure", COMPLETE)],
        caught_by: &["V1-LIFE-006", "V03-SEND-013", "V01-SEND-012"],
        related: &["V1-LIFE-007", "V01-SEND-013"],
        ..USUAL
    },
    Defect {
        name: "failure-without-reason",
        wrong: "A task that fails does not say why.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying("tck-task-failure"),
            &[Edit::Remove("task.status.message")],
        )],
        caught_by: &["V1-LIFE-007"],
        ..USUAL
    },
    Defect {
        name: "rejection-is-completed",
        wrong: "A task that is rejected is COMPLETED.",
        faults: &[Fault::Behaves("tck-reject-task", COMPLETE)],
        caught_by: &["V1-LIFE-008", "V03-SEND-014"],
        ..USUAL
    },
    Defect {
        name: "refused-message-kept",
        wrong: "A refused message is kept in the history of the ended task.",
        faults: &[Fault::Quirk(Quirk::RefusedButKept, V1)],
        caught_by: &["V1-LIFE-009"],
        ..USUAL
    },
    Defect {
        name: "canceled-task-is-invalid-params",
        wrong: "A message to a canceled task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::SendToEnded,
            V1.saying("tck-cancel"),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V1-LIFE-010"],
        ..USUAL
    },
    Defect {
        name: "failed-task-is-invalid-params",
        wrong: "A message to a failed task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::SendToEnded,
            V1.saying("tck-task-failure"),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V1-LIFE-011"],
        ..USUAL
    },
    Defect {
        name: "answers-kept-twice",
        wrong: "Answers are kept twice.",
        faults: &[Fault::Quirk(Quirk::KeptTwice, V1)],
        caught_by: &["V1-LIFE-012"],
        ..USUAL
    },
    Defect {
        name: "impatient-client-cancels",
        wrong: "A client that does not wait cancels its task.",
        faults: &[Fault::Quirk(
            Quirk::CancelOnDisconnect,
            V1.of(&[Operation::SendMessage]).saying("tck-stream-basic"),
        )],
        caught_by: &["V1-LIFE-013"],
        ..USUAL
    },
];
