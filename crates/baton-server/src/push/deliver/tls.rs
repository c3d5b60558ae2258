//! TLS towards receivers.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::connect::Stream;
use crate::push::target::host::Host;

/// Trusts the system's certificates and those of the operator.
#[derive(Clone)]
pub(super) struct Tls(Option<TlsConnector>);

impl Tls {
    pub(super) fn new(extra_roots: &[Vec<u8>]) -> Result<Self, String> {
        let mut extra = Vec::new();
        for pem in extra_roots {
            let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
            let read = read.map_err(|error| format!("the extra certificates for webhooks: {error}"))?;
            if read.is_empty() {
                return Err("the extra certificates for webhooks: there is none in the PEM text".to_owned());
            }
            extra.extend(read);
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let has_extra = !extra.is_empty();
        let verifier: Arc<dyn ServerCertVerifier> = match Verifier::new_with_extra_roots(
            extra,
            Arc::clone(&provider),
        ) {
            Ok(verifier) => Arc::new(verifier),
            Err(error) if has_extra => return Err(format!("the extra certificates for webhooks: {error}")),
            // A container may have none. The server must start nevertheless.
            Err(error) => {
                tracing::warn!(%error, "no webhook can be delivered: this system has no trusted certificates");
                return Ok(Tls(None));
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(Some(TlsConnector::from(Arc::new(config)))))
    }

    /// The certificate must be for this host, whatever its address is.
    pub(super) async fn connect(&self, host: &Host, tcp: TcpStream) -> io::Result<Box<dyn Stream>> {
        let connector = self.0.as_ref().ok_or_else(|| io::Error::other("no certificates are trusted"))?;
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
            Host::Address(address) => ServerName::from(*address),
        };
        Ok(Box::new(connector.connect(name, tcp).await?))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tls").field(&self.0.is_some()).finish()
    }
}
