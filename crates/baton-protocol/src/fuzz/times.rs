//! Timestamps: what is read must be written as the same time, and every time can be written.

use crate::domain::Timestamp;
use crate::wire::v1::{parse_timestamp, write_timestamp};

pub(super) fn check(bytes: &[u8]) {
    if let Some(at) = str::from_utf8(bytes).ok().and_then(parse_timestamp) {
        assert_eq!(again(at), at);
    }
    if let Some(number) = bytes.first_chunk::<8>() {
        let number = i64::from_le_bytes(*number);
        for millis in [number, number >> 16, number >> 32] {
            let at = Timestamp::from_millis(millis);
            assert_eq!(again(at), at, "{millis}");
        }
    }
}

fn again(at: Timestamp) -> Timestamp {
    let mut out = Vec::new();
    write_timestamp(&mut out, at);
    assert_eq!(out.len(), 24);
    parse_timestamp(&String::from_utf8(out).expect("ASCII")).expect("a time written is a time read")
}
