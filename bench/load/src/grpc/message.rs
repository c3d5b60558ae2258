//! Messages: written field by field, and searched without decoding them.

/// A message in the making.
#[derive(Debug, Default, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    /// A field of text, bytes or a message.
    pub fn bytes(mut self, field: u8, bytes: &[u8]) -> Self {
        self.0.push(field << 3 | 2);
        let mut length = bytes.len();
        while length > 0x7f {
            self.0.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.0.push(length as u8);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A field with a small number.
    pub fn number(mut self, field: u8, number: u8) -> Self {
        self.0.extend_from_slice(&[field << 3, number & 0x7f]);
        self
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// How a correct answer ends.
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    /// The fields that lead to a number in the last message, and that number.
    pub with: (&'a [u64], u64),
    /// The field that this many messages of a stream have; a reply is one message.
    pub pieces: Option<(u64, usize)>,
}

impl Ends<'_> {
    pub(super) fn is_met(&self, body: &[u8]) -> bool {
        let (mut count, mut pieces, mut last) = (0, 0, &body[..0]);
        for message in messages(body) {
            let Some(message) = message else { return false };
            count += 1;
            pieces += usize::from(self.pieces.is_some_and(|(field, _)| find(message, field).is_some()));
            last = message;
        }
        let counted = match self.pieces {
            Some((_, wanted)) => pieces == wanted,
            None => count == 1,
        };
        counted && number_at(last, self.with.0) == Some(self.with.1)
    }
}

/// The messages of a body; `None` for one that is compressed or cut.
pub fn messages(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let whole = rest.split_at_checked(5).and_then(|(prefix, after)| {
            let (flag, length) = prefix.split_first_chunk::<1>()?;
            let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
            if *flag == [0] { after.split_at_checked(length) } else { None }
        });
        rest = whole.map_or(&[], |(_, rest)| rest);
        Some(whole.map(|(message, _)| message))
    })
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// What is in the field that these fields lead to.
pub fn bytes_at<'a>(message: &'a [u8], path: &[u64]) -> Option<&'a [u8]> {
    path.iter().try_fold(message, |message, field| match find(message, *field)? {
        Value::Bytes(inner) => Some(inner),
        _ => None,
    })
}

fn number_at(message: &[u8], path: &[u64]) -> Option<u64> {
    let (field, path) = path.split_last()?;
    match find(bytes_at(message, path)?, *field)? {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

/// The first field with that number.
fn find(mut message: &[u8], wanted: u64) -> Option<Value<'_>> {
    loop {
        let key = varint(&mut message)?;
        let length = match key & 7 {
            0 => 0,
            1 => 8,
            2 => varint(&mut message)? as usize,
            5 => 4,
            _ => return None,
        };
        let value = if key & 7 == 0 {
            Value::Number(varint(&mut message)?)
        } else {
            let (bytes, rest) = message.split_at_checked(length)?;
            message = rest;
            if key & 7 == 2 { Value::Bytes(bytes) } else { Value::Fixed }
        };
        if key >> 3 == wanted {
            return Some(value);
        }
    }
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut body = Vec::new();
        for message in messages {
            body.push(0);
            body.extend_from_slice(&(message.len() as u32).to_be_bytes());
            body.extend_from_slice(message);
        }
        body
    }

    fn ended(state: u8) -> Vec<u8> {
        let status = Message::default().number(1, state).into_bytes();
        Message::default().bytes(1, &[b'x'; 300]).bytes(3, &status).into_bytes()
    }

    #[test]
    fn a_reply_is_one_message_with_the_number() {
        let ends = Ends { with: (&[3, 1], 3), pieces: None };
        assert!(ends.is_met(&framed(&[ended(3)])));
        assert!(!ends.is_met(&framed(&[ended(2)])), "another number");
        assert!(!ends.is_met(&framed(&[ended(3), ended(3)])), "two messages");
        assert!(!ends.is_met(&[]), "no message");
        let whole = framed(&[ended(3)]);
        assert!(!ends.is_met(&whole[..whole.len() - 1]), "cut");
        let mut compressed = whole;
        compressed[0] = 1;
        assert!(!ends.is_met(&compressed), "compressed");
    }

    #[test]
    fn the_pieces_of_a_stream_are_counted() {
        let ends = Ends { with: (&[3, 1], 3), pieces: Some((4, 2)) };
        let piece = Message::default().bytes(4, b"piece").into_bytes();
        let all = [piece.clone(), ended(2), piece, ended(3)];
        assert!(ends.is_met(&framed(&all)));
        assert!(!ends.is_met(&framed(&all[1..])), "one is missing");
        assert!(!ends.is_met(&framed(&all[..3])), "the last one is missing");
    }
}
