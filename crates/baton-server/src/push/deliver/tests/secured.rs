//! Receivers with TLS.
#![cfg(feature = "tls")]

use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::sinks::{OK, Sink, answer_all};
use super::{deliverer, failure, patient, post, status};
use crate::push::deliver::{DeliverOptions, Deliverer};
use crate::push::target::tests::NameStub;
use crate::push::target::{Guard, TargetRules};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A receiver's side of TLS, with a certificate for this name that is valid until this year.
    fn acceptor(&self, name: &str, until: i32) -> TlsAcceptor {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    fn options(&self) -> DeliverOptions {
        DeliverOptions { extra_roots: vec![self.0.pem().into_bytes()], ..patient() }
    }
}

/// Answers with 200, and tells the name that the sender asked for in the handshake.
async fn secure_sink(at: &str, acceptor: TlsAcceptor) -> (Sink, mpsc::Receiver<Option<String>>) {
    let (asked, names) = mpsc::channel(16);
    let sink = Sink::at(at, move |stream: TcpStream| {
        let (acceptor, asked) = (acceptor.clone(), asked.clone());
        async move {
            // Or each first answer waits for the acknowledgement of what ended the handshake.
            stream.set_nodelay(true).unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let name = stream.get_ref().1.server_name().map(str::to_owned);
            let _ = asked.try_send(name);
            answer_all(stream, OK).await;
        }
    })
    .await;
    (sink, names)
}

fn names() -> NameStub {
    NameStub::default().with("sink.example", &[&["127.0.0.1"]])
}

#[tokio::test]
async fn the_certificate_is_checked_for_the_host_of_the_url() {
    let authority = Authority::new();
    let (sink, mut asked) = secure_sink("127.0.0.1:0", authority.acceptor("sink.example", 2099)).await;
    let deliverer = deliverer(names(), authority.options());
    let url = format!("https://sink.example:{}/hook", sink.address.port());
    for _ in 0..3 {
        assert_eq!(status(&deliverer.post(&url, post()).await), 200);
    }
    assert_eq!(sink.connections(), 1);
    assert_eq!(asked.recv().await.unwrap().as_deref(), Some("sink.example"));
}

#[tokio::test]
async fn an_address_can_have_a_certificate() {
    let authority = Authority::new();
    let (sink, _asked) = secure_sink("127.0.0.1:0", authority.acceptor("127.0.0.1", 2099)).await;
    let url = format!("https://{}/hook", sink.address);
    assert_eq!(status(&deliverer(names(), authority.options()).post(&url, post()).await), 200);
}

#[tokio::test]
async fn bad_certificates_are_refused() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for (acceptor, part) in [
        (authority.acceptor("sink.example", 2001), "expired"),
        (authority.acceptor("other.example", 2099), "not valid for name"),
        (authority.acceptor("127.0.0.1", 2099), "not valid for name"),
        (stranger.acceptor("sink.example", 2099), "invalid peer certificate"),
    ] {
        let (sink, _asked) = secure_sink("127.0.0.1:0", acceptor).await;
        let url = format!("https://sink.example:{}/hook", sink.address.port());
        let (kind, log) = failure(&deliverer(names(), authority.options()).post(&url, post()).await);
        assert!(kind == "tls" && log.contains(part), "{log}");
    }
}

/// Something that does not speak TLS listens there.
#[tokio::test]
async fn a_port_without_tls_gets_nothing() {
    let (seen, mut bytes) = mpsc::channel(1);
    let plain = Sink::new(move |mut stream: TcpStream| {
        let seen = seen.clone();
        async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let mut read = vec![0; 4096];
            let count = stream.read(&mut read).await.unwrap();
            read.truncate(count);
            seen.send(read).await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    })
    .await;
    let url = format!("https://sink.example:{}/hook", plain.address.port());
    let (kind, _) = failure(&deliverer(names(), Authority::new().options()).post(&url, post()).await);
    assert_eq!(kind, "tls");
    // A TLS record of a handshake, and nothing of the webhook in it.
    let bytes = bytes.recv().await.unwrap();
    assert_eq!(bytes[0], 22);
    assert!(!bytes.windows(4).any(|part| part == b"POST" || part == b"task"));
}

/// The name server alternates between an address that the operator allows and this machine: the sink there gets no
/// connection, whether connections are kept or opened for each attempt.
#[tokio::test]
async fn rebinding_reaches_no_other_address() {
    for (max_idle, alternations, connections) in [(256, 10_000, 1), (0, 1_000, 1_000)] {
        let authority = Authority::new();
        let (allowed, _asked) = secure_sink("127.0.0.2:0", authority.acceptor("flip.example", 2099)).await;
        let port = allowed.address.port();
        let forbidden = Sink::at(&format!("127.0.0.1:{port}"), |stream| answer_all(stream, OK)).await;
        let rules = TargetRules { allow: vec!["127.0.0.2".parse().unwrap()], ..TargetRules::default() };
        let names = NameStub::default()
            .with("flip.example", &[&["127.0.0.2"], &["127.0.0.1"], &["127.0.0.2", "127.0.0.1"]]);
        let options = DeliverOptions { max_idle, ..authority.options() };
        let deliverer = Deliverer::new(Guard::new(rules, Arc::new(names)), options).unwrap();
        let url = format!("https://flip.example:{port}/hook");
        for _ in 0..alternations {
            assert_eq!(status(&deliverer.post(&url, post()).await), 200);
            for _ in 0..2 {
                let (kind, log) = failure(&deliverer.post(&url, post()).await);
                assert_eq!((kind, log.contains("127.0.0.1")), ("refused_target", true));
            }
        }
        assert_eq!((forbidden.connections(), allowed.connections()), (0, connections));
    }
}

#[test]
fn extra_certificates_must_be_readable() {
    let guard = || Guard::new(TargetRules::default(), Arc::new(NameStub::default()));
    for bad in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let options = DeliverOptions { extra_roots: vec![bad.as_bytes().to_vec()], ..patient() };
        let error = Deliverer::new(guard(), options).unwrap_err();
        assert!(error.starts_with("the extra certificates"), "{error}");
    }
}
