//! Limits how many connections are open, in all and per address. When all are in use, a new connection replaces the one
//! that has been idle longest; a request under way is never cut off for it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::proxy::IpRange;
use super::pulse::{Order, Pulse};

/// How many idle connections one scan remembers, so that not every new connection needs a scan.
const CANDIDATES: usize = 64;

#[derive(Debug)]
pub(super) struct Registry {
    max_connections: usize,
    max_per_address: usize,
    trusted: Vec<IpRange>,
    epoch: Instant,
    state: Mutex<State>,
    draining: AtomicBool,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    present: HashMap<u64, Arc<Pulse>>,
    /// Told to close for a new connection, and not gone yet.
    leaving: usize,
    by_address: HashMap<IpAddr, usize>,
    /// Idle connections, with the time they had been idle since; the longest is last.
    candidates: Vec<(u64, u64)>,
}

/// Whether a new connection is accepted.
#[derive(Debug)]
pub(super) enum Admission {
    Welcome(Seat),
    /// Its address has too many.
    TooManyFromThere,
    /// There are too many, and none is idle.
    Full,
}

/// A connection's entry in the registry, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    registry: Arc<Registry>,
    id: u64,
    address: Option<IpAddr>,
    pub(super) pulse: Arc<Pulse>,
}

impl Registry {
    pub(super) fn new(max_connections: usize, max_per_address: usize, trusted: Vec<IpRange>) -> Arc<Self> {
        Arc::new(Registry {
            max_connections: max_connections.max(1),
            max_per_address: max_per_address.max(1),
            trusted,
            epoch: Instant::now(),
            state: Mutex::default(),
            draining: AtomicBool::new(false),
            left: Notify::new(),
        })
    }

    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Admission {
        let address = self.counted(peer);
        let mut state = self.state();
        if let Some(address) = address
            && state.by_address.get(&address).is_some_and(|count| *count >= self.max_per_address)
        {
            return Admission::TooManyFromThere;
        }
        if state.present.len() - state.leaving >= self.max_connections && !state.make_room() {
            return Admission::Full;
        }
        if let Some(address) = address {
            *state.by_address.entry(address).or_default() += 1;
        }
        let (id, pulse) = (state.next, Arc::new(Pulse::new(self.epoch)));
        state.next += 1;
        state.present.insert(id, Arc::clone(&pulse));
        drop(state);
        Admission::Welcome(Seat { registry: Arc::clone(self), id, address, pulse })
    }

    /// Closes an idle connection, if there is one, to free its file descriptor.
    pub(super) fn make_room(&self) -> bool {
        self.state().make_room()
    }

    /// From now on no new requests are taken. Connections without a request under way close.
    pub(super) fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.tell_all(Order::LeaveWhenQuiet);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    pub(super) fn tell_all(&self, order: Order) {
        let present: Vec<_> = self.state().present.values().cloned().collect();
        for pulse in present {
            pulse.tell(order);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.state().present.len()
    }

    pub(super) async fn all_gone(&self) {
        loop {
            let left = self.left.notified();
            if self.count() == 0 {
                return;
            }
            left.await;
        }
    }

    /// The key by which a peer is counted. `None` for trusted proxies and this machine, which connect for many
    /// clients.
    fn counted(&self, peer: IpAddr) -> Option<IpAddr> {
        let counts = !peer.to_canonical().is_loopback() && !self.is_proxy(peer);
        counts.then(|| one_customer(peer))
    }

    /// Whether this is the address of a trusted proxy.
    pub(super) fn is_proxy(&self, peer: IpAddr) -> bool {
        self.trusted.iter().any(|range| range.contains(peer.to_canonical()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The counts are consistent whenever the lock is free, so a poisoned lock can be used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address for IPv4, the /64 network for IPv6: providers give each customer a whole one.
pub fn one_customer(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

impl State {
    fn make_room(&mut self) -> bool {
        if self.take_candidate() {
            return true;
        }
        let spare = self.present.iter().filter(|(_, pulse)| pulse.is_spare() && pulse.order() == Order::None);
        let mut spare: Vec<(u64, u64)> = spare.map(|(id, pulse)| (pulse.quiet_since(), *id)).collect();
        if spare.len() > CANDIDATES {
            spare.select_nth_unstable(CANDIDATES);
            spare.truncate(CANDIDATES);
        }
        spare.sort_unstable_by(|a, b| b.cmp(a));
        self.candidates = spare;
        self.take_candidate()
    }

    fn take_candidate(&mut self) -> bool {
        while let Some((since, id)) = self.candidates.pop() {
            let Some(pulse) = self.present.get(&id) else { continue };
            if pulse.is_spare() && pulse.quiet_since() == since && pulse.order() == Order::None {
                pulse.tell(Order::MakeRoom);
                self.leaving += 1;
                return true;
            }
        }
        false
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.registry.state();
        if let Some(pulse) = state.present.remove(&self.id)
            && pulse.was_told_to_make_room()
        {
            state.leaving -= 1;
        }
        if let Some(address) = self.address
            && let Some(count) = state.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                state.by_address.remove(&address);
            }
        }
        if state.present.is_empty() {
            self.registry.left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(max_connections: usize, max_per_address: usize) -> Arc<Registry> {
        Registry::new(max_connections, max_per_address, vec!["10.0.0.0/8".parse().unwrap()])
    }

    #[track_caller]
    fn welcome(admission: Admission) -> Seat {
        match admission {
            Admission::Welcome(seat) => seat,
            other => panic!("turned away: {other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_quiet_makes_room_and_nobody_who_works() {
        let (registry, peer) = (registry(3, 100), "192.0.2.1".parse().unwrap());
        let mut seats = Vec::new();
        for _ in 0..3 {
            seats.push(welcome(registry.admit(peer)));
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
        }
        // The first becomes idle last.
        seats[0].pulse.begin();
        seats[2].pulse.begin();
        seats[0].pulse.end();
        let orders = |seats: &[Seat]| seats.iter().map(|seat| seat.pulse.order()).collect::<Vec<_>>();
        let fourth = welcome(registry.admit(peer));
        assert_eq!(orders(&seats), [Order::None, Order::MakeRoom, Order::None]);
        let fifth = welcome(registry.admit(peer));
        assert_eq!(orders(&seats), [Order::MakeRoom, Order::MakeRoom, Order::None]);
        for seat in [&fourth, &fifth] {
            seat.pulse.begin();
        }
        assert!(matches!(registry.admit(peer), Admission::Full));
        seats.drain(..2);
        assert!(matches!(registry.admit(peer), Admission::Full), "their places were given away before");
        drop(fifth);
        welcome(registry.admit(peer));
        drop((fourth, seats));
        registry.all_gone().await;
    }

    #[test]
    fn addresses_are_counted_but_for_those_of_many() {
        let registry = registry(100, 2);
        for (one, same, counted) in [
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true),
            ("127.0.0.1", "127.0.0.1", false),
            ("::1", "::1", false),
            ("10.1.2.3", "10.1.2.3", false),
        ] {
            let seats: Vec<_> =
                [one, same].iter().map(|peer| welcome(registry.admit(peer.parse().unwrap()))).collect();
            let third = registry.admit(one.parse().unwrap());
            assert_eq!(matches!(third, Admission::TooManyFromThere), counted, "{one}");
            drop((third, seats));
            welcome(registry.admit(one.parse().unwrap()));
        }
        welcome(registry.admit("2001:db8:0:2::1".parse().unwrap()));
        assert_eq!(registry.count(), 0);
        assert!(registry.state().by_address.is_empty());
    }
}
