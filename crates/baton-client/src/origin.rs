//! Origins: scheme, host and port. Credentials belong to one.

use std::fmt;

use reqwest::Url;

use crate::address;
use crate::error::Error;

/// Scheme, host and port of an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of an http or https address.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let shown = address::typed(url);
        let parsed = Url::parse(url).map_err(|error| Error::Invalid(format!("{shown:?}: {error}")))?;
        Self::of(&parsed).ok_or_else(|| Error::Invalid(format!("{shown:?} is not an http or https address")))
    }

    pub(crate) fn of(url: &Url) -> Option<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        let host = match url.host_str()? {
            // Servers on this machine put either name on their card, whichever the client used.
            "127.0.0.1" | "[::1]" => "localhost",
            host => host,
        };
        Some(Origin {
            scheme: url.scheme().to_owned(),
            host: host.to_owned(),
            port: url.port_or_known_default()?,
        })
    }

    /// Whether what is meant for this origin may go to the other: it is the same, or the same host by https where this is
    /// http, both at their usual ports. It is then as private as it would have been, and who answers is checked.
    pub fn covers(&self, other: &Origin) -> bool {
        let is_upgrade = (self.port, other.port) == (80, 443) && !self.is_secure() && other.is_secure();
        self == other || (is_upgrade && self.host == other.host)
    }

    /// Whether the connection is encrypted.
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost"
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_default_ports_and_loopback_names_are_the_same_origin() {
        for (one, other, same) in [
            ("https://a.example", "https://a.example:443/x?y", true),
            ("http://127.0.0.1:3000", "http://localhost:3000/a", true),
            ("http://[::1]:3000", "http://localhost:3000", true),
            ("https://A.example", "https://a.example", true),
            ("https://a.example", "http://a.example", false),
            ("https://a.example", "https://a.example:8443", false),
            ("https://a.example", "https://b.a.example", false),
            ("https://a.example@b.example", "https://a.example", false),
        ] {
            assert_eq!(Origin::parse(one).unwrap() == Origin::parse(other).unwrap(), same, "{one} {other}");
        }
        for (one, other, covered) in [
            ("https://a.example", "https://a.example/x", true),
            ("http://a.example", "https://a.example", true),
            ("https://a.example", "http://a.example", false),
            ("http://a.example:3000", "https://a.example", false),
            ("http://a.example", "https://a.example:8443", false),
            ("http://a.example:443", "https://a.example", false),
            ("http://a.example", "https://b.example", false),
        ] {
            let (one, other) = (Origin::parse(one).unwrap(), Origin::parse(other).unwrap());
            assert_eq!(one.covers(&other), covered, "{one} {other}");
        }
        assert!(Origin::parse("file:///etc/passwd").is_err());
        assert!(Origin::parse("a.example").is_err());
    }
}
