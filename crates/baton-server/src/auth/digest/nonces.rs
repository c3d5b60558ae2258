//! Nonces, and which of them were used. Making one keeps nothing in memory; only the nonces that a user has authenticated
//! with are remembered, with that user.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use super::super::users::random_key;

/// Bytes of the HMAC in a nonce.
const TAG: usize = 16;
/// Counts that may arrive late, after higher ones: requests of one client that are sent at the same time.
const WINDOW: u32 = 64;

/// Makes nonces: number, time, HMAC of both. The numbers rise.
pub(super) struct Nonces {
    key: Hmac<Sha256>,
    /// The times in nonces are milliseconds since then: the wall clock may be set.
    start: Instant,
    lifetime: Duration,
    next: AtomicU64,
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonces")
    }
}

impl Nonces {
    pub(super) fn new(lifetime: Duration) -> Self {
        Nonces { key: random_key(), start: Instant::now(), lifetime, next: AtomicU64::new(1) }
    }

    pub(super) fn fresh(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [number.to_be_bytes(), self.now().to_be_bytes()].concat();
        let tag = self.tag(&bytes);
        bytes.extend_from_slice(&tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The number of the nonce that was made last.
    pub(super) fn last(&self) -> u64 {
        self.next.load(Ordering::Relaxed) - 1
    }

    /// The number of a nonce that was made here and that can still be used.
    pub(super) fn open(&self, nonce: &str) -> Option<u64> {
        let bytes = URL_SAFE_NO_PAD.decode(nonce).ok()?;
        let (body, tag) = bytes.split_at_checked(16)?;
        if !bool::from(self.tag(body).ct_eq(tag)) {
            return None;
        }
        let number = u64::from_be_bytes(*body.first_chunk()?);
        let made = u64::from_be_bytes(*body.last_chunk()?);
        let is_young = u128::from(self.now().saturating_sub(made)) < self.lifetime.as_millis();
        is_young.then_some(number)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn tag(&self, body: &[u8]) -> [u8; TAG] {
        let mut mac = self.key.clone();
        mac.update(body);
        let whole = mac.finalize().into_bytes();
        let mut tag = [0; TAG];
        tag.copy_from_slice(&whole[..TAG]);
        tag
    }
}

/// The nonces that one user has used, and with which counts, so that no request can be sent again by another.
pub(super) struct UsedNonces {
    max: usize,
    used: Mutex<Used>,
}

struct Used {
    /// By number, rising.
    nonces: VecDeque<Counts>,
    /// The highest number that was removed for lack of room. It and all below are stale for this user.
    removed: u64,
}

struct Counts {
    number: u64,
    highest: u32,
    /// The counts up to `highest`, the lowest bit for `highest` itself.
    seen: u64,
}

impl UsedNonces {
    /// Of a user who can use no nonce up to `last`.
    pub(super) fn after(last: u64, max: usize) -> Self {
        let used = Used { nonces: VecDeque::new(), removed: last };
        UsedNonces { max: max.max(1), used: Mutex::new(used) }
    }

    /// Whether the nonce was never used with this count. From now on it was.
    pub(super) fn take(&self, number: u64, count: u32) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if number <= used.removed {
            return false;
        }
        match used.nonces.binary_search_by_key(&number, |counts| counts.number) {
            Ok(at) => used.nonces[at].take(count),
            Err(at) => {
                used.nonces.insert(at, Counts { number, highest: count, seen: 1 });
                if used.nonces.len() > self.max
                    && let Some(oldest) = used.nonces.pop_front()
                {
                    used.removed = oldest.number;
                }
                // If it is the oldest itself, it was used this once.
                true
            }
        }
    }
}

impl Counts {
    fn take(&mut self, count: u32) -> bool {
        if count > self.highest {
            self.seen = self.seen.checked_shl(count - self.highest).unwrap_or(0) | 1;
            self.highest = count;
            return true;
        }
        let behind = self.highest - count;
        if behind >= WINDOW || self.seen & (1 << behind) != 0 {
            return false;
        }
        self.seen |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_our_own_young_nonces_are_opened() {
        let nonces = Nonces::new(Duration::from_secs(300));
        let (first, second) = (nonces.fresh(), nonces.fresh());
        assert_ne!(first, second);
        assert_eq!((nonces.open(&first), nonces.open(&second)), (Some(1), Some(2)));
        assert_eq!(Nonces::new(Duration::from_secs(300)).open(&first), None, "of another server");
        for at in 0..first.len() {
            let mut changed = first.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(nonces.open(str::from_utf8(&changed).unwrap()), None, "{at}");
        }
        for bad in ["", "A", "!", &first[1..], &format!("{first}A"), &format!("{first}=")] {
            assert_eq!(nonces.open(bad), None, "{bad}");
        }
        tokio::time::advance(Duration::from_millis(299_999)).await;
        assert_eq!(nonces.open(&first), Some(1));
        let third = nonces.fresh();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((nonces.open(&first), nonces.open(&third)), (None, Some(3)));
    }

    #[test]
    fn a_count_is_taken_once() {
        let used = UsedNonces::after(0, 8);
        for (count, good) in [
            (1, true),
            (1, false),
            (2, true),
            (5, true),
            (4, true),
            (4, false),
            (3, true),
            (5, false),
            (1, false),
            (70, true),
            (70, false),
            (7, true),
            (7, false),
            (6, false),
            (u32::MAX, true),
            (u32::MAX, false),
            (u32::MAX - 63, true),
            (u32::MAX - 64, false),
            (71, false),
        ] {
            assert_eq!(used.take(1, count), good, "{count}");
        }
        assert!(used.take(2, 1), "another nonce has its own counts");
    }

    #[test]
    fn a_nonce_that_was_forgotten_is_stale() {
        let used = UsedNonces::after(0, 3);
        for number in [10, 30, 20, 40] {
            assert!(used.take(number, 1), "{number}");
        }
        assert!(!used.take(10, 2), "removed");
        assert!(!used.take(5, 1), "older than one that was removed");
        assert!(!used.take(20, 1) && used.take(20, 2));
        // It fits only by removing the oldest, which is itself: it counts once.
        assert!(used.take(15, 1));
        assert!(!used.take(15, 1) && !used.take(15, 2));
        assert!(used.take(40, 2));
        assert_eq!(used.used.lock().unwrap().nonces.len(), 3);
    }

    /// Against a set of all counts: nothing is taken twice, and what is not too late is taken once.
    #[test]
    fn counts_equal_those_of_a_set() {
        let used = UsedNonces::after(0, 1);
        let (mut seen, mut highest, mut random) = (std::collections::HashSet::new(), 0_u32, 7_u64);
        for _ in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let count = (highest + 20).saturating_sub((random >> 33) as u32 % 120).max(1);
            let expected = !seen.contains(&count) && count + WINDOW > highest;
            assert_eq!(used.take(1, count), expected, "{count} after {highest}");
            if expected {
                seen.insert(count);
                highest = highest.max(count);
            }
        }
    }
}
