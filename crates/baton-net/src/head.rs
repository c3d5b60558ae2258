//! Reads the head of an HTTP/1 request strictly, so that it can be understood in one way only.
//!
//! RFC 9112 allows a server to be lenient in places where a proxy may be lenient in another way. Request smuggling uses
//! these differences, so here every such place is an error.

use memchr::memchr2;

use super::authority::{Authority, Scheme};
use super::refusal::{self, Refusal};

/// hyper reads no more, and honest clients send far fewer.
pub(super) const MAX_HEADERS: usize = 100;
/// hyper's own limit is larger.
pub(super) const MAX_TARGET: usize = 16 * 1024;

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyShape {
    /// May be 0.
    Length(u64),
    Chunked,
}

/// What the lines of a head have said so far. It holds positions, counted from the head's first byte, and no bytes: these
/// are passed in again with every line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Head {
    lines: usize,
    is_1_1: bool,
    is_options: bool,
    target: Extent,
    host: Option<Extent>,
    length: Option<u64>,
    chunked: bool,
}

/// From where to where, counted from the first byte of the head.
type Extent = (usize, usize);

impl Head {
    /// Reads the next line, without its CR LF. It has no control characters but tabs.
    pub(super) fn line(&mut self, head: &[u8], (start, end): Extent) -> Result<(), Refusal> {
        let line = &head[start..end];
        self.lines += 1;
        match self.lines {
            1 => return self.request_line(line, start),
            lines if lines > 1 + MAX_HEADERS => return Err(Refusal::TooManyHeaders),
            _ => {}
        }
        let (name, value) = header_line(line)?;
        match Named::of(name) {
            None => {}
            Some(Named::Host) => {
                Authority::of_bytes(value).ok_or(Refusal::Host)?;
                let from = start + name.len() + 1 + blanks(&line[name.len() + 1..]);
                if self.host.replace((from, from + value.len())).is_some() {
                    return Err(Refusal::Host);
                }
            }
            Some(Named::ContentLength) => {
                let before = self.length.replace(content_length(value)?);
                if before.is_some() {
                    return Err(Refusal::ContentLength);
                }
            }
            Some(Named::TransferEncoding) => {
                if self.chunked || !self.is_1_1 || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::TransferEncoding);
                }
                self.chunked = true;
            }
            Some(Named::LookAlike) => return Err(Refusal::LookAlike),
            Some(Named::Expect) if value.eq_ignore_ascii_case(b"100-continue") => {}
            Some(Named::Expect) => return Err(Refusal::Expect),
        }
        Ok(())
    }

    fn request_line(&mut self, line: &[u8], start: usize) -> Result<(), Refusal> {
        let [method, target, version] = request_line(line)?;
        if matches!(method, b"CONNECT" | b"TRACE") || method == refusal::METHOD.as_bytes() {
            return Err(Refusal::Method);
        }
        (self.is_1_1, self.is_options) = (version == b"HTTP/1.1", method == b"OPTIONS");
        let from = start + method.len() + 1;
        self.target = (from, from + target.len());
        Ok(())
    }

    /// The blank line has come.
    pub(super) fn end(&self, head: &[u8]) -> Result<BodyShape, Refusal> {
        if self.lines == 0 {
            return Err(Refusal::RequestLine);
        }
        if self.is_1_1 && self.host.is_none() {
            return Err(Refusal::Host);
        }
        let host = self.host.map(|(from, to)| &head[from..to]);
        check_target(self.is_options, &head[self.target.0..self.target.1], host)?;
        match (self.length, self.chunked) {
            (Some(_), true) => Err(Refusal::BothLengths),
            (_, true) => Ok(BodyShape::Chunked),
            (length, false) => Ok(BodyShape::Length(length.unwrap_or(0))),
        }
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

fn check_target(is_options: bool, target: &[u8], host: Option<&[u8]>) -> Result<(), Refusal> {
    match target {
        [b'/', ..] => return Ok(()),
        b"*" => return if is_options { Ok(()) } else { Err(Refusal::Target) },
        _ => {}
    }
    // A URL, as clients of a proxy send it.
    let scheme = target.iter().position(|byte| *byte == b':').map(|at| target.split_at(at));
    let Some((scheme, rest)) = scheme else { return Err(Refusal::Target) };
    let scheme = match scheme {
        _ if scheme.eq_ignore_ascii_case(b"http") => Scheme::Http,
        _ if scheme.eq_ignore_ascii_case(b"https") => Scheme::Https,
        _ => return Err(Refusal::Target),
    };
    let Some(rest) = rest.strip_prefix(b"://") else { return Err(Refusal::Target) };
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let named = Authority::of_bytes(&rest[..end]).ok_or(Refusal::Target)?;
    match host.and_then(Authority::of_bytes) {
        Some(host) if !named.same_place(&host, scheme) => Err(Refusal::HostDiffers),
        _ => Ok(()),
    }
}

/// `name: value`; the blanks around the value are not part of it.
fn header_line(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Refusal::Folded);
    }
    // A colon is not a token character, so the name ends with its token characters.
    let end = line.iter().position(|byte| !TOKEN[usize::from(*byte)]).ok_or(Refusal::HeaderLine)?;
    let (name, value) = (&line[..end], &line[end + 1..]);
    if end > 0 && line[end] == b':' { Ok((name, value.trim_ascii())) } else { Err(Refusal::HeaderLine) }
}

