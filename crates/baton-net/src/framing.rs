//! Where HTTP/1 requests begin and end: a state machine over the bytes of a connection.
//!
//! It stands between the socket and hyper, and passes on only what it has understood: a head as a whole or not at all, a
//! body with a length by count, a chunked body chunk by chunk. It is stricter than hyper everywhere, so the two cannot
//! disagree on where the next request begins. If they did, [`Requests`](super::requests::Requests) would notice: requests
//! are passed on one by one, and both sides count them.

use super::head::{self, BodyShape, Head, is_control};
use super::refusal::Refusal;

/// Most bytes of a chunked body's trailers; hyper has the same limit.
const MAX_TRAILER_BYTES: usize = 16 * 1024;
const MAX_TRAILERS: usize = 100;
/// Most bytes of one chunk's extensions. hyper limits them for the whole body.
const MAX_EXTENSION_BYTES: usize = 1024;

#[derive(Debug)]
pub(super) struct Framing {
    at: At,
    max_head: usize,
    /// Bytes of the current body that have been passed on.
    body_seen: u64,
    /// Heads passed on so far, and what follows the last of them.
    heads: u64,
    shape: BodyShape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Head(Scan),
    Length(u64),
    Chunked(Chunk),
    /// Nothing more is passed on.
    Refused,
}

/// How far a head has been read, counted from its first byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Scan {
    done: usize,
    line: usize,
    head: Head,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    Size {
        value: u64,
        digits: u8,
    },
    Extension {
        size: u64,
        seen: usize,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// The first byte of a line after the last chunk.
    Line(Trailer),
    Name(Trailer),
    Value(Trailer),
    ValueLf(Trailer),
    EndLf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trailer {
    bytes: usize,
    lines: usize,
}

/// What may go on to hyper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How many bytes may go on. The rest is a head that is incomplete or has to wait; feed it again, with what comes
    /// after it.
    pub(super) pass: usize,
    /// The rest is a head that has to wait until hyper has announced the request before it.
    pub(super) waits: bool,
    pub(super) refused: Option<Refused>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// hyper has got nothing of the request.
    Head(Refusal),
    /// hyper is reading its body.
    Body(Refusal),
}

/// What comes next on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// A head, or the rest of one.
    Head,
    Body,
    Refused,
}

impl Framing {
    pub(super) fn new(max_head: usize) -> Self {
        Framing {
            at: At::Head(Scan::default()),
            max_head,
            body_seen: 0,
            heads: 0,
            shape: BodyShape::Length(0),
        }
    }

    pub(super) fn stand(&self) -> Stand {
        match self.at {
            At::Head(_) => Stand::Head,
            At::Length(_) | At::Chunked(_) => Stand::Body,
            At::Refused => Stand::Refused,
        }
    }

    pub(super) fn body_seen(&self) -> u64 {
        self.body_seen
    }

    /// How many heads have been passed on, and the body of the last of them.
    pub(super) fn last_head(&self) -> (u64, BodyShape) {
        (self.heads, self.shape)
    }

    /// Passes on nothing more, because the caller has refused the request.
    pub(super) fn refuse(&mut self) {
        self.at = At::Refused;
    }

    /// Counts the request without a body that hyper gets in place of the refused one.
    pub(super) fn stand_in(&mut self) {
        self.heads += 1;
        self.shape = BodyShape::Length(0);
    }

    /// Reads the next bytes, beginning with those that were not passed on last time. Passes on one head at most, and only
    /// if one `may_begin`.
    pub(super) fn feed(&mut self, bytes: &[u8], mut may_begin: bool) -> Verdict {
        let mut pass = 0;
        while pass < bytes.len() {
            let begins = matches!(self.at, At::Head(_));
            if begins && !may_begin {
                return Verdict { pass, waits: true, refused: None };
            }
            let rest = &bytes[pass..];
            match self.step(rest) {
                Ok(0) => break,
                Ok(taken) => pass += taken,
                Err(refused) => {
                    self.at = At::Refused;
                    return Verdict { pass, waits: false, refused: Some(refused) };
                }
            }
            may_begin &= !begins;
        }
        Verdict { pass, waits: false, refused: None }
    }

    /// How many bytes may go on; 0 if more are needed to decide.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Refused> {
        match &mut self.at {
            At::Refused => Ok(0),
            At::Head(scan) => {
                let end = scan.find_end(bytes, self.max_head).map_err(Refused::Head)?;
                let Some((end, shape)) = end else { return Ok(0) };
                self.body_seen = 0;
                self.heads += 1;
                self.shape = shape;
                self.at = match shape {
                    BodyShape::Length(0) => At::Head(Scan::default()),
                    BodyShape::Length(length) => At::Length(length),
                    BodyShape::Chunked => At::Chunked(Chunk::Size { value: 0, digits: 0 }),
                };
                Ok(end)
            }
            At::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                self.body_seen += taken as u64;
                if *left == 0 {
                    self.at = At::Head(Scan::default());
                }
                Ok(taken)
            }
            At::Chunked(chunk) => {
                let (taken, next) = chunk.step(bytes).map_err(Refused::Body)?;
                self.body_seen += taken as u64;
                self.at = next.map_or(At::Head(Scan::default()), At::Chunked);
                Ok(taken)
            }
        }
    }
}

