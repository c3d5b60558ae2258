//! Spellings of webhook URLs, and what becomes of each.

use super::host::BadHost;
use super::url::BadTarget;
use super::{Target, TargetRules};

const HOST: BadTarget = BadTarget::Host(BadHost::Spelling);
const ODD: BadTarget = BadTarget::Host(BadHost::OddAddress);
const NAME: BadTarget = BadTarget::LocalName;
const ADDRESS: BadTarget = BadTarget::LocalAddress;
const HTTPS: BadTarget = BadTarget::NotHttps;
const USER: BadTarget = BadTarget::UserInfo;
const TEXT: BadTarget = BadTarget::Spelling;

/// Refused by the default rules.
const REFUSED: &[(&str, BadTarget)] = &[
    // This machine, as an IPv4 address.
    ("https://127.0.0.1", ADDRESS),
    ("https://127.0.0.1/", ADDRESS),
    ("https://127.0.0.1:8443/hook", ADDRESS),
    ("https://127.0.0.2/", ADDRESS),
    ("https://127.255.255.254/", ADDRESS),
    ("https://127.0.0.1?x=1", ADDRESS),
    ("HTTPS://127.0.0.1/", ADDRESS),
    ("https://127.0.0.1:443/", ADDRESS),
    ("https://0.0.0.0/", ADDRESS),
    ("https://0.0.0.0:8080/", ADDRESS),
    ("https://0.1.2.3/", ADDRESS),
    // The same in forms that some readers of addresses know.
    ("https://2130706433/", ODD),
    ("https://2130706433:443/", ODD),
    ("https://02130706433/", ODD),
    ("https://017700000001/", ODD),
    ("https://0x7f000001/", ODD),
    ("https://0X7F000001/", ODD),
    ("https://0x7f.1/", ODD),
    ("https://0x7f.0.0.1/", ODD),
    ("https://0x7f.0x0.0x0.0x1/", ODD),
    ("https://0177.0.0.1/", ODD),
    ("https://0177.0.0.01/", ODD),
    ("https://0177.00.00.01/", ODD),
    ("https://00000177.0.0.1/", ODD),
    ("https://127.1/", ODD),
    ("https://127.0.1/", ODD),
    ("https://127.00.0.1/", ODD),
    ("https://127.000.000.001/", ODD),
    ("https://127.0.0.01/", ODD),
    ("https://127.0x1/", ODD),
    ("https://0/", ODD),
    ("https://00/", ODD),
    ("https://0x0/", ODD),
    ("https://0x/", ODD),
    ("https://1/", ODD),
    ("https://127.0.0.0x1/", ODD),
    ("https://127.0.0.256/", ODD),
    ("https://127.0.0.1.1/", ODD),
    ("https://256.256.256.256/", ODD),
    ("https://4294967296/", ODD),
    ("https://6425673729/", ODD),
    ("https://99999999999999999999/", ODD),
    ("https://evil.example.1/", ODD),
    ("https://evil.example.0x1/", ODD),
    ("https://2852039166/", ODD),
    ("https://0xa9fea9fe/", ODD),
    ("https://0xA9.0xFE.0xA9.0xFE/", ODD),
    ("https://0251.0376.0251.0376/", ODD),
    ("https://169.16689662/", ODD),
    ("https://169.254.43518/", ODD),
    ("https://10.1/", ODD),
    ("https://192.168.257/", ODD),
    // Networks that are not the internet.
    ("https://10.0.0.1/", ADDRESS),
    ("https://10.255.255.255/", ADDRESS),
    ("https://100.64.0.1/", ADDRESS),
    ("https://100.100.100.200/", ADDRESS),
    ("https://168.63.129.16/", ADDRESS),
    ("https://169.254.0.1/", ADDRESS),
    ("https://169.254.169.254/latest/meta-data/", ADDRESS),
    ("https://169.254.170.2/v2/credentials", ADDRESS),
    ("https://172.16.0.1/", ADDRESS),
    ("https://172.31.255.255/", ADDRESS),
    ("https://192.0.0.1/", ADDRESS),
    ("https://192.0.0.192/", ADDRESS),
    ("https://192.0.2.1/", ADDRESS),
    ("https://192.88.99.1/", ADDRESS),
    ("https://192.168.0.1/", ADDRESS),
    ("https://192.168.1.1:8080/", ADDRESS),
    ("https://198.18.0.1/", ADDRESS),
    ("https://198.19.255.255/", ADDRESS),
    ("https://198.51.100.1/", ADDRESS),
    ("https://203.0.113.1/", ADDRESS),
    ("https://224.0.0.1/", ADDRESS),
    ("https://239.255.255.255/", ADDRESS),
    ("https://240.0.0.1/", ADDRESS),
    ("https://255.255.255.255/", ADDRESS),
    // IPv6: this machine and local networks.
    ("https://[::]/", ADDRESS),
    ("https://[::]:8443/", ADDRESS),
    ("https://[::1]/", ADDRESS),
    ("https://[::1]:8443/", ADDRESS),
    ("https://[0:0:0:0:0:0:0:1]/", ADDRESS),
    ("https://[0000:0000:0000:0000:0000:0000:0000:0001]/", ADDRESS),
    ("https://[0::1]/", ADDRESS),
    ("https://[::0001]/", ADDRESS),
    ("https://[0:0::0:1]/", ADDRESS),
    ("https://[fc00::1]/", ADDRESS),
    ("https://[fd00::1]/", ADDRESS),
    ("https://[FD12:3456:789A::1]/", ADDRESS),
    ("https://[fd00:ec2::254]/", ADDRESS),
    ("https://[fe80::1]/", ADDRESS),
    ("https://[febf::1]/", ADDRESS),
    ("https://[fec0::1]/", ADDRESS),
    ("https://[ff02::1]/", ADDRESS),
    ("https://[2001:db8::1]/", ADDRESS),
    ("https://[3fff::1]/", ADDRESS),
    ("https://[100::1]/", ADDRESS),
    ("https://[2001:2::1]/", ADDRESS),
    ("https://[2001:10::1]/", ADDRESS),
    ("https://[5f00::1]/", ADDRESS),
    // IPv6 addresses that lead to IPv4 ones.
    ("https://[::ffff:127.0.0.1]/", ADDRESS),
    ("https://[::FFFF:127.0.0.1]/", ADDRESS),
    ("https://[::ffff:7f00:1]/", ADDRESS),
    ("https://[::ffff:7f00:0001]/", ADDRESS),
    ("https://[0:0:0:0:0:ffff:127.0.0.1]/", ADDRESS),
    ("https://[0:0:0:0:0:ffff:7f00:1]/", ADDRESS),
    ("https://[::ffff:0.0.0.0]/", ADDRESS),
    ("https://[::ffff:10.0.0.1]/", ADDRESS),
    ("https://[::ffff:192.168.0.1]/", ADDRESS),
    ("https://[::ffff:169.254.169.254]/", ADDRESS),
    ("https://[::ffff:a9fe:a9fe]/", ADDRESS),
    ("https://[::ffff:100.100.100.200]/", ADDRESS),
    ("https://[::127.0.0.1]/", ADDRESS),
    ("https://[::7f00:1]/", ADDRESS),
    ("https://[::8.8.8.8]/", ADDRESS),
    ("https://[::ffff:0:127.0.0.1]/", ADDRESS),
    ("https://[64:ff9b::127.0.0.1]/", ADDRESS),
    ("https://[64:ff9b::7f00:1]/", ADDRESS),
    ("https://[64:ff9b::10.0.0.1]/", ADDRESS),
    ("https://[64:ff9b::a9fe:a9fe]/", ADDRESS),
    ("https://[64:ff9b::0.0.0.0]/", ADDRESS),
    ("https://[64:ff9b:1::127.0.0.1]/", ADDRESS),
    ("https://[64:ff9b:1::8.8.8.8]/", ADDRESS),
    ("https://[2002:7f00:1::]/", ADDRESS),
    ("https://[2002:7f00:0001::1]/", ADDRESS),
    ("https://[2002:a00:1::]/", ADDRESS),
    ("https://[2002:c0a8:1::]/", ADDRESS),
    ("https://[2002:a9fe:a9fe::]/", ADDRESS),
    ("https://[2001:0:7f00:1::]/", ADDRESS),
    ("https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", ADDRESS),
    ("https://[2001::1]/", ADDRESS),
    // Brackets with something else in them.
    ("https://[fe80::1%25eth0]/", HOST),
    ("https://[fe80::1%eth0]/", HOST),
    ("https://[::1%25lo]/", HOST),
    ("https://[::1", HOST),
    ("https://::1/", HOST),
    ("https://::1]/", HOST),
    ("https://[::1]x/", HOST),
    ("https://[[::1]]/", HOST),
    ("https://[]/", HOST),
    ("https://[127.0.0.1]/", HOST),
    ("https://[localhost]/", HOST),
    ("https://[v1.fe80::a+en1]/", HOST),
    ("https://[::1]]/", HOST),
    ("https://[1:2:3:4:5:6:7:8:9]/", HOST),
    ("https://[::ffff:127.1]/", HOST),
    ("https://[::ffff:0177.0.0.1]/", HOST),
    ("https://[::ffff:0x7f.0.0.1]/", HOST),
    // Names of this machine and of local networks.
    ("https://localhost/", NAME),
    ("https://localhost:8443/", NAME),
    ("https://LOCALHOST/", NAME),
    ("https://LocalHost/", NAME),
    ("https://a.localhost/", NAME),
    ("https://127.0.0.1.localhost/", NAME),
    ("https://localhost.localdomain/", NAME),
    ("https://printer.local/", NAME),
    ("https://PRINTER.LOCAL/", NAME),
    ("https://a.b.local/", NAME),
    ("https://local/", NAME),
    ("https://internal/", NAME),
    ("https://db.internal/", NAME),
    ("https://host.docker.internal/", NAME),
    ("https://gateway.docker.internal/", NAME),
    ("https://metadata.google.internal/computeMetadata/v1/", NAME),
    ("https://METADATA.google.INTERNAL/", NAME),
    ("https://instance-data.ec2.internal/", NAME),
    ("https://metadata/", NAME),
    ("https://instance-data/", NAME),
    ("https://kubernetes/", NAME),
    ("https://kubernetes.default.svc/", NAME),
    ("https://kubernetes.default.svc.cluster.local/", NAME),
    ("https://redis/", NAME),
    ("https://redis:8443/", NAME),
    ("https://com/", NAME),
    ("https://wiki.intranet/", NAME),
    ("https://router.lan/", NAME),
    ("https://nas.home.arpa/", NAME),
    ("https://1.0.0.127.in-addr.arpa/", NAME),
    ("https://b.a.ip6.arpa/", NAME),
    ("https://expyuzz4wqqyqhjn.onion/", NAME),
    // Dots, empty labels, hyphens, lengths.
    ("https://localhost./", HOST),
    ("https://example.com./", HOST),
    ("https://127.0.0.1./", HOST),
    ("https://metadata.google.internal./", HOST),
    ("https://./", HOST),
    ("https://.example.com/", HOST),
    ("https://example..com/", HOST),
    ("https://..127.0.0.1/", HOST),
    ("https://-example.com/", HOST),
    ("https://example-.com/", HOST),
    ("https://under_score.example.com/", HOST),
    ("https://exa!mple.com/", HOST),
    ("https://a,b.example.com/", HOST),
    ("https://a*b.example.com/", HOST),
    ("https://*.example.com/", HOST),
    ("https://a&b.example.com/", HOST),
    ("https://a=b.example.com/", HOST),
    ("https://a;b.example.com/", HOST),
    ("https://(example.com)/", HOST),
    ("https://~example.com/", HOST),
    // Encodings of hosts.
    ("https://%31%32%37.0.0.1/", HOST),
    ("https://127%2e0%2e0%2e1/", HOST),
    ("https://localhos%74/", HOST),
    ("https://example.com%2f@127.0.0.1/", USER),
    ("https://example.com%00.evil.com/", HOST),
    ("https://example%2ecom/", HOST),
    ("https://%5B::1%5D/", HOST),
    ("https://①②⑦.⓪.⓪.①/", TEXT),
    ("https://１２７.０.０.１/", TEXT),
    ("https://127。0。0。1/", TEXT),
    ("https://127．0．0．1/", TEXT),
    ("https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", TEXT),
    ("https://ʟocalhost/", TEXT),
    ("https://exämple.com/", TEXT),
    ("https://例え.jp/", TEXT),
    ("https://example.com\u{200b}/", TEXT),
    ("https://example\u{ad}.com/", TEXT),
    ("https://localhost\u{3002}/", TEXT),
    // Users and passwords.
    ("https://good.example@127.0.0.1/", USER),
    ("https://good.example:443@127.0.0.1/", USER),
    ("https://user:pass@example.com/", USER),
    ("https://user@example.com/", USER),
    ("https://:@example.com/", USER),
    ("https://@127.0.0.1/", USER),
    ("https://@example.com/", USER),
    ("https://a@b@127.0.0.1/", USER),
    ("https://example.com%40127.0.0.1/", HOST),
    ("https://127.0.0.1%40example.com/", HOST),
    // Characters that one reader drops and another keeps.
    ("https://good.example\\@127.0.0.1/", TEXT),
    ("https:\\\\127.0.0.1\\", TEXT),
    ("https://good.example\\.127.0.0.1/", TEXT),
    ("https://example.com\t/", TEXT),
    ("https://exam\tple.com/", TEXT),
    ("https://exam\nple.com/", TEXT),
    ("https://example.com/\r\nX-Injected: 1", TEXT),
    ("https://example.com/ HTTP/1.1\r\nHost: x", TEXT),
    ("https://example.com/a b", TEXT),
    (" https://example.com/", TEXT),
    ("https://example.com/ ", TEXT),
    ("https://example.com /", TEXT),
    ("https:// example.com/", TEXT),
    ("https://example.com\0/", TEXT),
    ("\u{feff}https://example.com/", TEXT),
    ("https://example.com/é", TEXT),
    ("https://example.com/\u{7f}", TEXT),
    ("https://example.com/<x>", TEXT),
    ("https://example.com/\"x\"", TEXT),
    ("https://example.com/{id}", TEXT),
    ("https://example.com/a|b", TEXT),
    ("https://example.com/a^b`c", TEXT),
    // Schemes, and URLs without one.
    ("http://example.com/", HTTPS),
    ("HTTP://example.com/", HTTPS),
    ("http://127.0.0.1/", HTTPS),
    ("http://2130706433/", HTTPS),
    ("http://localhost/", HTTPS),
    ("ftp://example.com/", HTTPS),
    ("file:///etc/passwd", HTTPS),
    ("gopher://example.com/", HTTPS),
    ("dict://example.com:11211/", HTTPS),
    ("ldap://example.com/", HTTPS),
    ("unix:///run/docker.sock", HTTPS),
    ("jar:https://example.com!/", HTTPS),
    ("view-source:https://example.com/", HTTPS),
    ("httpss://example.com/", HTTPS),
    ("https+unix://example.com/", HTTPS),
    ("://example.com/", HTTPS),
    ("data:text/plain,x", TEXT),
    ("javascript:alert(1)", TEXT),
    ("mailto:a@example.com", TEXT),
    ("", TEXT),
    ("example.com", TEXT),
    ("example.com/hook", TEXT),
    ("//example.com/", TEXT),
    ("/hook", TEXT),
    ("https:", TEXT),
    ("https:/example.com/", TEXT),
    ("https:example.com", TEXT),
    ("https://", HOST),
    ("https:///", HOST),
    ("https:///example.com/", HOST),
    ("https://?x", HOST),
    ("https://:443/", HOST),
    // Fragments.
    ("https://example.com/#", BadTarget::Fragment),
    ("https://example.com/hook#part", BadTarget::Fragment),
    ("https://example.com#@127.0.0.1/", BadTarget::Fragment),
    ("https://127.0.0.1#.example.com/", BadTarget::Fragment),
    // Ports.
    ("https://example.com:/", HOST),
    ("https://example.com:x/", HOST),
    ("https://example.com:-1/", HOST),
    ("https://example.com:+443/", HOST),
    ("https://example.com:65536/", HOST),
    ("https://example.com:000443/", HOST),
    ("https://example.com:443:443/", HOST),
    ("https://example.com:0/", BadTarget::Port(0)),
    ("https://example.com:1/", BadTarget::Port(1)),
    ("https://example.com:22/", BadTarget::Port(22)),
    ("https://example.com:25/", BadTarget::Port(25)),
    ("https://example.com:80/", BadTarget::Port(80)),
    ("https://example.com:465/", BadTarget::Port(465)),
    ("https://example.com:587/", BadTarget::Port(587)),
    ("https://example.com:1023/", BadTarget::Port(1023)),
    ("https://example.com:2375/", BadTarget::Port(2375)),
    ("https://example.com:5432/", BadTarget::Port(5432)),
    ("https://example.com:6379/", BadTarget::Port(6379)),
    ("https://example.com:9200/", BadTarget::Port(9200)),
    ("https://example.com:11211/", BadTarget::Port(11211)),
    ("https://8.8.8.8:27017/", BadTarget::Port(27017)),
];

