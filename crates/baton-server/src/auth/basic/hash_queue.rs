//! Which password is hashed next. A hash takes 19 MiB and tens of milliseconds, so only two run at a time, and who
//! sends many wrong passwords must not keep others waiting:
//!
//! - addresses take turns, and within an address its users do; many passwords for one user wait in the same line;
//! - in a full queue the newest job of the longest line makes room for a caller with a shorter one;
//! - a header that was verified before, by which the caller shows that it knows the password, waits in a line of its own
//!   that takes every other turn. It is as long as the list of users at most;
//! - the same header is hashed once, however many requests wait for it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The HMAC of an `Authorization` header.
pub(super) type Tag = [u8; 32];

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Right,
    Wrong,
    /// Too many wait.
    Busy,
    /// There was no memory for the hash.
    Failed,
}

/// Computes the hash and compares it.
pub(super) type Work = Box<dyn FnOnce() -> Outcome + Send>;

/// A password to check.
pub(super) struct Job {
    pub(super) tag: Tag,
    /// Where the request comes from, if the listener tells.
    pub(super) address: Option<IpAddr>,
    pub(super) user: Box<str>,
    /// Whether this header was verified before.
    pub(super) verified_before: bool,
    pub(super) work: Work,
}

/// Shared by all requests.
#[derive(Clone)]
pub(super) struct HashQueue(Arc<Shared>);

struct Shared {
    at_once: usize,
    max_waiting: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Jobs that run or wait, and who waits for each.
    pending: HashMap<Tag, watch::Sender<Option<Outcome>>>,
    verified_before: VecDeque<Job>,
    others: Lines,
    /// Whether the last turn was one of `verified_before`.
    was_verified_before: bool,
}

impl fmt::Debug for HashQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        f.debug_struct("HashQueue")
            .field("running", &state.running)
            .field("pending", &state.pending.len())
            .finish()
    }
}

impl HashQueue {
    pub(super) fn new(at_once: usize, max_waiting: usize) -> Self {
        HashQueue(Arc::new(Shared { at_once: at_once.max(1), max_waiting, state: Mutex::default() }))
    }

