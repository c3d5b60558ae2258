//! The desk between an agent and its run: what the agent says lies here until the run writes it, and what
//! the client sends meanwhile lies here until the agent takes it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{ArtifactId, ArtifactUpdate, EventBody, Message, SendDetails, TraceContext};
use baton_protocol::wire::v1;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::store::RequestId;

/// Why a turn should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The client asked for it.
    Canceled,
    /// The server is going down; there is a little time to finish or to leave things tidy.
    Shutdown,
    /// The turn took too long, or was silent for too long.
    Deadline,
    /// The task is no longer this run's: ended, taken over, or not writable.
    Over,
}

/// Something the agent said and the run has not written yet.
#[derive(Debug)]
pub(crate) enum Said {
    Event(EventBody),
    /// An artifact as it was before an attempt that was cut off.
    PutBack(ArtifactUpdate),
    /// Streamed text: merged with what follows as long as it lies here.
    Text(TextChunk),
    /// The agent took a message that was waiting: it enters the log here.
    Took(Offered),
}

/// A message that came while the turn was running.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) request: RequestId,
    pub(crate) message: Message,
    /// What it was sent in and with.
    pub(crate) trace: Option<TraceContext>,
    pub(crate) details: SendDetails,
}

#[derive(Debug)]
pub(crate) struct TextChunk {
    pub(crate) artifact: ArtifactId,
    pub(crate) name: Option<String>,
    pub(crate) text: String,
    pub(crate) append: bool,
    /// Goes on with the artifact's last text, whoever wrote it.
    pub(crate) joins: bool,
    pub(crate) last: bool,
}

#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<State>,
    /// Rung for the run.
    pub(crate) said: Notify,
    /// Rung for the agent: room on the desk, a message, or the end.
    pub(crate) changed: Notify,
    pub(crate) stop: CancellationToken,
    /// Bytes that may lie here before the agent has to wait.
    room: usize,
}

#[derive(Debug, Default)]
struct State {
    said: Vec<Said>,
    bytes: usize,
    inbox: VecDeque<Offered>,
    /// What the messages that the agent took were sent with, by what they say: several may have one id.
    sent_with: Vec<(u64, SendDetails)>,
    stop: Option<Stop>,
    /// Nothing more is taken from the agent.
    closed: bool,
}

impl Desk {
    pub(crate) fn new(room: usize) -> Self {
        Desk {
            state: Mutex::default(),
            said: Notify::new(),
            changed: Notify::new(),
            stop: CancellationToken::new(),
            room,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The agent's side.

    /// Lays something down; `false` when the desk is closed.
    pub(crate) fn say(&self, said: Said, bytes: usize) -> bool {
        {
            let mut state = self.state();
            if state.closed {
                return false;
            }
            state.bytes += bytes;
            match (said, state.said.last_mut()) {
                (Said::Text(new), Some(Said::Text(lying)))
                    if new.append && lying.artifact == new.artifact && !lying.last =>
                {
                    lying.text.push_str(&new.text);
                    lying.last = new.last;
                    lying.name = new.name.or(lying.name.take());
                }
                (said, _) => state.said.push(said),
            }
        }
        self.said.notify_one();
        true
    }

    /// Waits while too much lies on the desk.
    pub(crate) async fn room(&self) {
        self.until(|state| (state.bytes < self.room || state.closed).then_some(())).await;
    }

    /// The oldest waiting message, laid into what was said at this point.
    pub(crate) fn take_message(&self, then: Option<EventBody>) -> Option<Message> {
        let message = {
            let mut state = self.state();
            if state.closed {
                return None;
            }
            let offered = state.inbox.pop_front()?;
            let message = offered.message.clone();
            state.sent_with.push((digest(&message), offered.details.clone()));
            state.said.push(Said::Took(offered));
            state.said.extend(then.map(Said::Event));
            message
        };
        self.said.notify_one();
        Some(message)
    }

    /// What a message that was taken was sent with.
    pub(crate) fn sent_with(&self, message: &Message) -> Option<SendDetails> {
        let message = digest(message);
        let state = self.state();
        let sent = state.sent_with.iter().rev().find(|(taken, _)| *taken == message);
        sent.map(|(_, details)| details.clone())
    }

    /// Waits for a message, or the end of the turn.
    pub(crate) async fn message_or_stop(&self) {
        self.until(|state| (!state.inbox.is_empty() || state.closed || state.stop.is_some()).then_some(()))
            .await;
    }

    async fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        // As a rule nobody has to wait.
        if let Some(found) = look(&self.state()) {
            return found;
        }
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = look(&self.state()) {
                return found;
            }
            changed.await;
        }
    }

    pub(crate) fn stop_reason(&self) -> Option<Stop> {
        self.state().stop
    }

    // The run's side.

    /// Everything said so far.
    pub(crate) fn collect(&self) -> Vec<Said> {
        let said = {
            let mut state = self.state();
            state.bytes = 0;
            std::mem::take(&mut state.said)
        };
        if !said.is_empty() {
            self.changed.notify_waiters();
        }
        said
    }

    /// Is anything on the desk, and is it nothing but text that may grow?
    pub(crate) fn lying(&self) -> Lying {
        let state = self.state();
        match state.said.as_slice() {
            [] => Lying::Nothing,
            [Said::Text(text)] if !text.last && state.bytes < self.room => Lying::GrowingText,
            _ => Lying::Something,
        }
    }

    /// Does a message wait that the agent has not taken?
    pub(crate) fn has_messages(&self) -> bool {
        !self.state().inbox.is_empty()
    }

    pub(crate) fn offer(&self, offered: Offered) {
        self.state().inbox.push_back(offered);
        self.changed.notify_waiters();
    }

    /// Tells the agent to stop; the first reason counts, but a cancel outranks a shutdown.
    pub(crate) fn stop(&self, reason: Stop) {
        {
            let mut state = self.state();
            if state.stop.is_none() || reason == Stop::Canceled {
                state.stop = Some(reason);
            }
        }
        self.stop.cancel();
        self.changed.notify_waiters();
    }

    /// Nothing more is taken: the task has ended or is no longer ours.
    pub(crate) fn close(&self) {
        {
            let mut state = self.state();
            state.closed = true;
            state.stop.get_or_insert(Stop::Over);
        }
        self.stop.cancel();
        self.changed.notify_waiters();
    }
}

/// Short enough to be kept for as long as the turn lasts, as messages are not.
fn digest(message: &Message) -> u64 {
    let mut form = Vec::new();
    v1::write_message(&mut form, message);
    let mut hasher = DefaultHasher::new();
    hasher.write(&form);
    hasher.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lying {
    Nothing,
    GrowingText,
    Something,
}
