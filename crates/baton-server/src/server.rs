//! All wiring on one page: a builder makes a [`Server`], a server makes a router or serves a listener.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::Error;
use baton_protocol::domain::{AgentCard, AgentSkill, Message};
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::auth::{Anonymous, Authenticator};
use crate::binding::{self, App};
use crate::card::{self, Address, CardError, ServedCard};
use crate::control::Control;
use crate::engine::agent::{Agent, IntoLogic, MessageAgent, Skill};
use crate::engine::clock::{Clock, SystemClock};
use crate::engine::options::Options;
use crate::engine::{Content, Engine};
use crate::local_client::{Answer, LocalClient, LocalStream};
use crate::mount::{Mount, SkillEntry};
use crate::net::{self, Connections, Cors};
use crate::proxy::IpRange;
use crate::service::{Cursors, Limits, Service};
use crate::site::Site;
use crate::store::memory::MemoryStore;
use crate::store::{IntoStore, Store, StoreError};
use crate::telemetry::{Callers, Format, MetricsAccess, Telemetry};

/// The agent of a server with one, by its name in stores.
const ONLY_AGENT: &str = "default";

/// After the store has failed: what is under way has this long to be answered.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What keeps a server from starting, or from going on. A `main` that returns it prints its text.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A line for each thing that is wrong; it begins with the member of the card.
    #[error("the agent card promises what is not there: {}", .0.join("; "))]
    Card(Vec<String>),
    /// An agent cannot be put where it was to be, or as it was to be.
    #[error("{0}")]
    Mount(String),
    /// A card could not be read.
    #[error(transparent)]
    CardText(#[from] CardError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address cannot be had.
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
    /// The listener is broken.
    #[error("the listener failed: {0}")]
    Serve(std::io::Error),
    /// While serving: what is acknowledged can no longer be made durable. Start again, in a new process.
    #[error(transparent)]
    Fatal(StoreError),
    /// The text names the setting.
    #[error("{0}")]
    Setting(String),
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A server in the making.
#[must_use]
pub struct Builder {
    agents: Vec<Mount>,
    store: Arc<dyn Store>,
    options: Options,
    clock: Arc<dyn Clock>,
    authenticator: Arc<dyn Authenticator>,
    public_url: Option<String>,
    trusted_proxies: Vec<IpRange>,
    net: net::Settings,
    drain: Duration,
    metrics: MetricsAccess,
    log_requests: bool,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("agents", &self.agents).finish_non_exhaustive()
    }
}

/// A server with its agents, ready to serve.
#[derive(Clone, Debug)]
pub struct Server {
    site: Arc<Site>,
    network: net::Network,
    drain: Duration,
}

impl Server {
    /// The shortest way: one agent with one skill, named after it. It works on tasks if it takes a
    /// [`Turn`](crate::Turn), and answers with messages if it takes an [`Asked`](crate::Asked).
    pub fn agent<Kind>(name: &str, description: &str, agent: impl IntoLogic<Kind>) -> Builder {
        let card = AgentCard::new(name, description, "1.0.0");
        let mut skill = AgentSkill::new(name, name, description);
        skill.tags = vec![name.to_owned()];
        Self::builder(card).skill(Skill { card: skill, logic: agent.into_logic() })
    }

    /// An agent with its own card. Interfaces, capabilities and skills are filled in from what is mounted.
    pub fn builder(card: AgentCard) -> Builder {
        Self::host().mount(Mount::new(ONLY_AGENT, card))
    }

    /// A server for several agents: give it each with [`Builder::mount`].
    pub fn host() -> Builder {
        Builder {
            agents: Vec::new(),
            store: Arc::new(MemoryStore::new()),
            options: Options::default(),
            clock: Arc::new(SystemClock),
            authenticator: Arc::new(Anonymous),
            public_url: None,
            trusted_proxies: Vec::new(),
            net: net::Settings::default(),
            drain: Duration::from_secs(30),
            metrics: MetricsAccess::default(),
            log_requests: false,
        }
    }

