//! URLs that lead to internal addresses, or would if they were read in another way. `{n}` stands for a label that no other
//! URL has: so each webhook has a name of its own, and the name server tells whether it was tried.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::internal::{LINK_LOCAL, PUBLIC, V4, V6, v4};
use super::names::Zone;

/// What does not follow from an address. Whatever name is in it leads to an internal address.
const SINGLE: &[&str] = &[
    // Names that mean something on one machine or in one network only.
    "https://localhost/",
    "https://LOCALHOST:8443/",
    "https://localhost./",
    "https://{n}.localhost/",
    "https://localhost.localdomain/",
    "https://127.0.0.1.localhost/",
    "https://{n}.local/",
    "https://internal/",
    "https://{n}.internal/",
    "https://foo.INTERNAL:8443/",
    "https://metadata.google.internal/computeMetadata/v1/",
    "https://Metadata.Google.Internal./",
    "https://metadata/",
    "https://instance-data.ec2.internal/latest/meta-data/",
    "https://host.docker.internal:8080/",
    "https://kubernetes.default.svc/",
    "https://kubernetes.default.svc.cluster.local/",
    "https://redis/",
    "https://com/",
    "https://{n}.lan/",
    "https://{n}.intranet/",
    "https://{n}.home.arpa/",
    "https://5.0.0.10.in-addr.arpa/",
    "https://{n}.onion/",
    // Names that only look like it; the name server gives internal addresses.
    "https://localhost.{n}.example/",
    "https://internal.{n}.example/",
    "https://127.0.0.1.{n}.example/",
    "https://10.0.0.5.{n}.example:8443/",
    "https://0x7f.{n}.example/",
    "https://{n}.EXAMPLE/",
    "https://xn--{n}-cua.example/",
    "https://{n}.example:443",
    "https://{n}.example?x=1",
    "https://{n}.example/@93.184.216.34/",
    "https://{n}.example//93.184.216.34",
    // From the hosts file of the machine.
    "https://known.hosts.example/",
    "https://known6.hosts.example:8443/",
    // Dots and labels.
    "https://./",
    "https://..127.0.0.1/",
    "https://.example.com/",
    "https://{n}..example/",
    "https://{n}.example./",
    "https://-{n}.example/",
    "https://{n}_a.example/",
    "https://*.example/",
    // Two hosts in one text: readers disagree about which it is.
    "https://a.sink.example@127.0.0.1/",
    "https://a.sink.example:443@127.0.0.1:8443/",
    "https://@127.0.0.1/",
    "https://:@127.0.0.1/",
    "https://a@b@127.0.0.1/",
    "https://127.0.0.1@a.sink.example/",
    "https://a.sink.example%40127.0.0.1/",
    "https://127.0.0.1%40a.sink.example/",
    "https://127.0.0.1%2f@a.sink.example/",
    "https://a.sink.example\\@127.0.0.1/",
    "https://127.0.0.1\\@a.sink.example/",
    "https:\\\\127.0.0.1\\",
    "https://127.0.0.1\\.a.sink.example/",
    "https://127.0.0.1#.a.sink.example/",
    "https://a.sink.example#@127.0.0.1/",
    "https://127.0.0.1?@a.sink.example/",
    "https://127.0.0.1;a.sink.example/",
    "https://127.0.0.1,a.sink.example/",
    "https://127.0.0.1 a.sink.example/",
    "https://a.sink.example 127.0.0.1/",
    "https://127.0.0.1\ta.sink.example/",
    "https://127.0.0.1\r\nhost: a.sink.example/",
    "https://a.sink.example/\r\n\r\nPOST https://127.0.0.1/",
    "https://127.0.0.1%00.a.sink.example/",
    "https://127.0.0.1\0.a.sink.example/",
    "https://127.0.0.1%0d%0a.a.sink.example/",
    "https://a.sink.example:443:127.0.0.1/",
    "https://127.0.0.1:443:a.sink.example/",
    "https://[::1]@a.sink.example/",
    "https://[::1]a.sink.example/",
    "https://[::1].a.sink.example/",
    "https://[a.sink.example]/",
    "https://[::ffff:127.1]/",
    "https://[::ffff:0x7f.0.0.1]/",
    "https://[::ffff:0177.0.0.1]/",
    "https://[v1.::1]/",
    "https://[::1",
    "https://::1/",
    "https://::1]/",
    "https://[[::1]]/",
    // Numbers beyond an address.
    "https://0/",
    "https://0x/",
    "https://127.1/",
    "https://127.0.1/",
    "https://256.256.256.256/",
    "https://4294967296/",
    "https://6425673729/",
    "https://127.0.0.257/",
    "https://127.0.0.1.1/",
    "https://{n}.example.1/",
    "https://{n}.example.0x1/",
    // Other alphabets.
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "https://ʟocalhost/",
    "https://localhost\u{3002}/",
    "https://localhos%74/",
    "https://local\u{ad}host/",
    "https://127\u{3002}0\u{3002}0\u{3002}1/",
    "\u{feff}https://127.0.0.1/",
    " https://127.0.0.1/",
    // Other schemes.
    "http://127.0.0.1/",
    "http://{n}.example/",
    "HTTP://10.0.0.5:8080/",
    "//127.0.0.1/",
    "https:127.0.0.1",
    "https:/127.0.0.1/",
    "https:///127.0.0.1/",
    "https://https://127.0.0.1/",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:8080/_POST",
    "dict://127.0.0.1:8080/",
    "file:///etc/passwd",
    "unix:///run/docker.sock",
    "jar:https://127.0.0.1!/",
    "view-source:https://127.0.0.1/",
    "ws://127.0.0.1/",
    // Ports that are not for webhooks.
    "https://{n}.example:22/",
    "https://{n}.example:25/",
    "https://{n}.example:80/",
    "https://{n}.example:6379/",
    "https://{n}.example:2375/",
    "https://{n}.example:0/",
    "https://{n}.example:65536/",
    "https://{n}.example:-1/",
];

