//! Event streams: the events must not depend on where reads end, and whatever is framed must be read as the same.

use bytes::BytesMut;

use crate::wire::sse::{SseEvent, SseParser, write_event};

const PLENTY: usize = 1 << 20;

pub(super) fn check(bytes: &[u8]) {
    let whole = events(&[bytes], PLENTY);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(events(&single, PLENTY), whole, "byte by byte");
    for size in [2, 3, 7] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(events(&pieces, PLENTY), whole, "in reads of {size}");
    }
    // A size limit may drop the event that is too large and what follows, but nothing before it.
    let bounded = events(&[bytes], 16);
    assert!(whole.starts_with(&bounded), "{bounded:?} of {whole:?}");
    assert_eq!(events(&single, 16), bounded, "a bound, byte by byte");
    for event in whole {
        again(&event);
    }
    // Whatever is framed is read as the same, except line breaks, which are not allowed in it.
    if let Ok(text) = str::from_utf8(bytes) {
        again(&SseEvent { id: None, event: None, data: text.replace(['\n', '\r'], " "), retry: None });
    }
}

fn events(pieces: &[&[u8]], limit: usize) -> Vec<SseEvent> {
    let mut parser = SseParser::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        let fed = parser.feed(piece);
        events.extend(std::iter::from_fn(|| parser.next_event()));
        if fed.is_err() {
            assert!(parser.feed(b"data: x\n\n").is_err(), "it takes nothing more");
            break;
        }
    }
    events
}

fn again(event: &SseEvent) {
    if event.data.contains(['\n', '\r']) {
        return;
    }
    let number = event.id.as_deref().and_then(|id| id.parse().ok());
    let mut out = BytesMut::new();
    write_event(&mut out, number, event.event.as_deref(), &[event.data.as_bytes()]);
    let expected = SseEvent { id: number.map(|id| id.to_string()), retry: None, ..event.clone() };
    assert_eq!(events(&[&out], PLENTY), [expected]);
}
