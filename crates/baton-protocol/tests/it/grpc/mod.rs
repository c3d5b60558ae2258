//! The messages of gRPC, in both packages.

/// Every field of every message, as the specification numbers them.
mod fields;
/// The golden JSON files as protobuf, byte for byte.
mod golden;
/// Free-form JSON as `google.protobuf.Struct` and `Value`.
mod json;
/// What protobuf cannot hold, beside what ProtoJSON cannot.
mod losses;
/// Protobuf's own rules say that our JSON and our messages are the same.
mod oracle;
/// Hostile and incomplete messages, and the error that each gives.
mod refused;
/// Domain to messages to domain gives the same value, minus the losses.
mod roundtrip;
/// Errors as gRPC carries them, and back.
mod status;
