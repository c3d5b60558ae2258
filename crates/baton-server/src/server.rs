//! All wiring on one page: a builder makes a [`Server`], a server makes a router or serves a listener.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{AgentCard, AgentSkill, Message};
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::auth::{Anonymous, Authenticator};
use crate::binding;
use crate::card::{self, ServedCard};
use crate::engine::agent::{Agent, Logic, MessageAgent, Router, Skill, route_by_skill_id};
use crate::engine::clock::{Clock, SystemClock};
use crate::engine::options::Options;
use crate::engine::{AgentLogic, Engine};
use crate::net::{self, Connections, Cors};
use crate::proxy::IpRange;
use crate::service::{Cursors, Limits, Service};
use crate::store::memory::MemoryStore;
use crate::store::{Store, StoreError};

/// The `agent` of every scope on a server with one agent.
const ONLY_AGENT: &str = "default";

/// What keeps a server from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("the agent card promises what is not there: {0}")]
    Card(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
    #[error("the listener failed: {0}")]
    Serve(std::io::Error),
    /// The text names the setting.
    #[error("{0}")]
    Setting(String),
}

/// A server in the making.
#[must_use]
pub struct Builder {
    card: AgentCard,
    skills: Vec<Skill>,
    router: Arc<Router>,
    store: Arc<dyn Store>,
    options: Options,
    limits: Limits,
    clock: Arc<dyn Clock>,
    authenticator: Arc<dyn Authenticator>,
    public_url: Option<String>,
    trusted_proxies: Vec<IpRange>,
    net: net::Settings,
    drain: Duration,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("card", &self.card.name)
            .field("skills", &self.skills)
            .finish_non_exhaustive()
    }
}

/// A server with one agent, ready to serve.
#[derive(Clone, Debug)]
pub struct Server {
    service: Service,
    network: net::Network,
    drain: Duration,
}

impl Server {
    /// The shortest way: one agent with one skill, named after it.
    pub fn agent(name: &str, description: &str, agent: impl Agent) -> Builder {
        let card = AgentCard::new(name, description, "1.0.0");
        let mut skill = AgentSkill::new(name, name, description);
        skill.tags = vec![name.to_owned()];
        Self::builder(card).task_skill(skill, agent)
    }

    /// An agent with its own card. Interfaces, capabilities and skills are filled in from what is mounted.
    pub fn builder(card: AgentCard) -> Builder {
        Builder {
            card,
            skills: Vec::new(),
            router: Arc::new(route_by_skill_id),
            store: Arc::new(MemoryStore::new()),
            options: Options::default(),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            authenticator: Arc::new(Anonymous),
            public_url: None,
            trusted_proxies: Vec::new(),
            net: net::Settings::default(),
            drain: Duration::from_secs(30),
        }
    }

    pub fn engine(&self) -> &Engine {
        self.service.engine()
    }

    /// To mount in an application of one's own, at the root. Limits on connections, the checks of `Host` and `Origin`
    /// and CORS are that application's to make: they belong to whoever owns the listener.
    pub fn router(&self) -> axum::Router {
        binding::router(self.service.clone())
    }

    /// Binds the address and serves until the process ends.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<(), StartError> {
        let listener = TcpListener::bind(address).await.map_err(StartError::Listen)?;
        self.serve_until(listener, std::future::pending()).await
    }

    /// Serves until `shutdown`, then drains: no new work, running turns have time to end, streams close.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StartError> {
        self.service.card().listening_at(listener.local_addr().map_err(StartError::Listen)?);
        let drained = self.engine().shut_down(self.drain);
        let served = self.network.serve(listener, self.router(), shutdown, drained).await;
        served.map_err(StartError::Serve)
    }
}

impl Builder {
    /// A skill that works on tasks.
    pub fn task_skill(self, card: AgentSkill, agent: impl Agent) -> Self {
        self.skill(Skill { card, logic: Logic::Task(Arc::new(agent)) })
    }

    /// A skill that answers messages with messages.
    pub fn message_skill(self, card: AgentSkill, agent: impl MessageAgent) -> Self {
        self.skill(Skill { card, logic: Logic::Message(Arc::new(agent)) })
    }

    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Chooses the skill for a message that starts a task. Must be a function of the message alone.
    pub fn router(
        mut self,
        router: impl Fn(&Message, &[Skill]) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        self.router = Arc::new(router);
        self
    }

    /// Where tasks live; in memory unless told.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticator = authenticator;
        self
    }

    /// The address the card gives to clients, when it is not the one the server listens at.
    pub fn public_url(mut self, url: &str) -> Self {
        self.public_url = Some(url.trim_end_matches('/').to_owned());
        self
    }

    /// Proxies whose `Forwarded` and `X-Forwarded-*` headers tell the address clients use.
    pub fn trusted_proxies(mut self, proxies: Vec<IpRange>) -> Self {
        self.trusted_proxies = proxies;
        self
    }

    /// Bounds on connections, and on how long clients may take.
    pub fn connections(mut self, connections: Connections) -> Self {
        self.net.connections = connections;
        self
    }

    /// Names the server goes by, beside those of this machine and the public URL's, such as `agent.example`. A server
    /// on a loopback address answers to no others (421); on any other address this turns the check on.
    pub fn allowed_hosts(mut self, hosts: Vec<String>) -> Self {
        self.net.allowed_hosts = hosts;
        self
    }

    /// Lets web pages of other origins call the server.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.net.cors = Some(cors);
        self
    }

    /// How long running turns have to end at shutdown.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Checks the card against what is mounted, puts everything together, and looks after the tasks an earlier
    /// process left behind.
    pub async fn build(self) -> Result<Server, StartError> {
        let network = self.net.check(self.public_url.as_deref(), &self.trusted_proxies);
        let network = network.map_err(StartError::Setting)?;
        let card = card::mounted(self.card, &self.skills, self.authenticator.enforces())
            .map_err(StartError::Card)?;
        let cursors = Cursors::load(&*self.store).await?;
        let logic = AgentLogic { skills: self.skills, router: self.router };
        let agents = HashMap::from([(Arc::from(ONLY_AGENT), logic)]);
        let engine = Engine::new(self.store, agents, self.options, self.clock);
        engine.recover().await?;
        let card = ServedCard::new(card, self.public_url, self.trusted_proxies, engine.now());
        let (agent, streams) = (Arc::from(ONLY_AGENT), network.stream_places());
        let service = Service::new(engine, agent, card, self.authenticator, cursors, self.limits, streams);
        Ok(Server { service, network, drain: self.drain })
    }
}
