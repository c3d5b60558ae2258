//! Which names the server answers to, and which web pages may call it.
//!
//! A page of a foreign site can make a browser on this machine call a server on its loopback address: by resolving
//! the site's own name to it (then `Host` is that name), or simply across origins (then `Origin` is that site). So on
//! loopback both are checked. A server with a public address has nothing to hide from browsers that it would show to
//! others, and is checked only when the names it goes by are set.

use std::net::SocketAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, Request, StatusCode};

use super::authority::Authority;
use super::cors::Origins;

/// A name from the settings; without a port, at all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AllowedHost {
    host: String,
    port: Option<u16>,
}

impl AllowedHost {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let told = |rest: &str| format!("allowed_hosts: `{text}` {rest}; give a name such as agent.example");
        match Authority::parse(text) {
            Some(authority) => Ok(AllowedHost { host: authority.host.to_owned(), port: authority.port }),
            None if text.contains("://") => Err(told("is a URL, not a host")),
            None => Err(told("is no host")),
        }
    }

    /// The host of a base URL, at any port: proxies listen at another than the server.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        let authority = Authority::parse(rest.split('/').next()?)?;
        Some(AllowedHost { host: authority.host.to_owned(), port: None })
    }

    fn matches(&self, asked: &Authority<'_>) -> bool {
        asked.same_host(&self.host) && self.port.is_none_or(|port| asked.port.unwrap_or(80) == port)
    }
}

#[derive(Debug, Default)]
pub(super) struct Hosts {
    checked: bool,
    /// Beside the names of this machine itself.
    allowed: Vec<AllowedHost>,
    /// Path of the public URL, without a slash at the end.
    base_path: String,
}

/// Why a request must not be served, in words for whoever set the server up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotHere {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Hosts {
    /// `set` are the names from the settings, `public` the one of the public URL.
    pub(super) fn new(
        listening: SocketAddr,
        set: &[AllowedHost],
        public: Option<AllowedHost>,
        base_path: String,
    ) -> Self {
        let checked = listening.ip().to_canonical().is_loopback() || !set.is_empty();
        Hosts { checked, allowed: set.iter().cloned().chain(public).collect(), base_path }
    }

    /// Looks at where the request says it goes and where it comes from.
    pub(super) fn check<B>(&self, request: &Request<B>, cors: Option<&Origins>) -> Result<(), NotHere> {
        if !self.checked || self.is_for_everybody(request.method(), request.uri().path()) {
            return Ok(());
        }
        let host = request.uri().authority().map(|named| named.as_str());
        let host = host.or_else(|| request.headers().get(HOST)?.to_str().ok());
        // Without any it is HTTP/1.0, which no browser speaks.
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

    /// The card is public, and whoever asks for the server's health may know it by any name. A tenant could be called
    /// `.well-known` and take messages, so there is a look at what is asked for there.
    pub(super) fn is_for_everybody(&self, method: &Method, path: &str) -> bool {
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        match path.trim_end_matches('/').rsplit_once('/') {
            Some((folder, name)) if folder.ends_with("/.well-known") => reads || name.ends_with(".json"),
            _ => reads && self.is_health(path),
        }
    }

    /// These speak for the server, also while it stops.
    pub(super) fn is_health(&self, path: &str) -> bool {
        let inner = path.strip_prefix(self.base_path.as_str()).unwrap_or(path);
        matches!(inner.trim_end_matches('/'), "/healthz" | "/readyz")
    }

    fn allows(&self, host: &Authority<'_>) -> bool {
        host.is_loopback() || self.allowed.iter().any(|allowed| allowed.matches(host))
    }

    fn check_origin(&self, headers: &HeaderMap, cors: Option<&Origins>) -> Result<(), NotHere> {
        let refused = |text: &str| Err(NotHere { status: StatusCode::FORBIDDEN, text: text.to_owned() });
        let Some(origin) = headers.get(ORIGIN) else {
            let cross_site = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
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
        let base_path = crate::card::base_path(public).to_owned();
        Hosts::new(listening.parse().unwrap(), &set, public.and_then(AllowedHost::of_url), base_path)
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
            ("0.0.0.0:3000", &["agent.example"], 421),
        ] {
            let hosts = hosts(listening, set, None);
            assert_eq!(status(&hosts, "/", &[("host", "evil.test")]), expected, "{listening} {set:?}");
            assert_eq!(status(&hosts, "/", &[("host", "localhost:3000")]), 200, "{listening}");
        }
    }

    #[test]
    fn names_are_those_of_the_machine_the_settings_and_the_public_url() {
        let hosts =
            hosts("127.0.0.1:3000", &["agent.example", "b.example:8443"], Some("https://c.example/base"));
        for (host, expected) in [
            ("agent.example", 200),
            ("AGENT.example:1", 200),
            ("b.example:8443", 200),
            ("b.example", 421),
            ("c.example", 200),
            ("c.example:9", 200),
            ("x.agent.example", 421),
            ("agent.example.evil.test", 421),
        ] {
            assert_eq!(status(&hosts, "/", &[("host", host)]), expected, "{host}");
        }
    }

    #[test]
    fn settings_are_hosts() {
        for (bad, says) in [("https://a.example", "URL"), ("a b", "no host"), ("", "no host")] {
            let error = AllowedHost::parse(bad).unwrap_err();
            assert!(error.contains("allowed_hosts") && error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_public_is_not_checked_when_it_is_read() {
        let hosts = hosts("127.0.0.1:3000", &[], Some("https://a.example/base"));
        for (method, path, open) in [
            (Method::GET, "/.well-known/agent-card.json", true),
            (Method::GET, "/agents/a/.well-known/agent-card.json", true),
            (Method::HEAD, "/.well-known/agent.json/", true),
            (Method::GET, "/healthz", true),
            (Method::GET, "/readyz/", true),
            (Method::GET, "/base/readyz", true),
            (Method::GET, "/other/readyz", false),
            (Method::POST, "/.well-known/agent-card.json", true),
            (Method::POST, "/.well-known/message:send", false),
            (Method::GET, "/.well-known/tasks/1", false),
            (Method::GET, "/healthz/x", false),
            (Method::GET, "/", false),
            (Method::GET, "/tasks", false),
        ] {
            assert_eq!(hosts.is_for_everybody(&method, path), open, "{method} {path}");
        }
    }
}
