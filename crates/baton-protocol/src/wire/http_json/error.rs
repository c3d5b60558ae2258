//! Error bodies: `google.rpc.Status` as JSON.

use crate::error::{Error, ErrorKind};
use crate::generation::Generation;
use crate::wire::dialect::Dialect;
use crate::wire::v1::write_error_details;
use crate::wire::write::Object;

pub fn http_status(generation: Generation, kind: ErrorKind) -> u16 {
    match generation {
        Generation::V1 => kind.row().http,
        Generation::V0_3 | Generation::V0_1 => kind.row().http_v0_3,
    }
}

/// The body of an error. 0.3 does not define it: JavaScript clients look for the JSON-RPC `code` at the top level,
/// Python clients for `type` and `message`, newer ones for the 1.0 form, so a 0.3 error has all of them.
pub fn write_error(out: &mut Vec<u8>, generation: Generation, error: &Error) {
    let reader = match generation {
        Generation::V1 => Dialect::V1,
        Generation::V0_3 | Generation::V0_1 => Dialect::V0_3Rest,
    };
    let message = error.told(reader);
    let mut object = Object::begin(out);
    let mut inner = Object::begin(object.member("error"));
    inner.number("code", http_status(generation, error.kind()));
    inner.string("status", error.kind().row().grpc.name());
    inner.string("message", &message);
    write_error_details(inner.member("details"), error, reader);
    inner.end();
    if generation != Generation::V1 {
        object.number("code", error.kind().json_rpc_code(generation));
        object.string("type", class_name(error.kind()));
        object.string("message", &message);
    }
    object.end();
}

/// The error's type in 0.3. For rows that 0.3 lacks, the most similar type.
fn class_name(kind: ErrorKind) -> &'static str {
    kind.a2a_name(Generation::V0_3).unwrap_or(match kind {
        ErrorKind::PayloadTooLarge | ErrorKind::MethodNotAllowed | ErrorKind::MediaTypeNotSupported => {
            "InvalidRequestError"
        }
        _ => "InternalError",
    })
}
