//! A turn, as the agent sees it: what was asked, and the verbs to answer with.

mod question;
mod text_stream;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, EventBody, JsonObject, Message, Part, Role, Scope,
    SendDetails, StatusUpdate, Task, TaskId, TaskState, TraceContext,
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
use super::desk::{Desk, Said, Stop};
use super::input::{File, InputError, ReadMessage};
use super::size;
use crate::store::StoreError;

/// Between two looks at a store that fails.
const STORE_PAUSE: Duration = Duration::from_millis(250);

/// The turn is over: canceled, out of time, or no longer this server's. Just return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the turn is over")]
pub struct Stopped;

/// One turn of a task. Cheap to clone; hand it to whatever does the work.
///
/// The verbs lay events on a desk; the run writes them in order, as many at once as it can. They wait only
/// when more lies there than one event may hold. They fail only when the turn is over
/// ([`AgentError::is_stop`]), so `?` is all they need, or nothing at all on an agent's last line.
///
/// | to say | verb |
/// |---|---|
/// | how far it is, or anything else, and go on | [`progress`](Self::progress), [`say`](Self::say) |
/// | a result | [`text_artifact`](Self::text_artifact), [`artifact_json`](Self::artifact_json), [`artifact_file`](Self::artifact_file), [`artifact`](Self::artifact) |
/// | a result as it comes into being | [`stream_text`](Self::stream_text), [`artifact_update`](Self::artifact_update) |
/// | a question | [`ask`](Self::ask), [`require_auth`](Self::require_auth) |
/// | the end | [`complete`](Self::complete), [`complete_with`](Self::complete_with), [`fail`](Self::fail), [`reject`](Self::reject), or just return |
/// | anything the protocol has words for | [`status`](Self::status) |
///
/// What the client said is in [`text`](Self::text), [`data`](Self::data), [`files`](Self::files) and
/// [`message`](Self::message); what it says meanwhile comes by [`next_message`](Self::next_message).
#[derive(Clone)]
pub struct Turn {
    inner: Arc<Inner>,
}

struct Inner {
    desk: Arc<Desk>,
    scope: Scope,
    start: Arc<Snapshot>,
    /// Where the message that started the turn stands in the task's history.
    message: usize,
    references: Vec<Task>,
    /// Of a re-run: who can tell what was there before.
    engine: Option<Weak<Engine>>,
    trace: Option<TraceContext>,
    max_event_bytes: usize,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("task", self.task_id()).field("attempt", &self.attempt()).finish()
    }
}

/// What was asked, by whom, and what is known about it.
impl Turn {
    #[allow(clippy::too_many_arguments, reason = "all of it is the turn's, and one caller has it")]
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

    /// The message that started the task's turn is the last that its user said.
    pub(super) fn begun_by(task: &Task) -> Option<usize> {
        task.history.iter().rposition(|said| said.role == Role::User)
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.inner.scope
    }

    /// The message that started the turn.
    pub fn message(&self) -> &Message {
        &self.inner.start.task.history[self.inner.message]
    }

    /// The media types the caller takes; empty when it did not say. It takes something of what the skill declares, or
    /// the turn would not have begun.
    pub fn accepted_output_modes(&self) -> &[String] {
        &self.inner.start.details.accepted_output_modes
    }

    /// The metadata of the request that brought the message, as opposed to the message's own.
    pub fn request_metadata(&self) -> Option<&JsonObject> {
        self.inner.start.details.metadata.as_ref()
    }

    /// What the request that brought a message said beside it: of the message that started the turn, or of one that was
    /// taken since ([`next_message`](Self::next_message), an answer).
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

    /// The message's first data part as a value of a type of your own. With `?` a message that does not hold one fails
    /// the task, and the client reads which member was wrong.
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

    /// The id of the skill that was chosen, for an agent behind several.
    pub fn skill(&self) -> &str {
        self.inner.start.skill.as_deref().unwrap_or_default()
    }

    /// Who is asking: the caller as the authenticator knows it, `anonymous` without one.
    pub fn owner(&self) -> &str {
        &self.inner.scope.owner
    }

    /// The tenant the caller named; empty without one.
    pub fn tenant(&self) -> &str {
        &self.inner.scope.tenant
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

    /// A message the client sent while the turn was running, if one waits. Those not taken start the next turn.
    pub fn next_message(&self) -> Option<Message> {
        self.inner.desk.take_message(None)
    }

    /// The turn's place in its trace, for the `traceparent` and `tracestate` of whatever the agent calls. Where
    /// this server records no traces it is the place the task's sender gave, if it gave one.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.inner.trace.as_ref()
    }

    /// Fires when the turn should stop; [`stop_reason`](Self::stop_reason) says why.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.desk.stop
    }

    /// Why the turn should stop, once it should.
    pub fn stop_reason(&self) -> Option<Stop> {
        self.inner.desk.stop_reason()
    }

    /// Waits; ends early, with an error to return, when the turn should stop.
    pub async fn sleep(&self, time: Duration) -> Result<(), AgentError> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.cancellation().cancelled() => Err(Stopped.into()),
        }
    }
}

/// What there is to say.
impl Turn {
    /// Says how far the work is: a status update that leaves the task working.
    pub async fn progress(&self, text: impl Into<Content>) -> Result<(), AgentError> {
        self.say(text).await
    }

    /// Says something, and goes on working. Results belong into artifacts.
    pub async fn say(&self, content: impl Into<Content>) -> Result<(), AgentError> {
        self.status(TaskState::Working, Some(content.into())).await
    }

