//! P-09: streams that are cut, resumed, polled. Every event is shown once, and the task is whole at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use baton_client::protocol::domain::{Part, TaskState};
use baton_client::protocol::operation::{Call, SendMessage};
use baton_client::protocol::wire::StreamItem;
use baton_client::protocol::{ErrorKind, Generation};
use baton_client::{Binding, Ending, Reconnects, Retries, SizeLimits, StreamEvent, TransportKind};
use baton_server::store::memory::MemoryStore;
use tokio::net::TcpListener;

use crate::harness::{
    CuttingProxy, next, obedient, options, quick, rest, scripted_client, serve, serve_on, serve_router,
    stepwise, texts, with_agent,
};

fn artifact(event: &StreamEvent) -> Option<String> {
    match &event.item {
        StreamItem::Artifact { update, .. } => update.artifact.name.clone(),
        _ => None,
    }
}

fn steps(count: usize) -> Vec<String> {
    (0..count).map(|step| format!("step-{step}")).collect()
}

#[tokio::test]
async fn p09_a_cut_stream_goes_on_behind_the_last_event() {
    for (binding, version) in [
        (Binding::JsonRpc, Generation::V1),
        (Binding::HttpJson, Generation::V1),
        (Binding::Grpc, Generation::V1),
        (Binding::JsonRpc, Generation::V0_3),
        (Binding::HttpJson, Generation::V0_3),
        (Binding::Grpc, Generation::V0_3),
        (Binding::JsonRpc, Generation::V0_1),
    ] {
        const STEPS: usize = 12;
        let (agent, permits) = stepwise(STEPS);
        let proxy = CuttingProxy::new().await;
        let server = serve(with_agent(agent).public_url(&proxy.url)).await;
        proxy.forward_to(&server);
        let client = quick().bindings([binding]).assume_version(version).connect(&proxy.url).await.unwrap();
        let mut stream = client.stream("go").await.unwrap();
        let mut seen = Vec::new();
        for step in 0..STEPS {
            permits.add_permits(1);
            // Cut before, between and behind events.
            if step % 3 == 1 {
                proxy.cut();
            }
            loop {
                let event = next(&mut stream).await.unwrap();
                if let Some(name) = artifact(&event) {
                    seen.push(name);
                    break;
                }
            }
            if step % 3 == 2 {
                proxy.cut();
            }
        }
        seen.extend(rest(&mut stream).await.iter().filter_map(artifact));
        assert_eq!(seen, steps(STEPS), "{binding} {version:?}");
        assert!(stream.reconnects() >= 4, "{binding} {version:?}");
        assert_eq!(stream.ending(), Some(Ending::Terminal));
        let task = client.get(&stream.task().unwrap().id).await.unwrap();
        assert_eq!(texts(stream.task().unwrap()), texts(&task), "{binding} {version:?}");
        server.stop().await;
    }
}

/// The server goes away and comes back on the same port, with the same store.
#[tokio::test]
async fn p09_a_restart_of_the_agent_is_survived() {
    for binding in [Binding::JsonRpc, Binding::Grpc] {
        survives_a_restart(binding).await;
    }
}

async fn survives_a_restart(binding: Binding) {
    let store = Arc::new(MemoryStore::default());
    let (agent, permits) = stepwise(4);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server =
        serve_on(with_agent(agent).store(Arc::clone(&store)).drain(std::time::Duration::ZERO), listener)
            .await;
    let client = quick().bindings([binding]).connect(&server.url).await.unwrap();
    let mut stream = client.stream("go").await.unwrap();
    permits.add_permits(2);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(artifact(&next(&mut stream).await.unwrap()));
    }
    // The agent is not re-runnable: the task fails, and the client is told.
    server.stop().await;
    let (agent, _permits) = stepwise(4);
    let listener = TcpListener::bind(address).await.unwrap();
    let server = serve_on(with_agent(agent).store(store), listener).await;
    let events = rest(&mut stream).await;
    assert!(events.iter().filter_map(artifact).next().is_none(), "{events:?}");
    assert_eq!(stream.ending(), Some(Ending::Terminal));
    let task = stream.task().unwrap();
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(texts(task), ["text 0", "text 1"]);
    server.stop().await;
}

