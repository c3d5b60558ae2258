//! Streams that survive lost connections.
//!
//! A stream is read from one connection after the other. When one is lost, the stream is taken up again:
//!
//! 1. by subscribing to the task, with `Last-Event-ID`: agents that number their events (Baton does) go on behind the
//!    last one; others begin with the task as it is now, which has everything that was missed;
//! 2. if the agent refuses that, or subscriptions end at once, by reading the task again and again.
//!
//! So every event is shown once, or what was missed is in a `Task` that is shown instead. A stream that the agent closes
//! while the task is still at work counts as lost, too. The whole task is always in [`EventStream::task`].

mod events;

use std::time::Duration;

use baton_protocol::ErrorKind;
use baton_protocol::domain::{Message, Task, TaskId, TaskState};
use baton_protocol::lifecycle::{Fold, Refused};
use baton_protocol::operation::{Call, GetTask, HistoryLength, Reply, SendMessage, SubscribeToTask};
use baton_protocol::wire::StreamItem;
use baton_protocol::wire::peer_state::FromPeer;
use futures_util::Stream;
use tokio::time::Instant;

pub(crate) use self::events::Events;
use self::events::Frame;
use crate::client::Client;
use crate::error::{Error, TransportError, TransportKind};
use crate::options::backoff;

/// How many subscriptions in a row may end without an event before the task is read instead.
const CUTS_BEFORE_POLLING: u32 = 2;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// The agent's id of the event, if it gives ids: [`Client::resume`] goes on behind it.
    pub id: Option<String>,
    /// What happened.
    pub item: StreamItem,
    /// The name of a state that is none of the eight, such as `TASK_STATE_UNSPECIFIED`, as it was received. The item says
    /// [`Working`](TaskState::Working) then.
    pub unknown_state: Option<String>,
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

/// The events of a task. [`next`](Self::next) returns them; [`task`](Self::task) is what they add up to.
///
/// Dropping it closes the connection and changes nothing for the task: [`Client::cancel`] stops that.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    begun_with: Begin,
    step: Step,
    fold: Fold,
    /// The name of the task's state, if that is none of the eight.
    unknown_state: Option<String>,
    last_id: Option<String>,
    /// Tries in a row that brought no event.
    fruitless: u32,
    reconnects: u32,
    /// The agent's `retry:`.
    asked_wait: Option<Duration>,
    /// Events may have been missed: the task is read once more at the end.
    gap: bool,
    /// Nothing has come yet on the connection that took up the stream.
    is_quiet: bool,
    /// The number that the first event of a resumed stream must have if none was missed.
    expected: Option<u64>,
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
}

/// What to do next. Kept in the stream, so that a dropped `next` loses nothing.
#[derive(Debug)]
enum Step {
    Read(Box<Events>),
    WaitToSubscribe(Instant),
    WaitToPoll(Instant),
    /// Read the task once more, then end.
    ReadAgain,
    Done,
}

impl EventStream {
    /// Sends a message and opens its stream. An agent that does not stream is sent the message, and then the task is read
    /// again and again.
    pub(crate) async fn send(client: Client, send: SendMessage) -> Result<Self, Error> {
        let streams = client.streams();
        let mut stream = Self::new(client, Begin::Send(Box::new(send)), None);
        if streams {
            stream.start().await?;
        } else {
            stream.ready = stream.send_then_poll().await?;
        }
        Ok(stream)
    }

    pub(crate) async fn subscribe(
        client: Client,
        id: TaskId,
        last_id: Option<String>,
    ) -> Result<Self, Error> {
        let mut stream = Self::new(client, Begin::Subscribe(id), last_id);
        stream.start().await?;
        Ok(stream)
    }

    /// Watches a task until it ends or waits for something.
    pub(crate) fn follow(client: Client, task: Task) -> Self {
        let now = Instant::now();
        let step = match client.streams() {
            true => Step::WaitToSubscribe(now),
            false => Step::WaitToPoll(now + client.reconnects().poll),
        };
        EventStream { step, fold: Fold::of(task), ..Self::new(client, Begin::Follow, None) }
    }

