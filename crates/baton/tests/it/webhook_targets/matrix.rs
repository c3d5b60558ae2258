//! S1: every spelling of an internal target through every face is refused, at once or at each attempt.

use std::collections::BTreeSet;
use std::net::IpAddr;

use futures_util::future::join_all;

use super::faces::{Caller, DIALECTS, Dialect, When};
use super::internal::{PUBLIC, V4, V6, address};
use super::namespace::{FIGURES, in_own_network};
use super::spellings::{urls, zones};
use super::stage::{Stage, until_failed};
use crate::faults::runs::say;

#[test]
fn s14_no_spelling_of_a_url_reaches_an_internal_address() {
    in_own_network(s14_no_spelling_of_a_url_reaches_an_internal_address, story);
}

/// What became of the URLs that one face was given.
#[derive(Default)]
struct Given {
    refused: usize,
    reasons: BTreeSet<String>,
    /// The hosts of those that were taken.
    hosts: Vec<String>,
}

async fn story() {
    let stage = Stage::set(zones());
    stage.sink.sees_all_of(&[V4, V6].concat()).await;
    let server = stage.serve("");
    let (caller, urls) = (Caller::of(&server), urls());
    assert!(urls.len() >= 200, "{}", urls.len());
    let faces = DIALECTS.iter().flat_map(|dialect| [(*dialect, When::WithMessage), (*dialect, When::Later)]);
    let given = join_all(faces.enumerate().map(|(face, (dialect, when))| {
        let (caller, urls) = (&caller, &urls);
        async move { give(caller, dialect, when, face, urls).await }
    }));
    let given = given.await;
    let (first, rest) = given.split_first().unwrap();
    for other in rest {
        assert_eq!((first.refused, first.hosts.len()), (other.refused, other.hosts.len()));
    }
    let refused: usize = given.iter().map(|given| given.refused).sum();
    let reasons: BTreeSet<String> = given.iter().flat_map(|given| given.reasons.clone()).collect();
    let hosts: Vec<String> = given.into_iter().flat_map(|given| given.hosts).collect();
    let known_here = |host: &String| host.ends_with(".hosts.example");
    let asked: Vec<String> = hosts.iter().filter(|host| !known_here(host)).cloned().collect();
    stage.names.until_asked(&asked).await;
    // Each of them was tried, and tried again.
    let tried = until_failed(&server, 2 * hosts.len()).await;
    stage.sink.assert_no_hits().await;
    assert_eq!(stage.sink.visits(), 0, "a host with internal addresses was called at another one");

    let delivered = reaches_the_internet(&stage, &caller).await;
    assert!(server.terminate().success());
    stage.sink.assert_no_hits().await;
    say(&format!(
        "{FIGURES}: URLs {}; given in {} ways: {}; refused when they were given: {refused}, with {} texts; taken: {}; \
         attempts at these: {tried}; look-ups: {}; connections: 0; deliveries of the control: {delivered}",
        urls.len(),
        2 * DIALECTS.len(),
        2 * DIALECTS.len() * urls.len(),
        reasons.len(),
        hosts.len(),
        stage.names.asked_in_all(),
    ));
}

/// Gives all URLs to one face. Whatever is taken gets an event to deliver.
async fn give(caller: &Caller, dialect: Dialect, when: When, face: usize, urls: &[String]) -> Given {
    let mut given = Given::default();
    let mut task = caller.waiting_task().await;
    for (index, url) in urls.iter().enumerate() {
        let url = url.replace("{n}", &format!("f{face}u{index}"));
        let answer = match when {
            When::WithMessage => caller.send(dialect, "echo", &url).await,
            When::Later => caller.create(dialect, &task, &url).await,
        };
        if let Some(reason) = answer.refusal() {
            assert!(!reason.contains("127.0") && !reason.contains("example"), "it repeats the URL: {reason}");
            given.refused += 1;
            given.reasons.insert(reason);
            continue;
        }
        let host = host(&url);
        assert!(host.parse::<IpAddr>().is_err() && host.ends_with(".example"), "{dialect:?} takes {url}");
        given.hosts.push(host);
        if when == When::Later {
            caller.cancel(&task).await;
            task = caller.waiting_task().await;
        }
    }
    caller.cancel(&task).await;
    given
}

/// Of a URL that was taken.
fn host(url: &str) -> String {
    let rest = url.strip_prefix("https://").unwrap_or_else(|| panic!("{url}"));
    rest.split([':', '/', '?']).next().unwrap().to_ascii_lowercase()
}

/// The same calls with targets on the internet do arrive; answers how many.
async fn reaches_the_internet(stage: &Stage, caller: &Caller) -> usize {
    let mut paths = Vec::new();
    for dialect in DIALECTS {
        let targets = [
            format!("https://{dialect:?}.sink.example:8443/{dialect:?}-name"),
            format!("https://{}/{dialect:?}-v4", PUBLIC[0]),
            format!("https://[{}]:8080/{dialect:?}-v6", PUBLIC[1]),
        ];
        for (index, url) in targets.iter().enumerate() {
            let later = format!("{url}-later");
            assert_eq!(caller.send(dialect, "echo", url).await.refusal(), None);
            let task = caller.waiting_task().await;
            assert_eq!(caller.create(dialect, &task, &later).await.refusal(), None, "{index}");
            caller.cancel(&task).await;
            paths.extend([url, &later].map(|url| format!("/{}", url.rsplit('/').next().unwrap())));
        }
    }
    let all_came = |deliveries: &[super::sink::Delivery]| {
        paths.iter().all(|path| deliveries.iter().any(|delivery| delivery.path == *path))
    };
    stage.sink.until_delivered(all_came).await;
    let deliveries = stage.sink.deliveries();
    for public in PUBLIC {
        assert!(deliveries.iter().any(|delivery| delivery.at == address(public)), "{public} got nothing");
    }
    deliveries.len()
}
