//! Ranges of addresses, and what the headers of a proxy say about a request.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::header::{AsHeaderName, FORWARDED};
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::authority::Authority;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A range of addresses: `10.0.0.0/8`, `::1`, `192.168.1.7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange(IpNet);

/// A text that is not a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address or a range such as 10.0.0.0/8")]
pub struct BadRange(String);

impl FromStr for IpRange {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let bad = || BadRange(text.to_owned());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        // Parsed by the standard library: ipnet accepts `010.0.0.1`, which some readers take for octal.
        let network: IpAddr = address.parse().map_err(|_| bad())?;
        let Some(bits) = bits else { return Ok(IpRange(network.into())) };
        let bits = bits.parse().map_err(|_| bad())?;
        IpNet::new(network, bits).map(IpRange).map_err(|_| bad())
    }
}

impl IpRange {
    /// Whether it has every address of its family: `0.0.0.0/0` and `::/0`.
    pub fn is_everything(&self) -> bool {
        self.0.prefix_len() == 0
    }

    /// Whether the address is in the range. An IPv4 peer on a dual-stack socket counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// True if a proxy seems to have forwarded the request. A client sends none of these headers, and most proxies send one.
/// Anybody can send them, so only use this to take rights away.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "via" | "x-real-ip")
    })
}

/// The base URL that the client asked a trusted proxy for, by `Forwarded` or the `X-Forwarded-*` headers. The last value
/// counts: it is the nearest proxy's, the others may come from anybody.
pub fn forwarded_base(headers: &HeaderMap) -> Option<String> {
    let last = |name: &str| elements_from_the_end(headers, name).next()?.map(str::to_owned);
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
    // Parsed as strictly as a `Host` header, since it becomes part of URLs for clients.
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

/// The address of the client on whose behalf a trusted proxy sent the request, by `X-Forwarded-For` or else `Forwarded`.
/// Proxies append the address they were called from, so the list is read from its end, and the first address that is not a
/// trusted proxy's is the client's; what is before it may come from anybody. If both headers are there, `X-Forwarded-For`
/// counts: most proxies set it, and let a client's own `Forwarded` pass.
///
/// An element that is not an address ends the list: a client may have sent it, to hide behind it. `None` without such a
/// header, or if the nearest proxy hides the address.
pub fn forwarded_for(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    // By names that are known already, and at most two look-ups: every request comes through here.
    let is_list = headers.contains_key(&X_FORWARDED_FOR);
    let name = if is_list { X_FORWARDED_FOR } else { FORWARDED };
    let mut client = None;
    // A list this long was not made by proxies.
    for element in elements_from_the_end(headers, name).take(32) {
        let hop = if is_list { element } else { element.and_then(forwarded_element) };
        let Some(address) = hop.and_then(node_address) else { break };
        client = Some(address);
        if !is_trusted(address) {
            break;
        }
    }
    client
}

/// The elements of a header that is a list, last one first; `None` for one that is not UTF-8. They are split as bytes: what a
/// client sent must not make the elements unreadable that proxies have appended to it.
fn elements_from_the_end(headers: &HeaderMap, name: impl AsHeaderName) -> impl Iterator<Item = Option<&str>> {
    let values = headers.get_all(name).into_iter().rev();
    let elements = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    elements.map(|element| std::str::from_utf8(element).ok().map(str::trim))
}

/// The value of `for` in an element of a `Forwarded` header.
fn forwarded_element(element: &str) -> Option<&str> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim().trim_matches('"'))
    })
}

/// An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `[::1]`, `[::1]:80`, `::1`.
fn node_address(text: &str) -> Option<IpAddr> {
    let address = text.parse().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    address.or_else(with_port).or_else(in_brackets).map(|address: IpAddr| address.to_canonical())
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
            ("10.1.2.3/8", "10.255.0.1", true),
            ("::/0", "::1", true),
            ("::/0", "1.2.3.4", false),
            ("::ffff:10.0.0.0/104", "10.1.1.1", false),
        ] {
            let parsed: IpRange = range.parse().unwrap();
            assert_eq!(parsed.contains(address.parse().unwrap()), inside, "{range} {address}");
        }
        for bad in
            ["", "10.0.0.0/33", "ten", "10.0.0.0/", "::1/129", "10.0.0.0/-1", "010.0.0.1", "010.0.0.0/8"]
        {
            assert!(bad.parse::<IpRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        let trusted: IpRange = "10.0.0.0/8".parse().unwrap();
        for (headers, client) in [
            (&[("x-forwarded-for", "192.0.2.1")][..], Some("192.0.2.1")),
            (&[("x-forwarded-for", "6.6.6.6, 192.0.2.1")], Some("192.0.2.1")),
            (&[("x-forwarded-for", "6.6.6.6, 192.0.2.1,10.0.0.2")], Some("192.0.2.1")),
            (&[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "192.0.2.1")], Some("192.0.2.1")),
            (&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], Some("10.0.0.3")),
            (&[("x-forwarded-for", "192.0.2.1:4711")], Some("192.0.2.1")),
            (&[("x-forwarded-for", "[2001:db8::1]:4711")], Some("2001:db8::1")),
            (&[("x-forwarded-for", "2001:db8::1")], Some("2001:db8::1")),
            (&[("x-forwarded-for", "::ffff:192.0.2.1")], Some("192.0.2.1")),
            (&[("x-forwarded-for", "192.0.2.1, unknown")], None),
            (&[("x-forwarded-for", "")], None),
            (&[("forwarded", "for=6.6.6.6, for=192.0.2.1;proto=https")], Some("192.0.2.1")),
            (&[("forwarded", "proto=https;For=\"[2001:db8::1]:4711\"")], Some("2001:db8::1")),
            (&[("forwarded", "for=_hidden")], None),
            (&[("forwarded", "for=6.6.6.6"), ("x-forwarded-for", "192.0.2.1")], Some("192.0.2.1")),
            (&[], None),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_static(value));
            }
            let found = forwarded_for(&map, |address| trusted.contains(address));
            assert_eq!(found, client.map(|text| text.parse().unwrap()), "{headers:?}");
        }
    }

    /// Otherwise anybody could switch off the limits for their address.
    #[test]
    fn s16_what_a_client_sends_hides_no_address() {
        let trusted: IpRange = "10.0.0.0/8".parse().unwrap();
        let is_trusted = |address| trusted.contains(address);
        let client = Some("192.0.2.1".parse().unwrap());
        let junk: [&[u8]; 8] =
            [b"\xff", b"\xe4\xf6", b"caf\xc3\xa9", b"", b",", b"unknown", b"for=\"", b"6.6.6.6, \x80,\t"];
        for junk in junk {
            for (name, appended, hidden) in [
                ("x-forwarded-for", "192.0.2.1", false),
                ("x-forwarded-for", "192.0.2.1, 10.0.0.2", false),
                // The first proxy has appended nothing.
                ("x-forwarded-for", "10.0.0.2", true),
                ("forwarded", "for=192.0.2.1;host=a.example", false),
                ("forwarded", "for=192.0.2.1, for=10.0.0.2;host=a.example", false),
            ] {
                let client = if hidden { Some("10.0.0.2".parse().unwrap()) } else { client };
                let in_one = [junk, b", ", appended.as_bytes()].concat();
                for values in [&[in_one.as_slice()][..], &[junk, appended.as_bytes()]] {
                    let mut map = HeaderMap::new();
                    for value in values {
                        map.append(name, HeaderValue::from_bytes(value).unwrap());
                    }
                    assert_eq!(forwarded_for(&map, is_trusted), client, "{map:?}");
                    if name == "forwarded" {
                        assert_eq!(forwarded_base(&map).as_deref(), Some("http://a.example"), "{map:?}");
                    }
                }
            }
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
                &[("x-forwarded-host", "a.example"), ("x-forwarded-prefix", "/apps/x/")],
                Some("http://a.example/apps/x"),
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
