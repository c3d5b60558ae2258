//! The proxy: accepts connections, applies the planned faults, and shuts down gracefully.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::carry::{End, Way, carry};
use super::draw::Draw;
use super::kind::{Fault, Side};
use super::plan::Plan;

/// Most connections at a time; further ones wait to be accepted.
pub const MOST_CONNECTIONS: usize = 1024;
/// Time limit for connecting to the server.
const CONNECT: Duration = Duration::from_secs(10);
/// How long connections may go on after the proxy was asked to stop.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a cut connection is still read: closing it with unread bytes would send RST instead of FIN.
const LINGER: Duration = Duration::from_millis(250);
/// Pause after a failed accept; the usual reason is that there are no file descriptors left.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// What the proxy reports while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A fault was injected into a connection, after that many bytes in that direction.
    Injected { connection: u64, fault: Fault, side: Side, at: u64 },
    /// The server could not be reached for a connection.
    Unreachable { connection: u64, why: String },
}

type Tell = Arc<dyn Fn(Happened) + Send + Sync>;

/// Forwards to one server.
#[derive(Clone)]
pub struct Proxy {
    /// `host:port`.
    to: String,
    plan: Plan,
    most: usize,
    tell: Tell,
    counts: Arc<Counts>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("to", &self.to).field("plan", &self.plan).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    faulted: AtomicU64,
    unreachable: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    injected: Mutex<BTreeMap<&'static str, u64>>,
}

/// The statistics of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub connections: u64,
    /// Connections with at least one injected fault.
    pub faulted: u64,
    /// Connections for which the server could not be reached.
    pub unreachable: u64,
    /// Bytes forwarded to the server, and back.
    pub up: u64,
    pub down: u64,
    /// Number of injected faults by name; a fault in both directions counts twice.
    pub injected: BTreeMap<&'static str, u64>,
}

impl Proxy {
    pub fn new(to: impl Into<String>, plan: Plan) -> Self {
        let tell: Tell = Arc::new(|_| {});
        Proxy { to: to.into(), plan, most: MOST_CONNECTIONS, tell, counts: Arc::default() }
    }

    /// Sets the largest number of connections at a time.
    #[must_use]
    pub fn at_most(mut self, connections: usize) -> Self {
        self.most = connections.max(1);
        self
    }

    #[must_use]
    pub fn telling(mut self, tell: impl Fn(Happened) + Send + Sync + 'static) -> Self {
        self.tell = Arc::new(tell);
        self
    }

    /// The statistics so far.
    pub fn tally(&self) -> Tally {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        Tally {
            connections: read(&counts.connections),
            faulted: read(&counts.faulted),
            unreachable: read(&counts.unreachable),
            up: read(&counts.up),
            down: read(&counts.down),
            injected: counts.injected.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Serves until `shutdown`; then open connections have a short time to end by themselves.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(self.most));
        let mut running = JoinSet::new();
        let accept = async {
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                while running.try_join_next().is_some() {}
                let client = match listener.accept().await {
                    Ok((client, _)) => client,
                    Err(_) => {
                        tokio::time::sleep(RETRY_PAUSE).await;
                        continue;
                    }
                };
                let number = self.counts.connections.fetch_add(1, Ordering::Relaxed) + 1;
                let proxy = self.clone();
                running.spawn(async move {
                    proxy.connection(client, number).await;
                    drop(place);
                });
            }
        };
        tokio::select! {
            () = accept => {}
            () = shutdown => {}
        }
        drop(listener);
        let ended = async { while running.join_next().await.is_some() {} };
        // Dropping the set closes the remaining connections.
        let _ = tokio::time::timeout(DRAIN, ended).await;
    }

    async fn connection(&self, client: TcpStream, number: u64) {
        let server = match tokio::time::timeout(CONNECT, TcpStream::connect(&self.to)).await {
            Ok(Ok(server)) => server,
            failed => {
                let why = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => format!("no connection within {} s", CONNECT.as_secs()),
                };
                self.counts.unreachable.fetch_add(1, Ordering::Relaxed);
                (self.tell)(Happened::Unreachable { connection: number, why });
                return;
            }
        };
        // Fails if the client is gone; then there is nothing to forward.
        let _ = self.carry_both(client, server, number).await;
    }

    async fn carry_both(&self, client: TcpStream, server: TcpStream, number: u64) -> io::Result<()> {
        for stream in [&client, &server] {
            // Pieces must be sent as they are written.
            stream.set_nodelay(true)?;
        }
        let injected = self.plan.of(number);
        let told = AtomicU64::new(0);
        let tell = |fault: Fault, side: Side, at: u64| {
            if told.fetch_add(1, Ordering::Relaxed) == 0 {
                self.counts.faulted.fetch_add(1, Ordering::Relaxed);
            }
            let mut names = self.counts.injected.lock().unwrap_or_else(PoisonError::into_inner);
            *names.entry(fault.action.name()).or_default() += 1;
            drop(names);
            (self.tell)(Happened::Injected { connection: number, fault, side, at });
        };
        let count = |side: Side, bytes: usize| {
            let place = if side == Side::Up { &self.counts.up } else { &self.counts.down };
            place.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        };
        let way = |side: Side| {
            let draw = Draw::of(injected.seed, if side == Side::Up { 1 } else { 2 });
            Way { side, faults: injected.on(side), draw, tell: &tell, count: &count }
        };
        let (mut up, mut down) = (way(Side::Up), way(Side::Down));
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let end = {
            let mut up = std::pin::pin!(carry(&mut from_client, &mut to_server, &mut up));
            let mut down = std::pin::pin!(carry(&mut from_server, &mut to_client, &mut down));
            let first = tokio::select! {
                end = &mut up => (end, true),
                end = &mut down => (end, false),
            };
            match first {
                (End::Over, true) => down.await,
                (End::Over, false) => up.await,
                (end, _) => end,
            }
        };
        match end {
            End::Over => {}
            End::Reset => {
                // The halves are reunited first: a half that is dropped alone would close with FIN.
                let ends = [from_client.reunite(to_client), from_server.reunite(to_server)];
                for stream in ends.into_iter().flatten() {
                    stream.set_zero_linger()?;
                }
            }
            End::Cut => {
                // Fails if that side is gone already.
                let _ = tokio::join!(to_client.shutdown(), to_server.shutdown());
                let mut nowhere = (tokio::io::sink(), tokio::io::sink());
                let listen = async {
                    let _ = tokio::join!(
                        tokio::io::copy(&mut from_client, &mut nowhere.0),
                        tokio::io::copy(&mut from_server, &mut nowhere.1)
                    );
                };
                let _ = tokio::time::timeout(LINGER, listen).await;
            }
        }
        Ok(())
    }
}
