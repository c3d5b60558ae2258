//! Permission to use a skill that has requirements of its own. Which skill takes a message is known only after the engine
//! has chosen it, so the engine asks.

use std::sync::{Arc, OnceLock};

use baton_protocol::Error;
use baton_protocol::domain::AgentCard;
use baton_protocol::operation::Operation;

use super::authenticator::Authenticator;
use super::challenge::Challenge;
use super::principal::Principal;
use super::request::Access;

/// Asks the authenticator whether a caller may use a skill.
#[derive(Debug, Clone)]
pub(crate) struct SkillPermission {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    authenticator: Arc<dyn Authenticator>,
    principal: Principal,
    agent: Arc<str>,
    tenant: Arc<str>,
    operation: Operation,
    card: Arc<AgentCard>,
    /// The first refusal; its headers go into the answer.
    refused: OnceLock<Challenge>,
}

impl SkillPermission {
    /// `None` if no skill on the card has requirements, so that nothing has to be asked.
    pub(crate) fn new(
        authenticator: &Arc<dyn Authenticator>,
        principal: &Principal,
        (agent, tenant): (&Arc<str>, &Arc<str>),
        operation: Operation,
        card: &Arc<AgentCard>,
    ) -> Option<Self> {
        if card.skills.iter().all(|skill| skill.security_requirements.is_empty()) {
            return None;
        }
        let (authenticator, principal) = (Arc::clone(authenticator), principal.clone());
        let (agent, tenant, card) = (Arc::clone(agent), Arc::clone(tenant), Arc::clone(card));
        let refused = OnceLock::new();
        let inner = Inner { authenticator, principal, agent, tenant, operation, card, refused };
        Some(SkillPermission { inner: Arc::new(inner) })
    }

    /// Whether the caller may send a message to the skill.
    pub(crate) fn check(&self, skill: &str) -> Result<(), Error> {
        let Inner { authenticator, principal, agent, tenant, operation, card, refused } = &*self.inner;
        let requirements = match card.skills.iter().find(|listed| listed.id == skill) {
            Some(listed) if !listed.security_requirements.is_empty() => &listed.security_requirements,
            _ => return Ok(()),
        };
        let operation = *operation;
        let access = Access { agent, tenant, operation, skill: Some(skill), requirements, card: None };
        authenticator.authorize(principal, &access).map_err(|challenge| {
            let error = challenge.error().clone();
            let _ = refused.set(challenge);
            error
        })
    }

    /// The refusal with its headers, if there was one.
    pub(crate) fn refused(&self) -> Option<Challenge> {
        self.inner.refused.get().cloned()
    }
}
