//! The textual form of keys, PEM (RFC 7468): lines of base64 between a line with the kind and one that ends it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The first block of a text: its kind, such as `PRIVATE KEY`, and the bytes. `None` if there is no whole block.
pub fn first_block(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (kind, rest) = rest.split_once("-----")?;
    let (body, rest) = rest.split_once("-----END ")?;
    rest.strip_prefix(kind)?.strip_prefix("-----")?;
    let base64: String = body.split_ascii_whitespace().collect();
    Some((kind, STANDARD.decode(base64).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_among_other_lines() {
        let text =
            "a note\r\n-----BEGIN PRIVATE KEY-----\r\nAQID\r\nBA==\r\n-----END PRIVATE KEY-----\r\nmore";
        assert_eq!(first_block(text), Some(("PRIVATE KEY", vec![1, 2, 3, 4])));
        for bad in [
            "",
            "AQID",
            "-----BEGIN A-----\nAQID\n",
            "-----BEGIN A-----\nAQID\n-----END B-----",
            "-----BEGIN A-----\nA?ID\n-----END A-----",
        ] {
            assert_eq!(first_block(bad), None, "{bad}");
        }
    }
}
