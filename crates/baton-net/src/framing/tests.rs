//! The machine by itself, in pieces, and against hyper: what it passes on, hyper must read as it does.

use proptest::prelude::*;

use super::super::head::DECISIVE;
use super::oracle::{MAX_HEAD, Read, drawn_change, passed, read, seen_by_hyper};
use super::*;

fn body() -> impl Strategy<Value = Vec<u8>> {
    let smuggled = b"POST /smuggled HTTP/1.1\r\nhost: a\r\n\r\n".to_vec();
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        Just(smuggled),
        Just(b"0\r\n\r\nPOST /smuggled HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
    ]
}

fn chunked(body: &[u8], size: usize, extension: &str, trailer: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("0{extension}\r\n{trailer}\r\n").as_bytes());
    out
}

/// An honest request.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![Just("POST /"), Just("GET /a?b=c"), Just("DELETE /x"), Just("OPTIONS *")];
    let header = prop_oneof![Just(""), Just("x: y\r\n"), Just("Accept:\t*/* \r\n"), Just("\u{e9}a: b\r\n")];
    let extension = prop_oneof![Just(""), Just(";a=b"), Just(";")];
    let trailer = prop_oneof![Just(""), Just("a: b\r\n"), Just("a-b:\r\nc: d\r\n")];
    let shape = (0..3_u8, 1..20_usize, extension, trailer);
    let blank = prop_oneof![4 => Just(""), 1 => Just("\r\n")];
    (blank, line, header, body(), shape).prop_map(|(blank, line, header, body, shape)| {
        let header = if header.is_ascii() { header } else { "x-y: \u{e9}\r\n" };
        let mut out = format!("{blank}{line} HTTP/1.1\r\nhost: a\r\n{header}").into_bytes();
        match shape {
            (0, ..) => out.extend_from_slice(b"\r\n"),
            (1, ..) => {
                out.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
                out.extend_from_slice(&body);
            }
            (_, size, extension, trailer) => {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                out.extend_from_slice(&chunked(&body, size, extension, trailer));
            }
        }
        out
    })
}

fn honest() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(request(), 1..4).prop_map(|requests| requests.concat())
}

/// A header whose name is one that matters, or nearly.
fn named() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<usize>(), any::<usize>());
    let values = &["0", "3", "5", "37", "chunked", "close", "a", "100-continue"][..];
    let changes = proptest::collection::vec(change, 0..3);
    (prop::sample::select(&DECISIVE[..]), changes, prop::sample::select(values)).prop_map(
        |(name, changes, value)| {
            let mut name = name.to_vec();
            changes.iter().for_each(|(at, which)| drawn_change(&mut name, *at, *which));
            [&name[..], b": ", value.as_bytes(), b"\r\n"].concat()
        },
    )
}

/// The same with a few places changed to what smugglers try.
fn mangled() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b":",
        b";",
        b",",
        b"\0",
        b"0",
        b"1",
        b"f",
        b"+1",
        b"\x0b",
        b"\x7f",
        b"\xff",
        b"HTTP/1.0",
        b"CONNECT ",
        b"0\r\n\r\n",
        b"",
    ];
    let headers: &[&[u8]] = &[
        b"content-length: 3\r\n",
        b"content-length: 0\r\n",
        b"content-length: 5\n",
        b"transfer-encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"transfer-encoding: chunked\n",
        b"transfer-encoding: x\r\n",
        b"x: y\n",
        b"\n",
        b"x: y\r\n folded: z\r\n",
        b"host: b\r\n",
    ];
    let index = any::<prop::sample::Index>;
    let anywhere = (index(), 0..4_usize, prop::sample::select(pieces))
        .prop_map(|(at, cut, piece)| (at, cut, piece.to_vec(), false));
    let header = prop_oneof![prop::sample::select(headers).prop_map(<[u8]>::to_vec), named()];
    // At the beginning of a line.
    let header = (index(), header).prop_map(|(at, piece)| (at, 0, piece, true));
    let change = prop_oneof![anywhere, header];
    (honest(), proptest::collection::vec(change, 1..4)).prop_map(|(mut bytes, changes)| {
        for (at, cut, piece, is_header) in changes {
            let lines = bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b"\r\n");
            let lines: Vec<usize> = lines.map(|(at, _)| at + 2).take(3).collect();
            let at = match lines.len() {
                count @ 1.. if is_header => lines[at.index(count)],
                _ => at.index(bytes.len() + 1),
            };
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, piece);
        }
        bytes
    })
}

fn pieces_of(bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.dedup();
    at.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The result does not depend on how the bytes are split.
    #[test]
    fn pieces_are_judged_like_the_whole(
        bytes in mangled(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
        room in 1..100_usize,
    ) {
        let whole = passed(vec![bytes.clone()], 1 << 16);
        prop_assert_eq!(&passed(pieces_of(&bytes, &cuts), room), &whole);
        let single = bytes.iter().map(|byte| vec![*byte]).collect();
        prop_assert_eq!(&passed(single, 1 << 16), &whole);
    }

    #[test]
    fn honest_requests_pass_and_hyper_reads_the_same(bytes in honest()) {
        let read = read(&bytes);
        prop_assert_eq!(read.refused, None);
        prop_assert_eq!(&passed(vec![bytes.clone()], 1 << 16).0, &bytes);
        prop_assert_eq!(seen_by_hyper(&bytes), read.requests);
    }

}

proptest! {
    // Enough for each of the known tricks to turn up: with its check taken out, the test fails.
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// hyper may stop earlier, by a rule of its own; it never finds a request where the machine saw none.
    #[test]
    fn hyper_never_sees_another_request(bytes in mangled()) {
        let read = read(&bytes);
        let seen = seen_by_hyper(&bytes);
        prop_assert!(seen.len() <= read.requests.len(), "{:?} {:?}", seen, read);
        for (seen, read) in seen.iter().zip(&read.requests) {
            // As a URI is written again, its text may differ; where it ends may not.
            prop_assert_eq!(seen.0.split(' ').next(), read.0.split(' ').next());
            prop_assert_eq!(&seen.1, &read.1);
        }
    }
}

#[test]
fn a_head_has_its_bound_however_it_grows() {
    let long_line = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD));
    let long_head = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n", "x".repeat(MAX_HEAD));
    let many = format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(100));
    for (bytes, refusal) in [
        (long_line, Refusal::TargetTooLong),
        (long_head.clone(), Refusal::HeadTooLarge),
        (format!("{long_head}\r\n"), Refusal::HeadTooLarge),
        (many, Refusal::TooManyHeaders),
    ] {
        assert_eq!(read(bytes.as_bytes()).refused, Some(refusal));
        let single = bytes.bytes().map(|byte| vec![byte]).collect();
        assert_eq!(passed(single, 1 << 16).0, refusal.stand_in());
    }
}

/// A refusal does not wait for the end of what will be refused.
#[test]
fn what_is_wrong_is_seen_at_once() {
    for (bytes, refusal) in [
        (&b"\x16\x03\x01"[..], Refusal::Control),
        (b"GET / HTTP/1.1\n", Refusal::BareLf),
        (b"GET / HTTP/1.1\rH", Refusal::BareCr),
        (b"GET /\0", Refusal::Control),
        (b"\n", Refusal::BareLf),
    ] {
        assert_eq!(read(bytes).refused, Some(refusal), "{:?}", bytes.escape_ascii().to_string());
    }
    for unfinished in [&b""[..], b"\r", b"\r\n", b"G", b"GET / HTTP/1.1\r", b"GET / HTTP/1.1\r\nx: y\r\n\r"] {
        assert_eq!(read(unfinished), Read::default());
    }
}
