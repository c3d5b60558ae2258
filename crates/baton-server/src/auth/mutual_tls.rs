//! A client's certificate as its credential.
//!
//! The listener has verified the certificate at the handshake: that one of the configured authorities signed it, and that it
//! was valid then. Here its name becomes the owner. Connections live long, so whether it has expired is checked again at each
//! request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use http::HeaderValue;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::principal::Scopes;
use super::request::AuthRequest;
use super::scheme::{Identity, Refusal, Scheme, Verdict};

/// Longer names are not used: an owner is part of every stored key.
const MAX_NAME: usize = 255;

/// A name in a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateName {
    /// A URI in the subject's alternative names, such as a SPIFFE id.
    Uri,
    /// A DNS name in the subject's alternative names.
    Dns,
    /// An email address in the subject's alternative names.
    Email,
    /// The common name of the subject. Not used unless it is asked for: many authorities do not check it.
    CommonName,
}

/// How certificates become owners.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MutualTlsOptions {
    /// Which names count, the most important first. Of the first kind that a certificate has, its first name is used.
    pub names: Vec<CertificateName>,
    /// The owners of certificates by their names.
    pub owners: HashMap<String, String>,
    /// Whether names that `owners` does not list are refused.
    pub only_listed: bool,
    /// What comes before a name that `owners` does not list; `mtls:` by default. Without it a certificate could be given the
    /// name of an owner of another scheme.
    pub prefix: String,
    /// What the certificates allow.
    pub scopes: Scopes,
}

impl Default for MutualTlsOptions {
    fn default() -> Self {
        MutualTlsOptions {
            names: vec![CertificateName::Uri, CertificateName::Dns, CertificateName::Email],
            owners: HashMap::new(),
            only_listed: false,
            prefix: "mtls:".to_owned(),
            scopes: Scopes::default(),
        }
    }
}

/// Authenticates callers by their certificates. The listener has to ask for them: see
/// [`TlsOptions::clients`](crate::tls::TlsOptions::clients).
#[derive(Debug)]
pub struct MutualTls {
    options: MutualTlsOptions,
}

impl MutualTls {
    /// With these options.
    pub fn new(options: MutualTlsOptions) -> Self {
        MutualTls { options }
    }

    fn judge(&self, der: &[u8], now: SystemTime) -> Verdict {
        let Ok((_, certificate)) = X509Certificate::from_der(der) else {
            return Verdict::Refused(Refusal::new("the certificate cannot be read"));
        };
        let Some(name) = self.options.names.iter().find_map(|kind| kind.of(&certificate)) else {
            return Verdict::Refused(Refusal::new("the certificate has no name that is used here"));
        };
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if u64::try_from(certificate.validity().not_after.timestamp()).is_ok_and(|not_after| now > not_after)
        {
            return Verdict::Refused(Refusal::new("the certificate has expired").of(name));
        }
        let owner: Arc<str> = match self.options.owners.get(&name) {
            Some(owner) => Arc::from(&**owner),
            None if self.options.only_listed => {
                return Verdict::Refused(Refusal::new("the certificate's name is not known here").of(name));
            }
            None => Arc::from(format!("{}{name}", self.options.prefix)),
        };
        let identity = Identity::new(owner, self.options.scopes.clone(), name);
        let not_after = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(u64::MAX);
        let until = UNIX_EPOCH.checked_add(Duration::from_secs(not_after));
        Verdict::Verified(until.map_or(identity.clone(), |until| identity.until(until)))
    }
}

impl CertificateName {
    /// The first such name of the certificate, if that can be an owner.
    fn of(self, certificate: &X509Certificate<'_>) -> Option<String> {
        if self == CertificateName::CommonName {
            let mut names = certificate.subject().iter_common_name();
            // With two of them, readers differ about which one counts.
            let (Some(name), None) = (names.next(), names.next()) else { return None };
            return name.as_str().ok().filter(|name| is_usable(name)).map(str::to_owned);
        }
        let names = certificate.subject_alternative_name().ok()??;
        let name = names.value.general_names.iter().find_map(|name| match (self, name) {
            // Compared without regard to case everywhere else, so here it has one spelling.
            (CertificateName::Dns, GeneralName::DNSName(name)) => Some(name.to_ascii_lowercase()),
            (CertificateName::Uri, GeneralName::URI(name))
            | (CertificateName::Email, GeneralName::RFC822Name(name)) => Some((*name).to_owned()),
            _ => None,
        });
        name.filter(|name| is_usable(name))
    }
}

