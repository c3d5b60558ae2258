//! The engine: the only writer of tasks.
//!
//! A task is a log. [`Engine::send`] appends a user's message and starts a *run*, which is the task's only
//! writer until its turn ends; everything else (replies, streams, lists) reads the log. Work outlives
//! sockets: nothing here is cancelled by a dropped request.

pub mod agent;
pub mod clock;
pub mod options;
pub mod turn;

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
mod hub;
mod input;
pub(crate) mod large;
mod logic;
mod message_agent;
mod reader;
mod retention;
mod routing;
mod run;
mod runs;
mod send;
mod signal;
pub(crate) mod size;
mod stream;
pub(crate) mod stream_places;
mod stream_starts;
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
use tokio_util::task::TaskTracker;

pub use admission::{Caps, Load};
pub use cancel::Canceled;
pub use commit::{NOT_TAKEN, WatchedStore};
pub use content::{Content, NotJson};
pub use desk::Stop;
pub use health::Health;
pub use input::{File, FileContent, InputError, ReadMessage};
pub use logic::AgentLogic;
pub use send::{Accepted, Incoming, TurnRef};
pub use stream::{CloseAt, EventStream, Frame};
pub use view::View;

use crate::net::{Asker, NoRoom, SMALL, Share};
use crate::own_keys::OwnKeys;
use crate::points::{Point, reached};
use crate::store::{ReplicaId, Store, StoreError, Weighed};
use crate::telemetry::Telemetry;
use admission::Admission;
use agent::Skill;
use clock::Clock;
use health::LastCheck;
use hub::Hub;
use message_agent::InFlight;
use options::Options;
use runs::Runs;
use signal::Signal;
use stream_starts::StreamStarts;

/// A cheap handle; all clones are one engine.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: WatchedStore,
    last_check: LastCheck,
    hub: Arc<Hub>,
    /// By the `agent` of a scope.
    agents: OwnKeys<Arc<str>, AgentLogic>,
    options: ArcSwap<Options>,
    clock: Arc<dyn Clock>,
    me: ReplicaId,
    runs: Runs,
    admission: Admission,
    in_flight: InFlight,
    telemetry: Telemetry,
    /// A task could not be looked after, since the store took no writes.
    untended: Arc<Notify>,
    /// No new work.
    stopping: Signal,
    /// Streams end now.
    closing: Signal,
    stream_starts: StreamStarts,
    /// Large tasks are read one at a time: a store has few threads for it, and small reads need some of them.
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
    pub fn new(
        store: Arc<dyn Store>,
        agents: HashMap<Arc<str>, AgentLogic>,
        options: Options,
        clock: Arc<dyn Clock>,
        telemetry: Telemetry,
    ) -> Self {
        let admission = Admission::new(options.caps());
        // Half the bits: stores keep it in a signed integer.
        let me = ReplicaId(uuid::Uuid::new_v4().as_u64_pair().0 >> 1);
        let inner = Arc::new_cyclic(|inner: &Weak<Inner>| {
            let inner = inner.clone();
            Inner {
                store: WatchedStore::new(store, telemetry.clone()),
                last_check: LastCheck::default(),
                hub: Hub::new(),
                agents: agents.into_iter().collect(),
                options: ArcSwap::from_pointee(options),
                clock,
                me,
                runs: Runs::new(move |scope, id| {
                    if let Some(inner) = inner.upgrade() {
                        inner.attend(scope, id);
                    }
                }),
                admission,
                in_flight: InFlight::default(),
                telemetry,
                untended: Arc::default(),
                stopping: Signal::default(),
                closing: Signal::default(),
                stream_starts: StreamStarts::default(),
                large_reads: Semaphore::new(1),
                tracker: TaskTracker::new(),
            }
        });
        Engine { inner }
    }

    /// The bounds of now.
    pub(crate) fn options(&self) -> Guard<Arc<Options>> {
        self.inner.options()
    }

    /// For what comes from now on; turns that run keep what they started with.
    pub fn set_options(&self, options: Options) {
        let caps = options.caps();
        self.inner.options.store(Arc::new(options));
        self.set_caps(None, caps);
    }

    /// The skills of an agent, as mounted.
    pub(crate) fn skills(&self, agent: &str) -> &[Skill] {
        self.inner.agents.get(agent).map_or(&[], AgentLogic::skills)
    }

    /// The card of an agent was replaced: new tasks find their skills by what it says.
    pub(crate) fn described_by(&self, agent: &str, card: &AgentCard) {
        if let Some(agent) = self.inner.agents.get(agent) {
            agent.described_by(card);
        }
    }

    /// The store, to read: writing is the engine's alone.
    pub fn store(&self) -> &WatchedStore {
        &self.inner.store
    }

    /// What is counted about it.
    pub fn telemetry(&self) -> &Telemetry {
        &self.inner.telemetry
    }

    /// How the store has failed for good, if it has.
    pub fn failure(&self) -> Option<StoreError> {
        self.inner.store.failure()
    }

    /// Waits until the store has failed for good: nothing can be written any more, and the process should end.
    pub fn fatal(&self) -> impl Future<Output = StoreError> + Send + use<> {
        self.inner.store.fatal()
    }

    /// The time by the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Other caps from now on: an agent's, or the whole server's. What runs or waits stays. To be called within the
    /// server's runtime.
    pub fn set_caps(&self, agent: Option<&str>, caps: Caps) {
        self.inner.admission.set_caps(agent, caps);
        self.inner.admit_waiting();
    }

    /// How many turns run here, and how many tasks wait for a place.
    pub fn load(&self) -> Load {
        self.inner.admission.load()
    }

    /// The task as it is now.
    pub async fn get(&self, scope: &Scope, id: &TaskId) -> Result<View, Error> {
        self.inner.view(scope, id).await
    }

    /// The same, with room for it if it is large: then it is not read before there is some.
    pub(crate) async fn get_with_room(
        &self,
        scope: &Scope,
        id: &TaskId,
        asker: Option<&Asker>,
    ) -> Result<(View, Option<Share>), Error> {
        self.inner.view_with_room(scope, id, asker).await
    }

    /// Applies the crash rule to what an earlier process left behind, then starts the sweeper.
    pub async fn recover(&self) -> Result<(), StoreError> {
        let found = self.inner.tend_open_tasks().await?;
        if found > 0 {
            tracing::info!(tasks = found, "looked after tasks an earlier run left open");
        }
        let doubt = self.inner.clock_doubt().await?;
        self.inner.tracker.spawn(Inner::sweep_for_ever(Arc::downgrade(&self.inner), doubt));
        Ok(())
    }

    /// No new work; running turns see *shutdown* and have `drain` to end. Then streams are closed. What is
    /// still running is left to the crash rule of the next start.
    pub async fn shut_down(&self, drain: Duration) {
        let inner = &self.inner;
        inner.stopping.give();
        inner.runs.stop_all(Stop::Shutdown);
        inner.tracker.close();
        reached(Point::StopTold);
        if tokio::time::timeout(drain, inner.runs.all_gone()).await.is_err() {
            tracing::warn!(runs = inner.runs.len(), "turns still running after the drain time");
        }
        reached(Point::StopDrained);
        inner.close();
    }

    /// The end of an engine whose store has failed: no new work, no time to finish (nothing could be written),
    /// streams closed. The crash rule of the next start does the rest.
    pub fn abandon(&self) {
        let inner = &self.inner;
        inner.stopping.give();
        inner.runs.stop_all(Stop::Shutdown);
        inner.tracker.close();
        inner.close();
    }
}

