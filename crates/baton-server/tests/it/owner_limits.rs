use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal, Throttle, ThrottleOptions};
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Asked, Builder, Limits, Options, OwnerLimits, Server, Turn};
use serde_json::{Value, json};

use crate::asking::{Ask, INTERFACES, Interface, Sending, ask_with, get, sending};
use crate::callers::{ByHeader, call_as};
use crate::fixtures::{Backend, Gate, TestClock, agent_with, connections};
use crate::harness::{Answer, TestServer, id, message, message_to, message_with_id, serve, with_agent};
use crate::speakers::read;

/// Every turn waits at the gate.
fn waiting(gate: &Gate) -> Builder {
    with_agent(agent_with(gate, |gate, _turn| async move {
        gate.pass().await;
        Ok(())
    }))
}

fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

fn at_once(text: &str) -> Value {
    let mut params = message(text);
    params["configuration"] = json!({"returnImmediately": true});
    params
}

/// The id of a task that the owner starts.
async fn start_as(server: &TestServer, owner: &str) -> String {
    id(&call_as(server, owner, "SendMessage", at_once("work")).await.result()["task"]).to_owned()
}

async fn eventually_as(server: &TestServer, owner: &str, id: &str, wanted: &str) {
    let give_up = Instant::now() + crate::harness::TEST_TIMEOUT;
    loop {
        let task = call_as(server, owner, "GetTask", json!({"id": id})).await.result().clone();
        if task["status"]["state"] == format!("TASK_STATE_{wanted}") {
            return;
        }
        assert!(Instant::now() < give_up, "not {wanted}: {task}");
    }
}

#[track_caller]
fn assert_own_quota(refused: &Answer) {
    assert_eq!((refused.status, refused.error_code()), (429, -32050), "{}", refused.body);
    let seconds: u32 = refused.header("retry-after").expect("it says when").parse().unwrap();
    assert!(seconds > 0);
    assert!(refused.body.to_string().contains("RetryInfo"), "{}", refused.body);
}

/// Of what is stored: nobody knows when there is room again, and the message says what makes room.
#[track_caller]
fn assert_own_room(refused: &Answer) {
    assert_eq!((refused.status, refused.error_code()), (429, -32050), "{}", refused.body);
    assert_eq!(refused.header("retry-after"), None);
    assert!(!refused.body.to_string().contains("RetryInfo"), "{}", refused.body);
    let message = refused.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("only the operator of the server can make room"), "{message}");
}

async fn limited(server: &TestServer, limit: &str) -> u64 {
    let name = format!("baton_limited_total{{limit=\"{limit}\"}} ");
    let numbers = server.server.metrics().await;
    numbers.lines().find_map(|line| line.strip_prefix(&name)).expect("it is counted").parse().unwrap()
}

/// What one caller starts and queues at most leaves room for others, whatever it tries beyond that.
#[tokio::test]
async fn s12_one_owner_at_its_limits_costs_another_nothing() {
    for backend in Backend::each() {
        let gate = Gate::new();
        let small = options(|options| {
            (options.max_running, options.max_queued) = (5, 10);
            (options.owners.max_running, options.owners.max_queued) = (2, 3);
        });
        let builder = waiting(&gate).authenticator(Arc::new(ByHeader)).store(backend.open().await);
        let server = serve(builder.options(small)).await;
        let mut accepted = Vec::new();
        for _ in 0..5 {
            accepted.push(start_as(&server, "greedy").await);
        }
        for round in 0..10 {
            for method in ["SendMessage", "SendStreamingMessage"] {
                assert_own_quota(&call_as(&server, "greedy", method, at_once("more")).await);
            }
            // Meanwhile another's turns start at once, though tasks of the first wait.
            let task = start_as(&server, &format!("calm {}", round / 2)).await;
            eventually_as(&server, &format!("calm {}", round / 2), &task, "WORKING").await;
            if round == 2 {
                break;
            }
        }
        assert_eq!(limited(&server, "tasks").await, 6);
        // A limit of the owner's changes while it waits.
        server.server.control().set_options(options(|options| options.owners.max_running = 4));
        for task in &accepted[..4] {
            eventually_as(&server, "greedy", task, "WORKING").await;
        }
        gate.let_pass(100);
        for task in &accepted {
            eventually_as(&server, "greedy", task, "COMPLETED").await;
        }
        assert_eq!(call_as(&server, "greedy", "SendMessage", message("again")).await.status, 200);
        server.stop().await;
    }
}

