//! All wiring on one page: a builder makes a [`Server`], a server makes a router or serves a listener.

mod agents;
#[cfg(feature = "grpc")]
mod grpc;
mod network;
#[cfg(feature = "card-signing")]
mod signing;
mod start_error;

pub use start_error::StartError;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::Error;
use baton_protocol::domain::{AgentCard, AgentSkill};
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::auth::{Anonymous, Authenticator, Chain};
#[cfg(feature = "grpc")]
use crate::binding::grpc::{GrpcServices, health_paths};
use crate::binding::{self, App};
use crate::card::{self, Address, CardSigning, Enforced, ServedCard, Signer};
use crate::control::Control;
use crate::engine::agent::{IntoLogic, Skill};
use crate::engine::clock::{Clock, SystemClock};
use crate::engine::options::Options;
use crate::engine::stream_slots::StreamSlots;
use crate::engine::{Content, Engine, Health, Load, Swept};
use crate::local_client::{Answer, LocalClient, LocalStream};
use crate::mount::{Mount, MountError};
use crate::net::{self, Connections, Observer};
use crate::public_url::PublicUrl;
use crate::push::options::PushOptions;
use crate::push::{Keys, Parts, Push, admin::Webhooks};
#[cfg(feature = "master-key")]
use crate::secrets::MasterKeys;
use crate::secrets::{CALLERS, CURSOR, Secrets};
use crate::service::{Cursors, Service};
use crate::site::Site;
use crate::store::memory::MemoryStore;
use crate::store::{IntoStore, Store, StoreError};
use crate::telemetry::{Callers, Format, MetricsAccess, Telemetry};
#[cfg(feature = "tls")]
use crate::tls::TlsOptions;

/// The id of the agent on a server with a single agent; stores use it in their keys.
const ONLY_AGENT: &str = "default";

/// After the store has failed for good: how long requests under way have to be answered.
const FATAL_GRACE: Duration = Duration::from_secs(1);

/// Collects the agents and settings of a [`Server`].
#[must_use]
pub struct Builder {
    agents: Vec<Mount>,
    store: Arc<dyn Store>,
    options: Options,
    clock: Arc<dyn Clock>,
    authenticator: Arc<dyn Authenticator>,
    net: net::Settings,
    public_url: Option<PublicUrl>,
    drain: Duration,
    metrics: MetricsAccess,
    log_requests: bool,
    push: Option<PushOptions>,
    grpc: bool,
    #[cfg(feature = "grpc")]
    grpc_health: bool,
    #[cfg(feature = "grpc")]
    grpc_reflection: bool,
    signing: Option<CardSigning>,
    #[cfg(feature = "tls")]
    tls: Option<TlsOptions>,
    #[cfg(feature = "master-key")]
    master_keys: Option<MasterKeys>,
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
    webhooks: Webhooks,
    #[cfg(feature = "tls")]
    tls: Option<net::Tls>,
}