    /// The engine, to look at tasks and change caps.
    pub fn engine(&self) -> &Engine {
        self.site.engine()
    }

    /// Waits until the store has failed for good (a failed sync, say). From then on every write is refused; an
    /// application that mounts the [`router`](Self::router) should end its process, since nothing that this one
    /// does can make durable again what it wrote.
    pub fn fatal(&self) -> impl Future<Output = StoreError> + Send + use<> {
        self.engine().fatal()
    }

    /// To change cards and limits while the server serves.
    pub fn control(&self) -> Control {
        Control::new(Arc::clone(&self.site))
    }

    /// To mount in an application of one's own: at the root, merged with its routes, or nested below a path. It is a
    /// `tower` service of any HTTP body, too.
    ///
    /// The card says where clients find the agent: at [`Builder::public_url`] if that is set, else where the request
    /// for the card came in. [`serve_app`](Self::serve_app) serves the application with everything a server of its own
    /// has.
    ///
    /// An application with a listener of its own (TLS, WebSockets) also ends the agent: an event stream stays open as
    /// long as its task works, and a listener that waits for open requests would wait for it. So the agent goes first:
    ///
    /// ```no_run
    /// # async fn start(listener: tokio::net::TcpListener, agent: baton_server::Server) -> std::io::Result<()> {
    /// let app = axum::Router::new().nest("/agent", agent.router());
    /// let stop = async move {
    ///     let _ = tokio::signal::ctrl_c().await;
    ///     agent.shut_down().await;
    /// };
    /// axum::serve(listener, app).with_graceful_shutdown(stop).await
    /// # }
    /// ```
    ///
    /// It awaits [`fatal`](Self::fatal) as well. Limits on connections, the checks of `Host` and `Origin` and CORS are
    /// that application's to make: they belong to whoever owns the listener.
    pub fn router(&self) -> axum::Router {
        binding::routes(Arc::clone(&self.site))
    }

    /// No new work; running turns have the drain time to end; then streams close. What still runs is left to the next
    /// start. For applications that serve the [`router`](Self::router) themselves, before they stop listening.
    pub async fn shut_down(&self) {
        self.engine().shut_down(self.drain).await;
    }

    /// What the server counts about itself, as OpenMetrics text.
    pub async fn metrics(&self) -> String {
        binding::metrics::text(self.engine(), Format::OpenMetrics).await
    }

    /// `GET /metrics` alone, for a listener of its own: whoever reaches it may read.
    pub fn metrics_router(&self) -> axum::Router {
        binding::metrics_router(self.engine().clone())
    }

