//! JSON-RPC.

use baton_lab::wire::request::Operation;

use super::{RPC, USUAL};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "envelope-without-version",
        wrong: "Responses have no `jsonrpc`.",
        faults: &[Fault::Edit(What::Envelope, RPC.of(&[Operation::SendMessage]), &[Edit::Remove("jsonrpc")])],
        caught_by: &["V1-RPC-001"],
        related: &["V1-SEND-016"],
        ..USUAL
    },
    Defect {
        name: "ids-are-texts",
        wrong: "The id of a response is a text, whatever it was.",
        faults: &[Fault::Edit(
            What::Envelope,
            RPC,
            &[Edit::Map("id", |id| {
                if id.is_number() {
                    *id = id.to_string().into()
                }
            })],
        )],
        caught_by: &["V1-RPC-002"],
        ..USUAL
    },
    Defect {
        name: "rpc-is-plain-text",
        wrong: "Responses have the content type text/plain.",
        faults: &[Fault::Header(
            What::Reply,
            RPC.of(&[Operation::SendMessage]),
            "content-type",
            Some("text/plain"),
        )],
        caught_by: &["V1-RPC-003"],
        ..USUAL
    },
    Defect {
        name: "unknown-method-is-invalid",
        wrong: "An unknown method is an invalid request.",
        faults: &[Fault::Rule(Rule::UnknownMethod, RPC, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V1-RPC-004"],
        ..USUAL
    },
    Defect {
        name: "bad-json-is-invalid",
        wrong: "A body that is not JSON is an invalid request.",
        faults: &[Fault::Rule(Rule::BadJson, RPC, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V1-RPC-005"],
        ..USUAL
    },
    Defect {
        name: "no-request-is-bad-json",
        wrong: "JSON that is no request is refused as if it were not JSON.",
        faults: &[Fault::Rule(Rule::NotARequest, RPC, Instead::Refuse(Kind::Parse))],
        caught_by: &["V1-RPC-006"],
        ..USUAL
    },
    Defect {
        name: "no-method-is-unknown",
        wrong: "A request without a method is refused with -32601.",
        faults: &[Fault::Rule(Rule::NoMethod, RPC, Instead::Refuse(Kind::MethodNotFound))],
        caught_by: &["V1-RPC-007"],
        ..USUAL
    },
    Defect {
        name: "any-rpc-version",
        wrong: "Requests of every version of JSON-RPC are taken.",
        faults: &[Fault::Rule(Rule::RpcVersion, RPC, Instead::Allow)],
        caught_by: &["V1-RPC-008"],
        ..USUAL
    },
    Defect {
        name: "odd-params-are-accidents",
        wrong: "Params that are no object are an internal error.",
        faults: &[Fault::Rule(Rule::ParamsKind, RPC, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-RPC-009"],
        ..USUAL
    },
    Defect {
        name: "params-required",
        wrong: "Every call needs params.",
        faults: &[Fault::Rule(Rule::ParamsMissing, RPC, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-RPC-010"],
        ..USUAL
    },
];
