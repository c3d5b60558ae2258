//! What a stream waits for. It is kept between two calls of `next`, so that it goes on where it was: a caller who looks at
//! something else every second must not make the stream begin again with connecting, or with its wait.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use baton_protocol::domain::TaskId;
use baton_protocol::operation::{Call, GetTask, HistoryLength, Reply, SendMessage};
use baton_protocol::wire::StreamItem;
use baton_protocol::wire::dialect::Dialect;

use super::events::{Events, Frame};
use crate::client::Client;
use crate::error::Error;
use crate::options::Retries;

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A subscription.
    Opened(Result<Box<Events>, Error>),
    /// An event of the connection; `None` if the agent closed it.
    Came(Box<Events>, Result<Option<Frame>, Error>),
    /// The answer to the message, which was sent without a stream.
    Sent(Result<Frame, Error>),
    /// The task, which is read again and again.
    Polled(Result<Frame, Error>),
    /// The task, because the stream was silent.
    Checked(Result<Frame, Error>),
    /// The task, because events may have been missed and no more will come.
    Completed(Result<Frame, Error>),
}

/// Work under way.
// The mutex is never locked: with it, the stream can be shared between threads, as most types can.
pub(super) struct Work(Mutex<Pin<Box<dyn Future<Output = Outcome> + Send>>>);

impl Work {
    fn after(wait: Duration, work: impl Future<Output = Outcome> + Send + 'static) -> Self {
        Work(Mutex::new(Box::pin(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            work.await
        })))
    }

    /// Opens a connection, once: the stream itself decides about the next try.
    pub(super) fn open(wait: Duration, client: &Client, call: Call, last_id: Option<&str>) -> Self {
        let (client, last_id) = (client.clone(), last_id.map(str::to_owned));
        Self::after(wait, async move {
            let opened = client.open_stream(&call, last_id.as_deref(), &Retries::none()).await;
            Outcome::Opened(opened.map(Box::new))
        })
    }

    /// Waits for the next event of a connection.
    pub(super) fn next(mut events: Box<Events>) -> Self {
        Self::after(Duration::ZERO, async move {
            let came = events.next().await;
            Outcome::Came(events, came)
        })
    }

    /// Sends a message to an agent that does not stream.
    pub(super) fn send(client: &Client, send: SendMessage) -> Self {
        let client = client.clone();
        Self::after(Duration::ZERO, async move { Outcome::Sent(sent(&client, send).await) })
    }

    /// Reads the task, once.
    pub(super) fn read(
        wait: Duration,
        client: &Client,
        id: TaskId,
        outcome: fn(Result<Frame, Error>) -> Outcome,
    ) -> Self {
        let client = client.clone();
        Self::after(wait, async move { outcome(task(&client, id).await) })
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(cx)
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

/// The answer to a message that is not to be waited for, in the form of an event.
pub(super) async fn sent(client: &Client, send: SendMessage) -> Result<Frame, Error> {
    let call = Call::SendMessage(SendMessage { return_immediately: true, ..send });
    let received = client.call_peer(&call, client.retries()).await?;
    let json = received.json(client.interface());
    let item = received.reply.map(|reply| match reply {
        Reply::SentTask(task) => StreamItem::Task(task),
        Reply::SentMessage(message) => StreamItem::Message(message),
        _ => unreachable!("a send is answered with a task or a message"),
    });
    Ok(Frame::new(item, json))
}

/// The task as it is now, in the form of an event.
async fn task(client: &Client, id: TaskId) -> Result<Frame, Error> {
    let call = Call::GetTask(GetTask { id, history_length: HistoryLength::All });
    let received = client.call_peer(&call, &Retries::none()).await?;
    let json = received.json(client.interface());
    let item = received.reply.map(|reply| match reply {
        Reply::Task(task) => StreamItem::Task(task),
        _ => unreachable!("a get is answered with a task"),
    });
    let json = match client.interface().dialect() {
        Dialect::V1 | Dialect::V0_3Rest => format!("{{\"task\":{json}}}"),
        Dialect::V0_3 | Dialect::V0_1 => json,
    };
    Ok(Frame::new(item, json))
}
