//! Error details: an array of typed objects, the same in JSON-RPC `data` and HTTP+JSON `details`.

use crate::error::{ERROR_DOMAIN, Error};
use crate::wire::dialect::Dialect;
use crate::wire::write::{Object, string};

/// True if the error has details in addition to its message.
pub(crate) fn has_error_details(error: &Error) -> bool {
    error.kind().told_reason().is_some() || error.has_violations() || error.retry_after_seconds().is_some()
}

/// Writes the details with names of the reader's generation.
pub fn write_error_details(out: &mut Vec<u8>, error: &Error, reader: Dialect) {
    let mut before = b'[';
    let mut detail = |out: &mut Vec<u8>| out.push(std::mem::replace(&mut before, b','));
    if let Some(reason) = error.kind().told_reason() {
        detail(out);
        let mut info = Object::begin(out);
        info.string("@type", "type.googleapis.com/google.rpc.ErrorInfo");
        info.string("reason", reason);
        info.string("domain", ERROR_DOMAIN);
        if !error.info().is_empty() {
            let mut metadata = Object::begin(info.member("metadata"));
            for (key, value) in error.info() {
                metadata.string(key, value);
            }
            metadata.end();
        }
        info.end();
    }
    if error.has_violations() {
        detail(out);
        let mut request = Object::begin(out);
        request.string("@type", "type.googleapis.com/google.rpc.BadRequest");
        request.list("fieldViolations", &error.violations(reader), |out, violation| {
            let mut object = Object::begin(out);
            object.string("field", &violation.field);
            object.string("description", &violation.description);
            object.end();
        });
        request.end();
    }
    if let Some(seconds) = error.retry_after_seconds() {
        detail(out);
        let mut retry = Object::begin(out);
        retry.string("@type", "type.googleapis.com/google.rpc.RetryInfo");
        string(retry.member("retryDelay"), &format!("{seconds}s"));
        retry.end();
    }
    if before == b'[' {
        out.push(b'[');
    }
    out.push(b']');
}
