//! A run: one turn of one task, and the task's only writer while it lasts.
//!
//! The agent is polled here, in a task of its own, never inside a connection's future. Whatever it says in
//! one poll is appended together; what it says while an append is under way waits for the next one.

mod said;

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
use super::desk::{Desk, Lying, Offered, Stop};
use super::hub::Bell;
use super::message_agent::AnswersInTasks;
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

/// How much of a failed task's reason the log holds.
const LOGGED_CHARS: usize = 200;

/// How a turn came to its end, once it did.
enum End {
    /// The agent returned.
    Returned(Result<(), AgentError>),
    Panicked,
    /// Left behind after the grace time.
    Stopped,
    /// The agent broke the protocol.
    Invalid(String),
}

struct Run {
    engine: Arc<Inner>,
    /// As they were when the turn began.
    options: Arc<Options>,
    registration: Registration,
    desk: Arc<Desk>,
    bell: Arc<Bell>,
    snapshot: Arc<Snapshot>,
    fence: u64,
    since_snapshot: SinceSnapshot,
    /// Artifacts whose last part is text that its stream may go on with.
    streamed: HashSet<ArtifactId>,
    /// Requests seen: those settled by the next append, and the highest id offered so far.
    to_settle: Vec<Settled>,
    seen: Option<RequestId>,
    /// The client wants the task canceled.
    cancel: bool,
    /// The turn is over, the task is not: messages wait for the next turn.
    hands_over: bool,
    /// The task ends because its agent returned, not because it said so.
    ends_unsaid: bool,
    /// When the agent, told to stop, is left behind.
    grace_ends: Option<Instant>,
    deadline: Instant,
    last_said: Instant,
    last_commit: Instant,
    look_again: Option<Instant>,
    /// Since when the store takes nothing. The agent may have to wait for it, so it cannot be blamed for silence.
    stuck_since: Option<Instant>,
}

/// A commit under way. It gives back what it was to write, so that it can be tried again.
struct UnderWay {
    future: Pin<Box<dyn Future<Output = (Prepared, StoreResult<Committed>)> + Send>>,
    tries: u32,
}

impl Inner {
    /// Starts the turn that the snapshot has just recorded as started. `origin` is the trace of the message that
    /// started it.
    #[allow(clippy::too_many_arguments, reason = "all of it is moved into the one task that owns the turn")]
    pub(super) async fn launch(
        self: &Arc<Self>,
        registration: Registration,
        desk: Arc<Desk>,
        snapshot: Arc<Snapshot>,
        since_snapshot: SinceSnapshot,
        fence: u64,
        bell: Arc<Bell>,
        permit: Permit,
        origin: Option<TraceContext>,
        is_rerun: bool,
    ) {
        let options = Guard::into_inner(self.options());
        let Some(message) = Turn::begun_by(&snapshot.task) else {
            tracing::error!(task.id = %registration.id(), "a turn without a user's message");
            return;
        };
        let references = &snapshot.task.history[message].reference_task_ids;
        let references = if references.is_empty() {
            Vec::new()
        } else {
            let found = self.references(registration.scope(), references).await;
            found.unwrap_or_else(|error| {
                tracing::warn!(%error, "referenced tasks could not be read");
                Vec::new()
            })
        };
        let agent = self.agent_of(registration.scope(), &snapshot);
        let (span, place) = turn_span::of(registration.scope(), &snapshot, bell.key(), origin.as_ref());
        let turn = Turn::new(
            Arc::clone(&desk),
            registration.scope().clone(),
            message,
            Arc::clone(&snapshot),
            references,
            is_rerun.then(|| Arc::downgrade(self)),
            place,
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
            to_settle: Vec::new(),
            seen: None,
            cancel: false,
            hands_over: false,
            ends_unsaid: false,
            grace_ends: None,
            deadline: now + options.turn_deadline,
            last_said: now,
            last_commit: now - options.text_merge,
            options,
            look_again: None,
            stuck_since: None,
        };
        if self.stopping.is_given() {
            run.desk.stop(Stop::Shutdown);
        }
        // Boxed here, since the future is large and spawning moves it several times.
        let run = Box::pin(run.drive(agent, turn, permit));
        if span.is_disabled() {
            self.tracker.spawn(run);
        } else {
            self.tracker.spawn(run.instrument(span));
        }
    }

