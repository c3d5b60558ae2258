//! `baton serve`: opens the store, binds, says hello, serves until told to stop.

mod first_call;
mod store;

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use baton_protocol::generation::Generations;
use baton_server::card;
use baton_server::store::StoreError;
use baton_server::{Connections, Cors, MetricsAccess, Server, StartError};
use tokio::net::{TcpListener, lookup_host};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::Settings;
use crate::config::{self, AgentPlan, Config, Loaded, Problem, Problems, StoreUrl};
use crate::exit::Failure;
#[cfg(debug_assertions)]
use crate::faults;
use crate::files;
use crate::log;
use crate::reload::{self, Reload};
use crate::signals::{Hangups, Signals};

use self::first_call::curl_line;
use self::store::Opened;

pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    // All that can be wrong is found before the store is opened and the port is taken.
    let mut inputs = settings.into_inputs();
    let wrong = |problems: Problems| Failure::usage(problems.to_string());
    let mut loaded = inputs.load().await.map_err(wrong)?;
    let config = &loaded.config;
    let addresses = resolve(config).await?;
    log::install(config, service_name(&loaded.agents))?;
    #[cfg(debug_assertions)]
    faults::install()?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let no_signals = |error: io::Error| Failure::failed(format!("no signal handling: {error}"));
    let signals = Signals::listen().map_err(no_signals)?;
    let hangups = Hangups::listen().map_err(no_signals)?;

    let opened = store::open(config).await?;
    let store_url = opened.url.clone();
    if opened.shares_scope && loaded.agents.iter().any(AgentPlan::is_program) {
        tracing::info!(store = %store_url, "the store has tasks of an earlier version, which all agents at the root share");
        inputs.share_scope(&mut loaded);
    }
    let config = &loaded.config;
    let server = build(config, &loaded.agents, opened).await?;
    let metrics_listener = bind_metrics(config).await?;
    let listener = bind(config, &addresses).await?;
    let address = listener.local_addr().map_err(|error| Failure::failed(format!("no address: {error}")))?;
    welcome(address, &loaded, &store_url);

    let drain = *config.drain;
    let reload = Reload::new(inputs, server.control(), loaded);
    let terminal_gone = tokio::spawn(reload::watch(hangups, reload));
    let stop = CancellationToken::new();
    if let Some(listener) = metrics_listener {
        serve_metrics(listener, &server, stop.clone());
    }
    let engine = server.engine().clone();
    let serving = Box::pin(server.serve_until(listener, stop.clone().cancelled_owned()));
    until_stopped(serving, stop, signals, terminal_gone, || (engine.load().running, drain)).await
}

async fn build(config: &Config, agents: &[AgentPlan], opened: Opened) -> Result<Server, Failure> {
    let proxies = config.trusted_proxies.iter().map(|proxy| proxy.range).collect();
    let mut builder = Server::host()
        .store(opened.store)
        .options(config.engine_options())
        .connections(connections(config))
        .trusted_proxies(proxies)
        .allowed_hosts(config.allowed_hosts.iter().map(|host| host.as_str().to_owned()).collect())
        .drain(*config.drain)
        .metrics(metrics_access(config))
        .log_requests(*config.log.requests);
    if !config.cors.origins.is_empty() {
        builder = builder.cors(Cors::of(config.cors.origins.iter().map(|origin| origin.as_str())));
    }
    if let Some(url) = config.public_url.as_ref() {
        builder = builder.public_url(url.as_str());
    }
    let builder = agents.iter().fold(builder, |builder, plan| builder.mount(plan.mount()));
    builder.build().await.map_err(cannot_start)
}

/// What the configuration says, as far as the system has files for it.
fn connections(config: &Config) -> Connections {
    let mut bounds = config.connection_bounds();
    let Some(files) = files::raise_limit() else { return bounds };
    let most = files::for_connections(files);
    if bounds.max_connections > most {
        tracing::warn!(
            files,
            wanted = bounds.max_connections,
            connections = most,
            "fewer connections than wanted: raise the limit on open files (`ulimit -n`, LimitNOFILE=)"
        );
        bounds.max_connections = most;
    }
    bounds
}

/// With an address of their own the numbers are nowhere else.
fn metrics_access(config: &Config) -> MetricsAccess {
    match *config.metrics.enabled && config.metrics.listen.is_none() {
        true => MetricsAccess::Loopback,
        false => MetricsAccess::Off,
    }
}

/// What the process is called in traces.
fn service_name(agents: &[AgentPlan]) -> &str {
    match agents {
        [only] => &only.card.name,
        _ => "baton",
    }
}

async fn bind_metrics(config: &Config) -> Result<Option<TcpListener>, Failure> {
    let setting = &config.metrics.listen;
    let Some(listen) = setting.as_ref().filter(|_| *config.metrics.enabled) else { return Ok(None) };
    let refused = |error: io::Error| {
        let text = format!("{}: {error}", listen.as_str());
        Failure::failed(Problem::new(setting.source().clone(), "metrics.listen", text).to_string())
    };
    let listener = TcpListener::bind(listen.as_str()).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    tracing::info!(%address, "metrics are served apart");
    Ok(Some(listener))
}

