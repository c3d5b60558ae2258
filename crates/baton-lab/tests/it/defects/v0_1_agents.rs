//! 0.1: credentials, cards, JSON-RPC, webhooks, other generations.

use baton_lab::generation::Generation;
use baton_lab::wire::request::Operation;

use super::{USUAL, V0_1, V0_3};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.1-strangers-cancel",
        wrong: "In 0.1, strangers may cancel.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::NoCredentials, V0_1.of(&[Operation::CancelTask]), Instead::Allow)],
        caught_by: &["V01-AUTH-001"],
        ..USUAL
    },
    Defect {
        name: "v0.1-strangers-forbidden",
        wrong: "In 0.1, strangers get HTTP 403.",
        profile: Profile::Guarded,
        faults: &[Fault::Status(What::Refusal(Some(Kind::Unauthenticated)), V0_1, 403)],
        caught_by: &["V01-AUTH-002"],
        ..USUAL
    },
    Defect {
        name: "v0.1-no-challenge",
        wrong: "In 0.1, HTTP 401 comes without a challenge.",
        profile: Profile::Guarded,
        faults: &[Fault::Header(What::Refusal(Some(Kind::Unauthenticated)), V0_1, "www-authenticate", None)],
        caught_by: &["V01-AUTH-003"],
        ..USUAL
    },
    Defect {
        name: "v0.1-card-is-html",
        wrong: "The card of 0.1 has the content type text/html.",
        faults: &[Fault::Header(What::LegacyCard, V0_1, "content-type", Some("text/html"))],
        caught_by: &["V01-CARD-001"],
        ..USUAL
    },
    Defect {
        name: "v0.1-card-needs-credentials",
        wrong: "The card of 0.1 is only for those with credentials.",
        profile: Profile::Guarded,
        faults: &[Fault::Quirk(Quirk::CardNeedsCredentials, V0_1)],
        caught_by: &["V01-CARD-002"],
        ..USUAL
    },
    Defect {
        name: "v0.1-provider-is-a-list",
        wrong: "The card of 0.1 has its provider as a list.",
        faults: &[Fault::Edit(What::LegacyCard, V0_1, &[Edit::Set("provider", "[]")])],
        caught_by: &["V01-CARD-003"],
        ..USUAL
    },
    Defect {
        name: "v0.1-card-without-description",
        wrong: "The card of 0.1 has no description.",
        faults: &[Fault::Edit(What::LegacyCard, V0_1, &[Edit::Remove("description")])],
        caught_by: &["V01-CARD-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-skill-without-name",
        wrong: "A skill of the card of 0.1 has no name.",
        faults: &[Fault::Edit(What::LegacyCard, V0_1, &[Edit::Remove("skills.0.name")])],
        caught_by: &["V01-CARD-005"],
        ..USUAL
    },
    Defect {
        name: "v0.1-skill-without-modes",
        wrong: "A skill of the card of 0.1 has no modes.",
        faults: &[Fault::Edit(What::LegacyCard, V0_1, &[Edit::Remove("skills.0.inputModes")])],
        caught_by: &["V01-CARD-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-key-without-header",
        wrong: "The card of 0.1 asks for a key and does not say where.",
        profile: Profile::Guarded,
        faults: &[Fault::Edit(
            What::LegacyCard,
            V0_1,
            &[Edit::Set("authentication.schemes", r#"["Bearer", "apiKey"]"#)],
        )],
        caught_by: &["V01-CARD-007"],
        ..USUAL
    },
    Defect {
        name: "v0.1-unknown-task-is-invalid-params",
        wrong: "In 0.1, tasks/get of an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_1.of(&[Operation::GetTask]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V01-CARD-008", "V01-GET-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-is-plain-text",
        wrong: "Responses of 0.1 have the content type text/plain.",
        faults: &[Fault::Header(
            What::Reply,
            V0_1.of(&[Operation::SendMessage]),
            "content-type",
            Some("text/plain"),
        )],
        caught_by: &["V01-RPC-001"],
        ..USUAL
    },
    Defect {
        name: "v0.1-envelope-without-version",
        wrong: "Responses of 0.1 have no `jsonrpc`.",
        faults: &[Fault::Edit(
            What::Envelope,
            V0_1.of(&[Operation::SendMessage]),
            &[Edit::Remove("jsonrpc")],
        )],
        caught_by: &["V01-RPC-002"],
        related: &["V01-RPC-010"],
        ..USUAL
    },
    Defect {
        name: "v0.1-ids-are-texts",
        wrong: "The id of a response of 0.1 is a text, whatever it was.",
        faults: &[Fault::Edit(
            What::Envelope,
            V0_1,
            &[Edit::Map("id", |id| {
                if id.is_number() {
                    *id = id.to_string().into()
                }
            })],
        )],
        caught_by: &["V01-RPC-003"],
        ..USUAL
    },
    Defect {
        name: "v0.1-bad-json-is-invalid",
        wrong: "In 0.1, a body that is not JSON is an invalid request.",
        faults: &[Fault::Rule(Rule::BadJson, V0_1, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V01-RPC-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-no-request-is-bad-json",
        wrong: "In 0.1, JSON that is no request is refused as if it were not JSON.",
        faults: &[Fault::Rule(Rule::NotARequest, V0_1, Instead::Refuse(Kind::Parse))],
        caught_by: &["V01-RPC-005"],
        ..USUAL
    },
    Defect {
        name: "v0.1-unknown-method-is-invalid",
        wrong: "In 0.1, an unknown method is an invalid request.",
        faults: &[Fault::Rule(Rule::UnknownMethod, V0_1, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V01-RPC-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-missing-message-is-an-accident",
        wrong: "In 0.1, a send without a message is an internal error.",
        faults: &[Fault::Rule(
            Rule::MessageMissing,
            V0_1.of(&[Operation::SendMessage]),
            Instead::Refuse(Kind::Internal),
        )],
        caught_by: &["V01-RPC-007"],
        ..USUAL
    },
    Defect {
        name: "v0.1-no-id-is-not-found",
        wrong: "In 0.1, tasks/get without an id is refused with TaskNotFoundError.",
        faults: &[Fault::Rule(Rule::NoId, V0_1.of(&[Operation::GetTask]), Instead::Allow)],
        caught_by: &["V01-RPC-008"],
        ..USUAL
    },
    Defect {
        name: "v0.1-no-object-is-an-accident",
        wrong: "In 0.1, JSON that is no object is an internal error.",
        faults: &[Fault::Rule(Rule::BodyKind, V0_1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V01-RPC-009"],
        ..USUAL
    },
    Defect {
        name: "v0.1-answers-crossed",
        wrong: "With several clients of 0.1, each gets the answer of the one before.",
        faults: &[Fault::Quirk(Quirk::CrossedAnswers, V0_1.saying("tck-complete-task number"))],
        caught_by: &["V01-RPC-010"],
        ..USUAL
    },
    Defect {
        name: "v0.1-config-of-elsewhere",
        wrong: "In 0.1, a webhook is answered with another url.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::CreatePushConfig]),
            &[Edit::Set("pushNotificationConfig.url", r#""https://example.com/other""#)],
        )],
        caught_by: &["V01-PUSH-001"],
        ..USUAL
    },
    Defect {
        name: "v0.1-config-of-nobody",
        wrong: "In 0.1, a webhook of an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_1.of(&[Operation::CreatePushConfig]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V01-PUSH-002"],
        ..USUAL
    },
    Defect {
        name: "v0.1-push-off-is-invalid-params",
        wrong: "In 0.1, webhooks that are not offered are refused with InvalidParamsError.",
        profile: Profile::Bare,
        faults: &[Fault::Rule(Rule::NoPush, V0_1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V01-PUSH-003"],
        ..USUAL
    },
    Defect {
        name: "v0.1-plain-webhook-taken",
        wrong: "In 0.1, a webhook without TLS is taken.",
        faults: &[Fault::Rule(Rule::PlainWebhook, V0_1, Instead::Allow)],
        caught_by: &["V01-PUSH-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-webhook-learns-nothing",
        wrong: "In 0.1, webhooks are called with an empty object.",
        faults: &[Fault::Edit(What::Call, V0_1, &[Edit::Map("", |body| *body = serde_json::json!({}))])],
        caught_by: &["V01-PUSH-005"],
        ..USUAL
    },
    Defect {
        name: "task-of-0.1-in-words-of-nobody",
        wrong: "0.3 is told of a task of 0.1 in a state that is none.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_3.of(&[Operation::GetTask]).born(Generation::V0_1),
            &[Edit::Set("status.state", r#""done""#)],
        )],
        caught_by: &["V01-GEN-001"],
        ..USUAL
    },
    Defect {
        name: "task-of-0.3-in-words-of-nobody",
        wrong: "0.1 is told of a task of 0.3 in a state that is none.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_1.of(&[Operation::GetTask]).born(Generation::V0_3),
            &[Edit::Set("status.state", r#""done""#)],
        )],
        caught_by: &["V01-GEN-002"],
        ..USUAL
    },
    Defect {
        name: "v0.1-liars-believed",
        wrong: "0.1 takes made-up credentials.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::BadCredentials, V0_1, Instead::Allow)],
        caught_by: &["V01-AUTH-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-body-before-caller",
        wrong: "In 0.1, the body is read before anybody asks who sends it.",
        profile: Profile::Guarded,
        faults: &[Fault::Quirk(Quirk::ParsesFirst, V0_1)],
        caught_by: &["V01-AUTH-005"],
        ..USUAL
    },
    Defect {
        name: "v0.1-foreign-task-forbidden",
        wrong: "In 0.1, another user's task is forbidden, where a missing one is not found.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(
            Rule::Foreign,
            V0_1.of(&[Operation::GetTask]),
            Instead::Refuse(Kind::Forbidden),
        )],
        caught_by: &["V01-AUTH-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-foreign-task-canceled",
        wrong: "In 0.1, another user's task can be canceled.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::Foreign, V0_1.of(&[Operation::CancelTask]), Instead::Allow)],
        caught_by: &["V01-AUTH-007"],
        ..USUAL
    },
];
