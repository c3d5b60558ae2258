//! Cards: form, truth, caching, and the extended one.

use baton_lab::wire::request::Operation;

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "card-is-html",
        wrong: "The card has the content type text/html.",
        faults: &[Fault::Header(What::Card, V1, "content-type", Some("text/html"))],
        caught_by: &["V1-CARD-001", "V03-CARD-001"],
        ..USUAL
    },
    Defect {
        name: "card-needs-credentials",
        wrong: "The card is only for those with credentials.",
        profile: Profile::Guarded,
        faults: &[Fault::Quirk(Quirk::CardNeedsCredentials, V1)],
        caught_by: &["V1-CARD-001", "V03-CARD-002"],
        related: &["V1-TWO-001", "V03-TWO-001"],
        ..USUAL
    },
    Defect {
        name: "card-without-version",
        wrong: "The card does not tell the agent's version.",
        faults: &[Fault::Edit(What::Card, V1, &[Edit::Remove("version")])],
        caught_by: &["V1-CARD-002"],
        // Where the card for clients without a version does not come in time, this one stands in for it.
        related: &["V03-CARD-003"],
        ..USUAL
    },
    Defect {
        name: "interface-without-version",
        wrong: "An interface does not tell its protocol version.",
        faults: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Map("supportedInterfaces", |list| {
                list.as_array_mut().into_iter().for_each(|list| list.push(serde_json::json!({"url": "http://127.0.0.1:1/", "protocolBinding": "urn:example:other"})))
            })],
        )],
        caught_by: &["V1-CARD-003"],
        ..USUAL
    },
    Defect {
        name: "interface-that-is-not-there",
        wrong: "The card declares an interface that nobody serves.",
        faults: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Map("supportedInterfaces", |list| {
                list.as_array_mut().into_iter().for_each(|list| list.push(serde_json::json!({"url": "http://127.0.0.1:1/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"})))
            })],
        )],
        caught_by: &["V1-CARD-004"],
        ..USUAL
    },
    Defect {
        name: "skill-without-description",
        wrong: "A skill has no description.",
        faults: &[Fault::Edit(What::Card, V1, &[Edit::Remove("skills.0.description")])],
        caught_by: &["V1-CARD-005", "V03-CARD-005"],
        ..USUAL
    },
    Defect {
        name: "requirement-of-no-scheme",
        wrong: "The card requires a scheme that it does not declare.",
        profile: Profile::Guarded,
        faults: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Set("securityRequirements", r#"[{"schemes": {"other": {"list": []}}}]"#)],
        )],
        caught_by: &["V1-CARD-006"],
        ..USUAL
    },
    Defect {
        name: "patch-version",
        wrong: "The card declares the version 1.0.1.",
        faults: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Set("supportedInterfaces.0.protocolVersion", r#""1.0.1""#)],
        )],
        caught_by: &["V1-CARD-007"],
        ..USUAL
    },
    Defect {
        name: "snake-case-card",
        wrong: "The card has a member in snake_case.",
        faults: &[Fault::Edit(What::Card, V1, &[Edit::Set("icon_url", r#""https://example.com/icon.png""#)])],
        caught_by: &["V1-CARD-008"],
        ..USUAL
    },
    Defect {
        name: "modes-that-are-no-types",
        wrong: "The card has input modes that are no media types.",
        faults: &[Fault::Edit(What::Card, V1, &[Edit::Set("defaultInputModes", r#"["text"]"#)])],
        caught_by: &["V1-CARD-009"],
        ..USUAL
    },
    Defect {
        name: "binding-without-uri",
        wrong: "The card declares a binding `REST`.",
        faults: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Map("supportedInterfaces", |list| {
                list.as_array_mut().into_iter().for_each(|list| list.push(serde_json::json!({"url": "http://127.0.0.1:1/", "protocolBinding": "REST", "protocolVersion": "1.0"})))
            })],
        )],
        caught_by: &["V1-CARD-010"],
        ..USUAL
    },
    Defect {
        name: "plain-http",
        wrong: "The card declares an address without encryption.",
        faults: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Map("supportedInterfaces", |list| {
                list.as_array_mut().into_iter().for_each(|list| list.push(serde_json::json!({"url": "http://agent.example.com/", "protocolBinding": "urn:example:other", "protocolVersion": "1.0"})))
            })],
        )],
        caught_by: &["V1-CARD-011"],
        ..USUAL
    },
    Defect {
        name: "secret-in-card",
        wrong: "The card holds a secret.",
        faults: &[Fault::Edit(What::Card, V1, &[Edit::Set("apiKey", r#""not so secret""#)])],
        caught_by: &["V1-CARD-012"],
        ..USUAL
    },
    Defect {
        name: "signature-without-key",
        wrong: "A signature does not name its key.",
        profile: Profile::Guarded,
        faults: &[Fault::Edit(
            What::Card,
            V1,
            &[Edit::Set("signatures.0.protected", r#""eyJhbGciOiJub25lIn0""#)],
        )],
        caught_by: &["V1-CARD-013"],
        ..USUAL
    },
    Defect {
        name: "card-without-max-age",
        wrong: "The card does not say how long it is good for.",
        faults: &[Fault::Header(What::Card, V1, "cache-control", None)],
        caught_by: &["V1-CACHE-001"],
        ..USUAL
    },
    Defect {
        name: "card-without-etag",
        wrong: "The card has no ETag.",
        faults: &[Fault::Header(What::Card, V1, "etag", None)],
        caught_by: &["V1-CACHE-002"],
        ..USUAL
    },
    Defect {
        name: "card-always-sent",
        wrong: "The card is sent again to those who have it.",
        faults: &[Fault::Quirk(Quirk::AlwaysSendsCard, V1)],
        caught_by: &["V1-CACHE-003"],
        ..USUAL
    },
    Defect {
        name: "no-extended-card-no-method",
        wrong: "Without an extended card, the method does not exist.",
        faults: &[Fault::Rule(Rule::NoExtendedCard, V1, Instead::Refuse(Kind::MethodNotFound))],
        caught_by: &["V1-XCARD-001"],
        ..USUAL
    },
    Defect {
        name: "extended-card-without-skills",
        wrong: "The extended card has no skills.",
        profile: Profile::Guarded,
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetExtendedAgentCard]),
            &[Edit::Remove("skills")],
        )],
        caught_by: &["V1-XCARD-002"],
        ..USUAL
    },
    Defect {
        name: "extended-card-for-all",
        wrong: "The extended card is for everybody.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(
            Rule::NoCredentials,
            V1.of(&[Operation::GetExtendedAgentCard]),
            Instead::Allow,
        )],
        caught_by: &["V1-XCARD-003"],
        ..USUAL
    },
    Defect {
        name: "extended-card-without-caching",
        wrong: "The extended card has no caching headers.",
        profile: Profile::Guarded,
        faults: &[Fault::Header(
            What::Reply,
            V1.of(&[Operation::GetExtendedAgentCard]),
            "cache-control",
            None,
        )],
        caught_by: &["V1-XCARD-004"],
        ..USUAL
    },
];
