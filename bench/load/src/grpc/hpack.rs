//! Headers of HTTP/2 (RFC 7541): answers are decoded, the few headers of a call are written as bytes.

use std::collections::VecDeque;

use super::huffman;

/// The size of the table that is offered to servers, which is that of the standard.
const TABLE: usize = 4096;
/// What an entry counts beside its bytes.
const OVERHEAD: usize = 32;

/// The static table. Most entries have a name only.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

/// Not a valid block of headers.
#[derive(Debug, PartialEq)]
pub(super) struct Broken;

/// What a server has put into its table, newest first.
#[derive(Debug)]
pub(super) struct Decoder {
    entries: VecDeque<(Vec<u8>, Vec<u8>)>,
    size: usize,
    limit: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { entries: VecDeque::new(), size: 0, limit: TABLE }
    }
}

impl Decoder {
    /// Calls the function with the name and value of each header.
    pub(super) fn decode(
        &mut self,
        mut block: &[u8],
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Broken> {
        while let Some(&first) = block.first() {
            if first & 0x80 != 0 {
                let (name, value) = self.entry(integer(&mut block, 7)?)?;
                each(name, value);
            } else if first & 0xe0 == 0x20 {
                self.limit = integer(&mut block, 5)?;
                if self.limit > TABLE {
                    return Err(Broken);
                }
                self.shrink();
            } else {
                let is_kept = first & 0x40 != 0;
                let name = match integer(&mut block, if is_kept { 6 } else { 4 })? {
                    0 => text(&mut block)?,
                    index => self.entry(index)?.0.to_vec(),
                };
                let value = text(&mut block)?;
                each(&name, &value);
                if is_kept {
                    self.size += name.len() + value.len() + OVERHEAD;
                    self.entries.push_front((name, value));
                    self.shrink();
                }
            }
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Broken> {
        let index = index.checked_sub(1).ok_or(Broken)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        self.entries.get(index - STATIC.len()).map(|(name, value)| (&name[..], &value[..])).ok_or(Broken)
    }

    fn shrink(&mut self) {
        while self.size > self.limit
            && let Some((name, value)) = self.entries.pop_back()
        {
            self.size -= name.len() + value.len() + OVERHEAD;
        }
    }
}

/// An integer that begins with the last `bits` bits of a byte.
fn integer(block: &mut &[u8], bits: u32) -> Result<usize, Broken> {
    let mut next = || {
        let (first, rest) = block.split_first().ok_or(Broken)?;
        *block = rest;
        Ok(usize::from(*first))
    };
    let most = (1 << bits) - 1;
    let mut value = next()? & most;
    if value < most {
        return Ok(value);
    }
    for shift in (0..28).step_by(7) {
        let byte = next()?;
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Broken)
}

fn text(block: &mut &[u8]) -> Result<Vec<u8>, Broken> {
    let is_coded = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(block, 7)?;
    let (text, rest) = block.split_at_checked(length).ok_or(Broken)?;
    *block = rest;
    if is_coded { huffman::decoded(text).ok_or(Broken) } else { Ok(text.to_vec()) }
}

/// The headers of a call, as the first call of a connection sends them, and as all others do: the first puts them into the
/// server's table.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    pub(super) first: Vec<u8>,
    pub(super) later: Vec<u8>,
}

impl Blocks {
    /// `kept` are the headers beside the method and the scheme. None may be longer than 126 bytes.
    pub(super) fn new(kept: &[(&str, &str)]) -> Self {
        const POST: u8 = 0x83;
        const HTTP: u8 = 0x86;
        let (mut first, mut later) = (vec![POST, HTTP], vec![POST, HTTP]);
        for (at, (name, value)) in kept.iter().enumerate() {
            first.push(0x40);
            for text in [name, value] {
                assert!(text.len() < 127, "a header that is too long: {text}");
                first.push(text.len() as u8);
                first.extend_from_slice(text.as_bytes());
            }
            // The newest entry has the lowest number.
            later.push(0x80 | (STATIC.len() + kept.len() - at) as u8);
        }
        Blocks { first, later }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Broken> {
        let mut all = Vec::new();
        let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        decoder.decode(block, |name, value| all.push((string(name), string(value))))?;
        Ok(all)
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn headers_are_read_as_they_are_written() {
        let headers = [(":path", "/lf.a2a.v1.A2AService/GetTask"), ("te", "trailers"), ("x", "")];
        let blocks = Blocks::new(&headers);
        let mut whole = pairs(&[(":method", "POST"), (":scheme", "http")]);
        whole.extend(pairs(&headers));
        let mut decoder = Decoder::default();
        for block in [&blocks.first, &blocks.later, &blocks.later] {
            assert_eq!(read(&mut decoder, block), Ok(whole.clone()));
        }
    }

    /// RFC 7541, C.6: a table of 256 bytes, from which entries fall out.
    #[test]
    fn old_entries_fall_out_of_the_table() {
        let mut decoder = Decoder { limit: 256, ..Decoder::default() };
        let first = b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\
                      \x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\
                      \xe9\xae\x82\xae\x43\xd3";
        let date = "Mon, 21 Oct 2013 20:13:21 GMT";
        let location = ("location", "https://www.example.com");
        let private = ("cache-control", "private");
        let expected = pairs(&[(":status", "302"), private, ("date", date), location]);
        assert_eq!(read(&mut decoder, first), Ok(expected));
        let expected = pairs(&[(":status", "307"), private, ("date", date), location]);
        assert_eq!(read(&mut decoder, b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf"), Ok(expected));
        assert_eq!((decoder.entries.len(), decoder.size), (4, 222));
        assert_eq!(read(&mut decoder, b"\xc2"), Err(Broken), "the status 302 has fallen out");
    }

    #[test]
    fn what_is_cut_or_unknown_is_refused() {
        for block in
            [&b"\x80"[..], b"\xff", b"\xff\xff\xff\xff\xff\xff", b"\x40\x03ab", b"\xbe", b"\x3f\xe2\x1f"]
        {
            assert_eq!(read(&mut Decoder::default(), block), Err(Broken), "{block:x?}");
        }
        assert_eq!(read(&mut Decoder::default(), b"\x3f\xe1\x1f"), Ok(Vec::new()), "4,096 bytes are allowed");
    }
}
