//! Errors, and what the card does not offer.

use baton_lab::wire::request::Operation;

use super::{REST, RPC, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "code-of-task-not-found",
        wrong: "TaskNotFoundError has another code.",
        faults: &[Fault::Edit(What::Refusal(Some(Kind::TaskNotFound)), RPC, &[Edit::Set("code", "-32004")])],
        caught_by: &["V1-ERR-001"],
        related: &["V1-CARD-004"],
        ..USUAL
    },
    Defect {
        name: "status-of-task-not-found",
        wrong: "TaskNotFoundError has another HTTP status.",
        faults: &[Fault::Status(What::Refusal(Some(Kind::TaskNotFound)), REST, 410)],
        caught_by: &["V1-ERR-001"],
        related: &["V1-CARD-004", "V1-ERR-010"],
        ..USUAL
    },
    Defect {
        name: "code-of-task-not-cancelable",
        wrong: "TaskNotCancelableError has another code.",
        faults: &[Fault::Edit(
            What::Refusal(Some(Kind::TaskNotCancelable)),
            RPC,
            &[Edit::Set("code", "-32001")],
        )],
        caught_by: &["V1-ERR-002"],
        ..USUAL
    },
    Defect {
        name: "code-of-unsupported",
        wrong: "UnsupportedOperationError has another code.",
        faults: &[Fault::Edit(What::Refusal(Some(Kind::Unsupported)), RPC, &[Edit::Set("code", "-32601")])],
        caught_by: &["V1-ERR-003"],
        ..USUAL
    },
    Defect {
        name: "code-of-push-not-supported",
        wrong: "PushNotificationNotSupportedError has another code.",
        profile: Profile::Bare,
        faults: &[Fault::Edit(
            What::Refusal(Some(Kind::PushNotSupported)),
            RPC,
            &[Edit::Set("code", "-32004")],
        )],
        caught_by: &["V1-ERR-004"],
        ..USUAL
    },
    Defect {
        name: "code-of-version",
        wrong: "VersionNotSupportedError has another code.",
        faults: &[Fault::Edit(What::Refusal(Some(Kind::Version)), RPC, &[Edit::Set("code", "-32006")])],
        caught_by: &["V1-ERR-005"],
        ..USUAL
    },
    Defect {
        name: "detail-without-type",
        wrong: "A detail does not say its type.",
        faults: &[
            Fault::Edit(
                What::Refusal(None),
                RPC,
                &[Edit::Map("data", |list| {
                    list.as_array_mut()
                        .into_iter()
                        .for_each(|list| list.push(serde_json::json!({"hint": "read the manual"})))
                })],
            ),
            Fault::Edit(
                What::Refusal(None),
                REST,
                &[Edit::Map("details", |list| {
                    list.as_array_mut()
                        .into_iter()
                        .for_each(|list| list.push(serde_json::json!({"hint": "read the manual"})))
                })],
            ),
        ],
        caught_by: &["V1-ERR-006"],
        ..USUAL
    },
    Defect {
        name: "rest-error-of-another-domain",
        wrong: "REST errors are of another domain.",
        faults: &[Fault::Edit(
            What::Refusal(None),
            REST,
            &[Edit::Set("details.*.domain", r#""example.com""#)],
        )],
        caught_by: &["V1-ERR-007"],
        ..USUAL
    },
    Defect {
        name: "rpc-error-of-another-domain",
        wrong: "JSON-RPC errors are of another domain.",
        faults: &[Fault::Edit(What::Refusal(None), RPC, &[Edit::Set("data.*.domain", r#""example.com""#)])],
        caught_by: &["V1-ERR-008"],
        ..USUAL
    },
    Defect {
        name: "error-says-nothing",
        wrong: "Validation errors say nothing.",
        faults: &[Fault::Edit(
            What::Refusal(Some(Kind::InvalidParams)),
            V1,
            &[Edit::Set("message", r#"" ""#)],
        )],
        caught_by: &["V1-ERR-009"],
        ..USUAL
    },
    Defect {
        name: "rest-error-in-http-words",
        wrong: "REST errors have the words of HTTP as status.",
        faults: &[Fault::Edit(What::Refusal(None), REST, &[Edit::Set("status", r#""Not Found""#)])],
        caught_by: &["V1-ERR-010"],
        ..USUAL
    },
    Defect {
        name: "error-names-no-field",
        wrong: "Validation errors do not say what is wrong.",
        faults: &[Fault::Edit(
            What::Refusal(Some(Kind::InvalidParams)),
            V1,
            &[Edit::Set("message", r#""bad request""#), Edit::Remove("data"), Edit::Set("details", "[]")],
        )],
        caught_by: &["V1-ERR-011"],
        related: &["V1-ERR-012"],
        ..USUAL
    },
    Defect {
        name: "no-bad-request",
        wrong: "Validation errors have no BadRequest.",
        faults: &[Fault::Edit(
            What::Refusal(Some(Kind::InvalidParams)),
            V1,
            &[Edit::Remove("data"), Edit::Set("details", "[]")],
        )],
        caught_by: &["V1-ERR-012"],
        ..USUAL
    },
    Defect {
        name: "snake-case-error",
        wrong: "Details of errors have members in snake_case.",
        faults: &[
            Fault::Edit(What::Refusal(Some(Kind::TaskNotFound)), RPC, &[Edit::Set("data.0.error_code", "1")]),
            Fault::Edit(
                What::Refusal(Some(Kind::TaskNotFound)),
                REST,
                &[Edit::Set("details.0.error_code", "1")],
            ),
        ],
        caught_by: &["V1-ERR-013"],
        ..USUAL
    },
    Defect {
        name: "streaming-off-no-method",
        wrong: "Without streaming, SendStreamingMessage does not exist.",
        profile: Profile::Bare,
        faults: &[Fault::Rule(
            Rule::NoStreaming,
            V1.of(&[Operation::SendStreamingMessage]),
            Instead::Refuse(Kind::MethodNotFound),
        )],
        caught_by: &["V1-CAP-001"],
        ..USUAL
    },
    Defect {
        name: "streaming-off-subscribed",
        wrong: "Without streaming, subscriptions are opened.",
        profile: Profile::Bare,
        faults: &[
            Fault::Rule(Rule::NoStreaming, V1.of(&[Operation::SubscribeToTask]), Instead::Allow),
            Fault::Rule(Rule::SubscribeEnded, V1, Instead::Allow),
        ],
        caught_by: &["V1-CAP-002"],
        ..USUAL
    },
    Defect {
        name: "push-off-unsupported",
        wrong: "Without webhooks, configs are refused with UnsupportedOperationError.",
        profile: Profile::Bare,
        faults: &[Fault::Rule(Rule::NoPush, V1, Instead::Refuse(Kind::Unsupported))],
        caught_by: &["V1-CAP-003"],
        related: &["V1-ERR-004"],
        ..USUAL
    },
];
