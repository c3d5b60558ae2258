//! A turn as the agent sees it: the message, and the methods to answer with.

mod question;
mod text_stream;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use baton_protocol::domain::{
    ActiveExtension, Artifact, ArtifactId, ArtifactUpdate, ContextId, EventBody, JsonObject, Message, Part,
    Role, Scope, SendDetails, StatusUpdate, Task, TaskId, TaskState, TraceContext,
};
use baton_protocol::lifecycle::Snapshot;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

pub use question::Question;
pub use text_stream::TextStream;

use super::Inner as Engine;
use super::agent::AgentError;
use super::clock::{fresh_artifact_id, fresh_message_id};
use super::content::{Content, data_part};
use super::desk::{Desk, Output, Stop};
use super::input::{File, InputError, ReadMessage};
use super::size;
use crate::store::StoreError;

/// Pause before a failed read of the store is repeated.
const STORE_PAUSE: Duration = Duration::from_millis(250);

/// The turn is over: canceled, out of time, or this server no longer has the task. The agent should just return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the turn is over")]
pub struct Stopped;

/// One turn of a task. Cheap to clone; pass clones to the parts of your agent.
///
/// The methods that send something put events into a buffer; the server stores them in order, several at once if it can.
/// They wait only while the buffer is full (`Options::max_event_bytes`). They fail only when the turn is over
/// ([`AgentError::is_stop`]), so `?` is all the error handling they need.
///
/// | to send | method |
/// |---|---|
/// | progress, or any other message, and go on working | [`progress`](Self::progress), [`say`](Self::say) |
/// | a result | [`text_artifact`](Self::text_artifact), [`artifact_json`](Self::artifact_json), [`artifact_file`](Self::artifact_file), [`artifact`](Self::artifact) |
/// | a result piece by piece | [`stream_text`](Self::stream_text), [`artifact_update`](Self::artifact_update) |
/// | a question | [`ask`](Self::ask), [`require_auth`](Self::require_auth) |
/// | the end | [`complete`](Self::complete), [`complete_with`](Self::complete_with), [`fail`](Self::fail), [`reject`](Self::reject), or just return |
/// | any other status of the protocol | [`status`](Self::status) |
///
/// The client's message is in [`text`](Self::text), [`data`](Self::data), [`files`](Self::files) and
/// [`message`](Self::message); messages that it sends during the turn come from [`next_message`](Self::next_message).
#[derive(Clone)]
pub struct Turn {
    inner: Arc<Inner>,
}

struct Inner {
    desk: Arc<Desk>,
    scope: Scope,
    start: Arc<Snapshot>,
    /// Index, in the task's history, of the message that started the turn.
    message: usize,
    references: Vec<Task>,
    /// Only in a re-run: for reading what the task was before the interrupted attempt.
    engine: Option<Weak<Engine>>,
    trace: Option<TraceContext>,
    max_event_bytes: usize,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("task", self.task_id()).field("attempt", &self.attempt()).finish()
    }
}

/// The message, its sender, and the task.
impl Turn {
    #[allow(clippy::too_many_arguments, reason = "one caller, which has all of it")]
    pub(crate) fn new(
        desk: Arc<Desk>,
        scope: Scope,
        message: usize,
        start: Arc<Snapshot>,
        references: Vec<Task>,
        engine: Option<Weak<Engine>>,
        trace: Option<TraceContext>,
        max_event_bytes: usize,
    ) -> Self {
        let inner = Inner { desk, scope, message, start, references, engine, trace, max_event_bytes };
        Turn { inner: Arc::new(inner) }
    }

    /// Index of the message that started the task's current turn: the user's last message.
    pub(super) fn begun_by(task: &Task) -> Option<usize> {
        task.history.iter().rposition(|message| message.role == Role::User)
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.inner.scope
    }

    /// The message that started the turn.
    pub fn message(&self) -> &Message {
        &self.inner.start.task.history[self.inner.message]
    }

    /// The media types that the caller accepts; empty if it gave none. At least one of the skill's output modes is among
    /// them; otherwise the message would have been refused.
    pub fn accepted_output_modes(&self) -> &[String] {
        &self.inner.start.details.accepted_output_modes
    }