/// How many blanks come first.
fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| TOKEN[usize::from(*byte)])
}

/// RFC 9110, 5.6.2. A table, since every byte of every name is looked up.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let others = b"!#$%&'*+-.^_`|~";
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// A byte that may not be in a line of a head.
pub(super) fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// The position of the first such byte. Every line ends with one, so that is searched for first; between the ends of lines
/// there is usually none. That check has no early exit, so that the compiler vectorizes it.
pub(super) fn find_control(bytes: &[u8]) -> Option<usize> {
    let end = memchr2(b'\r', b'\n', bytes);
    let line = &bytes[..end.unwrap_or(bytes.len())];
    let has_control = line.iter().fold(false, |found, byte| found | is_control(*byte));
    if has_control { line.iter().position(|byte| is_control(*byte)) } else { end }
}

/// Digits only, as many as fit. A leading zero is refused: no client sends one by mistake, and some readers take it for
/// octal.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Host,
    ContentLength,
    TransferEncoding,
    Expect,
    /// Differs from one of [`DECISIVE`] in punctuation only, so that some readers take it for that.
    LookAlike,
}

/// The headers that decide where a request ends, which host it is for, or whether the connection stays open.
pub(super) const DECISIVE: [&[u8]; 8] = [
    b"content-length",
    b"transfer-encoding",
    b"host",
    b"connection",
    b"upgrade",
    b"expect",
    b"trailer",
    b"te",
];

impl Named {
    /// Names are compared exactly, without regard to case, as hyper does.
    fn of(name: &[u8]) -> Option<Self> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => Some(Self::Host),
            6 if name.eq_ignore_ascii_case(b"expect") => Some(Self::Expect),
            14 if name.eq_ignore_ascii_case(b"content-length") => Some(Self::ContentLength),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => Some(Self::TransferEncoding),
            _ if is_look_alike(name) => Some(Self::LookAlike),
            _ => None,
        }
    }
}

/// True if the name equals a decisive one when punctuation is ignored. Gateways like CGI make `CONTENT_LENGTH` of both
/// `Content-Length` and `Content.Length`.
fn is_look_alike(name: &[u8]) -> bool {
    // A quick check: most names begin with another letter than the decisive ones.
    if name.first().is_some_and(|first| first.is_ascii_alphanumeric() && !b"cthue".contains(&(first | 0x20)))
    {
        return false;
    }
    let letters = |name| <[u8]>::iter(name).filter(|byte| byte.is_ascii_alphanumeric());
    DECISIVE.iter().any(|known| {
        letters(name).map(u8::to_ascii_lowercase).eq(letters(known).copied())
            && !name.eq_ignore_ascii_case(known)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_name_decides_and_what_looks_like_it_is_refused() {
        for known in DECISIVE {
            let text = str::from_utf8(known).unwrap();
            for exact in [text.to_owned(), text.to_ascii_uppercase()] {
                assert_ne!(Named::of(exact.as_bytes()), Some(Named::LookAlike), "{exact}");
            }
            for other in [
                text.replace('-', "_"),
                text.replace('-', "."),
                text.replace('-', ""),
                text.replace('-', "--"),
                format!("_{text}"),
                format!("{text}-"),
                format!("{}~{}", &text[..1], &text[1..]),
                format!("{}'", text.to_ascii_uppercase()),
            ] {
                let expected = (other != text).then_some(Named::LookAlike);
                assert!(expected.is_none() || Named::of(other.as_bytes()) == expected, "{other}");
            }
        }
        for honest in [
            "content-type",
            "content_type",
            "Content-Lengths",
            "x-host",
            "hosts",
            "TE1",
            "ETag",
            "Cookie",
            "traceparent",
            "User-Agent",
            "x-content-length",
            "-",
            "_",
            "connections",
            "Upgrade-Insecure-Requests",
            "content-version",
        ] {
            assert_eq!(Named::of(honest.as_bytes()), None, "{honest}");
        }
    }

    #[test]
    fn control_characters_are_found_wherever_they_are() {
        for byte in 0..=u8::MAX {
            for length in 0..40 {
                for at in 0..length {
                    let mut text = vec![b'\t'; length];
                    for (place, filler) in
                        text.iter_mut().zip([b'a', 0x80, b'\t', b' ', 0xff, b'~'].iter().cycle())
                    {
                        *place = *filler;
                    }
                    text[at] = byte;
                    let slow = text.iter().position(|byte| is_control(*byte));
                    assert_eq!(find_control(&text), slow, "{byte} at {at} of {length}");
                }
            }
        }
        assert_eq!(find_control(b"\x1f\x7f\x00"), Some(0));
        assert_eq!(find_control(b""), None);
    }
}
