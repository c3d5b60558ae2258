//! The head of an HTTP/1 request, read strictly: what is passed on can be understood in one way only.
//!
//! RFC 9112 lets a server be lenient in places where another reader of the same bytes, such as a proxy, is lenient
//! differently; the difference is what request smuggling lives on. Here every such place is an error.

use super::authority::Authority;
use super::refusal::{self, Refusal};

/// hyper reads no more, and nobody honest sends as many.
const MAX_HEADERS: usize = 100;
/// hyper's own bound is larger; a path of ours is short.
const MAX_TARGET: usize = 16 * 1024;

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyShape {
    /// May be 0.
    Length(u64),
    Chunked,
}

/// Reads a whole head, from the request line to the blank line that ends it. Every line is known to end with CR LF,
/// and to hold no other control character than a tab.
pub(super) fn read(head: &[u8]) -> Result<BodyShape, Refusal> {
    let mut lines = Lines(head);
    let line = lines.next().ok_or(Refusal::RequestLine)?;
    let [method, target, version] = request_line(line)?;
    let is_1_1 = version == b"HTTP/1.1";
    if matches!(method, b"CONNECT" | b"TRACE") || method == refusal::METHOD.as_bytes() {
        return Err(Refusal::Method);
    }

    let (mut host, mut length, mut chunked, mut count) = (None, None, false, 0);
    for line in lines {
        if line.is_empty() {
            break;
        }
        count += 1;
        if count > MAX_HEADERS {
            return Err(Refusal::TooManyHeaders);
        }
        let (name, value) = header_line(line)?;
        match Named::of(name) {
            Some(Named::Host) => {
                let authority = Authority::of_bytes(value).ok_or(Refusal::Host)?;
                if host.replace(authority).is_some() {
                    return Err(Refusal::Host);
                }
            }
            Some(Named::ContentLength) => {
                if length.replace(content_length(value)?).is_some() {
                    return Err(Refusal::ContentLength);
                }
            }
            Some(Named::TransferEncoding) => {
                if chunked || !is_1_1 || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::TransferEncoding);
                }
                chunked = true;
            }
            Some(Named::Expect) if !value.eq_ignore_ascii_case(b"100-continue") => {
                return Err(Refusal::Expect);
            }
            Some(Named::Expect) | None => {}
        }
    }
    if is_1_1 && host.is_none() {
        return Err(Refusal::Host);
    }
    check_target(method, target, host)?;
    match (length, chunked) {
        (Some(_), true) => Err(Refusal::BothLengths),
        (_, true) => Ok(BodyShape::Chunked),
        (length, false) => Ok(BodyShape::Length(length.unwrap_or(0))),
    }
}

/// `METHOD SP target SP HTTP/1.x`, with one space each.
fn request_line(line: &[u8]) -> Result<[&[u8]; 3], Refusal> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::RequestLine);
    };
    if !is_token(method) || target.is_empty() || target.contains(&b'\t') {
        return Err(Refusal::RequestLine);
    }
    match version {
        b"HTTP/1.1" | b"HTTP/1.0" => {}
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(Refusal::Version);
        }
        _ => return Err(Refusal::RequestLine),
    }
    if target.len() > MAX_TARGET { Err(Refusal::TargetTooLong) } else { Ok([method, target, version]) }
}

fn check_target(method: &[u8], target: &[u8], host: Option<Authority<'_>>) -> Result<(), Refusal> {
    if target[0] == b'/' {
        return Ok(());
    }
    if target == b"*" {
        return if method == b"OPTIONS" { Ok(()) } else { Err(Refusal::Target) };
    }
    // A URL, as clients of a proxy send it.
    let scheme = target.iter().position(|byte| *byte == b':').map(|at| target.split_at(at));
    let Some((scheme, rest)) = scheme else { return Err(Refusal::Target) };
    let known = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
    let Some(rest) = rest.strip_prefix(b"://").filter(|_| known) else { return Err(Refusal::Target) };
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let named = Authority::of_bytes(&rest[..end]).ok_or(Refusal::Target)?;
    match host {
        Some(host) if !named.same_place(&host) => Err(Refusal::HostDiffers),
        _ => Ok(()),
    }
}

/// `name: value`; the blanks around the value are not part of it.
pub(super) fn header_line(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Refusal::Folded);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Refusal::HeaderLine)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if is_token(name) { Ok((name, value.trim_ascii())) } else { Err(Refusal::HeaderLine) }
}

fn is_token(bytes: &[u8]) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(token)
}

/// Digits, and not more of them than fit. A zero in front is no mistake of any client, and read as octal by some.
fn content_length(value: &[u8]) -> Result<u64, Refusal> {
    let plain = (1..=18).contains(&value.len())
        && value.iter().all(u8::is_ascii_digit)
        && (value.len() == 1 || value[0] != b'0');
    if !plain {
        return Err(Refusal::ContentLength);
    }
    Ok(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The headers that decide where a request ends and whom it is for.
enum Named {
    Host,
    ContentLength,
    TransferEncoding,
    Expect,
}

impl Named {
    fn of(name: &[u8]) -> Option<Self> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => Some(Self::Host),
            6 if name.eq_ignore_ascii_case(b"expect") => Some(Self::Expect),
            14 if like(name, b"content-length") => Some(Self::ContentLength),
            17 if like(name, b"transfer-encoding") => Some(Self::TransferEncoding),
            _ => None,
        }
    }
}

/// With `_` for `-` as well: gateways in the manner of CGI take one for the other.
fn like(name: &[u8], known: &[u8]) -> bool {
    name.iter().zip(known).all(|(a, b)| a.eq_ignore_ascii_case(b) || (*a == b'_' && *b == b'-'))
}

/// Lines without their CR LF.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}
