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
use crate::proxy::IpRange;
use crate::service::{Cursors, Limits, Service};
use crate::store::memory::MemoryStore;
use crate::store::{Store, StoreError};

/// The `agent` of every scope on a server with one agent.
const ONLY_AGENT: &str = "default";

/// After the store has failed: what is under way has this long to be answered.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What keeps a server from starting, or from going on.
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
    /// While serving: what is acknowledged can no longer be made durable. Start again, in a new process.
    #[error(transparent)]
    Fatal(StoreError),
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
            drain: Duration::from_secs(30),
        }
    }

    pub fn engine(&self) -> &Engine {
        self.service.engine()
    }

    /// Waits until the store has failed for good (a failed sync, say). From then on every write is refused; an
    /// application that mounts the [`router`](Self::router) should end its process, since nothing that this one
    /// does can make durable again what it wrote.
    pub fn fatal(&self) -> impl Future<Output = StoreError> + Send + use<> {
        self.engine().fatal()
    }

    /// To mount in an application of one's own, at the root. Await [`fatal`](Self::fatal) beside it.
    pub fn router(&self) -> axum::Router {
        binding::router(self.service.clone())
    }

    /// Binds the address and serves until the process ends.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<(), StartError> {
        let listener = TcpListener::bind(address).await.map_err(StartError::Listen)?;
        self.serve_until(listener, std::future::pending()).await
    }

    /// Serves until `shutdown`, then drains: no new work, running turns have time to end, streams close.
    ///
    /// Ends by itself with [`StartError::Fatal`] when the store has failed for good: streams close, requests under
    /// way are refused, and nothing is waited for, since nothing could be written any more. The process should end
    /// then; what was acknowledged is found by the next one.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StartError> {
        self.service.card().listening_at(listener.local_addr().map_err(StartError::Listen)?);
        let engine = self.engine().clone();
        let router = self.router();
        let (drain, fatal, hopeless) = (self.drain, engine.fatal(), engine.fatal());
        let drained = async move {
            let drained = async {
                shutdown.await;
                engine.shut_down(drain).await;
            };
            tokio::select! {
                () = drained => {}
                _ = fatal => engine.abandon(),
            }
        };
        let hopeless = async {
            let error = hopeless.await;
            tokio::time::sleep(LAST_WORDS).await;
            error
        };
        tokio::select! {
            served = binding::serve(listener, router, drained) => {
                served.map_err(StartError::Serve)?;
                self.engine().failure().map_or(Ok(()), |error| Err(StartError::Fatal(error)))
            }
            error = hopeless => Err(StartError::Fatal(error)),
        }
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

    /// How long running turns have to end at shutdown.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Checks the card against what is mounted, puts everything together, and looks after the tasks an earlier
    /// process left behind.
    pub async fn build(self) -> Result<Server, StartError> {
        let card = card::mounted(self.card, &self.skills, self.authenticator.enforces())
            .map_err(StartError::Card)?;
        let cursors = Cursors::load(&*self.store).await?;
        let logic = AgentLogic { skills: self.skills, router: self.router };
        let agents = HashMap::from([(Arc::from(ONLY_AGENT), logic)]);
        let engine = Engine::new(self.store, agents, self.options, self.clock);
        engine.recover().await?;
        let card = ServedCard::new(card, self.public_url, self.trusted_proxies, engine.now());
        let service =
            Service::new(engine, Arc::from(ONLY_AGENT), card, self.authenticator, cursors, self.limits);
        Ok(Server { service, drain: self.drain })
    }
}
