//! Which certificates are trusted, and which one the lab shows: decided once per run, used by every connection.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// What the user says about certificates.
#[derive(Debug, Default)]
pub struct TrustOptions {
    /// Trusted in addition to the system's.
    pub extra: Vec<CertificateDer<'static>>,
    /// Any certificate is taken.
    pub insecure: bool,
    /// The certificate that is shown to the agent, if it asks for one.
    pub identity: Option<Identity>,
}

/// A client certificate with its chain and key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({} certificates)", self.chain.len())
    }
}

impl Identity {
    /// Reads PEM files; the first certificate is the client's own.
    pub fn read(chain: &Path, key: &Path) -> Result<Self, String> {
        let private = PrivateKeyDer::from_pem_file(key);
        // The reason must not be shown with any text of the file: it is a secret.
        let private = private.map_err(|_| format!("{}: no private key in PEM was found", key.display()))?;
        Ok(Identity { chain: certificates(chain)?, key: private })
    }
}

/// All certificates of a PEM file.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let read = read.map_err(|error| format!("{shown}: {error}"))?;
    if read.is_empty() { Err(format!("{shown}: no certificate in PEM was found")) } else { Ok(read) }
}

/// The TLS configuration of all connections of a run.
#[derive(Clone)]
pub struct Trust {
    /// With the client certificate, if there is one.
    known: Arc<ClientConfig>,
    /// Without. It has its own memory of sessions: a resumed one would bring the certificate back.
    stranger: Arc<ClientConfig>,
    insecure: bool,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("insecure", &self.insecure).finish_non_exhaustive()
    }
}

impl Trust {
    pub fn new(options: TrustOptions) -> Result<Self, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = verifier(&options, &provider)?;
        let config = |identity: Option<Identity>| {
            let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?
                .dangerous()
                .with_custom_certificate_verifier(Arc::clone(&verifier));
            let mut config = match identity {
                Some(Identity { chain, key }) => builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| format!("the client certificate cannot be used: {error}"))?,
                None => builder.with_no_client_auth(),
            };
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok::<_, String>(Arc::new(config))
        };
        let insecure = options.insecure;
        Ok(Trust { stranger: config(None)?, known: config(options.identity)?, insecure })
    }

    /// The system's certificates, and nothing else.
    pub fn system() -> Result<Self, String> {
        Self::new(TrustOptions::default())
    }

    /// The configuration, with the client certificate or without.
    pub(super) fn config(&self, shows_certificate: bool) -> &Arc<ClientConfig> {
        if shows_certificate { &self.known } else { &self.stranger }
    }

    /// The same for HTTP/2 alone, as gRPC needs it.
    pub(super) fn http2(&self, shows_certificate: bool) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(self.config(shows_certificate));
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }

    /// True if certificates are not checked.
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }
}

fn verifier(
    options: &TrustOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let accepts = if options.insecure {
        Accepts::Any
    } else {
        match Verifier::new_with_extra_roots(options.extra.iter().cloned(), Arc::clone(provider)) {
            Ok(system) => Accepts::Trusted { system, extra: options.extra.clone() },
            Err(error) if !options.extra.is_empty() => return Err(format!("--ca: {error}")),
            // A machine without any CA certificates can still test agents at http:// addresses.
            Err(_) => Accepts::None,
        }
    };
    Ok(Arc::new(LabVerifier { accepts, algorithms: provider.signature_verification_algorithms }))
}

/// Decides which certificates are accepted; signatures are always checked.
#[derive(Debug)]
struct LabVerifier {
    accepts: Accepts,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Accepts {
    Any,
    None,
    /// Those that the system's verifier accepts, with one exception: a self-signed server certificate that is marked as a
    /// CA's, as `openssl req -x509` makes them, is refused as a server's by the verifier. If the user named exactly this
    /// certificate, it is taken for the hosts that it names.
    Trusted {
        system: Verifier,
        extra: Vec<CertificateDer<'static>>,
    },
}

impl ServerCertVerifier for LabVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.accepts {
            Accepts::Any => Ok(ServerCertVerified::assertion()),
            Accepts::None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            Accepts::Trusted { system, extra } => {
                match system.verify_server_cert(certificate, chain, name, ocsp, now) {
                    // An expired certificate has an error of its own.
                    Err(Error::InvalidCertificate(CertificateError::Other(_)))
                        if extra.contains(certificate) =>
                    {
                        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                        Ok(ServerCertVerified::assertion())
                    }
                    other => other,
                }
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
