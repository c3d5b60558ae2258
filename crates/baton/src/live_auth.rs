//! The chain of schemes, which a reload replaces.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use baton_protocol::domain::security::SecurityScheme;
use baton_server::auth::{Access, AuthRequest, Authenticator, Chain, Challenge, Principal};

/// A chain that can be replaced by one with the same schemes. They must have the same names and order: a principal of one
/// chain may be authorized by the next.
#[derive(Debug)]
pub(crate) struct LiveAuth(ArcSwap<Chain>);

impl LiveAuth {
    pub(crate) fn new(chain: Chain) -> Self {
        LiveAuth(ArcSwap::from_pointee(chain))
    }

    /// From the next request on.
    pub(crate) fn replace(&self, chain: Chain) {
        self.0.store(Arc::new(chain));
    }
}

#[async_trait]
impl Authenticator for LiveAuth {
    async fn authenticate(&self, request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        self.0.load_full().authenticate(request).await
    }

    fn authorize(&self, principal: &Principal, access: &Access<'_>) -> Result<(), Challenge> {
        self.0.load().authorize(principal, access)
    }

    fn schemes(&self) -> Option<Vec<(String, SecurityScheme)>> {
        self.0.load().schemes()
    }

    fn enforces(&self) -> bool {
        self.0.load().enforces()
    }
}
