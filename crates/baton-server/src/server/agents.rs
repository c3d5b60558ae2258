//! The agents of a server.

use baton_protocol::domain::{AgentCard, Message};

use super::Builder;
use crate::engine::agent::{Agent, MessageAgent, Skill};
use crate::mount::{Mount, SkillEntry};
use crate::service::Limits;

impl Builder {
    /// Puts one more agent on the server.
    pub fn mount(mut self, agent: Mount) -> Self {
        self.agents.push(agent);
        self
    }

    /// Adds a skill that works on tasks to the agent mounted last. `skill` is its entry for the card, or the id of an
    /// entry that the card already has.
    pub fn task_skill(self, skill: impl Into<SkillEntry>, agent: impl Agent) -> Self {
        self.last(|mount| mount.task_skill(skill, agent))
    }

    /// Adds a skill that answers messages with messages to the agent mounted last. `skill` is its entry for the card, or
    /// the id of an entry that the card already has.
    pub fn message_skill(self, skill: impl Into<SkillEntry>, agent: impl MessageAgent) -> Self {
        self.last(|mount| mount.message_skill(skill, agent))
    }

    /// Adds a skill to the agent mounted last.
    pub fn skill(self, skill: Skill) -> Self {
        self.last(|mount| mount.skill(skill))
    }

    /// Sets how the agent mounted last chooses the skill for a message that starts a task and names no skill. The
    /// default compares the message with the words of the card's skills.
    pub fn choose_skill(
        self,
        choose: impl Fn(&Message, &[Skill]) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        self.last(|mount| mount.choose_skill(choose))
    }

    /// The skill, of the agent mounted last, for messages that fit no skill, or several equally well.
    pub fn default_skill(self, id: &str) -> Self {
        self.last(|mount| mount.default_skill(id))
    }

    /// Limits for the agent mounted last.
    pub fn limits(self, limits: Limits) -> Self {
        self.last(|mount| mount.limits(limits))
    }

    /// Changes the agent mounted last. Without an agent this does nothing; `build` refuses such a server.
    pub(super) fn last(mut self, change: impl FnOnce(Mount) -> Mount) -> Self {
        if let Some(mount) = self.agents.pop() {
            self.agents.push(change(mount));
        }
        self
    }

    /// A card for authenticated callers of the agent mounted last: [`Mount::extended_card`].
    pub fn extended_card(self, card: AgentCard) -> Self {
        self.last(|mount| mount.extended_card(card))
    }
}
