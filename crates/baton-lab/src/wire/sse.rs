//! Reads server-sent events exactly as the HTML standard says, without code of Baton's client.

/// One event. Comments are not events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    pub id: Option<String>,
    pub name: Option<String>,
    pub data: String,
}

/// Parses events incrementally.
#[derive(Debug, Default)]
pub struct Reader {
    pending: Vec<u8>,
    /// The last byte was a carriage return: a following line feed belongs to it.
    after_return: bool,
    begun: bool,
    event: Event,
    has_data: bool,
}

impl Reader {
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        for &byte in bytes {
            if byte == b'\n' && std::mem::take(&mut self.after_return) {
                continue;
            }
            self.after_return = byte == b'\r';
            if byte == b'\n' || byte == b'\r' {
                let line = std::mem::take(&mut self.pending);
                self.line(&line, events);
            } else {
                self.pending.push(byte);
            }
        }
    }

    /// The number of bytes of an unfinished line.
    pub fn unfinished(&self) -> usize {
        self.pending.len() + self.event.data.len()
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        let mut text = String::from_utf8_lossy(line).into_owned();
        if !std::mem::replace(&mut self.begun, true) {
            // Only one byte order mark is skipped: a second one is part of the first line.
            text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        }
        if text.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                events.push(event);
            }
            return;
        }
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "event" => self.event.name = Some(value.to_owned()),
            // A comment, `retry`, or an unknown field.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_cut_the_bytes_gives_the_same_events() {
        let stream = "\u{feff}: hello\r\nid: 1\r\nevent: status\r\ndata: {\"a\":\r\ndata: \"ä\"}\r\n\r\nretry: 5\n\n\
                      data:x\rid\r\rdata\n\n: end\n\ndata: unfinished";
        let event = |id: Option<&str>, name: Option<&str>, data: &str| Event {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            data: data.to_owned(),
        };
        let expected = [
            event(Some("1"), Some("status"), "{\"a\":\n\"ä\"}"),
            event(Some(""), None, "x"),
            event(None, None, ""),
        ];
        let bytes = stream.as_bytes();
        for cut in 0..bytes.len() {
            let (mut reader, mut events) = (Reader::default(), Vec::new());
            reader.feed(&bytes[..cut], &mut events);
            reader.feed(&bytes[cut..], &mut events);
            assert_eq!(events, expected, "cut at {cut}");
        }
        let (mut reader, mut events) = (Reader::default(), Vec::new());
        bytes.iter().for_each(|byte| reader.feed(&[*byte], &mut events));
        assert_eq!(events, expected);
    }
}
