//! Bounds the calls to each host and for each owner, so that slow receivers never hold the places of others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use baton_protocol::domain::Timestamp;

use super::options::PushOptions;
use super::registry::Job;
use super::schedule::MAX_PAUSE;

/// After so many failures in a row, a host gets one call at a time until one of them succeeds.
const TROUBLED: u32 = 5;

/// So many hosts are known before those that have nothing under way are forgotten.
const MANY_HOSTS: usize = 4096;

/// The hosts and owners whose calls are under way, and the jobs that wait for one of these calls to end.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    bounds: Bounds,
    hosts: HashMap<String, Endpoint>,
    owners: HashMap<Arc<str>, Owner>,
    /// Jobs that waited and may be able to begin now.
    again: VecDeque<Job>,
    /// Hosts are looked through when there are so many.
    forget_at: usize,
}

/// Most calls at the same time.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    per_host: usize,
    /// Hosts that hang can have as many names as somebody wants, so an owner leaves some places to others.
    per_owner: usize,
    /// Longest pause, in milliseconds.
    longest_pause: i64,
}

/// A host, whatever the port: else a host with many ports would get many calls. It may have the receivers of many owners.
#[derive(Debug, Default)]
struct Endpoint {
    calls: usize,
    failures: u32,
    /// No call begins before; the host asked for a pause.
    paused_until: Option<Timestamp>,
    /// Jobs that wait for a place, by owner. None of the queues is empty.
    queues: HashMap<Arc<str>, VecDeque<Job>>,
    /// The owners of `queues`: whose turn is next.
    turns: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct Owner {
    calls: usize,
    /// Jobs that wait for a place.
    queue: VecDeque<Job>,
}

/// What to do with a job.
#[derive(Debug)]
pub(super) enum Admitted {
    /// Begin.
    Now(Box<Job>),
    /// It waits for a call to the same host, or of the same owner, to end.
    Queued,
    /// The host is paused: not before this time.
    Paused(Box<Job>, Timestamp),
}

impl Endpoints {
    pub(super) fn new(options: &PushOptions) -> Self {
        let bounds = Bounds {
            per_host: options.per_host.max(1),
            per_owner: (options.at_once - options.at_once / 4).max(1),
            longest_pause: MAX_PAUSE.mul_f64(options.pace.max(1.0)).as_millis() as i64,
        };
        Endpoints { bounds, forget_at: MANY_HOSTS, ..Endpoints::default() }
    }

    /// A job that waited here; it has to be admitted again.
    pub(super) fn next(&mut self) -> Option<Job> {
        self.again.pop_front()
    }

    /// Admits a job that calls this host.
    pub(super) fn admit(&mut self, host: &str, job: Job, now: Timestamp) -> Admitted {
        self.forget_idle_hosts(now);
        let endpoint = self.hosts.entry(host.to_owned()).or_default();
        if let Some(until) = endpoint.pause(now, self.bounds) {
            // It may have waited for its owner's place, which goes to the next one.
            if let Some(owner) = self.owners.get_mut(&job.scope.owner) {
                owner.release(self.bounds, &mut self.again);
                self.forget_idle_owner(&job.scope.owner);
            }
            return Admitted::Paused(Box::new(job), until);
        }
        let name = Arc::clone(&job.scope.owner);
        let owner = self.owners.entry(Arc::clone(&name)).or_default();
        if owner.calls >= self.bounds.per_owner {
            owner.queue.push_back(job);
            // It leaves its turn at the host to the next one.
            endpoint.release(self.bounds, &mut self.again);
            return Admitted::Queued;
        }
        if endpoint.calls >= endpoint.places(self.bounds) {
            endpoint.queue(job);
            owner.release(self.bounds, &mut self.again);
            self.forget_idle_owner(&name);
            return Admitted::Queued;
        }
        endpoint.calls += 1;
        owner.calls += 1;
        Admitted::Now(Box::new(job))
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, host: &str, owner: &Arc<str>, call: Call, now: Timestamp) {
        if let Some(of_owner) = self.owners.get_mut(owner) {
            of_owner.calls -= 1;
            of_owner.release(self.bounds, &mut self.again);
            self.forget_idle_owner(owner);
        }
        let Some(endpoint) = self.hosts.get_mut(host) else { return };
        endpoint.calls -= 1;
        match call {
            // A call that began before the pause says nothing about it.
            Call::Succeeded => endpoint.failures = 0,
            Call::Failed { pause_until } => {
                endpoint.failures = endpoint.failures.saturating_add(1);
                endpoint.paused_until = endpoint.paused_until.max(pause_until);
            }
            Call::None => {}
        }
        let is_paused = endpoint.pause(now, self.bounds).is_some();
        if !is_paused {
            endpoint.release(self.bounds, &mut self.again);
        }
        if endpoint.is_idle() && endpoint.failures == 0 && !is_paused {
            self.hosts.remove(host);
        }
    }

