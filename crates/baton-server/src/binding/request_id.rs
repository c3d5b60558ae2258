//! What a request is known by in the log: the id its sender gave it, or one of ours.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over.
const MOST: usize = 64;

/// Held as it goes out.
#[derive(Debug, Clone)]
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    /// An id that could do harm in a log (long, spaces, control characters, markup) is not taken over.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        match headers.get(REQUEST_ID) {
            Some(given) if is_sane(given.as_bytes()) => RequestId(given.clone()),
            _ => Self::fresh(),
        }
    }

    /// Numbers in an order that tells nobody how many there were: a count, scrambled one to one from a random
    /// start. No system call, and no two alike in one process.
    fn fresh() -> Self {
        static START: LazyLock<u64> = LazyLock::new(|| uuid::Uuid::new_v4().as_u64_pair().0);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut text = [0; 16];
        write_hex(&mut text, scramble(START.wrapping_add(COUNT.fetch_add(1, Relaxed))));
        RequestId(HeaderValue::from_bytes(&text).expect("hexadecimal digits may stand in a header"))
    }

    pub(super) fn value(&self) -> HeaderValue {
        self.0.clone()
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_sane(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=MOST).contains(&id.len()) && id.iter().all(allowed)
}

/// The finaliser of SplitMix64: each step can be undone, so different numbers stay different.
fn scramble(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn write_hex(text: &mut [u8; 16], number: u64) {
    for (at, digit) in text.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (60 - 4 * at)) as usize & 0xf];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_harmless_ids_are_taken_over() {
        for (given, taken) in [
            (&b"abc-DEF_1.2"[..], true),
            (&[b'x'; 64], true),
            (&[b'x'; 65], false),
            (b"", false),
            (b"a b", false),
            (b"a\tb", false),
            (b"<script>", false),
            (b"a\"b", false),
            (b"caf\xc3\xa9", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
            let id = RequestId::of(&headers);
            assert_eq!(id.as_str().as_bytes() == given, taken, "{given:?}");
            assert!(is_sane(id.as_str().as_bytes()));
        }
    }

    #[test]
    fn fresh_ids_differ() {
        let ids: BTreeSet<String> = (0..10_000).map(|_| RequestId::fresh().to_string()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 16));
    }
}