    /// Serves [`metrics_router`](Self::metrics_router) until `shutdown`.
    pub async fn serve_metrics_until(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StartError> {
        // Not the agents' settings: who may ask for those has nothing to do with who may ask here.
        let network = net::Settings::default().check(None, &[]).map_err(StartError::Setting)?;
        let served = network.serve(
            listener,
            App::Routes(self.metrics_router()),
            None,
            shutdown,
            std::future::ready(()),
        );
        served.await.map_err(StartError::Serve)
    }

    /// The numbers' own handle, for what counts from outside.
    pub fn telemetry(&self) -> &Telemetry {
        self.engine().telemetry()
    }

    /// Talks to the agent from inside the process, without a socket: see [`LocalClient`]. Of several agents it is the one
    /// at the root, else the one with the shortest path.
    pub fn client(&self) -> LocalClient {
        LocalClient::new(self.site.nearest().clone())
    }

    /// Talks to one of several agents, by the id it was mounted with.
    pub fn client_of(&self, agent: &str) -> Option<LocalClient> {
        self.site.agent(agent).cloned().map(LocalClient::new)
    }

    /// Says something to the agent and waits for what comes of it: [`LocalClient::send`].
    pub async fn send(&self, content: impl Into<Content>) -> Result<Answer, Error> {
        self.client().send(content).await
    }

    /// Says something to the agent, to watch what comes of it: [`LocalClient::stream`].
    pub async fn stream(&self, content: impl Into<Content>) -> Result<LocalStream, Error> {
        self.client().stream(content).await
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
        self.site.listening_at(listener.local_addr().map_err(StartError::Listen)?);
        let site = App::Site(Arc::clone(&self.site));
        self.serve_on(listener, site, shutdown).await
    }

    /// Binds the address and serves an application that holds this server's [`router`](Self::router), until the process
    /// ends.
    pub async fn serve_app(self, app: axum::Router, address: impl ToSocketAddrs) -> Result<(), StartError> {
        let listener = TcpListener::bind(address).await.map_err(StartError::Listen)?;
        self.serve_app_until(app, listener, std::future::pending()).await
    }

    /// Serves an application that holds this server's [`router`](Self::router), until `shutdown`. Both stop together, in
    /// the right order: no new requests, running turns have time to end, streams close, the rest is answered.
    ///
    /// The limits on connections and the checks of `Host` and `Origin` hold for the whole application, and its handlers
    /// can ask for `ConnectInfo<SocketAddr>`. A connection cannot be upgraded: no WebSockets. Ends like
    /// [`serve_until`](Self::serve_until) when the store has failed for good.
    pub async fn serve_app_until(
        self,
        app: axum::Router,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StartError> {
        self.serve_on(listener, App::Routes(app), shutdown).await
    }

    async fn serve_on(
        self,
        listener: TcpListener,
        app: App,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StartError> {
        let engine = self.engine();
        let stop = async {
            tokio::select! {
                () = shutdown => {}
                _ = engine.fatal() => {}
            }
        };
        let drained = async {
            tokio::select! {
                biased;
                _ = engine.fatal() => engine.abandon(),
                () = engine.shut_down(self.drain) => {}
            }
        };
        let hopeless = async {
            let error = engine.fatal().await;
            tokio::time::sleep(LAST_WORDS).await;
            error
        };
        let telemetry = Some(self.telemetry().clone());
        tokio::select! {
            served = self.network.serve(listener, app, telemetry, stop, drained) => {
                served.map_err(StartError::Serve)?;
                engine.failure().map_or(Ok(()), |error| Err(StartError::Fatal(error)))
            }
            error = hopeless => Err(StartError::Fatal(error)),
        }
    }
}

impl Builder {
    /// Puts one more agent on the server.
    pub fn mount(mut self, agent: Mount) -> Self {
        self.agents.push(agent);
        self
    }

    /// A skill that works on tasks, for the agent mounted last: what the card is to say about it, or the id of one
    /// that the card has.
    pub fn task_skill(self, skill: impl Into<SkillEntry>, agent: impl Agent) -> Self {
        self.last(|mount| mount.task_skill(skill, agent))
    }

    /// A skill that answers messages with messages, for the agent mounted last: what the card is to say about it, or
    /// the id of one that the card has.
    pub fn message_skill(self, skill: impl Into<SkillEntry>, agent: impl MessageAgent) -> Self {
        self.last(|mount| mount.message_skill(skill, agent))
    }

    /// A skill for the agent mounted last.
    pub fn skill(self, skill: Skill) -> Self {
        self.last(|mount| mount.skill(skill))
    }

    /// How the agent mounted last chooses the skill for a message that starts a task and names none; without it,
    /// the words of the card's skills decide.
    pub fn choose_skill(
        self,
        choose: impl Fn(&Message, &[Skill]) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        self.last(|mount| mount.choose_skill(choose))
    }

    /// The skill of the agent mounted last for messages that fit no other, or two alike.
    pub fn default_skill(self, id: &str) -> Self {
        self.last(|mount| mount.default_skill(id))
    }

    /// Bounds for the agent mounted last.
    pub fn limits(self, limits: Limits) -> Self {
        self.last(|mount| mount.limits(limits))
    }

    /// On a host without an agent there is nobody to give it to: `build` refuses such a server anyway.
    fn last(mut self, change: impl FnOnce(Mount) -> Mount) -> Self {
        if let Some(mount) = self.agents.pop() {
            self.agents.push(change(mount));
        }
        self
    }

    /// Where tasks live; in memory unless told. A store, or an `Arc` of one that others hold as well.
    pub fn store(mut self, store: impl IntoStore) -> Self {
        self.store = store.into_store();
        self
    }

    /// Bounds for the turns and tasks of all agents.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Where the time comes from; the machine's clock unless told.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Who tells callers apart; everybody is `anonymous` unless told.
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticator = authenticator;
        self
    }

    /// The address the cards give to clients, when it is not the one the server listens at. JSON-RPC is then called at
    /// exactly this address; everything else is below it.
    pub fn public_url(mut self, url: &str) -> Self {
        self.public_url = Some(url.to_owned());
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

    /// Who may read `/metrics` beside the agents; by default whoever asks from this machine.
    /// [`Server::metrics_router`] gives them a listener of their own.
    pub fn metrics(mut self, access: MetricsAccess) -> Self {
        self.metrics = access;
        self
    }

    /// Whether every request leaves a line in the log, at level `info`. Otherwise only those do that could not be
    /// served; a log of level `debug` holds all of them anyhow.
    pub fn log_requests(mut self, wanted: bool) -> Self {
        self.log_requests = wanted;
        self
    }

    /// Checks the cards against what is mounted, puts everything together, and looks after the tasks an earlier
    /// process left behind.
    pub async fn build(self) -> Result<Server, StartError> {
        if self.agents.is_empty() {
            return Err(StartError::Mount("there is no agent to serve".to_owned()));
        }
        let mut logics = HashMap::new();
        let mut mounts = Vec::new();
        for mut mount in self.agents {
            mount.check().map_err(StartError::Mount)?;
            let card = std::mem::replace(&mut mount.card, AgentCard::new("", "", ""));
            let card = card::mounted(card, &mount.skills, self.authenticator.enforces());
            mount.card = card.map_err(StartError::Card)?;
            if logics.insert(Arc::clone(&mount.id), mount.logic()).is_some() {
                return Err(StartError::Mount(format!("agent `{}` is there twice", mount.id)));
            }
            mounts.push(mount);
        }
        let network = self.net.check(self.public_url.as_deref(), &self.trusted_proxies);
        let network = network.map_err(StartError::Setting)?;
        let cursors = Cursors::load(&*self.store).await?;
        let callers = Callers::load(&*self.store).await?;
        let agents = mounts.iter().map(|mount| &mount.id);
        let telemetry = Telemetry::new(agents, callers, self.metrics, self.log_requests);
        let engine = Engine::new(self.store, logics, self.options, self.clock, telemetry);
        // One count for all agents.
        let streams = network.stream_places();
        let services = mounts.into_iter().map(|mount| {
            let address = Address {
                public_url: self.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
                ends_with_slash: self.public_url.as_ref().is_some_and(|url| url.ends_with('/')),
                trusted: self.trusted_proxies.clone(),
                place: mount.place.clone(),
            };
            let card = ServedCard::new(mount.card, address, engine.now());
            let (cursors, limits) = (cursors.clone(), mount.limits);
            let (id, streams) = (mount.id, streams.clone());
            Service::new(engine.clone(), id, &mount.place, card, cursors, limits, streams)
        });
        let services = services.collect();
        let base_path = card::base_path(self.public_url.as_deref()).to_owned();
        let site = Site::new(engine.clone(), self.authenticator, base_path, services);
        let site = Arc::new(site.map_err(StartError::Mount)?);
        // Last: what an earlier process left is taken up only by a server that will serve.
        engine.recover().await?;
        Ok(Server { site, network, drain: self.drain })
    }
}