/// Accepted by the default rules; with the `Host` header and the path that are sent.
const ACCEPTED: &[(&str, &str, &str)] = &[
    ("https://example.com", "example.com", "/"),
    ("https://example.com/", "example.com", "/"),
    ("https://EXAMPLE.com/Hook", "example.com", "/Hook"),
    ("HttpS://example.com/", "example.com", "/"),
    ("https://example.com?x=1", "example.com", "/?x=1"),
    ("https://example.com/a/../b?c=%0d%0a&d=//e", "example.com", "/a/../b?c=%0d%0a&d=//e"),
    ("https://example.com/@127.0.0.1/", "example.com", "/@127.0.0.1/"),
    ("https://example.com/?u=user@host", "example.com", "/?u=user@host"),
    ("https://example.com:443/", "example.com", "/"),
    ("https://example.com:00443/", "example.com", "/"),
    ("https://example.com:8443/x", "example.com:8443", "/x"),
    ("https://example.com:65535/", "example.com:65535", "/"),
    ("https://xn--exmple-cua.com/", "xn--exmple-cua.com", "/"),
    ("https://127.0.0.1.nip.io/", "127.0.0.1.nip.io", "/"),
    ("https://localhost.example.com/", "localhost.example.com", "/"),
    ("https://mylocalhost.com/", "mylocalhost.com", "/"),
    ("https://internal.example.com/", "internal.example.com", "/"),
    ("https://0x7f.example.com/", "0x7f.example.com", "/"),
    ("https://1.example/", "1.example", "/"),
    ("https://8.8.8.8/", "8.8.8.8", "/"),
    ("https://8.8.8.8:8443/", "8.8.8.8:8443", "/"),
    ("https://[2001:4860:4860::8888]/", "[2001:4860:4860::8888]", "/"),
    ("https://[2001:4860:4860:0::8888]:8443/", "[2001:4860:4860::8888]:8443", "/"),
    ("https://[::ffff:8.8.8.8]/", "[::ffff:8.8.8.8]", "/"),
    ("https://[64:ff9b::8.8.8.8]/", "[64:ff9b::808:808]", "/"),
    ("https://[2002:808:808::1]/", "[2002:808:808::1]", "/"),
];

