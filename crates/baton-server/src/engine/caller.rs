//! Who is counted for a call, by the limits that each caller has for itself.

use std::net::IpAddr;
use std::sync::Arc;

use baton_protocol::domain::Scope;

use crate::auth::{Principal, is_anonymous};
use crate::net::{self, Customer};

/// A caller as the limits see it. Anonymous callers share one owner in the store, but one of them must not use up what the
/// others may do, so they are counted by address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    Owner(Arc<str>),
    /// An anonymous caller at this address; for IPv6, the address of its network.
    Address(IpAddr),
    /// Anonymous callers whose address is not known: on this machine, behind a proxy that does not name them, and of
    /// queued tasks after a restart. They have the limits of the server only.
    Unknown,
}

impl Caller {
    /// `address` counts only if the caller is anonymous.
    pub(crate) fn of(principal: &Principal, address: Option<IpAddr>) -> Self {
        if principal.is_anonymous() {
            return Caller::at(address);
        }
        Caller::Owner(Arc::clone(principal.shared_owner()))
    }

    /// Somebody at this address, of whom nothing else is known.
    pub(crate) fn at(address: Option<IpAddr>) -> Self {
        address.map_or(Caller::Unknown, |address| Caller::Address(net::one_customer(address)))
    }

    /// The caller as far as a stored task tells it.
    pub(crate) fn of_scope(scope: &Scope) -> Self {
        if is_anonymous(&scope.owner) { Caller::Unknown } else { Caller::Owner(Arc::clone(&scope.owner)) }
    }

    /// Who is counted for the caller's requests and their memory. `None`: everybody at the address that the connection comes
    /// from.
    pub(crate) fn customer(&self) -> Option<Customer> {
        match self {
            Caller::Owner(owner) => Some(Customer::Named(Arc::clone(owner))),
            Caller::Address(address) => Some(Customer::Address(*address)),
            Caller::Unknown => None,
        }
    }

    /// Whether the limits for each caller apply.
    pub(crate) fn is_limited(&self) -> bool {
        *self != Caller::Unknown
    }
}
