//! `baton serve`: opens the store, binds, prints the addresses, and serves until it is stopped.

pub(crate) mod config;
pub(crate) mod first_call;
mod keys;
mod self_signed;
pub(crate) mod store;
mod webhooks;

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::generation::Generations;
use baton_server::auth::Chain;
use baton_server::card;
use baton_server::store::StoreError;
use baton_server::tls::TlsOptions;
use baton_server::{Connections, Cors, MetricsAccess, PushOptions, SecretsError, Server, StartError};
use tokio::net::{TcpListener, lookup_host};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::Settings;
use crate::config::{AgentPlan, Config, Inputs, Loaded, Problem, Problems, StoreUrl};
use crate::exit::Failure;
#[cfg(debug_assertions)]
use crate::faults;
use crate::files;
use crate::log;
use crate::reload::{self, Reload};
use crate::signals::{Hangups, Signals};

use self::first_call::{curl_line, send_line};
use self::keys::Keys;
use self::store::Opened;
use self::webhooks::Webhooks;

pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    Box::pin(serve(settings.into_inputs())).await
}

/// The demo agent, whatever configuration is around.
pub(crate) async fn run_demo(settings: Settings) -> Result<(), Failure> {
    Box::pin(serve(settings.into_inputs().alone())).await
}

async fn serve(mut inputs: Inputs) -> Result<(), Failure> {
    // Mistakes in the configuration are found before the store is opened and the port is taken.
    let wrong = |problems: Problems| Failure::usage(problems.to_string());
    let mut loaded = inputs.load_before_store().await.map_err(wrong)?;
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
    let keys = Keys::open(&loaded.config, &opened.store).await?;
    // Only now it is known whether the store has keys.
    inputs.use_keys(keys.stored());
    let loaded = inputs.load().await.map_err(wrong)?;
    refuse_public(&loaded, &addresses)?;
    keys.warn(&loaded, &opened).await;
    let config = &loaded.config;
    let auth = loaded.auth.enforces().then(|| Arc::new(loaded.auth.chain()));
    let self_signed = match *config.tls.self_signed {
        true => Some(self_signed::find_or_make(config, &store_url, &addresses)?),
        false => None,
    };
    let tls = loaded.tls.clone().or_else(|| self_signed.as_ref().map(|made| made.options.clone()));
    let webhooks = Webhooks::of(&loaded, &addresses);
    let push = webhooks.options(&loaded);
    let server = build(&loaded, auth.clone(), opened, tls.clone(), push).await?;
    let metrics_listener = bind_metrics(config).await?;
    let listener = bind(config, &addresses).await?;
    let address = listener.local_addr().map_err(|error| Failure::failed(format!("no address: {error}")))?;
    let trusted = self_signed.as_ref().map(|made| &*made.file);
    if address.ip().is_unspecified() && config.public_url.is_none() {
        let url = url_of(config, address);
        let wanted =
            format!("{}://HOST:{}", if config.tls.is_on() { "https" } else { "http" }, address.port());
        tracing::warn!(
            "the card gives {url} to clients, which other machines cannot reach: set --public-url {wanted}"
        );
    }
    let stop = CancellationToken::new();
    let reached_at = (&*url_of(config, address), trusted);
    keys.serve_admin(&loaded, &store_url, reached_at, &server, stop.clone())?;
    welcome(address, &loaded, &store_url, &webhooks, trusted);

    let drain = *config.drain;
    let reload = Reload::new(inputs, server.control(), auth, loaded, tls, address);
    let terminal_gone = tokio::spawn(reload::watch(hangups, reload));
    if let Some(listener) = metrics_listener {
        serve_metrics(listener, &server, stop.clone());
    }
    let looked_at = server.clone();
    let serving = Box::pin(server.serve_until(listener, stop.clone().cancelled_owned()));
    until_stopped(serving, stop, signals, terminal_gone, || (looked_at.load().running, drain)).await
}

