//! A server between our name server and our sink.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use super::internal::PUBLIC;
use super::names::{Names, Zone};
use super::sink::Sink;
use crate::served::{Served, baton};

/// Longest time until every webhook was tried as often as it must be.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Stage {
    pub(super) names: Names,
    pub(super) sink: Sink,
    folder: tempfile::TempDir,
}

impl Stage {
    /// With these zones beside `*.sink.example`, which leads to the receiver on the internet.
    pub(super) fn set(mut zones: HashMap<String, Zone>) -> Self {
        zones.insert("*.sink.example".to_owned(), Zone::of(&PUBLIC));
        let (sink, authority) = Sink::listen();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), authority).unwrap();
        Stage { names: Names::serve(zones), sink, folder }
    }

    /// The demo agent with webhooks, and what this file says of `[push]` beyond that.
    pub(super) fn serve(&self, push: &str) -> Served {
        let path = |name: &str| self.folder.path().join(name);
        let push = format!("enabled = true\ndevelopment = false\nmax_per_owner = 100000\n{push}");
        fs::write(path("baton.toml"), format!("listen = \"127.0.0.1:0\"\n[push]\n{push}\n")).unwrap();
        let mut command = baton(&["serve", "--store", "memory:", "--config"]);
        command.arg(path("baton.toml")).env("SSL_CERT_FILE", path("ca.pem")).env_remove("SSL_CERT_DIR");
        // Whatever else is in the folder it was started in.
        command.current_dir(self.folder.path());
        Served::of(&mut command)
    }
}

/// Calls to webhooks, by what became of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calls {
    pub(super) delivered: usize,
    pub(super) failed: usize,
}

pub(super) async fn calls(server: &Served) -> Calls {
    let mut calls = Calls::default();
    let (_, page) = server.probe("/metrics").await;
    for line in page.lines() {
        let Some((result, count)) =
            line.strip_prefix("baton_webhook_calls_total{result=\"").and_then(|rest| rest.split_once("\"} "))
        else {
            continue;
        };
        let count: usize = count.parse().unwrap();
        if result == "delivered" { calls.delivered += count } else { calls.failed += count }
    }
    calls
}

/// Waits until so many calls have failed, and none has succeeded. Answers how many it were.
pub(super) async fn until_failed(server: &Served, count: usize) -> usize {
    let since = Instant::now();
    loop {
        let calls = calls(server).await;
        assert_eq!(calls.delivered, 0, "{}", server.log());
        if calls.failed >= count {
            return calls.failed;
        }
        assert!(since.elapsed() < PATIENCE, "{calls:?} of {count}\n{}", server.log());
    }
}
