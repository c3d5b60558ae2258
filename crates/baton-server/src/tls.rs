//! TLS on the server's own port: its certificate, and which certificates of clients are accepted.
//!
//! Versions 1.2 and 1.3 with the cipher suites of rustls; sessions are resumed by tickets, there is no early data and no
//! renegotiation. [`Control::replace_tls`](crate::Control::replace_tls) replaces the certificate while the server serves.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig, SupportedProtocolVersion};
use secrecy::{ExposeSecret as _, SecretString};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::net::Tls;

/// Browsers remember it for a year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

const NEWEST: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// The certificate of a server, its key, and what clients have to show.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TlsOptions {
    /// The server's certificate as PEM text, followed by those that lead from it to a known authority.
    pub certificate: String,
    /// The key of the certificate as PEM text: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key: SecretString,
    /// Whether clients may or must show a certificate; by default they are not asked.
    pub clients: ClientCertificates,
    /// The oldest version that is spoken; TLS 1.2 by default.
    pub min_version: TlsVersion,
    /// Whether browsers are told to use nothing but HTTPS for this host (`Strict-Transport-Security`); on by default.
    /// They apply it to every port of the host. Requests to `localhost` are answered without it.
    pub hsts: bool,
}

/// Whether clients have to show a certificate. A certificate that is shown is verified in any case, and the handshake
/// fails if it is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ClientCertificates {
    /// Clients are not asked for one.
    #[default]
    Off,
    /// A client may show one. The text is PEM: the authorities that may have signed it.
    Optional(String),
    /// A client without one is refused at the handshake. The text is PEM: the authorities that may have signed it.
    Required(String),
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Why a certificate or a key cannot be used. The text goes on after the name of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTls {
    /// The server's certificate.
    #[error("{0}")]
    Certificate(String),
    /// The key.
    #[error("{0}")]
    Key(String),
    /// The authorities of client certificates.
    #[error("{0}")]
    ClientAuthority(String),
    /// The combination of options.
    #[error("{0}")]
    Options(String),
}

impl TlsOptions {
    /// A certificate and its key as PEM text.
    pub fn new(certificate: impl Into<String>, key: impl Into<SecretString>) -> Self {
        TlsOptions {
            certificate: certificate.into(),
            key: key.into(),
            clients: ClientCertificates::Off,
            min_version: TlsVersion::default(),
            hsts: true,
        }
    }

    /// Until when the certificate is valid.
    pub fn expires_at(&self) -> Result<SystemTime, BadTls> {
        Ok(expiry(&self.chain()?[0])?.0)
    }

    /// Whether a server could be started with these options.
    pub fn check(&self) -> Result<(), BadTls> {
        self.config().map(drop)
    }

    /// Whether clients are asked for a certificate.
    pub fn asks_clients(&self) -> bool {
        self.clients != ClientCertificates::Off
    }

    pub(crate) fn tls(&self) -> Result<Tls, BadTls> {
        let tls = Tls::new(self.config()?);
        Ok(if self.hsts { tls.hsts(HSTS) } else { tls })
    }

