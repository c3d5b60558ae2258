//! The engine: the only writer of tasks.
//!
//! A task is a log. [`Engine::send`] appends a user's message and starts a *run*, which is the task's only writer until
//! its turn ends; everything else (replies, streams, lists) reads the log. Dropping a request's future never cancels work
//! on a task.
//!
//! A task *rests* when it has ended, or is interrupted: it waits for input or authorization from its client.

pub(crate) mod agent;
pub(crate) mod caller;
pub(crate) mod clock;
pub(crate) mod options;
pub(crate) mod turn;

mod admission;
mod begin_turn;
mod cancel;
mod commit;
mod content;
pub(crate) mod content_limits;
mod crash;
mod cut_off;
mod desk;
mod detach;
mod follow_up;
mod health;
mod holder;
mod hub;
mod input;
pub(crate) mod large;
mod message_agent;
mod owner_usage;
mod reader;
mod retention;
mod run;
mod runs;
mod send;
pub(crate) mod size;
mod stream;
pub(crate) mod stream_slots;
mod stream_starts;
#[cfg(test)]
mod tests;
mod turn_span;
mod view;
mod wait;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use baton_protocol::domain::{AgentCard, Scope, Task, TaskId, Timestamp};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::{Error, ErrorKind};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use admission::Caps;
pub use admission::Load;
pub(crate) use cancel::Canceled;
pub use commit::NOT_TAKEN;
pub(crate) use commit::WatchedStore;
pub use content::{Content, NotJson};
pub use desk::Stop;
pub use health::Health;
pub use input::{File, FileContent, InputError, ReadMessage};
pub use retention::Swept;
pub(crate) use send::{Accepted, Incoming, InlineWebhook};
pub(crate) use stream::{CloseAt, EventStream, Frame};
pub(crate) use view::View;

use crate::net::{Asker, NoRoom, SMALL, Share};
use crate::points::{Point, reached};
use crate::push::registry::Registry;
use crate::routing::AgentLogic;
use crate::store::{ReplicaId, Store, StoreError, Weighed};
use crate::telemetry::Telemetry;
use crate::telemetry::labels::Limited;
use admission::{Admission, Full};
use agent::Skill;
use clock::Clock;
use health::LastCheck;
use holder::Processes;
use hub::{Hub, TailLimits};
use message_agent::InFlight;
use options::Options;
use owner_usage::OwnerUsages;
use runs::Runs;
use stream_starts::StreamStarts;

