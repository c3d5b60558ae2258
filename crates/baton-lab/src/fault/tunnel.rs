//! An HTTP tunnel (`CONNECT`) to one fixed target: the way of a TLS connection into the fault proxy.
//!
//! Without it the address of a request would have to change, and with it the name in the TLS handshake and the
//! certificate that is expected.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Longest head of a `CONNECT`.
const MOST_HEAD: usize = 8 * 1024;
/// Time limit for that head.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a failed accept; the usual reason is that there are no file descriptors left.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown`. The proxy behind it bounds the number of connections.
pub(super) async fn serve(listener: TcpListener, to: SocketAddr, shutdown: impl Future<Output = ()>) {
    let mut running = JoinSet::new();
    let accept = async {
        loop {
            while running.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((client, _)) => drop(running.spawn(carry(client, to))),
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = shutdown => {}
    }
}

async fn carry(mut client: TcpStream, to: SocketAddr) {
    let asked = tokio::time::timeout(PATIENCE, head(&mut client)).await;
    if !matches!(asked, Ok(Some(()))) {
        return;
    }
    let Ok(mut server) = TcpStream::connect(to).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.is_ok() {
        // Ends with an error where the proxy has cut the connection: both sides are closed then.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

/// Reads up to the empty line. The client sends nothing after it before it has the answer.
async fn head(client: &mut TcpStream) -> Option<()> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") && read.len() < MOST_HEAD {
        read.push(client.read_u8().await.ok()?);
    }
    read.starts_with(b"CONNECT ").then_some(())
}
