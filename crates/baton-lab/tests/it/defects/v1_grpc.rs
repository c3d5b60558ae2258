//! gRPC of 1.0: heads, frames, statuses, deadlines, and what the other suites ask of every binding.

use baton_lab::generation::Binding;
use baton_lab::wire::request::Operation;

use super::{COMPLETE, Defect, USUAL, V1};
use crate::mutant::edit::Edit;
use crate::mutant::fault::{Fault, Instead, Only, Quirk, Rule, What};
use crate::mutant::profile::Profile;
use crate::mutant::refusal::Kind;

const GRPC: Only = V1.over(Binding::Grpc);
const GET: Only = GRPC.of(&[Operation::GetTask]);
const SEND: Only = GRPC.of(&[Operation::SendMessage]).saying(COMPLETE);
const STREAM: Only = GRPC.of(&[Operation::SendStreamingMessage]);
const ON: Defect = Defect { profile: Profile::Grpc, ..USUAL };
/// Every case that sends, over gRPC.
const ALL_OF_V1: &[&str] = &["V1-*"];

pub(super) const ALL: &[Defect] = &[
    Defect {
        name: "grpc-content-type",
        wrong: "Answers over gRPC have the content type application/grpc+json.",
        faults: &[Fault::Header(What::Reply, SEND, "content-type", Some("application/grpc+json"))],
        caught_by: &["V1-GRPC-001"],
        ..ON
    },
    Defect {
        name: "grpc-two-answers",
        wrong: "Answers over gRPC come twice.",
        faults: &[Fault::Quirk(Quirk::TwoAnswers, SEND)],
        caught_by: &["V1-GRPC-002"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-without-status",
        wrong: "Answers over gRPC end without a status.",
        faults: &[Fault::Header(What::Trailers, SEND, "grpc-status", None)],
        caught_by: &["V1-GRPC-003"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-error-is-http",
        wrong: "An unknown task is HTTP 404 over gRPC.",
        faults: &[Fault::Status(What::Refusal(Some(Kind::TaskNotFound)), GRPC, 404)],
        caught_by: &["V1-GRPC-004"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-squeezed",
        wrong: "Messages are compressed for everybody.",
        faults: &[Fault::Quirk(Quirk::Squeezes, SEND)],
        caught_by: &["V1-GRPC-005"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-wrong-field",
        wrong: "A text is a number in the messages of gRPC.",
        faults: &[Fault::Quirk(Quirk::WrongField, GET)],
        caught_by: &["V1-GRPC-006"],
        ..ON
    },
    Defect {
        name: "grpc-unknown-task",
        wrong: "An unknown task is INVALID_ARGUMENT over gRPC.",
        faults: &[Fault::Rule(Rule::UnknownTask, GET, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-GRPC-007", "V1-ERR-001"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-without-details",
        wrong: "Errors over gRPC have no details.",
        faults: &[Fault::Edit(What::Refusal(None), GRPC, &[Edit::Set("details", "[]")])],
        caught_by: &["V1-GRPC-008"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-unknown-method",
        wrong: "An unknown method is INVALID_ARGUMENT over gRPC.",
        faults: &[Fault::Rule(Rule::UnknownMethod, GRPC, Instead::Refuse(Kind::InvalidRequest))],
        caught_by: &["V1-GRPC-009"],
        ..ON
    },
    Defect {
        name: "grpc-unknown-service",
        wrong: "An unknown service is NOT_FOUND.",
        faults: &[Fault::Rule(Rule::UnknownService, GRPC, Instead::Refuse(Kind::TaskNotFound))],
        caught_by: &["V1-GRPC-010"],
        ..ON
    },
    Defect {
        name: "grpc-missing-message",
        wrong: "A send without a message is INTERNAL over gRPC.",
        faults: &[Fault::Rule(Rule::MessageMissing, GRPC, Instead::Refuse(Kind::Internal))],
        caught_by: &["V1-GRPC-011"],
        related: &["V1-SEND-020", "V1-STREAM-023"],
        ..ON
    },
    Defect {
        name: "grpc-dies-of-bytes",
        wrong: "Bytes that are no message break the call.",
        faults: &[Fault::Rule(Rule::NotProtobuf, GRPC, Instead::HangUp)],
        caught_by: &["V1-GRPC-012"],
        ..ON
    },
    Defect {
        name: "grpc-dies-of-nothing",
        wrong: "A call without a message is broken off.",
        faults: &[Fault::Rule(Rule::NoFrame, GRPC, Instead::HangUp)],
        caught_by: &["V1-GRPC-013"],
        ..ON
    },
    Defect {
        name: "grpc-dies-of-two",
        wrong: "A call with two messages is broken off.",
        faults: &[Fault::Rule(Rule::TwoFrames, GRPC, Instead::HangUp)],
        caught_by: &["V1-GRPC-014"],
        ..ON
    },
    Defect {
        name: "grpc-takes-any-compression",
        wrong: "The flag of compressed messages is not looked at.",
        faults: &[Fault::Rule(Rule::Squeezed, GRPC, Instead::Allow)],
        caught_by: &["V1-GRPC-015"],
        ..ON
    },
    Defect {
        name: "grpc-unknown-field",
        wrong: "Unknown fields are refused.",
        faults: &[Fault::Rule(Rule::UnknownMember, GET, Instead::Refuse(Kind::InvalidParams))],
        caught_by: &["V1-GRPC-016"],
        ..ON
    },
    Defect {
        name: "grpc-stream-without-status",
        wrong: "Streams over gRPC end without a status.",
        faults: &[Fault::Header(What::Trailers, STREAM, "grpc-status", None)],
        caught_by: &["V1-GRPC-017"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-event-before-error",
        wrong: "A subscription to an unknown task begins with an empty event.",
        faults: &[Fault::Quirk(Quirk::EventBeforeRefusal, GRPC.of(&[Operation::SubscribeToTask]))],
        caught_by: &["V1-GRPC-018"],
        related: ALL_OF_V1,
        ..ON
    },
    Defect {
        name: "grpc-no-deadline",
        wrong: "Calls have no deadlines.",
        faults: &[Fault::Quirk(Quirk::NoDeadline, GRPC.of(&[Operation::SendMessage]))],
        caught_by: &["V1-GRPC-019"],
        ..ON
    },
    Defect {
        name: "grpc-deadline-cancels",
        wrong: "A stream that ends at its deadline cancels the task.",
        faults: &[Fault::Quirk(Quirk::DeadlineCancels, GRPC)],
        caught_by: &["V1-GRPC-020"],
        ..ON
    },
    Defect {
        name: "grpc-version-not-read",
        wrong: "`a2a-version` is not read in the metadata of gRPC.",
        faults: &[Fault::Rule(Rule::VersionUnknown, GRPC, Instead::Allow)],
        caught_by: &["V1-VER-001", "V1-ERR-005"],
        ..ON
    },
    Defect {
        name: "grpc-extensions-not-told",
        wrong: "Over gRPC nobody learns which extensions are active.",
        faults: &[
            Fault::Header(What::Reply, GRPC, "a2a-extensions", None),
            Fault::Header(What::Event, GRPC, "a2a-extensions", None),
        ],
        caught_by: &["V1-EXT-003"],
        ..ON
    },
    Defect {
        name: "grpc-extension-not-required",
        wrong: "Over gRPC the required extension need not be named.",
        profile: Profile::GuardedGrpc,
        faults: &[Fault::Rule(Rule::RequiredExtension, GRPC, Instead::Allow)],
        caught_by: &["V1-EXT-001"],
        ..ON
    },
    Defect {
        name: "grpc-strangers-let-in",
        wrong: "Over gRPC strangers are let in.",
        profile: Profile::GuardedGrpc,
        faults: &[Fault::Rule(Rule::NoCredentials, GRPC, Instead::Allow)],
        caught_by: &["V1-AUTH-001", "V1-EQUIV-007"],
        related: &["V1-AUTH-002", "V1-XCARD-003"],
        ..ON
    },
    Defect {
        name: "grpc-strangers-permission-denied",
        wrong: "Over gRPC strangers are PERMISSION_DENIED.",
        profile: Profile::GuardedGrpc,
        faults: &[Fault::Rule(Rule::NoCredentials, GRPC, Instead::Refuse(Kind::Forbidden))],
        caught_by: &["V1-AUTH-002"],
        ..ON
    },
    Defect {
        name: "grpc-tasks-of-its-own",
        wrong: "Tasks of JSON-RPC are not known over gRPC.",
        faults: &[Fault::Rule(Rule::OtherBinding, GRPC, Instead::Refuse(Kind::TaskNotFound))],
        caught_by: &["V1-EQUIV-001"],
        related: &["V1-EQUIV-*"],
        ..ON
    },
];
