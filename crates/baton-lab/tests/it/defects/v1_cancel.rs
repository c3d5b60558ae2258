//! CancelTask.

use baton_lab::wire::request::Operation;

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "cancel-tells-old-state",
        wrong: "CancelTask answers with the state before.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::CancelTask]),
            &[Edit::Set("status.state", r#""TASK_STATE_WORKING""#)],
        )],
        caught_by: &["V1-CANCEL-001"],
        related: &["V1-CANCEL-004", "V1-CANCEL-006", "V1-CANCEL-007", "V1-REST-007"],
        ..USUAL
    },
    Defect {
        name: "cancel-ended-is-unsupported",
        wrong: "CancelTask of an ended task is refused with UnsupportedOperationError.",
        faults: &[Fault::Rule(Rule::CancelEnded, V1, Instead::Refuse(Kind::Unsupported))],
        caught_by: &["V1-CANCEL-002"],
        related: &["V1-ERR-002", "V1-ERR-007", "V1-ERR-008"],
        ..USUAL
    },
    Defect {
        name: "cancel-unknown-is-not-cancelable",
        wrong: "CancelTask of an unknown task is refused with TaskNotCancelableError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V1.of(&[Operation::CancelTask]),
            Instead::Refuse(Kind::TaskNotCancelable),
        )],
        caught_by: &["V1-CANCEL-003"],
        ..USUAL
    },
    Defect {
        name: "second-cancel-is-an-accident",
        wrong: "A second CancelTask is an internal error.",
        faults: &[Fault::Rule(Rule::CancelCanceled, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-CANCEL-004"],
        ..USUAL
    },
    Defect {
        name: "cancel-answers-for-another",
        wrong: "CancelTask answers with another task.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::CancelTask]),
            &[Edit::Set("id", r#""another""#)],
        )],
        caught_by: &["V1-CANCEL-005"],
        related: &["V1-CANCEL-001", "V1-LIFE-010", "V1-REST-007"],
        ..USUAL
    },
    Defect {
        name: "question-not-cancelable",
        wrong: "A task that waits for input cannot be canceled.",
        faults: &[Fault::Rule(Rule::CancelInterrupted, V1, Instead::Refuse(Kind::TaskNotCancelable))],
        caught_by: &["V1-CANCEL-006"],
        ..USUAL
    },
    Defect {
        name: "cancel-metadata-refused",
        wrong: "CancelTask refuses metadata.",
        faults: &[Fault::Rule(Rule::CancelMetadata, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-CANCEL-007"],
        ..USUAL
    },
];