#[tokio::test]
async fn p09_an_agent_that_does_not_stream_is_polled() {
    let (agent, permits) = stepwise(2);
    let mut card = crate::harness::card();
    card.capabilities.streaming = Some(false);
    let skill = baton_server::a2a::AgentSkill::new("a", "a", "a");
    let server = serve(baton_server::Server::builder(card).task_skill(skill, agent)).await;
    let client = quick().connect(&server.url).await.unwrap();
    let mut stream = client.stream("go").await.unwrap();
    let first = next(&mut stream).await.unwrap();
    assert!(matches!(first.item, StreamItem::Task(_)), "{first:?}");
    permits.add_permits(2);
    let events = rest(&mut stream).await;
    assert!(events.iter().all(|event| matches!(event.item, StreamItem::Task(_))));
    assert_eq!(stream.ending(), Some(Ending::Terminal));
    assert_eq!(texts(stream.task().unwrap()), ["text 0", "text 1"]);
    server.stop().await;
}

#[tokio::test]
async fn p09_a_stream_can_be_taken_up_by_another_process() {
    let (agent, permits) = stepwise(3);
    let server = serve(with_agent(agent)).await;
    let client = quick().connect(&server.url).await.unwrap();
    let mut stream = client.stream("go").await.unwrap();
    permits.add_permits(1);
    while artifact(&next(&mut stream).await.unwrap()).is_none() {}
    let (id, last) = (stream.task().unwrap().id.clone(), stream.last_event_id().unwrap().to_owned());
    drop(stream);
    permits.add_permits(2);
    let other = quick().connect(&server.url).await.unwrap();
    let mut stream = other.resume(&id, &last).await.unwrap();
    let seen: Vec<_> = rest(&mut stream).await.iter().filter_map(artifact).collect();
    assert_eq!(seen, ["step-1", "step-2"]);
    server.stop().await;
}

#[tokio::test]
async fn p09_the_task_that_has_ended_is_refused_and_named() {
    let server = serve(with_agent(obedient)).await;
    let client = quick().connect(&server.url).await.unwrap();
    let task = client.send("hello").await.unwrap().task().unwrap().clone();
    let error = client.subscribe(&task.id).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::UnsupportedOperation), "{error}");
    // To follow it is no error: it is settled.
    assert_eq!(client.wait(task.clone()).await.unwrap(), task);
    server.stop().await;
}

const TASK: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
const DONE: &str =
    r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;

/// How often each method was called.
#[derive(Default)]
struct Calls {
    sends: AtomicU32,
    subscriptions: AtomicU32,
    gets: AtomicU32,
}

/// An agent whose streams are cut, as a table of what it answers.
#[derive(Clone)]
struct Script {
    calls: Arc<Calls>,
    on_send: &'static [&'static str],
    on_subscribe: Result<&'static [&'static str], i32>,
    on_get: &'static str,
}

/// Server-sent events, each the answer to that request. `id=7 {…}` has an id, `!-32004` is an error.
fn events(id: &str, results: &[&str]) -> Response {
    let frame = |item: &&str| {
        let (number, item) = match item.strip_prefix("id=").and_then(|rest| rest.split_once(' ')) {
            Some((number, item)) => (format!("id: {number}\n"), item),
            None => (String::new(), *item),
        };
        let member = match item.strip_prefix('!') {
            Some(code) => format!(r#""error":{{"code":{code},"message":"no"}}"#),
            None => format!(r#""result":{item}"#),
        };
        format!("{number}data: {{\"jsonrpc\":\"2.0\",\"id\":{id},{member}}}\n\n")
    };
    let body: String = results.iter().map(frame).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn answer(State(script): State<Script>, _: HeaderMap, body: String) -> Response {
    let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    let json = [(header::CONTENT_TYPE, "application/json")];
    if body.contains("\"SendStreamingMessage\"") {
        script.calls.sends.fetch_add(1, Ordering::Relaxed);
        events(&id, script.on_send)
    } else if body.contains("\"SubscribeToTask\"") {
        script.calls.subscriptions.fetch_add(1, Ordering::Relaxed);
        match script.on_subscribe {
            Ok(results) => events(&id, results),
            Err(code) => {
                let error =
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#);
                (json, error).into_response()
            }
        }
    } else {
        script.calls.gets.fetch_add(1, Ordering::Relaxed);
        (json, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, script.on_get)).into_response()
    }
}

const GOT: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},
    "artifacts":[{"artifactId":"a","parts":[{"text":"missed"}]}]}"#;

