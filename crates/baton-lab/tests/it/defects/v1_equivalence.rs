//! Two bindings, one agent.

use baton_lab::wire::request::Operation;

use super::{REST, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "rest-task-has-more",
        wrong: "A task has metadata in REST that it has not in JSON-RPC.",
        faults: &[Fault::Edit(
            What::Reply,
            REST.of(&[Operation::GetTask]),
            &[Edit::Set("metadata", r#"{"by": "rest"}"#)],
        )],
        caught_by: &["V1-EQUIV-001"],
        ..USUAL
    },
    Defect {
        name: "rest-list-has-more",
        wrong: "Listed tasks have metadata in REST that they have not in JSON-RPC.",
        faults: &[Fault::Edit(
            What::Reply,
            REST.of(&[Operation::ListTasks]),
            &[Edit::Set("tasks.*.metadata", r#"{"by": "rest"}"#)],
        )],
        caught_by: &["V1-EQUIV-002"],
        ..USUAL
    },
    Defect {
        name: "rest-refuses-otherwise",
        wrong: "REST refuses subscriptions to ended tasks with another error.",
        faults: &[Fault::Rule(Rule::SubscribeEnded, REST, Instead::Refuse(Kind::TaskNotCancelable))],
        caught_by: &["V1-EQUIV-003"],
        related: &["V1-SUB-003"],
        ..USUAL
    },
    Defect {
        name: "follow-up-by-binding",
        wrong: "A task goes on only in the binding it began in.",
        faults: &[Fault::Rule(
            Rule::OtherBinding,
            V1.of(&[Operation::SendMessage]),
            Instead::Refuse(Kind::TaskNotFound),
        )],
        caught_by: &["V1-EQUIV-004"],
        ..USUAL
    },
    Defect {
        name: "rest-stream-has-more",
        wrong: "Updates have metadata in REST that they have not in JSON-RPC.",
        faults: &[Fault::Edit(
            What::Event,
            REST.saying("tck-stream-basic"),
            &[Edit::Set("statusUpdate.metadata", r#"{"by": "rest"}"#)],
        )],
        caught_by: &["V1-EQUIV-005"],
        ..USUAL
    },
    Defect {
        name: "cancel-by-binding",
        wrong: "A task can only be canceled in the binding it began in.",
        faults: &[Fault::Rule(
            Rule::OtherBinding,
            V1.of(&[Operation::CancelTask]),
            Instead::Refuse(Kind::TaskNotFound),
        )],
        caught_by: &["V1-EQUIV-006"],
        related: &["V1-EQUIV-003"],
        ..USUAL
    },
    Defect {
        name: "rest-without-authentication",
        wrong: "REST reads tasks for strangers.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::NoCredentials, REST.of(&[Operation::GetTask]), Instead::Allow)],
        caught_by: &["V1-EQUIV-007"],
        related: &["V1-AUTH-001"],
        ..USUAL
    },
];
