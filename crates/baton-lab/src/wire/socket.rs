//! Connections for bytes that no HTTP client would send: TCP, with TLS if the address says so.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::detour::place_of;
use super::no_answer::NoAnswer;

/// Time limit for a connection, and for a TLS handshake.
const CONNECT: Duration = Duration::from_secs(5);

/// Reads and writes bytes.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

pub type Socket = Box<dyn Bytes>;

/// Connects to `way` as if it were the host of the address.
pub(super) async fn connect(url: &str, way: &str, config: &Arc<ClientConfig>) -> Result<Socket, NoAnswer> {
    match place_of(url) {
        Some((_, true)) => Ok(Box::new(shake(url, way, config).await?)),
        _ => connect_bare(way).await,
    }
}

/// The same for HTTP/2: with TLS the other side must choose it.
pub(super) async fn connect_http2(
    url: &str,
    way: &str,
    config: &Arc<ClientConfig>,
) -> Result<Socket, NoAnswer> {
    let Some((_, true)) = place_of(url) else { return connect_bare(way).await };
    let stream = shake(url, way, config).await?;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(NoAnswer::new(
            "gRPC needs HTTP/2, which was not chosen in the TLS handshake (ALPN `h2`)",
        ));
    }
    Ok(Box::new(stream))
}

/// The version of TLS that a handshake has agreed on.
pub(super) async fn version(url: &str, way: &str, config: &Arc<ClientConfig>) -> Result<String, NoAnswer> {
    let stream = shake(url, way, config).await?;
    Ok(match stream.get_ref().1.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
        other => format!("{other:?}"),
    })
}

async fn shake(url: &str, way: &str, config: &Arc<ClientConfig>) -> Result<TlsStream<Socket>, NoAnswer> {
    let (authority, _) = place_of(url).ok_or_else(|| NoAnswer::new(format!("{url} is no address")))?;
    let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| NoAnswer::new(format!("{host} is no name for a certificate")))?;
    let stream = connect_bare(way).await?;
    let shaken = TlsConnector::from(Arc::clone(config)).connect(name, stream);
    match tokio::time::timeout(CONNECT, shaken).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(NoAnswer::of(&error)),
        Err(_) => Err(NoAnswer::new(format!("no TLS handshake with {authority} within 5 s"))),
    }
}

pub(super) async fn connect_bare(way: &str) -> Result<Socket, NoAnswer> {
    match tokio::time::timeout(CONNECT, TcpStream::connect(way)).await {
        Ok(Ok(stream)) => {
            // Without it a small frame of HTTP/2 waits 40 ms for the one before to be acknowledged.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream))
        }
        Ok(Err(error)) => Err(NoAnswer::new(format!("no connection to {way}: {error}"))),
        Err(_) => Err(NoAnswer::new(format!("no connection to {way} within 5 s"))),
    }
}
