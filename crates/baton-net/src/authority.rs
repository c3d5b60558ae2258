//! Parses host and port of a `Host` header, an `:authority`, an `Origin` or a setting.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `app.example:8443`, `127.0.0.1`, `[::1]:3000`. Stricter than RFC 3986, so that all readers split it the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// As written; an IPv6 address without its brackets.
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
}

/// Only http and https are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Scheme {
    #[default]
    Http,
    Https,
}

impl Scheme {
    pub(super) fn of(uri: &http::Uri) -> Self {
        if uri.scheme() == Some(&http::uri::Scheme::HTTPS) { Scheme::Https } else { Scheme::Http }
    }

    /// The port that is meant when none is given.
    pub(super) fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl<'a> Authority<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (host, after) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']')?;
                host.parse::<Ipv6Addr>().ok()?;
                (host, after)
            }
            None => {
                let name =
                    |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
                let end = text.as_bytes().iter().position(|byte| !name(byte)).unwrap_or(text.len());
                let (host, after) = (text.get(..end)?, text.get(end..)?);
                if host.is_empty() || host.len() > 255 {
                    return None;
                }
                (host, after)
            }
        };
        let port = match after.as_bytes() {
            [] => None,
            [b':', digits @ ..]
                if (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) =>
            {
                Some(after[1..].parse().ok()?)
            }
            _ => return None,
        };
        Some(Authority { host, port })
    }

    pub(super) fn of_bytes(bytes: &'a [u8]) -> Option<Self> {
        Self::parse(std::str::from_utf8(bytes).ok()?)
    }

    /// Compares names without regard to case, and addresses by value.
    pub(super) fn same_host(&self, other: &str) -> bool {
        match (self.host.parse::<IpAddr>(), other.parse::<IpAddr>()) {
            (Ok(mine), Ok(other)) => mine == other,
            (Err(_), Err(_)) => self.host.eq_ignore_ascii_case(other),
            _ => false,
        }
    }

    /// The same host and port; a missing port is the scheme's.
    pub(super) fn same_place(&self, other: &Authority<'_>, scheme: Scheme) -> bool {
        let port = |place: &Authority<'_>| place.port.unwrap_or(scheme.port());
        self.same_host(other.host) && port(self) == port(other)
    }

    /// A name or an address that means this machine everywhere, so that no web site can be served under it.
    /// `localhost.` and names below `localhost` are left out: resolvers do not agree on them.
    pub(super) fn is_loopback(&self) -> bool {
        match self.host.as_bytes().first() {
            Some(b'1') => self.host.parse::<Ipv4Addr>().is_ok_and(|v4| v4.is_loopback()),
            Some(b'l' | b'L') => self.host.eq_ignore_ascii_case("localhost"),
            // Only an IPv6 address has a colon; `::1` has several spellings.
            Some(_) if self.host.contains(':') => {
                self.host.parse::<Ipv6Addr>().is_ok_and(|v6| v6.is_loopback())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_read_strictly() {
        for (text, host, port) in [
            ("a", "a", None),
            ("app.example:8443", "app.example", Some(8443)),
            ("my_app:0", "my_app", Some(0)),
            ("127.0.0.1:3000", "127.0.0.1", Some(3000)),
            ("[::1]", "::1", None),
            ("[::1]:65535", "::1", Some(65535)),
        ] {
            assert_eq!(Authority::parse(text), Some(Authority { host, port }), "{text}");
        }
        for bad in [
            "",
            ":80",
            "a:",
            "a:x",
            "a:65536",
            "a:000080",
            "a:+1",
            "a:1:2",
            "::1",
            "[::1",
            "[::1]x",
            "[::1]:",
            "[fe80::1%eth0]",
            "[a]",
            "a b",
            "a/b",
            "a@b",
            "user:pass@b",
            "a\\b",
            "a,b",
            "a?b",
            "a#b",
            "ä",
            "a%2e",
            "\"a\"",
        ] {
            assert_eq!(Authority::parse(bad), None, "{bad}");
        }
        assert_eq!(Authority::parse(&"a".repeat(256)), None);
    }

    #[test]
    fn loopback_is_what_no_page_can_claim() {
        for (text, yes) in [
            ("localhost", true),
            ("LocalHost:3000", true),
            ("127.0.0.1", true),
            ("127.255.0.9:1", true),
            ("[::1]:3000", true),
            ("[0:0:0:0:0:0:0:1]", true),
            ("localhost.", false),
            ("a.localhost", false),
            ("localhost.evil.test", false),
            ("127.0.0.1.evil.test", false),
            ("127.1", false),
            ("0177.0.0.1", false),
            ("2130706433", false),
            ("128.0.0.1", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("[::ffff:127.0.0.1]", false),
            ("[fe80::1]", false),
        ] {
            assert_eq!(Authority::parse(text).unwrap().is_loopback(), yes, "{text}");
        }
    }

    #[test]
    fn places_are_compared_by_value() {
        let place = |text| Authority::parse(text).unwrap();
        let same = |a, b| place(a).same_place(&place(b), Scheme::Http);
        assert!(same("A.example", "a.EXAMPLE:80") && !same("a", "a:443"));
        let same_https = |a, b| place(a).same_place(&place(b), Scheme::Https);
        assert!(same_https("a:443", "a") && !same_https("a", "a:80"));
        assert!(same("[::1]:80", "[0:0:0:0:0:0:0:1]"));
        assert!(!same("a", "a:81"));
        assert!(!same("a", "b"));
    }
}
