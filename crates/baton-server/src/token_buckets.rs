//! Token buckets by key, in a table of bounded size: for rate limits and for failed authentication.
//!
//! A bucket is one number: the time at which it will be full again (the generic cell rate algorithm, GCRA). A bucket that
//! is full says the same as no bucket, so it may be forgotten. The table consists of small shards, each with a lock of its
//! own. When a shard is full, its full buckets are removed, and if there are none, the one that would be full first. So
//! whoever invents keys without end finds no more memory to take, and each call takes the same small time at most.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashTable;

/// Most buckets in one shard: so many are looked through when the shard is full.
const SHARD: usize = 256;

/// How fast a bucket is refilled, and how many tokens it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The time for one token, in nanoseconds.
    interval: u64,
    /// The time for all tokens but one.
    tolerance: u64,
}

impl Rate {
    /// One token in each `interval`, and at most `burst` of them. A burst of 0 counts as 1.
    pub(crate) fn new(interval: Duration, burst: u32) -> Self {
        let interval = nanos(interval);
        Rate { interval, tolerance: interval.saturating_mul(u64::from(burst.saturating_sub(1))) }
    }
}

#[derive(Debug)]
pub(crate) struct TokenBuckets {
    /// Keyed at random, so that nobody can choose keys that meet in one shard.
    hasher: RandomState,
    start: Instant,
    shards: Box<[Mutex<HashTable<Bucket>>]>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// The hash of the key stands for the key: two keys of the same hash share a bucket, which is as good as impossible.
    hash: u64,
    /// When the bucket is full, in nanoseconds since `start`.
    full_at: u64,
}

impl TokenBuckets {
    /// A table for about `max` buckets.
    pub(crate) fn new(max: usize) -> Self {
        let shards = max.div_ceil(SHARD).max(1).next_power_of_two();
        let shards = (0..shards).map(|_| Mutex::default()).collect();
        TokenBuckets { hasher: RandomState::new(), start: Instant::now(), shards }
    }

    /// Takes a token of the key's bucket, or says after what time there will be one. A refused call takes nothing.
    pub(crate) fn take(&self, key: &impl Hash, rate: Rate, now: Instant) -> Result<(), Duration> {
        let hash = self.hasher.hash_one(key);
        let now = nanos(now.saturating_duration_since(self.start));
        // The table itself uses the lowest and the highest bits.
        let at = (hash >> 24) as usize & (self.shards.len() - 1);
        // Every entry is valid by itself, so a poisoned lock can be used.
        let mut shard = self.shards[at].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = shard.find_mut(hash, |bucket| bucket.hash == hash) {
            let full_at = bucket.full_at.max(now);
            let over = (full_at - now).saturating_sub(rate.tolerance);
            if over > 0 {
                return Err(Duration::from_nanos(over));
            }
            bucket.full_at = full_at.saturating_add(rate.interval);
            return Ok(());
        }
        if shard.len() >= SHARD {
            make_room(&mut shard, now);
        }
        let bucket = Bucket { hash, full_at: now.saturating_add(rate.interval) };
        shard.insert_unique(hash, bucket, |bucket| bucket.hash);
        Ok(())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap().len()).sum()
    }
}

fn make_room(shard: &mut HashTable<Bucket>, now: u64) {
    shard.retain(|bucket| bucket.full_at > now);
    if shard.len() < SHARD {
        return;
    }
    let Some(first) = shard.iter().min_by_key(|bucket| bucket.full_at).copied() else { return };
    if let Ok(entry) = shard.find_entry(first.hash, |bucket| bucket.hash == first.hash) {
        entry.remove();
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Whole seconds for `Retry-After`, rounded up, at least 1.
pub(crate) fn retry_after(time: Duration) -> u32 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(seconds.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_and_then_the_rate() {
        let buckets = TokenBuckets::new(1000);
        let (rate, now) = (Rate::new(SECOND, 3), Instant::now());
        for _ in 0..3 {
            buckets.take(&"a", rate, now).unwrap();
        }
        assert_eq!(buckets.take(&"a", rate, now), Err(SECOND));
        assert_eq!(
            buckets.take(&"a", rate, now + SECOND / 2),
            Err(SECOND / 2),
            "a refused call takes nothing"
        );
        buckets.take(&"b", rate, now).unwrap();
        buckets.take(&"a", rate, now + SECOND).unwrap();
        assert_eq!(buckets.take(&"a", rate, now + SECOND), Err(SECOND));
        for _ in 0..3 {
            buckets.take(&"a", rate, now + 10 * SECOND).unwrap();
        }
        buckets.take(&"a", rate, now + 10 * SECOND).unwrap_err();
    }

    #[test]
    fn the_table_is_bounded_and_keeps_who_is_refused() {
        let buckets = TokenBuckets::new(SHARD);
        let (rate, now) = (Rate::new(SECOND, 4), Instant::now());
        while buckets.take(&"greedy", rate, now).is_ok() {}
        for invented in 0..10 * SHARD {
            let _ = buckets.take(&invented, rate, now);
        }
        assert_eq!(buckets.len(), SHARD);
        buckets.take(&"greedy", rate, now).unwrap_err();
        // Later all are full again, and none is needed any more.
        buckets.take(&"new", rate, now + 60 * SECOND).unwrap();
        assert_eq!(buckets.len(), 1);
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(retry_after(Duration::from_millis(millis)), seconds);
        }
    }

    proptest! {
        /// In any time, nobody gets more than the burst and what the rate adds in that time; and whoever waits as long as
        /// told gets a token.
        #[test]
        fn nobody_gets_more_and_waiting_helps(
            burst in 1_u32..20,
            pauses in proptest::collection::vec(0_u64..3000, 1..200),
        ) {
            let buckets = TokenBuckets::new(SHARD);
            let (rate, start) = (Rate::new(SECOND, burst), Instant::now());
            let (mut now, mut taken) = (start, 0_u64);
            for pause in pauses {
                now += Duration::from_millis(pause / 10);
                match buckets.take(&"a", rate, now) {
                    Ok(()) => taken += 1,
                    Err(wait) => {
                        now += wait;
                        prop_assert_eq!(buckets.take(&"a", rate, now), Ok(()));
                        taken += 1;
                    }
                }
                prop_assert!(taken <= u64::from(burst) + (now - start).as_secs());
            }
        }
    }
}