    fn forget_idle_owner(&mut self, name: &Arc<str>) {
        if self.owners.get(name).is_some_and(|owner| owner.calls == 0 && owner.queue.is_empty()) {
            self.owners.remove(name);
        }
    }

    /// Hosts that failed are remembered for their failures. There can be as many as callers have names for.
    fn forget_idle_hosts(&mut self, now: Timestamp) {
        if self.hosts.len() < self.forget_at {
            return;
        }
        let bounds = self.bounds;
        self.hosts.retain(|_, host| !host.is_idle() || host.pause(now, bounds).is_some());
        self.forget_at = MANY_HOSTS.max(2 * self.hosts.len());
    }

    /// The jobs that wait for a host that is paused, with the time until when: they wait elsewhere.
    pub(super) fn take_paused(&mut self, host: &str, now: Timestamp) -> Option<(Timestamp, VecDeque<Job>)> {
        let endpoint = self.hosts.get_mut(host)?;
        let until = endpoint.pause(now, self.bounds)?;
        endpoint.turns.clear();
        Some((until, endpoint.queues.drain().flat_map(|(_, jobs)| jobs).collect()))
    }
}

impl Endpoint {
    fn places(&self, bounds: Bounds) -> usize {
        if self.failures >= TROUBLED { 1 } else { bounds.per_host }
    }

    /// Until when no call begins. A longer pause than any is from a clock that was wrong.
    fn pause(&self, now: Timestamp, bounds: Bounds) -> Option<Timestamp> {
        self.paused_until.filter(|until| *until > now && *until <= now.plus_millis(bounds.longest_pause))
    }

    fn is_idle(&self) -> bool {
        self.calls == 0 && self.turns.is_empty()
    }

    fn queue(&mut self, job: Job) {
        let owner = &job.scope.owner;
        if !self.queues.contains_key(owner) {
            self.turns.push_back(Arc::clone(owner));
        }
        self.queues.entry(Arc::clone(owner)).or_default().push_back(job);
    }

    /// Lets as many jobs try again as there are places. Owners take turns, so that one with many jobs delays another by one
    /// of them at most.
    fn release(&mut self, bounds: Bounds, again: &mut VecDeque<Job>) {
        for _ in self.calls..self.places(bounds) {
            let Some(owner) = self.turns.pop_front() else { return };
            let Some(queue) = self.queues.get_mut(&owner) else { return };
            again.extend(queue.pop_front());
            if queue.is_empty() {
                self.queues.remove(&owner);
            } else {
                self.turns.push_back(owner);
            }
        }
    }
}

impl Owner {
    fn release(&mut self, bounds: Bounds, again: &mut VecDeque<Job>) {
        let free = bounds.per_owner.saturating_sub(self.calls).min(self.queue.len());
        again.extend(self.queue.drain(..free));
    }
}

/// How the calls of a job went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Succeeded,
    Failed {
        /// The host asked to be left alone.
        pause_until: Option<Timestamp>,
    },
    /// There was nothing to send.
    None,
}

#[cfg(test)]
mod tests {
    use baton_protocol::domain::{PushConfigId, Scope, TaskId};
    use bytes::Bytes;

    use super::*;
    use crate::store::{StoredWebhook, TaskKey, WebhookCursor};

