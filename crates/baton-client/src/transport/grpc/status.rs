//! How a call over gRPC ended: in trailers, or in the head of an answer that has nothing else.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use baton_protocol::Generation;
use baton_protocol::wire::peer_error::PeerError;
use http::{HeaderMap, HeaderName};

use crate::error::{Error, TransportKind};
use crate::http::Answer;
use crate::transport::agent_error;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

const DEADLINE_EXCEEDED: i32 = 4;
const UNAUTHENTICATED: i32 = 16;

/// Both with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Whether the head of the answer says that the caller is not authenticated.
pub(crate) fn is_unauthenticated(answer: &Answer) -> bool {
    code(answer.headers()) == Some(UNAUTHENTICATED)
}

/// The outcome of a call whose answer has come to its end.
pub(super) fn check_status(generation: Generation, answer: &Answer) -> Result<(), Error> {
    let found = [answer.trailers(), answer.headers()].into_iter().find_map(|said| Some((said, code(said)?)));
    let Some((said, code)) = found else {
        let why = "the answer ends without a status; a proxy on the way has to forward trailers";
        return Err(answer.fail(TransportKind::Cut, why));
    };
    if code == 0 {
        return Ok(());
    }
    let text = said.get(MESSAGE).map(|value| unescaped(value.as_bytes())).unwrap_or_default();
    answer.show(|| format!("grpc-status: {code} {text}").into());
    // The server was told of our deadline, and may have looked at its clock first.
    if code == DEADLINE_EXCEEDED && answer.has_deadline() {
        return Err(answer.fail(TransportKind::Timeout, "the timeout ran out"));
    }
    let details = said.get(DETAILS).and_then(|value| BASE64.decode(value.as_bytes()).ok());
    let peer = PeerError::of_grpc(generation, code, text, &details.unwrap_or_default());
    Err(agent_error(answer, peer).into())
}

/// A status that is no number is the code for "unknown".
fn code(headers: &HeaderMap) -> Option<i32> {
    let said = headers.get(STATUS)?.to_str().unwrap_or_default();
    Some(said.trim().parse().unwrap_or(2))
}

/// Messages are percent-encoded. What is not stays as it is.
fn unescaped(message: &[u8]) -> String {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut bytes = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, ..]) => digit(high).zip(digit(low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p03_messages_are_read_as_they_were_meant() {
        for (sent, meant) in [
            ("Task not found", "Task not found"),
            ("100 %25", "100 %"),
            ("%C3%BCber%0A", "über\n"),
            ("%c3%bc", "ü"),
            ("100%", "100%"),
            ("%zz%2", "%zz%2"),
            ("%FF", "\u{fffd}"),
            ("", ""),
        ] {
            assert_eq!(unescaped(sent.as_bytes()), meant);
        }
    }

    #[test]
    fn p03_details_are_read_with_and_without_padding() {
        assert_eq!(BASE64.decode("YQ==").unwrap(), b"a");
        assert_eq!(BASE64.decode("YQ").unwrap(), b"a");
    }
}
