//! The accept loop. It never ends by an error: what is wrong with one connection, or with the process's resources for
//! a moment, must not take the server down.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::caps::{Admission, Registry};
use super::connection;
use super::guard::Door;
use super::pulse::Order;
use crate::telemetry::Telemetry;

/// After a failure that will not go away at once; doubled from one to the next.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Between two lines in the log on the same trouble.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Newcomers that are being told to come back; any more are just closed.
const MAX_TURNED_AWAY: usize = 256;
const TURNING_AWAY: Duration = Duration::from_secs(1);

/// How long connections have to notice that they were cut.
const CUT_PATIENCE: Duration = Duration::from_secs(1);

/// Accepts connections until `stop`, then takes nothing new and waits for `drained`. What is still under way after
/// that has a last moment to end.
pub(super) async fn serve(
    listener: TcpListener,
    door: Arc<Door>,
    stop: impl Future<Output = ()>,
    drained: impl Future<Output = ()>,
) {
    ask_for_backlog(&listener);
    let registry = Arc::clone(&door.registry);
    let _alone = CutOnDrop(Arc::clone(&registry));
    tokio::select! {
        biased;
        () = stop => {}
        () = accept_for_ever(&listener, &door) => {}
    }
    drop(listener);
    registry.drain();
    drained.await;
    registry.tell_all(Order::Finish);
    let patience = door.options.last_patience;
    if tokio::time::timeout(patience, registry.all_gone()).await.is_err() {
        tracing::warn!(connections = registry.count(), "connections are cut: they did not end in time");
        registry.tell_all(Order::Leave);
        let _ = tokio::time::timeout(CUT_PATIENCE, registry.all_gone()).await;
    }
}

/// Connections that the kernel completes and keeps until they are accepted; beyond it a client's first packet is dropped,
/// and sent again a second later. Whoever bound the socket asked for 128 or 1,024, so this asks again. The kernel takes
/// less if it was set to (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

fn ask_for_backlog(listener: &TcpListener) {
    #[cfg(unix)]
    if let Err(error) = rustix::net::listen(listener, BACKLOG) {
        tracing::debug!(%error, "the backlog stays as it is");
    }
    #[cfg(not(unix))]
    let _ = (listener, BACKLOG);
}

/// Connections do not outlive the future that serves them, should it be dropped.
struct CutOnDrop(Arc<Registry>);

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.0.tell_all(Order::Leave);
    }
}

async fn accept_for_ever(listener: &TcpListener, door: &Arc<Door>) {
    let turned_away = Arc::new(Semaphore::new(MAX_TURNED_AWAY));
    let mut trouble = Trouble::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                trouble.is_over();
                welcome(stream, peer, door, &turned_away);
            }
            Err(error) if is_of_one_connection(&error) => {
                tracing::debug!(%error, "a connection was gone before it was accepted");
            }
            Err(error) => trouble.pause(&error, &door.registry).await,
        }
    }
}

fn welcome(stream: TcpStream, peer: SocketAddr, door: &Arc<Door>, turned_away: &Arc<Semaphore>) {
    match door.registry.admit(peer.ip()) {
        Admission::Welcome(seat) => {
            let open = door.telemetry.as_ref().map(Telemetry::connection);
            tokio::spawn(connection::serve(stream, peer, Arc::clone(door), seat, open));
        }
        Admission::TooManyFromThere => {
            door.refused(StatusCode::TOO_MANY_REQUESTS);
            turn_away(stream, "429 Too Many Requests", "Too many connections from this address", turned_away);
        }
        Admission::Full => {
            door.refused(StatusCode::SERVICE_UNAVAILABLE);
            turn_away(stream, "503 Service Unavailable", "All connections are in use", turned_away);
        }
    }
}

/// Says so, in HTTP/1: before a byte is read that is the best guess.
fn turn_away(mut stream: TcpStream, status: &'static str, text: &'static str, places: &Arc<Semaphore>) {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else { return };
    tracing::debug!(status, "a connection was turned away");
    tokio::spawn(async move {
        let response = format!(
            "HTTP/1.1 {status}\r\nretry-after: 5\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\n\r\n{text}\n",
            text.len() + 1
        );
        let told = async {
            stream.write_all(response.as_bytes()).await?;
            stream.shutdown().await?;
            // Its request is on the way; closed under it, the answer would be lost.
            let mut rest = [0; 1024];
            while stream.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = tokio::time::timeout(TURNING_AWAY, told).await;
        drop(place);
    });
}

/// The peer went away, or the network did, between its knock and our answer.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Nothing can be accepted for now, as a rule because there are no file descriptors left.
#[derive(Debug, Default)]
struct Trouble {
    pause: Duration,
    said_at: Option<Instant>,
}

impl Trouble {
    fn is_over(&mut self) {
        self.pause = Duration::ZERO;
    }

    async fn pause(&mut self, error: &io::Error, registry: &Registry) {
        let made_room = registry.make_room();
        if self.said_at.is_none_or(|at| at.elapsed() >= SAY_AGAIN) {
            self.said_at = Some(Instant::now());
            let connections = registry.count();
            tracing::warn!(%error, connections, made_room, "connections cannot be accepted at the moment");
        }
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        tokio::time::sleep(self.pause).await;
    }
}
