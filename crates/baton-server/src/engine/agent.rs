//! What an agent's author writes. Two kinds: one that works on tasks, and one that just answers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::{
    AgentSkill, ContextId, JsonObject, Message, Part, Role, Scope, SendDetails, TraceContext,
};
use serde::de::DeserializeOwned;

use super::clock::{fresh_context_id, fresh_message_id};
use super::content::Content;
use super::input::{File, InputError, ReadMessage as _};
use super::turn::{Stopped, Turn};

/// An agent that works on tasks: called once per turn, with the message that started it.
///
/// Any `async fn(Turn) -> Result<(), AgentError>` is one. Returning `Ok` without having ended the turn
/// completes the task; an error fails it, and its text is the reason the client reads. A turn that was told to stop
/// ([`Turn::cancellation`]) should return `Err(Stopped)`: a cancel then cancels the task, and a shutdown leaves it to
/// the next start.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no agent that works on tasks",
    label = "not an `async fn(Turn) -> Result<(), AgentError>`",
    note = "an `async fn(Asked) -> Result<_, AgentError>` answers with a message: give it to `message_skill` or `Server::agent`"
)]
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// One turn.
    async fn run(&self, turn: Turn) -> Result<(), AgentError>;

    /// May a turn that a crash cut short be run again? If not, its task fails with a reason. An agent that begins anew
    /// undoes what the attempt before made with [`Turn::start_over`].
    fn rerunnable(&self) -> bool {
        false
    }
}

#[async_trait]
impl<F, Fut> Agent for F
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), AgentError>> + Send + 'static,
{
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        self(turn).await
    }
}

/// An agent that answers a message with a message: no task, nothing to follow.
///
/// Any `async fn(Asked) -> Result<R, AgentError>` is one, if `R` can become a [`Content`]: text, parts, a message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no agent that answers with messages",
    label = "not an `async fn(Asked) -> Result<impl Into<Content>, AgentError>`",
    note = "an `async fn(Turn) -> Result<(), AgentError>` works on tasks: give it to `task_skill` or `Server::agent`"
)]
#[async_trait]
pub trait MessageAgent: Send + Sync + 'static {
    /// The answer. An error is one for the client, too: it reads the text.
    async fn reply(&self, asked: Asked) -> Result<Content, AgentError>;
}

#[async_trait]
impl<F, Fut, R> MessageAgent for F
where
    F: Fn(Asked) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, AgentError>> + Send + 'static,
    R: Into<Content>,
{
    async fn reply(&self, asked: Asked) -> Result<Content, AgentError> {
        self(asked).await.map(Into::into)
    }
}

/// What a message agent gets to see.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asked {
    /// The message to answer.
    pub message: Message,
    /// The media types the caller takes; empty when it did not say.
    pub accepted_output_modes: Vec<String>,
    /// The metadata of the request, as opposed to the message's own.
    pub request_metadata: Option<JsonObject>,
    /// The message's context, or the one made for it.
    pub context_id: ContextId,
    /// Who is asking: the caller as the authenticator knows it, `anonymous` without one.
    pub owner: Arc<str>,
    /// The tenant the caller named; empty without one.
    pub tenant: Arc<str>,
    /// The answer's place in its trace, for the `traceparent` and `tracestate` of whatever the agent calls.
    pub trace: Option<TraceContext>,
}

impl Asked {
    pub(super) fn new(
        scope: &Scope,
        message: Message,
        details: SendDetails,
        context_id: ContextId,
        trace: Option<TraceContext>,
    ) -> Self {
        let (owner, tenant) = (Arc::clone(&scope.owner), Arc::clone(&scope.tenant));
        let SendDetails { accepted_output_modes, metadata: request_metadata } = details;
        Asked { message, accepted_output_modes, request_metadata, context_id, owner, tenant, trace }
    }

    /// A question by nobody in particular, to try an agent without a server.
    pub fn of_text(text: &str) -> Self {
        let scope = Scope::new("", "", "anonymous");
        let message = Message::new(fresh_message_id(), Role::User, vec![Part::text(text)]);
        Self::new(&scope, message, SendDetails::default(), fresh_context_id(), None)
    }

    /// The message's text parts, joined.
    pub fn text(&self) -> String {
        self.message.text()
    }

    /// The message's first data part as a value of a type of your own.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        self.message.data()
    }

    /// The message's files, in order.
    pub fn files(&self) -> impl Iterator<Item = File<'_>> {
        self.message.files()
    }
}

/// A skill: what the card says about it, and the logic behind it.
#[derive(Clone)]
pub struct Skill {
    /// What the card says about it.
    pub card: AgentSkill,
    /// What it does.
    pub logic: Logic,
}

/// `replies = task` or `replies = message`.
#[derive(Clone)]
#[non_exhaustive]
pub enum Logic {
    /// Works on tasks.
    Task(Arc<dyn Agent>),
    /// Answers messages with messages.
    Message(Arc<dyn MessageAgent>),
}

/// Either kind of agent, for where both are taken. `Kind` only keeps the two apart; the compiler finds it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no agent",
    label = "neither `async fn(Turn) -> Result<(), AgentError>` nor `async fn(Asked) -> Result<_, AgentError>`",
    note = "an agent that takes a `Turn` works on a task and returns `Result<(), AgentError>`",
    note = "an agent that takes an `Asked` answers with a message and returns `Result<_, AgentError>` of text, parts or a message",
    note = "the parameter of a closure needs its type: `|turn: Turn| async move {{ … }}`"
)]
pub trait IntoLogic<Kind> {
    /// The logic of a skill.
    fn into_logic(self) -> Logic;
}

/// Marks an [`Agent`] in [`IntoLogic`].
#[derive(Debug)]
pub enum WorksOnTasks {}

/// Marks a [`MessageAgent`] in [`IntoLogic`].
#[derive(Debug)]
pub enum AnswersMessages {}

impl<A: Agent> IntoLogic<WorksOnTasks> for A {
    fn into_logic(self) -> Logic {
        Logic::Task(Arc::new(self))
    }
}

impl<A: MessageAgent> IntoLogic<AnswersMessages> for A {
    fn into_logic(self) -> Logic {
        Logic::Message(Arc::new(self))
    }
}

impl fmt::Debug for Logic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Logic::Task(_) => "replies = task",
            Logic::Message(_) => "replies = message",
        })
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skill").field("id", &self.card.id).field("logic", &self.logic).finish()
    }
}

/// Chooses the skill for a message that starts a task: its place in the list, or none that fits. Must be a function of
/// the message alone.
pub type ChooseSkill = dyn Fn(&Message, &[Skill]) -> Option<usize> + Send + Sync;

/// Why an agent gave up. Anything with a message can become one with `?`.
///
/// The verbs of a [`Turn`] fail with one only when the turn is over ([`is_stop`](Self::is_stop)), so that any of them can
/// be an agent's last line.
pub struct AgentError {
    message: String,
    is_stop: bool,
}

impl AgentError {
    /// The text is the reason the client reads.
    pub fn new(message: impl Into<String>) -> Self {
        AgentError { message: message.into(), is_stop: false }
    }

    /// Is it no fault of the agent's, but the turn that is over: canceled, out of time, or no longer this server's?
    pub fn is_stop(&self) -> bool {
        self.is_stop
    }

    /// The reason the client reads.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// Not an `Error` itself: that would forbid the conversion from every error.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for AgentError {
    fn from(error: E) -> Self {
        let error = error.into();
        AgentError { message: error.to_string(), is_stop: error.is::<Stopped>() }
    }
}
