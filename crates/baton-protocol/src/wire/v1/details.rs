//! Error details: an array of typed objects, the same in JSON-RPC `data` and HTTP+JSON `details`.

use crate::error::{ERROR_DOMAIN, Error};
use crate::wire::write::{Object, string};

pub fn write_error_details(out: &mut Vec<u8>, error: &Error) {
    out.push(b'[');
    let mut info = Object::begin(out);
    info.string("@type", "type.googleapis.com/google.rpc.ErrorInfo");
    info.string("reason", error.kind().row().reason);
    info.string("domain", ERROR_DOMAIN);
    if !error.info().is_empty() {
        let mut metadata = Object::begin(info.member("metadata"));
        for (key, value) in error.info() {
            metadata.string(key, value);
        }
        metadata.end();
    }
    info.end();
    if !error.violations().is_empty() {
        out.push(b',');
        let mut request = Object::begin(out);
        request.string("@type", "type.googleapis.com/google.rpc.BadRequest");
        request.list("fieldViolations", error.violations(), |out, violation| {
            let mut object = Object::begin(out);
            object.string("field", &violation.field);
            object.string("description", &violation.description);
            object.end();
        });
        request.end();
    }
    if let Some(seconds) = error.retry_after_seconds() {
        out.push(b',');
        let mut retry = Object::begin(out);
        retry.string("@type", "type.googleapis.com/google.rpc.RetryInfo");
        string(retry.member("retryDelay"), &format!("{seconds}s"));
        retry.end();
    }
    out.push(b']');
}
