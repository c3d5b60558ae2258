//! The demo agent: echoes messages, and on request shows every state of a task.
//!
//! | file | holds |
//! |---|---|
//! | `choice` | which text or messageId selects which behaviour |
//! | `behaviour` | what each behaviour does |
//! | `phrases` | exact answers for conformance kits that select a behaviour by messageId |

mod behaviour;
mod choice;
mod phrases;

use async_trait::async_trait;
use baton_protocol::domain::{AgentCapabilities, AgentCard, AgentSkill, Message};
use baton_server::{Agent, AgentError, Asked, Content, MessageAgent, Mount, Skill, Turn};

use choice::{Behaviour, Chosen};
use phrases::Phrase;

const NAME: &str = "Baton demo agent";

/// How much the demo agent offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// Tasks and streams, and webhooks if they are switched on.
    Full,
    /// Tasks and streams. Does not change when the server gets more features.
    Streaming,
    /// Tasks alone, without streams.
    Minimal,
}

impl Profile {
    fn capabilities(self) -> AgentCapabilities {
        AgentCapabilities {
            streaming: Some(self != Profile::Minimal),
            // Without a value it is what the server has.
            push_notifications: (self != Profile::Full).then_some(false),
            ..AgentCapabilities::default()
        }
    }
}

/// Adds the demo agent's skills and router to a mount with any card.
pub(crate) fn skills(mount: Mount) -> Mount {
    mount.task_skill(task_skill(), Demo).message_skill(message_skill(), Answer).choose_skill(route)
}

/// The card that is used if there is no card file.
pub(crate) fn card(profile: Profile) -> AgentCard {
    let description = "Echoes what it is sent, and shows every state of a task when asked. \
                       Made for trying out A2A clients.";
    let mut card = AgentCard::new(NAME, description, env!("CARGO_PKG_VERSION"));
    card.capabilities = profile.capabilities();
    // It echoes text, data and files of any type.
    card.default_input_modes = vec!["*/*".to_owned()];
    card.default_output_modes = vec!["*/*".to_owned()];
    card
}

fn task_skill() -> AgentSkill {
    let description = "Works on a task: any text or file comes back as an artifact, and each example \
                       shows one thing a task can do.";
    let mut skill = AgentSkill::new("task", "Show a task", description);
    skill.tags = ["echo", "demo", "task"].map(str::to_owned).to_vec();
    // The first example simply completes: people who try only one example should see that.
    skill.examples = vec!["Hello, Baton".to_owned()];
    skill.examples.extend(choice::words().filter(|words| *words != choice::MESSAGE_WORDS).map(str::to_owned));
    skill
}

fn message_skill() -> AgentSkill {
    let description = "Answers with a message, without a task.";
    let mut skill = AgentSkill::new("message", "Just answer", description);
    skill.tags = ["demo", "message"].map(str::to_owned).to_vec();
    skill.examples = vec![choice::MESSAGE_WORDS.to_owned()];
    skill
}

fn route(message: &Message, skills: &[Skill]) -> Option<usize> {
    let id = match choice::of(message) {
        Chosen::Behaviour(Behaviour::Message) | Chosen::Phrase(Phrase::Message) => "message",
        Chosen::Behaviour(_) | Chosen::Phrase(_) => "task",
    };
    skills.iter().position(|skill| skill.card.id == id)
}

/// Shows what a task can do.
pub(crate) struct Demo;

#[async_trait]
impl Agent for Demo {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        // A task keeps the behaviour that its first message asked for.
        let first = turn.task().history.first().map_or(turn.message(), |first| first);
        match choice::of(first) {
            Chosen::Phrase(phrase) => phrases::act(phrase, &turn).await,
            Chosen::Behaviour(behaviour) => behaviour::act(behaviour, &turn).await,
        }
    }

    /// Nothing happens outside the task, and artifacts have fixed ids: a second run replaces the first.
    fn rerunnable(&self) -> bool {
        true
    }
}

/// Answers without a task.
pub(crate) struct Answer;

#[async_trait]
impl MessageAgent for Answer {
    async fn reply(&self, asked: Asked) -> Result<Content, AgentError> {
        Ok(match choice::of(&asked.message) {
            Chosen::Phrase(_) => phrases::ANSWER.into(),
            Chosen::Behaviour(_) => format!("You said: {}", asked.text()).into(),
        })
    }
}
