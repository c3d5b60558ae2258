//! Whose data this is. The first argument of every store call and part of every stored key.

use std::sync::Arc;

/// Agent, tenant and owner. The owner comes from authentication, never from a request body.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The agent by its id on the server.
    pub agent: Arc<str>,
    /// Empty when the interface has no tenant.
    pub tenant: Arc<str>,
    /// The caller, as the authenticator knows it.
    pub owner: Arc<str>,
}

impl Scope {
    /// A scope of these three.
    pub fn new(agent: &str, tenant: &str, owner: &str) -> Self {
        Scope { agent: Arc::from(agent), tenant: Arc::from(tenant), owner: Arc::from(owner) }
    }
}