impl Server {
    /// The shortest way: one agent with one skill of the same name. It works on tasks if it takes a
    /// [`Turn`](crate::Turn), and answers with messages if it takes an [`Asked`](crate::Asked).
    pub fn agent<Kind>(name: &str, description: &str, agent: impl IntoLogic<Kind>) -> Builder {
        let card = AgentCard::new(name, description, "1.0.0");
        let mut skill = AgentSkill::new(name, name, description);
        skill.tags = vec![name.to_owned()];
        Self::builder(card).skill(Skill::new(skill, agent))
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
            authenticator: Arc::new(Anonymous::default()),
            net: net::settings(),
            public_url: None,
            drain: Duration::from_secs(30),
            metrics: MetricsAccess::default(),
            log_requests: false,
            push: None,
            grpc: false,
            #[cfg(feature = "grpc")]
            grpc_health: false,
            #[cfg(feature = "grpc")]
            grpc_reflection: false,
            signing: None,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "master-key")]
            master_keys: None,
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.site.engine()
    }

    /// Waits until the store has failed for good (a failed sync, say). From then on every write is refused; an
    /// application that mounts the [`router`](Self::router) should end its process, since nothing that this one
    /// does can make durable again what it wrote.
    pub fn fatal(&self) -> impl Future<Output = StoreError> + Send + use<> {
        self.engine().fatal()
    }

    /// How many turns are running, and how many tasks are queued.
    pub fn load(&self) -> Load {
        self.engine().load()
    }

    /// Whether this server can do its work: what `/readyz` answers, for applications that have their own probe.
    pub async fn health(&self) -> Health {
        self.engine().health().await
    }

    /// Folds and removes old tasks now, as [`Retention`](crate::Retention) says. The server also does this by itself
    /// from time to time.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        self.engine().sweep().await
    }

    /// To change cards and limits while the server serves.
    pub fn control(&self) -> Control {
        Control::new(
            Arc::clone(&self.site),
            #[cfg(feature = "tls")]
            self.tls.clone(),
        )
    }

    /// For operators: lists webhooks, replays those that failed, and switches them off.
    pub fn webhooks(&self) -> Webhooks {
        self.webhooks.clone()
    }

    /// A router to mount in your own application: at the root, merged with its routes, or nested below a path. It is
    /// also a `tower` service for any HTTP body.
    ///
    /// The card says where clients find the agent: at [`Builder::public_url`] if that is set, else where the request
    /// for the card came in. [`serve_app`](Self::serve_app) serves the application with the same limits and checks as
    /// [`serve`](Self::serve).
    ///
    /// An application with its own listener (TLS, WebSockets) also has to shut the agent down: an event stream stays
    /// open as long as its task works, and a listener that waits for open requests would wait for it. So shut the agent
    /// down first:
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
    /// Such an application should also await [`fatal`](Self::fatal). It has to bring its own limits on connections,
    /// checks of `Host` and `Origin`, and CORS: here they belong to the listener.
    pub fn router(&self) -> axum::Router {
        binding::routes(Arc::clone(&self.site))
    }

    /// Stops the agents: no new work is taken, running turns have the drain time to end, then streams close, and calls of
    /// webhooks have as long again. Turns that are still running are recovered at the next start. Applications that serve the [`router`](Self::router)
    /// themselves call this before they stop listening.
    pub async fn shut_down(&self) {
        self.engine().shut_down(self.drain).await;
        // Afterwards, since turns that end in this time have something to deliver.
        self.webhooks.stop(self.drain).await;
    }

    /// The server's metrics, as OpenMetrics text.
    pub async fn metrics(&self) -> String {
        binding::metrics::text(self.engine(), Format::OpenMetrics).await
    }

    /// A router with `GET /metrics` only, for a separate listener. Whoever reaches that listener may read the metrics.
    pub fn metrics_router(&self) -> axum::Router {
        binding::metrics_router(self.engine().clone())
    }

    /// Serves [`metrics_router`](Self::metrics_router) until `shutdown`.
    pub async fn serve_metrics_until(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StartError> {
        // Default settings: the hosts and origins allowed for the agents do not apply to this listener.
        let network = net::settings().check()?;
        let served = network.serve(
            listener,
            App::Routes(self.metrics_router()),
            None,
            shutdown,
            std::future::ready(()),
        );
        served.await.map_err(StartError::Serve)
    }

    /// The handle on the metrics, for listeners that count their own connections.
    pub fn telemetry(&self) -> &Telemetry {
        self.engine().telemetry()
    }

    /// A client inside the process, without a socket: see [`LocalClient`]. On a server with several agents it calls the
    /// agent at the root, or else the one with the shortest path.
    pub fn client(&self) -> LocalClient {
        LocalClient::new(self.site.nearest().clone())
    }

    /// A client for one of several agents, by the id it was mounted with.
    pub fn client_of(&self, agent: &str) -> Option<LocalClient> {
        self.site.agent(agent).cloned().map(LocalClient::new)
    }

    /// Sends a message to the agent and waits for the answer: [`LocalClient::send`].
    pub async fn send(&self, content: impl Into<Content>) -> Result<Answer, Error> {
        self.client().send(content).await
    }

    /// Sends a message to the agent and returns the events: [`LocalClient::stream`].
    pub async fn stream(&self, content: impl Into<Content>) -> Result<LocalStream, Error> {
        self.client().stream(content).await
    }

    /// Binds the address and serves until the process ends.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<(), StartError> {
        let listener = TcpListener::bind(address).await.map_err(StartError::Listen)?;
        self.serve_until(listener, std::future::pending()).await
    }

    /// Serves until `shutdown`, then drains: no new work is taken, running turns have the drain time to end, streams
    /// close.
    ///
    /// Returns [`StartError::Fatal`] when the store has failed for good: streams close, requests under way are refused,
    /// and turns are not waited for, since nothing they write could be stored. End the process then; the next one finds
    /// everything that was acknowledged.
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
    /// the right order: no new requests are taken, running turns have the drain time to end, streams close, and the
    /// remaining requests are answered.
    ///
    /// The limits on connections and the checks of `Host` and `Origin` apply to the whole application, and its handlers
    /// can extract `ConnectInfo<SocketAddr>`. Connections cannot be upgraded, so WebSockets do not work. Returns like
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
                _ = engine.fatal() => {
                    engine.abandon();
                    self.webhooks.stop(Duration::ZERO).await;
                }
                () = self.shut_down() => {}
            }
        };
        let fatal = async {
            let error = engine.fatal().await;
            tokio::time::sleep(FATAL_GRACE).await;
            error
        };
        let telemetry: Arc<dyn Observer> = Arc::new(self.telemetry().clone());
        tokio::select! {
            served = self.network.serve(listener, app, Some(telemetry), stop, drained) => {
                served.map_err(StartError::Serve)?;
                engine.failure().map_or(Ok(()), |error| Err(StartError::Fatal(error)))
            }
            error = fatal => Err(StartError::Fatal(error)),
        }
    }
}