    /// Checks everything, and makes the configuration of rustls.
    pub(crate) fn config(&self) -> Result<ServerConfig, BadTls> {
        let chain = self.chain()?;
        let (not_after, expired) = expiry(&chain[0])?;
        if expired {
            let date = httpdate::fmt_http_date(not_after);
            return Err(BadTls::Certificate(format!("the certificate expired on {date}")));
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(self.versions()).map_err(unusable)?;
        let builder = match &self.clients {
            ClientCertificates::Off => builder.with_no_client_auth(),
            ClientCertificates::Optional(authorities) => {
                let verifier = client_verifier(authorities, &provider)?.allow_unauthenticated().build();
                builder.with_client_cert_verifier(verifier.map_err(no_authority)?)
            }
            ClientCertificates::Required(authorities) => {
                let verifier = client_verifier(authorities, &provider)?.build();
                builder.with_client_cert_verifier(verifier.map_err(no_authority)?)
            }
        };
        let mut config =
            builder.with_single_cert(chain, self.private_key()?).map_err(|error| match error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    BadTls::Key("the key does not belong to the certificate".to_owned())
                }
                // The certificate has been parsed; what remains is the key.
                other => BadTls::Key(format!("the key cannot be used: {other}")),
            })?;
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(unusable)?;
        Ok(config)
    }

    fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.min_version {
            TlsVersion::V1_2 => rustls::ALL_VERSIONS,
            TlsVersion::V1_3 => NEWEST,
        }
    }

    /// Never empty.
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, BadTls> {
        certificates(&self.certificate).map_err(BadTls::Certificate)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, BadTls> {
        let text = self.key.expose_secret();
        PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| {
            BadTls::Key(match error {
                pem::Error::NoItemsFound if text.contains("ENCRYPTED PRIVATE KEY") => {
                    "the key is encrypted with a passphrase; `openssl pkey -in FILE` writes it without"
                        .to_owned()
                }
                pem::Error::NoItemsFound => {
                    "there is no private key in it; it should have a line -----BEGIN PRIVATE KEY-----"
                        .to_owned()
                }
                // The text of the error could repeat a part of the file.
                _ => "it is not PEM text".to_owned(),
            })
        })
    }
}

fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) if text.contains("PRIVATE KEY-----") => {
            Err("there is a private key in it and no certificate; are the two files mixed up?".to_owned())
        }
        Ok(_) => {
            Err("there is no certificate in it; it should have a line -----BEGIN CERTIFICATE-----".to_owned())
        }
        Err(_) => Err("it is not PEM text".to_owned()),
    }
}

/// When the certificate expires, and whether it has.
fn expiry(certificate: &CertificateDer<'_>) -> Result<(SystemTime, bool), BadTls> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return Err(BadTls::Certificate("the certificate cannot be read".to_owned()));
    };
    let seconds = certificate.validity().not_after.timestamp();
    let not_after = UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Ok((not_after, not_after < SystemTime::now()))
}

fn client_verifier(
    authorities: &str,
    provider: &Arc<CryptoProvider>,
) -> Result<rustls::server::ClientCertVerifierBuilder, BadTls> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities).map_err(BadTls::ClientAuthority)? {
        roots.add(authority).map_err(|error| {
            BadTls::ClientAuthority(format!("an authority in it cannot be used: {error}"))
        })?;
    }
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)))
}

fn no_authority(error: rustls::server::VerifierBuilderError) -> BadTls {
    BadTls::ClientAuthority(format!("the authorities in it cannot be used: {error}"))
}

fn unusable(error: rustls::Error) -> BadTls {
    BadTls::Options(format!("TLS cannot be set up: {error}"))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn made(change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        change(&mut params);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    fn refusal(certificate: &str, key: &str) -> String {
        TlsOptions::new(certificate, key.to_owned()).config().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_used_is_told_in_plain_words() {
        let ((certificate, key), (_, other_key)) = (made(|_| {}), made(|_| {}));
        assert!(TlsOptions::new(&*certificate, key.clone()).config().is_ok());
        let (expired, its_key) = made(|params| {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        });
        let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        let torn = certificate.replace("-----END CERTIFICATE-----", "");
        for (certificate, key, says) in [
            ("", &*key, "there is no certificate in it"),
            ("hello", &key, "there is no certificate in it"),
            (&key, &key, "are the two files mixed up?"),
            (&torn, &key, "it is not PEM text"),
            (&certificate, "", "there is no private key in it"),
            (&certificate, &certificate, "there is no private key in it"),
            (&certificate, &encrypted, "passphrase"),
            (&certificate, &other_key, "does not belong to the certificate"),
            (&expired, &its_key, "expired on Fri, 01 Jan 2021"),
        ] {
            let text = refusal(certificate, key);
            assert!(text.contains(says), "{text}");
        }
        let mut options = TlsOptions::new(certificate, key.clone());
        options.clients = ClientCertificates::Required(key.clone());
        assert!(matches!(options.config(), Err(BadTls::ClientAuthority(_))));
        options.clients = ClientCertificates::Off;
        let shown = format!("{options:?}");
        assert!(!shown.contains(key.lines().nth(1).unwrap()), "the key is not shown");
    }
}
