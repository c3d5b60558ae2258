//! Agents at https:// addresses: which certificates are trusted, what is said about others, faults under TLS.

use std::sync::Arc;
use std::time::Duration;

use baton_lab::discover::{self, discover};
use baton_lab::fault::trial::Kind;
use baton_lab::wire::no_answer;
use baton_lab::wire::{Credentials, Probe, ProbeOptions, Request, Trust, TrustOptions};

use crate::mutant::Mutant;
use crate::mutant::profile::Profile;
use crate::under_faults::{lines, under};

fn probe(options: TrustOptions) -> Probe {
    let credentials = Credentials::default();
    let trust = Trust::new(options).unwrap();
    Probe::trusting(ProbeOptions { timeout: Duration::from_secs(30), credentials }, &trust).unwrap()
}

async fn diagnosis(url: &str, options: TrustOptions) -> Option<String> {
    let found = discover(url, &probe(options), &discover::Options::default()).await;
    found.err().map(|diagnosis| {
        assert!(!diagnosis.temporary, "waiting does not help: {diagnosis}");
        diagnosis.sentence
    })
}

#[tokio::test]
async fn s16_a_certificate_that_nobody_vouches_for_is_refused_and_the_message_says_what_to_do() {
    let agent = Mutant::start(Profile::Sealed, None).await;
    let said = diagnosis(&agent.url, TrustOptions::default()).await.unwrap();
    for part in ["certificate is not trusted", "self-signed", "--ca FILE", "--insecure"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let certificate = agent.seal.as_ref().unwrap().certificate.clone();
    let trusting = || TrustOptions { extra: vec![certificate.clone()], ..TrustOptions::default() };
    assert_eq!(diagnosis(&agent.url, trusting()).await, None);
    assert_eq!(diagnosis(&agent.url, TrustOptions { insecure: true, ..Default::default() }).await, None);

    // Trusted, but for another name.
    let other = agent.url.replace("127.0.0.1", "127.0.0.2");
    let listener = tokio::net::TcpListener::bind(other.trim_start_matches("https://")).await;
    if let Ok(listener) = listener {
        let to = agent.url.trim_start_matches("https://").to_owned();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut server = tokio::net::TcpStream::connect(&to).await.unwrap();
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
            }
        });
        let said = diagnosis(&other, trusting()).await.unwrap();
        assert!(said.contains("not for 127.0.0.2") && said.contains("127.0.0.1"), "{said}");
    }
}

#[tokio::test]
async fn an_agent_without_tls_at_an_https_address_is_told_apart() {
    let agent = Mutant::start(Profile::Open, None).await;
    let url = agent.url.replace("http://", "https://");
    let said = diagnosis(&url, TrustOptions::default()).await.unwrap();
    assert!(said.contains("does not speak TLS") && said.contains("http://"), "{said}");
}

/// A self-signed certificate as `openssl req -x509` makes it, marked as an authority's.
#[tokio::test]
async fn a_certificate_that_is_named_itself_is_trusted_for_its_names() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut asked = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    asked.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = asked.self_signed(&key).unwrap().der().clone();
    let server = TlsServer::start(certificate.clone(), &key, None).await;
    let extra = vec![certificate];
    let trusting = probe(TrustOptions { extra, ..TrustOptions::default() });
    assert_eq!(trusting.open(&get(&server.url)).await.unwrap().received.status, 200);
    let error = probe(TrustOptions::default()).open(&get(&server.url)).await.unwrap_err();
    assert_eq!(error.kind, no_answer::Kind::Untrusted, "{error}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_only_by_those_who_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let (server_key, client_key) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    let names = || rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let (own, known) = (names().self_signed(&server_key).unwrap(), names().self_signed(&client_key).unwrap());
    let server = TlsServer::start(own.der().clone(), &server_key, Some(known.der().clone())).await;
    let (chain, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&chain, known.pem()).unwrap();
    std::fs::write(&key, client_key.serialize_pem()).unwrap();
    let identity = baton_lab::wire::trust::Identity::read(&chain, &key).unwrap();
    let (extra, identity) = (vec![own.der().clone()], Some(identity));
    let stranger = probe(TrustOptions { extra, identity, insecure: false });
    let known = stranger.acting_as(Credentials { certificate: true, ..Credentials::default() });
    for _ in 0..2 {
        assert_eq!(known.open(&get(&server.url)).await.unwrap().received.status, 200);
        // The connections and sessions of the one are not used by the other.
        let error = stranger.open(&get(&server.url)).await.unwrap_err();
        assert_eq!(error.kind, no_answer::Kind::CallerRefused, "{error}");
    }
    let said = diagnosis_of(&stranger, &server.url).await;
    assert!(said.contains("--client-cert"), "{said}");
    let missing = baton_lab::wire::trust::Identity::read(&chain, &chain).unwrap_err();
    assert!(missing.contains("no private key"), "{missing}");
}

async fn diagnosis_of(probe: &Probe, url: &str) -> String {
    discover(url, probe, &discover::Options::default()).await.unwrap_err().sentence
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t06_verdicts_over_tls_are_the_same_on_a_bad_network() {
    let found = under(Profile::Sealed, None, &[Kind::Split, Kind::Reset, Kind::HalfClose], 3).await;
    assert!(found.holds(), "{}", lines(&found));
    assert!(found.kinds.iter().all(|kind| kind.tally.faulted > 0 && kind.same > 0), "{}", lines(&found));
}

fn get(url: &str) -> Request {
    Request { method: "GET".to_owned(), url: url.to_owned(), headers: Vec::new(), body: None, streams: false }
}

/// Answers every request with an empty 200.
struct TlsServer {
    url: String,
}

impl TlsServer {
    async fn start(
        certificate: rustls::pki_types::CertificateDer<'static>,
        key: &rcgen::KeyPair,
        client: Option<rustls::pki_types::CertificateDer<'static>>,
    ) -> Self {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(client).unwrap();
                let verifier =
                    rustls::server::WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = builder.with_single_cert(vec![certificate], key.into()).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut read = Vec::new();
                    while !read.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        read.push(byte);
                    }
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                    let _ = stream.write_all(answer).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        TlsServer { url }
    }
}
