//! A connection, plain or with TLS, blocking or not.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Where connections go, and whether they are encrypted.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
}

impl Target {
    pub fn plain(address: SocketAddr) -> Self {
        Target { address, tls: None }
    }

    /// With TLS 1.3, for a server with this certificate (PEM). Every connection has a handshake of its own.
    pub fn tls(address: SocketAddr, certificate: &str) -> Result<Self, String> {
        let certificate =
            CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(|error| error.to_string())?;
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder =
            builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(|error| error.to_string())?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Target { address, tls: Some(Arc::new(config)) })
    }

    /// Blocking, until the handshake is done.
    pub fn connect(&self) -> io::Result<Link> {
        let mut socket = TcpStream::connect(self.address)?;
        let Some(config) = &self.tls else { return Ok(Link::Plain(socket)) };
        let name = self.address.ip().into();
        let mut session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Link::Tls(Box::new(StreamOwned::new(session, socket))))
    }
}

#[derive(Debug)]
pub enum Link {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Link {
    pub fn socket(&self) -> &TcpStream {
        match self {
            Link::Plain(socket) => socket,
            Link::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Plain(socket) => socket.read(buffer),
            Link::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Link::Plain(socket) => socket.write(bytes),
            Link::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Link::Plain(socket) => socket.flush(),
            Link::Tls(stream) => stream.flush(),
        }
    }
}
