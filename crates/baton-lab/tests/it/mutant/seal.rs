//! TLS for the agent's socket, with a certificate of its own.

use std::sync::Arc;

use baton_lab::generation::{Binding, Generation};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::agent::Agent;
use super::fault::{Place, Quirk};

#[derive(Debug)]
pub(crate) struct Seal {
    pub(crate) certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Seal {
    pub(super) fn new() -> Self {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Seal { certificate: made.cert.der().clone(), key }
    }

    pub(super) fn acceptor(&self, agent: &Agent) -> TlsAcceptor {
        let anywhere = Place::new(Generation::V1, Binding::Jsonrpc);
        let versions = if agent.has(Quirk::NoTls13, &anywhere) { vec![&TLS12] } else { vec![&TLS12, &TLS13] };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], PrivateKeyDer::Pkcs8(self.key.clone_key()))
            .expect("they belong together");
        TlsAcceptor::from(Arc::new(config))
    }
}

/// The handshake. An agent with old versions of TLS answers a client that offers one as if it went on with it.
pub(super) async fn open(
    mut stream: TcpStream,
    acceptor: &TlsAcceptor,
    agent: &Agent,
) -> Option<TlsStream<TcpStream>> {
    let anywhere = Place::new(Generation::V1, Binding::Jsonrpc);
    if agent.has(Quirk::OldTls, &anywhere) {
        // A record's head, a message's head, and the version that is offered.
        let mut head = [0; 11];
        while stream.peek(&mut head).await.ok()? < head.len() {
            stream.readable().await.ok()?;
        }
        if head[0] == 22 && head[10] < 3 {
            let hello = [22, 3, head[10], 0, 6, 2, 0, 0, 2, 3, head[10]];
            stream.write_all(&hello).await.ok()?;
            return None;
        }
    }
    acceptor.accept(stream).await.ok()
}
