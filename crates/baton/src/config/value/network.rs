//! Addresses, URLs, hosts, origins, proxies, paths.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};

use baton_server::{IpRange, PushOptions};

use toml::de::DeValue;

use super::plain::whole;
use super::{Refused, Shown, Value, found, quoted};

/// Where to listen: `127.0.0.1:3000`, `localhost:0`, `[::1]:3000`.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct Listen(String);

impl Listen {
    pub(crate) fn local(port: u16) -> Self {
        Listen(format!("127.0.0.1:{port}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn with_port(&self, port: u16) -> Self {
        let host = self.0.rsplit_once(':').map_or(self.0.as_str(), |(host, _)| host);
        Listen(format!("{host}:{port}"))
    }

    /// The address, if other machines may reach it. Names are not resolved here.
    pub(crate) fn public_address(&self) -> Option<SocketAddr> {
        self.0.parse().ok().filter(|address: &SocketAddr| !address.ip().is_loopback())
    }
}

impl Value for Listen {
    fn expected() -> String {
        "an address with a port such as \"127.0.0.1:3000\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        // A port alone means loopback.
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let port =
                text.parse().map_err(|_| Self::refused_because(text, "a port is a number up to 65535"))?;
            return Ok(Self::local(port));
        }
        let Some((host, port)) = text.rsplit_once(':') else {
            return Err(Self::refused_because(text, "the port is missing"));
        };
        if port.parse::<u16>().is_err() {
            return Err(Self::refused_because(text, "a port is a number up to 65535"));
        }
        if !is_host(host) {
            return Err(Self::refused(&quoted(text)));
        }
        Ok(Listen(text.to_owned()))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let port = value.as_integer().and_then(whole).and_then(|port| u16::try_from(port).ok());
        match (value, port) {
            (DeValue::String(text), _) => Self::from_text(text),
            (_, Some(port)) => Ok(Self::local(port)),
            (other, None) => Err(Self::refused(&found(other))),
        }
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}

/// A name or an address; IPv6 addresses in `[…]`.
fn is_host(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('[') {
        return inner.strip_suffix(']').is_some_and(|inner| matches!(inner.parse(), Ok(IpAddr::V6(_))));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.len() <= 253 && text.bytes().all(allowed)
}

/// `host` or `host:port`.
fn is_authority(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => is_host(host) && port.parse::<u16>().is_ok(),
        _ => is_host(text),
    }
}

/// The address that the card gives to clients.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct PublicUrl(String);

impl PublicUrl {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for PublicUrl {
    fn expected() -> String {
        "an address such as \"https://agents.example\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
            return Err(Self::refused_because(text, "it must start with http:// or https://"));
        };
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            // It would be on the public card.
            return Err(Self::refused("one with a name or a password in it"));
        }
        if rest.contains(['?', '#']) || rest.contains(char::is_whitespace) {
            return Err(Self::refused_because(text, "it may not hold a query, a fragment or a space"));
        }
        if !is_authority(authority) {
            return Err(Self::refused_because(text, "the host is missing or not well-formed"));
        }
        Ok(PublicUrl(text.to_owned()))
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}

/// A proxy, or a range of them, whose forwarded headers are trusted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrustedProxy {
    text: String,
    pub(crate) range: IpRange,
}

impl PartialOrd for TrustedProxy {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.text.partial_cmp(&other.text)
    }
}

impl Value for TrustedProxy {
    fn expected() -> String {
        "an address or a range such as \"10.0.0.0/8\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let range = text.parse().map_err(|_| Self::refused(&quoted(text)))?;
        Ok(TrustedProxy { text: text.to_owned(), range })
    }

    fn show(&self) -> Shown {
        Shown::text(&self.text)
    }
}

/// A host name that requests may use.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct HostName(String);

