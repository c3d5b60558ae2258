//! One agent on a server: its card, its skills, its bounds, and where it is found.

use std::fmt;
use std::sync::Arc;

use baton_protocol::domain::{AgentCard, AgentSkill, Message};
use baton_protocol::wire::http_json::is_tenant;

use crate::engine::AgentLogic;
use crate::engine::agent::{Agent, ChooseSkill, Logic, MessageAgent, Skill};
use crate::service::Limits;

/// An agent to be put on a server, with [`Builder::mount`](crate::Builder::mount).
///
/// Without [`path`](Self::path) or [`tenant`](Self::tenant) it is found at the root.
#[must_use]
pub struct Mount {
    pub(crate) id: Arc<str>,
    pub(crate) card: AgentCard,
    pub(crate) skills: Vec<Skill>,
    pub(crate) choose_skill: Option<Arc<ChooseSkill>>,
    pub(crate) default_skill: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) place: Place,
    /// Ids of skills that were to be on the card and are not.
    unlisted: Vec<String>,
}

/// What the card says about a skill: written in code, or on a card that was read from a file.
///
/// Made from an [`AgentSkill`], or from an id.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SkillEntry {
    /// This. The card's own list of skills is made of such entries, or has to hold one of the same id.
    Described(AgentSkill),
    /// What the card says under that id.
    Listed(String),
}

impl From<AgentSkill> for SkillEntry {
    fn from(skill: AgentSkill) -> Self {
        SkillEntry::Described(skill)
    }
}

impl From<&str> for SkillEntry {
    fn from(id: &str) -> Self {
        SkillEntry::Listed(id.to_owned())
    }
}

/// Where an agent is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    /// `/weather`: everything of the agent is below it.
    Path(String),
    /// At the root in 1.0, by the tenant its card's interfaces name; older generations, which know no tenants,
    /// find it below `/<tenant>`.
    Tenant(Arc<str>),
}

impl Place {
    /// What its paths begin with.
    pub(crate) fn prefix(&self) -> String {
        match self {
            Place::Root => String::new(),
            Place::Path(path) => path.clone(),
            Place::Tenant(tenant) => format!("/{tenant}"),
        }
    }

