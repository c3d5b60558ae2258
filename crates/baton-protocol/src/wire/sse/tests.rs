use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

use super::write::put_lines;
use super::*;

const LIMIT: usize = 1 << 24;

fn parse_chunks<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<SseEvent>, bool) {
    let mut parser = SseParser::new(limit);
    let whole = chunks.into_iter().all(|chunk| parser.feed(chunk).is_ok());
    (std::iter::from_fn(|| parser.next_event()).collect(), whole)
}

fn parse(stream: &[u8]) -> Vec<SseEvent> {
    let (events, whole) = parse_chunks(LIMIT, [stream]);
    assert!(whole);
    events
}

fn event(data: &str) -> SseEvent {
    SseEvent { id: None, event: None, data: data.to_owned(), retry: None }
}

/// Each stream in one chunk and byte by byte.
fn check(cases: &[(&[u8], &[SseEvent])]) {
    for (stream, expected) in cases {
        let name = stream.escape_ascii();
        assert_eq!(parse(stream), *expected, "{name}");
        assert_eq!(parse_chunks(LIMIT, stream.chunks(1)), (expected.to_vec(), true), "{name}, byte by byte");
    }
}

#[test]
fn data_lines() {
    check(&[
        (b"data: x\n\n", &[event("x")]),
        (b"data:x\n\n", &[event("x")]),
        (b"data:  x \n\n", &[event(" x ")]),
        (b"data: a:b\n\n", &[event("a:b")]),
        (b"data: a\ndata: b\n\n", &[event("a\nb")]),
        (b"data\ndata\n\n", &[event("\n")]),
        (b"data: a\ndata:\n\n", &[event("a\n")]),
        (b"data:\n\n", &[event("")]),
        (b"data\n\n", &[event("")]),
        (b"Data: x\n data: y\ndatum: z\nother\n\n", &[]),
        (b"\n\n\ndata: x\n\n\n\ndata: y\n\n", &[event("x"), event("y")]),
        (b": hello\n\n:\n\ndata: x\n: in between\ndata: y\n\n", &[event("x\ny")]),
        (b"", &[]),
    ]);
}

#[test]
fn line_ends() {
    check(&[
        (b"data: x\r\rdata: y\r\r", &[event("x"), event("y")]),
        (b"data: x\r\n\r\ndata: y\r\n\r\n", &[event("x"), event("y")]),
        (b"data: x\r\ndata: y\rdata: z\n\r", &[event("x\ny\nz")]),
        (b"data: x\n\rdata: y\n\r\n", &[event("x"), event("y")]),
    ]);
    for chunks in
        [[&b"data: x\r"[..], b"\ndata: y\r", b"\n\r", b"\n"], [b"data: x\r", b"", b"\n", b"data: y\r\n\r"]]
    {
        assert_eq!(parse_chunks(LIMIT, chunks), (vec![event("x\ny")], true));
    }
}

#[test]
fn an_event_is_ready_at_a_carriage_return() {
    // Waiting to see whether a line feed follows would hold the event back until the next one.
    let mut parser = SseParser::new(LIMIT);
    parser.feed(b"data: x\r\n\r").unwrap();
    assert_eq!(parser.next_event(), Some(event("x")));
}

#[test]
fn byte_order_mark() {
    check(&[
        (b"\xEF\xBB\xBFdata: x\n\n", &[event("x")]),
        (b"\xEF\xBB\xBF\xEF\xBB\xBFdata: x\n\n", &[]),
        (b"\n\xEF\xBB\xBFdata: x\n\n", &[]),
        (b"\xEF\xBB\xBF\ndata: x\n\n", &[event("x")]),
    ]);
}

#[test]
fn text_is_decoded_with_replacement() {
    check(&[
        ("data: é😀\n\n".as_bytes(), &[event("é😀")]),
        (b"data: a\xF0\x9F\ndata: b\xFF\n\n", &[event("a\u{FFFD}\nb\u{FFFD}")]),
        ("data: a\u{2028}b\u{85}\n\n".as_bytes(), &[event("a\u{2028}b\u{85}")]),
        (b"data: a\0b\n\n", &[event("a\0b")]),
    ]);
}

#[test]
fn other_fields() {
    let id = |id: &str, data| SseEvent { id: Some(id.to_owned()), ..event(data) };
    let named = |name: &str, data| SseEvent { event: Some(name.to_owned()), ..event(data) };
    let retry = |millis, data| SseEvent { retry: Some(millis), ..event(data) };
    check(&[
        (b"id: 1\ndata: x\n\ndata: y\n\n", &[id("1", "x"), id("1", "y")]),
        (b"id: 1\ndata: x\n\nid\ndata: y\n\n", &[id("1", "x"), event("y")]),
        (b"id: 1\n\ndata: x\n\n", &[id("1", "x")]),
        (b"id: 1\nid: 2\0\ndata: x\n\n", &[id("1", "x")]),
        (b"event: a\nevent: b\ndata: x\n\ndata: y\n\n", &[named("b", "x"), event("y")]),
        (b"event: a\n\ndata: x\n\n", &[event("x")]),
        (b"event:\ndata: x\n\n", &[event("x")]),
        (b"retry: 10\ndata: x\n\ndata: y\n\n", &[retry(10, "x"), event("y")]),
        (b"retry: 10\n\ndata: x\n\n", &[retry(10, "x")]),
        (
            b"retry: 10\nretry: +1\nretry: 1s\nretry:\nretry: 99999999999999999999\ndata: x\n\n",
            &[retry(10, "x")],
        ),
    ]);
}