async fn build(
    loaded: &Loaded,
    auth: Option<Arc<Chain>>,
    opened: Opened,
    tls: Option<TlsOptions>,
    push: Option<PushOptions>,
) -> Result<Server, Failure> {
    let Loaded { config, agents, .. } = loaded;
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
    if let Some(auth) = auth {
        builder = builder.auth(auth);
    }
    if !config.cors.origins.is_empty() {
        builder = builder.cors(Cors::of(config.cors.origins.iter().map(|origin| origin.as_str())));
    }
    if let Some(url) = config.public_url.as_ref() {
        builder = builder.public_url(url.as_str());
    }
    #[cfg(debug_assertions)]
    let push = push.map(faults::push_options).transpose()?;
    if let Some(push) = push {
        builder = builder.push(push);
    }
    if let Some(tls) = tls {
        builder = builder.tls(tls);
    }
    if let Some(signing) = &loaded.signing {
        builder = builder.sign_cards(signing.clone());
    }
    #[cfg(feature = "grpc")]
    if *config.grpc {
        builder = builder.grpc();
        if *config.grpc_health {
            builder = builder.grpc_health();
        }
        if *config.grpc_reflection {
            builder = builder.grpc_reflection();
        }
    }
    if let Some(keys) = &loaded.master_keys {
        builder = builder.master_key(keys.clone());
    }
    let builder = agents.iter().fold(builder, |builder, plan| builder.mount(plan.mount()));
    builder.build().await.map_err(cannot_start)
}

/// The configured limits on connections, reduced if the process may open fewer files.
fn connections(config: &Config) -> Connections {
    let mut bounds = config.connection_bounds();
    let Some(files) = files::raise_limit() else { return bounds };
    let most = files::for_connections(files);
    if bounds.max_connections > most {
        tracing::warn!(
            files,
            wanted = bounds.max_connections,
            connections = most,
            "fewer connections than configured: raise the limit on open files (`ulimit -n`, LimitNOFILE=)"
        );
        bounds.max_connections = most;
    }
    bounds
}

/// With a separate address, metrics are not served on the main port.
fn metrics_access(config: &Config) -> MetricsAccess {
    match *config.metrics.enabled && config.metrics.listen.is_none() {
        true => MetricsAccess::Loopback,
        false => MetricsAccess::Off,
    }
}

/// The service name in traces.
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
    tracing::info!(%address, "serving metrics at a separate address");
    Ok(Some(listener))
}

