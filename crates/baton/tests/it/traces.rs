use std::time::Instant;

use http::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::collector::{Collector, Span};
use crate::programs::{HANG, LINES, Program, output, shell};
use crate::served::{Served, baton, finished, text, to};

/// The caller's own trace, and the span it calls from.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// The kind of a span for a call to somebody else.
const CLIENT: u64 = 3;

/// Asks in its first turn, hangs in its second, and says in its third which trace it is in.
const PROGRAM: &str = r#"
read -r message
case $BATON_ATTEMPT in
1) echo '{"inputRequired":"and then?"}' ;;
2) : > "$FOLDER/started"; exec sleep 1000 ;;
*) echo "{\"artifact\":{\"name\":\"trace\",\"text\":\"$TRACEPARENT\"}}" ;;
esac"#;

/// From the first send over a second turn, which brings no trace of its own, to the re-run after a `kill -9`.
#[tokio::test]
async fn a_task_is_one_tree_from_send_to_rerun() {
    let collector = Collector::start();
    let program = shell(PROGRAM);
    let server = serve(&program, &collector);
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let first = json!({"message": text("first", "begin")});
    let asking = server.call_with("SendMessage", first, &[("traceparent", &parent)]).await["task"].take();
    assert_eq!(asking["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asking}");
    // A program that still runs would get the answer in its first turn.
    collector.until("the first turn", |spans| of_task(spans, &asking).len() == 2);
    let task = server.start_task(to(&asking, text("second", "go on"))).await;
    until_started(&program, &server, &task).await;
    // What is ended is sent within a moment; the turn under way dies with its process.
    let ended = |spans: &[Span]| of_task(spans, &task).len() == 3;
    collector.until("both sends and the first turn", ended);
    drop(server);

    let server = serve(&program, &collector);
    let done = server.until(&task, "TASK_STATE_COMPLETED").await;
    assert!(server.terminate().success());
    let spans = of_task(&collector.spans(), &task);
    println!("{}", tree(&spans, CALLER, 0));

    let named = |name: &str| spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
    let (sends, turns) = (named("SendMessage"), named("turn"));
    assert_eq!((sends.len(), turns.len(), spans.len()), (2, 2, 4), "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    // One root, below the caller; everything else hangs below it.
    let attempt = |number: i64| {
        let found = turns.iter().find(|turn| turn.attributes["attempt"] == json!(number.to_string()));
        found.unwrap_or_else(|| panic!("no attempt {number}: {turns:#?}"))
    };
    assert_eq!((sends[0].parent.as_str(), sends[0].kind), (CALLER, 2));
    for below in [&sends[1], attempt(1), attempt(3)] {
        assert_eq!(below.parent, sends[0].id, "{below:#?}");
    }
    // The re-run knows which message it is about.
    assert_eq!(attempt(3).links, [(TRACE.to_owned(), sends[1].id.clone())]);
    assert_eq!(attempt(3).attributes["a2a.task.state"], "completed");
    // And so does the program, which hands the trace on.
    assert_eq!(output(&done), format!("00-{TRACE}-{}-01", attempt(3).id));
}

fn serve(program: &Program, collector: &Collector) -> Served {
    let store = format!("sqlite:{}", program.file("tasks.db").display());
    let url = collector.url();
    let flags = [LINES, &["--exec-rerunnable", "--store", &store, "--otlp", &url]].concat();
    Served::of(program.command(&flags).env("OTEL_BSP_SCHEDULE_DELAY", "50"))
}

async fn until_started(program: &Program, server: &Served, task: &Value) {
    let since = Instant::now();
    while !program.file("started").exists() {
        assert!(since.elapsed() < HANG, "the second turn does not start\n{}", server.log());
        // A call takes its time, so that this is no busy loop.
        server.get(task).await;
    }
}

/// Those that started or did its work; whoever looked at it is another matter.
fn of_task(spans: &[Span], task: &Value) -> Vec<Span> {
    let about = |span: &&Span| span.attributes.get("a2a.task.id") == Some(&task["id"]);
    let mut found: Vec<Span> =
        spans.iter().filter(about).filter(|span| span.name != "GetTask").cloned().collect();
    found.sort_by_key(|span| span.start);
    found
}

fn tree(spans: &[Span], parent: &str, depth: usize) -> String {
    let mut lines = String::new();
    for span in spans.iter().filter(|span| span.parent == parent) {
        let attempt = span.attributes.get("attempt").and_then(Value::as_str);
        let attempt = attempt.map(|attempt| format!(" (attempt {attempt})")).unwrap_or_default();
        lines += &format!("{}{}{attempt}  {}\n", "  ".repeat(depth), span.name, span.id);
        lines += &tree(spans, &span.id, depth + 1);
    }
    lines
}

/// Whoever is told of a task by a webhook can go on in its trace.
#[tokio::test]
async fn s14_calls_of_a_webhook_are_part_of_its_tasks_tree() {
    let collector = Collector::start();
    let (hook, mut calls) = receiver().await;
    let mut command =
        baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--otlp", &collector.url()]);
    let server = Served::of(command.env("OTEL_BSP_SCHEDULE_DELAY", "50"));
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let configuration = json!({"taskPushNotificationConfig": {"url": hook}});
    let sent = json!({"message": text("first", "Hello, Baton"), "configuration": configuration});
    let task = server.call_with("SendMessage", sent, &[("traceparent", &parent)]).await["task"].take();
    let mut received = Vec::new();
    loop {
        let (trace, body) = calls.recv().await.unwrap();
        received.push(trace);
        if body.contains("COMPLETED") {
            break;
        }
    }
    assert!(server.terminate().success());
    let spans = of_task(&collector.spans(), &task);
    println!("{}", tree(&spans, CALLER, 0));

    let send = spans.iter().find(|span| span.name == "SendMessage").unwrap();
    let made: Vec<&Span> = spans.iter().filter(|span| span.name == "webhook").collect();
    assert!(made.len() > 2, "{spans:#?}");
    for span in &made {
        assert_eq!((&span.trace[..], &span.parent), (TRACE, &send.id), "{span:#?}");
        let status = &span.attributes["http.response.status_code"];
        assert_eq!((span.kind, status), (CLIENT, &json!("200")), "{span:#?}");
    }
    let expected: Vec<_> = made.iter().map(|span| format!("00-{TRACE}-{}-01", span.id)).collect();
    assert_eq!(received, expected, "each call names its own span");
    assert!(!collector.text().contains(&hook), "its address may hold a secret");
}

/// The address of a webhook, and the `traceparent` and the body of each call.
async fn receiver() -> (String, mpsc::Receiver<(String, String)>) {
    let (sender, calls) = mpsc::channel(64);
    let app = axum::Router::new().fallback(async move |headers: HeaderMap, body: String| {
        let trace = headers.get("traceparent").map_or("none", |value| value.to_str().unwrap());
        sender.send((trace.to_owned(), body)).await.unwrap();
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, calls)
}

/// In a trace of their own where nobody brings one, named and described as OpenTelemetry wants it.
#[tokio::test]
async fn requests_are_described_by_the_conventions() {
    let collector = Collector::start();
    let mut command =
        baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--otlp", &collector.url()]);
    let server = Served::of(command.env("OTEL_BSP_SCHEDULE_DELAY", "50"));
    let task = server.send(text("one", "Hello, Baton")).await;
    let missing = server.ask("GetTask", json!({"id": "nope"})).await;
    assert_eq!(missing["error"]["code"], -32001);
    let streamed = server.send_stream(text("two", "tell me a story")).await;
    assert!(streamed.len() > 2);
    reqwest::get(format!("{}/metrics", server.url)).await.unwrap();
    assert!(server.terminate().success());

    let spans = collector.spans();
    let of = |name: &str| {
        let found = spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
        assert_eq!(found.len(), 1, "{name}: {spans:#?}");
        found[0]
    };
    let send = of("SendMessage");
    assert_eq!((send.service.as_str(), send.kind, send.parent.as_str()), ("Baton demo agent", 2, ""));
    for (name, value) in [
        ("http.request.method", json!("POST")),
        ("http.route", json!("/")),
        ("http.response.status_code", json!("200")),
        ("rpc.system", json!("jsonrpc")),
        ("rpc.method", json!("SendMessage")),
        ("a2a.generation", json!("1.0")),
        ("a2a.task.id", task["id"].clone()),
        ("a2a.context.id", task["contextId"].clone()),
    ] {
        assert_eq!(send.attributes.get(name), Some(&value), "{name}: {send:#?}");
    }
    assert_eq!(of("GetTask").attributes["error.type"], "TASK_NOT_FOUND");
    assert_eq!(of("SendStreamingMessage").attributes["http.response.status_code"], "200");
    let turns: Vec<_> = spans.iter().filter(|span| span.name == "turn").collect();
    assert_eq!(turns.len(), 2);
    assert!(turns.iter().any(|turn| (&turn.trace, &turn.parent) == (&send.trace, &send.id)));
    assert!(!spans.iter().any(|span| span.name == "request"), "a scrape is in no trace: {spans:#?}");
    assert!(!spans.iter().any(|span| span.name == "append"), "not without a log of level debug");
}

/// Whoever collects the spans may be away: no request waits for it, and the log says so.
#[tokio::test]
async fn a_receiver_that_is_away_harms_nobody() {
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", away.local_addr().unwrap());
    drop(away);
    let mut command = baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--otlp", &url]);
    let server = Served::of(command.env("OTEL_BSP_SCHEDULE_DELAY", "20"));
    let since = Instant::now();
    while !server.log().contains("traces could not be sent") {
        assert!(since.elapsed() < HANG, "{}", server.log());
        let task = server.send(text(&format!("m{:?}", since.elapsed()), "Hello, Baton")).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    }
    assert!(server.terminate().success());
}

#[test]
fn a_receiver_that_cannot_be_used_is_refused_at_the_start() {
    for (url, reason) in [
        ("https://collector.example", "plain HTTP only"),
        ("http://user:canary@127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("collector.example:4318", "an address such as"),
    ] {
        let (code, said) = finished(&mut baton(&["serve", "--store", "memory:", "--otlp", url]));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("--otlp") && said.contains(reason), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
}
