//! The WHATWG event stream parser, fed in chunks of any size.

use std::collections::VecDeque;
use std::mem;

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The last event id at this event: it stays the same until another `id:` changes it. `None` if there was none yet
    /// or an empty `id:` reset it.
    pub id: Option<String>,
    /// `None` means the default type, `message`.
    pub event: Option<String>,
    /// The `data:` lines joined with `\n`.
    pub data: String,
    /// The latest valid `retry:` since the previous event, also from a block without data.
    pub retry: Option<u64>,
}

/// An event is longer than the parser's limit; the parser accepts nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("server-sent event larger than {limit} bytes")]
pub struct SseTooLarge {
    pub limit: usize,
}

/// [`feed`](Self::feed) takes bytes, [`next_event`](Self::next_event) returns events.
///
/// Each byte is processed once. An unfinished event at the end of the stream is never dispatched, so the end needs no
/// call. Take all events after each `feed`; those not taken are kept.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    too_large: bool,
    /// The beginning of a line whose end was not received yet.
    line: Vec<u8>,
    /// The previous line ended with `\r`, so a following `\n` belongs to it, even in the next chunk.
    after_cr: bool,
    /// A byte order mark is allowed only before the first line.
    first_line: bool,
    /// Length of the event's lines so far; comments are not counted.
    held: usize,
    data: Option<String>,
    event: String,
    /// The specification's "last event ID buffer": read, but not yet confirmed by a blank line.
    id: String,
    /// The specification's "last event ID string".
    last_id: String,
    retry: Option<u64>,
    ready: VecDeque<SseEvent>,
}

impl SseParser {
    /// A larger line buffer is freed after use, since streams live for hours.
    const LINE_KEPT: usize = 64 * 1024;

    /// `max_event_bytes` limits the lines of one event (with field names, without line ends), and every single line.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            limit: max_event_bytes,
            too_large: false,
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            held: 0,
            data: None,
            event: String::new(),
            id: String::new(),
            last_id: String::new(),
            retry: None,
            ready: VecDeque::new(),
        }
    }

    /// After an error, events that were complete before the too large one can still be taken.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), SseTooLarge> {
        while !bytes.is_empty() {
            if mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.too_large || self.held + self.line.len() + piece.len() > self.limit {
                return Err(self.fail());
            }
            let Some((line_end, rest)) = rest.split_first() else {
                self.line.extend_from_slice(piece);
                return Ok(());
            };
            if self.line.is_empty() {
                self.take_line(piece);
            } else {
                self.line.extend_from_slice(piece);
                let mut line = mem::take(&mut self.line);
                self.take_line(&line);
                line.clear();
                line.shrink_to(Self::LINE_KEPT);
                self.line = line;
            }
            self.after_cr = *line_end == b'\r';
            bytes = rest;
        }
        Ok(())
    }

    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// The value for `Last-Event-ID` when reconnecting. Unlike the last event's own id it also includes ids of blocks
    /// without data.
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.last_id.as_str()).filter(|id| !id.is_empty())
    }

    fn fail(&mut self) -> SseTooLarge {
        self.too_large = true;
        self.line = Vec::new();
        self.data = None;
        SseTooLarge { limit: self.limit }
    }

    fn take_line(&mut self, mut line: &[u8]) {
        if mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        match line.iter().position(|byte| *byte == b':') {
            _ if line.is_empty() => self.dispatch(),
            Some(0) => {}
            Some(colon) => {
                let value = &line[colon + 1..];
                self.held += line.len();
                self.take_field(&line[..colon], value.strip_prefix(b" ").unwrap_or(value));
            }
            None => {
                self.held += line.len();
                self.take_field(line, b"");
            }
        }
    }

    fn take_field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => {
                let value = String::from_utf8_lossy(value);
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&value);
                    }
                    None => self.data = Some(value.into_owned()),
                }
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.id = String::from_utf8_lossy(value).into_owned(),
            // `parse` alone would accept a plus sign. A number that does not fit `u64` is ignored.
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let millis = str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.retry = millis.or(self.retry);
            }
            _ => {}
        }
    }

    /// Called at a blank line. Without a `data:` line nothing is dispatched, but the id is kept.
    fn dispatch(&mut self) {
        self.held = 0;
        self.last_id.clone_from(&self.id);
        let event = mem::take(&mut self.event);
        if let Some(data) = self.data.take() {
            self.ready.push_back(SseEvent {
                id: self.last_event_id().map(str::to_owned),
                event: Some(event).filter(|name| !name.is_empty()),
                data,
                retry: self.retry.take(),
            });
        }
    }
}
