//! A fuzz target: a program's stdout, as lines of JSON and as text. The result must not depend on where reads end.

use super::lines::Lines;
use super::says;
use super::text::{Decoder, Pieces};

/// Longest line; small, so that inputs reach it.
const MOST: usize = 4096;

pub(crate) fn output(bytes: &[u8]) {
    let whole = lines(&[bytes]);
    for size in [1, 7] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(lines(&pieces), whole, "in reads of {size}");
    }
    for (_, line) in whole.unwrap_or_default() {
        if let Err(told) = says::read(&line) {
            assert!(!told.is_empty() && told.len() < 1000, "an error as long as the line: {told}");
        }
    }
    text(bytes);
}

fn lines(pieces: &[&[u8]]) -> Result<Vec<(usize, String)>, String> {
    let mut lines = Lines::new(MOST);
    let mut all = Vec::new();
    for piece in pieces {
        all.extend(lines.cut(piece).map_err(|bad| bad.to_string())?);
    }
    all.extend(lines.finish().map_err(|bad| bad.to_string())?);
    Ok(all)
}

/// The first byte is the delimiter, if it is a character.
fn text(bytes: &[u8]) {
    let expected = String::from_utf8_lossy(bytes);
    let delimiter = bytes.first().filter(|byte| byte.is_ascii()).map(|byte| char::from(*byte).to_string());
    for size in [1, 3, 64] {
        let (mut decoder, mut pieces) = (Decoder::default(), Pieces::new(delimiter.clone(), MOST));
        let (mut all, mut cut) = (String::new(), Vec::new());
        for read in bytes.chunks(size) {
            let text = decoder.decode(read);
            cut.extend(pieces.cut(&text));
            all += &text;
        }
        let rest = decoder.finish();
        cut.extend(pieces.cut(rest));
        cut.extend(pieces.finish());
        all += rest;
        assert_eq!(all, expected, "in reads of {size}");
        match &delimiter {
            None => assert_eq!(cut.concat(), all),
            // Long pieces are split, too; their concatenation must be the same.
            Some(delimiter) => {
                assert_eq!(cut.concat(), all.replace(delimiter.as_str(), ""), "in reads of {size}")
            }
        }
    }
}
