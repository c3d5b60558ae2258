//! gRPC of 0.3: heads, frames, statuses, deadlines.

use baton_lab::generation::Binding;
use baton_lab::wire::request::Operation;

use super::{COMPLETE, Defect, USUAL, V0_3};
use crate::mutant::fault::{Fault, Instead, Only, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

const GRPC: Only = V0_3.over(Binding::Grpc);
const GET: Only = GRPC.of(&[Operation::GetTask]);
const SEND: Only = GRPC.of(&[Operation::SendMessage]).saying(COMPLETE);
const STREAM: Only = GRPC.of(&[Operation::SendStreamingMessage]);
const ON: Defect = Defect { profile: Profile::Grpc, ..USUAL };
/// Every case that sends, over gRPC.
const ALL_OF_V0_3: &[&str] = &["V03-*"];

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "old-grpc-content-type",
        wrong: "Answers over gRPC have the content type application/grpc+json (0.3).",
        faults: &[Fault::Header(What::Reply, SEND, "content-type", Some("application/grpc+json"))],
        caught_by: &["V03-GRPC-001"],
        ..ON
    },
    Defect {
        name: "old-grpc-two-answers",
        wrong: "Answers over gRPC come twice (0.3).",
        faults: &[Fault::Quirk(Quirk::TwoAnswers, SEND)],
        caught_by: &["V03-GRPC-002"],
        related: ALL_OF_V0_3,
        ..ON
    },
    Defect {
        name: "old-grpc-without-status",
        wrong: "Answers over gRPC end without a status (0.3).",
        faults: &[Fault::Header(What::Trailers, SEND, "grpc-status", None)],
        caught_by: &["V03-GRPC-003"],
        related: ALL_OF_V0_3,
        ..ON
    },
    Defect {
        name: "old-grpc-error-is-http",
        wrong: "An unknown task is HTTP 404 over gRPC (0.3).",
        faults: &[Fault::Status(What::Refusal(Some(Kind::TaskNotFound)), GRPC, 404)],
        caught_by: &["V03-GRPC-004"],
        related: ALL_OF_V0_3,
        ..ON
    },
    Defect {
        name: "old-grpc-squeezed",
        wrong: "Messages are compressed for everybody (0.3).",
        faults: &[Fault::Quirk(Quirk::Squeezes, SEND)],
        caught_by: &["V03-GRPC-005"],
        related: ALL_OF_V0_3,
        ..ON
    },
    Defect {
        name: "old-grpc-wrong-field",
        wrong: "A text is a number in the messages of gRPC (0.3).",
        faults: &[Fault::Quirk(Quirk::WrongField, GET)],
        caught_by: &["V03-GRPC-006"],
        ..ON
    },
    Defect {
        name: "old-grpc-unknown-task",
        wrong: "An unknown task is INVALID_ARGUMENT over gRPC (0.3).",
        faults: &[Fault::Rule(Rule::UnknownTask, GET, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V03-GRPC-007"],
        related: &["V03-*", "V1-CARD-004"],
        ..ON
    },
    Defect {
        name: "old-grpc-unknown-method",
        wrong: "An unknown method is INVALID_ARGUMENT over gRPC (0.3).",
        faults: &[Fault::Rule(Rule::UnknownMethod, GRPC, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V03-GRPC-008"],
        ..ON
    },
    Defect {
        name: "old-grpc-unknown-service",
        wrong: "An unknown service is NOT_FOUND (0.3).",
        faults: &[Fault::Rule(Rule::UnknownService, GRPC, Instead::Refuse(Kind::TaskNotFound))],
        caught_by: &["V03-GRPC-009"],
        ..ON
    },
    Defect {
        name: "old-grpc-missing-message",
        wrong: "A send without a message is INTERNAL over gRPC (0.3).",
        faults: &[Fault::Rule(Rule::MessageMissing, GRPC, Instead::Refuse(Kind::Internal))],
        caught_by: &["V03-GRPC-010"],
        related: &["V03-*"],
        ..ON
    },
    Defect {
        name: "old-grpc-dies-of-bytes",
        wrong: "Bytes that are no message break the call (0.3).",
        faults: &[Fault::Rule(Rule::NotProtobuf, GRPC, Instead::HangUp)],
        caught_by: &["V03-GRPC-011"],
        ..ON
    },
    Defect {
        name: "old-grpc-dies-of-nothing",
        wrong: "A call without a message is broken off (0.3).",
        faults: &[Fault::Rule(Rule::NoFrame, GRPC, Instead::HangUp)],
        caught_by: &["V03-GRPC-012"],
        ..ON
    },
    Defect {
        name: "old-grpc-dies-of-two",
        wrong: "A call with two messages is broken off (0.3).",
        faults: &[Fault::Rule(Rule::TwoFrames, GRPC, Instead::HangUp)],
        caught_by: &["V03-GRPC-013"],
        ..ON
    },
    Defect {
        name: "old-grpc-takes-any-compression",
        wrong: "The flag of compressed messages is not looked at (0.3).",
        faults: &[Fault::Rule(Rule::Squeezed, GRPC, Instead::Allow)],
        caught_by: &["V03-GRPC-014"],
        ..ON
    },
    Defect {
        name: "old-grpc-unknown-field",
        wrong: "Unknown fields are refused (0.3).",
        faults: &[Fault::Rule(Rule::UnknownMember, GET, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V03-GRPC-015"],
        ..ON
    },
    Defect {
        name: "old-grpc-stream-without-status",
        wrong: "Streams over gRPC end without a status (0.3).",
        faults: &[Fault::Header(What::Trailers, STREAM, "grpc-status", None)],
        caught_by: &["V03-GRPC-016"],
        related: ALL_OF_V0_3,
        ..ON
    },
    Defect {
        name: "old-grpc-event-before-error",
        wrong: "A subscription to an unknown task begins with an empty event (0.3).",
        faults: &[Fault::Quirk(Quirk::EventBeforeRefusal, GRPC.of(&[Operation::SubscribeToTask]))],
        caught_by: &["V03-GRPC-017"],
        related: ALL_OF_V0_3,
        ..ON
    },
    Defect {
        name: "old-grpc-no-deadline",
        wrong: "Calls have no deadlines (0.3).",
        faults: &[Fault::Quirk(Quirk::NoDeadline, GRPC.of(&[Operation::SendMessage]))],
        caught_by: &["V03-GRPC-018"],
        ..ON
    },
    Defect {
        name: "old-grpc-deadline-cancels",
        wrong: "A stream that ends at its deadline cancels the task (0.3).",
        faults: &[Fault::Quirk(Quirk::DeadlineCancels, GRPC)],
        caught_by: &["V03-GRPC-019"],
        ..ON
    },
    Defect {
        name: "old-grpc-strangers-let-in",
        wrong: "Over gRPC strangers are let in (0.3).",
        profile: Profile::GuardedGrpc,
        faults: &[Fault::Rule(Rule::NoCredentials, GRPC, Instead::Allow)],
        caught_by: &["V03-AUTH-001"],
        related: &["V03-AUTH-002", "V03-EXT-003"],
        ..ON
    },
    Defect {
        name: "old-grpc-strangers-permission-denied",
        wrong: "Over gRPC strangers are PERMISSION_DENIED (0.3).",
        profile: Profile::GuardedGrpc,
        faults: &[Fault::Rule(Rule::NoCredentials, GRPC, Instead::Refuse(Kind::Forbidden))],
        caught_by: &["V03-AUTH-002"],
        ..ON
    },
    Defect {
        name: "old-grpc-tasks-of-its-own",
        wrong: "Tasks of JSON-RPC are not known over gRPC (0.3).",
        faults: &[Fault::Rule(Rule::OtherBinding, GRPC, Instead::Refuse(Kind::TaskNotFound))],
        caught_by: &["V03-EQ-001"],
        related: &["V03-EQ-*"],
        ..ON
    },
];
