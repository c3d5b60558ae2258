//! Whose request it is, for the limits that all requests share: one customer must not use up what the others need.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use super::caps::one_customer;

/// Who is counted for the memory of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Customer {
    /// Everybody at this address; for IPv6, the address of a /64 network.
    Address(IpAddr),
    /// A caller that the application knows by name, whatever its address.
    Named(Arc<str>),
}

/// The customer of one request: the client's address, until the application says more.
#[derive(Debug, Clone)]
pub(super) struct CustomerOfRequest {
    peer: IpAddr,
    named: Arc<OnceLock<Customer>>,
}

impl CustomerOfRequest {
    pub(super) fn at(peer: IpAddr) -> Self {
        CustomerOfRequest { peer, named: Arc::default() }
    }

    /// The first call counts.
    pub(super) fn set(&self, customer: Customer) {
        let _ = self.named.set(customer);
    }

    pub(super) fn get(&self) -> Customer {
        self.named.get().cloned().unwrap_or_else(|| Customer::Address(one_customer(self.peer)))
    }
}