#[test]
fn odd_spellings_of_local_hosts_are_refused() {
    assert!(REFUSED.len() >= 200, "{}", REFUSED.len());
    for (url, expected) in REFUSED {
        assert_eq!(Target::parse(url, &TargetRules::default()).as_ref(), Err(expected), "{url:?}");
    }
}

#[test]
fn hosts_on_the_internet_are_accepted() {
    for (url, authority, path) in ACCEPTED {
        let target = Target::parse(url, &TargetRules::default()).unwrap_or_else(|bad| panic!("{url}: {bad}"));
        assert_eq!((target.authority().as_str(), target.path().as_str()), (*authority, *path), "{url}");
        assert!(target.is_https(), "{url}");
    }
}

/// With the development switch this machine may be called, by http too; nothing else that was refused.
#[test]
fn the_development_switch_opens_this_machine_alone() {
    let rules = TargetRules { development: true, ..TargetRules::default() };
    let opened = |url: &str| Target::parse(url, &rules).is_ok();
    for url in [
        "http://127.0.0.1:3000/",
        "http://127.0.0.1/",
        "https://127.0.0.1:8443/",
        "http://localhost:3000/",
        "http://a.localhost:3000/",
        "http://[::1]:3000/",
        "https://[::ffff:127.0.0.1]/",
    ] {
        assert!(opened(url), "{url}");
    }
    let is_this_machine = |url: &str| {
        let host = url.split_once("://").map_or("", |(_, rest)| rest).to_ascii_lowercase();
        let canonical = [
            "[0:0:0:0:0:0:0:1]",
            "[0000:0000:0000:0000:0000:0000:0000:0001]",
            "[0::1]",
            "[::0001]",
            "[0:0::0:1]",
        ];
        let mapped = ["[::ffff:127", "[::ffff:7f00", "[0:0:0:0:0:ffff:127", "[0:0:0:0:0:ffff:7f00"];
        host.starts_with("127.")
            || host.starts_with("[::1]")
            || host.contains("localhost")
            || canonical.iter().chain(&mapped).any(|start| host.starts_with(start))
    };
    for (url, why) in REFUSED {
        if opened(url) {
            assert!(*why == HTTPS || ((*why == ADDRESS || *why == NAME) && is_this_machine(url)), "{url}");
        }
    }
    for url in [
        "http://10.0.0.1/",
        "http://169.254.169.254/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://db.internal/",
        "http://example.com/",
        "http://93.184.216.34/",
        "ftp://127.0.0.1/",
    ] {
        assert!(!opened(url), "{url}");
    }
}

#[test]
fn long_urls_are_refused() {
    let url = |length: usize| format!("https://example.com/{}", "a".repeat(length - 20));
    let parse = |text: &str| Target::parse(text, &TargetRules::default());
    parse(&url(2048)).unwrap();
    assert_eq!(parse(&url(2049)), Err(BadTarget::TooLong));
    let label = "a".repeat(63);
    parse(&format!("https://{label}.{label}.{label}.example/")).unwrap();
    assert_eq!(parse(&format!("https://a{label}.example/")), Err(HOST));
    assert_eq!(parse(&format!("https://{}.example/", [label.as_str(); 4].join("."))), Err(HOST));
}

/// What a caller reads says what to do, and does not repeat the URL: it may hold a secret.
#[test]
fn refusals_say_what_to_do() {
    for (bad, part) in [
        (HTTPS, "https://"),
        (USER, "authentication"),
        (BadTarget::Port(22), "443"),
        (NAME, "on the internet"),
        (ODD, "four decimal numbers"),
        (HOST, "xn--"),
    ] {
        assert!(bad.to_string().contains(part), "{bad}");
    }
    assert_eq!(NAME.to_string(), ADDRESS.to_string(), "a name says no more than an address");
}
