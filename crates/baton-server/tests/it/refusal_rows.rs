//! S-12. Rulings 3 and 4: every refusal for lack of room, of a quota or of a rate, with its codes, statuses and JSON in each
//! generation and binding. (`error_rows` has those of a full server and of a store without room.)

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal, Throttle};
use baton_server::{Builder, Connections, Limits, Options};

use crate::agents::obedient;
use crate::asking::{ALL_BINDINGS, Ask, Interface, Sending, ask_with, get, sending};
use crate::callers::ByHeader;
use crate::error_rows::{AWAY, FULL, KNOWN, NO_ROOM_OF_ONES_OWN, QUOTA, QUOTA_BEFORE_THE_BODY, Row, check};
use crate::fixtures::connections;
use crate::harness::{TestServer, serve, with_agent};
use crate::speakers::read;

const OWNER: (&str, &str) = ("x-owner", "greedy");

fn known_callers() -> Builder {
    with_agent(obedient).authenticator(Arc::new(ByHeader))
}

fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

/// The response of one interface; `None` where it has no such operation.
async fn ask(server: &TestServer, interface: Interface, ask: &Ask) -> Option<reqwest::Response> {
    ask_with(server, interface, &[OWNER], ask).await
}

fn now(text: &str) -> Sending {
    Sending { wait: Some(false), ..sending(text) }
}

fn to(task: &str, text: &str) -> Sending {
    Sending { task: Some(task.to_owned()), ..now(text) }
}

/// The id of a task that was just sent.
async fn start(server: &TestServer, interface: Interface, text: &str) -> String {
    let answer = read(ask(server, interface, &Ask::Send(now(text))).await.unwrap()).await;
    assert_eq!(answer.status, 200, "{interface:?}: {}", answer.body);
    let whole = if interface.is_rest() { &answer.body } else { answer.result() };
    whole.get("task").unwrap_or(whole)["id"].as_str().expect("a task has an id").to_owned()
}

async fn refused(server: &TestServer, interface: Interface, asked: &[Ask], row: &Row, says: &str) {
    for one in asked {
        let Some(response) = ask(server, interface, one).await else { continue };
        let answer = read(response).await;
        check(interface, &answer, row, Some(KNOWN), &format!("{one:?}"));
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{interface:?} {one:?}: {message}");
    }
}

/// The names of these calls are the same in 0.3 and 0.1: the task tells which of them is spoken, also in a refusal.
#[tokio::test]
async fn s12_a_call_beyond_a_rate() {
    for interface in ALL_BINDINGS {
        let server = serve(known_callers()).await;
        let held = start(&server, interface, "hold").await;
        server.server.control().set_options(options(|options| {
            let owners = &mut options.owners;
            (owners.rate_send, owners.rate_read, owners.rate_subscribe, owners.rate_burst) = (1, 1, 1, 1);
        }));
        let list = Ask::List { context: None, page_size: None, page_token: None };
        for one in [
            Ask::Send(now("hello")),
            Ask::Stream(now("hello")),
            get(&held),
            list,
            Ask::Subscribe(held.clone()),
            Ask::Cancel(held.clone()),
        ] {
            // The first ones are served, as many as the rate allows.
            let mut tries = 0..100;
            let refusal = loop {
                let Some(response) = ask(&server, interface, &one).await else { break None };
                if response.status() != 200 {
                    break Some(response);
                }
                assert!(tries.next().is_some(), "{interface:?} {one:?} is never refused");
            };
            let Some(refusal) = refusal else { continue };
            check(interface, &read(refusal).await, &QUOTA, Some(KNOWN), &format!("{one:?}"));
        }
    }
}

/// What a caller is told that holds one stream, and wants more.
async fn beyond_one_stream(interface: Interface, one: Connections, row: &Row, says: &str) {
    let server = serve(known_callers().connections(one)).await;
    let held = start(&server, interface, "hold").await;
    let open = ask(&server, interface, &Ask::Subscribe(held.clone())).await.unwrap();
    assert_eq!(open.status(), 200, "{interface:?}");
    let more = [Ask::Stream(now("hello")), Ask::Subscribe(held)];
    refused(&server, interface, &more, row, says).await;
    drop(open);
}

