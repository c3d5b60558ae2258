//! Deliveries to receivers of all kinds, on real sockets.

mod hostile;
mod pooled;
mod secured;
mod sinks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use super::{DeliverOptions, Deliverer, Outcome, Post};
use crate::push::target::tests::NameStub;
use crate::push::target::{Guard, TargetRules};

/// What the owner of a webhook reads if there was no answer, whatever the reason.
const UNREACHED: &str = "the webhook could not be reached, or did not answer in time";

/// For receivers that do not answer.
fn quick() -> DeliverOptions {
    let timeout = Duration::from_millis(400);
    DeliverOptions { timeout, connect_timeout: timeout, ..DeliverOptions::default() }
}

/// For receivers that do, on a busy machine.
fn patient() -> DeliverOptions {
    let timeout = Duration::from_secs(30);
    DeliverOptions {
        timeout,
        connect_timeout: timeout,
        drain_timeout: timeout,
        idle_time: timeout,
        ..DeliverOptions::default()
    }
}

/// This machine may be called.
fn deliverer(names: NameStub, options: DeliverOptions) -> Deliverer {
    let rules = TargetRules { development: true, ..TargetRules::default() };
    Deliverer::new(Guard::new(rules, Arc::new(names)), options).unwrap()
}

fn post() -> Post {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("webhook-id", HeaderValue::from_static("wh_1"));
    Post { headers, body: Bytes::from_static(br#"{"task":{}}"#) }
}

fn http(address: SocketAddr) -> String {
    format!("http://{address}/hook?x=1")
}

fn status(outcome: &Outcome) -> u16 {
    match outcome {
        Outcome::Answered { status, .. } => status.as_u16(),
        Outcome::NoAnswer(why) => panic!("{why}"),
    }
}

/// The kind of failure, with the text for the log.
fn failure(outcome: &Outcome) -> (&'static str, String) {
    assert_eq!(outcome.for_owner(), UNREACHED);
    match outcome {
        Outcome::Answered { status, .. } => panic!("{status}"),
        Outcome::NoAnswer(why) => (why.kind(), why.to_string()),
    }
}
