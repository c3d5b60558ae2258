//! SubscribeToTask, and several streams of one task.

use baton_lab::wire::request::Operation;

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Cut, Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "subscription-tells-no-current-state",
        wrong: "A subscription begins with the task in a state it is not in.",
        faults: &[Fault::Edit(
            What::Event,
            V1.of(&[Operation::SubscribeToTask]).saying("tck-cancel"),
            &[Edit::Set("task.status.state", r#""TASK_STATE_COMPLETED""#)],
        )],
        caught_by: &["V1-SUB-001"],
        related: &["V1-SUB-005"],
        ..USUAL
    },
    Defect {
        name: "subscription-stays-open",
        wrong: "A subscription is not closed when the task has ended.",
        faults: &[Fault::Events(V1.of(&[Operation::SubscribeToTask]).saying("tck-cancel"), Cut::Open)],
        caught_by: &["V1-SUB-002"],
        related: &["V1-MULTI-003", "V1-SUB-005"],
        ..USUAL
    },
    Defect {
        name: "subscribe-ended-is-invalid-params",
        wrong: "A subscription to an ended task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(Rule::SubscribeEnded, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-SUB-003"],
        related: &["V1-EQUIV-003"],
        ..USUAL
    },
    Defect {
        name: "subscribe-unknown-is-unsupported",
        wrong: "A subscription to an unknown task is refused with UnsupportedOperationError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V1.of(&[Operation::SubscribeToTask]),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V1-SUB-004"],
        ..USUAL
    },
    Defect {
        name: "one-subscription",
        wrong: "A task can be subscribed to once.",
        faults: &[Fault::Quirk(Quirk::OneSubscription, V1)],
        caught_by: &["V1-SUB-005"],
        related: &["V1-EQUIV-005", "V1-MULTI-001", "V1-MULTI-003"],
        ..USUAL
    },
    Defect {
        name: "question-not-subscribable",
        wrong: "A task that waits for input cannot be subscribed to.",
        faults: &[Fault::Rule(Rule::SubscribeInterrupted, V1, Instead::Refuse(Kind::Unsupported))],
        caught_by: &["V1-SUB-006"],
        ..USUAL
    },
    Defect {
        name: "second-stream-loses",
        wrong: "Every stream of a task but the first loses artifacts.",
        faults: &[Fault::Events(V1.of(&[Operation::SubscribeToTask]), Cut::SecondLoses)],
        caught_by: &["V1-MULTI-001"],
        related: &["V1-EQUIV-005"],
        ..USUAL
    },
    Defect {
        name: "subscription-out-of-order",
        wrong: "A subscription tells the end before the artifact.",
        faults: &[Fault::Events(V1.of(&[Operation::SubscribeToTask]).saying("tck-stream-basic"), Cut::Swap)],
        caught_by: &["V1-MULTI-002"],
        ..USUAL
    },
    Defect {
        name: "closing-one-closes-all",
        wrong: "A subscription that is closed closes those beside it.",
        faults: &[Fault::Quirk(Quirk::CloseOthers, V1)],
        caught_by: &["V1-MULTI-003"],
        related: &["V1-SUB-005"],
        ..USUAL
    },
];
