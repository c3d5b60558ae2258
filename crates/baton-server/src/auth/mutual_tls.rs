//! A client's certificate as its credential.
//!
//! The listener has verified the certificate at the handshake: that one of the configured authorities signed it, and that it
//! was valid then. Here its name becomes the owner. Connections live long, so whether it has expired is checked again at each
//! request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use http::HeaderValue;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::principal::Scopes;
use super::record::CredentialRecord;
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
/// [`TlsOptions::clients`](crate::tls::TlsOptions::clients). Clones share the names.
#[derive(Debug, Clone)]
pub struct MutualTls {
    options: Arc<MutualTlsOptions>,
    owners: Arc<ArcSwap<Owners>>,
}

/// The owners of certificates by their names.
#[derive(Debug, Clone)]
struct Owners {
    by_name: HashMap<String, Listed>,
    /// What was verified of names that are not listed is valid until this ends.
    others: CredentialRecord,
}

#[derive(Debug, Clone)]
struct Listed {
    owner: Arc<str>,
    /// What was verified is valid until this ends: when the name is removed, or has another owner.
    record: CredentialRecord,
}

impl Owners {
    fn new(owners: &HashMap<String, String>) -> Self {
        let listed = |owner: &String| Listed { owner: Arc::from(&**owner), record: CredentialRecord::new() };
        let by_name = owners.iter().map(|(name, owner)| (name.clone(), listed(owner))).collect();
        Owners { by_name, others: CredentialRecord::new() }
    }

    /// These owners, with the records of those who have not changed.
    fn with_known(&self, known: &Owners) -> Self {
        let mut owners = self.clone();
        for (name, listed) in &mut owners.by_name {
            if let Some(before) = known.by_name.get(name).filter(|before| before.owner == listed.owner) {
                *listed = before.clone();
            }
        }
        // A name that is listed now has another owner than it had before. Which callers had it is not known.
        if owners.by_name.keys().all(|name| known.by_name.contains_key(name)) {
            owners.others = known.others.clone();
        }
        owners
    }

    /// Ends what was verified of names that are not in `now`, or have another owner there.
    fn end_unless_in(&self, now: &Owners) {
        for (name, listed) in &self.by_name {
            if !now.by_name.get(name).is_some_and(|stays| stays.record.is_same(&listed.record)) {
                listed.record.end();
            }
        }
        if !self.others.is_same(&now.others) {
            self.others.end();
        }
    }
}

impl MutualTls {
    /// With these options.
    pub fn new(options: MutualTlsOptions) -> Self {
        let owners = Arc::new(ArcSwap::from_pointee(Owners::new(&options.owners)));
        MutualTls { options: Arc::new(options), owners }
    }

    /// Replaces the owners of certificates, by their names. What is open of names with the same owner as before goes on; what is
    /// open of the others is ended at once. If a name is new, so is what is open of all names that were not listed.
    pub fn set_owners(&self, owners: &HashMap<String, String>) {
        let new = Owners::new(owners);
        let before = self.owners.rcu(|known| new.with_known(known));
        before.end_unless_in(&self.owners.load());
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
        let owners = self.owners.load();
        let (owner, record): (Arc<str>, _) = match owners.by_name.get(&name) {
            Some(listed) => (Arc::clone(&listed.owner), &listed.record),
            None if self.options.only_listed => {
                return Verdict::Refused(Refusal::new("the certificate's name is not known here").of(name));
            }
            None => (Arc::from(format!("{}{name}", self.options.prefix)), &owners.others),
        };
        let identity = Identity::new(owner, self.options.scopes.clone(), name).while_exists(record);
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
