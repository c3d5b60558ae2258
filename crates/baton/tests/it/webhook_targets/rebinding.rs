//! S2: names that have an address on the internet at one question and an internal one at the next. A server that asks
//! once to judge and once more to connect would get there with the first of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::iter;

use super::faces::{Caller, DIALECTS};
use super::internal::{PUBLIC, address, is_public};
use super::names::Zone;
use super::namespace::{FIGURES, in_own_network};
use super::stage::{Stage, calls};
use crate::faults::runs::say;

const V4: &str = PUBLIC[0];
const V6: &str = PUBLIC[1];

/// Answers of a name, one after the other; they differ in what is first.
const TURNS: &[&[&[&str]]] = &[
    &[&[V4], &["127.0.0.1"]],
    &[&["127.0.0.1"], &[V4]],
    &[&[V6], &["::1"]],
    &[&["::1"], &[V6]],
    &[&[V4, V6], &["10.0.0.5", V6]],
    &[&[V4], &[V4, "127.0.0.1"], &["127.0.0.1"]],
    &[&[V4, V6, "169.254.169.254"], &[V4, V6]],
    &[&[V4], &["10.0.0.5"], &["169.254.169.254"], &["fd00:ec2::254"]],
];

/// Names that are used once; each has a change of its own right after the first question.
const FRESH: usize = 1600;
/// Names that are used again and again, over kept connections too.
const KEPT: usize = 16;
/// So often all of these are used…
const ROUNDS: usize = 50;
/// …and so often each of them must have been asked for at least: an answer may be remembered for five seconds.
const QUESTIONS: usize = 3;
/// Calls at the same time.
const AT_ONCE: usize = 8;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn s14_names_that_change_their_address_reach_no_internal_one() {
    in_own_network(s14_names_that_change_their_address_reach_no_internal_one, story);
}

fn turns(index: usize) -> &'static [&'static [&'static str]] {
    TURNS[index % TURNS.len()]
}

fn begins_on_the_internet(index: usize) -> bool {
    turns(index)[0].iter().all(|text| is_public(address(text)))
}

async fn story() {
    let fresh = |index: usize| format!("fresh{index}.flip.example");
    let kept = |index: usize| format!("kept{index}.flip.example");
    let mut zones: HashMap<_, _> =
        (0..FRESH).map(|index| (fresh(index), Zone::turns(turns(index)))).collect();
    zones.extend((0..KEPT).map(|index| (kept(index), Zone::turns(turns(index)))));
    let stage = Stage::set(zones);
    stage.sink.sees_all_of(&["127.0.0.1", "::1", "10.0.0.5", "169.254.169.254", "fd00:ec2::254"]).await;
    let server = stage.serve("");
    let caller = Caller::of(&server);
    let send = async |index: usize, url: String| {
        let answer = caller.send(DIALECTS[index % DIALECTS.len()], "echo", &url).await;
        assert_eq!(answer.refusal(), None, "{url}");
    };

    let all = (0..FRESH).map(|index| send(index, format!("https://{}/{index}", fresh(index))));
    iter(all).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    stage.names.until_asked(&(0..FRESH).map(fresh).collect::<Vec<_>>()).await;
    let on_the_internet: Vec<String> =
        (0..FRESH).filter(|index| begins_on_the_internet(*index)).map(|index| format!("/{index}")).collect();
    let all_came = |came: &[super::sink::Delivery]| {
        on_the_internet.iter().all(|path| came.iter().any(|delivery| delivery.path == *path))
    };
    stage.sink.until_delivered(all_came).await;
    stage.sink.assert_no_hits().await;

    let (since, mut rounds) = (Instant::now(), 0);
    while rounds < ROUNDS || (0..KEPT).any(|index| stage.names.asked(&kept(index)) < QUESTIONS) {
        assert!(since.elapsed() < PATIENCE, "they are not asked for again\n{}", server.log());
        let round = (0..KEPT).map(|index| send(index, format!("https://{}/kept", kept(index))));
        iter(round).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        rounds += 1;
    }
    let calls = calls(&server).await;
    assert!(calls.delivered > 0 && calls.failed > 0, "{calls:?}");
    assert!(server.terminate().success());
    stage.sink.assert_no_hits().await;
    say(&format!(
        "{FIGURES}: names that change {}; webhooks: {}; look-ups: {}; delivered: {}; refused at an attempt: {}; connections \
         to internal addresses: 0",
        FRESH + KEPT,
        FRESH + rounds * KEPT,
        stage.names.asked_in_all(),
        calls.delivered,
        calls.failed,
    ));
}
