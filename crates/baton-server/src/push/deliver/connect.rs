//! Opens a connection to an address that was judged.

use std::net::SocketAddr;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::Tls;
use super::exchange::Open;
use super::outcome::{NoAnswer, Stage};
use crate::push::target::Target;

/// Largest head of an answer, and largest read: the smallest that hyper takes.
const HEAD_BYTES: usize = 8 * 1024;

/// With TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The name of the host is sent in the TLS handshake and compared with the certificate, but never resolved here.
pub(super) async fn open(
    address: SocketAddr,
    target: &Target,
    tls: &Tls,
    by: Instant,
) -> Result<Open, NoAnswer> {
    let connected = timeout_at(by, TcpStream::connect(address)).await;
    let tcp = connected.map_err(|_| NoAnswer::Timeout(Stage::Connect))?.map_err(NoAnswer::Connect)?;
    tcp.set_nodelay(true).map_err(NoAnswer::Connect)?;
    let stream: Box<dyn Stream> = match target.is_https() {
        true => {
            let secured = timeout_at(by, tls.connect(target.host(), tcp)).await;
            secured.map_err(|_| NoAnswer::Timeout(Stage::Tls))?.map_err(NoAnswer::Tls)?
        }
        false => Box::new(tcp),
    };
    let mut http = hyper::client::conn::http1::Builder::new();
    http.max_buf_size(HEAD_BYTES).max_headers(64);
    let (sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(NoAnswer::Http)?;
    Ok(Open::new(sender, connection))
}