impl Scan {
    /// The position after the blank line that ends the head, and the shape of the body. Each line is checked as it comes,
    /// so that a bad head is refused before its end.
    fn find_end(&mut self, bytes: &[u8], max: usize) -> Result<Option<(usize, BodyShape)>, Refusal> {
        // Bytes beyond the limit are not read: the result must not depend on how many came at once.
        let within = &bytes[..bytes.len().min(max)];
        while let Some(ahead) = head::find_control(&within[self.done..]) {
            let at = self.done + ahead;
            self.done = at;
            match (within[at], within.get(at + 1)) {
                (b'\r', Some(b'\n')) => {}
                (b'\r', None) => return self.unfinished(bytes.len(), max),
                (b'\r', Some(_)) => return Err(Refusal::BareCr),
                (b'\n', _) => return Err(Refusal::BareLf),
                _ => return Err(Refusal::Control),
            }
            let (line, next) = (self.line, at + 2);
            (self.done, self.line) = (next, next);
            if at > line {
                self.head.line(within, (line, at))?;
            } else if line > 0 {
                return Ok(Some((next, self.head.end(within)?)));
            }
            // The first line may be blank: some old clients send an extra CR LF after a body.
        }
        self.done = within.len();
        self.unfinished(bytes.len(), max)
    }

    fn unfinished<T>(&self, length: usize, max: usize) -> Result<Option<T>, Refusal> {
        match length {
            length if length < max => Ok(None),
            _ if self.head == Head::default() => Err(Refusal::TargetTooLong),
            _ => Err(Refusal::HeadTooLarge),
        }
    }
}

impl Chunk {
    /// How many bytes were read, and the next state; `None` at the end of the body.
    fn step(self, bytes: &[u8]) -> Result<(usize, Option<Chunk>), Refusal> {
        if let Chunk::Data { left } = self {
            let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let left = left - taken as u64;
            let next = if left == 0 { Chunk::DataCr } else { Chunk::Data { left } };
            return Ok((taken, Some(next)));
        }
        let next = match (self, bytes[0]) {
            // Fifteen hex digits are enough for any size.
            (Chunk::Size { value, digits: digits @ ..15 }, byte) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                Chunk::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Chunk::Size { value, digits: 1.. }, b'\r') => Chunk::SizeLf { size: value },
            (Chunk::Size { value, digits: 1.. }, b';') => Chunk::Extension { size: value, seen: 0 },
            (Chunk::Extension { size, .. }, b'\r') => Chunk::SizeLf { size },
            (Chunk::Extension { size, seen }, byte) if !is_control(byte) && seen < MAX_EXTENSION_BYTES => {
                Chunk::Extension { size, seen: seen + 1 }
            }
            (Chunk::SizeLf { size: 0 }, b'\n') => Chunk::Line(Trailer { bytes: 0, lines: 0 }),
            (Chunk::SizeLf { size }, b'\n') => Chunk::Data { left: size },
            (Chunk::DataCr, b'\r') => Chunk::DataLf,
            (Chunk::DataLf, b'\n') => Chunk::Size { value: 0, digits: 0 },
            (Chunk::Line(_), b'\r') => Chunk::EndLf,
            (Chunk::EndLf, b'\n') => return Ok((1, None)),
            (Chunk::Line(trailer) | Chunk::Name(trailer), byte) if is_name(byte) => {
                Chunk::Name(trailer.one_more()?)
            }
            (Chunk::Name(trailer), b':') => Chunk::Value(trailer.one_more()?),
            (Chunk::Value(trailer), b'\r') => Chunk::ValueLf(trailer.one_more()?),
            (Chunk::Value(trailer), byte) if !is_control(byte) => Chunk::Value(trailer.one_more()?),
            (Chunk::ValueLf(trailer), b'\n') => Chunk::Line(trailer.one_line()?),
            _ => return Err(Refusal::Chunk),
        };
        Ok((1, Some(next)))
    }
}

/// Narrower than RFC 9110's token: enough for the trailers in use.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

impl Trailer {
    fn one_more(self) -> Result<Self, Refusal> {
        let bytes = self.bytes + 1;
        if bytes > MAX_TRAILER_BYTES { Err(Refusal::Chunk) } else { Ok(Trailer { bytes, ..self }) }
    }

    fn one_line(self) -> Result<Self, Refusal> {
        let lines = self.lines + 1;
        if lines > MAX_TRAILERS {
            Err(Refusal::Chunk)
        } else {
            self.one_more().map(|t| Trailer { lines, ..t })
        }
    }
}

#[cfg(any(test, fuzzing))]
pub(super) mod oracle;
#[cfg(test)]
mod tests;
