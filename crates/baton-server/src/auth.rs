//! Who is calling. Decided on headers alone, before the body is read.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::Error;
use http::HeaderMap;

/// The authenticated caller. Its owner is part of every stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub owner: Arc<str>,
}

#[async_trait]
pub trait Authenticator: Send + Sync + fmt::Debug + 'static {
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
        Ok(Principal { owner: Arc::from("anonymous") })
    }

    fn enforces(&self) -> bool {
        false
    }
}
