//! Plain text on stdout: bytes become characters, characters become chunks.

/// Decodes UTF-8 from a pipe. A character whose bytes come in two reads is put together; invalid bytes become U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The first bytes of an incomplete character: at most three.
    begun: Vec<u8>,
}

impl Decoder {
    pub(super) fn decode(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let joined;
        let mut rest = if self.begun.is_empty() {
            bytes
        } else {
            joined = [self.begun.as_slice(), bytes].concat();
            self.begun.clear();
            joined.as_slice()
        };
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    let Some(bad) = error.error_len() else {
                        self.begun = after.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[bad..];
                }
            }
        }
    }

    /// The rest at the end of the input: an incomplete character becomes U+FFFD.
    pub(super) fn finish(self) -> &'static str {
        if self.begun.is_empty() { "" } else { "\u{fffd}" }
    }
}

/// Splits text into pieces: as it is read, or at delimiters.
#[derive(Debug)]
pub(super) struct Pieces {
    delimiter: Option<String>,
    most: usize,
    open: String,
    /// How much of `open` was searched and has no delimiter.
    searched: usize,
}

impl Pieces {
    pub(super) fn new(delimiter: Option<String>, most: usize) -> Self {
        Pieces {
            delimiter: delimiter.filter(|text| !text.is_empty()),
            most,
            open: String::new(),
            searched: 0,
        }
    }

    /// True if text is split at delimiters.
    pub(super) fn are_cut(&self) -> bool {
        self.delimiter.is_some()
    }

    pub(super) fn cut(&mut self, text: &str) -> Vec<String> {
        let Some(delimiter) = &self.delimiter else {
            return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        };
        self.open.push_str(text);
        let mut pieces = Vec::new();
        while let Some(at) = self.open[self.searched..].find(delimiter.as_str()) {
            let rest = self.open.split_off(self.searched + at + delimiter.len());
            self.open.truncate(self.searched + at);
            pieces.push(std::mem::replace(&mut self.open, rest));
            self.searched = 0;
        }
        if self.open.len() > self.most {
            // Output without a delimiter must not fill the memory.
            pieces.push(std::mem::take(&mut self.open));
        }
        self.searched = self.open.len().saturating_sub(delimiter.len());
        while !self.open.is_char_boundary(self.searched) {
            self.searched -= 1;
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    /// The text after the last delimiter.
    pub(super) fn finish(&mut self) -> Option<String> {
        self.searched = 0;
        Some(std::mem::take(&mut self.open)).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_survive_every_way_of_cutting_their_bytes() {
        let whole = "aé👩‍🚀\u{2028}ﷺ\0z";
        for size in 1..=whole.len() {
            let mut decoder = Decoder::default();
            let mut text: String = whole.as_bytes().chunks(size).map(|bytes| decoder.decode(bytes)).collect();
            text += decoder.finish();
            assert_eq!(text, whole, "in reads of {size}");
        }
    }

    #[test]
    fn what_is_no_character_is_replaced_alike_however_it_is_cut() {
        for bytes in
            [&b"a\xff\xfeb"[..], b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x92", b"\xc0\x80", b"ok\xed\xa0\x80"]
        {
            let expected = String::from_utf8_lossy(bytes);
            for size in 1..=bytes.len() {
                let mut decoder = Decoder::default();
                let mut text: String = bytes.chunks(size).map(|bytes| decoder.decode(bytes)).collect();
                text += decoder.finish();
                assert_eq!(text, expected, "{bytes:?} in reads of {size}");
            }
        }
    }

    fn cut(delimiter: &str, most: usize, reads: &[&str]) -> Vec<String> {
        let mut pieces = Pieces::new(Some(delimiter.to_owned()), most);
        let mut all: Vec<String> = reads.iter().flat_map(|text| pieces.cut(text)).collect();
        all.extend(pieces.finish());
        all
    }

    #[test]
    fn pieces_end_at_delimiters_wherever_reads_end() {
        assert_eq!(cut("\n", 100, &["one\ntw", "o\n", "\nthree"]), ["one", "two", "three"]);
        assert_eq!(cut("--é--", 100, &["a--", "é", "--b-", "-é--"]), ["a", "b"]);
        assert_eq!(cut("--", 100, &["é-", "é-", "-x"]), ["é-é", "x"]);
        assert_eq!(cut("|", 4, &["abc", "def", "g|h"]), ["abcdef", "g", "h"]);
        let mut any = Pieces::new(None, 1);
        assert_eq!(any.cut("a\nb"), ["a\nb"]);
        assert!(any.cut("").is_empty() && any.finish().is_none());
    }
}
