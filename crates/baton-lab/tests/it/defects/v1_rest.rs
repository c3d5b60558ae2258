//! HTTP+JSON.

use baton_lab::wire::request::Operation;

use super::{REST, USUAL};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "rest-of-another-type",
        wrong: "Answers have another JSON content type.",
        faults: &[Fault::Header(
            What::Reply,
            REST.of(&[Operation::SendMessage]),
            "content-type",
            Some("application/vnd.api+json"),
        )],
        caught_by: &["V1-REST-001"],
        ..USUAL
    },
    Defect {
        name: "rest-errors-are-html",
        wrong: "Errors have the content type text/html.",
        faults: &[Fault::Header(What::Refusal(None), REST, "content-type", Some("text/html"))],
        caught_by: &["V1-REST-002"],
        ..USUAL
    },
    Defect {
        name: "plain-json-refused",
        wrong: "Requests in application/json are refused.",
        faults: &[Fault::Rule(Rule::PlainJson, REST, Instead::Refuse(Kind::ContentType))],
        caught_by: &["V1-REST-003"],
        ..USUAL
    },
    Defect {
        name: "bad-json-is-not-found",
        wrong: "A body that is not JSON is not found.",
        faults: &[Fault::Rule(Rule::BadJson, REST, Instead::Refuse(Kind::TaskNotFound))],
        caught_by: &["V1-REST-004"],
        ..USUAL
    },
    Defect {
        name: "any-path",
        wrong: "Every path is answered.",
        faults: &[Fault::Rule(Rule::UnknownPath, REST, Instead::Allow)],
        caught_by: &["V1-REST-005"],
        related: &["V1-HOST-008"],
        ..USUAL
    },
    Defect {
        name: "any-verb",
        wrong: "Every verb is answered.",
        faults: &[Fault::Rule(Rule::WrongVerb, REST, Instead::Allow)],
        caught_by: &["V1-REST-006"],
        ..USUAL
    },
    Defect {
        name: "cancel-needs-a-body",
        wrong: "A cancellation needs a body.",
        faults: &[Fault::Rule(Rule::EmptyBody, REST, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-REST-007"],
        ..USUAL
    },
    Defect {
        name: "query-in-snake-case",
        wrong: "Query parameters in camelCase are not known.",
        faults: &[Fault::Quirk(Quirk::SnakeQuery, REST)],
        caught_by: &["V1-REST-008"],
        related: &["V1-LIST-*", "V1-HIST-*", "V1-ERR-*", "V1-EQUIV-002"],
        ..USUAL
    },
    Defect {
        name: "rest-with-envelope",
        wrong: "REST answers have members of JSON-RPC.",
        faults: &[Fault::Edit(
            What::Reply,
            REST.of(&[Operation::ListTasks]),
            &[Edit::Set("jsonrpc", r#""2.0""#)],
        )],
        caught_by: &["V1-REST-009"],
        related: &["V1-EQUIV-002"],
        ..USUAL
    },
];
