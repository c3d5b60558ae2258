//! Whose data this is. The first argument of every store call and part of every stored key.

use std::ops::Deref;
use std::sync::Arc;

/// Agent, tenant and owner. The owner comes from authentication, never from a request body.
///
/// A request hands its scope to many places. So it is one shared block of the request's own: a clone of the three names
/// would change counters that the requests of all threads share.
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
    /// A scope of these three.
    pub fn new(agent: &str, tenant: &str, owner: &str) -> Self {
        Scope::of(Arc::from(agent), Arc::from(tenant), Arc::from(owner))
    }

    /// The same, of names that are shared.
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
