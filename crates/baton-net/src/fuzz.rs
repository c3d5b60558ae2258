//! Fuzz targets for bytes from a socket. See `fuzz/README.md`.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Request};

use super::authority::{Authority, Scheme};
use super::cors::Origins;
use super::frames::Frames;
use super::framing;
use super::hosts::{AllowedHost, Hosts};
use super::options::Connections;
use super::options::Cors;
use super::proxy::{IpRange, forwarded_base, is_forwarded};
use super::settings::{CorsAnswers, OpenPaths};

/// Panics when a property does not hold for these bytes.
pub type Check = fn(&[u8]);

/// In the order of `fuzz/targets.tsv`.
pub const TARGETS: &[(&str, Check)] = &[("http1", http1), ("http2_frames", http2_frames), ("names", names)];

/// Heads and bodies of HTTP/1.
fn http1(bytes: &[u8]) {
    framing::oracle::check(bytes);
}

/// HTTP/2 frames: the result must not depend on how the bytes are split into reads.
fn http2_frames(bytes: &[u8]) {
    let mut whole = Frames::new(&Connections::default());
    let seen = whole.feed(bytes, 0);
    assert!(seen.flood.is_none_or(|at| at <= bytes.len()));
    for size in [1, 3, 10] {
        let mut pieces = Frames::new(&Connections::default());
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

/// Headers that name hosts, origins and proxies. Lines are `name: value`.
fn names(bytes: &[u8]) {
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
        // It becomes part of URLs for clients, so it must have exactly one meaning.
        let rest = base.strip_prefix("http://").or_else(|| base.strip_prefix("https://"));
        let rest = rest.expect("one of two schemes");
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        assert!(Authority::parse(host).is_some(), "somebody would be told {base}");
        assert!(!path.starts_with("//") && !path.ends_with('/'), "somebody would be told {base}");
    }
    let listening = "127.0.0.1:3000".parse().expect("an address");
    let hosts = Hosts::new(listening, Scheme::Http, &[], None, OpenPaths::default());
    let mut request = Request::new(());
    *request.headers_mut() = headers;
    if hosts.check(&request, None).is_ok() {
        // No page of another site has passed the check.
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

/// The same parsers, for settings.
fn setting(text: &str) {
    if let Some(authority) = Authority::parse(text) {
        let again = match (authority.host.contains(':'), authority.port) {
            (true, Some(port)) => format!("[{}]:{port}", authority.host),
            (true, None) => format!("[{}]", authority.host),
            (false, Some(port)) => format!("{}:{port}", authority.host),
            (false, None) => authority.host.to_owned(),
        };
        assert_eq!(Authority::parse(&again), Some(authority), "{text}");
        assert!(authority.same_place(&authority, Scheme::Https) && AllowedHost::parse(text).is_ok());
    }
    let _ = AllowedHost::of_url(text);
    let _ = Origins::parse(&Cors::of([text]), CorsAnswers::default());
    if let Ok(range) = text.parse::<IpRange>() {
        let network = text.split('/').next().and_then(|address| address.parse::<IpAddr>().ok());
        let network = network.expect("a range begins with an address");
        // An IPv4-mapped IPv6 address counts as the IPv4 address, and is in no IPv6 range.
        assert!(range.contains(network) || network.to_canonical() != network, "{text}");
    }
}

#[cfg(test)]
mod tests {
    baton_fuzz::tests!(super::TARGETS: http1 http2_frames names);
}
