//! What can be changed while a server serves: cards and limits.

use std::sync::Arc;

use baton_protocol::domain::AgentCard;

use crate::card;
use crate::engine::options::Options;
use crate::server::StartError;
use crate::service::{Limits, Service};
use crate::site::Site;

/// A cheap handle on a serving [`Server`](crate::Server).
#[derive(Debug, Clone)]
pub struct Control {
    site: Arc<Site>,
}

impl Control {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        Control { site }
    }

    /// The ids of the server's agents.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.site.agents().iter().map(Service::id)
    }

    /// Serves another card for the agent, and holds to it, from the next request on. It must be as true as the
    /// first had to be: the same skills, and no promise that is not kept.
    pub fn replace_card(&self, agent: &str, card: AgentCard) -> Result<(), StartError> {
        let service = self.agent(agent)?;
        let skills = self.site.engine().skills(agent);
        let enforces = self.site.authenticator().enforces();
        let card = card::mounted(card, skills, enforces).map_err(StartError::Card)?;
        self.site.engine().described_by(agent, &card);
        service.card().replace(card, self.site.engine().now());
        Ok(())
    }

    /// Bounds for the agent's requests from now on.
    pub fn set_limits(&self, agent: &str, limits: Limits) -> Result<(), StartError> {
        self.agent(agent)?.set_limits(limits);
        Ok(())
    }

    /// Bounds for the turns and tasks of all agents from now on; turns that run keep their deadline.
    pub fn set_options(&self, options: Options) {
        self.site.engine().set_options(options);
    }

    /// Whether every request leaves a line in the log, from now on.
    pub fn log_requests(&self, wanted: bool) {
        self.site.engine().telemetry().log_requests(wanted);
    }

    fn agent(&self, id: &str) -> Result<&Service, StartError> {
        self.site.agent(id).ok_or_else(|| StartError::Mount(format!("there is no agent `{id}`")))
    }
}
