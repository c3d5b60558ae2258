//! What a stream does next: when its connection is lost, closed or silent, when a subscription is refused, when the task
//! cannot be read.

use std::time::Duration;

use baton_protocol::ErrorKind;
use baton_protocol::operation::{Call, SendMessage, SubscribeToTask};
use baton_protocol::wire::StreamItem;

use super::events::{Events, Frame};
use super::take::Taken;
use super::work::{Outcome, Work};
use super::{Begin, Ending, EventStream, StreamEvent};
use crate::error::{Error, TransportKind};
use crate::options::{Reconnects, backoff};

/// How many subscriptions in a row may end without an event before the task is read instead.
const CUTS_BEFORE_POLLING: u32 = 2;
/// The shortest wait that an agent can ask for, unless the user wants less.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

type Stepped = Result<Option<StreamEvent>, Error>;

impl EventStream {
    /// Decides what to do next. An error ends the stream.
    pub(super) fn react(&mut self, outcome: Outcome) -> Stepped {
        match outcome {
            Outcome::Opened(Ok(events)) => {
                self.read(events);
                Ok(None)
            }
            Outcome::Opened(Err(error)) => self.refused(error),
            Outcome::Came(events, Ok(Some(frame))) => {
                let Taken { event, ending } = self.take(frame)?;
                match ending {
                    Some(ending) => self.finish(ending),
                    None => self.work = Some(Work::next(events)),
                }
                Ok(event)
            }
            Outcome::Came(_, Ok(None)) => self.closed(),
            // The agent may have forgotten the stream, or something on the way holds it back: the task itself tells.
            Outcome::Came(_, Err(error)) if is_silence(&error) && self.task_id().is_some() => {
                self.read_task(Duration::ZERO, Outcome::Checked);
                Ok(None)
            }
            Outcome::Came(_, Err(error)) => self.broke(error),
            Outcome::Sent(sent) => {
                let Taken { event, ending } = self.take(sent?)?;
                self.finish_or_poll(ending);
                Ok(event)
            }
            Outcome::Polled(Ok(frame)) => {
                let event = self.take_read(frame)?;
                self.fruitless = 0;
                self.finish_or_poll(self.ending_of_state());
                Ok(event)
            }
            Outcome::Checked(Ok(frame)) => {
                let event = self.take_read(frame)?;
                if event.is_some() {
                    self.position.overtaken();
                }
                match self.ending_of_state() {
                    Some(ending) => self.finish(ending),
                    None => self.reopen(Duration::ZERO),
                }
                Ok(event)
            }
            Outcome::Polled(Err(error)) => self.not_read(error, Outcome::Polled),
            Outcome::Checked(Err(error)) => self.not_read(error, Outcome::Checked),
            Outcome::Completed(Err(error)) => self.not_read(error, Outcome::Completed),
            Outcome::Completed(Ok(frame)) => self.complete(frame),
        }
    }

    /// Goes on with a connection.
    pub(super) fn read(&mut self, events: Box<Events>) {
        self.is_quiet = true;
        self.work = Some(Work::next(events));
    }

    /// Subscribes to the task behind the last event.
    pub(super) fn open(&mut self, wait: Duration) {
        let call = match self.task_id().cloned() {
            Some(id) => {
                self.position.opens();
                Call::SubscribeToTask(SubscribeToTask { id })
            }
            // Only if the user allows that.
            None => match &self.begun_with {
                Begin::Send(send) => Call::SendStreamingMessage((**send).clone()),
                Begin::Subscribe(_) | Begin::Follow => return,
            },
        };
        self.work = Some(Work::open(wait, &self.client, call, self.position.last_id()));
    }

    fn reopen(&mut self, wait: Duration) {
        self.reconnects += 1;
        self.open(wait);
    }

    /// Reads the task from now on.
    pub(super) fn poll_after(&mut self, wait: Duration) {
        self.read_task(wait, Outcome::Polled);
    }

    fn read_task(&mut self, wait: Duration, outcome: fn(Result<Frame, Error>) -> Outcome) {
        self.work = self.task_id().cloned().map(|id| Work::read(wait, &self.client, id, outcome));
    }

    /// No more events are waited for.
    pub(super) fn finish(&mut self, ending: Ending) {
        if self.position.has_gap() && self.fold.task().is_some() {
            self.finishing = Some(ending);
            self.read_task(Duration::ZERO, Outcome::Completed);
        } else {
            self.ending = Some(ending);
            self.work = None;
        }
    }

    pub(super) fn finish_or_poll(&mut self, ending: Option<Ending>) {
        match ending {
            Some(ending) => self.finish(ending),
            None => self.poll_after(self.client.reconnects().poll),
        }
    }

    /// Takes a task that was read, which shows how it is now.
    fn take_read(&mut self, frame: Frame) -> Stepped {
        let event = self.take(frame)?.event;
        self.is_opening = false;
        Ok(event)
    }

    /// The task at the end, with what was missed.
    fn complete(&mut self, frame: Frame) -> Stepped {
        let Frame { item, unknown_state, json, .. } = frame;
        let is_ended = matches!(&item, StreamItem::Task(task) if task.status.state.is_terminal());
        if self.finishing == Some(Ending::Terminal) && !is_ended {
            let early = self.fail(TransportKind::Cut, "the task is shown as it was before its end");
            return self.not_read(early, Outcome::Completed);
        }
        let is_news = !self.is_unchanged(&item, unknown_state.as_deref());
        self.fold.take(&item).map_err(|refused| self.fail(TransportKind::Malformed, refused.to_string()))?;
        self.unknown_state.clone_from(&unknown_state);
        self.position.showed(None, true);
        self.finishing = None;
        match self.fold.task().map(|task| task.status.state) {
            Some(state) if state.is_terminal() => self.ending = Some(Ending::Terminal),
            Some(state) if state.is_interrupted() => self.ending = Some(Ending::Interrupted),
            // It has gone on meanwhile.
            _ => {
                self.position.overtaken();
                let Some(wait) = self.next_wait(None, Duration::ZERO) else {
                    return Err(self.fail(TransportKind::Cut, "the task does not come to rest"));
                };
                self.reopen(wait);
            }
        }
        Ok(is_news.then_some(StreamEvent { id: None, item, unknown_state, json }))
    }