/// An agent with few slots, as one that runs programs, and owners that each may run more turns than it has slots.
#[tokio::test]
async fn s12_one_owners_long_turns_do_not_take_the_last_slot_of_an_agent() {
    let gate = Gate::new();
    let mut few = Limits::default();
    few.max_running = Some(4);
    let server = serve(waiting(&gate).authenticator(Arc::new(ByHeader)).limits(few)).await;
    let mut greedy = Vec::new();
    for _ in 0..6 {
        greedy.push(start_as(&server, "greedy").await);
    }
    for task in &greedy[..3] {
        eventually_as(&server, "greedy", task, "WORKING").await;
    }
    let calm = start_as(&server, "calm").await;
    eventually_as(&server, "calm", &calm, "WORKING").await;
    eventually_as(&server, "greedy", &greedy[3], "SUBMITTED").await;
    // An owner that is alone may have all of it, if owners have no limit.
    server.server.control().set_options(options(|options| options.owners.max_running = 0));
    gate.let_pass(1);
    eventually_as(&server, "greedy", &greedy[3], "WORKING").await;
    gate.let_pass(10);
    for task in &greedy {
        eventually_as(&server, "greedy", task, "COMPLETED").await;
    }
    server.stop().await;
}

/// Without limits of the owners: a queue full of one owner's tasks takes another's, and it starts before most of them.
#[tokio::test]
async fn s12_a_full_queue_takes_another_owners_task_and_serves_it_in_turn() {
    let gate = Gate::new();
    let small = options(|options| {
        (options.max_running, options.max_queued) = (1, 20);
        (options.owners.max_running, options.owners.max_queued) = (0, 0);
    });
    let server = serve(waiting(&gate).authenticator(Arc::new(ByHeader)).options(small)).await;
    let mut greedy = Vec::new();
    for _ in 0..21 {
        greedy.push(start_as(&server, "greedy").await);
    }
    let refused = call_as(&server, "greedy", "SendMessage", at_once("one too many")).await;
    assert_eq!((refused.status, refused.error_code()), (503, -32050));
    let calm = start_as(&server, "calm").await;
    // The turn that runs, the one that was first in the queue, and then it is the other's turn.
    gate.let_pass(2);
    eventually_as(&server, "calm", &calm, "WORKING").await;
    eventually_as(&server, "greedy", &greedy[2], "SUBMITTED").await;
    gate.let_pass(20);
    for task in &greedy {
        eventually_as(&server, "greedy", task, "COMPLETED").await;
    }
    eventually_as(&server, "calm", &calm, "COMPLETED").await;
    server.stop().await;
}

