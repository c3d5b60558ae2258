//! JSON-RPC of 0.3.

use baton_lab::wire::request::Operation;

use super::{RPC_V0_3, USUAL, V0_3};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.3-rpc-is-plain-text",
        wrong: "Responses of 0.3 have the content type text/plain.",
        faults: &[Fault::Header(
            What::Reply,
            RPC_V0_3.of(&[Operation::SendMessage]),
            "content-type",
            Some("text/plain"),
        )],
        caught_by: &["V03-RPC-001"],
        ..USUAL
    },
    Defect {
        name: "v0.3-envelope-without-version",
        wrong: "Responses of 0.3 have no `jsonrpc`.",
        faults: &[Fault::Edit(
            What::Envelope,
            RPC_V0_3.of(&[Operation::SendMessage]),
            &[Edit::Remove("jsonrpc")],
        )],
        caught_by: &["V03-RPC-002"],
        related: &["V03-RPC-016"],
        ..USUAL
    },
    Defect {
        name: "v0.3-ids-are-texts",
        wrong: "The id of a response of 0.3 is a text, whatever it was.",
        faults: &[Fault::Edit(
            What::Envelope,
            RPC_V0_3,
            &[Edit::Map("id", |id| {
                if id.is_number() {
                    *id = id.to_string().into()
                }
            })],
        )],
        caught_by: &["V03-RPC-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-bad-json-is-invalid",
        wrong: "In 0.3, a body that is not JSON is an invalid request.",
        faults: &[Fault::Rule(Rule::BadJson, RPC_V0_3, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V03-RPC-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-request-is-bad-json",
        wrong: "In 0.3, JSON that is no request is refused as if it were not JSON.",
        faults: &[Fault::Rule(Rule::NotARequest, RPC_V0_3, Instead::Refuse(Kind::Parse))],
        caught_by: &["V03-RPC-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-method-is-unknown",
        wrong: "In 0.3, a request without a method is refused with -32601.",
        faults: &[Fault::Rule(Rule::NoMethod, RPC_V0_3, Instead::Refuse(Kind::MethodNotFound))],
        caught_by: &["V03-RPC-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-any-rpc-version",
        wrong: "0.3 takes requests of every version of JSON-RPC.",
        faults: &[Fault::Rule(Rule::RpcVersion, RPC_V0_3, Instead::Allow)],
        caught_by: &["V03-RPC-007"],
        ..USUAL
    },
    Defect {
        name: "v0.3-unknown-method-is-invalid",
        wrong: "In 0.3, an unknown method is an invalid request.",
        faults: &[Fault::Rule(Rule::UnknownMethod, RPC_V0_3, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V03-RPC-008", "V03-GEN-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-missing-message-is-an-accident",
        wrong: "In 0.3, a send without a message is an internal error.",
        faults: &[Fault::Rule(Rule::MessageMissing, RPC_V0_3, Instead::Refuse(Kind::Internal))],
        caught_by: &["V03-RPC-009"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-parts-taken",
        wrong: "0.3 takes a message without parts.",
        faults: &[Fault::Rule(Rule::NoParts, RPC_V0_3, Instead::Allow)],
        caught_by: &["V03-RPC-010"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-message-id-taken",
        wrong: "0.3 takes a message without an id.",
        faults: &[Fault::Rule(Rule::NoMessageId, RPC_V0_3, Instead::Allow)],
        caught_by: &["V03-RPC-011"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-id-is-not-found",
        wrong: "In 0.3, tasks/get without an id is refused with TaskNotFoundError.",
        faults: &[Fault::Rule(Rule::NoId, RPC_V0_3.of(&[Operation::GetTask]), Instead::Allow)],
        caught_by: &["V03-RPC-012"],
        related: &["V03-RPC-013"],
        ..USUAL
    },
    Defect {
        name: "v0.3-wrong-types-are-accidents",
        wrong: "In 0.3, a member of the wrong type is an internal error.",
        faults: &[Fault::Rule(Rule::WrongType, RPC_V0_3, Instead::Refuse(Kind::Internal))],
        caught_by: &["V03-RPC-013"],
        ..USUAL
    },
    Defect {
        name: "v0.3-no-object-is-an-accident",
        wrong: "In 0.3, JSON that is no object is an internal error.",
        faults: &[Fault::Rule(Rule::BodyKind, V0_3, Instead::Refuse(Kind::Internal))],
        caught_by: &["V03-RPC-014"],
        related: &["V03-REST-009"],
        ..USUAL
    },
    Defect {
        name: "v0.3-odd-id-is-an-accident",
        wrong: "In 0.3, ids with slashes are an internal error.",
        faults: &[Fault::Rule(Rule::OddId, V0_3, Instead::Refuse(Kind::Internal))],
        caught_by: &["V03-RPC-015"],
        ..USUAL
    },
    Defect {
        name: "v0.3-answers-crossed",
        wrong: "With several clients of 0.3, each gets the answer of the one before.",
        faults: &[Fault::Quirk(Quirk::CrossedAnswers, V0_3.saying("tck-complete-task number"))],
        caught_by: &["V03-RPC-016"],
        ..USUAL
    },
    Defect {
        name: "v0.3-unread-id-is-a-number",
        wrong: "In 0.3, an id that could not be read comes back as a number.",
        faults: &[Fault::Edit(
            What::Envelope,
            RPC_V0_3,
            &[Edit::Map("id", |id| {
                if id.is_null() {
                    *id = 1.into()
                }
            })],
        )],
        caught_by: &["V03-RPC-017"],
        ..USUAL
    },
];
