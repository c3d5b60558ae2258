//! tasks/sendSubscribe and tasks/resubscribe of 0.1.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, USUAL, V0_1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Cut, Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.1-stream-is-plain-text",
        wrong: "In 0.1, a stream has the content type text/plain.",
        faults: &[Fault::Header(
            What::Event,
            V0_1.of(&[Operation::SendStreamingMessage]).saying(COMPLETE),
            "content-type",
            Some("text/plain"),
        )],
        caught_by: &["V01-STREAM-001"],
        related: &["V01-STREAM-*"],
        ..USUAL
    },
    Defect {
        name: "v0.1-events-numbered-anew",
        wrong: "In 0.1, events have ids of their own instead of the request's.",
        faults: &[Fault::Edit(
            What::Envelope,
            V0_1.of(&[Operation::SendStreamingMessage]),
            &[Edit::Set("id", "1")],
        )],
        caught_by: &["V01-STREAM-002"],
        ..USUAL
    },
    Defect {
        name: "v0.1-artifact-without-parts",
        wrong: "In 0.1, artifacts are streamed without parts.",
        faults: &[Fault::Edit(
            What::Event,
            V0_1.saying("tck-stream-basic"),
            &[Edit::Rename("artifact.parts", "content")],
        )],
        caught_by: &["V01-STREAM-003"],
        ..USUAL
    },
    Defect {
        name: "v0.1-stream-begins-with-artifact",
        wrong: "In 0.1, a stream begins with an artifact.",
        faults: &[
            Fault::Events(V0_1.of(&[Operation::SendStreamingMessage]).saying(COMPLETE), Cut::DropFirst),
            Fault::Events(
                V0_1.of(&[Operation::SendStreamingMessage]).saying(COMPLETE),
                Cut::DropState("TASK_STATE_WORKING"),
            ),
        ],
        caught_by: &["V01-STREAM-004"],
        ..USUAL
    },
    Defect {
        name: "v0.1-never-final",
        wrong: "In 0.1, no event is final.",
        faults: &[Fault::Edit(
            What::Event,
            V0_1.saying(COMPLETE),
            &[Edit::Map("final", |last| *last = false.into())],
        )],
        caught_by: &["V01-STREAM-005"],
        related: &["V01-STREAM-017"],
        ..USUAL
    },
    Defect {
        name: "v0.1-odd-event-names",
        wrong: "In 0.1, events are called `done`.",
        faults: &[Fault::Quirk(Quirk::OddEventNames, V0_1)],
        caught_by: &["V01-STREAM-006"],
        ..USUAL
    },
    Defect {
        name: "v0.1-artifact-of-another-task",
        wrong: "In 0.1, artifacts are streamed with the id of another task.",
        faults: &[Fault::Edit(
            What::Event,
            V0_1.saying("tck-stream-basic"),
            &[Edit::Map("", |event| {
                if event.get("artifact").is_some() {
                    event["id"] = "another".into()
                }
            })],
        )],
        caught_by: &["V01-STREAM-007"],
        related: &["V01-SUB-*"],
        ..USUAL
    },
    Defect {
        name: "v0.1-back-to-submitted",
        wrong: "In 0.1, a stream goes back to `submitted`.",
        faults: &[Fault::Events(
            V0_1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
            Cut::Insert(
                r#"{"statusUpdate": {"taskId": "$task", "contextId": "$context", "status": {"state": "TASK_STATE_SUBMITTED"}}}"#,
            ),
        )],
        caught_by: &["V01-STREAM-008"],
        ..USUAL
    },
    Defect {
        name: "v0.1-question-keeps-stream-open",
        wrong: "In 0.1, a stream stays open at a question.",
        faults: &[Fault::Events(
            V0_1.of(&[Operation::SendStreamingMessage]).saying("tck-input-required"),
            Cut::Open,
        )],
        caught_by: &["V01-STREAM-009"],
        related: &["V01-STREAM-010", "V01-STREAM-011"],
        ..USUAL
    },
    Defect {
        name: "v0.1-question-not-final",
        wrong: "In 0.1, the status that asks for input is not final.",
        faults: &[Fault::Edit(
            What::Event,
            V0_1.saying("tck-input-required"),
            &[Edit::Map("", |event| {
                if event["status"]["state"] == "input-required" {
                    event["final"] = false.into()
                }
            })],
        )],
        caught_by: &["V01-STREAM-010"],
        ..USUAL
    },
    Defect {
        name: "v0.1-answer-not-streamed",
        wrong: "In 0.1, the answer to a question cannot be streamed.",
        faults: &[Fault::Rule(
            Rule::FollowUp,
            V0_1.of(&[Operation::SendStreamingMessage]).saying("tck-input-required"),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V01-STREAM-011"],
        ..USUAL
    },
    Defect {
        name: "v0.1-chunk-lost",
        wrong: "In 0.1, a chunk of an artifact is not told.",
        faults: &[Fault::Events(
            V0_1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-chunked"),
            Cut::DropSecondChunk,
        )],
        caught_by: &["V01-STREAM-012"],
        ..USUAL
    },
    Defect {
        name: "v0.1-cancellation-not-told",
        wrong: "In 0.1, the stream of a canceled task ends without a word.",
        faults: &[Fault::Events(
            V0_1.of(&[Operation::SendStreamingMessage]).saying("tck-cancel"),
            Cut::CloseBeforeEnd,
        )],
        caught_by: &["V01-STREAM-013"],
        ..USUAL
    },
    Defect {
        name: "v0.1-closed-stream-cancels",
        wrong: "In 0.1, a client that closes its stream cancels the task.",
        faults: &[Fault::Quirk(
            Quirk::CancelOnDisconnect,
            V0_1.of(&[Operation::SendStreamingMessage]).saying("tck-cancel"),
        )],
        caught_by: &["V01-STREAM-014"],
        ..USUAL
    },
    Defect {
        name: "v0.1-work-stops-without-listener",
        wrong: "In 0.1, work stops when nobody listens.",
        faults: &[Fault::Quirk(
            Quirk::CancelOnDisconnect,
            V0_1.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
        )],
        caught_by: &["V01-STREAM-015"],
        // Whoever comes back before the loss was noticed finds the work still going.
        related: &["V01-SUB-002"],
        ..USUAL
    },
    Defect {
        name: "v0.1-streaming-off-streams",
        wrong: "In 0.1, an agent without streaming streams.",
        profile: Profile::Bare,
        faults: &[Fault::Rule(
            Rule::NoStreaming,
            V0_1.of(&[Operation::SendStreamingMessage]),
            Instead::Allow,
        )],
        caught_by: &["V01-STREAM-016"],
        ..USUAL
    },
    Defect {
        name: "v0.1-door-without-stream",
        wrong: "In 0.1, the door for streams answers with a task.",
        faults: &[Fault::Quirk(Quirk::DoorWithoutStream, V0_1)],
        caught_by: &["V01-STREAM-017"],
        ..USUAL
    },
    Defect {
        name: "v0.1-door-for-all",
        wrong: "In 0.1, the door for streams takes every method.",
        faults: &[Fault::Rule(Rule::OtherAtDoor, V0_1, Instead::Allow)],
        caught_by: &["V01-STREAM-018"],
        ..USUAL
    },
    Defect {
        name: "v0.1-subscription-ends-early",
        wrong: "In 0.1, a subscription closes before the end is told.",
        faults: &[Fault::Events(
            V0_1.of(&[Operation::SubscribeToTask]).saying("tck-stream-basic"),
            Cut::CloseBeforeEnd,
        )],
        caught_by: &["V01-SUB-001", "V01-SUB-002"],
        ..USUAL
    },
    Defect {
        name: "v0.1-subscribe-unknown-is-an-accident",
        wrong: "In 0.1, a subscription to an unknown task is an internal error.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_1.of(&[Operation::SubscribeToTask]),
            Instead::Refuse(Kind::Internal),
        )],
        caught_by: &["V01-SUB-003"],
        ..USUAL
    },
    Defect {
        name: "v0.1-ended-subscription-waits",
        wrong: "In 0.1, a subscription to an ended task stays open.",
        faults: &[
            Fault::Rule(Rule::SubscribeEnded, V0_1, Instead::Allow),
            Fault::Events(V0_1.of(&[Operation::SubscribeToTask]).saying(COMPLETE), Cut::Open),
        ],
        caught_by: &["V01-SUB-004"],
        ..USUAL
    },
];
