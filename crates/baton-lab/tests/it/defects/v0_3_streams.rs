//! message/stream and tasks/resubscribe of 0.3.

use baton_lab::wire::request::Operation;

use super::{COMPLETE, RPC_V0_3, USUAL, V0_3};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Cut, Defect, Fault, Instead, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "v0.3-stream-is-plain-text",
        wrong: "In 0.3, a stream has the content type text/plain.",
        faults: &[Fault::Header(
            What::Event,
            V0_3.of(&[Operation::SendStreamingMessage]).saying(COMPLETE),
            "content-type",
            Some("text/plain"),
        )],
        caught_by: &["V03-STREAM-001"],
        related: &["V03-STREAM-*", "V03-REST-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-events-numbered-anew",
        wrong: "In 0.3, events have ids of their own instead of the request's.",
        faults: &[Fault::Edit(
            What::Envelope,
            RPC_V0_3.of(&[Operation::SendStreamingMessage]),
            &[Edit::Set("id", "1")],
        )],
        caught_by: &["V03-STREAM-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-final-left-out",
        wrong: "In 0.3, updates that are not the last have no `final`.",
        faults: &[Fault::Edit(
            What::Event,
            RPC_V0_3.saying("tck-stream-basic"),
            &[Edit::Map("", |event| {
                event
                    .as_object_mut()
                    .into_iter()
                    .for_each(|event| event.retain(|name, value| name != "final" || *value == true))
            })],
        )],
        caught_by: &["V03-STREAM-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-stream-begins-without-task",
        wrong: "In 0.3, the stream of a send leaves out the task.",
        faults: &[Fault::Events(
            V0_3.of(&[Operation::SendStreamingMessage]).saying(COMPLETE),
            Cut::DropFirst,
        )],
        caught_by: &["V03-STREAM-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-never-final",
        wrong: "In 0.3, no event is final.",
        faults: &[Fault::Edit(
            What::Event,
            RPC_V0_3.saying(COMPLETE),
            &[Edit::Map("final", |last| *last = false.into())],
        )],
        caught_by: &["V03-STREAM-005"],
        ..USUAL
    },
    Defect {
        name: "v0.3-back-to-submitted",
        wrong: "In 0.3, a stream goes back to `submitted`.",
        faults: &[Fault::Events(
            V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
            Cut::Insert(
                r#"{"statusUpdate": {"taskId": "$task", "contextId": "$context", "status": {"state": "TASK_STATE_SUBMITTED"}}}"#,
            ),
        )],
        caught_by: &["V03-STREAM-006"],
        ..USUAL
    },
    Defect {
        name: "v0.3-updates-of-elsewhere",
        wrong: "In 0.3, updates name another context.",
        faults: &[Fault::Edit(
            What::Event,
            RPC_V0_3.saying("tck-stream-basic"),
            &[Edit::Map("", |event| {
                if event["kind"] != "task" {
                    event["contextId"] = "elsewhere".into()
                }
            })],
        )],
        caught_by: &["V03-STREAM-007"],
        ..USUAL
    },
    Defect {
        name: "v0.3-message-twice",
        wrong: "In 0.3, a streamed message comes twice.",
        faults: &[Fault::Events(V0_3.of(&[Operation::SendStreamingMessage]), Cut::Twice("message"))],
        caught_by: &["V03-STREAM-008"],
        ..USUAL
    },
    Defect {
        name: "v0.3-question-keeps-stream-open",
        wrong: "In 0.3, a stream stays open at a question.",
        faults: &[Fault::Events(
            V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-input-required"),
            Cut::Open,
        )],
        caught_by: &["V03-STREAM-009"],
        related: &["V03-STREAM-010", "V03-STREAM-011"],
        ..USUAL
    },
    Defect {
        name: "v0.3-question-not-final",
        wrong: "In 0.3, the update that asks for input is not final.",
        faults: &[Fault::Edit(
            What::Event,
            RPC_V0_3.saying("tck-input-required"),
            &[Edit::Map("", |event| {
                if event["status"]["state"] == "input-required" && event["kind"] != "task" {
                    event["final"] = false.into()
                }
            })],
        )],
        caught_by: &["V03-STREAM-010"],
        ..USUAL
    },
    Defect {
        name: "v0.3-answer-not-streamed",
        wrong: "In 0.3, the answer to a question cannot be streamed.",
        faults: &[Fault::Rule(
            Rule::FollowUp,
            V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-input-required"),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V03-STREAM-011"],
        ..USUAL
    },
    Defect {
        name: "v0.3-chunk-lost",
        wrong: "In 0.3, a chunk of an artifact is not told.",
        faults: &[Fault::Events(
            V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-stream-chunked"),
            Cut::DropSecondChunk,
        )],
        caught_by: &["V03-STREAM-012"],
        ..USUAL
    },
    Defect {
        name: "v0.3-cancellation-not-told",
        wrong: "In 0.3, the stream of a canceled task ends without a word.",
        faults: &[Fault::Events(
            V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-cancel"),
            Cut::CloseBeforeEnd,
        )],
        caught_by: &["V03-STREAM-013"],
        ..USUAL
    },
    Defect {
        name: "v0.3-closed-stream-cancels",
        wrong: "In 0.3, a client that closes its stream cancels the task.",
        faults: &[Fault::Quirk(
            Quirk::CancelOnDisconnect,
            V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-cancel"),
        )],
        caught_by: &["V03-STREAM-014"],
        ..USUAL
    },
    Defect {
        name: "v0.3-work-stops-without-listener",
        wrong: "In 0.3, work stops when nobody listens.",
        faults: &[Fault::Quirk(
            Quirk::CancelOnDisconnect,
            V0_3.of(&[Operation::SendStreamingMessage]).saying("tck-stream-basic"),
        )],
        caught_by: &["V03-STREAM-015"],
        // Whoever comes back before the loss was noticed finds the work still going.
        related: &["V03-SUB-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-streamed-unknown-task",
        wrong: "In 0.3, a streamed message to an unknown task is refused with InvalidParamsError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_3.of(&[Operation::SendStreamingMessage]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V03-STREAM-016"],
        ..USUAL
    },
    Defect {
        name: "v0.3-ended-task-streams",
        wrong: "In 0.3, a streamed message to an ended task is taken.",
        faults: &[Fault::Rule(
            Rule::SendToEnded,
            V0_3.of(&[Operation::SendStreamingMessage]),
            Instead::Allow,
        )],
        caught_by: &["V03-STREAM-017"],
        ..USUAL
    },
    Defect {
        name: "v0.3-streaming-off-streams",
        wrong: "In 0.3, an agent without streaming streams.",
        profile: Profile::Bare,
        faults: &[Fault::Rule(
            Rule::NoStreaming,
            V0_3.of(&[Operation::SendStreamingMessage]),
            Instead::Allow,
        )],
        caught_by: &["V03-STREAM-018"],
        related: &["V03-STREAM-019"],
        ..USUAL
    },
    Defect {
        name: "v0.3-streaming-off-is-invalid-params",
        wrong: "In 0.3, streams that are not offered are refused with InvalidParamsError.",
        profile: Profile::Bare,
        faults: &[Fault::Rule(
            Rule::NoStreaming,
            V0_3.of(&[Operation::SendStreamingMessage]),
            Instead::Refuse(Kind::InvalidParams),
        )],
        caught_by: &["V03-STREAM-019"],
        ..USUAL
    },
    Defect {
        name: "v0.3-subscription-ends-early",
        wrong: "In 0.3, a subscription closes before the end is told.",
        faults: &[Fault::Events(
            V0_3.of(&[Operation::SubscribeToTask]).saying("tck-stream-basic"),
            Cut::CloseBeforeEnd,
        )],
        caught_by: &["V03-SUB-001", "V03-SUB-002"],
        ..USUAL
    },
    Defect {
        name: "v0.3-subscribe-unknown-is-unsupported",
        wrong: "In 0.3, a subscription to an unknown task is refused with UnsupportedOperationError.",
        faults: &[Fault::Rule(
            Rule::UnknownTask,
            V0_3.of(&[Operation::SubscribeToTask]),
            Instead::Refuse(Kind::Unsupported),
        )],
        caught_by: &["V03-SUB-003"],
        ..USUAL
    },
    Defect {
        name: "v0.3-ended-subscription-waits",
        wrong: "In 0.3, a subscription to an ended task stays open.",
        faults: &[
            Fault::Rule(Rule::SubscribeEnded, V0_3, Instead::Allow),
            Fault::Events(V0_3.of(&[Operation::SubscribeToTask]).saying(COMPLETE), Cut::Open),
        ],
        caught_by: &["V03-SUB-004"],
        ..USUAL
    },
    Defect {
        name: "v0.3-streaming-off-subscribed",
        wrong: "In 0.3, an agent without streaming takes subscriptions.",
        profile: Profile::Bare,
        faults: &[
            Fault::Rule(Rule::NoStreaming, V0_3.of(&[Operation::SubscribeToTask]), Instead::Allow),
            Fault::Rule(Rule::SubscribeEnded, V0_3, Instead::Allow),
        ],
        caught_by: &["V03-SUB-005"],
        ..USUAL
    },
];