#[tokio::test]
async fn s12_a_caller_with_all_its_turns_or_streams() {
    for interface in ALL_BINDINGS {
        let few = options(|options| (options.owners.max_running, options.owners.max_queued) = (1, 1));
        let server = serve(known_callers().options(few)).await;
        for _ in 0..2 {
            start(&server, interface, "hold").await;
        }
        let more = [Ask::Send(now("hello")), Ask::Stream(now("hello"))];
        refused(&server, interface, &more, &QUOTA, "This caller has 2 tasks running or queued").await;
        let one = connections(|connections| connections.max_streams_per_owner = 1);
        beyond_one_stream(interface, one, &QUOTA, "This caller has 1 streams open").await;
    }
}

#[tokio::test]
async fn s12_an_agent_or_a_server_with_all_its_turns_or_streams() {
    for interface in ALL_BINDINGS {
        let mut small = Limits::default();
        (small.max_running, small.max_queued) = (Some(1), Some(0));
        let server = serve(known_callers().limits(small)).await;
        start(&server, interface, "hold").await;
        let more = [Ask::Send(now("hello")), Ask::Stream(now("hello"))];
        refused(&server, interface, &more, &FULL, "The agent is at its capacity").await;
        let one = connections(|connections| connections.max_streams = 1);
        beyond_one_stream(interface, one, &FULL, "no room for another stream").await;
    }
}

/// What only retention frees: no time is told, and the message says what is full and who can help.
#[tokio::test]
async fn s12_a_caller_with_all_that_it_may_store() {
    let help = "only the operator of the server can make room";
    for interface in ALL_BINDINGS {
        let server = serve(known_callers().options(options(|options| options.owners.max_tasks = 1))).await;
        start(&server, interface, "ask").await;
        let more = [Ask::Send(now("hello")), Ask::Stream(now("hello"))];
        refused(&server, interface, &more, &NO_ROOM_OF_ONES_OWN, "has 1 tasks stored").await;
        refused(&server, interface, &more, &NO_ROOM_OF_ONES_OWN, help).await;

        let server = serve(known_callers().options(options(|options| options.owners.max_bytes = 1))).await;
        let held = start(&server, interface, "hold").await;
        let more = [
            Ask::Send(now("hello")),
            Ask::Stream(now("hello")),
            Ask::Send(to(&held, "and")),
            Ask::Stream(to(&held, "and")),
        ];
        refused(&server, interface, &more, &NO_ROOM_OF_ONES_OWN, "and may have 1: 1 tasks, and").await;
        refused(&server, interface, &more, &NO_ROOM_OF_ONES_OWN, help).await;
    }
}

#[tokio::test]
async fn s12_a_task_with_all_its_messages() {
    for interface in ALL_BINDINGS {
        let few = options(|options| (options.max_history, options.max_pending_messages) = (1, 1));
        let server = serve(known_callers().options(few)).await;
        let held = start(&server, interface, "hold").await;
        let more = [Ask::Send(to(&held, "and")), Ask::Stream(to(&held, "and"))];
        let says = "The task holds 1 messages, as many as it may; start a new one";
        refused(&server, interface, &more, &NO_ROOM_OF_ONES_OWN, says).await;
    }
}

/// Refuses before the body is read.
#[derive(Debug)]
struct Refusing(Error);

#[async_trait]
impl Authenticator for Refusing {
    async fn authenticate(&self, _request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        Err(self.0.clone().into())
    }
}

#[tokio::test]
async fn s12_callers_that_cannot_be_authenticated_now() {
    let wait = Throttle::too_many(std::time::Duration::from_secs(3));
    let away = Error::of(ErrorKind::Unavailable).with_retry_after(5);
    for (error, row) in [(wait, QUOTA_BEFORE_THE_BODY), (away, AWAY)] {
        let server = serve(with_agent(obedient).authenticator(Arc::new(Refusing(error)))).await;
        for interface in ALL_BINDINGS {
            for one in [Ask::Send(now("hello")), Ask::Stream(now("hello")), get("none")] {
                let answer = read(ask(&server, interface, &one).await.unwrap()).await;
                check(interface, &answer, &row, None, &format!("{one:?}"));
            }
        }
    }
}
