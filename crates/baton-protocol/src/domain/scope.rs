//! Whose data this is. The first argument of every store call and part of every stored key.

use std::sync::Arc;

/// Agent, tenant and owner. The owner comes from authentication, never from a request body.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    pub agent: Arc<str>,
    /// Empty when the interface has no tenant.
    pub tenant: Arc<str>,
    pub owner: Arc<str>,
}

impl Scope {
    pub fn new(agent: &str, tenant: &str, owner: &str) -> Self {
        Scope { agent: Arc::from(agent), tenant: Arc::from(tenant), owner: Arc::from(owner) }
    }
}