/// An agent without numbered events closes its stream too early.
#[tokio::test]
async fn p09_what_was_missed_is_in_the_task_at_the_end() {
    for (name, on_subscribe, events_after, gets) in [
        // It begins with the task, as 1.0 asks: nothing can be missing.
        (
            "task first",
            Ok(&[
                r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"a","parts":[{"text":"missed"}]}]}}"#,
                DONE,
            ][..]),
            2,
            0,
        ),
        // Only what follows: the task is read at the end.
        ("live only", Ok(&[DONE][..]), 2, 1),
        // No subscription, or the task has ended: the task is read.
        ("refused", Err(-32004), 1, 1),
        ("not found", Err(-32001), 1, 1),
        // The Go SDK opens the stream first.
        ("refused in an event", Ok(&["!-32004"]), 1, 1),
    ] {
        let calls = Arc::new(Calls::default());
        let script = Script { calls: Arc::clone(&calls), on_send: &[TASK], on_subscribe, on_get: GOT };
        let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
        let client = scripted_client(quick(), &url);
        let mut stream = client.stream("go").await.unwrap();
        next(&mut stream).await.unwrap();
        let after = rest(&mut stream).await;
        assert_eq!(after.len(), events_after, "{name}: {after:?}");
        assert_eq!(texts(stream.task().unwrap()), ["missed"], "{name}");
        assert_eq!(stream.task().unwrap().status.state, TaskState::Completed, "{name}");
        assert_eq!(stream.ending(), Some(Ending::Terminal), "{name}");
        assert_eq!(calls.sends.load(Ordering::Relaxed), 1, "{name}: the message was sent once");
        assert_eq!(calls.gets.load(Ordering::Relaxed), gets, "{name}");
    }
}

/// Every subscription ends at once: the task is read instead.
#[tokio::test]
async fn p09_a_stream_that_stays_cut_is_polled() {
    let calls = Arc::new(Calls::default());
    let script = Script { calls: Arc::clone(&calls), on_send: &[TASK], on_subscribe: Ok(&[]), on_get: GOT };
    let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
    let client = scripted_client(quick(), &url);
    let mut stream = client.stream("go").await.unwrap();
    rest(&mut stream).await;
    assert_eq!(stream.ending(), Some(Ending::Terminal));
    assert_eq!(texts(stream.task().unwrap()), ["missed"]);
    assert_eq!(calls.subscriptions.load(Ordering::Relaxed), 2);
}

/// An agent that does not come back.
#[tokio::test]
async fn p09_a_stream_gives_up_at_last() {
    let (agent, _permits) = stepwise(1);
    let server = serve(with_agent(agent).drain(std::time::Duration::ZERO)).await;
    let wait = std::time::Duration::from_millis(1);
    let reconnects = options(|it: &mut Reconnects| {
        (it.most, it.first_wait, it.longest_wait, it.poll) = (3, wait, wait, wait);
    });
    let client = quick().reconnects(reconnects).connect(&server.url).await.unwrap();
    let mut stream = client.stream("go").await.unwrap();
    next(&mut stream).await.unwrap();
    server.stop().await;
    let error = loop {
        match stream.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.transport().unwrap().kind(), TransportKind::Connect, "{error}");
    assert!(stream.next().await.is_none());
    assert_eq!(stream.ending(), None);
    assert_eq!(stream.reconnects(), 3);
    assert_eq!(client.interface().version(), Generation::V1, "another interface of the same host is no help");
}

