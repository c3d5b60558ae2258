//! How a call ends: a code, a message and details, in trailers or in headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use baton_protocol::error::GrpcCode;
use baton_protocol::wire::pb::Package;
use baton_protocol::{Error, Generation};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::Refused;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Longest message, in bytes as it is sent: headers have a limit, and the details repeat it.
const MOST: usize = 1024;

/// The end of a call that failed.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) code: GrpcCode,
    message: String,
    details: Bytes,
}

impl Ending {
    pub(super) fn of(package: Package, error: &Error) -> Self {
        let status = package.status(error);
        let code = error.kind().grpc_code(package.generation());
        Ending { code, message: status.message, details: status.details }
    }

    /// Without details, for services that are not of A2A.
    pub(super) fn plain(refused: &Refused) -> Self {
        let error = refused.challenge.error();
        let code = refused.code.unwrap_or_else(|| error.kind().grpc_code(Generation::V1));
        Ending { code, message: error.to_string(), details: Bytes::new() }
    }

    pub(super) fn saying(code: GrpcCode, message: &str) -> Self {
        Ending { code, message: message.to_owned(), details: Bytes::new() }
    }

    pub(super) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(3);
        trailers.insert(STATUS, HeaderValue::from(u16::from(self.code.number())));
        let message = HeaderValue::try_from(escaped(&self.message));
        trailers.extend(message.ok().map(|message| (MESSAGE, message)));
        if !self.details.is_empty() {
            let details = HeaderValue::try_from(STANDARD_NO_PAD.encode(&self.details));
            trailers.extend(details.ok().map(|details| (DETAILS, details)));
        }
        trailers
    }
}

/// The end of a call that succeeded.
pub(super) fn ok() -> HeaderMap {
    HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))])
}

/// Percent-encoded, as gRPC wants it: all but visible ASCII and the space, and the percent sign.
fn escaped(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for letter in message.chars() {
        let before = out.len();
        match letter {
            '%' => out.push_str("%25"),
            ' '..='~' => out.push(letter),
            _ => {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("%{byte:02X}"));
                }
            }
        }
        if out.len() > MOST {
            out.truncate(before);
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p03_messages_are_percent_encoded() {
        for (message, sent) in [
            ("Task not found", "Task not found"),
            ("100 %", "100 %25"),
            ("über\n", "%C3%BCber%0A"),
            ("~\u{7f}", "~%7F"),
            ("", ""),
        ] {
            assert_eq!(escaped(message), sent);
        }
        let long = escaped(&"ü".repeat(MOST));
        assert!(
            long.len() <= MOST && long.len().is_multiple_of(6),
            "no letter is cut in two: {}",
            long.len()
        );
    }
}
