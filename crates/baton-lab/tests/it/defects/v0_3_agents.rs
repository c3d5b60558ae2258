//! 0.3: bindings, credentials, cards, other generations.

use baton_lab::generation::Generation;
use baton_lab::wire::request::Operation;

use super::{REST_V0_3, USUAL, V0_3, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{ALWAYS, Cut, Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.3-artifact-named-otherwise",
        wrong: "Over HTTP+JSON of 0.3, an artifact has another name.",
        faults: &[Fault::Edit(
            What::Reply,
            REST_V0_3.of(&[Operation::GetTask]),
            &[Edit::Set("artifacts.0.name", r#""other""#)],
        )],
        caught_by: &["V03-EQ-001"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-refuses-otherwise",
        wrong: "HTTP+JSON of 0.3 refuses to cancel unknown tasks with another error.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            REST_V0_3.of(&[Operation::CancelTask]),
            Instead::Refuse(Kind::TaskNotCancelable),
        )],
        caught_by: &["V03-EQ-002"],
        related: &["V03-CANCEL-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-follow-up-by-binding",
        wrong: "In 0.3, a task goes on only in the binding it began in.",
        faults: &[Fault::Rule(
            Rule::OtherBinding,
            V0_3.of(&[Operation::SendMessage]),
            Instead::Refuse(Kind::TaskNotFound),
        )],
        caught_by: &["V03-EQ-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-cancel-by-binding",
        wrong: "In 0.3, a task can only be canceled in the binding it began in.",
        faults: &[Fault::Rule(
            Rule::OtherBinding,
            V0_3.of(&[Operation::CancelTask]),
            Instead::Refuse(Kind::TaskNotFound),
        )],
        caught_by: &["V03-EQ-004"],
        related: &["V03-EQ-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-rest-artifact-not-told",
        wrong: "Over HTTP+JSON of 0.3, artifacts are not streamed.",
        faults: &[Fault::Events(
            REST_V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
            Cut::DropKind("artifactUpdate"),
        )],
        caught_by: &["V03-EQ-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-strangers-cancel",
        wrong: "In 0.3, strangers may cancel.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::NoCredentials, V0_3.of(&[Operation::CancelTask]), Instead::Allow)],
        caught_by: &["V03-AUTH-001"],
        ..USUAL
    },
    Defect {
        name: "v0.3-strangers-forbidden",
        wrong: "In 0.3, strangers get HTTP 403.",
        profile: Profile::Guarded,
        faults: &[Fault::Status(What::Refusal(Some(Kind::Unauthenticated)), V0_3, 403)],
        caught_by: &["V03-AUTH-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-challenge",
        wrong: "In 0.3, HTTP 401 comes without a challenge.",
        profile: Profile::Guarded,
        faults: &[Fault::Header(What::Refusal(Some(Kind::Unauthenticated)), V0_3, "www-authenticate", None)],
        caught_by: &["V03-AUTH-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-liars-believed",
        wrong: "0.3 takes made-up credentials.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::BadCredentials, V0_3, Instead::Allow)],
        caught_by: &["V03-AUTH-004"],
        ..USUAL
    },
    Defect {
        name: "security-is-an-object",
        wrong: "The card has `security` as an object.",
        faults: &[Fault::Edit(What::Card, ALWAYS, &[Edit::Set("security", "{}")])],
        caught_by: &["V03-CARD-003"],
        ..USUAL
    },
    Defect {
        name: "protocol-version-of-another-world",
        wrong: "The card tells a `protocolVersion` that nobody speaks.",
        faults: &[Fault::Edit(What::Card, ALWAYS, &[Edit::Set("protocolVersion", r#""3.0""#)])],
        caught_by: &["V03-CARD-004"],
        ..USUAL
    },
    Defect {
        name: "no-preferred-transport",
        wrong: "The card does not tell its preferred transport.",
        faults: &[Fault::Edit(What::Card, ALWAYS, &[Edit::Remove("preferredTransport")])],
        caught_by: &["V03-CARD-006"],
        ..USUAL
    },
    Defect {
        name: "additional-interface-without-url",
        wrong: "An additional interface has no address.",
        faults: &[Fault::Edit(
            What::Card,
            ALWAYS,
            &[Edit::Map("additionalInterfaces", |list| {
                list.as_array_mut()
                    .into_iter()
                    .for_each(|list| list.push(serde_json::json!({"transport": "JSONRPC"})))
            })],
        )],
        caught_by: &["V03-CARD-007"],
        ..USUAL
    },
    Defect {
        name: "main-interface-not-repeated",
        wrong: "The additional interfaces leave out the main one.",
        faults: &[Fault::Edit(What::Card, ALWAYS, &[Edit::Remove("additionalInterfaces.0")])],
        caught_by: &["V03-CARD-008"],
        ..USUAL
    },
    Defect {
        name: "additional-interface-that-is-not-there",
        wrong: "The card declares an additional interface that nobody serves.",
        faults: &[Fault::Edit(
            What::Card,
            ALWAYS,
            &[Edit::Map("additionalInterfaces", |list| {
                list.as_array_mut().into_iter().for_each(|list| {
                    list.push(serde_json::json!({"url": "http://127.0.0.1:1/", "transport": "JSONRPC"}))
                })
            })],
        )],
        caught_by: &["V03-CARD-009"],
        ..USUAL
    },
    Defect {
        name: "security-of-no-scheme",
        wrong: "`security` names a scheme that is not declared.",
        profile: Profile::Guarded,
        faults: &[Fault::Edit(What::Card, ALWAYS, &[Edit::Set("security", r#"[{"other": []}]"#)])],
        caught_by: &["V03-CARD-010"],
        ..USUAL
    },
    Defect {
        name: "v0.3-extended-card-for-nobody",
        wrong: "In 0.3, an agent without an extended card gives one.",
        faults: &[Fault::Rule(Rule::NoExtendedCard, V0_3, Instead::Allow)],
        caught_by: &["V03-EXT-001"],
        related: &["V03-EXT-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-extended-card-without-skills",
        wrong: "The extended card of 0.3 has no skills.",
        profile: Profile::Guarded,
        faults: &[Fault::Edit(
            What::Reply,
            V0_3.of(&[Operation::GetExtendedAgentCard]),
            &[Edit::Remove("skills")],
        )],
        caught_by: &["V03-EXT-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-extended-card-for-all",
        wrong: "The extended card of 0.3 is for everybody.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(
            Rule::NoCredentials,
            V0_3.of(&[Operation::GetExtendedAgentCard]),
            Instead::Allow,
        )],
        caught_by: &["V03-EXT-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-extended-card-is-invalid",
        wrong: "In 0.3, the extended card that is not there is refused with InvalidParamsError.",
        faults: &[Fault::Rule(Rule::NoExtendedCard, V0_3, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V03-EXT-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-needs-a-version",
        wrong: "0.3 needs a version header.",
        faults: &[Fault::Rule(Rule::OldWithoutVersion, V0_3, Instead::Refuse(Kind::Version))],
        caught_by: &["V03-GEN-001"],
        related: &["V03-RPC-*", "V03-REST-*"],
        ..USUAL
    },
    Defect {
        name: "task-of-0.3-in-its-own-words",
        wrong: "1.0 is told of a task of 0.3 with `kind`.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetTask]).born(Generation::V0_3),
            &[Edit::Set("kind", r#""task""#)],
        )],
        caught_by: &["V03-GEN-003"],
        ..USUAL
    },
    Defect {
        name: "task-of-1.0-in-its-own-words",
        wrong: "0.3 is told of a task of 1.0 in states of 1.0.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_3.of(&[Operation::GetTask]).born(Generation::V1),
            &[Edit::Set("status.state", r#""TASK_STATE_COMPLETED""#)],
        )],
        caught_by: &["V03-GEN-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-body-before-caller",
        wrong: "In 0.3, the body is read before anybody asks who sends it.",
        profile: Profile::Guarded,
        faults: &[Fault::Quirk(Quirk::ParsesFirst, V0_3)],
        caught_by: &["V03-AUTH-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-foreign-task-forbidden",
        wrong: "In 0.3, another user's task is forbidden, where a missing one is not found.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(
            Rule::Foreign,
            V0_3.of(&[Operation::GetTask]),
            Instead::Refuse(Kind::Forbidden),
        )],
        caught_by: &["V03-AUTH-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-foreign-task-canceled",
        wrong: "In 0.3, another user's task can be canceled.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::Foreign, V0_3.of(&[Operation::CancelTask]), Instead::Allow)],
        caught_by: &["V03-AUTH-007"],
        ..USUAL
    },
];
