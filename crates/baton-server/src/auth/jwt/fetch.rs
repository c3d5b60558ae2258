//! The HTTP client for the servers that issue tokens.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use http::HeaderMap;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use reqwest::Url;

use super::options::BadTokenOption;

/// How the servers that issue tokens are called.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FetchOptions {
    /// Longest time until a connection is open. Default: 3 s.
    pub connect_timeout: Duration,
    /// Longest time for a whole request. Default: 5 s.
    pub timeout: Duration,
    /// Largest body that is read. Default: 256 KiB.
    pub max_body_bytes: usize,
    /// Certificates as PEM that are trusted beside those of the system, for an issuer with a private certificate authority.
    pub extra_roots: Vec<Vec<u8>>,
    /// A proxy for all requests. Default: none; the environment is not read.
    pub proxy: Option<String>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        FetchOptions {
            connect_timeout: Duration::from_secs(3),
            timeout: Duration::from_secs(5),
            max_body_bytes: 256 * 1024,
            extra_roots: Vec::new(),
            proxy: None,
        }
    }
}

/// The HTTP client, made once and cloned into every scheme. It follows no redirects, keeps no cookies, and never reads more
/// than the largest body.
#[derive(Debug, Clone)]
pub struct Fetcher {
    http: reqwest::Client,
    max_body_bytes: usize,
}

/// A response.
pub(crate) struct Fetched {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Fetcher {
    /// Fails if a certificate or the proxy cannot be used.
    pub fn new(options: &FetchOptions) -> Result<Self, BadTokenOption> {
        let mut builder = reqwest::Client::builder()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(options.connect_timeout)
            .timeout(options.timeout)
            .pool_max_idle_per_host(8)
            .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
            .no_proxy();
        for pem in &options.extra_roots {
            let roots = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|error| BadTokenOption::new("extra_roots", error.to_string()))?;
            builder = builder.tls_certs_merge(roots);
        }
        if let Some(proxy) = &options.proxy {
            // The text is not shown: it may have a password.
            let proxy = reqwest::Proxy::all(proxy)
                .map_err(|_| BadTokenOption::new("proxy", "is not the URL of a proxy"))?;
            builder = builder.proxy(proxy);
        }
        let http = builder.build().map_err(|error| BadTokenOption::new("extra_roots", in_words(error)))?;
        Ok(Fetcher { http, max_body_bytes: options.max_body_bytes })
    }

    /// Anything but status 200 is an error. Errors name the URL.
    pub(crate) async fn get(&self, url: &Url) -> Result<Fetched, String> {
        let fetched = self.send(url, self.http.request(Method::GET, url.clone())).await?;
        if fetched.status == StatusCode::OK { Ok(fetched) } else { Err(fetched.unexpected(url)) }
    }

    /// Posts a form, whose text is already encoded. Errors name the URL.
    pub(crate) async fn post(
        &self,
        url: &Url,
        form: String,
        authorization: Option<&HeaderValue>,
    ) -> Result<Fetched, String> {
        let mut request = self.http.request(Method::POST, url.clone()).body(form);
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        self.send(url, request).await
    }

    async fn send(&self, url: &Url, request: reqwest::RequestBuilder) -> Result<Fetched, String> {
        let failed = |error| format!("{url} {}", in_words(error));
        let mut response = request.header(ACCEPT, "application/json").send().await.map_err(failed)?;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > self.max_body_bytes {
                return Err(format!("{url} sent more than {} bytes", self.max_body_bytes));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Fetched { status, headers, body })
    }
}

impl Fetched {
    /// In words, for a status that should not be.
    pub(crate) fn unexpected(&self, url: &Url) -> String {
        format!("{url} answered with status {}", self.status.as_u16())
    }
}

/// An address that the operator gives, or that a server names whom the operator trusts. Without TLS anybody on the way could
/// replace keys or read tokens, so `http` is for this machine only.
pub(crate) fn checked_url(option: &'static str, text: &str) -> Result<Url, BadTokenOption> {
    let url = Url::parse(text).map_err(|error| BadTokenOption::new(option, error.to_string()))?;
    let is_safe = match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        _ => false,
    };
    if !is_safe {
        return Err(BadTokenOption::new(option, "must begin with https:// (http:// on loopback only)"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(BadTokenOption::new(option, "must have no user, password or fragment"));
    }
    Ok(url)
}

/// An address in a document that came from `from`. A server on the network must not send us to a port of this machine.
pub(crate) fn named_url(name: &str, text: &str, from: &Url) -> Result<Url, String> {
    let url = checked_url("url", text).map_err(|bad| format!("`{name}` {}", bad.why()))?;
    if url.scheme() == "http" && from.scheme() == "https" {
        return Err(format!("`{name}` must begin with https://"));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}

/// With its causes; without the URL, which is named already.
fn in_words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    words
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_https_or_on_this_machine() {
        for (text, good) in [
            ("https://issuer.test/keys", true),
            ("https://10.0.0.1/keys", true),
            ("https://issuer.test:8443/keys?v=1", true),
            ("http://localhost:1/keys", true),
            ("http://127.0.0.1/keys", true),
            ("http://127.8.8.8/keys", true),
            ("http://[::1]:9/keys", true),
            ("http://issuer.test/keys", false),
            ("http://10.0.0.1/keys", false),
            ("http://localhost.evil.test/keys", false),
            ("http://127.0.0.1.evil.test/keys", false),
            ("http://[::2]/keys", false),
            ("file:///etc/passwd", false),
            ("ftp://localhost/keys", false),
            ("https://user@issuer.test/", false),
            ("https://user:secret@issuer.test/", false),
            ("https://issuer.test/#keys", false),
            ("issuer.test", false),
            ("", false),
        ] {
            assert_eq!(checked_url("jwks_url", text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_document_from_the_network_names_no_port_of_this_machine() {
        let from = |text: &str| Url::parse(text).unwrap();
        for (document, named, good) in [
            ("https://issuer.test/", "https://keys.test/", true),
            ("https://issuer.test/", "http://localhost/", false),
            ("http://localhost/", "http://localhost:2/", true),
            ("http://localhost/", "https://keys.test/", true),
            ("http://localhost/", "http://keys.test/", false),
        ] {
            assert_eq!(named_url("jwks_uri", named, &from(document)).is_ok(), good, "{document} {named}");
        }
    }
}
