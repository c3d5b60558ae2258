//! What the server counts about itself, and the traces its work is part of.
//!
//! Counting must cost a request next to nothing: every number is an atomic that is there from the start, found by the
//! indexes of small enums. There is no global: a server owns its numbers, and two servers in one process have two
//! sets.
//!
//! | file | holds |
//! |---|---|
//! | `labels` | what numbers are told apart by |
//! | `requests`, `histogram` | the numbers |
//! | `exposition`, `process` | the numbers as text, at a scrape |
//! | `callers` | who called, without a name |
//! | `trace` | places in traces: a request's, a task's, a turn's |

mod callers;
mod exposition;
pub(crate) mod histogram;
pub(crate) mod labels;
mod process;
mod requests;
pub(crate) mod trace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use baton_protocol::Generation;
use baton_protocol::domain::{EventKind, TaskState};

pub(crate) use callers::Callers;
pub(crate) use exposition::{Format, Moment};

use crate::store::{Append, StoreError};
use histogram::{APPEND_BOUNDS, Histogram, REQUEST_BOUNDS, TURN_BOUNDS};
use labels::{Asked, Binding, Outcome};
use requests::Requests;

/// Who may read `/metrics` where agents are served. They hold numbers only, but tell of every agent and of how busy the
/// server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MetricsAccess {
    /// Nobody; a listener of its own is not concerned.
    Off,
    /// Whoever asks from this machine, and not through a proxy on it.
    #[default]
    Loopback,
    /// Whoever can reach the server.
    Everyone,
}

/// A cheap handle; all clones count together.
#[derive(Debug, Clone)]
pub struct Telemetry {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    started: SystemTime,
    log_requests: AtomicBool,
    metrics: MetricsAccess,
    callers: Callers,
    /// By agent; requests that found none are counted under the first, whose name is empty.
    requests: Vec<(Arc<str>, Requests)>,
    request_time: ByRequest,
    first_event_time: ByRequest,
    replays: AtomicU64,
    streams_open: AtomicI64,
    stream_events: AtomicU64,
    streams_broken: Box<[AtomicU64]>,
    tasks_created: AtomicU64,
    tasks_ended: [AtomicU64; TaskState::ALL.len()],
    turn_time: Histogram,
    connections_open: AtomicI64,
    connections: AtomicU64,
    /// By status, from 400 on.
    refused: [AtomicU64; 200],
    append_time: Histogram,
    store_errors: [AtomicU64; labels::STORE_ERRORS.len()],
}

/// A histogram for each binding and operation.
#[derive(Debug)]
struct ByRequest(Box<[Histogram]>);

impl ByRequest {
    fn new() -> Self {
        ByRequest((0..Binding::ALL.len() * Asked::COUNT).map(|_| Histogram::new(REQUEST_BOUNDS)).collect())
    }

    fn of(&self, binding: Binding, asked: Asked) -> &Histogram {
        &self.0[binding as usize * Asked::COUNT + asked.index()]
    }
}

/// Names one agent's requests. Found once, when the server is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentIndex(usize);

impl AgentIndex {
    /// No agent was found.
    pub(crate) const NONE: AgentIndex = AgentIndex(0);
}

/// What a request turned out to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) agent: AgentIndex,
    pub(crate) binding: Binding,
    pub(crate) generation: Option<Generation>,
    pub(crate) asked: Asked,
    pub(crate) outcome: Outcome,
}