/// A cheap handle; clones share one engine.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: WatchedStore,
    last_check: LastCheck,
    hub: Arc<Hub>,
    /// By the `agent` of a scope.
    agents: HashMap<Arc<str>, AgentLogic>,
    options: ArcSwap<Options>,
    clock: Arc<dyn Clock>,
    processes: Processes,
    runs: Runs,
    admission: Admission,
    owner_usages: OwnerUsages,
    in_flight: InFlight,
    /// Webhooks that are called when their tasks change.
    webhooks: Arc<Registry>,
    telemetry: Telemetry,
    /// A task could not be advanced, since the store took no writes; wakes the sweeper.
    advance_failed: Arc<Notify>,
    /// Shutdown has begun: no new work is taken.
    stopping: CancellationToken,
    /// The last step of the shutdown: streams end now.
    closing: CancellationToken,
    stream_starts: StreamStarts,
    /// Large tasks are read one at a time: a store has few threads for reading, and small reads need some of them.
    large_reads: Semaphore,
    tracker: TaskTracker,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("agents", &self.agents)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine for these agents, by the `agent` of their scopes.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        agents: HashMap<Arc<str>, AgentLogic>,
        options: Options,
        clock: Arc<dyn Clock>,
        telemetry: Telemetry,
    ) -> Self {
        let admission = Admission::new(options.caps(), options.owners.caps());
        let tail = TailLimits { events: options.tail_events, bytes: options.tail_bytes };
        // Shifted by one bit: stores keep it in a signed 64-bit integer.
        let me = ReplicaId(uuid::Uuid::new_v4().as_u64_pair().0 >> 1);
        let inner = Arc::new_cyclic(|inner: &Weak<Inner>| {
            let inner = inner.clone();
            Inner {
                store: WatchedStore::new(store, telemetry.clone()),
                last_check: LastCheck::default(),
                hub: Hub::new(tail),
                agents: agents.into_iter().collect(),
                options: ArcSwap::from_pointee(options),
                clock,
                processes: Processes::new(me),
                runs: Runs::new(move |scope, id| {
                    if let Some(inner) = inner.upgrade() {
                        inner.wake_or_advance(scope, id);
                    }
                }),
                admission,
                owner_usages: OwnerUsages::default(),
                in_flight: InFlight::default(),
                webhooks: Arc::default(),
                telemetry,
                advance_failed: Arc::default(),
                stopping: CancellationToken::new(),
                closing: CancellationToken::new(),
                stream_starts: StreamStarts::default(),
                large_reads: Semaphore::new(1),
                tracker: TaskTracker::new(),
            }
        });
        Engine { inner }
    }

    /// The current options.
    pub(crate) fn options(&self) -> Guard<Arc<Options>> {
        self.inner.options()
    }

    /// Changes the options; running turns keep those they started with.
    pub(crate) fn set_options(&self, options: Options) {
        let caps = options.caps();
        self.inner.admission.set_each(options.owners.caps());
        self.inner.options.store(Arc::new(options));
        self.set_caps(None, caps);
    }

    /// The skills of an agent, as mounted.
    pub(crate) fn skills(&self, agent: &str) -> &[Skill] {
        self.inner.agents.get(agent).map_or(&[], AgentLogic::skills)
    }

    /// The card of an agent was replaced: skills for new tasks are chosen by the new card.
    pub(crate) fn card_replaced(&self, agent: &str, card: &AgentCard) {
        if let Some(agent) = self.inner.agents.get(agent) {
            agent.card_replaced(card);
        }
    }

    /// The store, for reading. Its methods that write are visible in the engine only.
    pub(crate) fn store(&self) -> &WatchedStore {
        &self.inner.store
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.inner.telemetry
    }

    /// The open webhooks; every append rings them.
    pub(crate) fn webhooks(&self) -> &Arc<Registry> {
        &self.inner.webhooks
    }

    /// Cancelled when the shutdown begins.
    #[cfg(feature = "grpc")]
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.inner.stopping
    }

    /// Canceled once streams have to end: after the drain time of a server that stops.
    #[cfg(feature = "grpc")]
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.inner.closing
    }

    /// The error with which the store has failed for good, if it has.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.inner.store.failure()
    }

    /// Waits until the store has failed for good: nothing can be written any more, and the process should end.
    pub(crate) fn fatal(&self) -> impl Future<Output = StoreError> + Send + use<> {
        self.inner.store.fatal()
    }

    /// The time by the engine's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Changes the caps of an agent, or of the whole server. Running and queued tasks stay. Must be called within the
    /// server's runtime.
    pub(crate) fn set_caps(&self, agent: Option<&str>, caps: Caps) {
        self.inner.admission.set_caps(agent, caps);
        self.inner.admit_waiting();
    }

    /// How many turns are running, and how many tasks are queued.
    pub(crate) fn load(&self) -> Load {
        self.inner.admission.load()
    }

    /// The task as it is now.
    pub(crate) async fn get(&self, scope: &Scope, id: &TaskId) -> Result<View, Error> {
        self.inner.view(scope, id).await
    }

    /// The task as it is now, with its share of the room for answers. A large task is not read before there is room for
    /// it.
    pub(crate) async fn get_with_room(
        &self,
        scope: &Scope,
        id: &TaskId,
        asker: Option<&Asker>,
    ) -> Result<(View, Option<Share>), Error> {
        self.inner.view_with_room(scope, id, asker).await
    }

    /// Recovers the open tasks of earlier processes (see `crash.rs`), then starts the sweeper.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        let found = self.inner.advance_open_tasks().await?;
        if found > 0 {
            tracing::info!(tasks = found, "recovered open tasks");
        }
        let doubt = self.inner.clock_doubt().await?;
        self.inner.tracker.spawn(Inner::sweep_for_ever(Arc::downgrade(&self.inner), doubt));
        Ok(())
    }

    /// Shuts down: no new work is taken, running turns get [`Stop::Shutdown`] and have `drain` to end, then streams are
    /// closed. Turns that are still running are recovered at the next start.
    pub(crate) async fn shut_down(&self, drain: Duration) {
        let inner = &self.inner;
        inner.stopping.cancel();
        inner.runs.stop_all(Stop::Shutdown);
        inner.tracker.close();
        reached(Point::StopTold);
        if tokio::time::timeout(drain, inner.runs.all_gone()).await.is_err() {
            tracing::warn!(runs = inner.runs.len(), "turns still running after the drain time");
        }
        reached(Point::StopDrained);
        inner.close();
    }

    /// Shuts down after the store has failed for good. Turns get no time to end, since nothing they write could be stored;
    /// they are recovered at the next start.
    pub(crate) fn abandon(&self) {
        let inner = &self.inner;
        inner.stopping.cancel();
        inner.runs.stop_all(Stop::Shutdown);
        inner.tracker.close();
        inner.close();
    }
}

