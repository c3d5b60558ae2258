//! Error bodies: `google.rpc.Status` as JSON.

use crate::error::{Error, ErrorKind};
use crate::generation::Generation;
use crate::wire::v1::write_error_details;
use crate::wire::write::Object;

pub fn http_status(generation: Generation, kind: ErrorKind) -> u16 {
    match generation {
        Generation::V1 => kind.row().http,
        Generation::V0_3 | Generation::V0_1 => kind.row().http_v0_3,
    }
}

/// The body of an error. 0.3 leaves its shape open; Python clients of that time look for a `message` at the top,
/// later ones for the 1.0 form, so 0.3 gets both.
pub fn write_error(out: &mut Vec<u8>, generation: Generation, error: &Error) {
    let mut object = Object::begin(out);
    let mut inner = Object::begin(object.member("error"));
    inner.number("code", http_status(generation, error.kind()));
    inner.string("status", error.kind().row().grpc.name());
    inner.string("message", error.message());
    write_error_details(inner.member("details"), error);
    inner.end();
    if generation != Generation::V1 {
        object.string("message", error.message());
    }
    object.end();
}