#[test]
fn an_unfinished_event_is_dropped() {
    check(&[(b"data: x\n\ndata: y\n", &[event("x")]), (b"data: x\n\ndata: y", &[event("x")])]);
    let mut parser = SseParser::new(LIMIT);
    parser.feed(b"id: 1\ndata: x\n\nid: 2\ndata: y\n").unwrap();
    assert_eq!(parser.last_event_id(), Some("1"));
    parser.feed(b"\nid: 3\n\n").unwrap();
    assert_eq!(parser.last_event_id(), Some("3"));
}

#[test]
fn size_is_bounded_per_event() {
    for (limit, stream, count, whole) in [
        (7, "data: x\n\ndata: y\n\n", 2, true),
        (6, "data: x\n\n", 0, false),
        (7, "data: x\n\ndata: xy", 1, false),
        (13, "data: x\ndata: y\n\n", 0, false),
        (14, "data: x\ndata: y\n\n", 1, true),
        (7, ": ping\n: ping\n: ping\ndata: x\n\n", 1, true),
        (7, ": a very long comment", 0, false),
    ] {
        for size in [1, 3, 1000] {
            let (events, all) = parse_chunks(limit, stream.as_bytes().chunks(size));
            assert_eq!((events.len(), all), (count, whole), "{stream:?} of {limit} in {size}s");
        }
    }
    let mut parser = SseParser::new(7);
    assert_eq!(parser.feed(b"data: x\n\ndata: long\n\n"), Err(SseTooLarge { limit: 7 }));
    assert_eq!(parser.feed(b"data: y\n\n"), Err(SseTooLarge { limit: 7 }));
    assert_eq!(parser.next_event(), Some(event("x")));
    assert_eq!(parser.next_event(), None);
}

#[test]
fn large_events_in_small_chunks_take_linear_time() {
    let data = "x".repeat(8 << 20);
    let stream = format!("data: {data}\n\n");
    let (events, whole) = parse_chunks(LIMIT, stream.as_bytes().chunks(16));
    assert!(whole);
    assert!(events == [event(&data)]);
}

#[test]
fn frames_are_written() {
    let mut out = BytesMut::new();
    write_retry(&mut out, 3000);
    write_event(&mut out, Some(17), Some("task"), &[b"{\"result\":", b"{}", b"}"]);
    write_event(&mut out, None, None, &[]);
    write_comment(&mut out, "");
    write_comment(&mut out, "a\r\n\nb");
    let expected =
        "retry: 3000\n\nid: 17\nevent: task\ndata: {\"result\":{}}\n\ndata: \n\n: \n\n: a\n: \n: b\n\n";
    assert_eq!(out.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
}

#[test]
fn line_breaks_in_data_do_not_break_the_frame() {
    for (pieces, expected) in [
        (&["a\n\nb"][..], "a\n\nb"),
        (&["a\r", "\nb"], "a\nb"),
        (&["a\r", "", "\nb"], "a\nb"),
        (&["a\r", "x", "\nb"], "a\nx\nb"),
        (&["\n", "\r"], "\n\n"),
        (&["a\r\n"], "a\n"),
    ] {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        let mut out = BytesMut::new();
        put_lines(&mut out, b"data: ", &pieces);
        out.extend_from_slice(b"\n");
        assert_eq!(parse(&out), [event(expected)], "{}", out.escape_ascii());
    }
}

fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(
        &[
            "data", "data:", "data: x", "event: e", "id: 7", "id", "id: \0", "retry: 5", ":", " ", "é", "😀",
            "\u{FEFF}", "\n", "\n", "\r", "\r\n", "\n\n", "\r\n\r\n",
        ][..],
    );
    let piece =
        prop_oneof![6 => token.prop_map(|token| token.as_bytes().to_vec()), 1 => vec(any::<u8>(), 0..4)];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunking_changes_nothing(
        stream in any_stream(),
        sizes in vec(1..12_usize, 1..20),
        limit in prop_oneof![Just(LIMIT), 1..60_usize],
    ) {
        let mut chunks = Vec::new();
        let (mut rest, mut sizes) = (&stream[..], sizes.iter().cycle());
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(parse_chunks(limit, chunks), parse_chunks(limit, [&stream[..]]));
    }

    #[test]
    fn what_is_written_is_read(
        frames in vec((any::<Option<u64>>(), prop::option::of("[a-z-]{1,8}"), vec("[^\r\n]{0,20}", 0..4)), 0..8),
        comment in any::<String>(),
    ) {
        let mut out = BytesMut::new();
        let mut expected = Vec::new();
        let mut last_id = None;
        for (id, name, pieces) in frames {
            let slices: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
            write_event(&mut out, id, name.as_deref(), &slices);
            write_comment(&mut out, &comment);
            last_id = id.map(|id| id.to_string()).or(last_id);
            expected.push(SseEvent { id: last_id.clone(), event: name, data: pieces.concat(), retry: None });
        }
        prop_assert_eq!(parse(&out), expected);
    }

    #[test]
    fn any_data_stays_in_its_frame(pieces in vec("[ab\r\n]{0,4}", 0..5)) {
        let slices: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        let mut out = BytesMut::new();
        put_lines(&mut out, b"data: ", &slices);
        out.extend_from_slice(b"\n");
        let joined = pieces.concat().replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(parse(&out), [event(&joined)]);
    }
}
