//! The id of a request in the log and in `X-Request-Id`: the client's, or a generated one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest client id that is accepted.
const MAX_LEN: usize = 64;

/// Makes the ids of one server: a counter with a random start, scrambled one to one. Ids are unique in a process, do not
/// reveal how many requests there were, and need no system call.
#[derive(Debug)]
pub(crate) struct RequestIds(AtomicU64);

impl Default for RequestIds {
    fn default() -> Self {
        RequestIds(AtomicU64::new(uuid::Uuid::new_v4().as_u64_pair().0))
    }
}

/// Turned into text only when it is sent or logged.
#[derive(Debug, Clone)]
pub(super) enum RequestId {
    Given(HeaderValue),
    Generated(u64),
}

impl RequestIds {
    /// Takes the client's id, unless it could do harm in a log: too long, or with characters such as spaces, control
    /// characters or markup.
    pub(super) fn of(&self, headers: &HeaderMap) -> RequestId {
        match headers.get(REQUEST_ID) {
            Some(given) if is_safe(given.as_bytes()) => RequestId::Given(given.clone()),
            _ => self.fresh(),
        }
    }

    fn fresh(&self) -> RequestId {
        RequestId::Generated(scramble(self.0.fetch_add(1, Relaxed)))
    }
}

impl RequestId {
    pub(super) fn value(&self) -> HeaderValue {
        match self {
            RequestId::Given(given) => given.clone(),
            RequestId::Generated(number) => {
                HeaderValue::from_bytes(&hex(*number)).expect("hexadecimal digits may stand in a header")
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Given(given) => f.write_str(given.to_str().unwrap_or_default()),
            RequestId::Generated(number) => write!(f, "{number:016x}"),
        }
    }
}

fn is_safe(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=MAX_LEN).contains(&id.len()) && id.iter().all(allowed)
}

/// The finaliser of SplitMix64: each step can be undone, so different numbers stay different.
fn scramble(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn hex(number: u64) -> [u8; 16] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (60 - 4 * at)) as usize & 0xf])
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
            let id = RequestIds::default().of(&headers);
            assert_eq!(id.to_string().as_bytes() == given, taken, "{given:?}");
            assert_eq!(id.value(), id.to_string());
            assert!(is_safe(id.value().as_bytes()));
        }
    }

    #[test]
    fn fresh_ids_differ() {
        let made = RequestIds::default();
        let ids: BTreeSet<String> = (0..10_000).map(|_| made.fresh().to_string()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 16));
    }
}