fn is_usable(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control)
}

#[async_trait]
impl Scheme for MutualTls {
    fn declared(&self) -> SecurityScheme {
        let description = Some("A client certificate that this server's operator accepts".to_owned());
        SecurityScheme { description, kind: SchemeKind::MutualTls }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        match request.tls_peer.and_then(|peer| peer.certificates.first()) {
            Some(certificate) => self.judge(certificate, SystemTime::now()),
            None => Verdict::Absent,
        }
    }

    fn is_sent_by_browsers(&self) -> bool {
        true
    }

    /// HTTP has no challenge for a certificate: it is asked for at the handshake.
    fn challenge(&self, _: Option<&Refusal>) -> Option<HeaderValue> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(common_name: Option<&str>, names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.subject_alt_names = names;
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn dns(name: &str) -> SanType {
        SanType::DnsName(name.try_into().unwrap())
    }

    fn uri(name: &str) -> SanType {
        SanType::URI(name.try_into().unwrap())
    }

    fn email(name: &str) -> SanType {
        SanType::Rfc822Name(name.try_into().unwrap())
    }

    /// The owner, or the reason of the refusal.
    fn judged(options: &MutualTlsOptions, der: &[u8], now: SystemTime) -> Result<String, &'static str> {
        match MutualTls::new(options.clone()).judge(der, now) {
            Verdict::Verified(identity) => Ok(identity.owner.to_string()),
            Verdict::Refused(refusal) => Err(refusal.reason),
            other => panic!("{other:?}"),
        }
    }

    const NO_NAME: &str = "the certificate has no name that is used here";

    #[test]
    fn p05_a_certificate_names_its_owner() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let usual = MutualTlsOptions::default();
        let common = MutualTlsOptions { names: vec![CertificateName::CommonName], ..usual.clone() };
        let owners = HashMap::from([("a.example".to_owned(), "alice".to_owned())]);
        let listed = MutualTlsOptions { owners, ..usual.clone() };
        let only_listed = MutualTlsOptions { only_listed: true, ..listed.clone() };
        let long = "a".repeat(300);
        for (options, common_name, names, owner) in [
            (&usual, None, vec![dns("a.example")], Ok("mtls:a.example")),
            (&usual, None, vec![dns("A.Example"), dns("b.example")], Ok("mtls:a.example")),
            (&usual, None, vec![dns("a.example"), uri("spiffe://x/y")], Ok("mtls:spiffe://x/y")),
            (&usual, None, vec![email("a@example.com")], Ok("mtls:a@example.com")),
            (&usual, Some("admin"), vec![], Err(NO_NAME)),
            (&usual, Some("admin"), vec![SanType::IpAddress([127, 0, 0, 1].into())], Err(NO_NAME)),
            (&usual, None, vec![uri(&long), dns("a.example")], Ok("mtls:a.example")),
            (&usual, None, vec![uri("a\nb")], Err(NO_NAME)),
            (&common, Some("admin"), vec![dns("a.example")], Ok("mtls:admin")),
            (&common, None, vec![dns("a.example")], Err(NO_NAME)),
            (&listed, None, vec![dns("a.example")], Ok("alice")),
            (&listed, None, vec![dns("b.example")], Ok("mtls:b.example")),
            (&only_listed, None, vec![dns("a.example")], Ok("alice")),
            (&only_listed, None, vec![dns("b.example")], Err("the certificate's name is not known here")),
        ] {
            let der = certificate(common_name, names);
            assert_eq!(judged(options, &der, now), owner.map(str::to_owned));
        }
        assert_eq!(judged(&usual, b"no certificate", now), Err("the certificate cannot be read"));
    }

    /// The handshake may have been years ago.
    #[test]
    fn a_certificate_that_has_expired_since_is_refused() {
        let der = certificate(None, vec![dns("a.example")]);
        let not_after = UNIX_EPOCH + Duration::from_secs(1_893_456_000);
        let usual = MutualTlsOptions::default();
        assert!(judged(&usual, &der, not_after).is_ok());
        let later = not_after + Duration::from_secs(1);
        assert_eq!(judged(&usual, &der, later), Err("the certificate has expired"));
    }
}
