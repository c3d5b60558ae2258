//! Messages as gRPC sends them: a flag, a length, the bytes. Compressed ones are refused: a small one could decompress to any
//! size.

use bytes::{Buf as _, Bytes, BytesMut};

/// The bytes before a message: whether it is compressed, and its length.
pub const PREFIX: usize = 5;

/// The prefix of a message that is not compressed.
pub fn prefix(length: usize) -> [u8; PREFIX] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [0, a, b, c, d]
}

/// A message with its prefix.
pub fn framed(message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(PREFIX + message.len());
    out.extend_from_slice(&prefix(message.len()));
    out.extend_from_slice(message);
    out.into()
}

/// Why a message is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unframed {
    Compressed,
    UnknownFlag,
    /// Its length is above the limit.
    TooLarge,
}

/// Checks the flag of a message.
pub fn check_flag(flag: u8) -> Result<(), Unframed> {
    match flag {
        0 => Ok(()),
        1 => Err(Unframed::Compressed),
        _ => Err(Unframed::UnknownFlag),
    }
}

/// Takes messages out of the pieces in which they come. It holds at most one message and the piece that came last.
#[derive(Debug)]
pub struct Deframer {
    most: usize,
    buffer: BytesMut,
}

impl Deframer {
    /// `most`: how long a message may be.
    pub fn new(most: usize) -> Self {
        Deframer { most, buffer: BytesMut::new() }
    }

    /// Call [`next`](Self::next) until there is none before the next piece is fed.
    pub fn feed(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next whole message. An error is found before the message has come.
    #[expect(clippy::should_implement_trait, reason = "it goes on after None")]
    pub fn next(&mut self) -> Result<Option<Bytes>, Unframed> {
        let Some(mut prefix) = self.buffer.get(..PREFIX) else { return Ok(None) };
        let (flag, length) = (prefix.get_u8(), prefix.get_u32() as usize);
        check_flag(flag)?;
        if length > self.most {
            return Err(Unframed::TooLarge);
        }
        if self.buffer.len() - PREFIX < length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Whether nothing of another message has come.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p03_messages_are_found_however_they_are_cut() {
        let whole = [framed(b"one"), framed(b""), framed(b"three")].concat();
        for size in 1..=whole.len() {
            let mut deframer = Deframer::new(5);
            let mut found = Vec::new();
            for piece in whole.chunks(size) {
                deframer.feed(piece);
                while let Some(message) = deframer.next().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, [&b"one"[..], b"", b"three"], "in pieces of {size}");
            assert!(deframer.is_empty());
        }
    }

    #[test]
    fn p03_bad_prefixes_are_refused_before_the_message_comes() {
        for (prefix, refused) in [
            ([1, 0, 0, 0, 1], Unframed::Compressed),
            ([2, 0, 0, 0, 1], Unframed::UnknownFlag),
            ([0, 0, 0, 0, 6], Unframed::TooLarge),
            ([0, 255, 255, 255, 255], Unframed::TooLarge),
        ] {
            let mut deframer = Deframer::new(5);
            deframer.feed(&prefix[..4]);
            assert_eq!(deframer.next(), Ok(None));
            assert!(!deframer.is_empty());
            deframer.feed(&prefix[4..]);
            assert_eq!(deframer.next(), Err(refused), "{prefix:?}");
        }
    }
}
