//! Results as the agent sent them, for programs that show more than this library understands.

use std::borrow::Cow;

use baton_protocol::operation::Call;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::choose::Binding;
use crate::client::{Client, with_fact};
use crate::error::Error;
use crate::stream::{Events, StreamEvent};
use crate::transport::{check_task, result_of};

impl Client {
    /// Makes a call that does not stream and returns its result as the agent sent it: JSON in the words of the version in
    /// use, of which only the task's id is looked at: it must be the one that was asked for. Over gRPC there is no JSON, so
    /// that this is written here. Errors, credentials and
    /// retries are those of the other calls.
    pub async fn call_raw(&self, call: &Call) -> Result<String, Error> {
        self.until_answered(self.retries(), call, |at| self.call_raw_once(at, call)).await
    }

    /// Makes a call that streams and returns the events of that one connection, each as it comes: nothing is left out,
    /// folded or taken up again. `last_event_id` asks the agent to go on behind an event. For programs that watch how an
    /// agent streams; others want [`stream`](Self::stream).
    pub async fn stream_raw(&self, call: Call, last_event_id: Option<&str>) -> Result<RawStream, Error> {
        if !call.operation().facts().streams {
            return Err(Error::Invalid(format!("{} has no stream", call.operation().facts().v1)));
        }
        Ok(RawStream(self.open_stream(&call, last_event_id, self.retries()).await?))
    }

    async fn call_raw_once(&self, at: usize, call: &Call) -> Result<String, Error> {
        let interface = &self.0.interfaces[at];
        if interface.binding == Binding::Grpc {
            return Ok(self.call_once(at, call).await?.json(interface));
        }
        let (id, mut answer, sent) = self.exchange(interface, call, None).await?;
        let body = answer.bytes(self.0.limits.reply).await?;
        let result = result_of(interface, &id, &answer, &body).map_err(|error| with_fact(error, sent))?;
        let about = about(call, result).map_err(|error| answer.malformed(error.to_string()))?;
        if let Some(task) = about {
            check_task(call, &task, &answer)?;
        }
        Ok(result.to_owned())
    }
}

/// The events of one connection. Dropping it closes the connection; the task goes on.
#[derive(Debug)]
pub struct RawStream(Events);

impl RawStream {
    /// The next event; `None` when the agent has closed the stream, whatever the state of the task. An error is the last
    /// thing it returns. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, Error> {
        let frame = self.0.next().await?;
        Ok(frame.map(|frame| StreamEvent {
            id: frame.id,
            item: frame.item,
            unknown_state: frame.unknown_state,
            json: frame.json,
        }))
    }
}

/// Checks that a result is JSON, and returns the id of the task that it shows.
fn about<'a>(call: &Call, result: &'a str) -> Result<Option<Cow<'a, str>>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Task<'a> {
        #[serde(borrow, default)]
        id: Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct Sent<'a> {
        #[serde(borrow, default)]
        task: Option<Task<'a>>,
        /// The older versions answer with the task itself.
        #[serde(borrow, default)]
        id: Option<Cow<'a, str>>,
    }
    Ok(match call {
        Call::GetTask(_) | Call::CancelTask(_) => Some(serde_json::from_str::<Task<'_>>(result)?.id),
        Call::SendMessage(_) => {
            let Sent { task, id } = serde_json::from_str(result)?;
            task.map(|task| task.id).or(id)
        }
        _ => {
            serde_json::from_str::<IgnoredAny>(result)?;
            None
        }
    })
}