/// Beyond its stored tasks an owner gets no new ones, until retention has removed some. What is there goes on.
#[tokio::test]
async fn s12_an_owner_with_all_its_tasks_stored_waits_for_retention() {
    for backend in Backend::each() {
        let clock = TestClock::new();
        let few = options(|options| options.owners.max_tasks = 3);
        let agent = with_agent(crate::agents::obedient).authenticator(Arc::new(ByHeader));
        let server = serve(agent.store(backend.open().await).clock(clock.clone()).options(few.clone())).await;
        let first = message("ask");
        let task = call_as(&server, "greedy", "SendMessage", first.clone()).await.result()["task"].clone();
        for _ in 0..2 {
            assert_eq!(call_as(&server, "greedy", "SendMessage", message("work")).await.status, 200);
        }
        for _ in 0..3 {
            assert_own_room(&call_as(&server, "greedy", "SendMessage", message("more")).await);
            // Tenants do not add up to more.
            let mut elsewhere = message("more");
            elsewhere["tenant"] = json!("elsewhere");
            assert_own_room(&call_as(&server, "greedy", "SendMessage", elsewhere).await);
            assert_eq!(call_as(&server, "calm", "SendMessage", message("work")).await.status, 200);
            server.server.control().set_options(options(|options| options.owners.max_tasks = 3));
        }
        assert_eq!(limited(&server, "stored").await, 6);
        // A repeat is answered, and the task goes on.
        let again = call_as(&server, "greedy", "SendMessage", first).await;
        assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
        let answer = call_as(&server, "greedy", "SendMessage", message_to(&task, "done")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        server.stop().await;
        // The next process finds what is stored.
        let agent = with_agent(crate::agents::obedient).authenticator(Arc::new(ByHeader));
        let server = serve(agent.store(backend.open().await).clock(clock.clone()).options(few)).await;
        assert_own_room(&call_as(&server, "greedy", "SendMessage", message("more")).await);
        clock.advance(Duration::from_secs(31 * 24 * 60 * 60));
        server.server.sweep().await.unwrap();
        for _ in 0..3 {
            assert_eq!(call_as(&server, "greedy", "SendMessage", message("work")).await.status, 200);
        }
        assert_own_room(&call_as(&server, "greedy", "SendMessage", message("more")).await);
        server.stop().await;
    }
}

/// The answer to one owner, in any generation and binding.
async fn ask_as(server: &TestServer, owner: &str, interface: Interface, ask: &Ask) -> Answer {
    let sent = ask_with(server, interface, &[("x-owner", owner)], ask).await;
    read(sent.expect("every generation can say this")).await
}

#[track_caller]
fn assert_own_quota_of(interface: Interface, refused: &Answer) {
    assert_eq!(refused.status, 429, "{interface:?}: {}", refused.body);
    assert_eq!(refused.header("retry-after"), None, "{interface:?}");
    let text = refused.body.to_string();
    assert!(text.contains("bytes stored"), "{interface:?}: {text}");
    match interface {
        Interface::V1Rpc | Interface::V03Rpc => assert_eq!(refused.error_code(), -32050),
        Interface::V01 => assert_eq!(refused.error_code(), -32003),
        _ => assert!(text.contains("RESOURCE_EXHAUSTED"), "{text}"),
    }
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

/// Beyond its stored bytes no message of an owner is taken, in no generation and binding and under no tenant, until retention
/// has removed some. All else goes on: its reads, its cancels, its repeats, and others.
#[tokio::test]
async fn s12_an_owner_with_all_its_bytes_stored_waits_for_retention() {
    for backend in Backend::each() {
        let clock = TestClock::new();
        let few = options(|options| options.owners.max_bytes = 60_000);
        let start = async || {
            let agent = with_agent(crate::agents::obedient).authenticator(Arc::new(ByHeader));
            serve(agent.store(backend.open().await).clock(clock.clone()).options(few.clone())).await
        };
        let server = start().await;
        let asking = call_as(&server, "greedy", "SendMessage", message("ask")).await.result()["task"].clone();
        let held =
            id(&call_as(&server, "greedy", "SendMessage", at_once("hold")).await.result()["task"]).to_owned();
        // The turn that exceeds the limit is not disturbed.
        let large = message(&format!("work {}", "x".repeat(20_000)));
        let done = call_as(&server, "greedy", "SendMessage", large.clone()).await;
        assert_eq!(done.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
        for interface in INTERFACES {
            let to_task = Sending { task: Some(id(&asking).to_owned()), ..sending("answer") };
            for ask in [
                Ask::Send(sending("more")),
                Ask::Stream(sending("more")),
                Ask::Send(to_task.clone()),
                Ask::Stream(to_task),
                Ask::Send(Sending { task: Some(held.clone()), ..sending("and") }),
            ] {
                assert_own_quota_of(interface, &ask_as(&server, "greedy", interface, &ask).await);
            }
            assert_eq!(ask_as(&server, "greedy", interface, &get(&held)).await.status, 200);
            let other = Ask::Send(sending("work"));
            assert_eq!(ask_as(&server, "calm", interface, &other).await.status, 200, "{interface:?}");
        }
        assert_eq!(limited(&server, "stored_bytes").await, 5 * INTERFACES.len() as u64);
        let mut elsewhere = message("more");
        elsewhere["tenant"] = json!("elsewhere");
        assert_own_room(&call_as(&server, "greedy", "SendMessage", elsewhere).await);
        assert_eq!(call_as(&server, "greedy", "ListTasks", json!({})).await.result()["totalSize"], 3);
        let again = call_as(&server, "greedy", "SendMessage", large).await;
        assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
        for task in [id(&asking), &held] {
            let canceled = call_as(&server, "greedy", "CancelTask", json!({"id": task})).await;
            assert_eq!(canceled.result()["status"]["state"], "TASK_STATE_CANCELED");
        }
        server.stop().await;

        let server = start().await;
        assert_own_room(&call_as(&server, "greedy", "SendMessage", message("more")).await);
        // Folding gives some of it back: the log, of which the snapshot says the same.
        clock.advance(days(2));
        server.server.sweep().await.unwrap();
        assert_eq!(call_as(&server, "greedy", "SendMessage", message("work")).await.status, 200);
        let large = message(&format!("work {}", "x".repeat(20_000)));
        assert_eq!(call_as(&server, "greedy", "SendMessage", large.clone()).await.status, 200);
        assert_own_room(&call_as(&server, "greedy", "SendMessage", message("more")).await);
        clock.advance(days(31));
        server.server.sweep().await.unwrap();
        let large = message(&format!("work {}", "x".repeat(20_000)));
        assert_eq!(call_as(&server, "greedy", "SendMessage", large).await.status, 200);
        assert_own_room(&call_as(&server, "greedy", "SendMessage", message("more")).await);
        server.stop().await;
    }
}

/// A message skill makes no task; its reply is stored with the message, and counts for its owner under any tenant.
#[tokio::test]
async fn s12_replies_of_message_skills_count_for_their_owner() {
    for backend in Backend::each() {
        let clock = TestClock::new();
        let few = options(|options| options.owners.max_bytes = 12_000);
        let long = |_: Asked| async { Ok::<_, AgentError>("x".repeat(3000)) };
        let card = AgentCard::new("test", "An agent for tests", "1.0.0");
        let agent = Server::builder(card).message_skill(AgentSkill::new("m", "m", "m"), long);
        let agent = agent.authenticator(Arc::new(ByHeader)).store(backend.open().await);
        let server = serve(agent.clock(clock.clone()).options(few)).await;
        let ask = async |message_id: &str, tenant: &str| {
            let mut params = message_with_id(message_id, "hello");
            params["tenant"] = json!(tenant);
            call_as(&server, "greedy", "SendMessage", params).await
        };
        for n in 0..4 {
            let answer = ask(&format!("m{n}"), &format!("invented-{n}")).await;
            assert_eq!(answer.status, 200, "{n}: {}", answer.body);
        }
        let refused = ask("m4", "invented-4").await;
        assert_own_room(&refused);
        let told = refused.body["error"]["message"].as_str().unwrap();
        assert!(told.contains(": messages and replies without tasks. "), "{told}");
        assert!(told.contains("Each of them is removed 67 days after it came"), "{told}");
        assert_eq!(ask("m0", "invented-0").await.header("a2a-idempotent-replay"), Some("true"));
        assert_eq!(call_as(&server, "calm", "SendMessage", message("hello")).await.status, 200);
        // Message records are kept longer than tasks.
        clock.advance(days(68));
        assert_eq!(server.server.sweep().await.unwrap().records, 5);
        assert_eq!(ask("m4", "invented-4").await.status, 200);
        server.stop().await;
    }
}

/// Turns that have begun go on beyond the limit, but not for ever.
#[tokio::test]
async fn s12_a_turn_fails_far_beyond_its_owners_bytes() {
    const LIMIT: u64 = 2 * 1024 * 1024;
    let endless = |turn: Turn| async move {
        let chunk = "x".repeat(64 * 1024);
        let chunks = if turn.text() == "some" { 24 } else { 100_000 };
        for n in 0..chunks {
            turn.text_artifact(&format!("piece {n}"), chunk.clone()).await?;
        }
        Ok(())
    };
    for backend in Backend::each() {
        let store = backend.open().await;
        let few = options(|options| options.owners.max_bytes = LIMIT);
        let agent = with_agent(endless).authenticator(Arc::new(ByHeader)).store(Arc::clone(&store));
        let server = serve(agent.options(few)).await;
        // 1.5 MiB, and a snapshot: beyond the limit, but not far.
        let some = call_as(&server, "greedy", "SendMessage", message("some")).await;
        assert_eq!(some.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
        let all = call_as(&server, "other", "SendMessage", message("all")).await;
        let status = &all.result()["task"]["status"];
        assert_eq!(status["state"], "TASK_STATE_FAILED");
        let reason = status["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(reason.contains("far more than the 2097152"), "{reason}");
        let stored = store.owner_usage("other").await.unwrap().bytes;
        assert!((2 * LIMIT..4 * LIMIT).contains(&stored), "{stored}");
        assert_own_room(&call_as(&server, "other", "SendMessage", message("some")).await);
        server.stop().await;
    }
}

/// They share one owner, so one of them could shut out the others.
#[tokio::test]
async fn s12_anonymous_callers_have_no_limit_of_bytes() {
    let few = options(|options| options.owners.max_bytes = 1);
    let store = Arc::new(MemoryStore::new());
    let server = serve(with_agent(crate::agents::obedient).options(few).store(Arc::clone(&store))).await;
    for _ in 0..3 {
        assert_eq!(server.call("SendMessage", message("work")).await.status, 200);
    }
    assert_eq!(store.owner_usage("anonymous").await.unwrap().tasks, 3);
    server.stop().await;
}

async fn send_from(server: &TestServer, address: Option<&str>, method: &str) -> Answer {
    let forwarded = address.map(|address| ("x-forwarded-for", address));
    server.call_with(method, at_once("work"), forwarded.as_slice()).await
}

/// Behind a proxy on this machine, the forwarded address counts; without one nobody is counted.
#[tokio::test]
async fn s12_anonymous_callers_are_counted_by_address() {
    let gate = Gate::new();
    let small = options(|options| (options.owners.max_running, options.owners.max_queued) = (1, 1));
    let few = connections(|connections| connections.max_streams_per_owner = 1);
    let server = serve(waiting(&gate).options(small).connections(few)).await;
    for (first, second, other) in [
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        // What the client itself wrote before its proxy's entry does not help.
        ("192.0.2.3", "192.0.2.4, 192.0.2.3", "192.0.2.5"),
        // One customer has a whole /64.
        ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"),
    ] {
        for address in [first, second] {
            assert_eq!(send_from(&server, Some(address), "SendMessage").await.status, 200, "{address}");
        }
        for address in [first, second] {
            assert_own_quota(&send_from(&server, Some(address), "SendMessage").await);
        }
        assert_eq!(send_from(&server, Some(other), "SendMessage").await.status, 200);
    }
    for _ in 0..10 {
        assert_eq!(send_from(&server, None, "SendMessage").await.status, 200);
    }
    gate.let_pass(1000);
    server.stop().await;
}

#[tokio::test]
async fn s12_streams_of_anonymous_callers_are_counted_by_address() {
    let gate = Gate::new();
    let few = connections(|connections| connections.max_streams_per_owner = 1);
    let server = serve(waiting(&gate).connections(few)).await;
    let task = server.start("work").await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": id(&task)}});
    let subscribe = async |address: Option<&str>| {
        let mut headers = vec![("content-type", "application/json"), ("a2a-version", "1.0")];
        headers.extend(address.map(|address| ("x-forwarded-for", address)));
        server.send_raw(&headers, body.to_string()).await
    };
    let held = [subscribe(Some("192.0.2.1")).await, subscribe(Some("192.0.2.2")).await];
    assert!(held.iter().all(|answer| answer.status() == 200));
    assert_eq!(subscribe(Some("192.0.2.1")).await.status(), 429);
    let unknown = [subscribe(None).await, subscribe(None).await];
    assert!(unknown.iter().all(|answer| answer.status() == 200));
    assert_eq!(limited(&server, "streams").await, 1);
    drop((held, unknown));
    gate.let_pass(10);
    server.stop().await;
}

#[tokio::test]
async fn s12_who_calls_too_often_is_told_to_wait_and_others_are_served() {
    let rates = options(|options| {
        (options.owners.rate_send, options.owners.rate_burst) = (1, 3);
    });
    let server =
        serve(with_agent(crate::agents::obedient).authenticator(Arc::new(ByHeader)).options(rates)).await;
    let calls = (0..40).map(|_| call_as(&server, "greedy", "SendMessage", at_once("work")));
    let answers = futures_util::future::join_all(calls).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert!(taken.len() >= 3, "the burst");
    assert!(!refused.is_empty());
    refused.iter().for_each(|answer| assert_own_quota(answer));
    assert_eq!(limited(&server, "rate").await, refused.len() as u64);
    // Reads have a rate of their own, and others have their own sends.
    let task = id(&taken[0].result()["task"]);
    for _ in 0..20 {
        assert_eq!(call_as(&server, "greedy", "GetTask", json!({"id": task})).await.status, 200);
    }
    for _ in 0..3 {
        assert_eq!(call_as(&server, "calm", "SendMessage", message("work")).await.status, 200);
    }
    server.server.control().set_options(options(|options| options.owners = OwnerLimits::default()));
    for _ in 0..20 {
        assert_eq!(call_as(&server, "greedy", "SendMessage", message("work")).await.status, 200);
    }
    server.stop().await;
}

/// The header `x-owner` has to begin with "valid"; failures are throttled.
#[derive(Debug)]
struct Throttled(Throttle);

#[async_trait]
impl Authenticator for Throttled {
    async fn authenticate(&self, request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        let name = request.headers.get("x-owner").and_then(|name| name.to_str().ok());
        match name {
            Some(name) if name.starts_with("valid") => Ok(Principal::new(name)?),
            name => match self.0.failed(request.client, name, Instant::now()) {
                Some(wait) => Err(Throttle::too_many(wait).into()),
                None => Err(Error::of(ErrorKind::Unauthenticated).into()),
            },
        }
    }
}

#[tokio::test]
async fn s16_failures_are_throttled_and_a_valid_credential_always_passes() {
    let mut few = ThrottleOptions::default();
    few.burst = 3;
    let throttled = Throttled(Throttle::new(&few));
    let server = serve(with_agent(crate::agents::obedient).authenticator(Arc::new(throttled))).await;
    let call = async |owner: &str, address: Option<&str>| {
        let mut headers = vec![("x-owner", owner)];
        headers.extend(address.map(|address| ("x-forwarded-for", address)));
        server.call_with("ListTasks", json!({}), &headers).await
    };
    let mut answers = Vec::new();
    for _ in 0..50 {
        answers.push(call("guess", Some("192.0.2.1")).await);
    }
    let refused = answers.iter().filter(|answer| answer.status == 429);
    assert!(answers.iter().all(|answer| answer.status == 401 || answer.status == 429));
    assert!(refused.clone().count() > 0);
    assert_eq!(limited(&server, "authentication").await, refused.clone().count() as u64);
    refused.for_each(assert_own_quota);
    assert_eq!(call("valid one", Some("192.0.2.1")).await.status, 200);
    assert_eq!(call("another guess", Some("192.0.2.1")).await.status, 401, "counted apart");
    assert_eq!(call("guess", Some("192.0.2.2")).await.status, 401, "another address");
    for _ in 0..10 {
        assert_eq!(call("guess", None).await.status, 401, "nobody knows from where");
    }
    server.stop().await;
}
