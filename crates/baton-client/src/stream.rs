//! Streams that survive lost connections.
//!
//! A stream is read from one connection after the other. When one is lost, the stream is taken up again:
//!
//! 1. by subscribing to the task, with `Last-Event-ID`: agents that number their events (Baton does) go on behind the
//!    last one; others begin with the task as it is now, which has everything that was missed;
//! 2. if the agent refuses that, or subscriptions end at once, by reading the task again and again.
//!
//! A stream that is silent for too long is closed, and the task is read before the next subscription: a proxy may hold
//! back events, or the agent may have forgotten the stream.
//!
//! So every event is shown once, or what was missed is in a `Task` that is shown instead. A stream that the agent closes
//! while the task is still at work counts as lost, too. The whole task is always in [`EventStream::task`].

mod events;
mod held;
mod position;
mod recover;
mod take;
mod work;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use baton_protocol::Generation;
use baton_protocol::domain::{Message, Task, TaskId};
use baton_protocol::lifecycle::Fold;
use baton_protocol::operation::{Call, SendMessage, SubscribeToTask};
use baton_protocol::wire::StreamItem;
use futures_util::Stream;

pub(crate) use self::events::{Events, Frame};
use self::held::Held;
use self::position::Position;
use self::take::Taken;
use self::work::Work;
use crate::client::Client;
use crate::error::{Error, TransportError, TransportKind};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// The agent's id of the event, if it gives ids: [`Client::resume`] goes on behind it.
    pub id: Option<String>,
    /// What happened.
    pub item: StreamItem,
    /// The name of a state that is none of the eight, such as `TASK_STATE_UNSPECIFIED`, as it was received. The item says
    /// [`Working`](baton_protocol::domain::TaskState::Working) then.
    pub unknown_state: Option<String>,
    /// The event as the agent sent it, for programs that show more than this library understands: JSON in the words of the
    /// version in use. A task that was read because the agent cannot be subscribed to has the form of an event, too.
    pub json: String,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The task is done, for better or worse.
    Terminal,
    /// The task waits for input or for an authorization.
    Interrupted,
    /// The agent answered with a message; there is no task.
    Message,
}

/// The events of a task. [`next`](Self::next) returns them; [`task`](Self::task) is what they add up to. It is a
/// [`Stream`], too, with everything that `futures` has for streams.
///
/// Dropping it closes the connection and changes nothing for the task: [`Client::cancel`] stops that.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    begun_with: Begin,
    /// `None` at the end.
    work: Option<Work>,
    fold: Fold,
    held: Held,
    /// The name of the task's state, if that is none of the eight.
    unknown_state: Option<String>,
    position: Position,
    /// Tries in a row that brought no event.
    fruitless: u32,
    reconnects: u32,
    /// The agent's `retry:`.
    asked_wait: Option<Duration>,
    /// Nothing has come yet on this connection.
    is_quiet: bool,
    /// Nothing has come but the task that opens the stream of a message.
    is_opening: bool,
    /// What the ending will be, once the task was read.
    finishing: Option<Ending>,
    ending: Option<Ending>,
    /// Was there before `next` was called.
    ready: Option<StreamEvent>,
}

#[derive(Debug)]
enum Begin {
    Send(Box<SendMessage>),
    Subscribe(TaskId),
    /// A task that was sent before and is still at work.
    Follow,
}

impl Begin {
    /// Whether the stream is that of a turn, which ends with a question; a subscription goes on behind it.
    fn is_turn(&self) -> bool {
        !matches!(self, Self::Subscribe(_))
    }

    /// Whether the message goes to a task that exists.
    fn is_answer(&self) -> bool {
        matches!(self, Self::Send(send) if send.message.task_id.is_some())
    }
}

