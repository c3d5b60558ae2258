//! Receivers in the operator's own network (`push.allow`).

use std::net::IpAddr;
use std::str::FromStr;

use baton_net::IpRange;

use super::host::{Host, is_in_domain};

/// A host, all hosts below a domain, or a range of addresses that webhooks may call although it is not on the internet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllowedTarget {
    /// `hooks.corp.internal`: the name may be used, and may have addresses of private networks.
    Host(Host),
    /// `*.corp.internal`: the same for every name below the domain.
    Below(String),
    /// `10.1.0.0/16`, `127.0.0.1`: the addresses may be called, by whatever name that is not refused.
    Range(IpRange),
}

/// A text that is neither a host nor a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host (hooks.corp.internal), all hosts of a domain (*.corp.internal), an address, or a range (10.1.0.0/16)"
)]
pub(crate) struct BadAllowed(String);

impl FromStr for AllowedTarget {
    type Err = BadAllowed;

    fn from_str(text: &str) -> Result<Self, BadAllowed> {
        let bad = || BadAllowed(text.to_owned());
        if let Ok(range) = text.parse::<IpRange>() {
            // Everything would switch the guard off, metadata services included.
            return if range.is_everything() { Err(bad()) } else { Ok(Self::Range(range)) };
        }
        let (below, name) = match text.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, text),
        };
        match Host::parse(name) {
            Ok(Host::Name(domain)) if below => Ok(Self::Below(domain)),
            Ok(host @ Host::Name(_)) => Ok(Self::Host(host)),
            Ok(Host::Address(_)) | Err(_) => Err(bad()),
        }
    }
}

impl AllowedTarget {
    pub(super) fn is_host(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Host(allowed), host) => allowed == host,
            (Self::Below(domain), Host::Name(name)) => name != domain && is_in_domain(name, domain),
            (Self::Below(_), Host::Address(_)) | (Self::Range(_), _) => false,
        }
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Range(range) if range.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_domains_and_ranges_are_told_apart() {
        let read = |text: &str| text.parse::<AllowedTarget>();
        assert!(matches!(read("Hooks.Corp.internal"), Ok(AllowedTarget::Host(_))));
        assert!(matches!(read("redis"), Ok(AllowedTarget::Host(_))));
        assert!(matches!(read("*.corp.internal"), Ok(AllowedTarget::Below(_))));
        for range in ["10.0.0.0/8", "127.0.0.1", "fd00::/8", "::1"] {
            assert!(matches!(read(range), Ok(AllowedTarget::Range(_))), "{range}");
        }
        for bad in [
            "",
            "*",
            "*.",
            "a.*",
            "0.0.0.0/0",
            "::/0",
            "*.10.0.0.1",
            "[::1]",
            "https://a.b",
            "a.b:443",
            "127.1",
        ] {
            assert_eq!(read(bad), Err(BadAllowed(bad.to_owned())));
        }
    }

    #[test]
    fn a_domain_has_the_names_below_it() {
        let below: AllowedTarget = "*.corp.internal".parse().unwrap();
        for (name, yes) in [
            ("a.corp.internal", true),
            ("a.b.corp.internal", true),
            ("corp.internal", false),
            ("acorp.internal", false),
        ] {
            assert_eq!(below.is_host(&Host::parse(name).unwrap()), yes, "{name}");
        }
    }
}
