//! What kind of address a webhook would call.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// By who can be reached at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressKind {
    /// A host on the internet.
    Global,
    /// A host of the server's own network.
    Private,
    /// This machine.
    Loopback,
    /// Not routed on the internet: link-local addresses, metadata services of cloud providers, documentation,
    /// benchmarks, addresses that are translated in ways only the local network knows.
    Special,
    /// No single host: unspecified, multicast, broadcast. Connecting to `0.0.0.0` reaches this machine.
    NoHost,
}

use AddressKind::{Global, Loopback, NoHost, Private, Special};

/// First match counts: an exception stands before the range that it is in.
const V4: &[([u8; 4], u32, AddressKind)] = &[
    ([0, 0, 0, 0], 8, NoHost),
    ([10, 0, 0, 0], 8, Private),
    // The metadata service of Alibaba Cloud, in the range of carriers' networks.
    ([100, 100, 100, 200], 32, Special),
    ([100, 64, 0, 0], 10, Private),
    ([127, 0, 0, 0], 8, Loopback),
    // Azure's platform service: virtual machines reach it at an address that is otherwise public.
    ([168, 63, 129, 16], 32, Special),
    // Link-local, with the metadata services of most clouds.
    ([169, 254, 0, 0], 16, Special),
    ([172, 16, 0, 0], 12, Private),
    ([192, 0, 0, 0], 24, Special),
    ([192, 0, 2, 0], 24, Special),
    ([192, 88, 99, 0], 24, Special),
    ([192, 168, 0, 0], 16, Private),
    ([198, 18, 0, 0], 15, Special),
    ([198, 51, 100, 0], 24, Special),
    ([203, 0, 113, 0], 24, Special),
    ([224, 0, 0, 0], 4, NoHost),
    ([255, 255, 255, 255], 32, NoHost),
    ([240, 0, 0, 0], 4, Special),
];

/// First match counts. What is in none of them is not routed on the internet.
const V6: &[([u16; 8], u32, AddressKind)] = &[
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, NoHost),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Loopback),
    // The metadata service of AWS, in the range of private networks.
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Special),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Private),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, NoHost),
    // IETF protocol assignments. Teredo (2001::/32) is among them: its servers are gone, and its addresses hold two IPv4
    // addresses each, that of the client with all bits inverted.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Special),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Special),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Special),
    ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, Global),
];

/// An address that leads to an IPv4 host is judged as that host's.
pub(crate) fn kind(address: IpAddr) -> AddressKind {
    match address.to_canonical() {
        IpAddr::V4(v4) => kind_v4(v4),
        IpAddr::V6(v6) => match translated(v6) {
            // A host that only a translator of the local network reaches is not "private": an operator who allows hosts
            // of the own network has not thought of the translator.
            Some(inner) if kind_v4(inner) == Global => Global,
            Some(_) => Special,
            None => kind_v6(v6),
        },
    }
}

/// The IPv4 address that a translator or tunnel sends packets on to: NAT64 with its well-known prefix (64:ff9b::/96) and
/// 6to4 (2002::/16). The local prefix of NAT64 (64:ff9b:1::/48) is not here, and so not global: where its IPv4 address
/// stands depends on the network.
fn translated(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let inner = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
        [0x2002, high, low, ..] => inner(high, low),
        _ => None,
    }
}

fn kind_v4(v4: Ipv4Addr) -> AddressKind {
    let bits = v4.to_bits();
    let found = V4.iter().find(|(network, length, _)| {
        let network = u32::from_be_bytes(*network);
        (bits ^ network).leading_zeros() >= *length
    });
    found.map_or(Global, |(.., kind)| *kind)
}