impl EventStream {
    /// Sends a message and opens its stream. An agent that does not stream is sent the message, and then the task is read
    /// again and again.
    pub(crate) async fn send(client: Client, send: SendMessage) -> Result<Self, Error> {
        let mut stream = Self::new(client.clone(), Begin::Send(Box::new(send.clone())), None);
        // Streams of 0.1 do not begin with the task, and never tell its context.
        let is_legacy = client.interface().version() == Generation::V0_1;
        if stream.begun_with.is_answer() || is_legacy && send.message.context_id.is_none() {
            stream.position.is_partial();
        }
        if client.streams() {
            let call = Call::SendStreamingMessage(send.clone());
            match client.open_stream(&call, None, client.retries()).await {
                Ok(events) => {
                    stream.read(Box::new(events));
                    return Ok(stream);
                }
                // The card says more than the agent can do.
                Err(error) if recover::is_refusal(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let Taken { event, ending } = stream.take(work::sent(&client, send).await?)?;
        stream.ready = event;
        stream.finish_or_poll(ending);
        Ok(stream)
    }

    pub(crate) async fn subscribe(
        client: Client,
        id: TaskId,
        last_id: Option<String>,
    ) -> Result<Self, Error> {
        let call = Call::SubscribeToTask(SubscribeToTask { id: id.clone() });
        let events = client.open_stream(&call, last_id.as_deref(), client.retries()).await?;
        let mut stream = Self::new(client, Begin::Subscribe(id), last_id);
        stream.position.opens();
        stream.position.is_partial();
        stream.read(Box::new(events));
        Ok(stream)
    }

    /// Watches a task until it ends or waits for something.
    pub(crate) fn follow(client: Client, task: Task) -> Self {
        let streams = client.streams();
        let mut stream = EventStream { fold: Fold::of(task), ..Self::new(client, Begin::Follow, None) };
        match streams {
            true => stream.open(Duration::ZERO),
            false => stream.poll_after(stream.client.reconnects().poll),
        }
        stream
    }

    fn new(client: Client, begun_with: Begin, last_id: Option<String>) -> Self {
        EventStream {
            client,
            begun_with,
            work: None,
            fold: Fold::default(),
            held: Held::default(),
            unknown_state: None,
            position: Position::behind(last_id),
            fruitless: 0,
            reconnects: 0,
            asked_wait: None,
            is_quiet: false,
            is_opening: false,
            finishing: None,
            ending: None,
            ready: None,
        }
    }

    /// The task so far. Once the stream has ended, the whole task.
    pub fn task(&self) -> Option<&Task> {
        self.fold.task()
    }

    /// The name of the task's state, if that is none of the eight; [`task`](Self::task) says `Working` then.
    pub fn unknown_state(&self) -> Option<&str> {
        self.unknown_state.as_deref()
    }

    /// The message, if the agent answered with one.
    pub fn message(&self) -> Option<&Message> {
        self.fold.message()
    }

    /// How the stream ended; `None` while it goes on, and after an error.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The id of the last event; `None` also if the task was read since then, and has more than the events up to that one.
    pub fn last_event_id(&self) -> Option<&str> {
        self.position.last_id()
    }

    /// How often a lost connection was taken up again.
    pub fn reconnects(&self) -> u32 {
        self.reconnects
    }

    /// The next event. `None` when the stream has ended; an error is the last thing it returns. Cancel safe: if the
    /// future is dropped, no event is lost, and what it was waiting for goes on with the next call.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Ends the stream if the task waits for something, although it would go on: it does while an authorization is waited
    /// for, and a subscription also after a question. If events may have been missed, [`next`](Self::next) still returns the
    /// task, which shows them.
    pub fn end_if_waiting(&mut self) {
        if self.waits() && self.work.is_some() && self.finishing.is_none() {
            self.finish(Ending::Interrupted);
        }
    }

    /// The task, once nothing happens to it without its user.
    pub(crate) async fn until_settled(mut self) -> Result<Option<Task>, Error> {
        while let Some(event) = self.next().await {
            event?;
            self.end_if_waiting();
        }
        Ok(self.fold.into_task())
    }

    /// Whether the task waits for its user.
    fn waits(&self) -> bool {
        // An answer was given, and the task is shown as it was before it: the turn has not even begun.
        let is_unanswered = self.is_opening && self.begun_with.is_answer();
        self.fold.task().is_some_and(|task| task.status.state.is_interrupted()) && !is_unanswered
    }

    fn task_id(&self) -> Option<&TaskId> {
        match (&self.begun_with, self.fold.task()) {
            (_, Some(task)) => Some(&task.id),
            (Begin::Subscribe(id), None) => Some(id),
            (Begin::Send(_) | Begin::Follow, None) => None,
        }
    }

    fn fail(&self, kind: TransportKind, message: impl Into<String>) -> Error {
        let url = self.client.interface().shown_url();
        TransportError { kind, url, message: message.into(), reached: true }.into()
    }
}

impl Stream for EventStream {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.get_mut();
        if let Some(event) = stream.ready.take() {
            return Poll::Ready(Some(Ok(event)));
        }
        while let Some(work) = &mut stream.work {
            let outcome = ready!(work.poll(cx));
            stream.work = None;
            match stream.react(outcome).transpose() {
                None => {}
                Some(Ok(event)) => return Poll::Ready(Some(Ok(event))),
                Some(Err(error)) => {
                    stream.work = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(None)
    }
}
