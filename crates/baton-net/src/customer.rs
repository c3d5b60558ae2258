//! Whose request it is, for the limits that all requests share: one customer must not use up what the others need.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::caps::one_customer;
use super::in_flight::{Counted, InFlight, TooManyRequests};

/// Who is counted for a request and its memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Customer {
    /// Everybody at this address; for IPv6, the address of a /64 network.
    Address(IpAddr),
    /// A caller that the application knows by name, whatever its address.
    Named(Arc<str>),
}

/// The customer of one request: the client's address, until the application says more. Its answer holds a clone, so that the
/// request is counted until the last byte of that is sent.
#[derive(Debug, Clone)]
pub(super) struct CustomerOfRequest(Arc<Request>);

#[derive(Debug)]
struct Request {
    peer: IpAddr,
    named: OnceLock<Customer>,
    /// The limits that requests are counted by: the server's, and the connection's if it is a proxy's.
    limits: [Option<Arc<InFlight>>; 2],
    counted: Mutex<[Option<Counted>; 2]>,
}

impl CustomerOfRequest {
    pub(super) fn new(peer: IpAddr, limits: [Option<Arc<InFlight>>; 2]) -> Self {
        let (named, counted) = Default::default();
        CustomerOfRequest(Arc::new(Request { peer, named, limits, counted }))
    }

    /// The first call counts.
    pub(super) fn set(&self, customer: Customer) {
        let _ = self.0.named.set(customer);
    }

    pub(super) fn get(&self) -> Customer {
        let Request { peer, named, .. } = &*self.0;
        named.get().cloned().unwrap_or_else(|| Customer::Address(one_customer(*peer)))
    }

    /// Counts the request for this customer, and no longer for the one before.
    pub(super) fn count(&self, customer: &Customer) -> Result<(), TooManyRequests> {
        let mut counted = [None, None];
        for (counted, limit) in counted.iter_mut().zip(&self.0.limits) {
            *counted = limit.as_ref().map(|limit| limit.count(customer)).transpose()?;
        }
        let before =
            std::mem::replace(&mut *self.0.counted.lock().unwrap_or_else(PoisonError::into_inner), counted);
        drop(before);
        Ok(())
    }
}
