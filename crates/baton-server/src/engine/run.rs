//! A run executes one turn of one task, and is the task's only writer meanwhile.
//!
//! It polls the agent in its own tokio task, never inside a connection's future. All output of one poll is appended
//! together; output that arrives during an append waits for the next one.

mod output;

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use baton_protocol::domain::{ArtifactId, EventBody, Message, Scope, TaskState, TraceContext};
use baton_protocol::lifecycle::Snapshot;
use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use super::Inner;
use super::admission::Permit;
use super::agent::{Agent, AgentError, Logic, Skill};
use super::commit::{Committed, Decision, Prepared, SinceSnapshot};
use super::desk::{Desk, Offered, Pending, Stop};
use super::hub::Bell;
use super::message_agent::MessageAgentForTasks;
use super::options::Options;
use super::runs::Registration;
use super::turn::Turn;
use super::turn_span;
use crate::points::{Point, reached};
use crate::store::{EventBatch, RequestId, Settled, StoreError, StoreResult, StoredEvent, Work};
use crate::telemetry::{labels, milliseconds, trace};

/// A store that fails is tried again after a pause that doubles from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// After this many bytes, a run checks again how much its owner has stored.
const OWNER_CHECK_BYTES: usize = 1024 * 1024;

/// How many characters of a failed task's reason are logged.
const LOGGED_CHARS: usize = 200;

/// How a turn has ended.
enum End {
    /// The agent returned.
    Returned(Result<(), AgentError>),
    Panicked,
    /// The agent did not stop within its grace time and was dropped.
    Stopped,
    /// The agent produced something that is not allowed.
    Invalid(String),
    /// The task's owner has far more stored than it may; says so.
    OwnerFull(String),
}

struct Run {
    engine: Arc<Inner>,
    /// The options at the beginning of the turn.
    options: Arc<Options>,
    registration: Registration,
    desk: Arc<Desk>,
    bell: Arc<Bell>,
    snapshot: Arc<Snapshot>,
    fence: u64,
    since_snapshot: SinceSnapshot,
    /// Artifacts whose last part is text that their stream may continue.
    streamed: HashSet<ArtifactId>,
    /// Bytes of events since the last check of what the owner has stored.
    unchecked_bytes: usize,
    /// Requests that the next append settles.
    to_settle: Vec<Settled>,
    /// The highest id of the requests that have been read.
    last_request: Option<RequestId>,
    /// The client has canceled the task.
    cancel: bool,
    /// The turn is over and the task is not: waiting messages begin the next turn.
    hands_over: bool,
    /// The task is completed because its agent returned, not because the agent ended it explicitly.
    ended_by_return: bool,
    /// When an agent that was told to stop is dropped.
    grace_ends: Option<Instant>,
    deadline: Instant,
    last_output: Instant,
    last_commit: Instant,
    /// Reading requests failed: when to try again.
    retry_requests_at: Option<Instant>,
    /// Since when the store has refused writes. The agent may be waiting for it meanwhile, so `turn_idle` does not apply.
    store_failing_since: Option<Instant>,
}

/// A commit under way. It returns what it was to write, so that a failed write can be repeated.
struct PendingCommit {
    future: Pin<Box<dyn Future<Output = (Prepared, StoreResult<Committed>)> + Send>>,
    tries: u32,
}

/// What a run needs to begin.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) registration: Registration,
    pub(super) desk: Arc<Desk>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) since_snapshot: SinceSnapshot,
    pub(super) fence: u64,
    pub(super) bell: Arc<Bell>,
    pub(super) permit: Permit,
    /// The trace context of the message that began the turn.
    pub(super) origin: Option<TraceContext>,
    /// A crash interrupted an earlier attempt at the same turn.
    pub(super) is_rerun: bool,
}

