//! A turn, as the agent sees it: what was asked, and the verbs to answer with.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, EventBody, Message, Part, Role, StatusUpdate, Task,
    TaskId, TaskState,
};
use baton_protocol::lifecycle::Snapshot;
use tokio_util::sync::CancellationToken;

use super::clock::{fresh_artifact_id, fresh_message_id};
use super::desk::{Desk, Said, Stop, TextChunk};
use super::size;

/// The turn is over: canceled, out of time, or no longer this server's. Just return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the turn is over")]
pub struct Stopped;

/// One turn of a task. Cheap to clone; hand it to whatever does the work.
///
/// The verbs lay events on a desk; the run writes them in order, as many at once as it can. They wait only
/// when more lies there than one event may hold.
#[derive(Clone)]
pub struct Turn {
    inner: Arc<Inner>,
}

struct Inner {
    desk: Arc<Desk>,
    message: Message,
    start: Arc<Snapshot>,
    references: Vec<Task>,
    max_event_bytes: usize,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("task", self.task_id()).field("attempt", &self.attempt()).finish()
    }
}

impl Turn {
    pub(crate) fn new(
        desk: Arc<Desk>,
        message: Message,
        start: Arc<Snapshot>,
        references: Vec<Task>,
        max_event_bytes: usize,
    ) -> Self {
        Turn { inner: Arc::new(Inner { desk, message, start, references, max_event_bytes }) }
    }

    /// The message that started the turn.
    pub fn message(&self) -> &Message {
        &self.inner.message
    }

    /// The message's text parts, joined.
    pub fn text(&self) -> String {
        self.inner.message.text()
    }

    /// The task as it was when the turn started, history included.
    pub fn task(&self) -> &Task {
        &self.inner.start.task
    }

    pub fn task_id(&self) -> &TaskId {
        &self.inner.start.task.id
    }

    pub fn context_id(&self) -> &ContextId {
        &self.inner.start.task.context_id
    }

    /// 1 for the task's first turn; raised by every further turn and by every re-run after a crash.
    pub fn attempt(&self) -> u32 {
        self.inner.start.attempts
    }

    /// Is this the answer to nothing yet: the message that brought the task to life?
    pub fn is_first(&self) -> bool {
        self.task().history.iter().filter(|said| said.role == Role::User).count() <= 1
    }

    /// The caller's own tasks that the message refers to.
    pub fn references(&self) -> &[Task] {
        &self.inner.references
    }

