//! Objects of 0.3, message/send, tasks/get and tasks/cancel.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, RPC_V0_3, USUAL, V0_3};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.3-artifact-id-is-a-number",
        wrong: "In 0.3, the id of an artifact is a number.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]).saying(COMPLETE),
            &[Edit::Set("artifacts.*.artifactId", "7")],
        )],
        caught_by: &["V03-OBJ-001"],
        related: &["V03-EQ-001", "V01-GEN-001"],
        ..USUAL
    },
    Defect {
        name: "v0.3-text-part-without-kind",
        wrong: "In 0.3, a text part does not tell its kind.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]).saying("tck-artifact-text"),
            &[Edit::Rename("artifacts.*.parts.*.kind", "type")],
        )],
        caught_by: &["V03-OBJ-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-file-part-of-1.0",
        wrong: "In 0.3, a file part has its bytes elsewhere.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]).saying("tck-artifact-file"),
            &[Edit::Rename("artifacts.*.parts.*.file.bytes", "raw")],
        )],
        caught_by: &["V03-OBJ-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-link-part-of-1.0",
        wrong: "In 0.3, a link part has its address elsewhere.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]).saying("tck-artifact-file-url"),
            &[Edit::Rename("artifacts.*.parts.*.file.uri", "url")],
        )],
        caught_by: &["V03-OBJ-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-data-part-as-text",
        wrong: "In 0.3, a data part holds JSON as a text.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]).saying("tck-artifact-data"),
            &[Edit::Map("artifacts.*.parts.*.data", |data| *data = data.to_string().into())],
        )],
        caught_by: &["V03-OBJ-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-message-of-a-user",
        wrong: "In 0.3, the agent answers in the role of a user.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::SendMessage]).saying("tck-message-response"),
            &[Edit::Set("role", r#""user""#)],
        )],
        caught_by: &["V03-OBJ-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-artifacts-not-kept",
        wrong: "In 0.3, tasks/get leaves out the artifacts.",
        faults: &[Fault::Edit(
            What::Reply,
            V0_3.of(&[Operation::GetTask]).saying("tck-artifact-text"),
            &[Edit::Remove("artifacts")],
        )],
        caught_by: &["V03-OBJ-007", "V03-GET-004"],
        related: &["V03-OBJ-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-metadata-is-a-list",
        wrong: "In 0.3, the metadata of a task is a list.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::SendMessage]).saying(COMPLETE),
            &[Edit::Set("metadata", "[]")],
        )],
        caught_by: &["V03-SEND-001"],
        related: &["V03-SEND-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-completed-is-failed",
        wrong: "In 0.3, a completed task is read as failed.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]).saying(COMPLETE),
            &[Edit::Map("status.state", |state| {
                if *state == "completed" {
                    *state = "failed".into()
                }
            })],
        )],
        caught_by: &["V03-SEND-002"],
        related: &["V03-EQ-001"],
        ..USUAL
    },
    Defect {
        name: "v0.3-one-id-for-all",
        wrong: "In 0.3, every task has the same id.",
        faults: &[Fault::Quirk(Quirk::SameId, V0_3.saying(COMPLETE))],
        caught_by: &["V03-SEND-004"],
        related: &["V03-*"],
        ..USUAL
    },
    Defect {
        name: "v0.3-contexts-forgotten",
        wrong: "In 0.3, every message makes a context of its own.",
        faults: &[Fault::Quirk(Quirk::ForgetsContext, V0_3)],
        caught_by: &["V03-SEND-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-send-does-not-wait",
        wrong: "In 0.3, a blocking send is answered before its task has ended.",
        faults: &[Fault::Quirk(Quirk::DoesNotWait, V0_3.saying(COMPLETE))],
        caught_by: &["V03-SEND-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-running-is-completed",
        wrong: "In 0.3, a send that does not wait is answered with a completed task.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::SendMessage]).saying("tck-cancel"),
            &[Edit::Set("status.state", r#""completed""#)],
        )],
        caught_by: &["V03-SEND-007"],
        related: &["V03-CANCEL-002", "V03-EQ-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-unknown-task-is-made",
        wrong: "In 0.3, a message to an unknown task makes one with that id.",
        faults: &[Fault::Rule(Rule::UnknownTask, V0_3.of(&[Operation::SendMessage]), Instead::Allow)],
        caught_by: &["V03-SEND-008"],
        related: &["V03-EQ-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-ended-task-goes-on",
        wrong: "In 0.3, a message to an ended task is taken.",
        faults: &[Fault::Rule(Rule::SendToEnded, V0_3.of(&[Operation::SendMessage]), Instead::Allow)],
        caught_by: &["V03-SEND-009"],
        related: &["V03-SEND-010"],
        ..USUAL
    },
    Defect {
        name: "v0.3-refused-message-kept",
        wrong: "In 0.3, a refused message is kept in the history of the ended task.",
        faults: &[Fault::Quirk(Quirk::RefusedButKept, V0_3)],
        caught_by: &["V03-SEND-010"],
        ..USUAL
    },
    Defect {
        name: "v0.3-question-not-said",
        wrong: "In 0.3, a question does not say what is asked.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::SendMessage]).saying("tck-input-required"),
            &[Edit::Remove("status.message")],
        )],
        caught_by: &["V03-SEND-012"],
        ..USUAL
    },
    Defect {
        name: "v0.3-sign-in-takes-no-messages",
        wrong: "In 0.3, a task that waits for a sign-in takes no messages.",
        faults: &[Fault::Rule(
            Rule::FollowUp,
            V0_3.saying("tck-auth-required"),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V03-SEND-015"],
        ..USUAL
    },
    Defect {
        name: "v0.3-media-type-is-invalid-params",
        wrong: "In 0.3, an unsupported media type is refused with InvalidParamsError.",
        faults: &[Fault::Rule(Rule::MediaType, V0_3, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V03-SEND-016"],
        ..USUAL
    },
    Defect {
        name: "v0.3-line-ends-normalised",
        wrong: "In 0.3, CR LF in a text is kept as LF.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]),
            &[Edit::Map("history.*.parts.*.text", |text| {
                *text = text.as_str().unwrap_or_default().replace("\r\n", "\n").into()
            })],
        )],
        caught_by: &["V03-SEND-017"],
        ..USUAL
    },
    Defect {
        name: "v0.3-output-modes-refused",
        wrong: "In 0.3, `acceptedOutputModes` is refused, whatever it holds.",
        faults: &[Fault::Rule(Rule::OutputModes, V0_3, Instead::Refuse(Kind::ContentType))],
        caught_by: &["V03-SEND-018"],
        ..USUAL
    },
    Defect {
        name: "v0.3-unknown-task-is-invalid-params",
        wrong: "In 0.3, tasks/get of an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            RPC_V0_3.of(&[Operation::GetTask]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V03-GET-001"],
        related: &["V03-CARD-009", "V03-EQ-002", "V03-GEN-001", "V1-CARD-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-history-oldest",
        wrong: "In 0.3, `historyLength` keeps the oldest messages.",
        faults: &[Fault::Quirk(Quirk::OldestHistory, V0_3.of(&[Operation::GetTask]))],
        caught_by: &["V03-GET-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-ended-task-flickers",
        wrong: "In 0.3, an ended task is sometimes shown at work.",
        faults: &[Fault::Quirk(Quirk::Flickers, V0_3.saying("tck-stream-basic"))],
        caught_by: &["V03-GET-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-cancel-answers-for-another",
        wrong: "In 0.3, tasks/cancel answers with another task.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::CancelTask]),
            &[Edit::Set("id", r#""another""#)],
        )],
        caught_by: &["V03-CANCEL-001"],
        related: &["V03-CANCEL-002", "V03-CANCEL-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-canceled-is-failed",
        wrong: "In 0.3, a canceled task is read as failed.",
        faults: &[Fault::Edit(
            What::Reply,
            RPC_V0_3.of(&[Operation::GetTask]).saying("tck-cancel"),
            &[Edit::Map("status.state", |state| {
                if *state == "canceled" {
                    *state = "failed".into()
                }
            })],
        )],
        caught_by: &["V03-CANCEL-002"],
        related: &["V03-EQ-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-cancel-unknown-is-not-cancelable",
        wrong: "In 0.3, tasks/cancel of an unknown task is refused with TaskNotCancelableError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_3.of(&[Operation::CancelTask]),
            Instead::Refuse(Kind::TaskNotCancelable),
        )],
        caught_by: &["V03-CANCEL-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-cancel-ended-is-unsupported",
        wrong: "In 0.3, tasks/cancel of an ended task is refused with UnsupportedOperationError.",
        faults: &[Fault::Rule(Rule::CancelEnded, V0_3, Instead::Refuse(Kind::Unsupported))],
        caught_by: &["V03-CANCEL-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-second-cancel-is-an-accident",
        wrong: "In 0.3, a second tasks/cancel is an internal error.",
        faults: &[Fault::Rule(Rule::CancelAgain, V0_3, Instead::Refuse(Kind::Internal))],
        caught_by: &["V03-CANCEL-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-second-cancel-answers-the-task",
        wrong: "In 0.3, a second tasks/cancel is answered with the canceled task.",
        faults: &[Fault::Rule(Rule::CancelAgain, V0_3, Instead::Allow)],
        caught_by: &["V03-CANCEL-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-question-not-cancelable",
        wrong: "In 0.3, a task that waits for input cannot be canceled.",
        faults: &[Fault::Rule(Rule::CancelInterrupted, V0_3, Instead::Refuse(Kind::TaskNotCancelable))],
        caught_by: &["V03-CANCEL-006"],
        ..USUAL
    },
];