impl Inner {
    /// Starts the run of a turn whose beginning has been stored.
    pub(super) async fn launch(self: &Arc<Self>, launch: Launch) {
        let Launch { registration, desk, snapshot, since_snapshot, fence, bell, permit, origin, is_rerun } =
            launch;
        let options = Guard::into_inner(self.options());
        let Some(message) = Turn::begun_by(&snapshot.task) else {
            tracing::error!(task.id = %registration.id(), "the task has no user message to start a turn with");
            return;
        };
        let references = &snapshot.task.history[message].reference_task_ids;
        let references = self.references(registration.scope(), references).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "referenced tasks could not be read");
            Vec::new()
        });
        let agent = self.agent_of(registration.scope(), &snapshot);
        let (span, context) = turn_span::of(registration.scope(), &snapshot, bell.key(), origin.as_ref());
        let turn = Turn::new(
            Arc::clone(&desk),
            registration.scope().clone(),
            message,
            Arc::clone(&snapshot),
            references,
            is_rerun.then(|| Arc::downgrade(self)),
            context,
            options.max_event_bytes,
        );
        let now = Instant::now();
        let run = Run {
            engine: Arc::clone(self),
            registration,
            desk,
            bell,
            fence,
            since_snapshot,
            snapshot,
            streamed: HashSet::new(),
            unchecked_bytes: 0,
            to_settle: Vec::new(),
            last_request: None,
            cancel: false,
            hands_over: false,
            ended_by_return: false,
            grace_ends: None,
            deadline: now + options.turn_deadline,
            last_output: now,
            last_commit: now - options.text_merge,
            options,
            retry_requests_at: None,
            store_failing_since: None,
        };
        if self.stopping.is_cancelled() {
            run.desk.stop(Stop::Shutdown);
        }
        // Boxed, since the future is large and spawning moves it several times.
        let run = Box::pin(run.drive(agent, turn, permit));
        self.tracker.spawn(run.instrument(span));
    }

    /// The event that starts the next attempt, with the skill for it.
    pub(super) fn attempt(&self, scope: &Scope, snapshot: &Snapshot) -> EventBody {
        let skill = self.skill_of(scope, snapshot).map(|skill| Arc::from(skill.card.id.as_str()));
        EventBody::AttemptStarted { attempt: snapshot.attempts + 1, skill }
    }

    pub(super) fn has_several_skills(&self, scope: &Scope) -> bool {
        self.agents.get(&scope.agent).is_some_and(|agent| agent.skills().len() > 1)
    }

    /// The skill that was chosen for the task's first message, as the log has it; `None` if the agent no longer has it.
    pub(super) fn skill_of(&self, scope: &Scope, snapshot: &Snapshot) -> Option<&Skill> {
        let agent = self.agents.get(&scope.agent)?;
        match &snapshot.skill {
            Some(id) => agent.skill(id),
            None => agent.skill_for(snapshot.task.history.first()?),
        }
    }

    /// The agent for a task, or the reason why there is none.
    pub(super) fn agent_of(&self, scope: &Scope, snapshot: &Snapshot) -> Result<Arc<dyn Agent>, String> {
        match self.skill_of(scope, snapshot).map(|skill| &skill.logic) {
            Some(Logic::Task(agent)) => Ok(Arc::clone(agent)),
            Some(Logic::Message(agent)) => Ok(Arc::new(MessageAgentForTasks(Arc::clone(agent)))),
            None => Err(self.no_skill_for(scope, snapshot)),
        }
    }

    fn no_skill_for(&self, scope: &Scope, snapshot: &Snapshot) -> String {
        match (self.agents.get(&scope.agent), &snapshot.skill, snapshot.task.history.first()) {
            (None, _, _) => format!("No matching skill: the agent `{}` is no longer there", scope.agent),
            (Some(agent), Some(skill), _) => agent.gone(skill),
            (Some(agent), None, Some(message)) => agent.nothing_fits(message),
            (Some(_), None, None) => "No matching skill: the task has no message".to_owned(),
        }
    }
}

