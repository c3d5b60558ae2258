//! SendStreamingMessage.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, RPC, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Cut, Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "stream-is-plain-text",
        wrong: "A stream has the content type text/plain.",
        faults: &[Fault::Header(
            What::Event,
            V1.of(&[Operation::SendStreamingMessage]).saying(COMPLETE),
            "content-type",
            Some("text/plain"),
        )],
        caught_by: &["V1-STREAM-001"],
        related: &["V1-STREAM-*"],
        ..USUAL
    },
    Defect {
        name: "stream-begins-without-task",
        wrong: "The stream of a send leaves out the task.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
            Cut::DropFirst,
        )],
        caught_by: &["V1-STREAM-002"],
        related: &["V1-MULTI-002", "V1-STREAM-003", "V1-STREAM-012", "V1-STREAM-013", "V1-STREAM-022"],
        ..USUAL
    },
    Defect {
        name: "task-again",
        wrong: "The whole task comes again in the middle of a stream.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
            Cut::TaskAgain,
        )],
        caught_by: &["V1-STREAM-003"],
        ..USUAL
    },
    Defect {
        name: "message-among-updates",
        wrong: "A message comes between the updates of a task.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying(COMPLETE),
            Cut::Insert(r#"{"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}"#),
        )],
        caught_by: &["V1-STREAM-004"],
        related: &["V1-STREAM-016"],
        ..USUAL
    },
    Defect {
        name: "stream-ends-early",
        wrong: "The stream closes before the terminal state is told.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
            Cut::CloseBeforeEnd,
        )],
        caught_by: &["V1-STREAM-005"],
        related: &["V1-MULTI-002", "V1-STREAM-009", "V1-STREAM-012"],
        ..USUAL
    },
    Defect {
        name: "failed-stream-stays-open",
        wrong: "The stream of a failed task is not closed.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-task-failure"),
            Cut::Open,
        )],
        caught_by: &["V1-STREAM-006"],
        ..USUAL
    },
    Defect {
        name: "rejected-stream-stays-open",
        wrong: "The stream of a rejected task is not closed.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-reject-task"),
            Cut::Open,
        )],
        caught_by: &["V1-STREAM-007"],
        ..USUAL
    },
    Defect {
        name: "message-twice",
        wrong: "A streamed message comes twice.",
        faults: &[Fault::Events(V1.of(&[Operation::SendStreamingMessage]), Cut::Twice("message"))],
        caught_by: &["V1-STREAM-008"],
        ..USUAL
    },
    Defect {
        name: "back-to-submitted",
        wrong: "A stream goes back to SUBMITTED.",
        faults: &[Fault::Events(
            V1.saying("tck-stream-basic"),
            Cut::Insert(
                r#"{"statusUpdate": {"taskId": "$task", "contextId": "$context", "status": {"state": "TASK_STATE_SUBMITTED"}}}"#,
            ),
        )],
        caught_by: &["V1-STREAM-009"],
        related: &["V1-MULTI-001", "V1-MULTI-002", "V1-EQUIV-005"],
        ..USUAL
    },
    Defect {
        name: "events-held-back",
        wrong: "Events are told when the task has ended, all at once.",
        faults: &[Fault::Events(V1.of(&[Operation::SendStreamingMessage]).saying("tck-cancel"), Cut::Hold)],
        caught_by: &["V1-STREAM-010"],
        related: &["V1-STREAM-021"],
        ..USUAL
    },
    Defect {
        name: "chunk-lost",
        wrong: "A chunk of an artifact is not told.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-chunked"),
            Cut::DropSecondChunk,
        )],
        caught_by: &["V1-STREAM-011"],
        ..USUAL
    },
    Defect {
        name: "artifact-not-told",
        wrong: "An artifact is in the task, but not on the stream.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
            Cut::DropKind("artifactUpdate"),
        )],
        caught_by: &["V1-STREAM-012"],
        related: &["V1-MULTI-002", "V1-STREAM-009"],
        ..USUAL
    },
    Defect {
        name: "updates-without-context",
        wrong: "Status updates do not name their context.",
        faults: &[Fault::Edit(
            What::Event,
            V1.saying("tck-stream-basic"),
            &[Edit::Remove("statusUpdate.contextId")],
        )],
        caught_by: &["V1-STREAM-013"],
        ..USUAL
    },
    Defect {
        name: "events-numbered-anew",
        wrong: "Events of a stream have ids of their own instead of the request's.",
        faults: &[Fault::Edit(
            What::Envelope,
            RPC.of(&[Operation::SendStreamingMessage]),
            &[Edit::Set("id", "1")],
        )],
        caught_by: &["V1-STREAM-014"],
        ..USUAL
    },
    Defect {
        name: "times-go-back",
        wrong: "Updates have times before the task began.",
        faults: &[Fault::Edit(
            What::Event,
            V1.saying("tck-stream-basic"),
            &[Edit::Set("statusUpdate.status.timestamp", r#""2001-01-01T00:00:00.000Z""#)],
        )],
        caught_by: &["V1-STREAM-015"],
        ..USUAL
    },
    Defect {
        name: "line-ends-break-frames",
        wrong: "Line ends in a text are line ends in the frame.",
        faults: &[Fault::Quirk(Quirk::RawLineEnds, V1)],
        caught_by: &["V1-STREAM-016"],
        ..USUAL
    },
    Defect {
        name: "streamed-unknown-task",
        wrong: "A streamed message to an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V1.of(&[Operation::SendStreamingMessage]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V1-STREAM-017"],
        ..USUAL
    },
    Defect {
        name: "streamed-ended-task",
        wrong: "A streamed message to an ended task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::SendToEnded,
            V1.of(&[Operation::SendStreamingMessage]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V1-STREAM-018"],
        ..USUAL
    },
    Defect {
        name: "question-not-told",
        wrong: "A stream does not tell that input is required.",
        faults: &[Fault::Events(
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-input-required"),
            Cut::DropState("TASK_STATE_INPUT_REQUIRED"),
        )],
        caught_by: &["V1-STREAM-019"],
        ..USUAL
    },
    Defect {
        name: "artifacts-without-id",
        wrong: "Artifacts on a stream have no id.",
        faults: &[Fault::Edit(
            What::Event,
            V1.saying(COMPLETE),
            &[Edit::Remove("artifactUpdate.artifact.artifactId")],
        )],
        caught_by: &["V1-STREAM-020"],
        ..USUAL
    },
    Defect {
        name: "closed-stream-cancels",
        wrong: "A client that closes its stream cancels the task.",
        faults: &[Fault::Quirk(
            Quirk::CancelOnDisconnect,
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-cancel"),
        )],
        caught_by: &["V1-STREAM-021"],
        ..USUAL
    },
    Defect {
        name: "work-stops-without-listener",
        wrong: "Work stops when nobody listens.",
        faults: &[Fault::Quirk(
            Quirk::CancelOnDisconnect,
            V1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
        )],
        caught_by: &["V1-STREAM-022"],
        ..USUAL
    },
    Defect {
        name: "streamed-missing-message",
        wrong: "A streamed send without a message is an internal error.",
        faults: &[Fault::Rule(
            Rule::MessageMissing,
            V1.of(&[Operation::SendStreamingMessage]),
            Instead::Refuse(Kind::Internal),
        )],
        caught_by: &["V1-STREAM-023"],
        ..USUAL
    },
];
