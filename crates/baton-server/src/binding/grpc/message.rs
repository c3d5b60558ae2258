//! The message of a request: a flag, a length, and the bytes. Compressed ones are refused, since a small one could
//! decompress to any size.

use axum::body::Body;
use baton_protocol::error::GrpcCode;
use baton_protocol::wire::pb::framing::{self, PREFIX, Unframed};
use baton_protocol::{Error, ErrorKind};
use bytes::{Buf as _, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;

use super::Refused;
use crate::binding::incoming;

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Refuses a caller who compresses, before anything is read.
pub(super) fn check_encoding(headers: &HeaderMap) -> Result<(), Refused> {
    match incoming::header(headers, &ENCODING) {
        Some(encoding) if !encoding.trim().eq_ignore_ascii_case("identity") => {
            let encoding: String = encoding.chars().take(64).collect();
            Err(compressed(format!("grpc-encoding is {encoding:?}; send messages as they are")))
        }
        _ => Ok(()),
    }
}

/// Tells which encodings are read.
pub(super) fn advise(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// gRPC has a code of its own for this.
fn compressed(message: String) -> Refused {
    let challenge = Error::new(ErrorKind::MediaTypeNotSupported, message).into();
    Refused { challenge, code: Some(GrpcCode::Unimplemented) }
}

/// Why a message was not read. `max`: how many bytes one may have.
pub(super) fn unframed(why: Unframed, max: usize) -> Refused {
    match why {
        Unframed::Compressed => compressed("The message is compressed; send messages as they are".to_owned()),
        Unframed::UnknownFlag => {
            Error::new(ErrorKind::InvalidRequest, "The message has an unknown flag").into()
        }
        Unframed::TooLarge => too_large(max).into(),
    }
}

fn too_large(max: usize) -> Error {
    Error::new(ErrorKind::PayloadTooLarge, format!("The message is larger than {max} bytes"))
}

/// The one message of a request, of at most `max` bytes. What is wrong with its prefix is told before the rest is taken.
pub(super) async fn read(max: usize, headers: &HeaderMap, mut body: Body) -> Result<Bytes, Refused> {
    let invalid = |message| Error::new(ErrorKind::InvalidRequest, message);
    incoming::check_head(max.saturating_add(PREFIX), headers).map_err(|error| match error.kind() {
        ErrorKind::PayloadTooLarge => too_large(max),
        _ => error,
    })?;
    let mut begun = Bytes::new();
    while begun.len() < PREFIX {
        let Some(frame) = body.frame().await else {
            return Err(invalid("The request has no message").into());
        };
        let Ok(data) = frame.map_err(incoming::unreadable)?.into_data() else { continue };
        begun = if begun.is_empty() { data } else { [begun, data].concat().into() };
    }
    let (flag, length) = (begun.get_u8(), begun.get_u32() as usize);
    framing::check_flag(flag).map_err(|why| unframed(why, max))?;
    if length > max {
        return Err(too_large(max).into());
    }
    let more = || invalid("The request has more than one message");
    let left = length.checked_sub(begun.len()).ok_or_else(more)?;
    let rest = incoming::collect(left, body).await.map_err(|error| match error.kind() {
        ErrorKind::PayloadTooLarge => more(),
        _ => error,
    })?;
    match rest.len() {
        0 if left == 0 => Ok(begun),
        whole if whole == left && begun.is_empty() => Ok(rest),
        whole if whole == left => Ok([begun, rest].concat().into()),
        _ => Err(invalid("The message ends too early").into()),
    }
}
