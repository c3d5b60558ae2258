//! Origins: scheme, host and port. Credentials belong to one.

use std::fmt;

use reqwest::Url;

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
        let parsed = Url::parse(url).map_err(|error| Error::Invalid(format!("{url:?}: {error}")))?;
        Self::of(&parsed).ok_or_else(|| Error::Invalid(format!("{url:?} is not an http or https address")))
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
    fn default_ports_and_loopback_names_are_the_same_origin() {
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
        assert!(Origin::parse("file:///etc/passwd").is_err());
        assert!(Origin::parse("a.example").is_err());
    }
}
