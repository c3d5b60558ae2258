//! The skills of one agent, and the choice of a skill for a message.

mod routes;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use baton_protocol::domain::{AgentCard, Message, SendDetails};
use baton_protocol::{Error, ErrorKind, Member, Name};

use crate::engine::agent::{ChooseSkill, Skill};
use crate::media::takes;
use routes::{Routes, asked_skill, nothing_fits};

/// What the engine knows about one agent.
pub(crate) struct AgentLogic {
    skills: Vec<Skill>,
    choose: Option<Arc<ChooseSkill>>,
    default_skill: Option<String>,
    /// Made from the card, and replaced with it.
    routes: ArcSwap<Routes>,
}

impl AgentLogic {
    /// The card must list all the skills.
    pub(crate) fn new(
        skills: Vec<Skill>,
        choose: Option<Arc<ChooseSkill>>,
        default_skill: Option<String>,
        card: &AgentCard,
    ) -> Self {
        let routes = ArcSwap::from_pointee(Routes::new(card, default_skill.as_deref()));
        AgentLogic { skills, choose, default_skill, routes }
    }

    /// The skills, in the order they were given.
    pub(crate) fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// The skill of that id, if it is still there.
    pub(crate) fn skill(&self, id: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.card.id == id)
    }

    /// The skill for a message that starts a task: the one it names, or else the one that `choose` or the routes choose.
    pub(crate) fn skill_for(&self, message: &Message) -> Option<&Skill> {
        let routes = self.routes.load();
        match &self.choose {
            Some(choose) if asked_skill(message).is_none() => {
                let chosen = choose(message, &self.skills).and_then(|at| self.skills.get(at));
                chosen.or_else(|| self.skill(routes.default_skill()?))
            }
            _ => self.skill(routes.choose(message)?),
        }
    }

    /// Refuses a caller that accepts none of the skill's output modes.
    pub(crate) fn check_output(&self, skill: &str, details: &SendDetails) -> Result<(), Error> {
        let accepted = &details.accepted_output_modes;
        if accepted.is_empty() {
            return Ok(());
        }
        let routes = self.routes.load();
        let made = routes.outputs(skill);
        if made.is_empty() || accepted.iter().any(|accepted| made.iter().any(|mode| takes(accepted, mode))) {
            return Ok(());
        }
        let (member, made) = (Name::Member(Member::AcceptedOutputModes), made.join(", "));
        let message = format!("{member} names nothing that the skill `{skill}` makes; it makes {made}");
        Err(Error::new(ErrorKind::ContentTypeNotSupported, message).with_info("skill", skill))
    }

    /// Why there is no skill for a message.
    pub(crate) fn nothing_fits(&self, message: &Message) -> String {
        nothing_fits(message, self.routes.load().ids())
    }

    /// Why a task that began with a skill cannot go on.
    pub(crate) fn gone(&self, skill: &str) -> String {
        let ids: Vec<String> = self.routes.load().ids().map(|id| format!("`{id}`")).collect();
        let ids = ids.join(", ");
        format!(
            "No matching skill: this task's skill `{skill}` is no longer there; this agent's skills are {ids}"
        )
    }

    /// The card was replaced: skills are chosen by the new one.
    pub(crate) fn card_replaced(&self, card: &AgentCard) {
        self.routes.store(Arc::new(Routes::new(card, self.default_skill.as_deref())));
    }
}

impl fmt::Debug for AgentLogic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.skills).finish()
    }
}