fn kind_v6(v6: Ipv6Addr) -> AddressKind {
    let bits = v6.to_bits();
    let found = V6.iter().find(|(network, length, _)| {
        let network = Ipv6Addr::from(*network).to_bits();
        (bits ^ network).leading_zeros() >= *length
    });
    found.map_or(Special, |(.., kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first and the last address of every range, and their neighbours outside.
    #[test]
    fn every_range_ends_where_it_should() {
        let rows = [
            ("0.0.0.0", NoHost),
            ("0.255.255.255", NoHost),
            ("1.0.0.0", Global),
            ("9.255.255.255", Global),
            ("10.0.0.0", Private),
            ("10.255.255.255", Private),
            ("11.0.0.0", Global),
            ("100.63.255.255", Global),
            ("100.64.0.0", Private),
            ("100.100.100.200", Special),
            ("100.127.255.255", Private),
            ("100.128.0.0", Global),
            ("126.255.255.255", Global),
            ("127.0.0.0", Loopback),
            ("127.255.255.255", Loopback),
            ("128.0.0.0", Global),
            ("168.63.129.15", Global),
            ("168.63.129.16", Special),
            ("169.253.255.255", Global),
            ("169.254.0.0", Special),
            ("169.254.169.254", Special),
            ("169.254.255.255", Special),
            ("169.255.0.0", Global),
            ("172.15.255.255", Global),
            ("172.16.0.0", Private),
            ("172.31.255.255", Private),
            ("172.32.0.0", Global),
            ("191.255.255.255", Global),
            ("192.0.0.0", Special),
            ("192.0.0.255", Special),
            ("192.0.1.0", Global),
            ("192.0.2.0", Special),
            ("192.0.2.255", Special),
            ("192.0.3.0", Global),
            ("192.88.98.255", Global),
            ("192.88.99.0", Special),
            ("192.88.99.255", Special),
            ("192.88.100.0", Global),
            ("192.167.255.255", Global),
            ("192.168.0.0", Private),
            ("192.168.255.255", Private),
            ("192.169.0.0", Global),
            ("198.17.255.255", Global),
            ("198.18.0.0", Special),
            ("198.19.255.255", Special),
            ("198.20.0.0", Global),
            ("198.51.99.255", Global),
            ("198.51.100.0", Special),
            ("198.51.100.255", Special),
            ("198.51.101.0", Global),
            ("203.0.112.255", Global),
            ("203.0.113.0", Special),
            ("203.0.113.255", Special),
            ("203.0.114.0", Global),
            ("223.255.255.255", Global),
            ("224.0.0.0", NoHost),
            ("239.255.255.255", NoHost),
            ("240.0.0.0", Special),
            ("255.255.255.254", Special),
            ("255.255.255.255", NoHost),
            ("::", NoHost),
            ("::1", Loopback),
            ("::2", Special),
            // IPv4-compatible, never used; and with the prefix of translators that RFC 6052 replaced.
            ("::127.0.0.1", Special),
            ("::8.8.8.8", Special),
            ("::ffff:0:127.0.0.1", Special),
            ("::ffff:0:8.8.8.8", Special),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:a9fe:a9fe", Special),
            ("::ffff:8.8.8.8", Global),
            ("64:ff9b::8.8.8.8", Global),
            ("64:ff9b::127.0.0.1", Special),
            ("64:ff9b::10.0.0.1", Special),
            ("64:ff9b::169.254.169.254", Special),
            ("64:ff9b::0.0.0.0", Special),
            ("64:ff9b:0:0:1::8.8.8.8", Special),
            ("64:ff9b:1::8.8.8.8", Special),
            ("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", Special),
            ("100::1", Special),
            ("1fff:ffff::", Special),
            ("2000::", Global),
            ("2001::", Special),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Special),
            ("2001:1ff:ffff::", Special),
            ("2001:200::", Global),
            ("2001:db7:ffff::", Global),
            ("2001:db8::", Special),
            ("2001:db8:ffff::", Special),
            ("2001:db9::", Global),
            ("2001:4860:4860::8888", Global),
            ("2002:0808:0808::1", Global),
            ("2002:7f00:1::1", Special),
            ("2002:a00:1::", Special),
            ("2002:a9fe:a9fe::", Special),
            ("2003::", Global),
            ("3ffe::", Global),
            ("3fff::", Special),
            ("3fff:fff:ffff::", Special),
            ("3fff:1000::", Global),
            ("4000::", Special),
            ("5f00::", Special),
            ("fbff::", Special),
            ("fc00::", Private),
            ("fd00:ec2::254", Special),
            ("fd00:ec2::255", Private),
            ("fdff:ffff::", Private),
            ("fe00::", Special),
            ("fe80::1", Special),
            ("febf::", Special),
            ("fec0::", Special),
            ("ff00::", NoHost),
            ("ff02::1", NoHost),
        ];
        for (text, expected) in rows {
            assert_eq!(kind(text.parse().unwrap()), expected, "{text}");
        }
    }
}
