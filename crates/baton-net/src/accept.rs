//! The accept loop. An error never ends it: neither a broken connection nor a lack of file descriptors may stop the
//! server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::application::Application;
use super::caps::{Admission, Registry};
use super::connection;
use super::guard::{Opened, Shared};
use super::pulse::Order;

/// Pause after a failed accept that a retry would not mend; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time between two log lines about the same failure.
const LOG_AGAIN: Duration = Duration::from_secs(10);

/// Connections that are being refused with an answer at the same time; any more are closed without one.
const MAX_TURNED_AWAY: usize = 256;
const TURNING_AWAY: Duration = Duration::from_secs(1);

/// How long to wait until connections that were told to close are gone.
const CUT_PATIENCE: Duration = Duration::from_secs(1);

/// Accepts connections until `stop`, then accepts no more and waits for `drained`. Requests that are still under way then
/// have `last_patience` to end.
pub(super) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared<impl Application>>,
    stop: impl Future<Output = ()>,
    drained: impl Future<Output = ()>,
) {
    ask_for_backlog(&listener);
    let registry = Arc::clone(&shared.registry);
    let _alone = CutOnDrop(Arc::clone(&registry));
    tokio::select! {
        biased;
        () = stop => {}
        () = accept_for_ever(&listener, &shared) => {}
    }
    drop(listener);
    registry.drain();
    drained.await;
    registry.tell_all(Order::Finish);
    let patience = shared.options.last_patience;
    if tokio::time::timeout(patience, registry.all_gone()).await.is_err() {
        tracing::warn!(connections = registry.count(), "connections are cut: they did not end in time");
        registry.tell_all(Order::Leave);
        let _ = tokio::time::timeout(CUT_PATIENCE, registry.all_gone()).await;
    }
}

/// How many connections the kernel completes and queues until they are accepted. Beyond it a client's first packet is
/// dropped, and sent again a second later. The caller bound the socket with 128 or 1,024, so `listen` is called again. The
/// kernel may allow fewer (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

fn ask_for_backlog(listener: &TcpListener) {
    #[cfg(unix)]
    if let Err(error) = rustix::net::listen(listener, BACKLOG) {
        tracing::debug!(%error, "the backlog stays as it is");
    }
    #[cfg(not(unix))]
    let _ = (listener, BACKLOG);
}

/// Closes all connections if the future that serves them is dropped.
struct CutOnDrop(Arc<Registry>);

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.0.tell_all(Order::Leave);
    }
}

async fn accept_for_ever(listener: &TcpListener, shared: &Arc<Shared<impl Application>>) {
    let turned_away = Arc::new(Semaphore::new(MAX_TURNED_AWAY));
    let mut trouble = Trouble::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                trouble.is_over();
                welcome(stream, peer, shared, &turned_away);
            }
            Err(error) if is_of_one_connection(&error) => {
                tracing::debug!(%error, "a connection was gone before it was accepted");
            }
            Err(error) => trouble.pause(&error, &shared.registry).await,
        }
    }
}

fn welcome(
    stream: TcpStream,
    peer: SocketAddr,
    shared: &Arc<Shared<impl Application>>,
    turned_away: &Arc<Semaphore>,
) {
    match shared.registry.admit(peer.ip()) {
        Admission::Welcome(seat) => {
            let open = Opened::new(shared.observer.as_ref());
            tokio::spawn(connection::serve(stream, peer, Arc::clone(shared), seat, open));
        }
        Admission::TooManyFromThere => {
            let status = StatusCode::TOO_MANY_REQUESTS;
            turn_away(stream, status, "Too many connections from this address", shared, turned_away);
        }
        Admission::Full => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            turn_away(stream, status, "All connections are in use", shared, turned_away);
        }
    }
}

fn turn_away(
    stream: TcpStream,
    status: StatusCode,
    text: &'static str,
    shared: &Shared<impl Application>,
    places: &Arc<Semaphore>,
) {
    shared.refused(status);
    tracing::debug!(status = status.as_u16(), "a connection was refused");
    // A TLS client could read an answer only after a handshake, which costs more than the refusal saves.
    if shared.is_tls() {
        return;
    }
    let Ok(place) = Arc::clone(places).try_acquire_owned() else { return };
    tokio::spawn(async move {
        tell(stream, status, "retry-after: 5\r\n", text).await;
        drop(place);
    });
}

/// Answers in HTTP/1: nothing has been read yet, and most clients speak it.
pub(super) async fn tell(mut stream: TcpStream, status: StatusCode, headers: &str, text: &str) {
    let response = format!(
        "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\n\r\n{text}\n",
        text.len() + 1
    );
    let told = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        // The client is still sending; if the socket were closed now, a reset could discard the answer.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(TURNING_AWAY, told).await;
}

/// The connection broke before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Accepting fails, usually because there are no file descriptors left.
#[derive(Debug, Default)]
struct Trouble {
    pause: Duration,
    logged_at: Option<Instant>,
}

impl Trouble {
    fn is_over(&mut self) {
        self.pause = Duration::ZERO;
    }

    async fn pause(&mut self, error: &io::Error, registry: &Registry) {
        let made_room = registry.make_room();
        if self.logged_at.is_none_or(|at| at.elapsed() >= LOG_AGAIN) {
            self.logged_at = Some(Instant::now());
            let connections = registry.count();
            tracing::warn!(%error, connections, made_room, "connections cannot be accepted at the moment");
        }
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        tokio::time::sleep(self.pause).await;
    }
}
