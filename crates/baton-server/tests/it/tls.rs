//! TLS on the server's own port, and client certificates as credentials.

use baton_server::auth::{Chain, MutualTls, MutualTlsOptions};
use baton_server::tls::{BadTls, ClientCertificates, TlsOptions, TlsVersion};
use baton_server::{Builder, StartError};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{TestServer, id, message, serve, with_agent};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key, both PEM.
    fn signs(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    fn options(&self) -> TlsOptions {
        let (certificate, key) = self.signs("localhost");
        TlsOptions::new(certificate, key)
    }

    fn client(&self, identity: Option<&str>) -> reqwest::Client {
        let root = reqwest::Certificate::from_pem(self.0.pem().as_bytes()).unwrap();
        let mut client = reqwest::Client::builder().tls_certs_only([root]);
        if let Some(name) = identity {
            let (certificate, key) = self.signs(name);
            client = client.identity(reqwest::Identity::from_pem((certificate + &key).as_bytes()).unwrap());
        }
        client.build().unwrap()
    }
}

async fn serve_tls(authority: &Authority, builder: Builder) -> TestServer {
    let mut server = serve(builder).await;
    server.url = server.url.replace("http://127.0.0.1", "https://localhost");
    server.http = authority.client(None);
    server
}

async fn card(server: &TestServer) -> Value {
    let url = format!("{}/.well-known/agent-card.json", server.url);
    serde_json::from_slice(&server.http.get(url).send().await.unwrap().bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_card_gives_https_addresses() {
    let authority = Authority::new();
    let server = serve_tls(&authority, with_agent(obedient).tls(authority.options())).await;
    let address = server.url.replace("localhost", "127.0.0.1");
    let card = card(&server).await;
    for interface in card["supportedInterfaces"].as_array().unwrap() {
        assert!(interface["url"].as_str().unwrap().starts_with(&address), "{interface}");
    }
    assert!(card["url"].as_str().unwrap().starts_with(&address));
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
}

#[tokio::test]
async fn certificates_are_replaced_while_serving() {
    let (first, second) = (Authority::new(), Authority::new());
    let server = serve_tls(&first, with_agent(obedient).tls(first.options())).await;
    let list = async |client: &reqwest::Client| {
        let request = client.get(format!("{}/healthz", server.url)).send().await;
        request.is_ok_and(|answer| answer.status() == 200)
    };
    let (old, new) = (first.client(None), second.client(None));
    assert!(list(&old).await && !list(&new).await);
    // One that cannot be used changes nothing.
    let mut mixed = second.options();
    mixed.key = first.signs("localhost").1.into();
    let control = server.server.control();
    let refused = control.replace_tls(&mixed).unwrap_err();
    assert!(matches!(&refused, StartError::Tls(BadTls::Key(_))), "{refused}");
    assert!(list(&old).await && !list(&new).await);
    control.replace_tls(&second.options()).unwrap();
    assert!(list(&new).await && list(&old).await, "the old client still has its connection");
    assert!(!list(&first.client(None)).await, "and gets no new one");
}

#[tokio::test]
async fn p05_a_client_certificate_names_the_owner() {
    let authority = Authority::new();
    let mut options = authority.options();
    options.clients = ClientCertificates::Optional(authority.0.pem());
    options.min_version = TlsVersion::V1_3;
    let chain = Chain::new().scheme("mtls", MutualTls::new(MutualTlsOptions::default()));
    let mut server = serve_tls(&authority, with_agent(obedient).tls(options).auth(chain)).await;
    let nobody = server.call("ListTasks", json!({})).await;
    assert_eq!(nobody.status, 401, "{:?}", nobody.body);
    let card = card(&server).await;
    assert!(card["securitySchemes"]["mtls"].is_object(), "{card}");
    server.http = authority.client(Some("ann.example"));
    let task = server.call("SendMessage", message("say hello")).await;
    let task = id(&task.result()["task"]).to_owned();
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 1);
    let unknown = server.call("GetTask", json!({"id": "0198a000-0000-7000-8000-000000000000"})).await;
    server.http = authority.client(Some("bob.example"));
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
    let foreign = server.call("GetTask", json!({"id": task})).await;
    assert_eq!((foreign.status, foreign.error_code()), (unknown.status, unknown.error_code()));
    // Another connection of the same owner, with another certificate of the same name.
    server.http = authority.client(Some("ann.example"));
    assert_eq!(server.call("GetTask", json!({"id": task})).await.result()["id"], *task);
}

/// Names that are listed, and one that is not.
#[tokio::test]
async fn s16_a_certificate_that_is_taken_off_the_list_ends_what_it_has_open_and_nothing_else() {
    let authority = Authority::new();
    let mut options = authority.options();
    options.clients = ClientCertificates::Optional(authority.0.pem());
    let owners = |names: &[(&str, &str)]| {
        names.iter().map(|(name, owner)| ((*name).to_owned(), (*owner).to_owned())).collect()
    };
    let mut certificates = MutualTlsOptions::default();
    certificates.owners =
        owners(&[("ann.example", "team"), ("bob.example", "team"), ("cid.example", "team")]);
    let scheme = MutualTls::new(certificates);
    let chain = Chain::new().scheme("mtls", scheme.clone());
    let mut server = serve_tls(&authority, with_agent(obedient).tls(options).auth(chain)).await;
    let mut streams = Vec::new();
    for name in ["ann.example", "bob.example", "cid.example", "dan.example"] {
        server.http = authority.client(Some(name));
        let mut stream =
            server.stream("SendStreamingMessage", message("hold"), None).await.ok().expect("a stream");
        let task = stream.next().await.unwrap().result()["task"].clone();
        streams.push((stream, id(&task).to_owned(), server.http.clone()));
    }
    // One is removed, one has another owner; the last is not listed before and after.
    scheme.set_owners(&owners(&[("bob.example", "other"), ("cid.example", "team")]));
    for (at, (mut stream, task, http)) in streams.into_iter().enumerate() {
        if at >= 2 {
            server.http = http;
            server.call("CancelTask", json!({"id": task})).await.result();
        }
        let last = stream.rest().await.pop().unwrap().envelope.to_string();
        let expected = if at < 2 { "no longer valid" } else { "CANCELED" };
        assert!(last.contains(expected), "{at}: {last}");
    }
}

/// gRPC is negotiated by ALPN as HTTP/2 is, on the port that HTTP/1 has too.
#[cfg(feature = "grpc")]
#[tokio::test]
async fn p03_grpc_is_spoken_over_tls() {
    use std::sync::Arc;

    use baton_protocol::wire::pb::Package;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};

    use crate::grpc_client::{message as grpc_message, message_of, path};
    use crate::grpc_raw::{framed, over};

    let authority = Authority::new();
    let server = with_agent(obedient).tls(authority.options()).grpc_address(Default::default());
    let server = serve_tls(&authority, server).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.0.pem().as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    for package in Package::ALL {
        let tcp = tokio::net::TcpStream::connect(server.url.trim_start_matches("https://")).await.unwrap();
        let stream = connector.connect(ServerName::try_from("localhost").unwrap(), tcp).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let sent = message_of(package, "SendMessage", &grpc_message(package, "hello", true)).unwrap();
        let version = [("a2a-version", if package == Package::V1 { "1.0" } else { "0.3" })];
        let answer =
            over(stream, &server.url, &path(package, "SendMessage"), &version, framed(0, &sent)).await;
        assert_eq!((answer.status, answer.code()), (200, 0), "{answer:?}");
    }
    let (card, port) = (card(&server).await, server.url.rsplit(':').next().unwrap().to_owned());
    let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
    let of_grpc: Vec<&Value> = interfaces.filter(|it| it["protocolBinding"] == "GRPC").collect();
    assert_eq!(of_grpc.len(), 2);
    assert!(of_grpc.iter().all(|it| it["url"] == format!("127.0.0.1:{port}")), "{card}");
}
