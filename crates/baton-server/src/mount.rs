//! One agent on a server: its card, its skills, its limits, and its path or tenant.

mod error;

use std::fmt;
use std::sync::Arc;

use baton_protocol::domain::{AgentCard, AgentSkill, Message};
use baton_protocol::wire::http_json::is_tenant;

pub use error::MountError;

use crate::auth::Principal;
use crate::card::{ExtendedCard, Features, GrpcAddress};
use crate::engine::agent::{Agent, ChooseSkill, Logic, MessageAgent, Skill};
use crate::routing::AgentLogic;
use crate::service::Limits;

/// An agent for a server, given to [`Builder::mount`](crate::Builder::mount).
///
/// Without [`path`](Self::path) or [`tenant`](Self::tenant) it is served at the root.
#[must_use]
pub struct Mount {
    pub(crate) id: Arc<str>,
    pub(crate) card: AgentCard,
    pub(crate) skills: Vec<Skill>,
    pub(crate) choose_skill: Option<Arc<ChooseSkill>>,
    pub(crate) default_skill: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) place: Place,
    pub(crate) extended: Option<ExtendedCard>,
    pub(crate) grpc: GrpcAddress,
    /// Ids given as [`SkillEntry::Listed`] that the card does not have; `check` reports them.
    unlisted: Vec<String>,
}

/// A skill's entry on the card: written in code, or already on the card.
///
/// Made from an [`AgentSkill`], or from an id.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SkillEntry {
    /// This entry. If the card lists skills itself, it must list one with the same id.
    Described(AgentSkill),
    /// The entry with this id, which the card must have.
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

/// Where an agent is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    /// `/weather`: all paths of the agent are below it.
    Path(String),
    /// In 1.0 at the root, where requests name the tenant as the card's interfaces say. Older generations have no
    /// tenants; their clients call it below `/<tenant>`.
    Tenant(Arc<str>),
}

impl Place {
    /// The prefix of the agent's paths.
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
    /// `id` names the agent in stores, logs and metrics: it must be the same at every start.
    pub fn new(id: &str, card: AgentCard) -> Self {
        let (skills, limits, place) = (Vec::new(), Limits::default(), Place::Root);
        let (choose_skill, default_skill, extended, unlisted) = (None, None, None, Vec::new());
        let grpc = GrpcAddress::default();
        Mount {
            id: Arc::from(id),
            card,
            skills,
            choose_skill,
            default_skill,
            limits,
            place,
            extended,
            grpc,
            unlisted,
        }
    }

    /// Adds a skill that works on tasks. `skill` is its entry for the card, or the id of an entry that the card already
    /// has.
    pub fn task_skill(self, skill: impl Into<SkillEntry>, agent: impl Agent) -> Self {
        self.entry(skill.into(), Logic::Task(Arc::new(agent)))
    }

    /// Adds a skill that answers messages with messages. `skill` is its entry for the card, or the id of an entry that
    /// the card already has.
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
        self.skill(Skill::new(card, logic))
    }

    /// Adds a skill.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// The skill for messages that fit no skill, or several equally well.
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

    /// A card with more than the public one, for authenticated callers. Its addresses, capabilities and security section
    /// are those of the public card.
    pub fn extended_card(self, card: AgentCard) -> Self {
        self.extended_card_for(move |_, _| card.clone())
    }

    /// An extended card that differs by caller: made of the caller and the public card at each request. Whatever only some
    /// callers may see must be added only for them.
    pub fn extended_card_for(
        mut self,
        make: impl Fn(&Principal, &AgentCard) -> AgentCard + Send + Sync + 'static,
    ) -> Self {
        self.extended = Some(ExtendedCard::new(make));
        self
    }

    /// How its card tells the address of gRPC, on a server that speaks it.
    pub fn grpc_address(mut self, form: GrpcAddress) -> Self {
        self.grpc = form;
        self
    }

    /// Limits for its requests and turns.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves the agent below a path. For `/weather` its card is at `/weather/.well-known/agent-card.json`.
    pub fn path(mut self, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        self.place = if path.is_empty() { Place::Root } else { Place::Path(path.to_owned()) };
        self
    }

    /// Serves the agent as a tenant. 1.0 clients name the tenant in each request, as the card's interfaces tell them;
    /// older clients call the agent below `/<tenant>`.
    pub fn tenant(mut self, tenant: &str) -> Self {
        self.place = Place::Tenant(Arc::from(tenant));
        self
    }

    /// Checks the id, the names of skills, and the path or tenant.
    pub(crate) fn check(&self) -> Result<(), MountError> {
        let agent = || self.id.to_string();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if self.id.is_empty() || self.id.len() > 64 || !self.id.bytes().all(plain) {
            return Err(MountError::BadId(agent()));
        }
        if let Some(unlisted) = self.unlisted.first() {
            let listed = self.card.skills.iter().map(|skill| skill.id.clone()).collect();
            return Err(MountError::UnlistedSkill { agent: agent(), skill: unlisted.clone(), listed });
        }
        if let Some(default) = &self.default_skill
            && !self.skills.iter().any(|skill| skill.card.id == *default)
        {
            let skills = self.skills.iter().map(|skill| skill.card.id.clone()).collect();
            return Err(MountError::UnknownDefaultSkill { agent: agent(), skill: default.clone(), skills });
        }
        match &self.place {
            Place::Tenant(tenant) if !is_free(tenant) => {
                Err(MountError::BadTenant { agent: agent(), tenant: tenant.to_string() })
            }
            Place::Path(path) if !is_path(path) => {
                Err(MountError::BadPath { agent: agent(), path: path.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// What its card may declare on a server with or without webhooks and gRPC.
    pub(crate) fn features(&self, push: bool, grpc: bool) -> Features {
        let grpc = grpc && !matches!(self.place, Place::Path(_));
        let tells_grpc = grpc && self.grpc != GrpcAddress::Hidden;
        Features { extended_card: self.extended.is_some(), push, grpc, tells_grpc }
    }

    /// Takes the agent's logic out. Call it after the card's skills have been filled in.
    pub(crate) fn logic(&mut self) -> AgentLogic {
        let (skills, choose) = (std::mem::take(&mut self.skills), self.choose_skill.take());
        AgentLogic::new(skills, choose, self.default_skill.take(), &self.card)
    }
}

/// First segments of the protocol's own paths, the services of gRPC among them, whether they are served or not.
const RESERVED: &[&str] = &[
    "v1",
    "agent",
    "subscribe",
    "lf.a2a.v1.A2AService",
    "a2a.v1.A2AService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

fn is_free(name: &str) -> bool {
    is_tenant(name) && !RESERVED.contains(&name)
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
            mount("a").path("/lf.a2a.v1.A2AService"),
            mount("a").path("/a2a.v1.A2AService/weather"),
            mount("a").tenant("grpc.health.v1.Health"),
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
