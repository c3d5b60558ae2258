//! The guard with name servers of all kinds.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::resolver::Resolve;
use super::{Guard, NoAddress, TargetRules};

/// A name server with fixed answers. A name with several answers gets one after the other.
#[derive(Debug, Default)]
pub(crate) struct NameStub {
    answers: HashMap<&'static str, Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl NameStub {
    pub(crate) fn with(mut self, name: &'static str, answers: &[&[&str]]) -> Self {
        let read = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        self.answers.insert(name, answers.iter().map(read).collect());
        self
    }
}

#[async_trait]
impl Resolve for NameStub {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let answers = self.answers.get(name);
        let answers = answers.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))?;
        Ok(answers[asked % answers.len()].clone())
    }
}

fn guard(allow: &[&str], development: bool, names: NameStub) -> Guard {
    let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
    Guard::new(TargetRules { development, allow }, Arc::new(names))
}

async fn addresses(guard: &Guard, url: &str) -> Result<Vec<String>, String> {
    let target = guard.check(url).map_err(|bad| bad.to_string())?;
    let found = guard.addresses(&target).await.map_err(|none| none.to_string())?;
    Ok(found.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn every_address_of_a_host_is_judged() {
    let names = NameStub::default()
        .with("good.example", &[&["8.8.8.8", "2001:4860:4860::8888"]])
        .with("mixed.example", &[&["8.8.8.8", "10.0.0.1"]])
        .with("last.example", &[&["8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "::1"]])
        .with("mapped.example", &[&["::ffff:127.0.0.1"]])
        .with("nat64.example", &[&["64:ff9b::a9fe:a9fe"]])
        .with("sixtofour.example", &[&["2002:7f00:1::"]])
        .with("zero.example", &[&["0.0.0.0"]])
        .with("127.0.0.1.nip.io", &[&["127.0.0.1"]])
        .with("metadata.example", &[&["169.254.169.254"]])
        .with("empty.example", &[&[]]);
    let guard = guard(&[], false, names);
    let good = addresses(&guard, "https://good.example:8443/").await;
    assert_eq!(good.unwrap(), ["8.8.8.8:8443", "[2001:4860:4860::8888]:8443"]);
    for (host, part) in [
        ("mixed.example", "10.0.0.1"),
        ("last.example", "::1"),
        ("mapped.example", "::ffff:127.0.0.1"),
        ("nat64.example", "64:ff9b::a9fe:a9fe"),
        ("sixtofour.example", "2002:7f00:1::"),
        ("zero.example", "0.0.0.0"),
        ("127.0.0.1.nip.io", "127.0.0.1"),
        ("metadata.example", "169.254.169.254"),
        ("empty.example", "0 addresses"),
        ("missing.example", "not resolved"),
    ] {
        let refused = addresses(&guard, &format!("https://{host}/")).await.unwrap_err();
        assert!(refused.contains(part), "{host}: {refused}");
    }
}

#[tokio::test]
async fn a_host_with_very_many_addresses_is_refused() {
    let many: Vec<String> = (0..65).map(|number| format!("8.8.8.{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let guard = guard(&[], false, NameStub::default().with("many.example", &[&many]));
    let target = guard.check("https://many.example/").unwrap();
    assert!(matches!(guard.addresses(&target).await, Err(NoAddress::Count(65))));
}

/// A name server that alternates between an address on the internet and this machine never gets this machine called.
#[tokio::test]
async fn rebinding_is_judged_at_every_attempt() {
    let names = NameStub::default().with("flip.example", &[&["8.8.8.8"], &["127.0.0.1"]]);
    let guard = guard(&[], false, names);
    let target = guard.check("https://flip.example/").unwrap();
    let mut called = 0;
    for _ in 0..10_000 {
        if let Ok(found) = guard.addresses(&target).await {
            assert_eq!(found, ["8.8.8.8:443".parse().unwrap()]);
            called += 1;
        }
    }
    assert_eq!(called, 5_000);
}

/// `push.allow`: a host may be in a private network, a range may be any; `https` stays, and so do the ports.
#[tokio::test]
async fn operators_can_allow_their_own_network() {
    let names = || {
        NameStub::default()
            .with("hooks.corp.internal", &[&["10.1.2.3"]])
            .with("a.apps.internal", &[&["fd12::5"]])
            .with("evil.corp.internal", &[&["10.1.2.3"]])
            .with("rebound.corp.internal", &[&["127.0.0.1"]])
            .with("metadata.corp.internal", &[&["169.254.169.254"]])
            .with("public.example", &[&["10.1.2.3"]])
            .with("other.example", &[&["10.9.9.9"]])
    };
    let by_host = guard(
        &["hooks.corp.internal", "*.apps.internal", "rebound.corp.internal", "metadata.corp.internal"],
        false,
        names(),
    );
    assert_eq!(addresses(&by_host, "https://hooks.corp.internal/").await.unwrap(), ["10.1.2.3:443"]);
    assert_eq!(addresses(&by_host, "https://a.apps.internal/").await.unwrap(), ["[fd12::5]:443"]);
    for url in [
        "http://hooks.corp.internal/",
        "https://hooks.corp.internal:22/",
        "https://evil.corp.internal/",
        "https://rebound.corp.internal/",
        "https://metadata.corp.internal/",
        "https://public.example/",
        "https://10.1.2.3/",
    ] {
        addresses(&by_host, url).await.unwrap_err();
    }
    let by_range = guard(&["10.1.0.0/16", "127.0.0.0/8", "0.0.0.0/8", "224.0.0.0/4"], false, names());
    for url in
        ["https://10.1.2.3/", "https://public.example/", "https://127.0.0.1/", "https://[::ffff:10.1.2.3]/"]
    {
        addresses(&by_range, url).await.unwrap_or_else(|refused| panic!("{url}: {refused}"));
    }
    for url in [
        "http://10.1.2.3/",
        "https://10.2.0.0/",
        "https://other.example/",
        "https://hooks.corp.internal/",
        "https://[64:ff9b::10.1.2.3]/",
        "https://[2002:a01:203::]/",
        // No host at all: no range opens these.
        "https://0.0.0.0/",
        "https://224.0.0.1/",
    ] {
        addresses(&by_range, url).await.unwrap_err();
    }
}

#[tokio::test]
async fn the_development_switch_resolves_to_this_machine_alone() {
    let names = || {
        NameStub::default()
            .with("localhost", &[&["127.0.0.1", "::1"], &["127.0.0.1", "93.184.216.34"]])
            .with("private.example", &[&["192.168.1.1"]])
            .with("receiver", &[&["172.17.0.2"]])
    };
    let alone = guard(&[], true, names());
    let found = addresses(&alone, "http://localhost:3000/").await.unwrap();
    assert_eq!(found, ["127.0.0.1:3000", "[::1]:3000"]);
    addresses(&alone, "http://localhost:3000/").await.unwrap_err();
    addresses(&alone, "http://private.example/").await.unwrap_err();
    // Without the switch, what the operator names still needs https.
    let named = guard(&["receiver"], true, names());
    assert_eq!(addresses(&named, "http://receiver:8080/").await.unwrap(), ["172.17.0.2:8080"]);
    addresses(&guard(&["receiver"], false, names()), "http://receiver:8080/").await.unwrap_err();
}
