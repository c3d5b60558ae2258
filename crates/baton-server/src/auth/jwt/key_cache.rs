//! The keys of one issuer: fetched when they are needed, by one request at a time, and kept.
//!
//! A token with an unknown key may be the first one after the issuer replaced its key, so it may cause a fetch. Anybody can
//! make up such tokens; therefore a name that was just looked for is not looked for again, and there is a shortest time
//! between two fetches, whoever asks.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::CACHE_CONTROL;
use reqwest::Url;
use tokio::sync::watch;
use tokio::time::Instant;

use super::algorithm::Algorithm;
use super::fetch::{Fetcher, checked_url, named_url};
use super::options::{BadTokenOption, KeysFrom};
use super::provider::{Provider, openid_url};
use super::public_keys::PublicKeys;

/// How the keys of an issuer are fetched and kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyCacheOptions {
    /// Keys are used at least this long before they are fetched again. Default: 5 min.
    pub min_lifetime: Duration,
    /// And at most this long. In between the `max-age` of the response decides. Default: 60 min.
    pub max_lifetime: Duration,
    /// Shortest time between two fetches. Default: 10 s.
    pub min_interval: Duration,
    /// A key that was not found is not looked for again before. Default: 30 s.
    pub unknown_for: Duration,
    /// Most unknown keys that are remembered. Default: 1,024.
    pub max_unknown: usize,
    /// While they cannot be fetched, keys are used until they are this old. Default: 24 h.
    pub stale_for: Duration,
    /// Most keys in a set; a larger one is an error. Default: 100.
    pub max_keys: usize,
}

impl Default for KeyCacheOptions {
    fn default() -> Self {
        KeyCacheOptions {
            min_lifetime: Duration::from_secs(5 * 60),
            max_lifetime: Duration::from_secs(60 * 60),
            min_interval: Duration::from_secs(10),
            unknown_for: Duration::from_secs(30),
            max_unknown: 1024,
            stale_for: Duration::from_secs(24 * 60 * 60),
            max_keys: 100,
        }
    }
}

/// Why no key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The issuer has no such key, as far as is known.
    Unknown,
    /// There are no keys at all. The text is for the log.
    Unavailable(String),
}

/// A cheap handle; all clones share the keys.
#[derive(Clone)]
pub(super) struct KeyCache(Arc<Shared>);

struct Shared {
    source: Source,
    options: KeyCacheOptions,
    state: Mutex<State>,
    /// Counts the sets that differ from the one before.
    version: AtomicU64,
}

enum Source {
    Fixed,
    Fetched { fetcher: Fetcher, url: Url, issuer: String, is_metadata: bool },
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    /// When the last fetch began, whatever came of it.
    last_fetch: Option<Instant>,
    /// Why the last fetch failed, if it did.
    trouble: Option<String>,
    /// Names of keys that were not found, and until when that is believed.
    unknown: HashMap<Box<str>, Instant>,
    /// The fetch that is running; the sender is dropped when it ends.
    running: Option<watch::Receiver<()>>,
}

struct Kept {
    keys: Arc<PublicKeys>,
    fresh_until: Instant,
    stale_until: Instant,
}

impl fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = match &self.0.source {
            Source::Fixed => None,
            Source::Fetched { url, .. } => Some(url.as_str()),
        };
        f.debug_struct("KeyCache").field("url", &url).finish_non_exhaustive()
    }
}

impl KeyCache {
    pub(super) fn new(
        issuer: &str,
        from: &KeysFrom,
        options: KeyCacheOptions,
        fetcher: Fetcher,
    ) -> Result<Self, BadTokenOption> {
        let issuer = issuer.to_owned();
        let mut kept = None;
        let source = match from {
            KeysFrom::Discovery => {
                Source::Fetched { fetcher, url: openid_url(&issuer)?, issuer, is_metadata: true }
            }
            KeysFrom::Url(url) => {
                Source::Fetched { fetcher, url: checked_url("keys", url)?, issuer, is_metadata: false }
            }
            KeysFrom::Set(text) => {
                let keys = parse_fixed(text, &options)?;
                let now = Instant::now();
                kept = Some(Kept { keys: Arc::new(keys), fresh_until: now, stale_until: now });
                Source::Fixed
            }
        };
        let state = Mutex::new(State { kept, ..State::default() });
        Ok(KeyCache(Arc::new(Shared { source, options, state, version: AtomicU64::new(0) })))
    }