impl Inner {
    /// Ends all streams; requests that wait for a task are answered with the task as it is.
    fn close(&self) {
        self.closing.cancel();
        self.hub.wake_all();
    }

    fn options(&self) -> Guard<Arc<Options>> {
        self.options.load()
    }

    async fn view(&self, scope: &Scope, id: &TaskId) -> Result<View, Error> {
        match self.store.load(scope, id).await.map_err(from_store)? {
            Some(loaded) => large::view(loaded).await.map_err(from_store),
            None => Err(not_found(id)),
        }
    }

    async fn view_with_room(
        &self,
        scope: &Scope,
        id: &TaskId,
        asker: Option<&Asker>,
    ) -> Result<(View, Option<Share>), Error> {
        let Some(asker) = asker else { return Ok((self.view(scope, id).await?, None)) };
        let bytes = match self.store.load_within(scope, id, SMALL).await.map_err(from_store)? {
            Some(Weighed::Light(loaded)) => {
                let view = View::of(&loaded).map_err(from_store)?;
                if let Some(share) = asker.try_enter(view.bytes()) {
                    return Ok((view, Some(share)));
                }
                view.bytes()
            }
            Some(Weighed::Heavy(bytes)) => bytes,
            None => return Err(not_found(id)),
        };
        let share = asker.enter(bytes).await.map_err(no_room)?;
        // The semaphore is never closed. Small tasks do not wait here.
        let _turn = if bytes > SMALL { self.large_reads.acquire().await.ok() } else { None };
        Ok((self.view(scope, id).await?, Some(share)))
    }

    async fn load(&self, scope: &Scope, id: &TaskId) -> Result<Arc<Snapshot>, Error> {
        self.view(scope, id).await?.snapshot()
    }

    /// The tasks that a message refers to, as far as they are the caller's own.
    async fn references(&self, scope: &Scope, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        let mut tasks = Vec::new();
        if ids.is_empty() {
            return Ok(tasks);
        }
        for id in ids.iter().take(self.options().max_references) {
            if let Some(loaded) = self.store.load(scope, id).await? {
                tasks.push(large::fold(loaded).await?.1.task);
            }
        }
        Ok(tasks)
    }

    /// The error for a client whose turn gets no slot.
    fn full(&self, full: Full) -> Error {
        if let Full::Caller(_) = full {
            self.telemetry.limited(Limited::Tasks);
        }
        full.into()
    }

    /// The time for the next event of a task: never before its last status, even if the clock was set back.
    fn time_for(&self, snapshot: &Snapshot) -> Timestamp {
        self.clock.now().max(snapshot.task.status.timestamp)
    }
}

pub(crate) fn not_found(id: &TaskId) -> Error {
    Error::of(ErrorKind::TaskNotFound).with_info("taskId", id.as_str())
}

/// The error for a client whose answer got no room in time.
pub(crate) fn no_room(no_room: NoRoom) -> Error {
    let message = "Too many large answers are waiting to be read; try again, or ask for less";
    Error::new(ErrorKind::ResourceExhausted, message).with_retry_after(5).with_log(no_room)
}

/// The error for a client when the store fails.
pub(crate) fn from_store(error: StoreError) -> Error {
    match error {
        // No cause for the request's log line: `WatchedStore` logs a full store once, not for each request.
        StoreError::Full(_) => {
            let message = "The server has no room left to store this; what is stored can be read";
            return Error::new(ErrorKind::ResourceExhausted, message).with_retry_after(5);
        }
        StoreError::Unavailable(_) | StoreError::Fatal(_) => {
            Error::of(ErrorKind::Unavailable).with_retry_after(1)
        }
        StoreError::Damaged(_) => Error::of(ErrorKind::Internal),
    }
    .with_log(error)
}
