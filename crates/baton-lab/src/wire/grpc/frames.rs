//! gRPC's framing: a flag, a length, a message.

use bytes::{Buf as _, BytesMut};

/// A message as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// 0; 1 for a compressed message.
    pub(crate) flag: u8,
    pub(crate) message: Vec<u8>,
}

/// A message as it goes.
pub(crate) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("the lab sends no gigabytes");
    [&[flag][..], &length.to_be_bytes(), message].concat()
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    pending: BytesMut,
}

impl Reader {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next message, if it is whole.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let head = self.pending.first_chunk::<5>()?;
        let (flag, length) = (head[0], u32::from_be_bytes([head[1], head[2], head[3], head[4]]));
        let length = usize::try_from(length).ok()?;
        if self.pending.len() < 5 + length {
            return None;
        }
        self.pending.advance(5);
        Some(Frame { flag, message: self.pending.split_to(length).to_vec() })
    }

    /// Bytes of a message that is not whole.
    pub(crate) fn left(&self) -> usize {
        self.pending.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_cut_the_bytes_gives_the_same_messages() {
        let bytes = [framed(0, b"one"), framed(1, b""), framed(0, b"three"), vec![0, 0]].concat();
        for cut in 0..bytes.len() {
            let (mut reader, mut found) = (Reader::default(), Vec::new());
            for half in [&bytes[..cut], &bytes[cut..]] {
                reader.feed(half);
                found.extend(std::iter::from_fn(|| reader.next()));
            }
            let found: Vec<_> = found.iter().map(|frame| (frame.flag, frame.message.as_slice())).collect();
            assert_eq!(found, [(0, &b"one"[..]), (1, b""), (0, b"three")], "cut at {cut}");
            assert_eq!(reader.left(), 2);
        }
    }
}