    /// Replaces the keys of a fixed set. False if the keys are fetched.
    pub(super) fn replace(&self, text: &str) -> Result<bool, BadTokenOption> {
        if !matches!(self.0.source, Source::Fixed) {
            return Ok(false);
        }
        let keys = parse_fixed(text, &self.0.options)?;
        self.0.put(&mut self.0.lock(), keys, Duration::ZERO, Duration::ZERO);
        Ok(true)
    }

    /// Changes when the keys change. What was verified with an earlier version has to be verified again.
    pub(super) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Fetches the keys now, so that the first request need not wait, and a wrong URL is noticed early.
    pub(super) async fn fetch(&self) -> Result<(), String> {
        let Some(running) = self.start() else { return Ok(()) };
        ended(running).await;
        self.0.lock().trouble.clone().map_or(Ok(()), Err)
    }

    /// A set with a key for this header. Waits for a fetch if one is needed.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<PublicKeys>, NoKey> {
        if matches!(self.0.source, Source::Fixed) {
            let state = self.0.lock();
            let keys = state.kept.as_ref().map(|kept| Arc::clone(&kept.keys));
            return keys.filter(|keys| keys.knows(kid, algorithm)).ok_or(NoKey::Unknown);
        }
        let mut has_waited = false;
        loop {
            let next = self.look(kid, algorithm, has_waited);
            match next {
                Look::Done(result) => return result,
                Look::Wait(running) => ended(running).await,
            }
            has_waited = true;
        }
    }

    fn look(&self, kid: Option<&str>, algorithm: Algorithm, has_waited: bool) -> Look {
        let now = Instant::now();
        let mut state = self.0.lock();
        let name = kid.unwrap_or_default();
        let Some(kept) = state.kept.as_ref().filter(|kept| now < kept.stale_until) else {
            if !has_waited && let Some(running) = self.start_locked(&mut state, now) {
                return Look::Wait(running);
            }
            let why = state.trouble.clone().unwrap_or_else(|| "not fetched yet".to_owned());
            return Look::Done(Err(NoKey::Unavailable(format!("the issuer's keys: {why}"))));
        };
        let keys = Arc::clone(&kept.keys);
        let is_known = keys.knows(kid, algorithm);
        let is_fresh = now < kept.fresh_until;
        let wants_fetch = !is_fresh || !(is_known || state.is_unknown(name, now));
        // While the issuer does not answer, requests do not wait for it: what is known is used, and a fetch in the background
        // tries again now and then.
        if wants_fetch
            && !has_waited
            && let Some(running) = self.start_locked(&mut state, now)
            && state.trouble.is_none()
        {
            return Look::Wait(running);
        }
        if is_known {
            return Look::Done(Ok(keys));
        }
        if let Some(why) = &state.trouble {
            return Look::Done(Err(NoKey::Unavailable(format!(
                "an unknown key, and the issuer's keys: {why}"
            ))));
        }
        // Believed only after a fetch, and not because a fetch was not allowed yet.
        if has_waited {
            state.remember_unknown(name, now, &self.0.options);
        }
        Look::Done(Err(NoKey::Unknown))
    }

    fn start(&self) -> Option<watch::Receiver<()>> {
        self.start_locked(&mut self.0.lock(), Instant::now())
    }

    /// The running fetch, or a new one. `None` if it is too early for one.
    fn start_locked(&self, state: &mut State, now: Instant) -> Option<watch::Receiver<()>> {
        // An error means that the sender is gone.
        if let Some(running) = state.running.as_ref().filter(|running| running.has_changed().is_ok()) {
            return Some(running.clone());
        }
        let interval = self.0.options.min_interval;
        if state.last_fetch.is_some_and(|last| now < last + interval) {
            return None;
        }
        state.last_fetch = Some(now);
        let (done, running) = watch::channel(());
        state.running = Some(running.clone());
        let shared = Arc::clone(&self.0);
        // A task of its own: the caller who started it may go away while others wait.
        tokio::spawn(async move {
            let result = shared.fetched().await;
            shared.keep(result);
            drop(done);
        });
        Some(running)
    }
}