/// Serves metrics at a separate address until the server stops.
fn serve_metrics(listener: TcpListener, server: &Server, stop: CancellationToken) {
    let server = server.clone();
    tokio::spawn(async move {
        if let Err(error) = server.serve_metrics_until(listener, stop.cancelled_owned()).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
}

/// After the first signal the running turns have time to end; the second signal stops at once. `waiting` returns the
/// number of running turns and their time limit.
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
            tell(&stopping_line(running, drain), || {
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

/// The line for the terminal when the server is asked to stop.
fn stopping_line(running: usize, drain: Duration) -> String {
    let waiting = match running {
        0 => String::new(),
        1 => format!(": waiting for 1 task to come to rest, up to {drain:?}"),
        several => format!(": waiting for {several} tasks to come to rest, up to {drain:?}"),
    };
    format!("\nStopping{waiting}; press Ctrl-C again to stop now")
}

async fn resolve(config: &Config) -> Result<Vec<SocketAddr>, Failure> {
    let listen = config.listen.as_str();
    match lookup_host(listen).await {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(wrong_listen(config, format!("{listen}: {error}; give it as 127.0.0.1:3000"))),
    }
}

fn wrong_listen(config: &Config, text: String) -> Failure {
    Failure::usage(Problem::new(config.listen.source().clone(), "listen", text).to_string())
}

/// A name may stand for an address that other machines can reach.
fn refuse_public(loaded: &Loaded, addresses: &[SocketAddr]) -> Result<(), Failure> {
    let public = addresses.iter().find(|address| !address.ip().is_loopback());
    match public.and_then(|public| loaded.listening.refused_at(&public.to_string())) {
        Some(text) => Err(wrong_listen(&loaded.config, text)),
        None => Ok(()),
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
        StartError::Secrets(error) => Failure::failed(format!("{error}{}", advice(&error))),
        other => Failure::failed(other.to_string()),
    }
}

/// What to do if the secrets of the store cannot be used.
fn advice(error: &SecretsError) -> &'static str {
    match error {
        SecretsError::NoMasterKey { .. } => {
            "; set BATON_MASTER_KEY to it, or BATON_MASTER_KEY_FILE to a file that has it"
        }
        SecretsError::OtherMasterKey { .. } => {
            "; set BATON_MASTER_KEY to it. To replace it by the one that is set now, set BATON_MASTER_KEY_OLD to it for \
             one start"
        }
        SecretsError::Changed(_) => "; restore the store from a backup",
        _ => "",
    }
}

/// The store's error with what to do about it.
fn store_failed(error: &StoreError, said: &str) -> Failure {
    match error {
        StoreError::Fatal(_) => Failure::store_lost(format!(
            "{said}; nothing was acknowledged after that. Check the disk and the system's log, then start again: \
             everything acknowledged before that is still there"
        )),
        StoreError::Full(_) => Failure::failed(format!(
            "{said}; make some room on that file system (1 MiB is enough to start), or choose another place with \
             --store"
        )),
        _ => Failure::failed(said),
    }
}

/// A message about the whole server: plain text if stderr is a terminal, else a log line.
fn tell(line: &str, log: impl FnOnce()) {
    if io::stderr().is_terminal() {
        // If the terminal was closed meanwhile, the line is dropped.
        let _ = writeln!(io::stderr(), "{line}");
    } else {
        log();
    }
}

/// Prints addresses and an example to stdout, and logs the address. If stdout and stderr are the same terminal, the log
/// line is left out. `trusted` is the certificate that clients have to be told to trust, if it is one of our own.
fn welcome(
    address: SocketAddr,
    loaded: &Loaded,
    store: &StoreUrl,
    webhooks: &Webhooks,
    trusted: Option<&Path>,
) {
    let Loaded { config, agents, file, .. } = loaded;
    let version = env!("CARGO_PKG_VERSION");
    if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
        tracing::info!(version, %address, %store, agents = agents.len(), "listening");
    }
    let url = url_of(config, address);
    let at = |plan: &AgentPlan| format!("{url}{}", plan.path().trim_end_matches('/'));
    let who = match &agents[..] {
        [only] if only.is_demo() && !config.card.is_set() => "the demo agent".to_owned(),
        [only] => only.card.name.clone(),
        several => format!("{} agents", several.len()),
    };
    let mut text = format!("Baton {version}: {who}\n\n  listening  {url}\n");
    if address.ip().is_unspecified() {
        text += &format!("  bound to   {address}, all addresses of this machine\n");
    }
    for plan in agents {
        let name = if agents.len() > 1 { format!("  ({})", plan.card.name) } else { String::new() };
        text += &format!("  card       {}/.well-known/agent-card.json{name}\n", at(plan));
    }
    // Mounting the agent has checked this already.
    let served = |plan: &AgentPlan| card::generations(&plan.card).unwrap_or(Generations::ALL);
    for plan in agents {
        let served = served(plan);
        if !served.others().is_empty() {
            let (on, off) = (served.versions(), served.others().versions());
            let (of, whose) = match &agents[..] {
                [_] => (String::new(), "the"),
                _ => (format!(" for {}", plan.card.name), "its"),
            };
            text += &format!("  protocol   {on}{of} ({whose} card switches {off} off)\n");
        }
    }
    if let Some(public_url) = config.public_url.as_ref() {
        text += &format!("  known as   {}\n", public_url.as_str());
    }
    let own = &*config.store.url;
    let kept = match store {
        StoreUrl::Memory => " (gone when the server ends)".to_owned(),
        // The file that all agents shared in earlier versions.
        _ if store != own => {
            format!(" (kept, with the tasks of an earlier version; a file of its own: --store {own})")
        }
        StoreUrl::Sqlite(_) => String::new(),
    };
    text += &format!("  store      {store}{kept}\n");
    if *config.grpc {
        let with = if config.tls.is_on() { "with TLS" } else { "without TLS" };
        text += &format!("  gRPC       {}, {with}\n", reachable(address));
    }
    text += &format!("  webhooks   {}\n", webhooks.told(loaded));
    if let Some(trusted) = trusted {
        text +=
            &format!("  tls        self-signed, for trying: clients have to trust {}\n", trusted.display());
    }
    let place = loaded.auth.takes_keys().then(|| config.auth.api_key.place());
    if let Some(place) = &place {
        let more = keys::command(loaded, store).map(|command| format!(" (`{command}` makes one)"));
        text += &format!("  callers    need a key, {place}{}\n", more.unwrap_or_default());
    }
    if let Some(file) = file {
        text += &format!("  config     {}\n", file.display());
    }
    if let Some(first) = agents.first() {
        // Where the shell finds it, never the secret.
        let (found, variable) = config.auth.api_key.in_shell();
        let key = place.as_ref().map(|place| (place, &*found));
        let with = match (key, variable) {
            (Some(_), Some(variable)) => format!(" with a key in the variable {variable}"),
            _ => String::new(),
        };
        let line = curl_line(&at(first), served(first), first.example(), trusted, key);
        let own = send_line(&at(first), served(first), first.example(), trusted, key.map(|(_, key)| key));
        text += &format!("\nTry it{with}:\n\n  {own}\n  {line}\n\n");
    }
    // A closed stdout is not an error.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn url_of(config: &Config, address: SocketAddr) -> String {
    let scheme = if config.tls.is_on() { "https" } else { "http" };
    format!("{scheme}://{}", reachable(address))
}

/// An unspecified address such as 0.0.0.0 cannot be called; loopback can.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}
