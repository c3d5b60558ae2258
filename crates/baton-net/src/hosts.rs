//! Which names the server answers to, and which web pages may call it.
//!
//! A page of any web site can make a browser call a server on the loopback address of the browser's machine: by resolving
//! the site's own name to that address (then `Host` is that name), or across origins (then `Origin` is that site). So on
//! loopback both are checked. A server with a public address can be called from anywhere, and is checked only if
//! `allowed_hosts` is set.

use std::net::SocketAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Request, StatusCode};

use super::authority::{Authority, Scheme};
use super::cors::Origins;
use super::settings::{BadSetting, OpenPaths};

/// Browsers tell by it whether the page that makes a request is of another site.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A name from the settings; without a port it matches every port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AllowedHost {
    host: String,
    port: Option<u16>,
}

impl AllowedHost {
    pub(super) fn parse(text: &str) -> Result<Self, BadSetting> {
        let told =
            |rest| BadSetting(format!("allowed_hosts: `{text}` {rest}; give a name such as app.example"));
        match Authority::parse(text) {
            Some(authority) => Ok(AllowedHost { host: authority.host.to_owned(), port: authority.port }),
            None if text.contains("://") => Err(told("is a URL, not a host")),
            None => Err(told("is no host")),
        }
    }

    /// The host of a base URL, with any port: a proxy listens on another port than the server.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        let authority = Authority::parse(rest.split('/').next()?)?;
        Some(AllowedHost { host: authority.host.to_owned(), port: None })
    }

    fn matches(&self, asked: &Authority<'_>, scheme: Scheme) -> bool {
        let port = asked.port.unwrap_or(scheme.port());
        asked.same_host(&self.host) && self.port.is_none_or(|allowed| allowed == port)
    }
}

#[derive(Debug, Default)]
pub(super) struct Hosts {
    checked: bool,
    /// What the listener speaks.
    scheme: Scheme,
    /// In addition to the names of this machine.
    allowed: Vec<AllowedHost>,
    pub(super) paths: OpenPaths,
}

/// Why a request is not served; the text is for the operator of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotHere {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Hosts {
    /// `set` are the names from the settings, `public` the one of the public URL.
    pub(super) fn new(
        listening: SocketAddr,
        scheme: Scheme,
        set: &[AllowedHost],
        public: Option<AllowedHost>,
        paths: OpenPaths,
    ) -> Self {
        let checked = listening.ip().to_canonical().is_loopback() || !set.is_empty();
        Hosts { checked, scheme, allowed: set.iter().cloned().chain(public).collect(), paths }
    }

    /// Checks the host that the request names and the origin that it comes from.
    pub(super) fn check<B>(&self, request: &Request<B>, cors: Option<&Origins>) -> Result<(), NotHere> {
        if !self.checked || self.paths.is_for_everybody(request.method(), request.uri().path()) {
            return Ok(());
        }
        let host = request.uri().authority().map(|named| named.as_str());
        let host = host.or_else(|| request.headers().get(HOST)?.to_str().ok());
        // Only HTTP/1.0 has no host, and browsers do not speak that.
        if let Some(host) = host
            && !Authority::parse(host).is_some_and(|host| self.allows(&host))
        {
            let text = format!(
                "This server does not go by the name {host:?}. Call it as localhost, 127.0.0.1 or [::1], or add \
                 the name to its `allowed_hosts`"
            );
            return Err(NotHere { status: StatusCode::MISDIRECTED_REQUEST, text });
        }
        self.check_origin(request.headers(), cors)
    }

    fn allows(&self, host: &Authority<'_>) -> bool {
        host.is_loopback() || self.allowed.iter().any(|allowed| allowed.matches(host, self.scheme))
    }

    fn check_origin(&self, headers: &HeaderMap, cors: Option<&Origins>) -> Result<(), NotHere> {
        let refused = |text: &str| Err(NotHere { status: StatusCode::FORBIDDEN, text: text.to_owned() });
        let Some(origin) = headers.get(ORIGIN) else {
            let cross_site = headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site");
            return if cross_site {
                refused("Web pages of other sites may not call this server")
            } else {
                Ok(())
            };
        };
        let origin = origin.to_str().unwrap_or_default();
        let ours = origin
            .split_once("://")
            .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
            .and_then(|(_, host)| Authority::parse(host))
            .is_some_and(|host| self.allows(&host));
        if ours || cors.is_some_and(|cors| cors.allows(origin)) {
            return Ok(());
        }
        refused("Web pages of this origin may not call this server; its CORS settings name those that may")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listening: &str, set: &[&str], public: Option<&str>) -> Hosts {
        let set: Vec<_> = set.iter().map(|host| AllowedHost::parse(host).unwrap()).collect();
        let public = public.and_then(AllowedHost::of_url);
        Hosts::new(listening.parse().unwrap(), Scheme::Http, &set, public, OpenPaths::default())
    }

    fn status(hosts: &Hosts, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method("POST").uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        hosts.check(&request.body(()).unwrap(), None).map_or_else(|not| not.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_some_binds_are_checked() {
        for (listening, set, expected) in [
            ("127.0.0.1:3000", &[][..], 421),
            ("[::1]:3000", &[], 421),
            ("[::ffff:127.0.0.1]:3000", &[], 421),
            ("0.0.0.0:3000", &[], 200),
            ("192.168.1.1:3000", &[], 200),
            ("0.0.0.0:3000", &["app.example"], 421),
        ] {
            let hosts = hosts(listening, set, None);
            assert_eq!(status(&hosts, "/", &[("host", "evil.test")]), expected, "{listening} {set:?}");
            assert_eq!(status(&hosts, "/", &[("host", "localhost:3000")]), 200, "{listening}");
        }
    }

    #[test]
    fn names_are_those_of_the_machine_the_settings_and_the_public_url() {
        let hosts =
            hosts("127.0.0.1:3000", &["app.example", "b.example:8443"], Some("https://c.example/base"));
        for (host, expected) in [
            ("app.example", 200),
            ("APP.example:1", 200),
            ("b.example:8443", 200),
            ("b.example", 421),
            ("c.example", 200),
            ("c.example:9", 200),
            ("x.app.example", 421),
            ("app.example.evil.test", 421),
        ] {
            assert_eq!(status(&hosts, "/", &[("host", host)]), expected, "{host}");
        }
    }

    #[test]
    fn settings_are_hosts() {
        for (bad, says) in [("https://a.example", "URL"), ("a b", "no host"), ("", "no host")] {
            let error = AllowedHost::parse(bad).unwrap_err().to_string();
            assert!(error.contains("allowed_hosts") && error.contains(says), "{error}");
        }
    }
}
