//! Input nobody should send.

use super::{USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "no-object-is-an-accident",
        wrong: "JSON that is no object is an internal error.",
        faults: &[Fault::Rule(Rule::BodyKind, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-HOST-001"],
        ..USUAL
    },
    Defect {
        name: "any-bytes-taken",
        wrong: "A body that is not UTF-8 is taken.",
        faults: &[Fault::Rule(Rule::NotUtf8, V1, Instead::Allow)],
        caught_by: &["V1-HOST-002"],
        ..USUAL
    },
    Defect {
        name: "dies-of-depth",
        wrong: "Deep JSON breaks the connection.",
        faults: &[Fault::Rule(Rule::TooDeep, V1, Instead::HangUp)],
        caught_by: &["V1-HOST-003"],
        ..USUAL
    },
    Defect {
        name: "dies-of-length",
        wrong: "Long bodies break the connection.",
        faults: &[Fault::Rule(Rule::LongBody, V1, Instead::HangUp)],
        caught_by: &["V1-HOST-004"],
        ..USUAL
    },
    Defect {
        name: "nul-is-an-accident",
        wrong: "NUL is an internal error.",
        faults: &[Fault::Rule(Rule::OddLetters, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-HOST-005"],
        ..USUAL
    },
    Defect {
        name: "odd-number-is-an-accident",
        wrong: "A `historyLength` that is no whole number is an internal error.",
        faults: &[Fault::Rule(Rule::HistoryNumber, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-HOST-006"],
        ..USUAL
    },
    Defect {
        name: "odd-type-is-an-accident",
        wrong: "Another content type is an internal error.",
        faults: &[Fault::Rule(Rule::ForeignContentType, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-HOST-007"],
        ..USUAL
    },
    Defect {
        name: "odd-id-is-an-accident",
        wrong: "Ids with slashes are an internal error.",
        faults: &[Fault::Rule(Rule::OddId, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-HOST-008"],
        ..USUAL
    },
    Defect {
        name: "dies-of-a-header",
        wrong: "Long headers break the connection.",
        faults: &[Fault::Rule(Rule::LongHeader, V1, Instead::HangUp)],
        caught_by: &["V1-HOST-009"],
        ..USUAL
    },
    Defect {
        name: "hurt-by-half-requests",
        wrong: "A request that breaks off makes the next one fail.",
        faults: &[Fault::Quirk(Quirk::HurtByHalves, V1)],
        caught_by: &["V1-HOST-010"],
        related: &["V1-HOST-*"],
        alone: true,
        ..USUAL
    },
    Defect {
        name: "stack-trace-told",
        wrong: "Errors hold stack traces.",
        faults: &[Fault::Edit(
            What::Refusal(Some(Kind::Parse)),
            V1,
            &[Edit::Set("message", r#""Traceback (most recent call last):""#)],
        )],
        caught_by: &["V1-HOST-011"],
        ..USUAL
    },
    Defect {
        name: "twice-is-an-accident",
        wrong: "Members that are there twice are an internal error.",
        faults: &[Fault::Rule(Rule::TwiceTheSame, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-HOST-012"],
        ..USUAL
    },
];