    /// Hands over a whole artifact, creating or replacing the one of that id.
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), AgentError> {
        self.artifact_update(artifact, false, true).await
    }

    /// A text artifact under a fresh id. An agent that may be re-run after a crash gives its artifacts fixed ids
    /// with [`artifact`](Self::artifact) instead, so that a re-run replaces what the first run made.
    pub async fn text_artifact(&self, name: &str, text: impl Into<String>) -> Result<(), AgentError> {
        self.artifact(named(name, Part::text(text))).await
    }

    /// An artifact of structured data, under a fresh id.
    pub async fn artifact_json(&self, name: &str, value: &impl Serialize) -> Result<(), AgentError> {
        let part = data_part(value)?;
        self.artifact(named(name, part)).await
    }

    /// A file as an artifact, under a fresh id.
    pub async fn artifact_file(
        &self,
        name: &str,
        media_type: &str,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<(), AgentError> {
        self.artifact(named(name, Part::raw(bytes.into(), media_type, name))).await
    }

    /// One chunk of an artifact, with the protocol's own flags.
    pub async fn artifact_update(
        &self,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    ) -> Result<(), AgentError> {
        let bytes = size::of_artifact(&artifact);
        self.lay(Said::Event(EventBody::Artifact(update(artifact, append, last_chunk))), bytes).await
    }

    /// A text artifact that grows as it is written.
    pub fn stream_text(&self, name: &str) -> TextStream {
        self.stream_text_as(fresh_artifact_id(), Some(name))
    }

    /// The same under an id of the agent's choice, which replaces the artifact of that id if there is one: what an
    /// agent that may be re-run needs, so that the second run does not leave the first one's half beside its own.
    pub fn stream_text_as(&self, artifact: ArtifactId, name: Option<&str>) -> TextStream {
        let name = name.map(str::to_owned);
        TextStream { turn: self.clone(), artifact, name, begun: false, joins: false }
    }

    /// More text for an artifact that ends in text, whichever turn made it. It must be there, without its last chunk.
    pub fn more_text(&self, artifact: ArtifactId, name: Option<&str>) -> TextStream {
        let name = name.map(str::to_owned);
        TextStream { turn: self.clone(), artifact, name, begun: true, joins: true }
    }

    /// For an agent that begins anew when a crash cut its last attempt off: puts the artifacts back to what they were when
    /// the user last spoke, and answers those. What came since is emptied, since nothing can be taken out of a task.
    /// Without such an attempt there is nothing to do.
    pub async fn start_over(&self) -> Result<Vec<Arc<Artifact>>, AgentError> {
        let now = &self.inner.start;
        let mut artifacts = now.task.artifacts.clone();
        let Some(engine) = self.inner.engine.as_ref().filter(|_| !artifacts.is_empty()) else {
            return Ok(artifacts);
        };
        let before = self.before(engine).await?;
        // No artifact ever leaves the list, so a place in it stands for the artifact; what is new stands behind what is
        // not, and is emptied first.
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

    /// The task as it was when the user last spoke. A store that fails for a while does not fail the task.
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
        self.lay(Said::PutBack(update(artifact, false, last_chunk)), bytes).await
    }

    /// Asks the client for input. Await it to get the answer within this turn, or return to end the turn:
    /// the answer then starts the next one.
    pub fn ask(&self, question: impl Into<Content>) -> Question {
        self.interrupt(TaskState::InputRequired, question.into())
    }

    /// Asks the client to authorise something out of band. Await it to go on once a message says so, or return.
    pub fn require_auth(&self, what: impl Into<Content>) -> Question {
        self.interrupt(TaskState::AuthRequired, what.into())
    }

    fn interrupt(&self, state: TaskState, content: Content) -> Question {
        let bytes = size::of_parts(&content.parts);
        let body = self.status_body(state, Some(content));
        self.inner.desk.say(Said::Event(body), bytes);
        Question { turn: self.clone() }
    }

    /// Goes on working after [`require_auth`](Self::require_auth) when the credential came by another way.
    pub async fn resume(&self) -> Result<(), AgentError> {
        self.status(TaskState::Working, None).await
    }

    /// Ends the task as completed.
    pub async fn complete(&self) -> Result<(), AgentError> {
        self.status(TaskState::Completed, None).await
    }

    /// Ends the task as completed, with a closing message. Results belong into artifacts.
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

    /// A status update of any shape. One the task's state does not allow fails the task.
    pub async fn status(&self, state: TaskState, content: Option<Content>) -> Result<(), AgentError> {
        let bytes = content.as_ref().map_or(0, |content| size::of_parts(&content.parts));
        self.lay(Said::Event(self.status_body(state, content)), bytes).await
    }

    fn status_body(&self, state: TaskState, content: Option<Content>) -> EventBody {
        let message = content.map(|content| agent_message(self.task_id(), self.context_id(), content));
        EventBody::Status(StatusUpdate { state, message, metadata: None })
    }

    async fn lay(&self, said: Said, bytes: usize) -> Result<(), AgentError> {
        let desk = &self.inner.desk;
        if !desk.say(said, bytes) {
            return Err(Stopped.into());
        }
        desk.room().await;
        Ok(())
    }
}

/// The run stamps the ordinal.
fn update(artifact: Artifact, append: bool, last_chunk: bool) -> ArtifactUpdate {
    ArtifactUpdate { artifact, append, joins: false, last_chunk, ordinal: 0, metadata: None }
}

fn named(name: &str, part: Part) -> Artifact {
    let mut artifact = Artifact::new(fresh_artifact_id(), vec![part]);
    artifact.name = Some(name.to_owned());
    artifact
}

/// A message of the agent's, with the ids the protocol wants on it.
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