    /// Waits for the job's turn and runs it. If the caller goes away before, the job never runs.
    pub(super) async fn check(&self, job: Job) -> Outcome {
        let Some((mut outcome, worker)) = self.0.enter(job) else { return Outcome::Busy };
        if worker {
            let shared = Arc::clone(&self.0);
            drop(tokio::task::spawn_blocking(move || shared.work()));
        }
        // It fails only when the runtime ends, and with it all that wait.
        outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| *outcome).unwrap_or(Outcome::Failed)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` if there is no room. Else where the outcome comes from, and whether the caller starts a worker.
    fn enter(&self, job: Job) -> Option<(watch::Receiver<Option<Outcome>>, bool)> {
        let mut state = self.lock();
        if let Some(same) = state.pending.get(&job.tag) {
            return Some((same.subscribe(), false));
        }
        let (tag, (sender, receiver)) = (job.tag, watch::channel(None));
        if job.verified_before {
            state.verified_before.push_back(job);
        } else {
            if state.others.waiting >= self.max_waiting {
                state.forget_abandoned();
            }
            if state.others.waiting >= self.max_waiting {
                let removed = state.others.make_room(&job)?;
                state.end(&removed.tag, Outcome::Busy);
            }
            state.others.push(job);
        }
        state.pending.insert(tag, sender);
        let worker = state.running < self.at_once;
        state.running += usize::from(worker);
        Some((receiver, worker))
    }

    /// Runs jobs until none waits.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            let Some(job) = state.next() else {
                state.running -= 1;
                return;
            };
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(job.work)).unwrap_or(Outcome::Failed);
            self.lock().end(&job.tag, outcome);
        }
    }
}

impl State {
    fn next(&mut self) -> Option<Job> {
        loop {
            let verified_before =
                if self.was_verified_before { None } else { self.verified_before.pop_front() };
            let job =
                verified_before.or_else(|| self.others.pop()).or_else(|| self.verified_before.pop_front())?;
            self.was_verified_before = job.verified_before;
            if self.is_awaited(&job.tag) {
                return Some(job);
            }
            self.pending.remove(&job.tag);
        }
    }

    fn is_awaited(&self, tag: &Tag) -> bool {
        self.pending.get(tag).is_some_and(|waiting| waiting.receiver_count() > 0)
    }

    fn end(&mut self, tag: &Tag, outcome: Outcome) {
        if let Some(waiting) = self.pending.remove(tag) {
            waiting.send_replace(Some(outcome));
        }
    }

    /// Removes the jobs whose callers went away.
    fn forget_abandoned(&mut self) {
        let pending = &mut self.pending;
        self.others.retain(|job| {
            let awaited = pending.get(&job.tag).is_some_and(|waiting| waiting.receiver_count() > 0);
            if !awaited {
                pending.remove(&job.tag);
            }
            awaited
        });
    }
}

/// Jobs by address and user, in the order of their next turns. A line is never empty.
#[derive(Default)]
struct Lines {
    addresses: VecDeque<Address>,
    waiting: usize,
}

struct Address {
    address: Option<IpAddr>,
    users: VecDeque<VecDeque<Job>>,
}

impl Address {
    fn waiting(&self) -> usize {
        self.users.iter().map(VecDeque::len).sum()
    }

    fn place(&self, user: &str) -> Option<usize> {
        self.users.iter().position(|line| line.front().is_some_and(|job| *job.user == *user))
    }
}

impl Lines {
    fn push(&mut self, job: Job) {
        self.waiting += 1;
        let place = self.addresses.iter().position(|known| known.address == job.address);
        let Some(place) = place else {
            let address = job.address;
            self.addresses.push_back(Address { address, users: VecDeque::from([VecDeque::from([job])]) });
            return;
        };
        let address = &mut self.addresses[place];
        match address.place(&job.user) {
            Some(at) => address.users[at].push_back(job),
            None => address.users.push_back(VecDeque::from([job])),
        }
    }

    /// The job whose turn it is. Its address and its user go to the end of their lines.
    fn pop(&mut self) -> Option<Job> {
        let mut address = self.addresses.pop_front()?;
        let mut line = address.users.pop_front()?;
        let job = line.pop_front();
        if !line.is_empty() {
            address.users.push_back(line);
        }
        if !address.users.is_empty() {
            self.addresses.push_back(address);
        }
        self.waiting -= usize::from(job.is_some());
        job
    }

    /// Removes the newest job of the longest line, if that stays at least as long as that of the new job. Otherwise two
    /// callers could remove each other's jobs for ever.
    fn make_room(&mut self, new: &Job) -> Option<Job> {
        let own = self.addresses.iter().find(|known| known.address == new.address);
        let own_waiting = own.map_or(0, Address::waiting);
        let (at, longest) = longest(self.addresses.iter().map(Address::waiting))?;
        let at = if own_waiting + 1 < longest {
            at
        } else {
            // Within the own address, the users are compared in the same way.
            let own_line = own.and_then(|own| Some(own.users[own.place(&new.user)?].len())).unwrap_or(0);
            let (_, longest) = longest_line(own?)?;
            if own_line + 1 >= longest {
                return None;
            }
            self.addresses.iter().position(|known| known.address == new.address)?
        };
        let address = &mut self.addresses[at];
        let (line, _) = longest_line(address)?;
        let removed = address.users[line].pop_back();
        self.waiting -= usize::from(removed.is_some());
        self.remove_empty();
        removed
    }

    fn retain(&mut self, mut keep: impl FnMut(&Job) -> bool) {
        for line in self.addresses.iter_mut().flat_map(|address| &mut address.users) {
            line.retain(&mut keep);
        }
        self.remove_empty();
        self.waiting = self.addresses.iter().map(Address::waiting).sum();
    }

    fn remove_empty(&mut self) {
        for address in &mut self.addresses {
            address.users.retain(|line| !line.is_empty());
        }
        self.addresses.retain(|address| !address.users.is_empty());
    }
}

fn longest_line(address: &Address) -> Option<(usize, usize)> {
    longest(address.users.iter().map(VecDeque::len))
}

/// Place and length of the longest line.
fn longest(lengths: impl Iterator<Item = usize>) -> Option<(usize, usize)> {
    lengths.enumerate().max_by_key(|(_, length)| *length)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    fn ip(last: u8) -> Option<IpAddr> {
        Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
    }

    fn job(tag: u32, address: u8, user: &str) -> Job {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&tag.to_be_bytes());
        let work: Work = Box::new(|| Outcome::Wrong);
        Job { tag: bytes, address: ip(address), user: user.into(), verified_before: false, work }
    }

    fn number(job: &Job) -> u32 {
        u32::from_be_bytes(job.tag[..4].try_into().unwrap())
    }

    #[test]
    fn addresses_take_turns_and_users_within_them() {
        let mut lines = Lines::default();
        for (tag, address, user) in [
            (1, 1, "ann"),
            (2, 1, "ann"),
            (3, 1, "ann"),
            (4, 1, "bob"),
            (5, 1, "bob"),
            (6, 2, "ann"),
            (7, 2, "cid"),
            (8, 3, "ann"),
        ] {
            lines.push(job(tag, address, user));
        }
        let order: Vec<_> = std::iter::from_fn(|| lines.pop()).map(|job| number(&job)).collect();
        assert_eq!(order, [1, 6, 8, 4, 7, 2, 5, 3]);
        assert_eq!(lines.waiting, 0);
    }

    #[test]
    fn the_longest_line_makes_room() {
        let mut lines = Lines::default();
        for tag in 0..4 {
            lines.push(job(tag, 1, "ann"));
        }
        // Another address, and another user of the same one, take the place of the newest.
        let removed = lines.make_room(&job(10, 2, "ann")).unwrap();
        assert_eq!(number(&removed), 3);
        lines.push(job(10, 2, "ann"));
        let removed = lines.make_room(&job(11, 1, "bob")).unwrap();
        assert_eq!(number(&removed), 2);
        lines.push(job(11, 1, "bob"));
        assert!(lines.make_room(&job(12, 1, "ann")).is_none(), "who made the line waits no further");
        // Address 1 still has three jobs, so an address with none and one with one get in.
        assert_eq!(lines.waiting, 4);
        let removed = lines.make_room(&job(13, 2, "bob")).unwrap();
        assert_eq!(number(&removed), 1);
        lines.push(job(13, 2, "bob"));
        // Now both have two: nobody's place is taken for one who would then have the longest line.
        assert!(lines.make_room(&job(14, 1, "cid")).is_none());
        assert!(lines.make_room(&job(15, 2, "cid")).is_none());
        assert!(lines.make_room(&job(16, 3, "cid")).is_some());
    }

    /// Starts one job that holds the only worker until the sender is dropped.
    async fn busy(queue: &HashQueue) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Outcome>) {
        let (release, held) = mpsc::channel::<()>();
        let (started, starts) = tokio::sync::oneshot::channel();
        let mut first = job(u32::MAX, 9, "first");
        first.work = Box::new(move || {
            let _ = started.send(());
            let _ = held.recv();
            Outcome::Right
        });
        let queue = queue.clone();
        let running = tokio::spawn(async move { queue.check(first).await });
        starts.await.unwrap();
        (release, running)
    }

    async fn wait_for(queue: &HashQueue, pending: usize) {
        while queue.0.lock().pending.len() != pending {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_flood_does_not_keep_another_caller_out() {
        let queue = HashQueue::new(1, 8);
        let (release, running) = busy(&queue).await;
        let flood: Vec<_> = (0..100)
            .map(|tag| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.check(job(tag, 1, "ann")).await })
            })
            .collect();
        wait_for(&queue, 9).await;
        let honest = {
            let mut honest = job(1000, 2, "ann");
            honest.work = Box::new(|| Outcome::Right);
            let queue = queue.clone();
            tokio::spawn(async move { queue.check(honest).await })
        };
        // It took the place of one of the flood.
        while !queue.0.lock().pending.contains_key(&job(1000, 2, "ann").tag) {
            tokio::task::yield_now().await;
        }
        drop(release);
        assert_eq!(running.await.unwrap(), Outcome::Right);
        assert_eq!(honest.await.unwrap(), Outcome::Right);
        let mut checked = 0;
        for one in flood {
            checked += usize::from(one.await.unwrap() == Outcome::Wrong);
        }
        assert_eq!(checked, 7);
        wait_for(&queue, 0).await;
    }

    #[tokio::test]
    async fn a_header_that_was_verified_before_always_has_a_place() {
        let queue = HashQueue::new(1, 2);
        let (release, running) = busy(&queue).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let start = |tag: u32, verified_before: bool| {
            let mut next = job(tag, tag as u8, "ann");
            next.verified_before = verified_before;
            let order = Arc::clone(&order);
            next.work = Box::new(move || {
                order.lock().unwrap().push(tag);
                Outcome::Right
            });
            let queue = queue.clone();
            tokio::spawn(async move { queue.check(next).await })
        };
        let mut all = Vec::new();
        for (tag, verified_before) in [(1, false), (2, false), (3, true), (4, true), (5, true)] {
            all.push(start(tag, verified_before));
            wait_for(&queue, 1 + all.len()).await;
        }
        assert_eq!(start(6, false).await.unwrap(), Outcome::Busy);
        drop(release);
        running.await.unwrap();
        for one in all {
            assert_eq!(one.await.unwrap(), Outcome::Right);
        }
        assert_eq!(*order.lock().unwrap(), [3, 1, 4, 2, 5]);
    }

    #[tokio::test]
    async fn the_same_header_is_hashed_once_and_abandoned_ones_never() {
        let queue = HashQueue::new(1, 4);
        let (release, running) = busy(&queue).await;
        let hashed = Arc::new(AtomicUsize::new(0));
        let start = |tag: u32| {
            let mut next = job(tag, 1, "ann");
            let hashed = Arc::clone(&hashed);
            next.work = Box::new(move || {
                hashed.fetch_add(1, Ordering::Relaxed);
                Outcome::Right
            });
            let queue = queue.clone();
            tokio::spawn(async move { queue.check(next).await })
        };
        let same: Vec<_> = (0..20).map(|_| start(1)).collect();
        let mut abandoned = Vec::new();
        for tag in 2..5 {
            abandoned.push(start(tag));
        }
        wait_for(&queue, 5).await;
        for one in &abandoned {
            one.abort();
        }
        for one in abandoned {
            assert!(one.await.is_err());
        }
        // The queue was full; those who went away left room.
        let after = start(6);
        wait_for(&queue, 3).await;
        drop(release);
        running.await.unwrap();
        for one in same {
            assert_eq!(one.await.unwrap(), Outcome::Right);
        }
        assert_eq!(after.await.unwrap(), Outcome::Right);
        assert_eq!(hashed.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn no_more_than_the_limit_run_at_a_time_and_a_panic_frees_its_place() {
        let queue = HashQueue::new(2, 64);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let all: Vec<_> = (0..40)
            .map(|tag| {
                let mut next = job(tag, tag as u8, "ann");
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                next.work = Box::new(move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                    assert_ne!(tag % 7, 3, "one that panics");
                    Outcome::Wrong
                });
                let queue = queue.clone();
                tokio::spawn(async move { (tag, queue.check(next).await) })
            })
            .collect();
        for one in all {
            let (tag, outcome) = one.await.unwrap();
            assert_eq!(outcome, if tag % 7 == 3 { Outcome::Failed } else { Outcome::Wrong });
        }
        assert!(most.load(Ordering::SeqCst) <= 2);
        while queue.0.lock().running > 0 {
            tokio::task::yield_now().await;
        }
    }
}