impl Builder {
    /// Where tasks are stored; in memory by default. A store, or an `Arc` of a store that is shared.
    pub fn store(mut self, store: impl IntoStore) -> Self {
        self.store = store.into_store();
        self
    }

    /// Limits for the turns and tasks of all agents.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Where the time comes from; the system clock by default.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Authenticates callers by these schemes. The security section of each card is checked against them, or written if
    /// the card has none. [`Chain::replace`] changes a chain that is kept in an `Arc`, while the server serves.
    pub fn auth(self, chain: impl Into<Arc<Chain>>) -> Self {
        self.authenticator(chain.into())
    }

    /// Authenticates callers in a way of your own; by default every caller is `anonymous`.
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticator = authenticator;
        self
    }

    /// Encrypts the secrets that the server makes and keeps in its store. From then on the server does not start on this
    /// store without the key, so keep it, but not beside the store. A [`MasterKey`](crate::MasterKey), or
    /// [`MasterKeys`] to replace one.
    #[cfg(feature = "master-key")]
    pub fn master_key(mut self, keys: impl Into<MasterKeys>) -> Self {
        self.master_keys = Some(keys.into());
        self
    }

    /// Calls webhooks that clients register for their tasks. By default there are none: they make the server call addresses
    /// that clients choose, so think about who may call it.
    pub fn push(mut self, options: PushOptions) -> Self {
        self.push = Some(options);
        self
    }

    /// How long running turns have to end at shutdown; 30 s by default.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Who may read `/metrics` on the agents' port; by default only this machine. [`Server::metrics_router`] serves
    /// them on a separate listener.
    pub fn metrics(mut self, access: MetricsAccess) -> Self {
        self.metrics = access;
        self
    }

    /// Whether every request is logged at level `info`. By default only requests that could not be served are; at level
    /// `debug` all requests are logged in any case.
    pub fn log_requests(mut self, wanted: bool) -> Self {
        self.log_requests = wanted;
        self
    }

    /// Checks the cards against what is mounted, creates the server, and recovers the open tasks of an earlier process.
    pub async fn build(self) -> Result<Server, StartError> {
        if self.agents.is_empty() {
            return Err(MountError::NoAgent.into());
        }
        let enforced = Enforced::by(&*self.authenticator);
        let mut logics = HashMap::new();
        let mut mounts = Vec::new();
        for mut mount in self.agents {
            mount.check()?;
            let card = std::mem::replace(&mut mount.card, AgentCard::new("", "", ""));
            let features = mount.features(self.push.is_some(), self.grpc);
            let card = card::mounted(card, &mount.skills, &enforced, features);
            mount.card = card.map_err(StartError::Card)?;
            if mount.extended.is_some() && matches!(enforced, Enforced::Nothing) {
                let line = "capabilities.extendedAgentCard: an extended card is for authenticated callers, but this \
                            server authenticates nobody";
                return Err(StartError::Card(vec![line.to_owned()]));
            }
            if logics.insert(Arc::clone(&mount.id), mount.logic()).is_some() {
                return Err(MountError::SameId(mount.id.to_string()).into());
            }
            mounts.push(mount);
        }
        let unused = enforced.without_card(mounts.iter().map(|mount| &mount.card));
        if !unused.is_empty() {
            return Err(StartError::Card(unused));
        }
        let mut net = self.net;
        if let Some(schemes) = self.authenticator.schemes() {
            net.cors_answers.headers = net::headers_for(&schemes);
        }
        let public_url = self.public_url;
        if let Some(url) = &public_url {
            net.public_url = Some(url.as_str().to_owned());
            net.open_paths.base = url.path().to_owned();
        }
        #[cfg(feature = "grpc")]
        if self.grpc_health {
            net.open_paths.health.extend(health_paths());
        }
        #[cfg(feature = "tls")]
        let scheme = {
            net.tls = self.tls.as_ref().map(TlsOptions::tls).transpose()?;
            if net.tls.is_some() { "https" } else { "http" }
        };
        #[cfg(not(feature = "tls"))]
        let scheme = "http";
        #[cfg(feature = "tls")]
        let tls = net.tls.clone();
        let signer = self.signing.map(|signing| Signer::new(signing, public_url.as_ref())).transpose()?;
        let trusted = net.trusted_proxies.clone();
        let network = net.check()?;
        #[cfg(not(feature = "master-key"))]
        let master_keys = None;
        #[cfg(feature = "master-key")]
        let master_keys = self.master_keys;
        let mut secrets = Secrets::open(Arc::clone(&self.store), master_keys).await?;
        let cursors = Cursors::new(secrets.get(CURSOR).await?);
        let callers = Callers::new(secrets.get(CALLERS).await?);
        let (store, clock) = (&self.store, Arc::clone(&self.clock));
        let keys = Keys::open(&mut secrets, self.push.as_ref(), store, &clock, public_url.as_ref()).await?;
        secrets.finish();
        let agents = mounts.iter().map(|mount| &mount.id);
        let telemetry = Telemetry::new(agents, callers, self.metrics, self.log_requests);
        let engine = Engine::new(self.store, logics, self.options, self.clock, telemetry);
        let parts = Parts {
            registry: Arc::clone(engine.webhooks()),
            store: engine.store().clone(),
            clock: Arc::clone(&clock),
            keys,
            telemetry: engine.telemetry().clone(),
        };
        let push = self.push.map(|given| Push::new(given, parts)).transpose().map_err(StartError::Push)?;
        // All agents share one limit on streams.
        let Connections { max_streams, max_streams_per_owner, .. } = *network.connections();
        let streams = StreamSlots::new(max_streams, max_streams_per_owner);
        let services = mounts.into_iter().map(|mount| {
            let address = Address {
                public_url: public_url.clone(),
                trusted: trusted.clone(),
                place: mount.place.clone(),
                scheme,
                grpc: self.grpc.then_some(mount.grpc),
            };
            let card = ServedCard::new(mount.card, address, engine.now(), signer.clone());
            let (cursors, limits) = (cursors.clone(), mount.limits);
            let (id, streams, extended) = (mount.id, streams.clone(), mount.extended);
            let push = push.clone();
            Service::new(engine.clone(), id, &mount.place, card, cursors, limits, streams, extended, push)
        });
        let services = services.collect();
        let site = Site::new(
            engine.clone(),
            self.authenticator,
            public_url,
            trusted,
            services,
            push.clone(),
            signer,
        );
        let site = site?;
        #[cfg(feature = "grpc")]
        let site = site.with_grpc_services(GrpcServices::new(self.grpc_health, self.grpc_reflection));
        let site = Arc::new(site);
        // Last: tasks of an earlier process are recovered only once nothing else can keep this server from starting.
        engine.recover().await?;
        if let Some(push) = &push {
            push.start().await?;
        }
        Ok(Server {
            site,
            network,
            drain: self.drain,
            webhooks: Webhooks::of_server(engine.store().clone(), clock, push),
            #[cfg(feature = "tls")]
            tls,
        })
    }
}
