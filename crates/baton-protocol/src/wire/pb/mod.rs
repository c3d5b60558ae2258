//! The encoding of gRPC: protobuf messages, in the packages of 1.0 and of 0.3. 0.1 has none.
//!
//! Requests and answers are whole messages as bytes here; `framing` is what is around them, for server and client. Readers make the same checks and
//! the same errors as those of the other bindings. Messages are decoded by generated code (`cargo xtask proto`), except
//! free-form JSON, which it leaves as bytes.

mod bounds;
mod card;
mod fault;
pub mod framing;
mod health;
mod json;
mod objects;
mod package;
mod reflection;
pub mod resume;
pub mod status;
pub mod v0_3;
pub mod v1;

use bytes::Bytes;
use prost::Message;

use self::fault::{Read, Reader};
use super::peer_state::FromPeer;
use super::read::Subject;
use crate::domain::{Role, Timestamp};
use crate::error::{Error, ErrorKind};

pub use self::health::{HEALTH_SERVICE, Serving, read_health_request, write_health};
pub use self::package::Package;
pub use self::reflection::{REFLECTION_SERVICES, Reflection};

/// A `google.protobuf.FileDescriptorSet` of both packages and what they import.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

/// Decodes the message of a request and converts it.
fn read_request<M: Message + Default, T>(
    message: Bytes,
    convert: impl FnOnce(M) -> Read<T>,
) -> Result<T, Error> {
    let subject = Subject::PARAMS;
    convert(decode(message, subject)?).map_err(|fault| fault.told(subject))
}

/// The same for a message with a message of the user's, whose lists are counted first. `within`: the numbers of the fields that
/// have them.
fn read_send<M: Message + Default, T>(
    message: Bytes,
    within: &[u32],
    convert: impl FnOnce(M) -> Read<T>,
) -> Result<T, Error> {
    if !bounds::fits(&message, within) {
        let most = bounds::MOST_ITEMS;
        return Err(Error::invalid("message", format!("must not hold more than {most} items in its lists")));
    }
    read_request(message, convert)
}

/// Decodes the message of an answer and converts it.
fn read_answer<M: Message + Default, T>(
    message: Bytes,
    root: &'static str,
    convert: impl FnOnce(&mut Reader, M) -> Read<T>,
) -> Result<FromPeer<T>, Error> {
    let subject = Subject::reply(root);
    let mut reader = Reader { is_answer: true, unknown_states: Vec::new() };
    let value = convert(&mut reader, decode(message, subject)?).map_err(|fault| fault.told(subject))?;
    if reader.unknown_states.iter().all(Option::is_none) {
        reader.unknown_states.clear();
    }
    Ok(FromPeer { value, unknown_states: reader.unknown_states })
}

fn decode<M: Message + Default>(message: Bytes, subject: Subject) -> Result<M, Error> {
    M::decode(message).map_err(|error| {
        let kind =
            if subject.kind == ErrorKind::InvalidParams { ErrorKind::ParseError } else { subject.kind };
        // The text names the field, but does not quote the payload.
        Error::new(kind, format!("{}: not a valid message ({error})", subject.title))
    })
}

fn no_single_reply() -> Error {
    Error::of(ErrorKind::Internal).with_log("a streaming operation has no single reply")
}

/// It is better to refuse the list than to get the wrong tasks.
fn several_states() -> Error {
    Error::new(ErrorKind::UnsupportedOperation, "gRPC can list the tasks of one state, or of all")
}

fn role(role: Role) -> i32 {
    match role {
        Role::User => 1,
        Role::Agent => 2,
    }
}

/// Counts are int32 on the wire.
fn count(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}

/// None if it is not known.
fn timestamp(at: Timestamp) -> Option<prost_types::Timestamp> {
    let millis = at.as_millis();
    let nanos = millis.rem_euclid(1000) as i32 * 1_000_000;
    at.is_known().then(|| prost_types::Timestamp { seconds: millis.div_euclid(1000), nanos })
}