    /// Fires when the turn should stop; [`stop_reason`](Self::stop_reason) says why.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.desk.stop
    }

    pub fn stop_reason(&self) -> Option<Stop> {
        self.inner.desk.stop_reason()
    }

    /// Waits; ends early, with an error to return, when the turn should stop.
    pub async fn sleep(&self, time: Duration) -> Result<(), Stopped> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.cancellation().cancelled() => Err(Stopped),
        }
    }

    /// Says how far the work is: a status update that leaves the task working.
    pub async fn progress(&self, text: impl Into<String>) -> Result<(), Stopped> {
        self.status(TaskState::Working, Some(vec![Part::text(text)])).await
    }

    /// Hands over a whole artifact, creating or replacing the one of that id.
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), Stopped> {
        self.artifact_update(artifact, false, true).await
    }

    /// A text artifact under a fresh id. An agent that may be re-run after a crash gives its artifacts fixed ids
    /// with [`artifact`](Self::artifact) instead, so that a re-run replaces what the first run made.
    pub async fn text_artifact(&self, name: &str, text: impl Into<String>) -> Result<(), Stopped> {
        let mut artifact = Artifact::new(fresh_artifact_id(), vec![Part::text(text)]);
        artifact.name = Some(name.to_owned());
        self.artifact(artifact).await
    }

    /// One chunk of an artifact, with the protocol's own flags.
    pub async fn artifact_update(
        &self,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    ) -> Result<(), Stopped> {
        let bytes = size::of_artifact(&artifact);
        // The run stamps the ordinal.
        let update = ArtifactUpdate { artifact, append, last_chunk, ordinal: 0, metadata: None };
        self.say(Said::Event(EventBody::Artifact(update)), bytes).await
    }

    /// A text artifact that grows as it is written.
    pub fn stream_text(&self, name: &str) -> TextStream {
        self.stream_text_as(fresh_artifact_id(), Some(name))
    }

    /// The same under an id of the agent's choice, which replaces the artifact of that id if there is one: what an
    /// agent that may be re-run needs, so that the second run does not leave the first one's half beside its own.
    pub fn stream_text_as(&self, artifact: ArtifactId, name: Option<&str>) -> TextStream {
        TextStream { turn: self.clone(), artifact, name: name.map(str::to_owned), begun: false }
    }

    /// Asks the client for input. Await it to get the answer within this turn, or return to end the turn:
    /// the answer then starts the next one.
    pub fn ask(&self, text: impl Into<String>) -> Question {
        self.interrupt(TaskState::InputRequired, text.into())
    }

    /// Asks the client to authorise something out of band. Await it to go on once a message says so, or return.
    pub fn require_auth(&self, text: impl Into<String>) -> Question {
        self.interrupt(TaskState::AuthRequired, text.into())
    }

    fn interrupt(&self, state: TaskState, text: String) -> Question {
        let bytes = text.len();
        let body = self.status_body(state, Some(vec![Part::text(text)]));
        self.inner.desk.say(Said::Event(body), bytes);
        Question { turn: self.clone() }
    }

    /// Goes on working after [`require_auth`](Self::require_auth) when the credential came by another way.
    pub async fn resume(&self) -> Result<(), Stopped> {
        self.status(TaskState::Working, None).await
    }

    /// Ends the task as completed.
    pub async fn complete(&self) -> Result<(), Stopped> {
        self.status(TaskState::Completed, None).await
    }

    /// Ends the task as completed, with a closing message. Results belong into artifacts.
    pub async fn complete_with(&self, text: impl Into<String>) -> Result<(), Stopped> {
        self.status(TaskState::Completed, Some(vec![Part::text(text)])).await
    }

    /// Ends the task as failed, with the reason.
    pub async fn fail(&self, reason: impl Into<String>) -> Result<(), Stopped> {
        self.status(TaskState::Failed, Some(vec![Part::text(reason)])).await
    }

    /// Ends the task as rejected: the agent will not do this.
    pub async fn reject(&self, reason: impl Into<String>) -> Result<(), Stopped> {
        self.status(TaskState::Rejected, Some(vec![Part::text(reason)])).await
    }

    /// A message the client sent while the turn was running, if one waits. Those not taken start the next turn.
    pub fn next_message(&self) -> Option<Message> {
        self.inner.desk.take_message(None)
    }

    /// A status update of any shape.
    pub async fn status(&self, state: TaskState, parts: Option<Vec<Part>>) -> Result<(), Stopped> {
        let bytes = parts.as_deref().map_or(0, size::of_parts);
        self.say(Said::Event(self.status_body(state, parts)), bytes).await
    }

    fn status_body(&self, state: TaskState, parts: Option<Vec<Part>>) -> EventBody {
        let message = parts.map(|parts| agent_message(self.task_id(), self.context_id(), parts));
        EventBody::Status(StatusUpdate { state, message, metadata: None })
    }

    async fn say(&self, said: Said, bytes: usize) -> Result<(), Stopped> {
        let desk = &self.inner.desk;
        if !desk.say(said, bytes) {
            return Err(Stopped);
        }
        desk.room().await;
        Ok(())
    }
}

/// A message of the agent's, with the ids the protocol wants on it.
pub(crate) fn agent_message(task: &TaskId, context: &ContextId, parts: Vec<Part>) -> Message {
    Message {
        task_id: Some(task.clone()),
        context_id: Some(context.clone()),
        ..Message::new(fresh_message_id(), Role::Agent, parts)
    }
}

/// A question put to the client. See [`Turn::ask`].
pub struct Question {
    turn: Turn,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Question").field(&self.turn).finish()
    }
}

impl IntoFuture for Question {
    type Output = Result<Message, Stopped>;
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
                    return Err(Stopped);
                }
                desk.message_or_stop().await;
            }
        })
    }
}

/// Text written bit by bit into one artifact. Bits that come faster than they can be stored are merged.
#[derive(Debug)]
pub struct TextStream {
    turn: Turn,
    artifact: ArtifactId,
    name: Option<String>,
    begun: bool,
}

impl TextStream {
    pub async fn write(&mut self, text: &str) -> Result<(), Stopped> {
        // A token longer than one event may hold goes down in pieces.
        for piece in size::pieces(text, self.turn.inner.max_event_bytes / 2) {
            self.lay(piece, false).await?;
        }
        Ok(())
    }

    /// Marks the artifact as whole.
    pub async fn finish(mut self) -> Result<(), Stopped> {
        self.lay("", true).await
    }

    async fn lay(&mut self, text: &str, last: bool) -> Result<(), Stopped> {
        let append = std::mem::replace(&mut self.begun, true);
        let (artifact, name) = (self.artifact.clone(), self.name.take());
        let chunk = TextChunk { artifact, name, text: text.to_owned(), append, last };
        self.turn.say(Said::Text(chunk), size::of_text(text)).await
    }
}
