//! TLS on a listener: the configuration, which can be replaced while connections are open, and the handshake.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::HeaderValue;
use rustls::ServerConfig;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::client_certificates::ClientCertificates;
use super::options::Connections;
use super::patience::ConnectionTimer;
use super::preface::{Protocol, within_limits};
use super::pulse::{Phase, Pulse};

/// The first byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;

/// What is offered by ALPN, the best first. `curl --http1.0` asks for the last.
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];

/// TLS for a listener. A cheap handle: a copy of it can [replace](Tls::replace) the certificates of a listener that serves.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ArcSwap<ServerConfig>>,
    pub(super) hsts: Option<HeaderValue>,
}

impl Tls {
    /// TLS with this configuration, of which two things are set here: the protocols offered by ALPN, and no early data,
    /// which an attacker could send twice.
    pub fn new(config: ServerConfig) -> Self {
        Tls { config: Arc::new(ArcSwap::from_pointee(ours(config))), hsts: None }
    }

    /// Tells browsers by `Strict-Transport-Security` to use nothing but HTTPS for this host in the future, as in
    /// `max-age=31536000`. Requests to `localhost` are answered without it: browsers apply it to every port of a host, and
    /// so to all other servers of this machine.
    #[must_use]
    pub fn hsts(mut self, value: HeaderValue) -> Self {
        self.hsts = Some(value);
        self
    }

    /// New connections use this configuration; those that are open stay as they are. Sessions of the old one are not
    /// resumed, so that a client whose authority is no longer trusted has to be verified anew.
    pub fn replace(&self, config: ServerConfig) {
        self.config.store(Arc::new(ours(config)));
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("hsts", &self.hsts).finish_non_exhaustive()
    }
}

fn ours(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
    config.max_early_data_size = 0;
    config
}

/// How a connection to a TLS listener begins.
#[derive(Debug)]
pub(super) enum Greeting {
    Tls(Box<Secured>),
    /// The client does not speak TLS. Nothing has been read.
    Plain(TcpStream),
    /// The client left or took too long, the handshake failed, or the connection has to close.
    Gone,
}

#[derive(Debug)]
pub(super) struct Secured {
    pub(super) stream: TlsStream<TcpStream>,
    /// What ALPN chose.
    pub(super) protocol: Option<Protocol>,
    pub(super) certificates: Option<ClientCertificates>,
}

/// Waits for the first byte, and does the handshake if it is one of TLS.
pub(super) async fn greet(
    stream: TcpStream,
    tls: &Tls,
    pulse: &Pulse,
    timer: &mut ConnectionTimer,
    options: &Connections,
) -> Greeting {
    let mut first = [0];
    let peek = within_limits(pulse, timer, options, |cx| {
        let mut first = ReadBuf::new(&mut first);
        stream.poll_peek(cx, &mut first)
    });
    match peek.await {
        Some(Ok(1..)) => {}
        Some(Ok(0) | Err(_)) | None => return Greeting::Gone,
    }
    if first[0] != HANDSHAKE {
        return Greeting::Plain(stream);
    }
    pulse.enter(Phase::Handshake);
    let mut accept = TlsAcceptor::from(tls.config.load_full()).accept_with(stream, |connection| {
        // What is encrypted and not sent yet is bounded like what the kernel has not sent yet.
        connection.set_buffer_limit(Some(options.max_unsent_bytes as usize));
    });
    let done = within_limits(pulse, timer, options, |cx| Pin::new(&mut accept).poll(cx));
    let stream = match done.await {
        Some(Ok(stream)) => stream,
        Some(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return Greeting::Gone;
        }
        None => return Greeting::Gone,
    };
    pulse.enter_anew(Phase::Silent);
    let session = stream.get_ref().1;
    let protocol = session.alpn_protocol().map(|name| match name {
        b"h2" => Protocol::Http2,
        _ => Protocol::Http1,
    });
    let certificates = session
        .peer_certificates()
        .map(|chain| chain.iter().map(|certificate| Bytes::copy_from_slice(certificate.as_ref())).collect());
    Greeting::Tls(Box::new(Secured { stream, protocol, certificates }))
}

#[cfg(test)]
mod tests;