    fn job(key: u64) -> Job {
        Job {
            key: TaskKey(key),
            scope: Scope::new("a", "", "o"),
            task: TaskId::parse("t").unwrap(),
            webhook: StoredWebhook {
                id: PushConfigId::parse("w").unwrap(),
                record: Bytes::new(),
                cursor: WebhookCursor::after(0),
            },
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn is_now(admitted: &Admitted) -> bool {
        matches!(admitted, Admitted::Now(_))
    }

    /// Two calls for each host, six for each owner.
    fn endpoints() -> Endpoints {
        Endpoints::new(&PushOptions { per_host: 2, at_once: 8, ..PushOptions::default() })
    }

    impl Endpoints {
        fn begins(&mut self, host: &str, job: Job) -> bool {
            is_now(&self.admit(host, job, at(0)))
        }

        fn end(&mut self, host: &str, call: Call) {
            self.ended(host, &Arc::from("o"), call, at(0));
        }
    }

    #[test]
    fn s14_a_slow_host_holds_its_own_places_only() {
        let mut endpoints = endpoints();
        let begun: Vec<bool> = (0..4).map(|key| endpoints.begins("slow", job(key))).collect();
        assert_eq!(begun, [true, true, false, false]);
        assert!(endpoints.begins("quick", job(9)));
        endpoints.end("slow", Call::Succeeded);
        let next = endpoints.next().unwrap();
        assert_eq!((next.key, endpoints.next().is_none()), (TaskKey(2), true), "in their order, one for one");
        assert!(endpoints.begins("slow", next));
    }

    /// Receivers of many owners may be behind one host.
    #[test]
    fn s14_owners_take_turns_at_a_host() {
        let mut endpoints = endpoints();
        for key in 0..10 {
            endpoints.admit("shared", job(key), at(0));
        }
        let other = Job { scope: Scope::new("a", "", "other"), ..job(99) };
        assert!(!endpoints.begins("shared", other));
        let mut next = || {
            endpoints.end("shared", Call::Succeeded);
            let next = endpoints.next().unwrap();
            assert!(endpoints.begins("shared", next.clone()));
            next.key
        };
        assert_eq!([next(), next(), next()], [TaskKey(2), TaskKey(99), TaskKey(3)]);
    }

    #[test]
    fn s14_an_owner_of_many_slow_hosts_leaves_places_to_others() {
        let mut endpoints = endpoints();
        let begun = (0..20).filter(|key| endpoints.begins(&format!("slow-{key}"), job(*key))).count();
        assert_eq!(begun, 6, "of eight");
        let other = || Job { scope: Scope::new("a", "", "other"), ..job(99) };
        assert!(endpoints.begins("slow-7", other()), "the jobs that wait hold no place of their hosts");
        endpoints.end("slow-0", Call::Failed { pause_until: None });
        let next = endpoints.next().unwrap();
        assert_eq!(next.key, TaskKey(6));
        assert!(endpoints.begins("slow-6", next) && endpoints.next().is_none());
    }

    /// Whoever waits for an owner's place leaves the turn at its host to the next, and the other way round.
    #[test]
    fn s14_no_place_stays_empty_while_a_job_waits_for_it() {
        let other = |key| Job { scope: Scope::new("a", "", "other"), ..job(key) };
        let mut endpoints = endpoints();
        for key in 0..2 {
            assert!(endpoints.begins("shared", other(key)));
        }
        for host in 0..5 {
            assert!(endpoints.begins(&format!("own-{host}"), job(10)));
        }
        // Both wait for the host; then the owner of the first has no place left.
        assert!(!endpoints.begins("shared", job(20)) && !endpoints.begins("shared", other(21)));
        assert!(endpoints.begins("own-6", job(10)));
        endpoints.ended("shared", &Arc::from("other"), Call::Succeeded, at(0));
        let first = endpoints.next().unwrap();
        assert!(!endpoints.begins("shared", first));
        let second = endpoints.next().unwrap();
        assert_eq!(second.key, TaskKey(21));
        assert!(endpoints.begins("shared", second));
        // A place of the owner's, but none at the host: the next job of the owner has it.
        assert!(!endpoints.begins("own-7", job(30)));
        endpoints.end("own-6", Call::Succeeded);
        let first = endpoints.next().unwrap();
        assert_eq!(first.key, TaskKey(20));
        assert!(!endpoints.begins("shared", first));
        let second = endpoints.next().unwrap();
        assert!(second.key == TaskKey(30) && endpoints.begins("own-7", second));
    }

    #[test]
    fn s14_a_host_that_fails_gets_one_call_at_a_time() {
        let mut endpoints = endpoints();
        for _ in 0..5 {
            assert!(endpoints.begins("down", job(1)));
            endpoints.end("down", Call::Failed { pause_until: None });
        }
        assert!(endpoints.begins("down", job(1)));
        assert!(!endpoints.begins("down", job(2)));
        endpoints.end("down", Call::Succeeded);
        let next = endpoints.next().unwrap();
        assert!(next.key == TaskKey(2) && endpoints.begins("down", next) && endpoints.begins("down", job(3)));
    }

    #[test]
    fn s14_a_host_that_asks_for_a_pause_gets_it() {
        let mut endpoints = Endpoints::new(&PushOptions { per_host: 1, ..PushOptions::default() });
        assert!(endpoints.begins("busy", job(1)));
        assert!(!endpoints.begins("busy", job(2)));
        endpoints.end("busy", Call::Failed { pause_until: Some(at(30)) });
        assert!(endpoints.next().is_none());
        let (until, waiting) = endpoints.take_paused("busy", at(0)).unwrap();
        assert_eq!((until, waiting.len()), (at(30), 1));
        let refused = endpoints.admit("busy", job(3), at(29));
        assert!(matches!(refused, Admitted::Paused(_, until) if until == at(30)));
        assert!(is_now(&endpoints.admit("busy", job(3), at(30))));
        // The place of an owner that has only one goes from a job whose host is paused to the next job.
        let mut endpoints = Endpoints::new(&PushOptions { at_once: 1, ..PushOptions::default() });
        assert!(endpoints.begins("busy", job(1)));
        assert!(!endpoints.begins("busy", job(2)) && !endpoints.begins("free", job(3)));
        endpoints.end("busy", Call::Failed { pause_until: Some(at(30)) });
        let next = endpoints.next().unwrap();
        assert!(matches!(endpoints.admit("busy", next, at(0)), Admitted::Paused(..)));
        let next = endpoints.next().unwrap();
        assert!(next.key == TaskKey(3) && endpoints.begins("free", next));
        // Those who only wait for a host, or for its pause to end, are no owners of calls.
        let other = || Job { scope: Scope::new("a", "", "other"), ..job(9) };
        assert!(matches!(endpoints.admit("busy", other(), at(0)), Admitted::Paused(..)));
        endpoints.hosts.entry("full".to_owned()).or_default().calls = 9;
        assert!(matches!(endpoints.admit("full", other(), at(0)), Admitted::Queued));
        endpoints.end("free", Call::Succeeded);
        assert!(endpoints.owners.is_empty(), "{:?}", endpoints.owners);
    }

    /// A call that had begun before says nothing about it, even if it was the last one there.
    #[test]
    fn s14_a_pause_outlasts_the_calls_that_were_under_way() {
        let mut endpoints = endpoints();
        assert!(endpoints.begins("busy", job(1)) && endpoints.begins("busy", job(2)));
        endpoints.end("busy", Call::Failed { pause_until: Some(at(30)) });
        endpoints.end("busy", Call::Succeeded);
        let refused = endpoints.admit("busy", job(3), at(29));
        assert!(matches!(refused, Admitted::Paused(_, until) if until == at(30)), "{refused:?}");
        assert!(is_now(&endpoints.admit("busy", job(3), at(30))));
    }

    /// The clock was years ahead when the host asked for it.
    #[test]
    fn s14_no_host_is_paused_by_a_clock_that_was_wrong() {
        let mut endpoints = endpoints();
        assert!(endpoints.begins("busy", job(1)));
        endpoints.end("busy", Call::Failed { pause_until: Some(at(1_000_000_000)) });
        assert!(is_now(&endpoints.admit("busy", job(2), at(0))));
    }

    #[test]
    fn s14_hosts_and_owners_that_are_done_with_are_forgotten() {
        let mut endpoints = endpoints();
        for host in 0..1000 {
            let host = host.to_string();
            assert!(endpoints.begins(&host, job(1)));
            endpoints.end(&host, Call::Succeeded);
        }
        assert!(endpoints.hosts.is_empty() && endpoints.owners.is_empty() && endpoints.next().is_none());
        // Those that fail are remembered for a while.
        for host in 0..3 * MANY_HOSTS {
            let host = host.to_string();
            assert!(endpoints.begins(&host, job(1)));
            endpoints.end(&host, Call::Failed { pause_until: None });
        }
        assert!(endpoints.hosts.len() <= MANY_HOSTS, "{}", endpoints.hosts.len());
    }
}
