//! The server's metrics, and its part in distributed traces.
//!
//! Counting must cost a request next to nothing: every counter is an atomic that exists from the start and is found by the
//! indexes of small enums. There are no globals: each server has its own metrics, also if there are two in one process.
//!
//! | file | holds |
//! |---|---|
//! | `labels` | the values of the metrics' labels |
//! | `requests`, `histogram` | the counters |
//! | `exposition`, `process` | the metrics as text, made at a scrape |
//! | `callers` | pseudonyms of callers, for the log |
//! | `trace` | trace contexts of requests, tasks and turns |

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
pub(crate) use exposition::{CurrentValues, Format};

use crate::store::{Append, StoreError};
use histogram::{APPEND_BOUNDS, Histogram, REQUEST_BOUNDS, TURN_BOUNDS};
use labels::{Binding, Limited, Outcome, RequestKind, WebhookCall};
use requests::Requests;

/// Who may read `/metrics` on the agents' port. The metrics hold numbers only, but name every agent and show how busy the
/// server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsAccess {
    /// Nobody. A separate listener for metrics is not affected.
    Off,
    /// Requests from this machine that did not come through a proxy.
    #[default]
    Loopback,
    /// Whoever can reach the server.
    Everyone,
}

/// A cheap handle on a server's metrics; clones share the same counters.
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
    /// By agent. The first entry, with an empty name, counts requests that belong to no agent.
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
    limited: [AtomicU64; Limited::ALL.len()],
    webhook_calls: [AtomicU64; WebhookCall::ALL.len()],
}

/// A histogram for each binding and operation.
#[derive(Debug)]
struct ByRequest(Box<[Histogram]>);

impl ByRequest {
    fn new() -> Self {
        ByRequest(
            (0..Binding::ALL.len() * RequestKind::COUNT).map(|_| Histogram::new(REQUEST_BOUNDS)).collect(),
        )
    }

    fn of(&self, binding: Binding, kind: RequestKind) -> &Histogram {
        &self.0[binding as usize * RequestKind::COUNT + kind.index()]
    }
}

/// An agent's index in the metrics; looked up once, when the server is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentIndex(usize);

impl AgentIndex {
    /// No agent was found.
    pub(crate) const NONE: AgentIndex = AgentIndex(0);
}

/// The labels of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLabels {
    pub(crate) agent: AgentIndex,
    pub(crate) binding: Binding,
    pub(crate) generation: Option<Generation>,
    pub(crate) kind: RequestKind,
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
            limited: Default::default(),
            webhook_calls: Default::default(),
        };
        Telemetry { inner: Arc::new(inner) }
    }

    /// Whether every request is logged, not only those that could not be served.
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

    /// Counts a request that was answered, or whose client disconnected before.
    pub(crate) fn request(&self, labels: RequestLabels, took: Duration) {
        let RequestLabels { agent, binding, generation, kind, outcome } = labels;
        self.inner.requests[agent.0].1.count(binding, generation, kind, outcome);
        self.inner.request_time.of(binding, kind).observe_time(took);
    }

    /// Counts a request that is answered with a stream. Its duration says nothing about the server, so the time to the first
    /// event is measured instead.
    pub(crate) fn stream(&self, labels: RequestLabels) -> OpenStream {
        let RequestLabels { agent, binding, generation, kind, outcome } = labels;
        self.inner.requests[agent.0].1.count(binding, generation, kind, outcome);
        self.inner.streams_open.fetch_add(1, Relaxed);
        OpenStream { telemetry: self.clone(), binding, kind, events: 0 }
    }

    pub(crate) fn replayed(&self) {
        self.inner.replays.fetch_add(1, Relaxed);
    }

    pub(crate) fn turn(&self, took: Duration) {
        self.inner.turn_time.observe_time(took);
    }

    /// Counts an accepted connection. It counts as open until the returned guard is dropped.
    pub fn connection(&self) -> OpenConnection {
        self.connection_opened();
        OpenConnection { telemetry: self.clone() }
    }

    pub(crate) fn connection_opened(&self) {
        self.inner.connections.fetch_add(1, Relaxed);
        self.inner.connections_open.fetch_add(1, Relaxed);
    }

    pub(crate) fn connection_closed(&self) {
        self.inner.connections_open.fetch_sub(1, Relaxed);
    }

    /// Counts a request or a connection that the network layer answered itself, before it reached an agent.
    pub(crate) fn refused(&self, status: u16) {
        // Statuses below 400 are not refusals, for example the answer to a preflight.
        if let Some(count) = status.checked_sub(400).and_then(|at| self.inner.refused.get(usize::from(at))) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Counts a call that was refused because its caller is at one of its own limits.
    pub(crate) fn limited(&self, limit: Limited) {
        self.inner.limited[limit as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn webhook_called(&self, call: WebhookCall) {
        self.inner.webhook_calls[call as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn appending(&self, took: Duration) {
        self.inner.append_time.observe_time(took);
    }

    /// Counts the tasks that a successful append created or ended.
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

/// Milliseconds for the log, rounded to microseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Whether an append creates or ends a task; noted before the append is moved into the store.
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

/// Counts an open stream and its events.
#[derive(Debug)]
pub(crate) struct OpenStream {
    telemetry: Telemetry,
    binding: Binding,
    kind: RequestKind,
    events: u64,
}

impl OpenStream {
    /// `since` is when the request came in.
    pub(crate) fn event(&mut self, since: std::time::Instant) {
        let numbers = &self.telemetry.inner;
        if self.events == 0 {
            numbers.first_event_time.of(self.binding, self.kind).observe_time(since.elapsed());
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

/// Counts an open connection. See [`Telemetry::connection`].
#[derive(Debug)]
#[must_use = "the connection counts as closed when this is dropped"]
pub struct OpenConnection {
    telemetry: Telemetry,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.telemetry.connection_closed();
    }
}
