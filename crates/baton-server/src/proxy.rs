//! Which proxies may say where a request came in.

use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderMap;

use crate::net::Authority;

/// A range of addresses: `10.0.0.0/8`, `::1`, `192.168.1.7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    network: IpAddr,
    bits: u8,
}

/// A text that is no range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address or a range such as 10.0.0.0/8")]
pub struct BadRange(String);

impl FromStr for IpRange {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let bad = || BadRange(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| bad())?)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| bad())?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most { Err(bad()) } else { Ok(IpRange { network, bits }) }
    }
}

impl IpRange {
    /// Is the address in the range?
    pub fn contains(&self, address: IpAddr) -> bool {
        // A v4 peer on a dual-stack socket is still that v4 peer.
        let leading = |a: u128, b: u128, width: u32| {
            let bits = u32::from(self.bits);
            bits == 0 || (a ^ b) >> (width - bits) == 0
        };
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                leading(u32::from(network).into(), u32::from(address).into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => leading(network.into(), address.into(), 128),
            _ => false,
        }
    }
}

/// Did a proxy hand this on? A plain client sends none of these headers, and a proxy most likely one: who claims to be
/// one is taken at its word, since being one gives no rights.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "via" | "x-real-ip")
    })
}

/// The base URL a trusted proxy was asked for, as `Forwarded` or the `X-Forwarded-*` headers tell. The last word
/// counts: it is the nearest proxy's, the others may be anybody's.
pub(crate) fn forwarded_base(headers: &HeaderMap) -> Option<String> {
    let last = |name: &str| {
        let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
        Some(value.rsplit(',').next().unwrap_or_default().trim().to_owned())
    };
    let (mut proto, mut host) = (last("x-forwarded-proto"), last("x-forwarded-host"));
    if let Some(element) = last("forwarded") {
        for pair in element.split(';') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let value = value.trim().trim_matches('"').to_owned();
            match name.trim().to_ascii_lowercase().as_str() {
                "proto" => proto = Some(value),
                "host" => host = Some(value),
                _ => {}
            }
        }
    }
    // Read as strictly as a `Host` header: it becomes part of the card's URLs.
    let host = host.filter(|host| Authority::parse(host).is_some())?;
    let proto = proto.map(|proto| proto.to_ascii_lowercase());
    let scheme = match proto.as_deref() {
        Some("https") => "https",
        None | Some("http") => "http",
        Some(_) => return None,
    };
    let prefix = last("x-forwarded-prefix").filter(|prefix| is_prefix(prefix)).unwrap_or_default();
    Some(format!("{scheme}://{host}{}", prefix.trim_end_matches('/')))
}

fn is_prefix(text: &str) -> bool {
    text.starts_with('/')
        && !text.starts_with("//")
        && text.len() <= 255
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~/".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn ranges_hold_what_they_say() {
        for (range, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("::1", "::1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
        ] {
            let parsed: IpRange = range.parse().unwrap();
            assert_eq!(parsed.contains(address.parse().unwrap()), inside, "{range} {address}");
        }
        for bad in ["", "10.0.0.0/33", "ten", "10.0.0.0/", "::1/129", "10.0.0.0/-1"] {
            assert!(bad.parse::<IpRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_nearest_proxy_has_the_last_word() {
        for (headers, base) in [
            (
                &[("x-forwarded-host", "a.example"), ("x-forwarded-proto", "https")][..],
                Some("https://a.example"),
            ),
            (&[("x-forwarded-host", "evil.example, a.example")], Some("http://a.example")),
            (&[("forwarded", "for=1.2.3.4;host=a.example:8443;proto=https")], Some("https://a.example:8443")),
            (&[("forwarded", "host=\"[::1]:80\"")], Some("http://[::1]:80")),
            (
                &[("x-forwarded-host", "a.example"), ("x-forwarded-prefix", "/agents/x/")],
                Some("http://a.example/agents/x"),
            ),
            (
                &[("x-forwarded-host", "a.example"), ("x-forwarded-prefix", "//evil")],
                Some("http://a.example"),
            ),
            (&[("x-forwarded-host", "a.example/x")], None),
            (&[("x-forwarded-host", "user@a.example")], None),
            (&[("x-forwarded-host", "a.example"), ("x-forwarded-proto", "javascript")], None),
            (&[("x-forwarded-proto", "https")], None),
            (&[], None),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_static(value));
            }
            assert_eq!(forwarded_base(&map).as_deref(), base, "{headers:?}");
        }
    }
}
