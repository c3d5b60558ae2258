//! The Huffman code of HTTP/2's headers (RFC 7541, appendix B). It is canonical, so the lengths of the codes say all.

use std::sync::LazyLock;

const LONGEST: usize = 30;

/// Bits of each byte's code.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The bytes of one length, and the code of the first of them.
#[derive(Debug, Default, Clone)]
struct Level {
    first: u32,
    bytes: Vec<u8>,
}

static LEVELS: LazyLock<Vec<Level>> = LazyLock::new(|| {
    let mut levels = vec![Level::default(); LONGEST + 1];
    let mut code = 0;
    for (length, level) in levels.iter_mut().enumerate().skip(1) {
        code <<= 1;
        level.first = code;
        level.bytes = (0..=255).filter(|byte| LENGTHS[usize::from(*byte)] as usize == length).collect();
        code += level.bytes.len() as u32;
    }
    levels
});

/// `None` if the bits are no codes, or the padding at the end is not of ones.
pub(super) fn decoded(input: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(input.len() * 2);
    let (mut code, mut length) = (0u32, 0);
    for byte in input {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            length += 1;
            let level = LEVELS.get(length)?;
            let found = code.checked_sub(level.first).and_then(|index| level.bytes.get(index as usize));
            if let Some(byte) = found {
                out.push(*byte);
                (code, length) = (0, 0);
            }
        }
    }
    (length < 8 && code == (1 << length) - 1).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        for (coded, text) in [
            (
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f], "custom-key"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf], "custom-value"),
            (&[0x64, 0x02], "302"),
            (&[], ""),
        ] {
            assert_eq!(decoded(coded).as_deref(), Some(text.as_bytes()));
        }
    }

    #[test]
    fn wrong_padding_is_refused() {
        assert_eq!(decoded(&[0x07]).as_deref(), Some(&b"0"[..]));
        assert_eq!(decoded(&[0x06]), None);
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[0xff; 5]), None);
    }
}
