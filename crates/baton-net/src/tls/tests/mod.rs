//! TLS on real sockets: a server of this crate, and rustls as the client.

mod handshake;
mod served;

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};

use axum_core::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use hyper::body::Frame;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Tls;
use crate::{Application, Asker, ClientCertificates, Connections, Observer, Settings};

pub(super) const GET: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// An authority that signs certificates, and a certificate with its key.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn signs(&self, name: &str) -> Identity {
        self.signs_with(name, |_| {})
    }

    pub(super) fn signs_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }

    pub(super) fn trusted(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        Arc::new(roots)
    }
}

pub(super) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A server's configuration without client certificates.
pub(super) fn config((chain, key): Identity) -> ServerConfig {
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    builder.with_no_client_auth().with_single_cert(chain, key).unwrap()
}

/// The same, with client certificates of this authority.
pub(super) fn config_with_clients(
    (chain, key): Identity,
    clients: &Authority,
    required: bool,
) -> ServerConfig {
    let verifier = WebPkiClientVerifier::builder_with_provider(clients.trusted(), provider());
    let verifier = if required { verifier } else { verifier.allow_unauthenticated() }.build().unwrap();
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    builder.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap()
}

/// A client that offers these protocols by ALPN.
pub(super) fn client(
    authority: &Authority,
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&str],
    identity: Option<Identity>,
) -> TlsConnector {
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(versions).unwrap();
    let builder = builder.with_root_certificates(authority.trusted());
    let mut config = match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

/// A client with TLS 1.3 and HTTP/1.
pub(super) fn usual_client(authority: &Authority) -> TlsConnector {
    client(authority, &[&rustls::version::TLS13], &["http/1.1"], None)
}

pub(super) async fn connect(
    client: &TlsConnector,
    address: SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    client.connect(ServerName::try_from("localhost").unwrap(), stream).await
}

/// Reads until the text has come, or the end.
pub(super) async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), end: &str) -> String {
    let mut came = Vec::new();
    while !String::from_utf8_lossy(&came).contains(end) && stream.read_buf(&mut came).await.unwrap() > 0 {}
    String::from_utf8(came).unwrap()
}

pub(super) async fn ask(stream: &mut TlsStream<TcpStream>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    read_until(stream, "\n.").await
}

/// Answers `/` with the request's version and the client's certificates, `/large` with a large body, `/wait` when it is told
/// to, and `/events` with a stream of what the test sends.
#[derive(Debug, Default)]
pub(super) struct Echo {
    events: std::sync::Mutex<Vec<mpsc::UnboundedReceiver<&'static str>>>,
    pub(super) open_streams: Arc<AtomicUsize>,
}

impl Echo {
    pub(super) fn streams(events: Vec<mpsc::UnboundedReceiver<&'static str>>) -> Self {
        Echo { events: events.into(), ..Echo::default() }
    }
}

pub(super) const LARGE: usize = 3 << 20;

impl Application for Echo {
    async fn answer(&self, request: Request<Body>, _: SocketAddr, _: Asker) -> Response<Body> {
        match request.uri().path() {
            "/large" => Response::new(Body::from(vec![b'x'; LARGE])),
            "/events" => {
                let events = self.events.lock().unwrap().pop().expect("a stream for this request");
                self.open_streams.fetch_add(1, SeqCst);
                let mut response = Response::new(Body::new(Events(events, Arc::clone(&self.open_streams))));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                response
            }
            _ => {
                let certificates = request.extensions().get::<ClientCertificates>();
                let count = certificates.map_or(0, |certificates| certificates.chain().len());
                let version = request.version();
                let body =
                    http_body_util::BodyExt::collect(request.into_body()).await.map(|body| body.to_bytes());
                let sent = body.map_or(0, |body| body.len());
                Response::new(Body::from(format!("{version:?}, {count} certificates, {sent} bytes\n.")))
            }
        }
    }
}

struct Events(mpsc::UnboundedReceiver<&'static str>, Arc<AtomicUsize>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|event| event.map(|event| Ok(Frame::data(Bytes::from_static(event.as_bytes())))))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.1.fetch_sub(1, SeqCst);
    }
}

/// Counts open connections.
#[derive(Debug, Default)]
struct Counted {
    open: Arc<AtomicUsize>,
}

impl Observer for Counted {
    fn opened(&self) {
        self.open.fetch_add(1, SeqCst);
    }

    fn closed(&self) {
        self.open.fetch_sub(1, SeqCst);
    }

    fn refused(&self, _: http::StatusCode) {}
}

pub(super) struct Running {
    pub(super) address: SocketAddr,
    pub(super) open: Arc<AtomicUsize>,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) served: tokio::task::JoinHandle<std::io::Result<()>>,
}

pub(super) async fn serve(tls: &Tls, app: impl Application) -> Running {
    serve_with(Some(tls), app, |_| {}).await
}

pub(super) async fn serve_with(
    tls: Option<&Tls>,
    app: impl Application,
    change: impl FnOnce(&mut Connections),
) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings = Settings {
        tls: tls.cloned(),
        allowed_hosts: vec!["agent.example:443".to_owned()],
        ..Settings::default()
    };
    change(&mut settings.connections);
    let network = settings.check().unwrap();
    let (stop, stopped) = oneshot::channel();
    let stopped = async {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
    };
    let observer = Counted::default();
    let open = Arc::clone(&observer.open);
    let observer: Option<Arc<dyn Observer>> = Some(Arc::new(observer));
    let served = tokio::spawn(async move { network.serve(listener, app, observer, stopped, async {}).await });
    Running { address, open, stop, served }
}