    pub(crate) fn tenant(&self) -> Option<&Arc<str>> {
        match self {
            Place::Tenant(tenant) => Some(tenant),
            Place::Root | Place::Path(_) => None,
        }
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount")
            .field("id", &self.id)
            .field("card", &self.card.name)
            .field("skills", &self.skills)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Mount {
    /// `id` names the agent in stores, logs and metrics: it must stay the same from start to start.
    pub fn new(id: &str, card: AgentCard) -> Self {
        let (skills, limits, place) = (Vec::new(), Limits::default(), Place::Root);
        let (choose_skill, default_skill, unlisted) = (None, None, Vec::new());
        Mount { id: Arc::from(id), card, skills, choose_skill, default_skill, limits, place, unlisted }
    }

    /// A skill that works on tasks: what the card is to say about it, or the id of one that the card has.
    pub fn task_skill(self, skill: impl Into<SkillEntry>, agent: impl Agent) -> Self {
        self.entry(skill.into(), Logic::Task(Arc::new(agent)))
    }

    /// A skill that answers messages with messages: what the card is to say about it, or the id of one that the card
    /// has.
    pub fn message_skill(self, skill: impl Into<SkillEntry>, agent: impl MessageAgent) -> Self {
        self.entry(skill.into(), Logic::Message(Arc::new(agent)))
    }

    fn entry(mut self, entry: SkillEntry, logic: Logic) -> Self {
        let card = match entry {
            SkillEntry::Described(card) => card,
            SkillEntry::Listed(id) => match self.card.skills.iter().find(|skill| skill.id == id) {
                Some(card) => card.clone(),
                None => {
                    self.unlisted.push(id);
                    return self;
                }
            },
        };
        self.skill(Skill { card, logic })
    }

    /// One more skill.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// The skill for messages that fit no other, or two alike.
    pub fn default_skill(mut self, id: &str) -> Self {
        self.default_skill = Some(id.to_owned());
        self
    }

    /// Chooses the skill for a message that starts a task and names none, in place of the built-in choice.
    pub fn choose_skill(
        mut self,
        choose: impl Fn(&Message, &[Skill]) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        self.choose_skill = Some(Arc::new(choose));
        self
    }

    /// Bounds for its requests and turns.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Puts the agent below a path, `/weather`: its card is at `/weather/.well-known/agent-card.json`.
    pub fn path(mut self, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        self.place = if path.is_empty() { Place::Root } else { Place::Path(path.to_owned()) };
        self
    }

    /// Gives the agent a tenant's name: 1.0 clients say it with each request, as the card's interfaces tell them.
    /// Older ones find the agent below `/<tenant>`.
    pub fn tenant(mut self, tenant: &str) -> Self {
        self.place = Place::Tenant(Arc::from(tenant));
        self
    }

    /// What is wrong with its names, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        let id = &self.id;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
            return Err(format!("agent `{id}`: an id is 1 to 64 of the characters A-Z a-z 0-9 . _ -"));
        }
        if let Some(unlisted) = self.unlisted.first() {
            let ids: Vec<String> = self.card.skills.iter().map(|skill| format!("`{}`", skill.id)).collect();
            let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            return Err(format!(
                "agent `{id}`: `{unlisted}` has logic, but is not on the card, whose skills are {ids}"
            ));
        }
        if let Some(default) = &self.default_skill
            && !self.skills.iter().any(|skill| skill.card.id == *default)
        {
            let ids: Vec<String> = self.skills.iter().map(|skill| format!("`{}`", skill.card.id)).collect();
            let ids = ids.join(", ");
            return Err(format!("agent `{id}`: the default skill `{default}` is none of its skills: {ids}"));
        }
        match &self.place {
            Place::Tenant(tenant) if !is_free(tenant) => Err(format!(
                "agent `{id}`: tenant `{tenant}` must be 1 to 64 of the characters A-Z a-z 0-9 . _ ~ - and no name that \
                 the protocol's own paths begin with"
            )),
            Place::Path(path) if !is_path(path) => Err(format!(
                "agent `{id}`: path `{path}` must be segments such as `/agents/weather`, none of which is a name that \
                 the protocol's own paths begin with"
            )),
            _ => Ok(()),
        }
    }

    /// Its logic, once the card lists its skills.
    pub(crate) fn logic(&mut self) -> AgentLogic {
        let (skills, choose) = (std::mem::take(&mut self.skills), self.choose_skill.take());
        AgentLogic::new(skills, choose, self.default_skill.take(), &self.card)
    }
}

/// What stands at the root already.
const TAKEN: &[&str] = &["v1", "agent", "subscribe"];

fn is_free(name: &str) -> bool {
    is_tenant(name) && !TAKEN.contains(&name)
}

fn is_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let first = rest.split('/').next().unwrap_or_default();
    path.len() <= 255 && is_free(first) && rest.split('/').all(is_tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_shadow_the_protocols_own_are_refused() {
        let mount = |id: &str| Mount::new(id, AgentCard::new("a", "b", "1"));
        for good in [
            mount("a"),
            mount("a.b_c-1").path("/agents/weather"),
            mount("a").path("/"),
            mount("a").path("/weather/"),
            mount("a").tenant("acme"),
        ] {
            good.check().unwrap();
        }
        for bad in [
            mount(""),
            mount("a b"),
            mount(&"x".repeat(65)),
            mount("a").path("weather"),
            mount("a").path("//x"),
            mount("a").path("/v1"),
            mount("a").path("/tasks"),
            mount("a").path("/.well-known"),
            mount("a").path("/a b"),
            mount("a").path("/%2e"),
            mount("a").tenant(""),
            mount("a").tenant("v1"),
            mount("a").tenant("a/b"),
        ] {
            bad.check().unwrap_err();
        }
    }
}
