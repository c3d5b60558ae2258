//! The desk holds what an agent and its run pass to each other: the agent's output until the run writes it to the log, and
//! messages from the client until the agent takes them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{ArtifactId, ArtifactUpdate, EventBody, Message, SendDetails, TraceContext};
use baton_protocol::wire::stored;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::store::RequestId;

/// Why a turn should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The client has canceled the task.
    Canceled,
    /// The server is shutting down; there is a little time to finish or to clean up.
    Shutdown,
    /// The turn took too long, or produced no output for too long.
    Deadline,
    /// The run no longer has the task: it has ended, another process has it, or it cannot be written.
    Over,
}

/// Something the agent has produced and the run has not written yet.
#[derive(Debug)]
pub(crate) enum Output {
    Event(EventBody),
    /// An artifact as it was before an attempt that a crash interrupted.
    PutBack(ArtifactUpdate),
    /// Streamed text. More text for the same artifact is merged into it while it is on the desk.
    Text(TextChunk),
    /// The agent took a waiting message: it is written to the log at this point.
    Took(Offered),
}

/// A message that arrived while the turn was running.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) request: RequestId,
    pub(crate) message: Message,
    /// The trace context of the request that brought it.
    pub(crate) trace: Option<TraceContext>,
    pub(crate) details: SendDetails,
}

#[derive(Debug)]
pub(crate) struct TextChunk {
    pub(crate) artifact: ArtifactId,
    pub(crate) name: Option<String>,
    pub(crate) text: String,
    pub(crate) append: bool,
    /// Continues the artifact's last text part, even if another stream or turn wrote it.
    pub(crate) joins: bool,
    pub(crate) last: bool,
}

#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<State>,
    /// Notifies the run: the agent has produced something.
    pub(crate) has_output: Notify,
    /// Notifies the agent: space on the desk, a message, or a stop.
    pub(crate) changed: Notify,
    pub(crate) stop: CancellationToken,
    /// The agent has to wait while its output on the desk has this many bytes or more.
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    outputs: Vec<Output>,
    bytes: usize,
    inbox: VecDeque<Offered>,
    /// The details of the messages that the agent took, by a hash of the message: several messages may have the same id.
    sent_with: Vec<(u64, SendDetails)>,
    stop: Option<Stop>,
    /// No more output is accepted.
    closed: bool,
}

impl Desk {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Desk {
            state: Mutex::default(),
            has_output: Notify::new(),
            changed: Notify::new(),
            stop: CancellationToken::new(),
            max_bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The agent's side.

    /// Puts output on the desk; `false` when the desk is closed.
    pub(crate) fn put(&self, output: Output, bytes: usize) -> bool {
        {
            let mut state = self.state();
            if state.closed {
                return false;
            }
            state.bytes += bytes;
            match (output, state.outputs.last_mut()) {
                (Output::Text(new), Some(Output::Text(earlier)))
                    if new.append && earlier.artifact == new.artifact && !earlier.last =>
                {
                    earlier.text.push_str(&new.text);
                    earlier.last = new.last;
                    earlier.name = new.name.or(earlier.name.take());
                }
                (output, _) => state.outputs.push(output),
            }
        }
        self.has_output.notify_one();
        true
    }

    /// Waits until there is space on the desk.
    pub(crate) async fn wait_for_space(&self) {
        self.until(|state| (state.bytes < self.max_bytes || state.closed).then_some(())).await;
    }

    /// Takes the oldest waiting message. It is put among the output at this point, followed by `then`.
    pub(crate) fn take_message(&self, then: Option<EventBody>) -> Option<Message> {
        let message = {
            let mut state = self.state();
            if state.closed {
                return None;
            }
            let offered = state.inbox.pop_front()?;
            let message = offered.message.clone();
            state.sent_with.push((digest(&message), offered.details.clone()));
            state.outputs.push(Output::Took(offered));
            state.outputs.extend(then.map(Output::Event));
            message
        };
        self.has_output.notify_one();
        Some(message)
    }

    /// The details of a message that the agent took.
    pub(crate) fn sent_with(&self, message: &Message) -> Option<SendDetails> {
        let message = digest(message);
        let state = self.state();
        let sent = state.sent_with.iter().rev().find(|(taken, _)| *taken == message);
        sent.map(|(_, details)| details.clone())
    }

    /// Waits for a message or a stop.
    pub(crate) async fn message_or_stop(&self) {
        self.until(|state| (!state.inbox.is_empty() || state.closed || state.stop.is_some()).then_some(()))
            .await;
    }

    async fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        // Usually there is nothing to wait for.
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

    /// Takes all output from the desk.
    pub(crate) fn collect(&self) -> Vec<Output> {
        let outputs = {
            let mut state = self.state();
            state.bytes = 0;
            std::mem::take(&mut state.outputs)
        };
        if !outputs.is_empty() {
            self.changed.notify_waiters();
        }
        outputs
    }

    /// What kind of output is on the desk.
    pub(crate) fn pending(&self) -> Pending {
        let state = self.state();
        match state.outputs.as_slice() {
            [] => Pending::None,
            [Output::Text(text)] if !text.last && state.bytes < self.max_bytes => Pending::GrowingText,
            _ => Pending::Other,
        }
    }

    /// Whether a message waits that the agent has not taken.
    pub(crate) fn has_messages(&self) -> bool {
        !self.state().inbox.is_empty()
    }

    pub(crate) fn offer(&self, offered: Offered) {
        self.state().inbox.push_back(offered);
        self.changed.notify_waiters();
    }

    /// Tells the agent to stop. The first reason is kept, except that a cancel replaces any other.
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

    /// Accepts no more output: the task has ended, or the run no longer has it.
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

/// A hash of the message. Small enough to be kept for the whole turn, unlike the message itself.
fn digest(message: &Message) -> u64 {
    let mut form = Vec::new();
    stored::write_message(&mut form, message);
    let mut hasher = DefaultHasher::new();
    hasher.write(&form);
    hasher.finish()
}

/// The output on the desk that the run has not collected yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    None,
    /// Only text to which more may be added.
    GrowingText,
    Other,
}