impl Inner {
    /// Streams end, and whoever waits for a task gets it as it is.
    fn close(&self) {
        self.closing.give();
        self.hub.nudge_all();
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
        // Nobody closes it. What is small waits for nobody else's.
        let _turn = if bytes > SMALL { self.large_reads.acquire().await.ok() } else { None };
        Ok((self.view(scope, id).await?, Some(share)))
    }

    async fn load(&self, scope: &Scope, id: &TaskId) -> Result<Arc<Snapshot>, Error> {
        self.view(scope, id).await?.snapshot()
    }

    /// The caller's own tasks among those a message refers to; others do not exist for it.
    async fn references(&self, scope: &Scope, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        let mut tasks = Vec::new();
        for id in ids.iter().take(self.options().max_references) {
            if let Some(loaded) = self.store.load(scope, id).await? {
                tasks.push(large::fold(loaded).await?.1.task);
            }
        }
        Ok(tasks)
    }

    /// Time for the next event of a task: never before its last status, whatever the clock does.
    fn time_for(&self, snapshot: &Snapshot) -> Timestamp {
        self.clock.now().max(snapshot.task.status.timestamp)
    }
}

pub(crate) fn not_found(id: &TaskId) -> Error {
    Error::of(ErrorKind::TaskNotFound).with_info("taskId", id.as_str())
}

/// What a peer is told whose answer found no room.
pub(crate) fn no_room(no_room: NoRoom) -> Error {
    let message = "Too many large answers are waiting to be read; try again, or ask for less";
    Error::new(ErrorKind::Unavailable, message).with_retry_after(5).with_log(no_room)
}

/// What a peer is told when the store fails.
pub(crate) fn from_store(error: StoreError) -> Error {
    match error {
        // Without a cause for the log: that has it from the engine's store, once and not for each request.
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
