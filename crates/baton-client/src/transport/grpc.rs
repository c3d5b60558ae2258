//! Calls over gRPC: each message behind a prefix, and the outcome in trailers behind the last one. The messages are those of
//! `baton-protocol`, as JSON is for the other bindings.

mod address;
mod status;
mod stream;

use std::time::Duration;

use baton_protocol::operation::{Call, Reply};
use baton_protocol::wire::pb::Package;
use baton_protocol::wire::pb::framing::{Deframer, PREFIX, Unframed, framed};
use baton_protocol::wire::pb::resume::RESUME;
use baton_protocol::wire::peer_error::PeerError;
use baton_protocol::wire::peer_state::FromPeer;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

pub(crate) use self::address::parse as parse_address;
use self::status::check_status;
pub(crate) use self::status::is_unauthenticated;
pub(crate) use self::stream::Messages;
use super::{Encoded, agent_error, below};
use crate::choose::Interface;
use crate::client::Client;
use crate::error::{Error, TransportKind};
use crate::http::Answer;

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Most bytes of an answer that is not one of gRPC, such as a proxy's: enough to say what it is.
const MAX_FOREIGN: usize = 64 * 1024;

/// Writes a call.
pub(super) fn encode(interface: &Interface, call: &Call) -> Result<Encoded, Error> {
    let Interface { url, generation, tenant, .. } = interface;
    let operation = call.operation();
    let not_in_version = |what: String| Error::NotInVersion { operation, version: *generation, what };
    let package = package(interface)?;
    let method = package.method(operation);
    let method =
        method.ok_or_else(|| not_in_version(format!("{} does not exist over gRPC", operation.facts().v1)))?;
    let message = package.write_call(tenant.as_deref(), call);
    let message = message.map_err(|error| not_in_version(error.to_string()))?;
    Ok(Encoded {
        method: Method::POST,
        url: below(url, &format!("/{}/{method}", package.service()))?,
        body: Some(framed(&message)),
        content_type: "application/grpc",
    })
}

/// What a call says, as JSON.
pub(crate) fn shown(interface: &Interface, call: &Call) -> Bytes {
    let mut out = Vec::new();
    interface.dialect().write_call(&mut out, interface.tenant(), call);
    out.into()
}

/// Adds what gRPC wants in the head of a call. `patience` is for the whole call; a stream has none.
pub(crate) fn add_metadata(headers: &mut HeaderMap, patience: Option<Duration>) {
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(patience) = patience {
        let value = HeaderValue::try_from(timeout(patience)).expect("digits and a letter");
        headers.insert(TIMEOUT, value);
    }
}

/// In the finest unit in which it has at most eight digits.
fn timeout(patience: Duration) -> String {
    const MOST: u128 = 99_999_999;
    let units = [(1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M')];
    let within = units.into_iter().map(|(nanos, unit)| (patience.as_nanos() / nanos, unit));
    let hours = patience.as_nanos() / 3_600_000_000_000;
    let (number, unit) = within.into_iter().find(|(n, _)| *n <= MOST).unwrap_or((hours.min(MOST), 'H'));
    format!("{number}{unit}")
}

/// The extension that a stream needs to be resumed, if the agent has it.
pub(crate) fn resume_extension(client: &Client) -> Option<&'static str> {
    let card = client.card();
    card.capabilities.extensions.iter().any(|extension| extension.uri == RESUME).then_some(RESUME)
}

fn package(interface: &Interface) -> Result<Package, Error> {
    let package = Package::of(interface.generation);
    package.ok_or_else(|| Error::Invalid("protocol 0.1 has no gRPC".to_owned()))
}

/// Reads the answer of a call that does not stream.
pub(super) async fn read_reply(
    interface: &Interface,
    call: &Call,
    answer: &mut Answer,
    limit: usize,
) -> Result<FromPeer<Reply>, Error> {
    check_head(interface, answer).await?;
    let body = answer.bytes(limit.saturating_add(PREFIX)).await?;
    check_status(interface.generation, answer)?;
    let mut messages = Deframer::new(limit);
    messages.feed(&body);
    let message = messages.next().map_err(|why| unframed(answer, why, limit))?;
    let message = match (message, messages.is_empty()) {
        (Some(message), true) => message,
        (Some(_), false) => return Err(answer.malformed("it has more than one message")),
        (None, true) => return Err(answer.malformed("it has no message")),
        (None, false) => return Err(answer.malformed("its message ends too early")),
    };
    let reply = package(interface)?.read_reply(call.operation(), message);
    let reply = reply.map_err(|error| answer.malformed(error.to_string()))?;
    Ok(reply)
}

/// Refuses an answer that is not one of gRPC: a proxy's, or that of a server which has none.
async fn check_head(interface: &Interface, answer: &mut Answer) -> Result<(), Error> {
    let status = answer.status();
    if (300..400).contains(&status) {
        let to = answer.redirect_target();
        return Err(answer.fail(TransportKind::Redirected, format!("to {to}; calls are not redirected")));
    }
    let media_type = answer.media_type();
    let is_grpc = media_type == "application/grpc" || media_type.starts_with("application/grpc+");
    if status >= 300 && !is_grpc {
        // A page that cannot be read says no less than its status.
        let unreadable = [TransportKind::Malformed, TransportKind::TooLarge];
        let body = match answer.text(MAX_FOREIGN).await {
            Err(error) if error.transport().is_some_and(|it| unreadable.contains(&it.kind())) => {
                String::new()
            }
            body => body?,
        };
        let peer = PeerError::of_http(interface.generation, Some(status), &body);
        return Err(agent_error(answer, peer).into());
    }
    match is_grpc {
        true => Ok(()),
        false => Err(answer.malformed(format!(
            "it is no answer of gRPC: its media type is {:?}",
            media_type.chars().take(64).collect::<String>()
        ))),
    }
}

fn unframed(answer: &Answer, why: Unframed, limit: usize) -> Error {
    match why {
        Unframed::TooLarge => answer.too_large(limit),
        Unframed::Compressed => answer.malformed("its message is compressed, although that was not offered"),
        Unframed::UnknownFlag => answer.malformed("its message has an unknown flag"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p03_timeouts_have_at_most_eight_digits() {
        for (patience, sent) in [
            (Duration::from_micros(1), "1u"),
            (Duration::from_secs(60), "60000000u"),
            (Duration::from_secs(100), "100000m"),
            (Duration::from_secs(86_400), "86400000m"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::from_secs(100_000_000), "1666666M"),
            (Duration::MAX, "99999999H"),
        ] {
            assert_eq!(timeout(patience), sent);
        }
    }
}
