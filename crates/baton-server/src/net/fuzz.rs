//! Targets of the fuzzers for what comes off a socket.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Request};

use super::authority::Authority;
use super::cors::Origins;
use super::frames::Frames;
use super::framing;
use super::hosts::{AllowedHost, Hosts};
use super::options::Cors;
use crate::proxy::{IpRange, forwarded_base, is_forwarded};

/// Heads and bodies of HTTP/1.
pub(crate) fn http1(bytes: &[u8]) {
    framing::oracle::check(bytes);
}

/// Frames of HTTP/2: where reads end must not matter.
pub(crate) fn http2_frames(bytes: &[u8]) {
    let mut whole = Frames::new();
    let seen = whole.feed(bytes, 0);
    assert!(seen.flood.is_none_or(|at| at <= bytes.len()));
    for size in [1, 3, 10] {
        let mut pieces = Frames::new();
        let (mut progress, mut waiting, mut flood, mut at) = (false, true, None, 0);
        for piece in bytes.chunks(size) {
            let next = pieces.feed(piece, 0);
            progress |= next.progress;
            waiting = next.waiting;
            if let Some(end) = next.flood {
                flood = Some(at + end);
                break;
            }
            at += piece.len();
        }
        assert_eq!((progress, flood), (seen.progress, seen.flood), "in reads of {size}");
        if !bytes.is_empty() {
            assert_eq!(waiting, seen.waiting, "in reads of {size}");
        }
    }
}

/// Who is asked, by whom, through which proxy. Lines are `name: value`.
pub(crate) fn names(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
        if let Ok(text) = str::from_utf8(value) {
            setting(text);
        }
    }
    let _ = is_forwarded(&headers);
    if let Some(base) = forwarded_base(&headers) {
        // It goes into the card: nobody may read another place in it than is meant.
        let rest = base.strip_prefix("http://").or_else(|| base.strip_prefix("https://"));
        let rest = rest.expect("one of two schemes");
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        assert!(Authority::parse(host).is_some(), "a card would say {base}");
        assert!(!path.starts_with("//") && !path.ends_with('/'), "a card would say {base}");
    }
    let listening = "127.0.0.1:3000".parse().expect("an address");
    let hosts = Hosts::new(listening, &[], None, String::new());
    let mut request = Request::new(());
    *request.headers_mut() = headers;
    if hosts.check(&request, None).is_ok() {
        // A page of another site has not come through, whatever it is called.
        for name in [http::header::HOST, http::header::ORIGIN] {
            let Some(value) = request.headers().get(&name).and_then(|value| value.to_str().ok()) else {
                continue;
            };
            let host = value.split_once("://").map_or(value, |(_, host)| host);
            let host =
                host.rsplit_once(':').filter(|(host, _)| !host.ends_with(':')).map_or(host, |(host, _)| host);
            let host = host.trim_matches(['[', ']']);
            let local = host.eq_ignore_ascii_case("localhost")
                || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
            assert!(local, "{name}: {value}");
        }
    }
}

/// The same readers, as settings use them.
fn setting(text: &str) {
    if let Some(authority) = Authority::parse(text) {
        let again = match (authority.host.contains(':'), authority.port) {
            (true, Some(port)) => format!("[{}]:{port}", authority.host),
            (true, None) => format!("[{}]", authority.host),
            (false, Some(port)) => format!("{}:{port}", authority.host),
            (false, None) => authority.host.to_owned(),
        };
        assert_eq!(Authority::parse(&again), Some(authority), "{text}");
        assert!(authority.same_place(&authority) && AllowedHost::parse(text).is_ok());
    }
    let _ = AllowedHost::of_url(text);
    let _ = Origins::parse(&Cors { origins: vec![text.to_owned()] });
    if let Ok(range) = text.parse::<IpRange>() {
        let network = text.split('/').next().and_then(|address| address.parse::<IpAddr>().ok());
        let network = network.expect("a range begins with an address");
        // A v4 address in v6 clothes is that v4 address, and in no range of v6.
        assert!(range.contains(network) || network.to_canonical() != network, "{text}");
    }
}