impl Telemetry {
    pub(crate) fn new<'a>(
        agents: impl IntoIterator<Item = &'a Arc<str>>,
        callers: Callers,
        metrics: MetricsAccess,
        log_requests: bool,
    ) -> Self {
        let names = std::iter::once(Arc::from("")).chain(agents.into_iter().cloned());
        let requests = names.map(|agent| (agent, Requests::new())).collect();
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let inner = Inner {
            started: SystemTime::now(),
            log_requests: log_requests.into(),
            metrics,
            callers,
            requests,
            request_time: ByRequest::new(),
            first_event_time: ByRequest::new(),
            replays: 0.into(),
            streams_open: 0.into(),
            stream_events: 0.into(),
            streams_broken: zeros(Outcome::count()),
            tasks_created: 0.into(),
            tasks_ended: Default::default(),
            turn_time: Histogram::new(TURN_BOUNDS),
            connections_open: 0.into(),
            connections: 0.into(),
            refused: [const { AtomicU64::new(0) }; 200],
            append_time: Histogram::new(APPEND_BOUNDS),
            store_errors: Default::default(),
        };
        Telemetry { inner: Arc::new(inner) }
    }

    /// Whether every request leaves a line in the log, not only those that could not be answered.
    pub fn log_requests(&self, wanted: bool) {
        self.inner.log_requests.store(wanted, Relaxed);
    }

    pub(crate) fn logs_requests(&self) -> bool {
        self.inner.log_requests.load(Relaxed)
    }

    pub(crate) fn metrics_access(&self) -> MetricsAccess {
        self.inner.metrics
    }

    pub(crate) fn callers(&self) -> &Callers {
        &self.inner.callers
    }

    pub(crate) fn agent_name(&self, agent: AgentIndex) -> &str {
        &self.inner.requests[agent.0].0
    }

    pub(crate) fn agent(&self, id: &str) -> AgentIndex {
        AgentIndex(self.inner.requests.iter().position(|(agent, _)| **agent == *id).unwrap_or_default())
    }

    /// A request was answered, or could not be any more.
    pub(crate) fn request(&self, told: Told, took: Duration) {
        let Told { agent, binding, generation, asked, outcome } = told;
        self.inner.requests[agent.0].1.count(binding, generation, asked, outcome);
        self.inner.request_time.of(binding, asked).observe_time(took);
    }

    /// A request was answered with a stream; how long that one takes says nothing, its first event does.
    pub(crate) fn stream(&self, told: Told) -> OpenStream {
        let Told { agent, binding, generation, asked, outcome } = told;
        self.inner.requests[agent.0].1.count(binding, generation, asked, outcome);
        self.inner.streams_open.fetch_add(1, Relaxed);
        OpenStream { telemetry: self.clone(), binding, asked, events: 0 }
    }

    pub(crate) fn replayed(&self) {
        self.inner.replays.fetch_add(1, Relaxed);
    }

    pub(crate) fn turn(&self, took: Duration) {
        self.inner.turn_time.observe_time(took);
    }

    /// A connection was accepted; it is open as long as the guard is held.
    pub fn connection(&self) -> OpenConnection {
        self.inner.connections.fetch_add(1, Relaxed);
        self.inner.connections_open.fetch_add(1, Relaxed);
        OpenConnection { telemetry: self.clone() }
    }

    /// A request or a connection was sent away before it came to an agent.
    pub(crate) fn refused(&self, status: u16) {
        // An answer that is no refusal, such as a browser's preflight, is not counted.
        if let Some(count) = status.checked_sub(400).and_then(|at| self.inner.refused.get(usize::from(at))) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn appending(&self, took: Duration) {
        self.inner.append_time.observe_time(took);
    }

    /// What an append that was written did to tasks.
    pub(crate) fn written(&self, written: &Written) {
        if written.created {
            self.inner.tasks_created.fetch_add(1, Relaxed);
        }
        if let Some(state) = written.ended {
            self.inner.tasks_ended[state as usize].fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn store_failed(&self, error: &StoreError) {
        self.inner.store_errors[labels::store_error_index(error)].fetch_add(1, Relaxed);
    }
}

/// For the log: finer than a microsecond means nothing.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// What there is to count about an append, taken before the store gets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    created: bool,
    ended: Option<TaskState>,
}

impl Written {
    pub(crate) fn of(append: &Append) -> Self {
        let ended = append.events.iter().find_map(|event| match event.kind {
            EventKind::Status(state) if state.is_terminal() => Some(state),
            _ => None,
        });
        Written { created: append.birth.is_some(), ended }
    }
}

/// A stream under way.
#[derive(Debug)]
pub(crate) struct OpenStream {
    telemetry: Telemetry,
    binding: Binding,
    asked: Asked,
    events: u64,
}

impl OpenStream {
    /// `since` is when it was asked for.
    pub(crate) fn event(&mut self, since: std::time::Instant) {
        let numbers = &self.telemetry.inner;
        if self.events == 0 {
            numbers.first_event_time.of(self.binding, self.asked).observe_time(since.elapsed());
        }
        self.events += 1;
        numbers.stream_events.fetch_add(1, Relaxed);
    }

    pub(crate) fn broke(&self, outcome: Outcome) {
        self.telemetry.inner.streams_broken[outcome.index()].fetch_add(1, Relaxed);
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.telemetry.inner.streams_open.fetch_sub(1, Relaxed);
    }
}

/// A connection that is open. See [`Telemetry::connection`].
#[derive(Debug)]
#[must_use = "the connection counts as closed when this is dropped"]
pub struct OpenConnection {
    telemetry: Telemetry,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.telemetry.inner.connections_open.fetch_sub(1, Relaxed);
    }
}
