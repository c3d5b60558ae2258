//! The host of a webhook URL.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name in lower case, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

/// Why a text is not a host that can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHost {
    /// Not a name of letters, digits and hyphens, nor an address in its usual form.
    Spelling,
    /// Numbers that some readers take for an IPv4 address: `2130706433`, `0x7f.1`, `127.1`, `0177.0.0.1`.
    OddAddress,
}

/// The top-level and special-use domains of machines and networks: no host on the internet has such a name.
const LOCAL_DOMAINS: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
    "svc",
    "onion",
];

impl Host {
    /// Stricter than the URL standards, so that no two readers find different hosts in it: no percent-encoding, no other
    /// alphabet than ASCII (international names have an ASCII form, `xn--…`), no dot at the end, no scope of an address.
    pub(crate) fn parse(text: &str) -> Result<Self, BadHost> {
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or(BadHost::Spelling)?;
            return match inside.parse::<Ipv6Addr>() {
                Ok(v6) => Ok(Host::Address(v6.into())),
                Err(_) => Err(BadHost::Spelling),
            };
        }
        if text.is_empty() || text.len() > 253 || !text.split('.').all(is_label) {
            return Err(BadHost::Spelling);
        }
        // A last label that is a number makes it an IPv4 address for every reader of URLs. The standard library reads four
        // decimal numbers without leading zeros, nothing else.
        let last = text.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            let v4 = text.parse::<Ipv4Addr>().map_err(|_| BadHost::OddAddress)?;
            return Ok(Host::Address(v4.into()));
        }
        Ok(Host::Name(text.to_ascii_lowercase()))
    }

    /// True for a name that only means something on one machine or in one network.
    pub(crate) fn is_local_name(&self) -> bool {
        let Host::Name(name) = self else { return false };
        !name.contains('.') || LOCAL_DOMAINS.iter().any(|domain| is_in_domain(name, domain))
    }

    /// `localhost` and the names below it.
    pub(crate) fn is_localhost(&self) -> bool {
        matches!(self, Host::Name(name) if is_in_domain(name, "localhost"))
    }
}

/// As in a URL.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Self::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

/// True for the domain and the names below it.
pub(super) fn is_in_domain(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&label.len())
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Decimal, octal or hexadecimal, as readers of IPv4 addresses understand them.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
