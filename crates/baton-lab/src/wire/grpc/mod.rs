//! gRPC of the lab's own: tables of fields, protobuf, framing and statuses, on hyper's HTTP/2. Cases write and read
//! JSON in every binding: a request goes from ProtoJSON to protobuf, and an answer back, where it becomes what it would
//! be in HTTP+JSON. So a case need not know the binding.

pub(crate) mod call;
pub(crate) mod decode;
mod encode;
pub(crate) mod frames;
pub(crate) mod methods;
mod protobuf;
mod schema;
pub(crate) mod status;
mod well_known;

use serde_json::Value;

use call::{Call, find};
use frames::Frame;
use methods::Method;
use status::Status;

use super::no_answer::NoAnswer;

/// Bytes as every message of a generation: what is read without anything odd must be the same after it was written.
#[cfg(any(test, fuzzing))]
pub(crate) fn reread(generation: crate::generation::Generation, bytes: &[u8]) {
    let Some(schema) = schema::Schema::of(generation) else { return };
    for name in schema.messages() {
        let Ok(read) = decode::message(schema, name, bytes) else { continue };
        // The number of an unknown state cannot be written.
        let Ok(written) = encode::message(schema, name, &read.value) else { continue };
        if read.odd.is_empty() {
            let again = decode::message(schema, name, &written).map(|again| again.value);
            assert_eq!(again.as_ref(), Ok(&read.value), "{name}");
        }
    }
}

/// An answer in the terms of HTTP+JSON.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// What comes next in an answer.
#[derive(Debug)]
pub(crate) enum Piece {
    Message(Value),
    /// The end, with an error.
    Failed(Status),
    /// The end.
    Done,
}

/// True if the answer is one of gRPC. Otherwise its HTTP status says why not, or it comes from somebody else.
pub(crate) fn is_grpc(call: &Call) -> Result<bool, NoAnswer> {
    let kind = call.header("content-type").unwrap_or("no content type");
    if kind == "application/grpc"
        || kind.starts_with("application/grpc+")
        || kind.starts_with("application/grpc;")
    {
        return Ok(true);
    }
    if call.status == 200 && find(&call.head, "grpc-status").is_none() {
        return Err(NoAnswer::new(format!("this is no answer of gRPC: {kind}")));
    }
    Ok(call.status == 200)
}

/// The next message, or the end with its status.
pub(crate) async fn piece(call: &mut Call, method: Method) -> Result<Piece, NoAnswer> {
    match call.next().await? {
        Some(frame) => Ok(Piece::Message(decoded(&frame, method)?)),
        None => match Status::read(call.end()) {
            None => Err(NoAnswer::new("the answer ends without a grpc-status")),
            Some(status) if status.code == 0 => Ok(Piece::Done),
            Some(status) => Ok(Piece::Failed(status)),
        },
    }
}

fn decoded(frame: &Frame, method: Method) -> Result<Value, NoAnswer> {
    if frame.flag != 0 {
        return Err(NoAnswer::new(format!(
            "a message has the flag {}, though nothing was compressed",
            frame.flag
        )));
    }
    let read = decode::message(method.schema(), method.answers, &frame.message);
    Ok(read
        .map_err(|malformed| NoAnswer::new(format!("a message is no {}: {malformed}", method.answers)))?
        .value)
}

/// The whole answer to a call without streams: one message, or an error.
pub(crate) async fn whole(call: &mut Call, method: Method) -> Result<Whole, NoAnswer> {
    if !is_grpc(call)? {
        return Ok(Whole { status: call.status, body: Value::Null });
    }
    let mut held = None;
    loop {
        match piece(call, method).await? {
            Piece::Message(_) if held.is_some() => {
                return Err(NoAnswer::new(format!("{} is answered with two messages", method.name)));
            }
            Piece::Message(value) => held = Some(value),
            Piece::Failed(status) => {
                return Ok(Whole { status: status::http(status.code), body: status.body() });
            }
            Piece::Done => {
                let body = held.ok_or_else(|| NoAnswer::new("grpc-status is 0, but there is no message"))?;
                return Ok(Whole { status: 200, body });
            }
        }
    }
}
