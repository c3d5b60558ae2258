//! Frames go into a buffer of the caller's, so that many small events leave in one write.

use bytes::{BufMut, BytesMut};

/// One frame. The slices of `data` are concatenated on one `data:` line, so a stored event can be framed
/// inside an envelope without being copied together first.
///
/// Minified JSON has no line break. Should one be there all the same, it becomes several `data:` lines, which
/// a reader joins again with `\n`: a blank line in the data would otherwise end the event.
pub fn write_event(out: &mut BytesMut, id: Option<u64>, event: Option<&str>, data: &[&[u8]]) {
    debug_assert!(!data.iter().any(|piece| breaks_line(piece)), "SSE data must be minified");
    debug_assert!(!event.is_some_and(|name| breaks_line(name.as_bytes())), "SSE event names are one line");
    const AROUND: usize = "id: 18446744073709551615\nevent: \ndata: \n\n".len();
    out.reserve(AROUND + event.map_or(0, str::len) + data.iter().map(|piece| piece.len()).sum::<usize>());
    if let Some(id) = id {
        put_number(out, "id: ", id);
    }
    if let Some(name) = event {
        // A name has no way to continue on a second line, so it ends at the break.
        let name = name.split(['\n', '\r']).next().unwrap_or_default();
        out.put_slice(b"event: ");
        out.put_slice(name.as_bytes());
        out.put_u8(b'\n');
    }
    put_lines(out, b"data: ", data);
    out.put_u8(b'\n');
}

/// A comment, which readers ignore; the usual keep-alive. It ends with a blank line so that clients which
/// split the stream on blank lines do not find it glued to the next event.
pub fn write_comment(out: &mut BytesMut, text: &str) {
    put_lines(out, b": ", &[text.as_bytes()]);
    out.put_u8(b'\n');
}

/// How long a client should wait before it connects again.
pub fn write_retry(out: &mut BytesMut, millis: u64) {
    put_number(out, "retry: ", millis);
    out.put_u8(b'\n');
}

/// By hand: the formatting machinery would be a good part of what a small event costs.
fn put_number(out: &mut BytesMut, field: &str, mut number: u64) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put_slice(field.as_bytes());
    out.put_slice(&digits[from..]);
    out.put_u8(b'\n');
}

/// The concatenated pieces as one line, or, where they hold line breaks (`\n`, `\r`, `\r\n`), as several.
pub(super) fn put_lines(out: &mut BytesMut, field: &[u8], pieces: &[&[u8]]) {
    out.put_slice(field);
    // Carried over pieces: a `\r` may end one and its `\n` begin the next.
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

/// Would these bytes be more than one line of data?
///
/// Looks at all bytes in any case: without a way out the compiler takes many at once, and as a rule there is nothing
/// to be found.
pub fn breaks_line(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |found, &byte| found | u8::from(byte == b'\n') | u8::from(byte == b'\r')) != 0
}
