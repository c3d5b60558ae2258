//! P-09: TLS with an authority of one's own, client certificates, and no way back to http.

use axum::Router;
use axum::routing::get;
use baton_client::protocol::ErrorKind;
use baton_client::{Binding, Error, TlsOptions, TransportKind};
use baton_server::auth::{Chain, MutualTls, MutualTlsOptions};
use baton_server::tls as server_tls;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

use crate::harness::{TestServer, obedient, quick, rest, serve, serve_router, texts, with_agent};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key, both PEM.
    fn signs(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    fn server(&self) -> server_tls::TlsOptions {
        let (certificate, key) = self.signs(&["localhost", "127.0.0.1"]);
        server_tls::TlsOptions::new(certificate, key)
    }

    fn trusted(&self) -> TlsOptions {
        TlsOptions::default().trust_only(self.0.pem())
    }
}

async fn serve_tls(builder: baton_server::Builder) -> TestServer {
    let mut server = serve(builder).await;
    server.url = server.url.replace("http://", "https://");
    server
}

#[tokio::test]
async fn p09_only_a_trusted_certificate_is_accepted() {
    let (authority, another) = (Authority::new(), Authority::new());
    let server = serve_tls(with_agent(obedient).tls(authority.server())).await;
    for binding in [Binding::JsonRpc, Binding::Grpc] {
        let client = quick().bindings([binding]).tls(authority.trusted()).connect(&server.url).await.unwrap();
        assert!(client.interface().url().starts_with("https://"), "{}", client.interface().url());
        client.send("hello").await.unwrap();
        let mut stream = client.stream("words one two").await.unwrap();
        rest(&mut stream).await;
        assert_eq!(texts(stream.task().unwrap()), ["one two"]);
    }
    // The system's roots, and those of somebody else.
    for tls in [TlsOptions::default(), another.trusted()] {
        let error = quick().tls(tls).connect(&server.url).await.unwrap_err();
        assert_eq!(error.transport().unwrap().kind(), TransportKind::Tls, "{error}");
    }
    let any = TlsOptions::default().danger_accept_any_certificate();
    quick().tls(any).connect(&server.url).await.unwrap().send("hello").await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn p09_a_client_certificate_is_a_credential() {
    let authority = Authority::new();
    let mut options = authority.server();
    options.clients = server_tls::ClientCertificates::Optional(authority.0.pem());
    let chain = Chain::new().scheme("mtls", MutualTls::new(MutualTlsOptions::default()));
    let server = serve_tls(with_agent(obedient).tls(options).auth(chain)).await;
    let (certificate, key) = authority.signs(&["ann.example"]);
    let tls = authority.trusted().client_certificate(&certificate, &key);
    for binding in [Binding::JsonRpc, Binding::Grpc] {
        let builder = quick().bindings([binding]);
        let nobody = builder.clone().tls(authority.trusted()).connect(&server.url).await.unwrap();
        assert_eq!(nobody.missing_credentials(), ["mtls"]);
        assert_eq!(nobody.send("hello").await.unwrap_err().kind(), Some(ErrorKind::Unauthenticated));
        let ann = builder.tls(tls.clone()).connect(&server.url).await.unwrap();
        assert!(ann.missing_credentials().is_empty());
        ann.send("hello").await.unwrap();
    }
    server.stop().await;
}

/// A card that came by https lists an http address: whoever reads the line would read the calls. An address of gRPC has no
/// scheme, and is called with TLS.
#[tokio::test]
async fn p09_https_does_not_become_http() {
    let authority = Authority::new();
    let plain = serve_router(Router::new().route("/", get(|| async { "" }))).await;
    let builder = with_agent(obedient).tls(authority.server()).public_url(&plain);
    let server = serve_tls(builder).await;
    let builder = quick().tls(authority.trusted()).bindings([Binding::JsonRpc, Binding::HttpJson]);
    let error = builder.connect(&server.url).await.unwrap_err();
    let Error::NoInterface(none) = &error else { panic!("{error}") };
    assert!(none.to_string().contains("the card came by https, and this is http"), "{none}");
    server.stop().await;
}