enum Look {
    Done(Result<Arc<PublicKeys>, NoKey>),
    Wait(watch::Receiver<()>),
}

async fn ended(mut running: watch::Receiver<()>) {
    while running.changed().await.is_ok() {}
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetched(&self) -> Result<(PublicKeys, Duration), String> {
        let Source::Fetched { fetcher, url, issuer, is_metadata } = &self.source else {
            return Err("the keys are given".to_owned());
        };
        let url = if *is_metadata {
            let provider = Provider::fetch_from(fetcher, url, issuer).await?;
            let keys = provider.jwks_uri.ok_or_else(|| format!("{url}: has no `jwks_uri`"))?;
            named_url("jwks_uri", &keys, url)?
        } else {
            url.clone()
        };
        let fetched = fetcher.get(&url).await?;
        let keys =
            PublicKeys::parse(&fetched.body, self.options.max_keys).map_err(|why| format!("{url}: {why}"))?;
        let KeyCacheOptions { min_lifetime, max_lifetime, .. } = self.options;
        let lifetime = max_age(&fetched.headers).unwrap_or(min_lifetime);
        Ok((keys, lifetime.min(max_lifetime).max(min_lifetime)))
    }

    /// Uses these keys from now on. What was verified with a key that is not among them is no longer valid.
    fn put(&self, state: &mut State, mut keys: PublicKeys, fresh: Duration, stale: Duration) {
        let before = state.kept.take().map(|kept| kept.keys);
        if let Some(before) = &before {
            keys.follow(before);
        }
        if !before.as_ref().is_some_and(|before| before.same_as(&keys)) {
            state.unknown.clear();
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        keys.version = self.version.load(Ordering::Acquire);
        if let Some(before) = before {
            before.end_unless_in(&keys);
        }
        let now = Instant::now();
        state.kept = Some(Kept { keys: Arc::new(keys), fresh_until: now + fresh, stale_until: now + stale });
    }

    fn keep(&self, result: Result<(PublicKeys, Duration), String>) {
        let mut state = self.lock();
        match result {
            Ok((keys, lifetime)) => {
                self.put(&mut state, keys, lifetime, self.options.stale_for.max(lifetime));
                state.trouble = None;
            }
            Err(why) => {
                tracing::warn!(error = why, "the keys of a token issuer cannot be fetched");
                state.trouble = Some(why);
            }
        }
        state.running = None;
    }
}

impl State {
    fn is_unknown(&self, name: &str, now: Instant) -> bool {
        self.unknown.get(name).is_some_and(|until| now < *until)
    }

    fn remember_unknown(&mut self, name: &str, now: Instant, options: &KeyCacheOptions) {
        if self.unknown.len() >= options.max_unknown {
            self.unknown.retain(|_, until| now < *until);
        }
        // When it is full, further names are not remembered; the shortest time between fetches still holds.
        if self.unknown.len() < options.max_unknown {
            self.unknown.insert(name.into(), now + options.unknown_for);
        }
    }
}

fn parse_fixed(text: &str, options: &KeyCacheOptions) -> Result<PublicKeys, BadTokenOption> {
    PublicKeys::parse(text.as_bytes(), options.max_keys).map_err(|why| BadTokenOption::new("keys", why))
}

/// `max-age` in `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = values.flat_map(|value| value.split(',')).map(str::trim);
    directives.find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        if !name.eq_ignore_ascii_case("max-age") {
            return None;
        }
        value.trim_matches('"').parse().ok().map(Duration::from_secs)
    })
}
