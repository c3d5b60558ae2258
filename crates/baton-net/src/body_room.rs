//! Limits the memory of request bodies that are being received, of all connections together. When the limit is reached,
//! the customer that holds most gives way: of its bodies, the one that has brought nothing for the longest time is given
//! up. So a customer that sends bodies and does not finish them costs the others nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;

use super::customer::Customer;

#[derive(Debug)]
pub(super) struct BodyRoom {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of all bodies, without those that were told to give way.
    held: usize,
    /// Counts the parts that have come; the order of these numbers is the order in time.
    parts: u64,
    customers: HashMap<Customer, Bodies>,
}

/// The bodies of one customer.
#[derive(Debug, Default)]
struct Bodies {
    bytes: usize,
    /// By the number of their last part: the first has brought nothing for the longest time.
    by_last_part: BTreeMap<u64, (usize, Arc<GiveWay>)>,
}

/// Tells a body that it is given up.
#[derive(Debug, Default)]
struct GiveWay {
    told: AtomicBool,
    waker: AtomicWaker,
}

/// The bytes of one body, counted until this is dropped.
#[derive(Debug)]
pub(super) struct BodyBytes {
    room: Arc<BodyRoom>,
    customer: Customer,
    last_part: Option<u64>,
    give_way: Arc<GiveWay>,
}

impl BodyRoom {
    pub(super) fn new(max: usize) -> Self {
        BodyRoom { max, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole at every moment the lock is free.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn held(&self) -> (usize, usize) {
        let state = self.state();
        (state.held, state.customers.len())
    }
}

impl State {
    /// Takes a body out of the count. `None` if it was told to give way.
    fn remove(&mut self, customer: &Customer, last_part: u64) -> Option<usize> {
        let bodies = self.customers.get_mut(customer)?;
        let (bytes, _) = bodies.by_last_part.remove(&last_part)?;
        bodies.bytes -= bytes;
        self.held -= bytes;
        if bodies.by_last_part.is_empty() {
            self.customers.remove(customer);
        }
        Some(bytes)
    }

    /// Gives up bodies of the customer that holds most, until `max` is kept. It holds at least as much as the part that has
    /// just come, so that its bodies are enough; the body of that part is the last of them.
    fn make_room(&mut self, max: usize) {
        let largest = self.customers.iter_mut().max_by_key(|(_, bodies)| bodies.bytes);
        let Some((customer, most)) = largest.map(|(customer, bodies)| (customer.clone(), bodies)) else {
            return;
        };
        while self.held > max
            && let Some((_, (bytes, give_way))) = most.by_last_part.pop_first()
        {
            most.bytes -= bytes;
            self.held -= bytes;
            give_way.told.store(true, Relaxed);
            give_way.waker.wake();
        }
        if most.by_last_part.is_empty() {
            self.customers.remove(&customer);
        }
    }
}

impl BodyBytes {
    pub(super) fn new(room: &Arc<BodyRoom>, customer: Customer) -> Self {
        BodyBytes { room: Arc::clone(room), customer, last_part: None, give_way: Arc::default() }
    }

    /// Counts a part that has come. False if the body is given up.
    pub(super) fn add(&mut self, part: usize) -> bool {
        let mut state = self.room.state();
        let before = match self.last_part.take() {
            Some(last) => state.remove(&self.customer, last),
            None => Some(0),
        };
        let Some(before) = before else { return false };
        let (bytes, number) = (before + part, state.parts);
        state.parts += 1;
        state.held += bytes;
        let bodies = state.customers.entry(self.customer.clone()).or_default();
        bodies.bytes += bytes;
        bodies.by_last_part.insert(number, (bytes, Arc::clone(&self.give_way)));
        self.last_part = Some(number);
        if state.held > self.room.max {
            state.make_room(self.room.max);
        }
        !self.give_way.told.load(Relaxed)
    }

    /// Whether the body is given up. If not, the waker is called when it is.
    pub(super) fn gives_way(&self, waker: &Waker) -> bool {
        self.give_way.waker.register(waker);
        self.give_way.told.load(Relaxed)
    }
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        if let Some(last) = self.last_part {
            self.room.state().remove(&self.customer, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn customer(name: &str) -> Customer {
        Customer::Named(Arc::from(name))
    }

    fn body(room: &Arc<BodyRoom>, name: &str, bytes: usize) -> BodyBytes {
        let mut body = BodyBytes::new(room, customer(name));
        assert!(body.add(bytes), "{bytes} of {name}");
        body
    }

    fn given_up(bodies: &[BodyBytes]) -> Vec<bool> {
        bodies.iter().map(|body| body.gives_way(Waker::noop())).collect()
    }

    #[test]
    fn s12_whoever_holds_most_gives_way_with_the_body_that_brings_nothing() {
        let room = Arc::new(BodyRoom::new(100));
        let mut greedy: Vec<_> = (0..8).map(|_| body(&room, "greedy", 10)).collect();
        assert!(greedy[0].add(1), "it brings something");
        let mut calm = body(&room, "calm", 19);
        assert_eq!(given_up(&greedy), [false; 8], "all of it fits");
        assert!(calm.add(21));
        assert_eq!(given_up(&greedy), [false, true, true, true, false, false, false, false]);
        assert!(!greedy[1].add(1), "it is over");
        let small: Vec<_> = (0..20).map(|n| body(&room, &n.to_string(), 1)).collect();
        assert_eq!(given_up(&greedy), [false, true, true, true, true, true, false, false]);
        assert!(!given_up(&[calm])[0], "gone by now, and never told");
        // What is told does not count any more, and is not taken off twice.
        assert_eq!(room.held().0, 11 + 2 * 10 + 20);
        drop((greedy, small));
        assert_eq!(room.held(), (0, 0));
    }

    #[test]
    fn a_body_that_is_larger_than_the_room_is_refused_alone() {
        let room = Arc::new(BodyRoom::new(100));
        let others: Vec<_> = (0..3).map(|n| body(&room, &n.to_string(), 10)).collect();
        let mut large = body(&room, "large", 60);
        assert!(!large.add(60));
        assert_eq!(given_up(&others), [false; 3]);
        assert_eq!(room.held(), (30, 3));
        // In a room full of tiny ones it is the large part that is too much.
        let tiny: Vec<_> = (0..70).map(|n| body(&room, &format!("tiny {n}"), 1)).collect();
        drop(others);
        assert!(!BodyBytes::new(&room, customer("large")).add(200));
        assert_eq!((given_up(&tiny).contains(&true), room.held()), (false, (70, 70)));
    }
}
