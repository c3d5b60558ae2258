//! Limits how many requests of one customer are under way, event streams included. A proxy's connections carry the requests of
//! many customers, so requests are counted and not sockets: one customer must not use up the connections of all.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::customer::Customer;

/// Threads that count different customers rarely wait for each other.
const SHARDS: usize = 16;

/// How many requests each customer has under way.
#[derive(Debug)]
pub(super) struct InFlight {
    max_each: usize,
    hasher: RandomState,
    shards: [Mutex<HashMap<Customer, usize>>; SHARDS],
}

/// A request that is counted, until this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    of: Arc<InFlight>,
    customer: Customer,
}

/// The customer has as many requests under way as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{most} requests of one customer are under way")]
pub struct TooManyRequests {
    /// How many that are.
    pub most: usize,
}

impl InFlight {
    pub(super) fn new(max_each: usize) -> Arc<Self> {
        let (hasher, shards) = Default::default();
        Arc::new(InFlight { max_each: max_each.max(1), hasher, shards })
    }

    pub(super) fn count(self: &Arc<Self>, customer: &Customer) -> Result<Counted, TooManyRequests> {
        let mut shard = self.shard(customer);
        match shard.get_mut(customer) {
            Some(count) if *count >= self.max_each => return Err(TooManyRequests { most: self.max_each }),
            Some(count) => *count += 1,
            None => drop(shard.insert(customer.clone(), 1)),
        }
        drop(shard);
        Ok(Counted { of: Arc::clone(self), customer: customer.clone() })
    }

    fn shard(&self, customer: &Customer) -> MutexGuard<'_, HashMap<Customer, usize>> {
        let shard = &self.shards[self.hasher.hash_one(customer) as usize % SHARDS];
        // The counts are consistent whenever the lock is free, so a poisoned lock can be used.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut shard = self.of.shard(&self.customer);
        if let Some(count) = shard.get_mut(&self.customer) {
            *count -= 1;
            if *count == 0 {
                shard.remove(&self.customer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_customer_has_its_own_bound_and_nothing_is_kept_of_those_who_left() {
        let all = InFlight::new(2);
        let customer = |name: &str| Customer::Named(Arc::from(name));
        let (one, other) = (customer("one"), customer("other"));
        let first = all.count(&one).unwrap();
        let _second = all.count(&one).unwrap();
        assert_eq!(all.count(&one).unwrap_err(), TooManyRequests { most: 2 });
        let others = [all.count(&other).unwrap(), all.count(&other).unwrap()];
        drop(first);
        let third = all.count(&one).unwrap();
        assert!(all.count(&one).is_err());
        drop((others, third, _second));
        assert!(all.shards.iter().all(|shard| shard.lock().unwrap().is_empty()));
    }
}
