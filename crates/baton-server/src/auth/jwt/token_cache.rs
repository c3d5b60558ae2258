//! What is known of tokens that were seen before, by the SHA-256 of each. Tokens themselves are not kept.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// Threads that look up different tokens rarely wait for each other.
const SHARDS: usize = 16;

/// The name of a token in the cache. An attacker who could find a second token with the same name could break signatures.
pub(crate) type TokenDigest = [u8; 32];

pub(crate) fn token_digest(token: &[u8]) -> TokenDigest {
    Sha256::digest(token).into()
}

/// How long and how many tokens are remembered.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TokenCacheOptions {
    /// Most tokens. Those that were not used for longest are forgotten first. 0 switches the cache off.
    pub entries: usize,
    /// The longest time; a token is always forgotten when it expires.
    pub lifetime: Duration,
}

impl TokenCacheOptions {
    pub(crate) const fn new(entries: usize, lifetime: Duration) -> Self {
        TokenCacheOptions { entries, lifetime }
    }
}

/// Bounded. Each shard has two generations: when the young one is full, it becomes the old one and what was old is dropped;
/// an old entry that is used becomes young again. So nothing is searched when the cache is full.
pub(crate) struct TokenCache<V> {
    shards: Box<[Mutex<Shard<V>>]>,
    /// Most entries of one generation of one shard.
    half: usize,
    lifetime: Duration,
}

struct Shard<V> {
    young: HashMap<TokenDigest, Entry<V>>,
    old: HashMap<TokenDigest, Entry<V>>,
}

#[derive(Clone)]
struct Entry<V> {
    value: V,
    until: Instant,
    /// See [`TokenCache::get`].
    version: u64,
}

impl<V> fmt::Debug for TokenCache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

impl<V: Clone> TokenCache<V> {
    pub(crate) fn new(options: TokenCacheOptions) -> Self {
        let shard = || Mutex::new(Shard { young: HashMap::new(), old: HashMap::new() });
        TokenCache {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            half: options.entries.div_ceil(2 * SHARDS),
            lifetime: options.lifetime,
        }
    }

    /// `version` is that of what the value was derived from, such as the issuer's keys: a value of another version is not
    /// returned.
    pub(crate) fn get(&self, token: &TokenDigest, version: u64) -> Option<V> {
        let mut shard = self.shard(token);
        let (entry, is_young) = match shard.young.get(token) {
            Some(entry) => (entry, true),
            None => (shard.old.get(token)?, false),
        };
        if entry.version != version || Instant::now() >= entry.until {
            return None;
        }
        if is_young {
            return Some(entry.value.clone());
        }
        let entry = shard.old.remove(token)?;
        let value = entry.value.clone();
        shard.insert(*token, entry, self.half);
        Some(value)
    }

    /// `valid_for` is how long the token itself is valid, if that is known.
    pub(crate) fn insert(&self, token: TokenDigest, value: V, version: u64, valid_for: Option<Duration>) {
        if self.half == 0 {
            return;
        }
        let lifetime = valid_for.map_or(self.lifetime, |valid_for| valid_for.min(self.lifetime));
        let entry = Entry { value, until: Instant::now() + lifetime, version };
        self.shard(&token).insert(token, entry, self.half);
    }

    fn shard(&self, token: &TokenDigest) -> std::sync::MutexGuard<'_, Shard<V>> {
        let shard = &self.shards[usize::from(token[0]) % self.shards.len()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Shard<V> {
    fn insert(&mut self, token: TokenDigest, entry: Entry<V>, half: usize) {
        if self.young.len() >= half && !self.young.contains_key(&token) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(token, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn name(number: u32) -> TokenDigest {
        token_digest(&number.to_le_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn an_entry_ends_with_its_token_and_with_the_version() {
        let cache = TokenCache::new(TokenCacheOptions::new(100, MINUTE));
        cache.insert(name(1), 1, 7, None);
        cache.insert(name(2), 2, 7, Some(Duration::from_secs(5)));
        cache.insert(name(3), 3, 7, Some(Duration::from_secs(500)));
        let all = |version| [1, 2, 3].map(|number| cache.get(&name(number), version));
        assert_eq!(all(7), [Some(1), Some(2), Some(3)]);
        assert_eq!(all(8), [None; 3]);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(all(7), [Some(1), None, Some(3)]);
        tokio::time::advance(Duration::from_secs(55)).await;
        assert_eq!(all(7), [None; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_bounded_and_keeps_what_is_used() {
        let cache = TokenCache::new(TokenCacheOptions::new(320, MINUTE));
        for number in 0..10_000 {
            cache.insert(name(number), number, 0, None);
            assert_eq!(cache.get(&name(0), 0), Some(0), "after {number}");
        }
        let held: usize = cache
            .shards
            .iter()
            .map(|shard| {
                let shard = shard.lock().unwrap();
                shard.young.len() + shard.old.len()
            })
            .sum();
        assert!((160..=320).contains(&held), "{held}");
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_be_switched_off() {
        let cache = TokenCache::new(TokenCacheOptions::new(0, MINUTE));
        cache.insert(name(1), 1, 0, None);
        assert_eq!(cache.get(&name(1), 0), None);
    }
}
