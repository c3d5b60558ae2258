//! Whose data something is: the first argument of every store call, and part of every stored key.

use std::ops::Deref;
use std::sync::Arc;

/// Agent, tenant and owner. The owner comes from authentication, never from a request body.
///
/// A request clones its scope many times. So it is one `Arc` per request: cloning three shared names instead would
/// contend on reference counts that requests of all threads share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(Arc<Names>);

/// What a [`Scope`] consists of.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Names {
    /// The agent by its id on the server.
    pub agent: Arc<str>,
    /// Empty when the interface has no tenant.
    pub tenant: Arc<str>,
    /// The caller, as the authenticator knows it.
    pub owner: Arc<str>,
}

impl Scope {
    /// A scope with these names.
    pub fn new(agent: &str, tenant: &str, owner: &str) -> Self {
        Scope::of(Arc::from(agent), Arc::from(tenant), Arc::from(owner))
    }

    /// A scope with names that are shared already.
    pub fn of(agent: Arc<str>, tenant: Arc<str>, owner: Arc<str>) -> Self {
        Scope(Arc::new(Names { agent, tenant, owner }))
    }
}

impl Deref for Scope {
    type Target = Names;

    fn deref(&self) -> &Names {
        &self.0
    }
}
