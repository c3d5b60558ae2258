//! Bounds the calls to each host, so that a slow one never holds the places of others.

use std::collections::{HashMap, VecDeque};

use baton_protocol::domain::Timestamp;

use super::registry::Job;

/// After so many failures in a row, a host gets one call at a time until one of them succeeds.
const TROUBLED: u32 = 5;

/// The hosts that are being called or were not reached lately.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    hosts: HashMap<String, Endpoint>,
}

#[derive(Debug, Default)]
struct Endpoint {
    calls: usize,
    failures: u32,
    /// No call begins before; the host asked for a pause.
    paused_until: Option<Timestamp>,
    /// Jobs that wait for a place.
    queue: VecDeque<Job>,
}

/// What to do with a job.
#[derive(Debug)]
pub(super) enum Admitted {
    /// Begin.
    Now(Box<Job>),
    /// It waits for one of the host's own calls to end.
    Queued,
    /// The host is paused: not before this time.
    Paused(Box<Job>, Timestamp),
}

impl Endpoints {
    /// Admits a job that calls this host.
    pub(super) fn admit(&mut self, host: &str, job: Job, per_host: usize, now: Timestamp) -> Admitted {
        let endpoint = self.hosts.entry(host.to_owned()).or_default();
        if let Some(until) = endpoint.paused_until.filter(|until| *until > now) {
            return Admitted::Paused(Box::new(job), until);
        }
        if endpoint.calls >= endpoint.places(per_host) {
            endpoint.queue.push_back(job);
            return Admitted::Queued;
        }
        endpoint.calls += 1;
        Admitted::Now(Box::new(job))
    }

    /// A call has ended. Answers the next job of this host, if one may begin; it has its place already.
    pub(super) fn ended(
        &mut self,
        host: &str,
        call: Call,
        per_host: usize,
        now: Timestamp,
    ) -> Option<Box<Job>> {
        let endpoint = self.hosts.get_mut(host)?;
        endpoint.calls -= 1;
        match call {
            Call::Succeeded => (endpoint.failures, endpoint.paused_until) = (0, None),
            Call::Failed { pause_until } => {
                endpoint.failures = endpoint.failures.saturating_add(1);
                endpoint.paused_until = endpoint.paused_until.max(pause_until);
            }
            Call::None => {}
        }
        let paused = endpoint.paused_until.is_some_and(|until| until > now);
        // Jobs of a paused host go through one by one and are sent back by `admit`'s rule when they are taken again.
        if endpoint.calls < endpoint.places(per_host)
            && !paused
            && let Some(job) = endpoint.queue.pop_front()
        {
            endpoint.calls += 1;
            return Some(Box::new(job));
        }
        if endpoint.calls == 0 && endpoint.queue.is_empty() && endpoint.failures == 0 {
            self.hosts.remove(host);
        }
        None
    }

    /// The jobs that wait for a host that is paused, with the time until when: they wait elsewhere.
    pub(super) fn take_paused(&mut self, host: &str, now: Timestamp) -> Option<(Timestamp, VecDeque<Job>)> {
        let endpoint = self.hosts.get_mut(host)?;
        let until = endpoint.paused_until.filter(|until| *until > now)?;
        Some((until, std::mem::take(&mut endpoint.queue)))
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

impl Endpoint {
    fn places(&self, per_host: usize) -> usize {
        if self.failures >= TROUBLED { 1 } else { per_host.max(1) }
    }
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

    #[test]
    fn s14_a_slow_host_holds_its_own_places_only() {
        let mut endpoints = Endpoints::default();
        let begun: Vec<bool> =
            (0..4).map(|key| is_now(&endpoints.admit("slow", job(key), 2, at(0)))).collect();
        assert_eq!(begun, [true, true, false, false]);
        assert!(is_now(&endpoints.admit("quick", job(9), 2, at(0))));
        let next = endpoints.ended("slow", Call::Succeeded, 2, at(0)).unwrap();
        assert_eq!(next.key, TaskKey(2), "in their order");
    }

    #[test]
    fn s14_a_host_that_fails_gets_one_call_at_a_time() {
        let mut endpoints = Endpoints::default();
        for _ in 0..5 {
            assert!(is_now(&endpoints.admit("down", job(1), 4, at(0))));
            endpoints.ended("down", Call::Failed { pause_until: None }, 4, at(0));
        }
        assert!(is_now(&endpoints.admit("down", job(1), 4, at(0))));
        assert!(matches!(endpoints.admit("down", job(2), 4, at(0)), Admitted::Queued));
        assert_eq!(endpoints.ended("down", Call::Succeeded, 4, at(0)).unwrap().key, TaskKey(2));
        assert!(is_now(&endpoints.admit("down", job(3), 4, at(0))));
    }

    #[test]
    fn s14_a_host_that_asks_for_a_pause_gets_it() {
        let mut endpoints = Endpoints::default();
        assert!(is_now(&endpoints.admit("busy", job(1), 1, at(0))));
        assert!(matches!(endpoints.admit("busy", job(2), 1, at(0)), Admitted::Queued));
        let paused = Call::Failed { pause_until: Some(at(30)) };
        assert!(endpoints.ended("busy", paused, 1, at(0)).is_none());
        let (until, waiting) = endpoints.take_paused("busy", at(0)).unwrap();
        assert_eq!((until, waiting.len()), (at(30), 1));
        assert!(
            matches!(endpoints.admit("busy", job(3), 1, at(29)), Admitted::Paused(_, until) if until == at(30))
        );
        assert!(is_now(&endpoints.admit("busy", job(3), 1, at(30))));
    }

    #[test]
    fn s14_hosts_that_are_done_with_are_forgotten() {
        let mut endpoints = Endpoints::default();
        for host in 0..1000 {
            let host = host.to_string();
            assert!(is_now(&endpoints.admit(&host, job(1), 4, at(0))));
            assert!(endpoints.ended(&host, Call::Succeeded, 4, at(0)).is_none());
        }
        assert_eq!(endpoints.hosts.len(), 0);
    }
}
