//! What an agent's author writes. Two kinds: one that works on tasks, and one that just answers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::{AgentSkill, ContextId, Message, Part};

use super::turn::Turn;

/// An agent that works on tasks: called once per turn, with the message that started it.
///
/// Any `async fn(Turn) -> Result<(), AgentError>` is one. Returning `Ok` without having ended the turn
/// completes the task; an error fails it, and its text is the reason the client reads. A turn that was told to stop
/// ([`Turn::cancellation`]) should return `Err(Stopped)`: a cancel then cancels the task, and a shutdown leaves it to
/// the next start.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    async fn run(&self, turn: Turn) -> Result<(), AgentError>;

    /// May a turn that a crash cut short be run again? If not, its task fails with a reason.
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
#[async_trait]
pub trait MessageAgent: Send + Sync + 'static {
    async fn reply(&self, asked: Asked) -> Result<Vec<Part>, AgentError>;
}

/// What a message agent gets to see.
#[derive(Debug, Clone)]
pub struct Asked {
    pub message: Message,
    /// The message's context, or the one made for it.
    pub context_id: ContextId,
}

/// A skill: what the card says about it, and the logic behind it.
#[derive(Clone)]
pub struct Skill {
    pub card: AgentSkill,
    pub logic: Logic,
}

/// `replies = task` or `replies = message`.
#[derive(Clone)]
pub enum Logic {
    Task(Arc<dyn Agent>),
    Message(Arc<dyn MessageAgent>),
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
pub type Router = dyn Fn(&Message, &[Skill]) -> Option<usize> + Send + Sync;

/// Why an agent gave up. Anything with a message can become one with `?`.
pub struct AgentError {
    message: String,
}

impl AgentError {
    pub fn new(message: impl Into<String>) -> Self {
        AgentError { message: message.into() }
    }

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
        AgentError { message: error.into().to_string() }
    }
}
