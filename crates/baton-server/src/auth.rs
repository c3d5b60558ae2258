//! Who is calling. Decided on headers alone, before the body is read.

use std::fmt;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use baton_protocol::Error;
use http::HeaderMap;

/// The authenticated caller. Its owner is part of every stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// Unique among all callers; never shown to others.
    pub owner: Arc<str>,
}

impl Principal {
    /// The caller of that name.
    pub fn new(owner: &str) -> Self {
        Principal { owner: Arc::from(owner) }
    }
}

/// Tells who is calling.
#[async_trait]
pub trait Authenticator: Send + Sync + fmt::Debug + 'static {
    /// The caller, or why there is none. Sees headers alone: the body is read only for somebody.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error>;

    /// Does it refuse anybody? A card that declares security needs one that does.
    fn enforces(&self) -> bool {
        true
    }
}

/// Everybody is `anonymous`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anonymous;

#[async_trait]
impl Authenticator for Anonymous {
    async fn authenticate(&self, _headers: &HeaderMap) -> Result<Principal, Error> {
        // One for all: it is asked for with every request.
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("anonymous"));
        Ok(Principal { owner: Arc::clone(&NAME) })
    }

    fn enforces(&self) -> bool {
        false
    }
}