impl Run {
    async fn drive(mut self, agent: Result<Arc<dyn Agent>, String>, turn: Turn, permit: Permit) {
        let started = Instant::now();
        let work = AssertUnwindSafe(async move {
            match agent {
                Ok(agent) => agent.run(turn).await,
                Err(reason) => Err(AgentError::new(reason)),
            }
        });
        let mut work = Box::pin(work.catch_unwind());
        let mut end: Option<End> = None;
        let mut commit: Option<PendingCommit> = None;
        let mut closed_by_end = false;
        loop {
            // Yields to other tasks from time to time, even if the agent and the store are always ready.
            tokio::task::coop::consume_budget().await;
            // Requests and timers are checked in every round: an agent that is always ready would starve their branches
            // of the `select!` below.
            if self.registration.handle.has_requests() {
                self.read_requests().await;
            }
            if self.wake_at(commit.is_none() && !closed_by_end) <= Instant::now() {
                self.check_timers(&mut end).await;
            }
            if self.unchecked_bytes >= OWNER_CHECK_BYTES && end.is_none() {
                end = self.check_owner().await;
            }
            if commit.is_none() {
                if let Some(prepared) = self.gather(&mut end, &mut closed_by_end) {
                    reached(Point::RunGathered);
                    commit = Some(self.commit(prepared, 0));
                } else if end.is_some() {
                    break;
                }
            }
            let wake = self.wake_at(commit.is_none() && !closed_by_end);
            tokio::select! {
                biased;
                result = &mut work, if end.is_none() => {
                    end = Some(match result {
                        Ok(result) => End::Returned(result),
                        Err(_panic) => End::Panicked,
                    });
                }
                (prepared, result) = commit_done(&mut commit), if commit.is_some() => {
                    let tries = commit.take().map_or(0, |done| done.tries);
                    match self.committed(prepared, tries, result) {
                        Next::Go => {}
                        Next::Again(again) => commit = Some(again),
                        Next::Leave => break,
                    }
                }
                () = self.desk.has_output.notified(), if commit.is_none() && end.is_none() => {
                    self.last_output = Instant::now();
                }
                () = self.registration.handle.woken() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
        // The desk is closed first: dropping the agent may run code that tries to produce more output.
        self.desk.close();
        drop(work);
        self.log_end(started);
        reached(Point::RunEnded);
        let Run { engine, registration, .. } = self;
        let (scope, id) = (registration.scope().clone(), registration.id().clone());
        let has_requests = registration.leave();
        drop(permit);
        // Messages that came too late for this turn begin the next one.
        if has_requests || self.hands_over || self.last_request.is_some() || self.retry_requests_at.is_some()
        {
            engine.wake_or_advance(&scope, &id);
        }
        engine.admit_waiting();
    }

    fn log_end(&self, started: Instant) {
        let took = started.elapsed();
        self.engine.telemetry.turn(took);
        let (id, state) = (self.registration.id(), labels::state_name(self.snapshot.state()));
        if trace::enabled() {
            trace::attribute(&Span::current(), "a2a.task.state", state);
        }
        let duration_ms = milliseconds(took);
        if self.snapshot.state() == TaskState::Failed {
            // The client gets the reason; operators should find it in the log.
            let text = self.snapshot.task.status.message.as_ref().map(Message::text).unwrap_or_default();
            let reason: String = text.chars().take(LOGGED_CHARS).collect();
            let agent = &*self.registration.scope().agent;
            tracing::info!(task.id = %id, agent, reason, duration_ms, "the task has failed");
        } else {
            tracing::debug!(task.id = %id, state, duration_ms, "the turn has ended");
        }
    }

    /// Turns the output on the desk, and the turn's end, into one append. `None`: nothing to write.
    fn gather(&mut self, end: &mut Option<End>, closed: &mut bool) -> Option<Prepared> {
        if *closed {
            return None;
        }
        if end.is_none() {
            match self.desk.pending() {
                Pending::None => return None,
                // Text waits for more text, at most this long: fewer events, and little delay for readers.
                Pending::GrowingText if Instant::now() < self.last_commit + self.options.text_merge => {
                    return None;
                }
                Pending::GrowingText | Pending::Other => {}
            }
        }
        let expected = self.snapshot.version;
        let outputs = self.desk.collect();
        let mut events = EventBatch::with_room_for(4.max(outputs.len() + 1));
        let mut settled = std::mem::take(&mut self.to_settle);
        for output in outputs {
            if let Err(fault) = self.write_output(output, &mut events, &mut settled) {
                if self.snapshot.state().is_terminal() {
                    tracing::warn!(task.id = %self.registration.id(), fault, "the agent went on after the task's end");
                } else {
                    *end = Some(End::Invalid(fault));
                }
                break;
            }
        }
        if let Some(end) = &*end {
            self.write_end(end, &mut events);
            *closed = true;
        }
        if self.snapshot.state().is_terminal() {
            self.desk.close();
            *closed = true;
        }
        if events.is_empty() && settled.is_empty() && !self.hands_over {
            return None;
        }
        Some(self.prepared(expected, events.finish(), settled))
    }

    fn prepared(&mut self, expected: u64, events: Vec<StoredEvent>, settled: Vec<Settled>) -> Prepared {
        let state = self.snapshot.state();
        let rests = state.is_terminal() || state.is_interrupted();
        self.unchecked_bytes += events.iter().map(|event| event.record().len()).sum::<usize>();
        let decision = Decision {
            snapshot: Arc::clone(&self.snapshot),
            since_snapshot: self.since_snapshot,
            birth: None,
            expected,
            fence: self.fence,
            events,
            work: if rests || self.hands_over { Work::Idle } else { Work::Running },
            next_fence: self.fence,
            message: None,
            webhook: None,
            settled,
            unless_message_waits: self.ended_by_return,
            bell: Some(Arc::clone(&self.bell)),
            stored: Some(Point::RunStored),
        };
        let prepared = self.engine.prepared(decision, &self.options);
        self.since_snapshot = prepared.since_snapshot;
        prepared
    }

    fn commit(&self, mut prepared: Prepared, tries: u32) -> PendingCommit {
        let (engine, scope) = (Arc::clone(&self.engine), self.registration.scope().clone());
        let future = Box::pin(async move {
            if tries > 0 {
                tokio::time::sleep(LONGEST_PAUSE.min(FIRST_PAUSE * 2u32.pow(tries.min(6) - 1))).await;
            }
            let result = engine.write(&scope, &mut prepared, tries > 0).await;
            (prepared, result)
        });
        PendingCommit { future, tries }
    }

    fn committed(&mut self, prepared: Prepared, tries: u32, result: StoreResult<Committed>) -> Next {
        match result {
            Ok(Committed::Written(written)) => {
                reached(Point::RunRung);
                self.hands_over |= self.ended_by_return && !written.snapshot.state().is_terminal();
                self.snapshot = written.snapshot;
                self.last_commit = Instant::now();
                if self.store_failing_since.take().is_some() {
                    self.last_output = self.last_commit;
                }
                Next::Go
            }
            Ok(Committed::Lost | Committed::Repeat(_)) => {
                // Another writer has the task now; conflicting changes are never merged.
                tracing::warn!(task.id = %self.registration.id(), fence = self.fence, "lost the task to another writer");
                self.bell.written_elsewhere();
                Next::Leave
            }
            Err(error) => self.again_or_leave(prepared, tries, error),
        }
    }

    /// A write failed: tries again later, or gives up. Readers are not woken for a retry; they just wait longer. When the run
    /// gives up, readers get the error, so that they do not wait for ever.
    fn again_or_leave(&mut self, failed: Prepared, tries: u32, error: StoreError) -> Next {
        let id = self.registration.id();
        let now = Instant::now();
        let since = *self.store_failing_since.get_or_insert(now);
        let may_pass = matches!(error, StoreError::Full(_) | StoreError::Unavailable(_));
        // Kept in memory until it can be written: the agent's work is worth the memory.
        if may_pass && now < self.deadline.max(since + self.options.store_patience) {
            if tries == 0 {
                tracing::warn!(task.id = %id, %error, "an append failed; it is tried again");
            }
            return Next::Again(self.commit(failed, tries + 1));
        }
        tracing::error!(task.id = %id, %error, "gave up writing a turn");
        self.bell.fail(error);
        // The sweeper applies the crash rule once the store answers again.
        Next::Leave
    }

    /// Reads new requests: offers messages to the agent, and tells it to stop if there is a cancel.
    async fn read_requests(&mut self) {
        self.registration.handle.take_wakes();
        self.retry_requests_at = None;
        let (scope, id) = (self.registration.scope(), self.registration.id());
        let pending = match self.engine.store.requests(scope, id).await {
            Ok(pending) => pending,
            Err(error) => {
                tracing::warn!(task.id = %id, %error, "requests could not be read");
                self.retry_requests_at = Some(Instant::now() + Duration::from_secs(1));
                return;
            }
        };
        for request in pending {
            if self.last_request.is_some_and(|seen| request.request <= seen) {
                continue;
            }
            self.last_request = Some(request.request);
            match request.event.decode().map(|event| event.body) {
                Ok(EventBody::UserMessage { message, trace, details }) => {
                    if let Some(context) = &trace {
                        trace::link(&Span::current(), context);
                    }
                    self.desk.offer(Offered { request: request.request, message, trace, details });
                }
                Ok(EventBody::CancelRequested { .. }) => {
                    self.cancel = true;
                    self.to_settle.push(Settled { request: request.request, event: None });
                    self.request_stop(Stop::Canceled);
                }
                Ok(_) => tracing::error!(task.id = %self.registration.id(), "a request of an unknown kind"),
                Err(error) => {
                    tracing::error!(task.id = %self.registration.id(), %error, "a request cannot be read")
                }
            }
        }
    }

    /// Ends the turn if its owner has far more stored than it may.
    async fn check_owner(&mut self) -> Option<End> {
        self.unchecked_bytes = 0;
        match self.engine.far_beyond_bytes(self.registration.scope(), 0).await {
            Ok(reason) => reason.map(End::OwnerFull),
            Err(error) => {
                // A store that fails also refuses the turn's writes, which decide what happens.
                tracing::debug!(task.id = %self.registration.id(), %error, "what the owner has stored could not be read");
                None
            }
        }
    }

    fn request_stop(&mut self, reason: Stop) {
        self.desk.stop(reason);
        self.grace_ends.get_or_insert(Instant::now() + self.options.cancel_grace);
    }

    /// How long the agent may produce no output.
    fn max_silence(&self) -> Duration {
        let options = &self.options;
        if self.snapshot.state().is_interrupted() { options.answer_wait } else { options.turn_idle }
    }

    /// When the next timer is due. `may_write`: no commit is under way, so growing text can be written when its time comes.
    fn wake_at(&self, may_write: bool) -> Instant {
        let options = &self.options;
        let mut wake = self.deadline;
        if self.store_failing_since.is_none() {
            wake = wake.min(self.last_output + self.max_silence());
        }
        if let Some(grace_ends) = self.grace_ends {
            wake = grace_ends;
        }
        if let Some(retry_requests_at) = self.retry_requests_at {
            wake = wake.min(retry_requests_at);
        }
        if may_write && self.desk.pending() == Pending::GrowingText {
            wake = wake.min(self.last_commit + options.text_merge);
        }
        wake
    }

    async fn check_timers(&mut self, end: &mut Option<End>) {
        let now = Instant::now();
        if self.retry_requests_at.is_some_and(|at| at <= now) {
            self.read_requests().await;
        }
        match self.grace_ends {
            Some(grace_ends) if grace_ends <= now => {
                if end.is_none() {
                    tracing::warn!(task.id = %self.registration.id(), "the agent did not stop in its grace time");
                    *end = Some(End::Stopped);
                }
                // Effectively switches the timer off.
                self.grace_ends = Some(now + Duration::from_secs(3600));
            }
            Some(_) => {}
            None => {
                let interrupted = self.snapshot.state().is_interrupted();
                let silent =
                    self.store_failing_since.is_none() && self.last_output + self.max_silence() <= now;
                if self.deadline <= now && !interrupted || silent {
                    self.request_stop(Stop::Deadline);
                } else if self.deadline <= now {
                    // The deadline does not count while the task waits for its client.
                    self.deadline = now + self.max_silence();
                }
            }
        }
    }
}

/// What the run does after a commit.
enum Next {
    Go,
    /// Repeat it.
    Again(PendingCommit),
    /// Give up the task.
    Leave,
}

async fn commit_done(commit: &mut Option<PendingCommit>) -> (Prepared, StoreResult<Committed>) {
    match commit {
        Some(commit) => (&mut commit.future).await,
        None => std::future::pending().await,
    }
}
