//! `baton serve`: opens the store, binds, says hello, serves until told to stop.

use std::io::{self, ErrorKind, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::store::sqlite::{self, SqliteStore};
use baton_server::{MetricsAccess, Server, StartError};
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

use crate::agents::demo;
use crate::args::{Serve, StoreUrl};
use crate::commands::card_file::CardFile;
use crate::exit::Failure;
use crate::log;
use crate::signals::Signals;

pub(crate) async fn run(args: Serve) -> Result<(), Failure> {
    // All that can be wrong is found before the port is taken.
    let store: StoreUrl =
        args.store.parse().map_err(|reason| Failure::usage(format!("--store: {reason}")))?;
    let addresses = resolve(&args).await?;
    let signals =
        Signals::listen().map_err(|error| Failure::failed(format!("no signal handling: {error}")))?;
    let card_file = args.card.as_deref().map(CardFile::read).transpose()?;
    let card = match &card_file {
        Some(file) => file.card.clone(),
        None => demo::card(args.profile),
    };
    let mut builder =
        demo::server(card).store(open(&store).await?).trusted_proxies(args.trusted_proxy.clone());
    if let Some(url) = &args.public_url {
        builder = builder.public_url(url);
    }
    // With an address of their own the numbers are nowhere else.
    let beside = if args.metrics_listen.is_some() { MetricsAccess::Off } else { MetricsAccess::Loopback };
    builder = builder.metrics(beside).log_requests(args.log_requests);
    let server = builder.build().await.map_err(|error| match (error, &card_file) {
        (StartError::Card(refusal), Some(file)) => Failure::usage(file.name_line(&refusal)),
        (error, _) => cannot_start(error),
    })?;
    let metrics_listener = match &args.metrics_listen {
        Some(listen) => Some(bind_metrics(listen).await?),
        None => None,
    };
    let listener = bind(&args.listen, &addresses).await?;
    let address = listener.local_addr().map_err(|error| Failure::failed(format!("no address: {error}")))?;
    welcome(address, &store, args.public_url.as_deref());

    let stop = CancellationToken::new();
    if let Some(listener) = metrics_listener {
        serve_metrics(listener, &server, stop.clone());
    }
    let serving = Box::pin(server.serve_until(listener, stop.clone().cancelled_owned()));
    until_stopped(serving, stop, signals).await
}

/// What the log needs to know before anything else happens.
pub(crate) fn log_options(args: &Serve) -> Result<log::Options, Failure> {
    let service = match &args.card {
        Some(path) => CardFile::read(path)?.card.name,
        None => demo::card(args.profile).name,
    };
    Ok(log::Options { format: args.log_format, otlp: args.otlp.clone(), service })
}

async fn bind_metrics(listen: &str) -> Result<TcpListener, Failure> {
    let refused = |error: io::Error| Failure::usage(format!("--metrics-listen {listen}: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    tracing::info!(%address, "metrics are served apart");
    Ok(listener)
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

/// The first signal lets the running turns end; the second one does not wait for them.
async fn until_stopped(
    mut serving: impl Future<Output = Result<(), StartError>> + Unpin,
    stop: CancellationToken,
    mut signals: Signals,
) -> Result<(), Failure> {
    tokio::select! {
        ended = &mut serving => return ended.map_err(cannot_start),
        name = signals.next() => tracing::info!(signal = name, "stopping; once more to stop at once"),
    }
    stop.cancel();
    tokio::select! {
        ended = &mut serving => ended.map_err(cannot_start),
        _ = signals.next() => Err(Failure::interrupted()),
    }
}

async fn resolve(args: &Serve) -> Result<Vec<SocketAddr>, Failure> {
    let listen = &args.listen;
    let addresses: Vec<_> = match lookup_host(listen).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            return Err(Failure::usage(format!("--listen {listen}: {error}; give it as 127.0.0.1:3000")));
        }
    };
    match addresses.iter().find(|address| !address.ip().is_loopback()) {
        Some(public) if !args.allow_public => Err(Failure::usage(format!(
            "--listen {listen}: other machines may reach {public}, and there is no authentication yet: \
             whoever reaches it can read and change every task. Listen at 127.0.0.1, or add --allow-public"
        ))),
        _ => Ok(addresses),
    }
}

async fn open(store: &StoreUrl) -> Result<Arc<dyn Store>, Failure> {
    match store {
        StoreUrl::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreUrl::Sqlite(path) => {
            let path = path.clone();
            let opened =
                tokio::task::spawn_blocking(move || SqliteStore::open(&path, sqlite::Options::default()));
            match opened.await {
                Ok(Ok(opened)) => Ok(Arc::new(opened)),
                Ok(Err(error)) => Err(Failure::failed(format!("--store {store}: {error}"))),
                Err(error) => Err(Failure::failed(format!("--store {store}: {error}"))),
            }
        }
    }
}

async fn bind(listen: &str, addresses: &[SocketAddr]) -> Result<TcpListener, Failure> {
    TcpListener::bind(addresses).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Failure::failed(format!(
            "{listen} is taken by another program; choose a port with --listen, as in \
             `baton serve --listen 127.0.0.1:0` (0 takes a free one)"
        )),
        _ => Failure::failed(format!("cannot listen at {listen}: {error}; --listen chooses another address")),
    })
}

fn cannot_start(error: StartError) -> Failure {
    Failure::failed(error.to_string())
}

/// For the person at the terminal; whoever reads the log finds the same address there.
fn welcome(address: SocketAddr, store: &StoreUrl, public_url: Option<&str>) {
    tracing::info!(%address, %store, "listening");
    let url = format!("http://{}", reachable(address));
    let mut text = format!("Baton {}: the demo agent\n\n", env!("CARGO_PKG_VERSION"));
    text += &format!("  listening  {url}\n  card       {url}/.well-known/agent-card.json\n");
    if let Some(public_url) = public_url {
        text += &format!("  known as   {public_url}\n");
    }
    let kept = if *store == StoreUrl::Memory { " (gone when the server ends)" } else { "" };
    text += &format!("  store      {store}{kept}\n\nTry it:\n\n  {}\n\n", curl_line(&url));
    // A closed stdout is no reason not to serve.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Pasted twice, the second call is the same message again and gets the same task. Another start makes
/// another message, so that the line shows a fresh task then.
fn curl_line(url: &str) -> String {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    format!(
        "curl -sS {url}/ -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d \
         '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{{\"message\":\
         {{\"messageId\":\"hello-{started}\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"Hello, Baton\"}}]}}}}}}'"
    )
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
