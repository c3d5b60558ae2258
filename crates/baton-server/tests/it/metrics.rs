use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_protocol::error::TABLE;
use baton_protocol::operation::FACTS;
use baton_server::store::StoreError;
use baton_server::store::memory::MemoryStore;
use baton_server::{MetricsAccess, Mount, Server};
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::agents::obedient;
use crate::faults::FaultyStore;
use crate::fixtures::Backend;
use crate::harness::{
    TEST_TIMEOUT, TestServer, id, message, message_with_id, serve, serve_agent, state, with_agent,
};
use crate::socket;

/// Samples by name and labels, as in the text format.
struct Numbers(BTreeMap<String, f64>);

impl Numbers {
    async fn of(server: &TestServer) -> Self {
        Self::read(&server.server.metrics().await)
    }

    fn read(text: &str) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
        };
        Numbers(samples.map(sample).collect())
    }

    fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_else(|| panic!("no {name} in {:#?}", self.0.keys()))
    }

    fn requests(&self, binding: &str, generation: &str, operation: &str, outcome: &str) -> f64 {
        let name = format!(
            "baton_requests_total{{agent=\"default\",binding=\"{binding}\",generation=\"{generation}\",\
             operation=\"{operation}\",outcome=\"{outcome}\"}}"
        );
        self.0.get(&name).copied().unwrap_or_default()
    }
}