impl HostName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for HostName {
    fn expected() -> String {
        "a host such as \"agents.example\" or \"agents.example:8443\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        if is_authority(text) { Ok(HostName(text.to_owned())) } else { Err(Self::refused(&quoted(text))) }
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}

/// Hosts or addresses of the operator's own network that webhooks may call.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct AllowedHost(String);

impl AllowedHost {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for AllowedHost {
    fn expected() -> String {
        "a host (\"hooks.corp.internal\"), all hosts of a domain (\"*.corp.internal\"), an address, or a range \
         (\"10.1.0.0/16\")"
            .to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        match PushOptions::is_allowable(text) {
            true => Ok(AllowedHost(text.to_owned())),
            false if text.contains("://") => {
                Err(Self::refused_because(text, "without scheme, port and path"))
            }
            false => Err(Self::refused(&quoted(text))),
        }
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}

/// A web page's origin, or `*` for all.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct Origin(String);

impl Origin {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Origin {
    fn expected() -> String {
        "an origin such as \"https://app.example\" (scheme, host and port, no path), or \"*\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        match authority {
            _ if text == "*" => Ok(Origin(text.to_owned())),
            Some(authority) if is_authority(authority) => Ok(Origin(text.to_owned())),
            _ => Err(Self::refused(&quoted(text))),
        }
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}

/// An agent's path on the server: `/weather`.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct AgentPath(String);

impl AgentPath {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for AgentPath {
    fn expected() -> String {
        "a path such as \"/weather\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        let segment = |part: &str| {
            !part.is_empty() && !part.starts_with('.') && part.len() <= 64 && part.bytes().all(allowed)
        };
        match text.strip_prefix('/') {
            Some("") => Ok(AgentPath(text.to_owned())),
            Some(rest) if rest.split('/').all(segment) => Ok(AgentPath(text.to_owned())),
            _ => Err(Self::refused(&quoted(text))),
        }
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Value>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(T::from_text(text).map(|value| value.show()), Ok(Shown::text(*text)));
        }
        for text in bad {
            assert!(T::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_an_address_and_what_is_not() {
        check::<Listen>(
            &["127.0.0.1:3000", "localhost:0", "[::1]:3000", "0.0.0.0:80", "my-host.local:1"],
            &[
                "",
                "nowhere",
                ":80",
                "127.0.0.1",
                "127.0.0.1:",
                "127.0.0.1:65536",
                "::1:80",
                "http://a:80",
                "a b:80",
            ],
        );
        check::<PublicUrl>(
            &["http://a", "https://a.example/base/", "http://[::1]:3000"],
            &[
                "",
                "a.example",
                "ftp://a",
                "http://",
                "https:///x",
                "http://a?b",
                "http://a#b",
                "http://a b",
                "http://u:p@a",
            ],
        );
        check::<TrustedProxy>(
            &["10.0.0.0/8", "::1", "192.168.1.7"],
            &["", "10.0.0.0/33", "localhost", "10.0.0"],
        );
        check::<HostName>(
            &["a.example", "a.example:8443", "[::1]", "[::1]:80"],
            &["", "http://a", "a/b", "a:b", "*"],
        );
        check::<AllowedHost>(
            &["hooks.corp.internal", "*.corp.internal", "10.1.0.0/16", "127.0.0.1", "fd00::/8"],
            &["", "*", "https://hooks.corp.internal", "hooks.corp.internal:8443", "0.0.0.0/0", "[::1]"],
        );
        check::<Origin>(
            &["https://app.example", "http://localhost:5173", "*"],
            &["", "app.example", "https://app.example/", "https://app.example/x", "null"],
        );
        check::<AgentPath>(
            &["/", "/weather", "/a/b-c.d"],
            &["", "weather", "/a/", "//a", "/.well-known", "/a b", "/a/../b"],
        );
    }

    #[test]
    fn a_refused_public_url_does_not_repeat_a_password() {
        assert!(!PublicUrl::from_text("http://u:canary@a").unwrap_err()[0].text.contains("canary"));
    }

    #[test]
    fn a_port_is_put_into_an_address() {
        let with_port = |text: &str| Listen::from_text(text).unwrap().with_port(8080).0;
        assert_eq!(with_port("127.0.0.1:3000"), "127.0.0.1:8080");
        assert_eq!(with_port("[::1]:3000"), "[::1]:8080");
    }
}