    /// The metadata of the request that brought the message. The message's own metadata is separate.
    pub fn request_metadata(&self) -> Option<&JsonObject> {
        self.inner.start.details.metadata.as_ref()
    }

    /// The extensions that the request activated: those that it named and that the card declares, with their parameters there.
    /// What a message says for an extension is in the message's metadata.
    pub fn extensions(&self) -> &[ActiveExtension] {
        &self.inner.start.details.extensions
    }

    /// What the request that brought a message said in addition to it. For the message that started the turn, and for those
    /// taken since (from [`next_message`](Self::next_message), or as answers).
    pub fn sent_with(&self, message: &Message) -> SendDetails {
        let taken = self.inner.desk.sent_with(message);
        let started = || (message == self.message()).then(|| self.details().clone());
        taken.or_else(started).unwrap_or_default()
    }

    pub(super) fn details(&self) -> &SendDetails {
        &self.inner.start.details
    }

    /// The message's text parts, joined.
    pub fn text(&self) -> String {
        self.message().text()
    }

    /// The message's first data part as a value of your own type. With `?`, a message without fitting data fails the task,
    /// and the reason tells the client which member was wrong.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        self.message().data()
    }

    /// The message's files, in order.
    pub fn files(&self) -> impl Iterator<Item = File<'_>> {
        self.message().files()
    }

    /// The task as it was when the turn started, history included.
    pub fn task(&self) -> &Task {
        &self.inner.start.task
    }

    /// The task's id.
    pub fn task_id(&self) -> &TaskId {
        &self.inner.start.task.id
    }

    /// The conversation the task belongs to.
    pub fn context_id(&self) -> &ContextId {
        &self.inner.start.task.context_id
    }

    /// The id of the skill that was chosen, for an agent that serves several skills.
    pub fn skill(&self) -> &str {
        self.inner.start.skill.as_deref().unwrap_or_default()
    }

    /// The caller, as the authenticator named it; `anonymous` if the caller is not authenticated.
    pub fn owner(&self) -> &str {
        &self.inner.scope.owner
    }

    /// The tenant that the caller named; empty if it named none.
    pub fn tenant(&self) -> &str {
        &self.inner.scope.tenant
    }

    /// 1 for the task's first turn; one more for every further turn and for every re-run after a crash.
    pub fn attempt(&self) -> u32 {
        self.inner.start.attempts
    }

    /// True on the task's first turn: the message created the task.
    pub fn is_first(&self) -> bool {
        self.task().history.iter().filter(|message| message.role == Role::User).count() <= 1
    }

    /// The caller's own tasks that the message refers to.
    pub fn references(&self) -> &[Task] {
        &self.inner.references
    }

    /// A message that the client sent during the turn, if there is one. Messages that are not taken start the next turn.
    pub fn next_message(&self) -> Option<Message> {
        self.inner.desk.take_message(None)
    }

    /// The turn's trace context, for the `traceparent` and `tracestate` headers of calls that the agent makes. If this server
    /// exports no traces, it is the context that the task's sender gave, if any.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.inner.trace.as_ref()
    }

    /// Canceled when the turn should stop; [`stop_reason`](Self::stop_reason) tells why.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.desk.stop
    }

    /// Why the turn should stop; `None` if it should not.
    pub fn stop_reason(&self) -> Option<Stop> {
        self.inner.desk.stop_reason()
    }

    /// Sleeps. When the turn should stop, it returns early, with an error for `?`.
    pub async fn sleep(&self, time: Duration) -> Result<(), AgentError> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.cancellation().cancelled() => Err(Stopped.into()),
        }
    }
}

/// Methods that send something.
impl Turn {
    /// Reports progress: a status update that leaves the task working.
    pub async fn progress(&self, text: impl Into<Content>) -> Result<(), AgentError> {
        self.say(text).await
    }

    /// Sends a message and leaves the task working. Results belong in artifacts.
    pub async fn say(&self, content: impl Into<Content>) -> Result<(), AgentError> {
        self.status(TaskState::Working, Some(content.into())).await
    }

