//! A question to the client.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use baton_protocol::domain::{Message, TaskState};

use super::{AgentError, Stopped, Turn};

/// A question to the client. Await it for the answer, or drop it and return: the answer then starts the next turn.
/// See [`Turn::ask`].
pub struct Question {
    pub(super) turn: Turn,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Question").field(&self.turn).finish()
    }
}

impl IntoFuture for Question {
    type Output = Result<Message, AgentError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let desk = &self.turn.inner.desk;
            loop {
                let working = self.turn.status_body(TaskState::Working, None);
                if let Some(answer) = desk.take_message(Some(working)) {
                    return Ok(answer);
                }
                if desk.stop_reason().is_some() {
                    return Err(Stopped.into());
                }
                desk.message_or_stop().await;
            }
        })
    }
}
