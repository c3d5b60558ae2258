//! Addresses.

use std::net::{IpAddr, Ipv4Addr};

/// The internet: a receiver listens at these two.
pub(super) const PUBLIC: [&str; 2] = ["93.184.216.34", "2606:2800:220:1::5"];

/// Of every range that is not on the internet, and of those that single cloud services use.
pub(super) const V4: &[&str] = &[
    "127.0.0.1",
    "127.8.8.8",
    // Reaches this machine.
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.5",
    "172.16.0.5",
    "172.31.255.5",
    "192.168.1.5",
    "169.254.169.254",
    "169.254.170.2",
    "100.64.0.5",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.5",
    "192.0.0.192",
    "192.0.2.5",
    "192.88.99.5",
    "198.18.0.5",
    "198.51.100.5",
    "203.0.113.5",
    "240.0.0.5",
];

pub(super) const V6: &[&str] = &[
    "::",
    "::1",
    "::2",
    "fc00::5",
    "fd12:3456:789a::5",
    "fd00:ec2::254",
    "fec0::5",
    "2001:db8::5",
    "3fff::5",
    "100::5",
    "5f00::5",
    // Teredo, with a server and without.
    "2001:0:7f00:1::5",
    "2001::5",
    // What a translator or tunnel sends on to internal IPv4 hosts: NAT64, its local prefix, 6to4, and older ones.
    "64:ff9b::7f00:1",
    "64:ff9b::a00:5",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:5",
    "2002:7f00:1::5",
    "2002:a00:5::5",
    "2002:a9fe:a9fe::5",
    "::7f00:1",
    "::ffff:0:a00:5",
];

/// Nobody can connect to it without naming an interface, so no sink can listen there for the control.
pub(super) const LINK_LOCAL: &str = "fe80::5";

pub(super) fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn is_public(address: IpAddr) -> bool {
    PUBLIC.iter().any(|public| self::address(public) == address.to_canonical())
}
