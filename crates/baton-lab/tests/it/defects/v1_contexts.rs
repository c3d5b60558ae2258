//! Contexts, versions and extensions.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "context-replaced",
        wrong: "A context of the client's making is replaced.",
        faults: &[Fault::Quirk(Quirk::NewContext, V1)],
        caught_by: &["V1-CTX-001"],
        ..USUAL
    },
    Defect {
        name: "context-not-told",
        wrong: "The reply does not tell the context.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]).saying(COMPLETE),
            &[Edit::Remove("task.contextId")],
        )],
        caught_by: &["V1-CTX-002"],
        related: &["V1-CTX-001", "V1-CTX-005"],
        ..USUAL
    },
    Defect {
        name: "follow-up-in-another-context",
        wrong: "A follow-up is answered with another context.",
        faults: &[Fault::Quirk(Quirk::FreshContextOnFollowUp, V1)],
        caught_by: &["V1-CTX-003"],
        ..USUAL
    },
    Defect {
        name: "any-context-taken",
        wrong: "A context that is not the task's is taken.",
        faults: &[Fault::Rule(Rule::ContextMismatch, V1, Instead::Allow)],
        caught_by: &["V1-CTX-004"],
        ..USUAL
    },
    Defect {
        name: "context-is-one-task",
        wrong: "A message in a context goes to the task that waits there.",
        faults: &[Fault::Quirk(Quirk::ContextIsTask, V1)],
        caught_by: &["V1-CTX-005"],
        ..USUAL
    },
    Defect {
        name: "message-without-context",
        wrong: "Messages from the agent have no context.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]),
            &[Edit::Remove("message.contextId")],
        )],
        caught_by: &["V1-CTX-006"],
        ..USUAL
    },
    Defect {
        name: "message-of-no-task",
        wrong: "Messages from the agent name a task that is none.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::SendMessage]),
            &[Edit::Set("message.taskId", r#""no-such-task""#)],
        )],
        caught_by: &["V1-CTX-007"],
        ..USUAL
    },
    Defect {
        name: "history-of-elsewhere",
        wrong: "Messages in a history belong to another context.",
        faults: &[Fault::Edit(
            What::Reply,
            V1.of(&[Operation::GetTask]),
            &[Edit::Set("history.*.contextId", r#""elsewhere""#)],
        )],
        caught_by: &["V1-CTX-008"],
        ..USUAL
    },
    Defect {
        name: "any-version-taken",
        wrong: "SendMessage takes every version.",
        faults: &[Fault::Rule(Rule::VersionUnknown, V1.of(&[Operation::SendMessage]), Instead::Allow)],
        caught_by: &["V1-VER-001"],
        ..USUAL
    },
    Defect {
        name: "nonsense-version-taken",
        wrong: "A version that is none is taken.",
        faults: &[Fault::Rule(Rule::VersionNonsense, V1, Instead::Allow)],
        caught_by: &["V1-VER-002"],
        ..USUAL
    },
    Defect {
        name: "patch-version-refused",
        wrong: "A version with a patch number is refused.",
        faults: &[Fault::Rule(Rule::VersionPatch, V1, Instead::Refuse(Kind::Version))],
        caught_by: &["V1-VER-003"],
        ..USUAL
    },
    Defect {
        name: "no-version-is-an-accident",
        wrong: "A request without a version is an internal error.",
        faults: &[Fault::Rule(Rule::VersionAbsent, V1, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-VER-004"],
        ..USUAL
    },
    Defect {
        name: "version-query-ignored",
        wrong: "The version in the query is not read.",
        faults: &[Fault::Quirk(Quirk::NoVersionQuery, V1)],
        caught_by: &["V1-VER-005"],
        ..USUAL
    },
    Defect {
        name: "required-extension-optional",
        wrong: "A required extension need not be named.",
        profile: Profile::Guarded,
        faults: &[Fault::Rule(Rule::RequiredExtension, V1, Instead::Allow)],
        caught_by: &["V1-EXT-001"],
        ..USUAL
    },
    Defect {
        name: "unknown-extension-refused",
        wrong: "An extension nobody knows is refused.",
        faults: &[Fault::Rule(Rule::UnknownExtension, V1, Instead::Refuse(Kind::Unsupported))],
        caught_by: &["V1-EXT-002"],
        ..USUAL
    },
    Defect {
        name: "active-extensions-not-told",
        wrong: "The answer does not name the active extensions.",
        faults: &[Fault::Header(What::Reply, V1, "a2a-extensions", None)],
        caught_by: &["V1-EXT-003"],
        ..USUAL
    },
    Defect {
        name: "message-extensions-refused",
        wrong: "A message that names extensions is refused.",
        faults: &[Fault::Rule(Rule::MessageExtensions, V1, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-EXT-004"],
        ..USUAL
    },
];