/// The numbers at an address of their own, as long as the server serves.
fn serve_metrics(listener: TcpListener, server: &Server, stop: CancellationToken) {
    let server = server.clone();
    tokio::spawn(async move {
        if let Err(error) = server.serve_metrics_until(listener, stop.cancelled_owned()).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
}

/// The first signal lets the running turns end; the second one does not wait for them. `waiting` tells how many turns
/// there are, and how long they have.
async fn until_stopped(
    mut serving: impl Future<Output = Result<(), StartError>> + Unpin,
    stop: CancellationToken,
    mut signals: Signals,
    terminal_gone: JoinHandle<()>,
    waiting: impl Fn() -> (usize, Duration),
) -> Result<(), Failure> {
    tokio::select! {
        ended = &mut serving => return ended.map_err(cannot_start),
        _ = terminal_gone => tracing::info!(signal = "SIGHUP", "stopping: the terminal has closed"),
        name = signals.next() => {
            let (running, drain) = waiting();
            tell(&farewell(running, drain), || {
                tracing::info!(signal = name, running, ?drain, "stopping; signal again to quit immediately");
            });
        }
    }
    stop.cancel();
    tokio::select! {
        ended = &mut serving => ended.map_err(cannot_start)?,
        _ = signals.next() => return Err(Failure::interrupted()),
    }
    tell("Stopped", || tracing::info!("stopped"));
    Ok(())
}

/// What the person at the terminal waits for.
fn farewell(running: usize, drain: Duration) -> String {
    let waiting = match running {
        0 => String::new(),
        1 => format!(": waiting for 1 task to come to rest, up to {drain:?}"),
        several => format!(": waiting for {several} tasks to come to rest, up to {drain:?}"),
    };
    format!("\nStopping{waiting}; press Ctrl-C again to stop now")
}

async fn resolve(config: &Config) -> Result<Vec<SocketAddr>, Failure> {
    let refused = |text: String| {
        let problem = Problem::new(config.listen.source().clone(), "listen", text);
        Failure::usage(problem.to_string())
    };
    let listen = config.listen.as_str();
    let addresses: Vec<_> = match lookup_host(listen).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(refused(format!("{listen}: {error}; give it as 127.0.0.1:3000"))),
    };
    match addresses.iter().find(|address| !address.ip().is_loopback()) {
        Some(public) if !*config.allow_public => Err(refused(config::not_loopback(&public.to_string()))),
        _ => Ok(addresses),
    }
}

async fn bind(config: &Config, addresses: &[SocketAddr]) -> Result<TcpListener, Failure> {
    let listen = config.listen.as_str();
    TcpListener::bind(addresses).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Failure::failed(format!(
            "{listen} is taken by another program; choose a port with --listen, as in \
             `baton serve --listen 127.0.0.1:0` (0 takes a free one)"
        )),
        _ => Failure::failed(format!("cannot listen at {listen}: {error}; --listen chooses another address")),
    })
}

fn cannot_start(error: StartError) -> Failure {
    match error {
        StartError::Store(error) | StartError::Fatal(error) => store_failed(&error, &error.to_string()),
        other => Failure::failed(other.to_string()),
    }
}

/// What was said, with what to do about it.
fn store_failed(error: &StoreError, said: &str) -> Failure {
    match error {
        StoreError::Fatal(_) => Failure::store_lost(format!(
            "{said}; nothing was acknowledged after that. Look at the disk and the system's log, then start again: \
             everything acknowledged before is read back"
        )),
        StoreError::Full(_) => Failure::failed(format!(
            "{said}; make some room on that file system (1 MiB is enough to start), or choose another place with \
             --store"
        )),
        _ => Failure::failed(said),
    }
}

/// A line about the whole server: a plain one for the person at a terminal, else one of the log.
fn tell(line: &str, log: impl FnOnce()) {
    if io::stderr().is_terminal() {
        // A terminal that has closed meanwhile is no reason to fail.
        let _ = writeln!(io::stderr(), "{line}");
    } else {
        log();
    }
}

/// For the person at the terminal; whoever reads the log finds the same address there. Where both are one terminal the
/// welcome says it all.
fn welcome(address: SocketAddr, loaded: &Loaded, store: &StoreUrl) {
    let Loaded { config, agents, file, .. } = loaded;
    let version = env!("CARGO_PKG_VERSION");
    if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
        tracing::info!(version, %address, %store, agents = agents.len(), "listening");
    }
    let url = format!("http://{}", reachable(address));
    let at = |plan: &AgentPlan| format!("{url}{}", plan.path().trim_end_matches('/'));
    let who = match &agents[..] {
        [only] if only.is_demo() && !config.card.is_set() => "the demo agent".to_owned(),
        [only] => only.card.name.clone(),
        several => format!("{} agents", several.len()),
    };
    let mut text = format!("Baton {version}: {who}\n\n  listening  {url}\n");
    for plan in agents {
        let name = if agents.len() > 1 { format!("  ({})", plan.card.name) } else { String::new() };
        text += &format!("  card       {}/.well-known/agent-card.json{name}\n", at(plan));
    }
    // Checked when the agent was mounted.
    let served = |plan: &AgentPlan| card::generations(&plan.card).unwrap_or(Generations::ALL);
    for plan in agents {
        let served = served(plan);
        if !served.others().is_empty() {
            let (on, off) = (served.versions(), served.others().versions());
            text += &format!("  protocol   {on} (the card switches {off} off)\n");
        }
    }
    if let Some(public_url) = config.public_url.as_ref() {
        text += &format!("  known as   {}\n", public_url.as_str());
    }
    let own = &*config.store.url;
    let kept = match store {
        StoreUrl::Memory => " (gone when the server ends)".to_owned(),
        // The one that everybody used to have.
        _ if store != own => {
            format!(" (kept, with the tasks of an earlier version; a file of its own: --store {own})")
        }
        StoreUrl::Sqlite(_) => String::new(),
    };
    text += &format!("  store      {store}{kept}\n");
    if let Some(file) = file {
        text += &format!("  config     {}\n", file.display());
    }
    if let Some(first) = agents.first() {
        text += &format!("\nTry it:\n\n  {}\n\n", curl_line(&at(first), served(first), first.example()));
    }
    // A closed stdout is no reason not to serve.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// An address that means "all of mine" cannot be called; this machine can, by its own name.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}
