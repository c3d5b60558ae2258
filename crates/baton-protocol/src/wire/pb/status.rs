//! How a gRPC call ends with an error: a code, a message, and details in the trailer `grpc-status-details-bin`.

use bytes::Bytes;
use prost::Message;
use prost_types::{Any, Duration};

use super::Package;
use crate::error::{ERROR_DOMAIN, Error, FieldViolation};
use crate::wire::write::Object;

/// The generated messages of error details.
#[allow(clippy::all, missing_docs, unreachable_pub)]
mod rpc {
    include!("generated/rpc.rs");
}

const TYPES: &str = "type.googleapis.com/";
const ERROR_INFO: &str = "google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "google.rpc.BadRequest";
const RETRY_INFO: &str = "google.rpc.RetryInfo";

/// Longest details, in bytes. Clients take 8 KiB of trailers; in base64 this is 5.5 KiB of them.
const MOST_DETAILS: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The number of a [`GrpcCode`](crate::error::GrpcCode).
    pub code: u8,
    pub message: String,
    /// An encoded `google.rpc.Status`; empty if there are no details.
    pub details: Bytes,
}

impl Status {
    /// With names of the package's generation.
    pub(super) fn of(error: &Error, package: Package) -> Self {
        let reader = package.dialect();
        let code = error.kind().grpc_code(package.generation()).number();
        let message = message(error, package);
        let mut details = Vec::new();
        if let Some(reason) = error.kind().told_reason() {
            let metadata = error.info().iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
            let (reason, domain) = (reason.to_owned(), ERROR_DOMAIN.to_owned());
            details.push(any(ERROR_INFO, &rpc::ErrorInfo { reason, domain, metadata: metadata.collect() }));
        }
        if error.has_violations() {
            let violation = |FieldViolation { field, description }| rpc::bad_request::FieldViolation {
                field,
                description,
            };
            let field_violations = error.violations(reader).into_iter().map(violation).collect();
            details.push(any(BAD_REQUEST, &rpc::BadRequest { field_violations }));
        }
        if let Some(seconds) = error.retry_after_seconds() {
            let retry_delay = Some(Duration { seconds: seconds.into(), nanos: 0 });
            details.push(any(RETRY_INFO, &rpc::RetryInfo { retry_delay }));
        }
        let mut status = rpc::Status { code: code.into(), message: message.clone(), details };
        if status.encoded_len() > MOST_DETAILS {
            // The message names a member as well.
            status.details.retain(|detail| !detail.type_url.ends_with(BAD_REQUEST));
        }
        let details = if status.details.is_empty() { Bytes::new() } else { status.encode_to_vec().into() };
        Status { code, message, details }
    }
}

/// In 0.3 it begins with the error's name, as from the Python SDK: that one's clients of 0.3 read the name from there alone.
fn message(error: &Error, package: Package) -> String {
    let told = error.told(package.dialect());
    match error.kind().a2a_name(package.generation()) {
        Some(name) if package == Package::V0_3 => format!("{name}: {told}"),
        _ => told.into_owned(),
    }
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("{TYPES}{name}"), value: message.encode_to_vec() }
}

/// Details as JSON, as the other bindings have them. `None` if they cannot be read.
pub(in crate::wire) fn details_as_json(details: &[u8]) -> Option<String> {
    let rpc::Status { details, .. } = rpc::Status::decode(details).ok()?;
    let mut out = vec![b'['];
    for (n, detail) in details.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        let mut object = Object::begin(&mut out);
        object.string("@type", &detail.type_url);
        let name = detail.type_url.rsplit('/').next().unwrap_or_default();
        write_members(&mut object, name, &detail.value)?;
        object.end();
    }
    out.push(b']');
    String::from_utf8(out).ok()
}

/// A detail of another type is named alone.
fn write_members(object: &mut Object<'_>, name: &str, encoded: &[u8]) -> Option<()> {
    match name {
        ERROR_INFO => {
            let info = rpc::ErrorInfo::decode(encoded).ok()?;
            object.string("reason", &info.reason);
            object.string("domain", &info.domain);
            let mut metadata = Object::begin(object.member("metadata"));
            for (key, value) in &info.metadata {
                crate::wire::write::string(metadata.entry(key), value);
            }
            metadata.end();
        }
        BAD_REQUEST => {
            let request = rpc::BadRequest::decode(encoded).ok()?;
            object.list("fieldViolations", &request.field_violations, |out, violation| {
                let mut object = Object::begin(out);
                object.string("field", &violation.field);
                object.string("description", &violation.description);
                object.end();
            });
        }
        RETRY_INFO => {
            let delay = rpc::RetryInfo::decode(encoded).ok()?.retry_delay.unwrap_or_default();
            let seconds = delay.seconds as f64 + f64::from(delay.nanos) / 1e9;
            object.string("retryDelay", &format!("{seconds}s"));
        }
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// If not all fits, the violations are left out.
    #[test]
    fn s09_details_fit_into_the_trailers_that_clients_take() {
        for package in Package::ALL {
            for length in [1, 200, 1000, 100_000] {
                let long = "x".repeat(length);
                let mut error = Error::new(ErrorKind::InvalidParams, long.clone()).with_retry_after(7);
                for _ in 0..3 {
                    error =
                        error.with_violation(long.clone(), long.clone()).with_info("quoted", long.clone());
                }
                let details = Status::of(&error, package).details;
                assert!(details.len() <= MOST_DETAILS, "{length}: {}", details.len());
                let json = details_as_json(&details).unwrap();
                assert!(json.contains("INVALID_PARAMS") && json.contains(r#""7s""#), "{length}: {json}");
                assert_eq!(json.contains("fieldViolations"), length <= 200, "{length}: {json}");
            }
        }
    }
}
