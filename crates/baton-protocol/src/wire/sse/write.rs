//! Frames are written to the caller's buffer, so that many small events can be sent in one write.

use bytes::{BufMut, BytesMut};
use memchr::memchr2;

/// Writes one frame. The slices of `data` are concatenated on one `data:` line, so a stored event can be framed inside
/// an envelope without another copy.
///
/// Minified JSON has no line breaks. If there is one anyway, the data is written as several `data:` lines, which
/// readers join with `\n`: otherwise a blank line in the data would end the event.
pub fn write_event(out: &mut BytesMut, id: Option<u64>, event: Option<&str>, data: &[&[u8]]) {
    debug_assert!(!data.iter().any(|piece| breaks_line(piece)), "SSE data must be minified");
    debug_assert!(!event.is_some_and(|name| breaks_line(name.as_bytes())), "SSE event names are one line");
    const AROUND: usize = "id: 18446744073709551615\nevent: \ndata: \n\n".len();
    out.reserve(AROUND + event.map_or(0, str::len) + data.iter().map(|piece| piece.len()).sum::<usize>());
    if let Some(id) = id {
        put_number(out, "id: ", id);
    }
    if let Some(name) = event {
        // A name cannot continue on a second line, so it is cut at the line break.
        let name = name.split(['\n', '\r']).next().unwrap_or_default();
        out.put_slice(b"event: ");
        out.put_slice(name.as_bytes());
        out.put_u8(b'\n');
    }
    put_lines(out, b"data: ", data);
    out.put_u8(b'\n');
}

/// Writes a comment, which readers ignore; used as keep-alive. It ends with a blank line, so that clients that split
/// the stream at blank lines do not see it as part of the next event.
pub fn write_comment(out: &mut BytesMut, text: &str) {
    put_lines(out, b": ", &[text.as_bytes()]);
    out.put_u8(b'\n');
}

/// How long a client should wait before it connects again.
pub fn write_retry(out: &mut BytesMut, millis: u64) {
    put_number(out, "retry: ", millis);
    out.put_u8(b'\n');
}

fn put_number(out: &mut BytesMut, field: &str, number: u64) {
    out.put_slice(field.as_bytes());
    serde_json::to_writer((&mut *out).writer(), &number)
        .expect("an integer always has a JSON form and memory takes every byte");
    out.put_u8(b'\n');
}

/// Writes the concatenated pieces as one line, or as several if they contain line breaks (`\n`, `\r`, `\r\n`).
pub(super) fn put_lines(out: &mut BytesMut, field: &[u8], pieces: &[&[u8]]) {
    out.put_slice(field);
    // Kept across pieces: one may end with `\r` and the next begin with its `\n`.
    let mut after_cr = false;
    for piece in pieces {
        if !breaks_line(piece) {
            out.put_slice(piece);
            after_cr &= piece.is_empty();
            continue;
        }
        for &byte in *piece {
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    out.put_u8(b'\n');
                    out.put_slice(field);
                }
                _ => out.put_u8(byte),
            }
            after_cr = byte == b'\r';
        }
    }
    out.put_u8(b'\n');
}

/// True if these bytes contain a line break.
pub fn breaks_line(bytes: &[u8]) -> bool {
    memchr2(b'\n', b'\r', bytes).is_some()
}
