//! Cards that were fetched before: kept while they are fresh, asked for again with their ETag afterwards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, header};
use reqwest::Url;

use crate::http::Answer;

/// Cards by address, in memory. Clones share it, so that several clients can.
#[derive(Debug, Clone, Default)]
pub struct CardCache(Arc<Mutex<HashMap<Url, Stored>>>);

/// A client that goes through more agents than these starts over.
const MOST_CARDS: usize = 256;

impl CardCache {
    /// Forgets everything.
    pub fn clear(&self) {
        self.cards().clear();
    }

    pub(super) fn get(&self, url: &Url) -> Option<Stored> {
        self.cards().get(url).cloned()
    }

    pub(super) fn put(&self, url: &Url, stored: Stored) {
        let mut cards = self.cards();
        if !stored.freshness.may_be_kept {
            cards.remove(url);
            return;
        }
        if cards.len() >= MOST_CARDS && !cards.contains_key(url) {
            cards.clear();
        }
        cards.insert(url.clone(), stored);
    }

    pub(super) fn remove(&self, url: &Url) {
        self.cards().remove(url);
    }

    fn cards(&self) -> std::sync::MutexGuard<'_, HashMap<Url, Stored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) freshness: Freshness,
    pub(super) json: String,
}

impl Stored {
    pub(super) fn is_fresh(&self) -> bool {
        self.freshness.until.is_some_and(|until| Instant::now() < until)
    }
}

/// What an answer says about keeping it.
#[derive(Debug, Clone, Default)]
pub(super) struct Freshness {
    may_be_kept: bool,
    until: Option<Instant>,
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
}

/// No card is taken for fresh longer than a day, whatever its server says.
const LONGEST: u64 = 24 * 60 * 60;

impl Freshness {
    pub(super) fn read(answer: &Answer) -> Self {
        let lists = answer.headers().get_all(header::CACHE_CONTROL).iter();
        let text: Vec<String> =
            lists.filter_map(|it| it.to_str().ok().map(str::to_ascii_lowercase)).collect();
        let mut directives = text.iter().flat_map(|list| list.split(',')).map(str::trim);
        let has = |name: &str| text.iter().flat_map(|list| list.split(',')).any(|it| it.trim() == name);
        let age =
            directives.find_map(|it| it.strip_prefix("max-age=")?.trim_matches('"').parse::<u64>().ok());
        let age = age.filter(|_| !has("no-cache")).map(|age| Duration::from_secs(age.min(LONGEST)));
        let etag = answer.headers().get(header::ETAG).cloned();
        let last_modified = answer.headers().get(header::LAST_MODIFIED).cloned();
        Freshness {
            may_be_kept: !has("no-store") && (age.is_some() || etag.is_some() || last_modified.is_some()),
            until: age.map(|age| Instant::now() + age),
            etag,
            last_modified,
        }
    }

    /// The rest of this, or that of an earlier answer: a 304 may leave out what did not change.
    pub(super) fn or(self, earlier: Freshness) -> Self {
        Freshness {
            may_be_kept: self.may_be_kept || earlier.may_be_kept,
            until: self.until,
            etag: self.etag.or(earlier.etag),
            last_modified: self.last_modified.or(earlier.last_modified),
        }
    }

    /// Asks only for a newer one.
    pub(super) fn ask(&self, headers: &mut HeaderMap) {
        if let Some(etag) = &self.etag {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        } else if let Some(last_modified) = &self.last_modified {
            headers.insert(header::IF_MODIFIED_SINCE, last_modified.clone());
        }
    }
}
