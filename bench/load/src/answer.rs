//! Parses HTTP/1.1 answers incrementally: with a length, in chunks, or until the connection closes.

use memchr::{memchr, memmem};

/// Reads answers, one after the other, from one connection.
#[derive(Debug, Default)]
pub struct Answer {
    state: State,
    /// Bytes that are not enough for the next step yet.
    pending: Vec<u8>,
    /// Without chunk lines.
    body: Vec<u8>,
    status: u16,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Head,
    Length(usize),
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailer,
    UntilClose,
    Done,
}

/// Not a valid HTTP/1.1 answer.
#[derive(Debug)]
pub struct Broken;

impl Answer {
    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the end of the connection is the regular end of the answer.
    pub fn ends_with_connection(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Before the next request.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.pending.clear();
        self.body.clear();
        self.status = 0;
    }

    /// Takes the bytes that were read; true when the answer is complete.
    pub fn feed(&mut self, input: &[u8]) -> Result<bool, Broken> {
        if self.pending.is_empty() {
            let taken = self.take(input)?;
            self.pending.extend_from_slice(&input[taken..]);
        } else {
            let mut all = std::mem::take(&mut self.pending);
            all.extend_from_slice(input);
            let taken = self.take(&all)?;
            all.drain(..taken);
            self.pending = all;
        }
        Ok(self.is_done())
    }

    /// Returns how many bytes were used; the rest is the beginning of something incomplete.
    fn take(&mut self, input: &[u8]) -> Result<usize, Broken> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.state {
                State::Head => {
                    let Some(end) = memmem::find(rest, b"\r\n\r\n") else { return Ok(at) };
                    self.head(&rest[..end + 2])?;
                    at += end + 4;
                }
                State::Length(0) => self.state = State::Done,
                State::Length(left) => {
                    let part = left.min(rest.len());
                    if part == 0 {
                        return Ok(at);
                    }
                    self.body.extend_from_slice(&rest[..part]);
                    at += part;
                    self.state = State::Length(left - part);
                }
                State::ChunkSize => {
                    let Some(end) = memchr(b'\n', rest) else { return Ok(at) };
                    let size = chunk_size(&rest[..end])?;
                    at += end + 1;
                    self.state = if size == 0 { State::Trailer } else { State::Chunk(size) };
                }
                State::Chunk(0) => self.state = State::ChunkEnd,
                State::Chunk(left) => {
                    let part = left.min(rest.len());
                    if part == 0 {
                        return Ok(at);
                    }
                    self.body.extend_from_slice(&rest[..part]);
                    at += part;
                    self.state = State::Chunk(left - part);
                }
                State::ChunkEnd => {
                    if rest.len() < 2 {
                        return Ok(at);
                    }
                    at += 2;
                    self.state = State::ChunkSize;
                }
                State::Trailer => {
                    let Some(end) = memchr(b'\n', rest) else { return Ok(at) };
                    at += end + 1;
                    if end <= 1 {
                        self.state = State::Done;
                    }
                }
                State::UntilClose => {
                    self.body.extend_from_slice(rest);
                    return Ok(input.len());
                }
                // Requests are not pipelined, so nothing more is expected.
                State::Done if !rest.is_empty() => return Err(Broken),
                State::Done => return Ok(at),
            }
        }
    }

    fn head(&mut self, head: &[u8]) -> Result<(), Broken> {
        let code = head.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
        self.status = code.and_then(|code| code.parse().ok()).ok_or(Broken)?;
        self.state = State::UntilClose;
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr(b':', line) else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                self.state = State::Length(length.ok_or(Broken)?);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                self.state = State::ChunkSize;
            }
        }
        Ok(())
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, Broken> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let digits = std::str::from_utf8(digits).map_err(|_| Broken)?;
    usize::from_str_radix(digits, 16).map_err(|_| Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same answer, however it is cut into pieces.
    fn check(text: &str, status: u16, body: &str) {
        for size in 1..=text.len() {
            let mut answer = Answer::default();
            let mut done = false;
            for piece in text.as_bytes().chunks(size) {
                assert!(!done, "done too early");
                done = answer.feed(piece).expect("a good answer");
            }
            assert!(done);
            assert_eq!((answer.status(), answer.body()), (status, body.as_bytes()));
        }
    }

    #[test]
    fn answers_with_a_length() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello");
        check("HTTP/1.1 404 Not Found\r\nContent-Length:0\r\n\r\n", 404, "");
    }

    #[test]
    fn answers_in_chunks() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
        check(text, 200, "abc0123456789");
    }

    #[test]
    fn an_answer_may_end_with_the_connection() {
        let mut answer = Answer::default();
        assert!(!answer.feed(b"HTTP/1.1 200 OK\r\n\r\nabc").expect("a good answer"));
        assert!(answer.ends_with_connection());
        assert_eq!(answer.body(), b"abc");
    }
}