    fn new(client: Client, begun_with: Begin, last_id: Option<String>) -> Self {
        EventStream {
            client,
            begun_with,
            step: Step::Done,
            fold: Fold::default(),
            unknown_state: None,
            last_id,
            fruitless: 0,
            reconnects: 0,
            asked_wait: None,
            gap: false,
            is_quiet: false,
            expected: None,
            ending: None,
            ready: None,
        }
    }

    /// The task so far.
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

    /// The id of the last event.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How often a lost connection was taken up again.
    pub fn reconnects(&self) -> u32 {
        self.reconnects
    }

    /// The events as a `Stream`.
    pub fn into_stream(self) -> impl Stream<Item = Result<StreamEvent, Error>> + Send {
        futures_util::stream::unfold(self, |mut events| async { Some((events.next().await?, events)) })
    }

    /// The next event. `None` when the stream has ended; an error is the last thing it returns. Cancel safe: if the
    /// future is dropped, no event is lost.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, Error>> {
        if let Some(event) = self.ready.take() {
            return Some(Ok(event));
        }
        loop {
            let stepped = match &mut self.step {
                Step::Done => return None,
                Step::Read(events) => match events.next().await {
                    Ok(Some(frame)) => self.take(frame),
                    Ok(None) => self.closed(),
                    Err(error) => self.broke(error),
                },
                Step::WaitToSubscribe(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.take_up().await
                }
                Step::WaitToPoll(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.poll().await
                }
                Step::ReadAgain => self.read_again().await,
            };
            match stepped {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => {
                    self.step = Step::Done;
                    return Some(Err(error));
                }
            }
        }
    }

    async fn start(&mut self) -> Result<(), Error> {
        let call = match &self.begun_with {
            Begin::Send(send) => Call::SendStreamingMessage((**send).clone()),
            Begin::Subscribe(id) => Call::SubscribeToTask(SubscribeToTask { id: id.clone() }),
            Begin::Follow => return Ok(()),
        };
        let events = self.client.open_stream(call, self.last_id.as_deref()).await?;
        self.step = Step::Read(Box::new(events));
        Ok(())
    }

    async fn send_then_poll(&mut self) -> Result<Option<StreamEvent>, Error> {
        let Begin::Send(send) = &self.begun_with else { return Ok(None) };
        let send = SendMessage { return_immediately: true, ..(**send).clone() };
        let item = self.client.call_peer(Call::SendMessage(send)).await?.map(|reply| match reply {
            Reply::SentTask(task) => StreamItem::Task(task),
            Reply::SentMessage(message) => StreamItem::Message(message),
            _ => unreachable!("a send is answered with a task or a message"),
        });
        self.step = Step::WaitToPoll(Instant::now() + self.client.reconnects().poll);
        self.take(Frame::new(None, None, item))
    }

    /// Folds an event, and decides whether it is the last one. `None` if it was seen before.
    fn take(&mut self, frame: Frame) -> Result<Option<StreamEvent>, Error> {
        let Frame { id, retry, item, unknown_state } = frame;
        self.asked_wait = retry.map(Duration::from_millis).or(self.asked_wait);
        self.fruitless = 0;
        self.is_quiet = false;
        let is_first = self.fold.task().is_none();
        // Another number than expected: the agent may only have a hole there, or it did not resume at all.
        let expected = self.expected.take();
        self.gap |= expected.is_some() && number(id.as_deref()) != expected;
        if self.was_seen(id.as_deref(), &item, unknown_state.as_deref()) {
            return Ok(None);
        }
        match self.fold.take(&item) {
            Ok(()) => {}
            // Late news of a task that has ended change nothing.
            Err(Refused::Ended(_)) => return Ok(None),
            Err(refused) => return Err(self.fail(TransportKind::Malformed, refused.to_string())),
        }
        if matches!(item, StreamItem::Task(_) | StreamItem::Status { .. }) {
            self.unknown_state.clone_from(&unknown_state);
        }
        if id.is_some() {
            self.last_id.clone_from(&id);
        }
        if matches!(item, StreamItem::Task(_)) {
            self.gap = false;
        }
        let state = self.fold.task().map(|task| task.status.state);
        let is_turn = self.begun_with.is_turn();
        let ending = match (&item, state) {
            (StreamItem::Message(_), _) => Some(Ending::Message),
            (_, Some(state)) if state.is_terminal() => Some(Ending::Terminal),
            // The stream of an answer begins with the task that still waits for it.
            (StreamItem::Task(_), _) if is_first => None,
            // For input the agent's turn is over. An authorization comes by another way, and the turn goes on.
            (StreamItem::Task(_) | StreamItem::Status { .. }, Some(TaskState::InputRequired)) if is_turn => {
                Some(Ending::Interrupted)
            }
            _ => None,
        };
        if ending.is_some() {
            self.end(ending);
        }
        Ok(Some(StreamEvent { id, item, unknown_state }))
    }

    /// Whether an event came before, on an earlier connection; or the task has not changed. An agent that begins to count
    /// again with every connection has left a gap, too, so that nothing is lost.
    fn was_seen(&self, id: Option<&str>, item: &StreamItem, unknown_state: Option<&str>) -> bool {
        let (now, last) = (number(id), number(self.last_id.as_deref()));
        let is_repeat = self.reconnects > 0 && now.is_some() && now <= last && self.fold.task().is_some();
        let is_same_state = unknown_state == self.unknown_state.as_deref();
        is_repeat || is_same_state && matches!(item, StreamItem::Task(task) if self.fold.task() == Some(task))
    }

    /// The agent closed the stream properly.
    fn closed(&mut self) -> Result<Option<StreamEvent>, Error> {
        match self.fold.task().map(|task| task.status.state) {
            Some(state) if state.is_interrupted() => {
                self.end(Some(Ending::Interrupted));
                Ok(None)
            }
            _ => {
                let early = "the agent closed the stream before the task had ended";
                let error = self.fail(TransportKind::Cut, early);
                self.broke(error)
            }
        }
    }

    /// The connection is lost, or what came cannot be read.
    fn broke(&mut self, error: Error) -> Result<Option<StreamEvent>, Error> {
        // Some servers open a stream for everything, and refuse a subscription in its first event.
        if std::mem::take(&mut self.is_quiet) && error.agent().is_some() {
            return self.refused(error);
        }
        let is_lost = error.transport().is_some_and(|error| {
            matches!(error.kind(), TransportKind::Cut | TransportKind::Timeout | TransportKind::Connect)
        });
        let may_wait = matches!(error.kind(), Some(ErrorKind::Unavailable));
        if !is_lost && !may_wait {
            return Err(error);
        }
        let reconnects = self.client.reconnects();
        if self.fruitless >= reconnects.most {
            return Err(error);
        }
        // Nothing came yet, so there is no task to subscribe to. The message is sent again only if the user allows that.
        if self.task_id().is_none() && !self.client.retries().uncertain {
            return Err(error);
        }
        let wait = match self.asked_wait {
            Some(asked) if self.fruitless == 0 => asked.min(reconnects.longest_wait),
            _ => backoff(reconnects.first_wait, reconnects.longest_wait, self.fruitless),
        };
        self.fruitless += 1;
        // Subscriptions that end at once are no use.
        let is_cut = error.transport().is_some_and(|error| error.kind() == TransportKind::Cut);
        let next = Instant::now() + wait;
        self.step = match is_cut && self.fruitless > CUTS_BEFORE_POLLING && self.task_id().is_some() {
            true => Step::WaitToPoll(next),
            false => Step::WaitToSubscribe(next),
        };
        Ok(None)
    }

    async fn take_up(&mut self) -> Result<Option<StreamEvent>, Error> {
        self.reconnects += 1;
        let opened = match self.task_id().cloned() {
            None => self.start().await,
            Some(id) => {
                // Without numbered events nobody knows what was missed, unless the stream begins with the task.
                let last = number(self.last_id.as_deref());
                self.gap |= last.is_none();
                self.expected = last.map(|last| last.saturating_add(1));
                let call = Call::SubscribeToTask(SubscribeToTask { id });
                let opened = self.client.open_stream(call, self.last_id.as_deref()).await;
                opened.map(|events| self.step = Step::Read(Box::new(events)))
            }
        };
        match opened {
            Ok(()) => {
                self.is_quiet = true;
                Ok(None)
            }
            Err(error) => self.refused(error),
        }
    }

    /// A subscription was refused, or could not be made.
    fn refused(&mut self, error: Error) -> Result<Option<StreamEvent>, Error> {
        use ErrorKind::{Forbidden, QuotaExceeded, ResourceExhausted, Unauthenticated, Unavailable};
        match (error.kind(), &error) {
            (Some(Unauthenticated | Forbidden), _) => Err(error),
            (Some(Unavailable | QuotaExceeded | ResourceExhausted), _) => self.busy(error),
            // The task has ended meanwhile, or the agent has no subscriptions: the task itself tells.
            (_, Error::Agent(_) | Error::NotInVersion { .. }) if self.task_id().is_some() => {
                self.step = Step::WaitToPoll(Instant::now());
                Ok(None)
            }
            _ => self.broke(error),
        }
    }

    /// The agent has no room at the moment.
    fn busy(&mut self, error: Error) -> Result<Option<StreamEvent>, Error> {
        let reconnects = self.client.reconnects();
        if self.fruitless >= reconnects.most {
            return Err(error);
        }
        let asked = error.agent().and_then(|error| error.retry_after());
        let wait =
            asked.unwrap_or_else(|| backoff(reconnects.first_wait, reconnects.longest_wait, self.fruitless));
        self.fruitless += 1;
        self.step = Step::WaitToSubscribe(Instant::now() + wait.min(self.client.retries().longest_wait));
        Ok(None)
    }

    async fn poll(&mut self) -> Result<Option<StreamEvent>, Error> {
        let task = match self.read_task().await {
            Ok(task) => task,
            Err(error) if error.transport().is_some() && self.fruitless < self.client.reconnects().most => {
                self.fruitless += 1;
                self.step = Step::WaitToPoll(Instant::now() + self.client.reconnects().poll);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let is_turn = self.begun_with.is_turn();
        let state = task.value.status.state;
        let event = self.take(Frame::new(None, None, task.map(StreamItem::Task)))?;
        // Without an event nothing has changed, and it ends only now if the last event could not know.
        let ending = match state {
            state if state.is_terminal() => Some(Ending::Terminal),
            state if state.is_interrupted() && is_turn => Some(Ending::Interrupted),
            _ => None,
        };
        match ending {
            Some(ending) => {
                self.step = Step::Done;
                self.ending = Some(ending);
            }
            None => self.step = Step::WaitToPoll(Instant::now() + self.client.reconnects().poll),
        }
        Ok(event)
    }

    async fn read_again(&mut self) -> Result<Option<StreamEvent>, Error> {
        let Frame { item, unknown_state, .. } =
            Frame::new(None, None, self.read_task().await?.map(StreamItem::Task));
        self.step = Step::Done;
        let is_news = !self.was_seen(None, &item, unknown_state.as_deref());
        self.fold.take(&item).map_err(|refused| self.fail(TransportKind::Malformed, refused.to_string()))?;
        self.unknown_state.clone_from(&unknown_state);
        Ok(is_news.then_some(StreamEvent { id: None, item, unknown_state }))
    }

    async fn read_task(&self) -> Result<FromPeer<Task>, Error> {
        let id =
            self.task_id().cloned().ok_or_else(|| self.fail(TransportKind::Cut, "there is no task yet"))?;
        let call = Call::GetTask(GetTask { id, history_length: HistoryLength::All });
        Ok(self.client.call_peer(call).await?.map(|reply| match reply {
            Reply::Task(task) => task,
            _ => unreachable!("a get is answered with a task"),
        }))
    }

    fn end(&mut self, ending: Option<Ending>) {
        self.ending = ending;
        self.step = if self.gap && self.fold.task().is_some() { Step::ReadAgain } else { Step::Done };
    }

    fn task_id(&self) -> Option<&TaskId> {
        match (&self.begun_with, self.fold.task()) {
            (_, Some(task)) => Some(&task.id),
            (Begin::Subscribe(id), None) => Some(id),
            (Begin::Send(_) | Begin::Follow, None) => None,
        }
    }

    fn fail(&self, kind: TransportKind, message: impl Into<String>) -> Error {
        let url = self.client.interface().url().to_owned();
        TransportError { kind, url, message: message.into(), reached: true }.into()
    }
}

/// The number of an event, if the agent numbers them.
fn number(id: Option<&str>) -> Option<u64> {
    id.and_then(|id| id.parse().ok())
}
