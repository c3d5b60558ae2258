//! The traits that an agent's author implements: one for agents that work on tasks, one for agents that reply with a
//! message.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::{
    ActiveExtension, AgentSkill, ContextId, JsonObject, Message, Part, Role, Scope, SendDetails, TraceContext,
};
use serde::de::DeserializeOwned;

use super::clock::{fresh_context_id, fresh_message_id};
use super::content::Content;
use super::input::{File, InputError, ReadMessage as _};
use super::turn::{Stopped, Turn};

/// An agent that works on tasks: called once per turn, with the message that started it.
///
/// Any `async fn(Turn) -> Result<(), AgentError>` is one. Returning `Ok` without having ended the task completes it; an
/// error fails it, and its text is the reason that the client gets. An agent that is told to stop
/// ([`Turn::cancellation`]) should return `Err(Stopped)`: a cancel then cancels the task, and a shutdown leaves it to
/// the next start.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no agent that works on tasks",
    label = "not an `async fn(Turn) -> Result<(), AgentError>`",
    note = "an `async fn(Asked) -> Result<_, AgentError>` answers with a message: give it to `message_skill` or `Server::agent`"
)]
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// Executes one turn.
    async fn run(&self, turn: Turn) -> Result<(), AgentError>;

    /// Whether a turn that a crash interrupted may be run again. If not, its task fails with a reason. An agent that starts
    /// over can undo the artifacts of the interrupted attempt with [`Turn::start_over`].
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

/// An agent that replies to a message with a message, without a task.
///
/// Any `async fn(Asked) -> Result<R, AgentError>` is one, if `R` can become a [`Content`]: text, parts, a message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no agent that answers with messages",
    label = "not an `async fn(Asked) -> Result<impl Into<Content>, AgentError>`",
    note = "an `async fn(Turn) -> Result<(), AgentError>` works on tasks: give it to `task_skill` or `Server::agent`"
)]
#[async_trait]
pub trait MessageAgent: Send + Sync + 'static {
    /// The reply. The text of an error is sent to the client.
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

/// The message for a [`MessageAgent`], and what is known about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asked {
    /// The message to answer.
    pub message: Message,
    /// The media types that the caller accepts; empty if it gave none.
    pub accepted_output_modes: Vec<String>,
    /// The metadata of the request. The message's own metadata is separate.
    pub request_metadata: Option<JsonObject>,
    /// The extensions that the request activated, with the parameters on the card.
    pub extensions: Vec<ActiveExtension>,
    /// The message's context, or a new one.
    pub context_id: ContextId,
    /// The caller, as the authenticator named it; `anonymous` if the caller is not authenticated.
    pub owner: Arc<str>,
    /// The tenant that the caller named; empty if it named none.
    pub tenant: Arc<str>,
    /// The trace context, for the `traceparent` and `tracestate` headers of calls that the agent makes.
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
        let SendDetails { accepted_output_modes, metadata: request_metadata, extensions } = details;
        Asked {
            message,
            accepted_output_modes,
            request_metadata,
            extensions,
            context_id,
            owner,
            tenant,
            trace,
        }
    }

    /// A message from an anonymous caller, for testing an agent without a server.
    pub fn of_text(text: &str) -> Self {
        let scope = Scope::new("", "", "anonymous");
        let message = Message::new(fresh_message_id(), Role::User, vec![Part::text(text)]);
        Self::new(&scope, message, SendDetails::default(), fresh_context_id(), None)
    }

    /// The message's text parts, joined.
    pub fn text(&self) -> String {
        self.message.text()
    }

    /// The message's first data part as a value of your own type.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        self.message.data()
    }

    /// The message's files, in order.
    pub fn files(&self) -> impl Iterator<Item = File<'_>> {
        self.message.files()
    }
}

/// A skill: its entry on the card, and its logic.
#[derive(Clone)]
#[non_exhaustive]
pub struct Skill {
    /// Its entry on the card.
    pub card: AgentSkill,
    /// The agent that handles it.
    pub logic: Logic,
}

impl Skill {
    /// A skill with either kind of agent behind it.
    pub fn new<Kind>(card: AgentSkill, agent: impl IntoLogic<Kind>) -> Self {
        Skill { card, logic: agent.into_logic() }
    }
}

/// The logic of a skill, of either kind.
#[derive(Clone)]
#[non_exhaustive]
pub enum Logic {
    /// Works on tasks.
    Task(Arc<dyn Agent>),
    /// Answers messages with messages.
    Message(Arc<dyn MessageAgent>),
}

/// Either kind of agent, for functions that take both. `Kind` only distinguishes the two; the compiler infers it.
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

impl IntoLogic<Logic> for Logic {
    fn into_logic(self) -> Logic {
        self
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

/// Chooses the skill for a message that starts a task: its index in the list, or `None`. The result must depend on the
/// message alone.
pub(crate) type ChooseSkill = dyn Fn(&Message, &[Skill]) -> Option<usize> + Send + Sync;

/// Why an agent failed. `?` converts any error type into it.
///
/// The methods of a [`Turn`] return it only when the turn is over ([`is_stop`](Self::is_stop)), so any of them can be an
/// agent's last line.
pub struct AgentError {
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl AgentError {
    /// `message` is the reason that the client gets.
    pub fn new(message: impl Into<String>) -> Self {
        AgentError { message: message.into(), source: None }
    }

    /// Whether the turn is over, and the agent has not failed itself: canceled, out of time, or this server no longer has
    /// the task.
    pub fn is_stop(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is::<Stopped>())
    }

    /// The error that `?` made it from, if any; its type tells what went wrong.
    pub fn source(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// The reason that the client gets.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// It does not implement `Error`: then the conversion from every error type would not be possible.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for AgentError {
    fn from(error: E) -> Self {
        let source = error.into();
        AgentError { message: source.to_string(), source: Some(source) }
    }
}