/// Nothing came back: whether the agent got the message is not known.
#[tokio::test]
async fn p09_a_message_is_sent_again_only_if_the_user_allows_it() {
    for (uncertain, sends) in [(false, 1), (true, 4)] {
        let calls = Arc::new(Calls::default());
        let script =
            Script { calls: Arc::clone(&calls), on_send: &[], on_subscribe: Err(-32004), on_get: GOT };
        let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
        let wait = std::time::Duration::from_millis(1);
        let reconnects = options(|it: &mut Reconnects| {
            (it.most, it.first_wait, it.longest_wait, it.poll) = (3, wait, wait, wait);
        });
        let retries = options(|it: &mut Retries| it.uncertain = uncertain);
        let builder = quick().retries(retries).reconnects(reconnects);
        let client = scripted_client(builder, &url);
        let mut stream = client.stream("go").await.unwrap();
        let error = stream.next().await.unwrap().unwrap_err();
        assert_eq!(error.transport().unwrap().kind(), TransportKind::Cut, "{error}");
        assert_eq!(calls.sends.load(Ordering::Relaxed), sends, "{uncertain}");
    }
}

/// The bug that both known CLIs had: an error in place of a stream, with status 200.
#[tokio::test]
async fn p09_an_error_in_place_of_a_stream_is_an_error() {
    async fn refuse(body: String) -> Response {
        let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32005,"message":"no"}}}}"#);
        ([(header::CONTENT_TYPE, "application/json")], error).into_response()
    }
    async fn refuse_in_event(body: String) -> Response {
        let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
        let error = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32005,\"message\":\"no\"}}}}\n\n"
        );
        ([(header::CONTENT_TYPE, "text/event-stream")], error).into_response()
    }
    let url = serve_router(Router::new().route("/", post(refuse))).await;
    let error = scripted_client(quick(), &url).stream("go").await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::ContentTypeNotSupported));
    let url = serve_router(Router::new().route("/", post(refuse_in_event))).await;
    let mut stream = scripted_client(quick(), &url).stream("go").await.unwrap();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::ContentTypeNotSupported));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn p09_events_are_bounded() {
    let large = format!("data: {}\n\n", "x".repeat(5000));
    async fn too_much(State(large): State<String>) -> Response {
        ([(header::CONTENT_TYPE, "text/event-stream")], large).into_response()
    }
    let url = serve_router(Router::new().route("/", post(too_much)).with_state(large)).await;
    let limits = options(|it: &mut SizeLimits| it.event = 1000);
    let mut stream = scripted_client(quick().size_limits(limits), &url).stream("go").await.unwrap();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.transport().unwrap().kind(), TransportKind::TooLarge, "{error}");
}

/// Each event is small, but they add up.
#[tokio::test]
async fn p09_what_events_add_up_to_is_bounded() {
    const MORE: &str = r#"{"artifactUpdate":{"taskId":"t","contextId":"c","append":true,"artifact":{"artifactId":"a","parts":[{"text":"some text"}]}}}"#;
    let calls = Arc::new(Calls::default());
    let script = Script {
        calls,
        on_send: &[TASK, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE],
        on_subscribe: Err(-32004),
        on_get: GOT,
    };
    let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
    let limits = options(|it: &mut SizeLimits| it.task = 200);
    let mut stream = scripted_client(quick().size_limits(limits), &url).stream("go").await.unwrap();
    let error = loop {
        match stream.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.transport().unwrap().kind(), TransportKind::TooLarge, "{error}");
    assert!(stream.next().await.is_none());
}

/// What the agent sent, and what this library does not know of it.
#[tokio::test]
async fn p09_events_have_the_json_that_came() {
    const ODD: &str = r#"{"statusUpdate":{"taskId":"t","contextId":"c","x":1.0,"status":{"state":"TASK_STATE_DREAMING"}},"y":[ ]}"#;
    let calls = Arc::new(Calls::default());
    let script = Script { calls, on_send: &[TASK, ODD], on_subscribe: Err(-32004), on_get: GOT };
    let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
    let mut stream = scripted_client(quick(), &url).stream("go").await.unwrap();
    let shown: Vec<String> = rest(&mut stream).await.into_iter().map(|event| event.json).collect();
    assert_eq!(shown, [TASK, ODD, &format!("{{\"task\":{GOT}}}")]);
}