/// Polls until the numbers are as wanted.
async fn eventually(server: &TestServer, wanted: impl Fn(&Numbers) -> bool) -> Numbers {
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    loop {
        let numbers = Numbers::of(server).await;
        if wanted(&numbers) {
            return numbers;
        }
        assert!(tokio::time::Instant::now() < give_up, "{:#?}", numbers.0);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn requests_are_counted_by_what_they_were() {
    let server = serve_agent(obedient).await;
    for _ in 0..3 {
        server.send("hello").await;
    }
    server.call("GetTask", json!({"id": "nope"})).await;
    server.call("NoSuchMethod", json!({})).await;
    let legacy = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send",
        "params": {"id": "t1", "message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}}});
    server.post(&[("content-type", "application/json")], legacy.to_string()).await;
    let older = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message":
        {"messageId": "m03", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hello"}]}}});
    server.post(&[("content-type", "application/json")], older.to_string()).await;
    let listed = server.http.get(format!("{}/tasks", server.url)).header("A2A-Version", "1.0").send();
    assert_eq!(listed.await.unwrap().status(), StatusCode::OK);
    server.http.get(format!("{}/.well-known/agent-card.json", server.url)).send().await.unwrap();

    let numbers = Numbers::of(&server).await;
    for (binding, generation, operation, outcome, count) in [
        ("jsonrpc", "1.0", "SendMessage", "ok", 3.0),
        ("jsonrpc", "0.3", "SendMessage", "ok", 1.0),
        ("jsonrpc", "0.1", "SendMessage", "ok", 1.0),
        ("jsonrpc", "1.0", "GetTask", "TASK_NOT_FOUND", 1.0),
        ("jsonrpc", "unknown", "unknown", "METHOD_NOT_FOUND", 1.0),
        ("http_json", "1.0", "ListTasks", "ok", 1.0),
        ("card", "unknown", "AgentCard", "ok", 1.0),
    ] {
        assert_eq!(
            numbers.requests(binding, generation, operation, outcome),
            count,
            "{binding} {generation} {operation} {outcome}: {:#?}",
            numbers.0
        );
    }
    let time =
        |part: &str| format!("baton_request_seconds_{part}{{binding=\"jsonrpc\",operation=\"SendMessage\"}}");
    assert_eq!(numbers.get(&time("count")), 5.0);
    assert!(numbers.get(&time("sum")) > 0.0);
}

#[tokio::test]
async fn tasks_and_turns_are_counted_on_every_store() {
    for backend in Backend::each() {
        let store = backend.open().await;
        let server = serve(with_agent(obedient).store(store)).await;
        server.send("hello").await;
        server.send("fail").await;
        server.send("ask").await;
        let held = server.start("hold").await;
        let numbers = eventually(&server, |numbers| numbers.get("baton_turns_running") == 1.0).await;
        for (state, count) in [("completed", 1.0), ("failed", 1.0), ("input_required", 1.0), ("working", 1.0)]
        {
            assert_eq!(numbers.get(&format!("baton_tasks{{state=\"{state}\"}}")), count, "{state}");
        }
        assert_eq!(numbers.get("baton_tasks_stored"), 4.0);
        assert_eq!(numbers.get("baton_tasks_created_total"), 4.0);
        assert_eq!(numbers.get("baton_turns_queued"), 0.0);

        server.call("CancelTask", json!({"id": id(&held)})).await;
        let numbers = eventually(&server, |numbers| numbers.get("baton_turns_running") == 0.0).await;
        assert_eq!(numbers.get("baton_tasks{state=\"working\"}"), 0.0);
        assert_eq!(numbers.get("baton_tasks{state=\"canceled\"}"), 1.0);
        for (state, count) in [("completed", 1.0), ("failed", 1.0), ("canceled", 1.0), ("rejected", 0.0)] {
            assert_eq!(
                numbers.get(&format!("baton_tasks_ended_total{{state=\"{state}\"}}")),
                count,
                "{state}"
            );
        }
        assert_eq!(numbers.get("baton_turn_seconds_count"), 4.0);
        assert!(numbers.get("baton_store_append_seconds_count") >= 8.0);
        if let Backend::Sqlite(_) = &backend {
            let commits = numbers.get("baton_store_commits_total");
            assert!(commits > 0.0);
            assert_eq!(numbers.get("baton_store_batch_size_count"), commits);
        }
        server.stop().await;

        // Another process starts counting at zero, but the number of tasks comes from the store.
        let again = serve(with_agent(obedient).store(backend.open().await)).await;
        let numbers = Numbers::of(&again).await;
        assert_eq!(numbers.get("baton_tasks{state=\"input_required\"}"), 1.0);
        assert_eq!(numbers.get("baton_tasks_stored"), 4.0);
        assert_eq!(numbers.get("baton_tasks_created_total"), 0.0);
        again.stop().await;
    }
}

#[tokio::test]
async fn streams_are_open_while_somebody_reads() {
    let server = serve_agent(obedient).await;
    let mut stream = server.stream("SendStreamingMessage", message("hello"), None).await.ok().unwrap();
    let shown = stream.rest().await.len();
    let numbers = eventually(&server, |numbers| numbers.get("baton_streams_open") == 0.0).await;
    assert_eq!(numbers.get("baton_stream_events_total"), shown as f64);
    let first = "{binding=\"jsonrpc\",operation=\"SendStreamingMessage\"}";
    assert_eq!(numbers.get(&format!("baton_stream_first_event_seconds_count{first}")), 1.0);
    assert_eq!(numbers.requests("jsonrpc", "1.0", "SendStreamingMessage", "ok"), 1.0);

    let mut held = server.stream("SendStreamingMessage", message("hold"), None).await.ok().unwrap();
    held.next().await.unwrap();
    assert_eq!(Numbers::of(&server).await.get("baton_streams_open"), 1.0);
    drop(held);
    eventually(&server, |numbers| numbers.get("baton_streams_open") == 0.0).await;
}

#[tokio::test]
async fn repeats_and_clients_that_hang_up_are_counted() {
    let server = serve_agent(obedient).await;
    let params = message_with_id("same", "hello");
    server.call("SendMessage", params.clone()).await;
    server.call("SendMessage", params).await;
    assert_eq!(Numbers::of(&server).await.get("baton_idempotent_replays_total"), 1.0);

    let hold = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hold")});
    let mut client = socket::connect(&server).await;
    let headers = b"content-type: application/json\r\na2a-version: 1.0\r\n";
    client.write_all(&socket::request(headers, hold.to_string().as_bytes())).await.unwrap();
    eventually(&server, |numbers| numbers.get("baton_turns_running") == 1.0).await;
    // With a reset: a client that only closes its sending side may still read its answer.
    client.set_zero_linger().unwrap();
    drop(client);
    eventually(&server, |numbers| numbers.requests("jsonrpc", "1.0", "SendMessage", "client_gone") == 1.0)
        .await;
}

#[tokio::test]
async fn failures_of_the_store_are_counted_by_kind() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(obedient).store(Arc::clone(&store))).await;
    store.fail(|call, _| (call == "load").then(|| StoreError::unavailable("as asked")));
    server.call("GetTask", json!({"id": "any"})).await;
    server.call("GetTask", json!({"id": "any"})).await;
    let numbers = Numbers::of(&server).await;
    assert_eq!(numbers.get("baton_store_errors_total{kind=\"unavailable\"}"), 2.0);
    assert_eq!(numbers.get("baton_store_errors_total{kind=\"fatal\"}"), 0.0);
    assert_eq!(numbers.requests("jsonrpc", "1.0", "GetTask", "UNAVAILABLE"), 2.0);
}

#[tokio::test]
async fn every_metric_is_in_the_documentation() {
    let page = include_str!("../../../../docs/observability.md");
    let backend = Backend::Sqlite(tempfile::tempdir().unwrap());
    let server = serve(with_agent(obedient).store(backend.open().await)).await;
    let text = server.server.metrics().await;
    let types: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    assert!(types.len() > 20, "{text}");
    for (name, kind) in types {
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        assert!(page.contains(&format!("`{name}{suffix}`")), "{name}{suffix} is not there");
    }
}

/// Peers cannot create new label values, whatever they send.
#[tokio::test]
async fn labels_come_from_closed_sets() {
    let server = serve_agent(obedient).await;
    for hostile in ["tasks/canary", "v1/canary", "canary/tasks", "canary", "tasks/canary:cancel", "%63anary"]
    {
        let url = format!("{}/{hostile}?canary=canary", server.url);
        for method in ["GET", "POST", "DELETE", "CANARY"] {
            let request = server.http.request(method.parse().unwrap(), &url);
            let request = request.header("A2A-Version", "canary").header("A2A-Extensions", "canary");
            request.header("X-Request-Id", "canary").send().await.unwrap();
        }
    }
    for method in ["canary", "SendMessage", "tasks/canary"] {
        server.call_with(method, json!({"canary": "canary"}), &[("a2a-version", "canary")]).await;
    }
    let text = server.server.metrics().await;
    assert!(!text.contains("canary"), "{text}");

    let operations: BTreeSet<&str> =
        FACTS.iter().map(|facts| facts.v1).chain(["AgentCard", "unknown"]).collect();
    let outcomes: BTreeSet<&str> = TABLE.iter().map(|row| row.reason).chain(["ok", "client_gone"]).collect();
    let mut seen = 0;
    for (labels, known) in [
        ("operation=\"", operations),
        ("outcome=\"", outcomes),
        ("binding=\"", BTreeSet::from(["jsonrpc", "http_json", "card"])),
        ("generation=\"", BTreeSet::from(["unknown", "0.1", "0.3", "1.0"])),
        ("agent=\"", BTreeSet::from(["", "default"])),
    ] {
        for (_, rest) in text.lines().filter_map(|line| line.split_once(labels)) {
            let value = rest.split('"').next().unwrap();
            assert!(known.contains(value), "{labels}{value}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{text}");
}

#[tokio::test]
async fn only_this_machine_reads_them_beside_the_agent() {
    let loopback = serve_agent(obedient).await;
    let scraped = get(&loopback, &[]).await;
    assert_eq!(scraped.status(), StatusCode::OK);
    assert_eq!(scraped.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(scraped.headers()["cache-control"], "no-store");
    let openmetrics = get(&loopback, &[("accept", "application/openmetrics-text; version=1.0.0")]).await;
    assert!(
        openmetrics.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text")
    );
    assert!(openmetrics.text().await.unwrap().ends_with("# EOF\n"));
    for header in ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"] {
        let refused = get(&loopback, &[(header, "for=127.0.0.1")]).await;
        assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{header}");
        assert!(!refused.text().await.unwrap().contains("baton_"));
    }
    let posted = loopback.http.post(format!("{}/metrics", loopback.url)).send().await.unwrap();
    assert_eq!(posted.status(), StatusCode::NOT_FOUND);

    let off = serve(with_agent(obedient).metrics(MetricsAccess::Off)).await;
    assert_eq!(get(&off, &[]).await.status(), StatusCode::NOT_FOUND);
    let open = serve(with_agent(obedient).metrics(MetricsAccess::Everyone)).await;
    assert_eq!(get(&open, &[("X-Forwarded-For", "192.0.2.1")]).await.status(), StatusCode::OK);
    // A scrape does not count as a request.
    assert!(!open.server.metrics().await.contains("baton_requests_total{"));
}

async fn get(server: &TestServer, headers: &[(&str, &str)]) -> reqwest::Response {
    let mut request = server.http.get(format!("{}/metrics", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// In another application the peer address is unknown, so no caller counts as local.
#[tokio::test]
async fn a_router_that_knows_no_peers_shows_nothing() {
    let server = with_agent(obedient).build().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    let router = server.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    assert_eq!(reqwest::get(&url).await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_listener_of_its_own_serves_the_numbers_alone() {
    let server = serve_agent(obedient).await;
    server.send("hello").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = server.server.clone();
    tokio::spawn(async move { serving.serve_metrics_until(listener, std::future::pending()).await });
    let text = reqwest::get(format!("{url}/metrics")).await.unwrap().text().await.unwrap();
    assert!(text.contains("operation=\"SendMessage\",outcome=\"ok\"} 1"), "{text}");
    let elsewhere = reqwest::get(format!("{url}/.well-known/agent-card.json")).await.unwrap();
    assert_eq!(elsewhere.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn agents_are_counted_apart_and_requests_for_none_too() {
    let card = |name: &str| baton_protocol::domain::AgentCard::new(name, "An agent for tests", "1.0.0");
    let skill = || baton_protocol::domain::AgentSkill::new("test", "test", "test");
    let one = Mount::new("one", card("one")).path("/one").task_skill(skill(), obedient);
    let two = Mount::new("two", card("two")).path("/two").task_skill(skill(), obedient);
    let server = serve(Server::host().mount(one).mount(two)).await;
    for path in ["/one", "/one", "/two", "/nobody"] {
        server.http.get(format!("{}{path}/.well-known/agent-card.json", server.url)).send().await.unwrap();
    }
    let numbers = Numbers::of(&server).await;
    let cards = |agent: &str| {
        let rest = "binding=\"card\",generation=\"unknown\",operation=\"AgentCard\",outcome=\"ok\"";
        numbers.get(&format!("baton_requests_total{{agent=\"{agent}\",{rest}}}"))
    };
    assert_eq!((cards("one"), cards("two")), (2.0, 1.0));
    let lost = "baton_requests_total{agent=\"\",binding=\"http_json\",generation=\"unknown\",operation=\"unknown\",\
                outcome=\"METHOD_NOT_FOUND\"}";
    assert_eq!(numbers.get(lost), 1.0);
}

#[tokio::test]
async fn every_answer_carries_the_request_id() {
    let server = serve_agent(obedient).await;
    for (given, kept) in
        [("Order-66.retry_2", true), ("two words", false), ("<b>", false), (&"x".repeat(65), false)]
    {
        let answer = server.call_with("GetTask", json!({"id": "nope"}), &[("x-request-id", given)]).await;
        assert_eq!(answer.header("x-request-id").unwrap() == given, kept, "{given}");
    }
    let mut ids = BTreeSet::new();
    for path in ["/.well-known/agent-card.json", "/metrics", "/nowhere", "/"] {
        let answer = server.http.get(format!("{}{path}", server.url)).send().await.unwrap();
        ids.insert(answer.headers()["x-request-id"].to_str().unwrap().to_owned());
    }
    let stream = server.stream("SendStreamingMessage", message("hello"), None).await.ok().unwrap();
    ids.insert(stream.headers["x-request-id"].to_str().unwrap().to_owned());
    assert_eq!(ids.len(), 5, "{ids:?}");
    assert!(
        ids.iter().all(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())),
        "{ids:?}"
    );
}

/// Without trace recording an agent gets the trace context unchanged, to pass it on.
#[tokio::test]
async fn a_turn_knows_the_trace_its_task_was_sent_in() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let server = serve_agent(async |turn: baton_server::Turn| {
        let place = turn.trace().map(|trace| format!("{} {}", trace.parent(), trace.state().unwrap_or("-")));
        if turn.is_first() {
            drop(turn.ask(place.unwrap_or_default()));
        } else {
            turn.complete_with(place.unwrap_or_default()).await?;
        }
        Ok(())
    });
    let server = server.await;
    let traced = [("traceparent", parent), ("tracestate", "vendor=1")];
    let first = server.call_with("SendMessage", message("go"), &traced).await;
    let asking = &first.result()["task"];
    let said = |task: &serde_json::Value| task["status"]["message"]["parts"][0]["text"].clone();
    assert_eq!(said(asking), format!("{parent} vendor=1"));
    // The second turn has the same trace, whatever the trace of its message.
    let second = server.call("SendMessage", crate::harness::message_to(asking, "on")).await;
    assert_eq!(state(&second.result()["task"]), "COMPLETED");
    assert_eq!(said(&second.result()["task"]), format!("{parent} vendor=1"));
}