    /// The agent closed the stream properly.
    fn closed(&mut self) -> Stepped {
        if self.waits() {
            self.finish(Ending::Interrupted);
            return Ok(None);
        }
        let error = self.fail(TransportKind::Cut, "the agent closed the stream before the task had ended");
        self.broke(error)
    }

    /// The connection is lost, or what came cannot be read.
    fn broke(&mut self, error: Error) -> Stepped {
        // Some servers open a stream for everything, and refuse it in its first event.
        if std::mem::take(&mut self.is_quiet) && error.agent().is_some() {
            match &self.begun_with {
                Begin::Send(send) if self.task_id().is_none() && is_refusal(&error) => {
                    self.work = Some(Work::send(&self.client, SendMessage::clone(send)));
                    return Ok(None);
                }
                _ if self.reconnects > 0 || matches!(self.begun_with, Begin::Follow) => {
                    return self.refused(error);
                }
                _ => {}
            }
        }
        if !is_lost(&error) && error.kind() != Some(ErrorKind::Unavailable) {
            return Err(error);
        }
        // Nothing came yet, so there is no task to subscribe to. The message is sent again only if the user allows that.
        if self.task_id().is_none() && !self.client.retries().uncertain {
            return Err(error);
        }
        let asked = self.asked_wait.filter(|_| self.fruitless == 0);
        let Some(wait) = self.next_wait(asked, self.client.reconnects().longest_wait) else {
            return Err(error);
        };
        // Subscriptions that end at once are no use.
        let is_useless =
            transport_kind(&error) == Some(TransportKind::Cut) && self.fruitless > CUTS_BEFORE_POLLING;
        match is_useless && self.task_id().is_some() {
            true => self.poll_after(wait),
            false => self.reopen(wait),
        }
        Ok(None)
    }

    /// A subscription was refused, or could not be made.
    fn refused(&mut self, error: Error) -> Stepped {
        match (error.kind(), &error) {
            (Some(ErrorKind::Unauthenticated | ErrorKind::Forbidden), _) => Err(error),
            _ if is_busy(&error) => {
                let asked = error.agent().and_then(|error| error.retry_after());
                match self.next_wait(asked, self.client.retries().longest_wait) {
                    Some(wait) => self.reopen(wait),
                    None => return Err(error),
                }
                Ok(None)
            }
            // The task has ended meanwhile, or the agent has no subscriptions: the task itself tells.
            (_, Error::Agent(_) | Error::NotInVersion { .. }) if self.task_id().is_some() => {
                self.poll_after(Duration::ZERO);
                Ok(None)
            }
            _ => self.broke(error),
        }
    }

    /// The task could not be read. Servers that restart, and proxies before them, say so for a while.
    fn not_read(&mut self, error: Error, outcome: fn(Result<Frame, Error>) -> Outcome) -> Stepped {
        let status = error.agent().and_then(|error| error.http_status());
        let is_passing = is_lost(&error) || is_busy(&error) || status.is_some_and(|status| status >= 500);
        let asked = error.agent().and_then(|error| error.retry_after());
        let longest = self.client.retries().longest_wait;
        match self.next_wait(asked, longest).filter(|_| is_passing) {
            Some(wait) => {
                self.read_task(wait.max(self.client.reconnects().poll.min(longest)), outcome);
                Ok(None)
            }
            None => Err(error),
        }
    }

    /// The wait before another try, which is fruitless until an event comes; `None` if there were enough of them.
    fn next_wait(&mut self, asked: Option<Duration>, longest_asked: Duration) -> Option<Duration> {
        let Reconnects { most, first_wait, longest_wait, .. } = *self.client.reconnects();
        if self.fruitless >= most {
            return None;
        }
        let usual = backoff(first_wait, longest_wait, self.fruitless);
        self.fruitless += 1;
        Some(asked.map_or(usual, |asked| asked.max(SHORTEST_WAIT.min(first_wait)).min(longest_asked)))
    }
}

fn transport_kind(error: &Error) -> Option<TransportKind> {
    error.transport().map(|error| error.kind())
}

fn is_silence(error: &Error) -> bool {
    transport_kind(error) == Some(TransportKind::Timeout)
}

/// The agent may be there again later.
fn is_lost(error: &Error) -> bool {
    use TransportKind::{Connect, Cut, Timeout};
    matches!(transport_kind(error), Some(Connect | Cut | Timeout))
}

/// The agent has no room at the moment.
fn is_busy(error: &Error) -> bool {
    use ErrorKind::{QuotaExceeded, ResourceExhausted, Unavailable};
    matches!(error.kind(), Some(Unavailable | QuotaExceeded | ResourceExhausted))
}

/// The agent has no such operation, so that nothing happened to the message.
pub(super) fn is_refusal(error: &Error) -> bool {
    use ErrorKind::{MethodNotAllowed, MethodNotFound, UnsupportedOperation};
    matches!(error.kind(), Some(UnsupportedOperation | MethodNotFound | MethodNotAllowed))
}
