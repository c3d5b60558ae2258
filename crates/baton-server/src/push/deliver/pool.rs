//! Idle connections, kept for the next attempt at the same place.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::exchange::Open;
use crate::push::target::Target;
use crate::push::target::host::Host;

/// Where a connection leads. The address is part of it, so that a connection is used only for a host that has this address
/// now, by a look-up that was just judged; the host is part of it, since the certificate was checked for this host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    address: SocketAddr,
    host: Host,
    is_https: bool,
}

impl Place {
    pub(super) fn new(target: &Target, address: SocketAddr) -> Self {
        Place { address, host: target.host().clone(), is_https: target.is_https() }
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    max: usize,
    time: Duration,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Of each place the one that was used last is at the end.
    places: HashMap<Place, Vec<(Instant, Open)>>,
    count: usize,
    /// A task closes what has been idle for too long.
    is_swept: bool,
}

impl Pool {
    pub(super) fn new(max: usize, time: Duration) -> Arc<Self> {
        Arc::new(Pool { max, time, idle: Mutex::default() })
    }

    /// A connection to one of the addresses, the one that was used last.
    pub(super) fn take(&self, target: &Target, addresses: &[SocketAddr]) -> Option<(Place, Open)> {
        let mut idle = self.lock();
        if idle.count == 0 {
            return None;
        }
        for address in addresses {
            let place = Place::new(target, *address);
            let Some(open) = idle.places.get_mut(&place) else { continue };
            let Some((since, taken)) = open.pop() else { continue };
            idle.count -= 1;
            if since.elapsed() < self.time {
                return Some((place, taken));
            }
        }
        None
    }

    /// Keeps a connection, or closes it if there are enough.
    pub(super) fn put(self: &Arc<Self>, place: Place, open: Open) {
        let mut idle = self.lock();
        if idle.count >= self.max {
            return;
        }
        idle.count += 1;
        idle.places.entry(place).or_default().push((Instant::now(), open));
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self), self.time));
        }
    }

    /// Closes what has been idle for too long; false if nothing is left.
    fn close_old(&self) -> bool {
        let mut idle = self.lock();
        idle.places.retain(|_, open| {
            open.retain(|(since, _)| since.elapsed() < self.time);
            !open.is_empty()
        });
        idle.count = idle.places.values().map(Vec::len).sum();
        idle.is_swept = idle.count > 0;
        idle.is_swept
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().count
    }
}

/// Runs while there are idle connections. Without it those that the receiver has closed would stay half open.
async fn sweep(pool: std::sync::Weak<Pool>, time: Duration) {
    loop {
        tokio::time::sleep(time).await;
        if !pool.upgrade().is_some_and(|pool| pool.close_old()) {
            return;
        }
    }
}
