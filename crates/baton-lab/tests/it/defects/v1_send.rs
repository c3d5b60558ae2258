//! SendMessage.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "reply-holds-both",
        wrong: "A send is answered with a task and a message at once.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying(COMPLETE),
            &[Edit::Set("message", r#"{"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}"#)],
        )],
        caught_by: &["V1-SEND-001"],
        related: &["V1-*"],
        ..USUAL
    },
    Defect {
        name: "send-does-not-wait",
        wrong: "A send is answered before its task has ended.",
        faults: &[Fault::Quirk(Quirk::DoesNotWait, V1.saying(COMPLETE))],
        caught_by: &["V1-SEND-002"],
        related: &[
            "V1-CANCEL-002",
            "V1-DATA-011",
            "V1-GET-001",
            "V1-SEND-006",
            "V1-STREAM-018",
            "V1-SUB-003",
        ],
        ..USUAL
    },
    Defect {
        name: "send-does-not-wait-for-slow-work",
        wrong: "A send is answered before slow work is done.",
        faults: &[Fault::Quirk(Quirk::DoesNotWait, V1.saying("tck-stream-basic"))],
        caught_by: &["V1-SEND-003"],
        ..USUAL
    },
    Defect {
        name: "reply-lacks-artifacts",
        wrong: "The reply to a send leaves out the artifacts.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying(COMPLETE),
            &[Edit::Remove("task.artifacts")],
        )],
        caught_by: &["V1-SEND-004"],
        ..USUAL
    },
    Defect {
        name: "send-waits-anyway",
        wrong: "A send waits although it is asked to return immediately.",
        faults: &[Fault::Quirk(Quirk::WaitsAnyway, V1.saying("tck-long-running"))],
        caught_by: &["V1-SEND-005"],
        ..USUAL
    },
    Defect {
        name: "ended-task-is-invalid-params",
        wrong: "A message to an ended task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::SendToEnded,
            V1.of(&[Operation::SendMessage]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V1-SEND-006"],
        related: &["V1-EQUIV-003", "V1-ERR-003", "V1-ERR-007", "V1-ERR-008", "V1-LIFE-010", "V1-LIFE-011"],
        ..USUAL
    },
    Defect {
        name: "unknown-task-is-made",
        wrong: "A message to an unknown task makes one with that id.",
        faults: &[Fault::Rule(Rule::UnknownTask, V1.of(&[Operation::SendMessage]), Instead::Allow)],
        caught_by: &["V1-SEND-007"],
        related: &["V1-EQUIV-003"],
        ..USUAL
    },
    Defect {
        name: "media-type-is-invalid-params",
        wrong: "An unsupported media type is refused with InvalidParamsError.",
        faults: &[Fault::Rule(Rule::MediaType, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-SEND-008"],
        ..USUAL
    },
    Defect {
        name: "one-id-for-all",
        wrong: "Every task has the same id.",
        faults: &[Fault::Quirk(Quirk::SameId, V1.saying(COMPLETE))],
        caught_by: &["V1-SEND-009"],
        related: &["V1-*"],
        ..USUAL
    },
    Defect {
        name: "data-must-be-an-object",
        wrong: "`data` that is no object is refused.",
        faults: &[Fault::Rule(Rule::DataNotObject, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-SEND-010"],
        ..USUAL
    },
    Defect {
        name: "output-modes-refused",
        wrong: "`acceptedOutputModes` is refused, whatever it holds.",
        faults: &[Fault::Rule(Rule::OutputModes, V1, Instead::Refuse(Kind::ContentType))],
        caught_by: &["V1-SEND-011"],
        ..USUAL
    },
    Defect {
        name: "line-ends-normalised",
        wrong: "CR LF in a text is kept as LF.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetTask]),
            &[Edit::Map("history.*.parts.*.text", |text| {
                *text = text.as_str().unwrap_or_default().replace("\r\n", "\n").into()
            })],
        )],
        caught_by: &["V1-SEND-012"],
        ..USUAL
    },
    Defect {
        name: "repeat-is-an-accident",
        wrong: "A repeated messageId is an internal error.",
        faults: &[Fault::Rule(Rule::RepeatedMessage, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-SEND-013"],
        related: &["V1-HOST-007"],
        ..USUAL
    },
    Defect {
        name: "unknown-members-refused",
        wrong: "Members that are not known are refused.",
        faults: &[Fault::Rule(Rule::UnknownMember, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-SEND-014"],
        ..USUAL
    },
    Defect {
        name: "references-refused",
        wrong: "`referenceTaskIds` are refused.",
        faults: &[Fault::Rule(Rule::Refers, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-SEND-015"],
        ..USUAL
    },
    Defect {
        name: "answers-crossed",
        wrong: "With several clients, each gets the answer of the one before.",
        faults: &[Fault::Quirk(Quirk::CrossedAnswers, V1.saying("tck-complete-task number"))],
        caught_by: &["V1-SEND-016"],
        ..USUAL
    },
    Defect {
        name: "missing-message-is-an-accident",
        wrong: "A send without a message is an internal error.",
        faults: &[Fault::Rule(
            Rule::MessageMissing,
            V1.of(&[Operation::SendMessage]),
            Instead::Refuse(Kind::Internal),
        )],
        caught_by: &["V1-SEND-020"],
        ..USUAL
    },
    Defect {
        name: "no-parts-taken",
        wrong: "A message without parts is taken.",
        faults: &[Fault::Rule(Rule::NoParts, V1, Instead::Allow)],
        caught_by: &["V1-SEND-021"],
        ..USUAL
    },
    Defect {
        name: "no-message-id-taken",
        wrong: "A message without an id is taken.",
        faults: &[Fault::Rule(Rule::NoMessageId, V1, Instead::Allow)],
        caught_by: &["V1-SEND-022"],
        ..USUAL
    },
    Defect {
        name: "no-role-taken",
        wrong: "A message without a role is taken.",
        faults: &[Fault::Rule(Rule::NoRole, V1, Instead::Allow)],
        caught_by: &["V1-SEND-023"],
        ..USUAL
    },
    Defect {
        name: "empty-part-taken",
        wrong: "A part without content is taken.",
        faults: &[Fault::Rule(Rule::EmptyPart, V1, Instead::Allow)],
        caught_by: &["V1-SEND-024"],
        ..USUAL
    },
    Defect {
        name: "wrong-types-are-accidents",
        wrong: "A member of the wrong type is an internal error.",
        faults: &[Fault::Rule(Rule::WrongType, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-SEND-025"],
        ..USUAL
    },
];
