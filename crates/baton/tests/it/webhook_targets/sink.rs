//! Listens for every address of the namespace at once. What comes to a public address is a delivery, which is answered
//! over TLS as the path asks; everything else is a hit.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::internal::{PUBLIC, address, is_public};

/// Ports that webhooks may use, and 80.
pub(super) const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Longest time until a delivery comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody but the test itself connects to it.
const LAST: &str = "127.99.99.99";

/// Names for which the receiver on the internet has a certificate.
const NAMES: [&str; 2] = ["*.sink.example", "*.flip.example"];

/// A request that came to the internet.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) at: IpAddr,
    pub(super) path: String,
}

/// A cheap handle.
#[derive(Debug, Clone)]
pub(super) struct Sink(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tls: Arc<ServerConfig>,
    /// Where somebody connected who must not.
    hits: Mutex<BTreeSet<SocketAddr>>,
    /// Connections to the internet.
    visits: AtomicUsize,
    deliveries: Mutex<Vec<Delivery>>,
    more: Notify,
}

impl Sink {
    /// Listens until the process ends; with the certificate of its authority as PEM.
    pub(super) fn listen() -> (Self, String) {
        let (tls, authority) = receivers_tls();
        let (hits, visits, deliveries) = (Mutex::default(), AtomicUsize::new(0), Mutex::default());
        let sink = Sink(Arc::new(Shared { tls, hits, visits, deliveries, more: Notify::new() }));
        for port in PORTS {
            // Of both families.
            let listener = TcpListener::bind(("::", port)).unwrap();
            let shared = Arc::clone(&sink.0);
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    Arc::clone(&shared).take(stream);
                }
            });
        }
        (sink, authority)
    }

    /// Connects to all these addresses and ports, and forgets it. Without this, no hits would show nothing.
    pub(super) async fn sees_all_of(&self, addresses: &[&str]) {
        let mut expected = BTreeSet::new();
        for text in addresses {
            for port in PORTS {
                let asked = SocketAddr::new(address(text), port);
                TcpStream::connect(asked).unwrap_or_else(|error| panic!("{asked}: {error}"));
                let reached = match asked.ip() {
                    IpAddr::V4(v4) if v4.is_unspecified() => address("127.0.0.1"),
                    IpAddr::V6(v6) if v6.is_unspecified() => address("::1"),
                    itself => itself,
                };
                expected.insert(SocketAddr::new(reached, port));
            }
        }
        self.until(|shared| expected.iter().all(|hit| shared.hits.lock().unwrap().contains(hit))).await;
        self.0.hits.lock().unwrap().clear();
    }

    /// Where somebody connected who must not, until now, once each: connections are taken in their order, so those that
    /// are made here come last.
    async fn hits(&self) -> BTreeSet<SocketAddr> {
        let ours = PORTS.map(|port| SocketAddr::new(address(LAST), port));
        ours.iter().for_each(|last| drop(TcpStream::connect(last).unwrap()));
        self.until(|shared| ours.iter().all(|last| shared.hits.lock().unwrap().contains(last))).await;
        let mut hits = self.0.hits.lock().unwrap();
        hits.retain(|hit| !ours.contains(hit));
        hits.clone()
    }

    pub(super) async fn assert_no_hits(&self) {
        let hits = self.hits().await;
        assert!(hits.is_empty(), "{} addresses and ports were called that must not be: {hits:?}", hits.len());
    }

    /// Connections to the internet, also those that did not get as far as a request.
    pub(super) fn visits(&self) -> usize {
        self.0.visits.load(Ordering::SeqCst)
    }

    pub(super) fn deliveries(&self) -> Vec<Delivery> {
        self.0.deliveries.lock().unwrap().clone()
    }

    /// Waits for deliveries. A hit ends it.
    pub(super) async fn until_delivered(&self, enough: impl Fn(&[Delivery]) -> bool) {
        let is_hit = |shared: &Shared| !shared.hits.lock().unwrap().is_empty();
        self.until(|shared| is_hit(shared) || enough(&shared.deliveries.lock().unwrap())).await;
        self.assert_no_hits().await;
    }

    async fn until(&self, done: impl Fn(&Shared) -> bool) {
        let wait = async {
            loop {
                let more = self.0.more.notified();
                if done(&self.0) {
                    return;
                }
                more.await;
            }
        };
        let waited = timeout(PATIENCE, wait).await;
        let (hits, deliveries) = (self.0.hits.lock().unwrap().clone(), self.deliveries().len());
        waited.unwrap_or_else(|_| panic!("it does not come: {deliveries} deliveries, hits: {hits:?}"));
    }
}

impl Shared {
    fn take(self: Arc<Self>, stream: TcpStream) {
        let Ok(local) = stream.local_addr() else { return };
        if is_public(local.ip()) {
            self.visits.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || self.receive(stream, local.ip().to_canonical()));
            return;
        }
        self.hits.lock().unwrap().insert(SocketAddr::new(local.ip().to_canonical(), local.port()));
        self.more.notify_waiters();
    }

    /// Answers until the connection ends, however it does.
    fn receive(&self, stream: TcpStream, at: IpAddr) {
        let Ok(session) = ServerConnection::new(Arc::clone(&self.tls)) else { return };
        // Or each first answer waits for the acknowledgement of what ended the handshake.
        let _gone = stream.set_nodelay(true);
        let mut stream = StreamOwned::new(session, stream);
        while let Some(path) = read_request(&mut stream) {
            let answer = answer(&path);
            self.deliveries.lock().unwrap().push(Delivery { at, path });
            self.more.notify_waiters();
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// `/redirect/307/http://10.0.0.5/` is answered as it says; everything else with 200. Hints to go elsewhere are in every
/// answer.
fn answer(path: &str) -> String {
    let (status, location) = match path.strip_prefix("/redirect/").and_then(|to| to.split_once('/')) {
        Some((code, to)) => (code, format!("location: {to}\r\nrefresh: 0; url={to}\r\n")),
        None => ("200", String::new()),
    };
    let elsewhere = "alt-svc: h2=\"10.0.0.5:8443\"\r\ncontent-location: https://10.0.0.5/\r\n";
    format!("HTTP/1.1 {status} Told\r\n{location}{elsewhere}content-length: 0\r\n\r\n")
}

/// Reads a whole request. Answers its path; `None` at the end.
fn read_request(stream: &mut impl Read) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return head.split(' ').nth(1).map(str::to_owned);
            }
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

/// The receiver's side of TLS, and the authority that it has its certificate from.
fn receivers_tls() -> (Arc<ServerConfig>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names: Vec<String> = NAMES.iter().chain(&PUBLIC).map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    (Arc::new(config), authority.pem())
}