const ONE: &str = r#"id=2 {"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"one","name":"one","parts":[{"text":"one"}]}}}"#;
const TWO: &str = r#"id=3 {"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"two","name":"two","parts":[{"text":"two"}]}}}"#;
const FIRST: &str = r#"id=1 {"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
const ENDED: &str =
    r#"id=4 {"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
const LATER: &str =
    r#"id=9 {"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
const WHOLE: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},
    "artifacts":[{"artifactId":"one","name":"one","parts":[{"text":"one"}]},{"artifactId":"two","name":"two","parts":[{"text":"two"}]}]}"#;

/// Agents that number their events, and do something else with `Last-Event-ID` than to resume.
#[tokio::test]
async fn p09_events_come_once_and_none_is_lost_whatever_the_agent_resumes() {
    for (name, on_subscribe, artifacts, gets) in [
        ("resumes", &[TWO, ENDED][..], &["one", "two"][..], 0),
        // Everything again: what was shown is not shown twice.
        ("begins again", &[FIRST, ONE, TWO, ENDED], &["one", "two"], 1),
        // Only what happens from now on: the task is read at the end.
        ("goes on later", &[LATER], &["one"], 1),
    ] {
        let calls = Arc::new(Calls::default());
        let script = Script {
            calls: Arc::clone(&calls),
            on_send: &[FIRST, ONE],
            on_subscribe: Ok(on_subscribe),
            on_get: WHOLE,
        };
        let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
        let client = scripted_client(quick(), &url);
        let mut stream = client.stream("go").await.unwrap();
        let seen: Vec<_> = rest(&mut stream).await.iter().filter_map(artifact).collect();
        assert_eq!(seen, artifacts, "{name}");
        assert_eq!(texts(stream.task().unwrap()), ["one", "two"], "{name}");
        assert_eq!(stream.ending(), Some(Ending::Terminal), "{name}");
        assert_eq!(calls.gets.load(Ordering::Relaxed), gets, "{name}");
    }
}

/// One connection as it is, for programs that watch the agent itself.
#[tokio::test]
async fn p09_a_raw_stream_leaves_nothing_out() {
    let script = Script {
        calls: Arc::default(),
        on_send: &[FIRST, ONE, ONE, ENDED, ENDED],
        on_subscribe: Err(-32004),
        on_get: WHOLE,
    };
    let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
    let client = scripted_client(quick(), &url);
    let send = SendMessage::new(baton_client::message(vec![Part::text("go")]));
    let mut stream = client.stream_raw(Call::SendStreamingMessage(send.clone()), None).await.unwrap();
    let mut ids = Vec::new();
    while let Some(event) = stream.next().await.unwrap() {
        ids.push(event.id.unwrap());
    }
    assert_eq!(ids, ["1", "2", "2", "4", "4"]);
    // A call is made in the one way that it has.
    let error = client.stream_raw(Call::SendMessage(send.clone()), None).await.unwrap_err();
    assert!(error.to_string().contains("no stream"), "{error}");
    let error = client.call(Call::SendStreamingMessage(send)).await.unwrap_err();
    assert!(error.to_string().contains("stream"), "{error}");
}

/// The log of the agent may have numbers without an event: nothing was missed, and nothing is shown again.
#[tokio::test]
async fn p09_a_hole_in_the_numbers_is_looked_at_and_not_shown() {
    let calls = Arc::new(Calls::default());
    let script = Script {
        calls: Arc::clone(&calls),
        on_send: &[FIRST, ONE],
        on_subscribe: Ok(&[
            r#"id=7 {"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"two","name":"two","parts":[{"text":"two"}]}}}"#,
            LATER,
        ]),
        on_get: WHOLE,
    };
    let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
    let mut stream = scripted_client(quick(), &url).stream("go").await.unwrap();
    let ids: Vec<_> = rest(&mut stream).await.into_iter().map(|event| event.id).collect();
    assert_eq!(ids, ["1", "2", "7", "9"].map(|id| Some(id.to_owned())));
    assert_eq!(calls.gets.load(Ordering::Relaxed), 1);
}
