//! Whom to trust, who we are, and which proxies to use.

use std::fmt;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretSlice};

use crate::error::Error;

/// TLS towards agents and authorization servers. By default the system's certificates are trusted.
#[derive(Clone, Default)]
pub struct TlsOptions {
    roots: Option<Arc<Vec<u8>>>,
    identity: Option<Arc<SecretSlice<u8>>>,
    insecure: bool,
}

impl TlsOptions {
    /// Trusts the certificates of this PEM text instead of the system's.
    pub fn trust_only(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(Arc::new(pem.into()));
        self
    }

    /// Shows this certificate to the agent, if it asks: PEM texts of the certificate (with its chain) and its key. It is
    /// shown to the origin that the user named and to no other.
    pub fn client_certificate(mut self, certificate: &str, key: &str) -> Self {
        self.identity = Some(Arc::new(format!("{certificate}\n{key}").into_bytes().into()));
        self
    }

    /// Checks no certificate at all: anybody between client and agent can read and change everything.
    pub fn danger_accept_any_certificate(mut self) -> Self {
        self.insecure = true;
        self
    }

    pub(crate) fn has_client_certificate(&self) -> bool {
        self.identity.is_some()
    }

    pub(crate) fn apply(
        &self,
        mut builder: reqwest::ClientBuilder,
        with_certificate: bool,
    ) -> Result<reqwest::ClientBuilder, Error> {
        let wrong =
            |what: &'static str| move |error: reqwest::Error| Error::Invalid(format!("{what}: {error}"));
        if let Some(pem) = &self.roots {
            let roots = reqwest::Certificate::from_pem_bundle(pem).map_err(wrong("trusted certificates"))?;
            if roots.is_empty() {
                return Err(Error::Invalid("trusted certificates: there is none in the PEM text".to_owned()));
            }
            builder = builder.tls_certs_only(roots);
        }
        if let Some(identity) = self.identity.as_ref().filter(|_| with_certificate) {
            let identity =
                reqwest::Identity::from_pem(identity.expose_secret()).map_err(wrong("client certificate"))?;
            builder = builder.identity(identity);
        }
        Ok(if self.insecure { builder.tls_danger_accept_invalid_certs(true) } else { builder })
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("own_roots", &self.roots.is_some())
            .field("client_certificate", &self.identity.is_some())
            .field("insecure", &self.insecure)
            .finish()
    }
}

/// Proxies, as the usual environment variables give them. The library does not read the environment: a program passes
/// the values of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`. A proxy is reached by `http://`, `https://`,
/// `socks4://`, `socks5://` (names are looked up here) or `socks5h://` (by the proxy).
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proxies {
    /// For `http` addresses.
    pub http: Option<String>,
    /// For `https` addresses.
    pub https: Option<String>,
    /// For both, where there is no other.
    pub all: Option<String>,
    /// Hosts that are reached directly: names, domains, addresses and ranges, separated by commas.
    pub no_proxy: Option<String>,
}

impl Proxies {
    pub(crate) fn any_secure(&self) -> bool {
        [&self.http, &self.https, &self.all].into_iter().flatten().any(|proxy| proxy.starts_with("https://"))
    }

    pub(crate) fn apply(&self, mut builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, Error> {
        let except = self.no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
        type Make = fn(&str) -> reqwest::Result<reqwest::Proxy>;
        let makers: [(&Option<String>, Make); 3] = [
            (&self.http, |url| reqwest::Proxy::http(url)),
            (&self.https, |url| reqwest::Proxy::https(url)),
            (&self.all, |url| reqwest::Proxy::all(url)),
        ];
        for (url, make) in makers {
            let Some(url) = url.as_deref().filter(|url| !url.is_empty()) else { continue };
            // `HTTP_PROXY=host:port` is usual, too.
            let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
            let proxy =
                make(&url).map_err(|_| Error::Invalid("a proxy address cannot be read".to_owned()))?;
            builder = builder.proxy(proxy.no_proxy(except.clone()));
        }
        Ok(builder)
    }
}

/// Addresses of proxies may hold passwords.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |proxy: &Option<String>| proxy.is_some();
        f.debug_struct("Proxies")
            .field("http", &set(&self.http))
            .field("https", &set(&self.https))
            .field("all", &set(&self.all))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}
