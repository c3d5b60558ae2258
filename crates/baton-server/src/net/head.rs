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

/// A head as far as it has been read, line by line. Extents are counted from its first byte: the bytes themselves stay
/// where they are, and are given again with every line.
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
    /// The next line, without its CR LF. It is known to hold no control character but tabs.
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
    let known = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
    let Some(rest) = rest.strip_prefix(b"://").filter(|_| known) else { return Err(Refusal::Target) };
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let named = Authority::of_bytes(&rest[..end]).ok_or(Refusal::Target)?;
    match host.and_then(Authority::of_bytes) {
        Some(host) if !named.same_place(&host) => Err(Refusal::HostDiffers),
        _ => Ok(()),
    }
}

/// `name: value`; the blanks around the value are not part of it.
fn header_line(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Refusal::Folded);
    }
    // A colon is no part of a token, so the name is as long as its tokens go.
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

/// What no head may hold, but for the ends of its lines.
pub(super) fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// Where the first such byte is. Eight at a time: this is what every byte of every head goes through.
pub(super) fn find_control(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let mut at = 0;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        // A high bit for every byte below a space, and for every DEL; above the lowest of them it may be wrong.
        let low = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let without_del = word ^ (ONES * 0x7f);
        let del = without_del.wrapping_sub(ONES) & !without_del & HIGHS;
        match low | del {
            0 => at += 8,
            found => {
                at += found.trailing_zeros() as usize / 8;
                if is_control(bytes[at]) {
                    return Some(at);
                }
                at += 1;
            }
        }
    }
    bytes[at..].iter().position(|byte| is_control(*byte)).map(|rest| at + rest)
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Host,
    ContentLength,
    TransferEncoding,
    Expect,
    /// Not one of the names that decide about a connection, but some reader takes it for one.
    LookAlike,
}

/// Every header that decides where a message ends, whom it is for, or what becomes of the connection after it.
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
    /// Only the exact name, in letters of any case, means what it says: that is how hyper reads it.
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

/// Is this a decisive name to a reader that does not tell `_`, `-` and other punctuation apart, or drops them? Gateways
/// in the manner of CGI make `CONTENT_LENGTH` of both `Content-Length` and `Content.Length`.
fn is_look_alike(name: &[u8]) -> bool {
    // Most names begin with a letter that none of the decisive names begins with.
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
            "a2a-version",
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