/// Names without addresses: every look-up of these fails.
const DEAD: &[&str] = &["https://{n}.missing.example/", "https://{n}.empty.example:8443/"];

/// Every URL of the matrix, once.
pub(super) fn urls() -> Vec<String> {
    let mut urls: Vec<String> = SINGLE.iter().chain(DEAD).map(|url| (*url).to_owned()).collect();
    for (index, text) in V4.iter().enumerate() {
        urls.extend(of_v4(v4(text), index));
    }
    for (index, text) in V6.iter().chain([&LINK_LOCAL]).enumerate() {
        urls.extend(of_v6(text.parse().unwrap(), index));
    }
    let mut seen = HashSet::new();
    urls.retain(|url| seen.insert(url.clone()));
    urls
}

/// Ports in turn.
fn port(index: usize) -> &'static str {
    [":443", ":8443", ":8080", ""][index % 4]
}

fn of_v4(address: Ipv4Addr, index: usize) -> Vec<String> {
    let ([a, b, c, d], bits) = (address.octets(), address.to_bits());
    let (high, low) = (bits >> 16, bits & 0xffff);
    let fullwidth = |text: String| -> String {
        text.chars()
            .map(|sign| sign.to_digit(10).map_or(sign, |digit| char::from_u32(0xff10 + digit).unwrap()))
            .collect()
    };
    let percent: String = address.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
    let hosts = [
        address.to_string(),
        format!("{address}."),
        bits.to_string(),
        format!("0{bits}"),
        format!("{bits:#x}"),
        format!("0X{bits:08X}"),
        format!("0{bits:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a:03}.{b:03}.{c:03}.{d:03}"),
        format!("{a}.{}", bits & 0xff_ffff),
        format!("{a}.{b}.{low}"),
        format!("{a:#x}.{}", bits & 0xff_ffff),
        format!("{}.{b}.{c}.{d}", u32::from(a) + 256),
        percent,
        format!("{a}%2e{b}%2e{c}%2e{d}"),
        fullwidth(address.to_string()),
        format!("{a}\u{3002}{b}\u{3002}{c}\u{3002}{d}"),
        format!("a.sink.example@{address}"),
        format!("a.sink.example\\@{address}"),
        format!("[{address}]"),
        format!("[::ffff:{address}]"),
        format!("[::FFFF:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:ffff:{high:x}:{low:x}]"),
        format!("[::{address}]"),
        format!("[64:ff9b::{address}]"),
        format!("[64:ff9b:1::{address}]"),
        format!("[2002:{high:x}:{low:x}::]"),
        format!("[2001:0:{high:x}:{low:x}::]"),
        format!("[2001::{:x}:{:x}]", high ^ 0xffff, low ^ 0xffff),
    ];
    let literal = hosts.iter().map(|host| format!("https://{host}{}/", port(index)));
    let plain = [80, 8080].map(|port| format!("http://{address}:{port}/"));
    literal.chain(plain).chain(named(address.into(), index)).collect()
}

fn of_v6(address: Ipv6Addr, index: usize) -> Vec<String> {
    let whole: Vec<String> = address.segments().iter().map(|segment| format!("{segment:04X}")).collect();
    let hosts = [
        format!("[{address}]"),
        format!("[{}]", whole.join(":")),
        format!("[{address}%25lo]"),
        format!("[{address}%lo]"),
        format!("[{address}]."),
        format!("a.sink.example@[{address}]"),
        format!("%5B{address}%5D"),
        address.to_string(),
    ];
    let literal = hosts.iter().map(|host| format!("https://{host}{}/", port(index)));
    literal.chain([format!("http://[{address}]:8080/")]).chain(named(address.into(), index)).collect()
}

/// The names that lead to an address, below the domain of the address.
fn named(address: IpAddr, index: usize) -> Vec<String> {
    let domain = domain(address);
    ["is", "also", "last", "alias", "other"]
        .map(|how| format!("https://{{n}}.{how}.{domain}{}/hook", port(index)))
        .into()
}

fn domain(address: IpAddr) -> String {
    let label: String = address.to_string().replace([':', '.'], "-");
    format!("x{label}x.example")
}

/// What the name server says to the names above.
pub(super) fn zones() -> HashMap<String, Zone> {
    let mut zones = HashMap::from([
        ("*.missing.example".to_owned(), Zone::NoSuchName),
        ("*.empty.example".to_owned(), Zone::of(&[])),
    ]);
    for text in V4.iter().chain(V6).chain([&LINK_LOCAL]) {
        let address: IpAddr = text.parse().unwrap();
        let mut add = |how: &str, zone: Zone| {
            zones.insert(format!("*.{how}.{}", domain(address)), zone);
        };
        add("is", Zone::of(&[text]));
        // Beside addresses on the internet.
        add("also", Zone::of(&[text, PUBLIC[0], PUBLIC[1]]));
        add("last", Zone::of(&[PUBLIC[0], PUBLIC[1], "93.184.216.35", text]));
        add("alias", Zone::alias("metadata.google.internal", &[text]));
        // An IPv4 address as an IPv6 one that leads there.
        add(
            "other",
            match address {
                IpAddr::V4(v4) => Zone::of(&[PUBLIC[0], &format!("::ffff:{v4}"), &format!("64:ff9b::{v4}")]),
                IpAddr::V6(_) => Zone::alias("localhost", &[text, PUBLIC[1]]),
            },
        );
    }
    zones
}