    /// Sends a whole artifact; it creates or replaces the one with that id.
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), AgentError> {
        self.artifact_update(artifact, false, true).await
    }

    /// A text artifact with a new id. An agent that may be re-run after a crash should use [`artifact`](Self::artifact) with
    /// fixed ids instead, so that a re-run replaces the artifacts of the first run.
    pub async fn text_artifact(&self, name: &str, text: impl Into<String>) -> Result<(), AgentError> {
        self.artifact(named(name, Part::text(text))).await
    }

    /// An artifact of structured data, with a new id.
    pub async fn artifact_json(&self, name: &str, value: &impl Serialize) -> Result<(), AgentError> {
        let part = data_part(value)?;
        self.artifact(named(name, part)).await
    }

    /// A file as an artifact, with a new id.
    pub async fn artifact_file(
        &self,
        name: &str,
        media_type: &str,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<(), AgentError> {
        self.artifact(named(name, Part::raw(bytes.into(), media_type, name))).await
    }

    /// One chunk of an artifact, with the protocol's flags.
    pub async fn artifact_update(
        &self,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    ) -> Result<(), AgentError> {
        let bytes = size::of_artifact(&artifact);
        self.put(Output::Event(EventBody::Artifact(update(artifact, append, last_chunk))), bytes).await
    }

    /// A text artifact that grows as it is written.
    pub fn stream_text(&self, name: &str) -> TextStream {
        self.stream_text_as(fresh_artifact_id(), Some(name))
    }

    /// The same with a given id; it replaces the artifact with that id if there is one. Agents that may be re-run need this:
    /// otherwise the unfinished artifact of the first run would remain beside the new one.
    pub fn stream_text_as(&self, artifact: ArtifactId, name: Option<&str>) -> TextStream {
        let name = name.map(str::to_owned);
        TextStream { turn: self.clone(), artifact, name, begun: false, joins: false }
    }

    /// Adds text to an existing artifact that ends with text, whichever turn made it. It must not have had its last chunk.
    pub fn more_text(&self, artifact: ArtifactId, name: Option<&str>) -> TextStream {
        let name = name.map(str::to_owned);
        TextStream { turn: self.clone(), artifact, name, begun: true, joins: true }
    }

    /// For an agent that starts over after a crash interrupted its last attempt: restores the artifacts to what they were
    /// at the user's last message, and returns them. Artifacts that were added since are emptied, since nothing can be
    /// removed from a task. If there was no such attempt, this changes nothing.
    pub async fn start_over(&self) -> Result<Vec<Arc<Artifact>>, AgentError> {
        let now = &self.inner.start;
        let mut artifacts = now.task.artifacts.clone();
        let Some(engine) = self.inner.engine.as_ref().filter(|_| !artifacts.is_empty()) else {
            return Ok(artifacts);
        };
        let before = self.before(engine).await?;
        // Artifacts are never removed from the list, so an index always means the same artifact. New ones come last, and are
        // emptied first.
        for at in (0..artifacts.len()).rev() {
            let sealed = before.is_sealed(at);
            match before.task.artifacts.get(at) {
                Some(was) if *was == artifacts[at] && sealed == now.is_sealed(at) => {}
                Some(was) => {
                    self.put_back(Artifact::clone(was), sealed).await?;
                    artifacts[at] = Arc::clone(was);
                }
                None => {
                    let mut empty = Artifact::new(artifacts[at].id.clone(), vec![Part::text("")]);
                    empty.name.clone_from(&artifacts[at].name);
                    self.put_back(empty, true).await?;
                }
            }
        }
        artifacts.truncate(before.task.artifacts.len());
        Ok(artifacts)
    }

    /// The task as of the user's last message. While the store fails it is tried again, and the task does not fail.
    async fn before(&self, engine: &Weak<Engine>) -> Result<Snapshot, AgentError> {
        loop {
            let engine = engine.upgrade().ok_or(Stopped)?;
            match engine.at_last_message(&self.inner.scope, &self.inner.start).await {
                Err(StoreError::Full(_) | StoreError::Unavailable(_)) => self.sleep(STORE_PAUSE).await?,
                Err(error) => {
                    tracing::error!(task.id = %self.task_id(), %error, "a task's log could not be read");
                    return Err(AgentError::new("What was there before the last attempt could not be read"));
                }
                Ok(before) => return Ok(before),
            }
        }
    }

    async fn put_back(&self, artifact: Artifact, last_chunk: bool) -> Result<(), AgentError> {
        let bytes = size::of_artifact(&artifact);
        self.put(Output::PutBack(update(artifact, false, last_chunk)), bytes).await
    }

    /// Asks the client for input. Await the question to get the answer in this turn, or return to end the turn; the answer
    /// then starts the next one.
    pub fn ask(&self, question: impl Into<Content>) -> Question {
        self.interrupt(TaskState::InputRequired, question.into())
    }

    /// Asks the client to authorize something outside of this protocol. Await it to continue with the client's next message,
    /// or return.
    pub fn require_auth(&self, what: impl Into<Content>) -> Question {
        self.interrupt(TaskState::AuthRequired, what.into())
    }

    fn interrupt(&self, state: TaskState, content: Content) -> Question {
        let bytes = size::of_parts(&content.parts);
        let body = self.status_body(state, Some(content));
        self.inner.desk.put(Output::Event(body), bytes);
        Question { turn: self.clone() }
    }

    /// Sets the task to working again after [`require_auth`](Self::require_auth), when the credential came another way.
    pub async fn resume(&self) -> Result<(), AgentError> {
        self.status(TaskState::Working, None).await
    }

    /// Ends the task as completed.
    pub async fn complete(&self) -> Result<(), AgentError> {
        self.status(TaskState::Completed, None).await
    }

    /// Ends the task as completed, with a closing message. Results belong in artifacts.
    pub async fn complete_with(&self, content: impl Into<Content>) -> Result<(), AgentError> {
        self.status(TaskState::Completed, Some(content.into())).await
    }

    /// Ends the task as failed, with the reason.
    pub async fn fail(&self, reason: impl Into<Content>) -> Result<(), AgentError> {
        self.status(TaskState::Failed, Some(reason.into())).await
    }

    /// Ends the task as rejected: the agent will not do this.
    pub async fn reject(&self, reason: impl Into<Content>) -> Result<(), AgentError> {
        self.status(TaskState::Rejected, Some(reason.into())).await
    }

    /// Any status update. One that the task's current state does not allow fails the task.
    pub async fn status(&self, state: TaskState, content: Option<Content>) -> Result<(), AgentError> {
        let bytes = content.as_ref().map_or(0, |content| size::of_parts(&content.parts));
        self.put(Output::Event(self.status_body(state, content)), bytes).await
    }

    fn status_body(&self, state: TaskState, content: Option<Content>) -> EventBody {
        let message = content.map(|content| agent_message(self.task_id(), self.context_id(), content));
        EventBody::Status(StatusUpdate { state, message, metadata: None })
    }

    async fn put(&self, output: Output, bytes: usize) -> Result<(), AgentError> {
        let desk = &self.inner.desk;
        if !desk.put(output, bytes) {
            return Err(Stopped.into());
        }
        desk.wait_for_space().await;
        Ok(())
    }
}

/// The run sets the ordinal.
fn update(artifact: Artifact, append: bool, last_chunk: bool) -> ArtifactUpdate {
    ArtifactUpdate { artifact, append, joins: false, last_chunk, ordinal: 0, metadata: None }
}

fn named(name: &str, part: Part) -> Artifact {
    let mut artifact = Artifact::new(fresh_artifact_id(), vec![part]);
    artifact.name = Some(name.to_owned());
    artifact
}

/// A message from the agent, with the ids that the protocol requires.
pub(crate) fn agent_message(task: &TaskId, context: &ContextId, content: impl Into<Content>) -> Message {
    let Content { parts, metadata, extensions } = content.into();
    Message {
        task_id: Some(task.clone()),
        context_id: Some(context.clone()),
        metadata,
        extensions,
        ..Message::new(fresh_message_id(), Role::Agent, parts)
    }
}