    /// The next attempt at a task, with the skill that is to do it.
    pub(super) fn attempt(&self, scope: &Scope, snapshot: &Snapshot) -> EventBody {
        let skill = self.skill_of(scope, snapshot).map(|skill| Arc::from(skill.card.id.as_str()));
        EventBody::AttemptStarted { attempt: snapshot.attempts + 1, skill }
    }

    /// The skill of a task is the one its first message chose, as its log has it; `None` when it is no longer served.
    pub(super) fn skill_of(&self, scope: &Scope, snapshot: &Snapshot) -> Option<&Skill> {
        let agent = self.agents.get(&scope.agent)?;
        match &snapshot.skill {
            Some(id) => agent.skill(id),
            None => agent.skill_for(snapshot.task.history.first()?),
        }
    }

    /// Who works on a task, or why nobody can.
    pub(super) fn agent_of(&self, scope: &Scope, snapshot: &Snapshot) -> Result<Arc<dyn Agent>, String> {
        match self.skill_of(scope, snapshot).map(|skill| &skill.logic) {
            Some(Logic::Task(agent)) => Ok(Arc::clone(agent)),
            Some(Logic::Message(agent)) => Ok(Arc::new(AnswersInTasks(Arc::clone(agent)))),
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
        let mut commit: Option<UnderWay> = None;
        let mut closed_by_end = false;
        loop {
            // An agent that never pauses, on a store that answers at once, must leave the thread to others too.
            tokio::task::coop::consume_budget().await;
            // Asked every time round: below, an agent that never pauses would keep both waiting for ever.
            if self.registration.handle.is_rung() {
                self.look_at_requests().await;
            }
            if self.wake_at(commit.is_none() && !closed_by_end) <= Instant::now() {
                self.time_passed(&mut end).await;
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
                (prepared, result) = under_way(&mut commit), if commit.is_some() => {
                    let tries = commit.take().map_or(0, |done| done.tries);
                    match self.committed(prepared, tries, result) {
                        Next::Go => {}
                        Next::Again(again) => commit = Some(again),
                        Next::Leave => break,
                    }
                }
                () = self.desk.said.notified(), if commit.is_none() && end.is_none() => {
                    self.last_said = Instant::now();
                }
                () = self.registration.handle.rung.notified() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
        // The agent first: its drop may still lay things on the desk, which is closed by now.
        self.desk.close();
        drop(work);
        self.tell_end(started);
        reached(Point::RunEnded);
        let Run { engine, registration, .. } = self;
        let (scope, id) = (registration.scope().clone(), registration.id().clone());
        let rung = registration.leave();
        drop(permit);
        // Messages that came too late for this turn start the next one.
        if rung || self.hands_over || self.seen.is_some() || self.look_again.is_some() {
            engine.attend(&scope, &id);
        }
        engine.admit_waiting();
    }

    fn tell_end(&self, started: Instant) {
        let took = started.elapsed();
        self.engine.telemetry.turn(took);
        let (id, state) = (self.registration.id(), labels::state_name(self.snapshot.state()));
        if trace::wanted() {
            trace::attribute(&Span::current(), "a2a.task.state", state);
        }
        let duration_ms = milliseconds(took);
        if self.snapshot.state() == TaskState::Failed {
            // The client reads the reason; whoever looks after the agent should not have to ask it.
            let said = self.snapshot.task.status.message.as_ref().map(Message::text).unwrap_or_default();
            let reason: String = said.chars().take(LOGGED_CHARS).collect();
            let agent = &*self.registration.scope().agent;
            tracing::info!(task.id = %id, agent, reason, duration_ms, "the task has failed");
        } else {
            tracing::debug!(task.id = %id, state, duration_ms, "the turn has ended");
        }
    }

    /// Turns what lies on the desk, and the turn's end, into one append. `None`: nothing to write.
    fn gather(&mut self, end: &mut Option<End>, closed: &mut bool) -> Option<Prepared> {
        if *closed {
            return None;
        }
        if end.is_none() {
            match self.desk.lying() {
                Lying::Nothing => return None,
                // Let text grow a little: fewer events, and no reader is kept waiting longer than this.
                Lying::GrowingText if Instant::now() < self.last_commit + self.options.text_merge => {
                    return None;
                }
                Lying::GrowingText | Lying::Something => {}
            }
        }
        let expected = self.snapshot.version;
        let said = self.desk.collect();
        let mut events = EventBatch::with_room_for(4.max(said.len() + 1));
        let mut settled = std::mem::take(&mut self.to_settle);
        for said in said {
            if let Err(fault) = self.take_down(said, &mut events, &mut settled) {
                if self.snapshot.state().is_terminal() {
                    tracing::warn!(task.id = %self.registration.id(), fault, "the agent went on after the task's end");
                } else {
                    *end = Some(End::Invalid(fault));
                }
                break;
            }
        }
        if let Some(end) = &*end {
            self.take_end(end, &mut events);
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
            settled,
            may_go_on: self.ends_unsaid,
            bell: Some(Arc::clone(&self.bell)),
            stored: Some(Point::RunStored),
        };
        let prepared = self.engine.prepared(decision, &self.options);
        self.since_snapshot = prepared.since_snapshot;
        prepared
    }

    fn commit(&self, mut prepared: Prepared, tries: u32) -> UnderWay {
        let (engine, scope) = (Arc::clone(&self.engine), self.registration.scope().clone());
        let future = Box::pin(async move {
            if tries > 0 {
                tokio::time::sleep(LONGEST_PAUSE.min(FIRST_PAUSE * 2u32.pow(tries.min(6) - 1))).await;
            }
            let result = engine.write(&scope, &mut prepared, tries > 0).await;
            (prepared, result)
        });
        UnderWay { future, tries }
    }

    fn committed(&mut self, prepared: Prepared, tries: u32, result: StoreResult<Committed>) -> Next {
        match result {
            Ok(Committed::Written(written)) => {
                reached(Point::RunRung);
                self.hands_over |= self.ends_unsaid && !written.snapshot.state().is_terminal();
                self.snapshot = written.snapshot;
                self.last_commit = Instant::now();
                if self.stuck_since.take().is_some() {
                    self.last_said = self.last_commit;
                }
                Next::Go
            }
            Ok(Committed::Lost | Committed::Repeat(_)) => {
                // Somebody else holds the task now: a lost race is never merged.
                tracing::warn!(task.id = %self.registration.id(), fence = self.fence, "lost the task to another writer");
                self.bell.doubt();
                Next::Leave
            }
            Err(error) => self.again_or_leave(prepared, tries, error),
        }
    }

    /// Nothing was written, so nobody has to be told: readers wait a little longer, and a reader that must answer
    /// shows the task as it is. Only when the run gives up they must not hang on it.
    fn again_or_leave(&mut self, failed: Prepared, tries: u32, error: StoreError) -> Next {
        let id = self.registration.id();
        let now = Instant::now();
        let since = *self.stuck_since.get_or_insert(now);
        let may_pass = matches!(error, StoreError::Full(_) | StoreError::Unavailable(_));
        // What the agent has done is worth more than the memory it takes.
        if may_pass && now < self.deadline.max(since + self.options.store_patience) {
            if tries == 0 {
                tracing::warn!(task.id = %id, %error, "an append failed; it is tried again");
            }
            return Next::Again(self.commit(failed, tries + 1));
        }
        tracing::error!(task.id = %id, %error, "gave up writing a turn");
        self.bell.trouble(error);
        // The sweeper applies the crash rule once the store answers again.
        Next::Leave
    }

    /// Somebody noted a request: hand messages to the agent, and tell it of a cancel.
    async fn look_at_requests(&mut self) {
        self.registration.handle.take_ring();
        self.look_again = None;
        let (scope, id) = (self.registration.scope(), self.registration.id());
        let pending = match self.engine.store.requests(scope, id).await {
            Ok(pending) => pending,
            Err(error) => {
                tracing::warn!(task.id = %id, %error, "requests could not be read");
                self.look_again = Some(Instant::now() + Duration::from_secs(1));
                return;
            }
        };
        for request in pending {
            if self.seen.is_some_and(|seen| request.request <= seen) {
                continue;
            }
            self.seen = Some(request.request);
            match request.event.decode().map(|event| event.body) {
                Ok(EventBody::UserMessage { message, trace, details }) => {
                    if let Some(place) = &trace {
                        trace::link(&Span::current(), place);
                    }
                    self.desk.offer(Offered { request: request.request, message, trace, details });
                }
                Ok(EventBody::CancelRequested { .. }) => {
                    self.cancel = true;
                    self.to_settle.push(Settled { request: request.request, event: None });
                    self.tell_to_stop(Stop::Canceled);
                }
                Ok(_) => tracing::error!(task.id = %self.registration.id(), "a request of an unknown kind"),
                Err(error) => {
                    tracing::error!(task.id = %self.registration.id(), %error, "a request cannot be read")
                }
            }
        }
    }

    fn tell_to_stop(&mut self, reason: Stop) {
        self.desk.stop(reason);
        self.grace_ends.get_or_insert(Instant::now() + self.options.cancel_grace);
    }

    /// How long the agent may say nothing.
    fn quiet(&self) -> Duration {
        let options = &self.options;
        if self.snapshot.state().is_interrupted() { options.answer_wait } else { options.turn_idle }
    }

    /// When to look at the clock. Text that grows is waited for only while it could be written.
    fn wake_at(&self, may_write: bool) -> Instant {
        let options = &self.options;
        let mut wake = self.deadline;
        if self.stuck_since.is_none() {
            wake = wake.min(self.last_said + self.quiet());
        }
        if let Some(grace_ends) = self.grace_ends {
            wake = grace_ends;
        }
        if let Some(look_again) = self.look_again {
            wake = wake.min(look_again);
        }
        if may_write && self.desk.lying() == Lying::GrowingText {
            wake = wake.min(self.last_commit + options.text_merge);
        }
        wake
    }

    async fn time_passed(&mut self, end: &mut Option<End>) {
        let now = Instant::now();
        if self.look_again.is_some_and(|at| at <= now) {
            self.look_at_requests().await;
        }
        match self.grace_ends {
            Some(grace_ends) if grace_ends <= now => {
                if end.is_none() {
                    tracing::warn!(task.id = %self.registration.id(), "the agent did not stop in its grace time");
                    *end = Some(End::Stopped);
                }
                // Nothing is left to wait for.
                self.grace_ends = Some(now + Duration::from_secs(3600));
            }
            Some(_) => {}
            None => {
                let interrupted = self.snapshot.state().is_interrupted();
                let silent = self.stuck_since.is_none() && self.last_said + self.quiet() <= now;
                if self.deadline <= now && !interrupted || silent {
                    self.tell_to_stop(Stop::Deadline);
                } else if self.deadline <= now {
                    // The clock stands still while the client thinks.
                    self.deadline = now + self.quiet();
                }
            }
        }
    }
}

enum Next {
    Go,
    Again(UnderWay),
    Leave,
}

async fn under_way(commit: &mut Option<UnderWay>) -> (Prepared, StoreResult<Committed>) {
    match commit {
        Some(commit) => (&mut commit.future).await,
        None => std::future::pending().await,
    }
}
