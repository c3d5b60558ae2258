//! Changes cards and limits while a server is serving.

use std::sync::Arc;

use baton_protocol::domain::AgentCard;

use crate::card::{self, Enforced};
#[cfg(feature = "card-signing")]
use crate::card::{CardSigning, Signer};
use crate::engine::options::Options;
use crate::mount::MountError;
#[cfg(feature = "tls")]
use crate::net::Tls;
use crate::server::StartError;
use crate::service::{Limits, Service};
use crate::site::Site;
#[cfg(feature = "tls")]
use crate::tls::{BadTls, TlsOptions};

/// A cheap handle on a serving [`Server`](crate::Server).
#[derive(Debug, Clone)]
pub struct Control {
    site: Arc<Site>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Control {
    pub(crate) fn new(site: Arc<Site>, #[cfg(feature = "tls")] tls: Option<Tls>) -> Self {
        Control {
            site,
            #[cfg(feature = "tls")]
            tls,
        }
    }

    /// The ids of the server's agents.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.site.agents().iter().map(Service::id)
    }

    /// Serves another card for the agent, and follows what it declares, from the next request on. The same checks apply
    /// as at the start: the same skills, and nothing declared that the server does not have.
    pub fn replace_card(&self, agent: &str, card: AgentCard) -> Result<(), StartError> {
        let service = self.agent(agent)?;
        let skills = self.site.engine().skills(agent);
        let enforced = Enforced::by(&**self.site.authenticator());
        let card = card::mounted(card, skills, &enforced, service.features());
        let card = card.map_err(StartError::Card)?;
        self.site.engine().card_replaced(agent, &card);
        service.card().replace(card, self.site.engine().now());
        Ok(())
    }

    /// Signs all cards in this way from the next request on, and publishes its keys; `None`: cards have no signatures. Needs a
    /// public URL, as at the start.
    #[cfg(feature = "card-signing")]
    pub fn sign_cards(&self, signing: Option<CardSigning>) -> Result<(), StartError> {
        let signer = signing.map(|signing| Signer::new(signing, self.site.public_url()));
        self.site.sign_with(signer.transpose()?);
        Ok(())
    }

    /// Limits for the agent's requests from now on.
    pub fn set_limits(&self, agent: &str, limits: Limits) -> Result<(), StartError> {
        self.agent(agent)?.set_limits(limits);
        Ok(())
    }

    /// Limits for the turns and tasks of all agents from now on; running turns keep their deadline.
    pub fn set_options(&self, options: Options) {
        self.site.engine().set_options(options);
    }

    /// Whether every request is logged, from now on. See [`Builder::log_requests`](crate::Builder::log_requests).
    pub fn log_requests(&self, wanted: bool) {
        self.site.engine().telemetry().log_requests(wanted);
    }

    /// New connections get this certificate, and are asked for theirs as these options say; open connections stay as they
    /// are. If the options cannot be used, nothing changes. `hsts` is not changed. A server that began without TLS goes on
    /// without.
    #[cfg(feature = "tls")]
    pub fn replace_tls(&self, options: &TlsOptions) -> Result<(), StartError> {
        let config = options.config()?;
        match &self.tls {
            Some(tls) => tls.replace(config),
            None => return Err(BadTls::Options("the server was started without TLS".to_owned()).into()),
        }
        Ok(())
    }

    fn agent(&self, id: &str) -> Result<&Service, StartError> {
        self.site.agent(id).ok_or_else(|| MountError::UnknownAgent(id.to_owned()).into())
    }
}
