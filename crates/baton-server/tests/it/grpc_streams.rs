//! P-03, P-04. Streams over gRPC: their end, resumption by the declared extension, slow and lost readers, shutdown.

use std::time::Duration;

use baton_protocol::domain::{Artifact, ArtifactId, Part};
use baton_protocol::wire::pb::Package;
use baton_server::{AgentError, Connections, Turn};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tonic::Code;

use crate::agents::obedient;
use crate::asking::{Ask, Interface, ask_with, sending};
use crate::faces::{Client, FACES, Face};
use crate::fixtures::{Gate, agent_with, connections};
use crate::frames::{
    self, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
    header_block,
};
use crate::grpc::speaking;
use crate::grpc_client::{Grpc, Messages, PACKAGES, kinds, message, message_of, path, state, told};
use crate::grpc_raw::framed;
use crate::harness::{TEST_TIMEOUT, TestServer, serve, with_agent};
use crate::socket;

const RESUME: &str = "urn:baton:resume:v1";
const SUBSCRIBE: [&str; 2] = ["SubscribeToTask", "TaskSubscription"];

fn subscribe(package: Package) -> &'static str {
    SUBSCRIBE[usize::from(package == Package::V0_3)]
}

async fn next(stream: &mut Messages) -> Value {
    stream.next().await.unwrap().expect("the stream goes on")
}

/// The number that a message carries.
fn number(message: &Value) -> Option<u64> {
    let inner = message.as_object().unwrap().values().next().unwrap();
    inner["metadata"].get(RESUME)?.as_u64()
}

/// Makes a few events, and one more at the gate.
async fn steps(gate: Gate, turn: Turn) -> Result<(), AgentError> {
    turn.progress("one").await?;
    let mut artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("two")]);
    artifact.metadata = baton_protocol::domain::JsonObject::parse(r#"{"mine":1}"#).ok();
    turn.artifact(artifact).await?;
    gate.pass().await;
    turn.progress("three").await
}

#[tokio::test]
async fn p04_a_stream_is_resumed_by_the_extension_that_the_card_declares() {
    let gate = Gate::new();
    let server = serve(speaking(with_agent(agent_with(&gate, steps)))).await;
    let card = server.http.get(format!("{}/.well-known/agent-card.json", server.url)).send().await.unwrap();
    let card: Value = card.json().await.unwrap();
    let declared = &card["capabilities"]["extensions"][0];
    assert_eq!((&declared["uri"], declared.get("required")), (&json!(RESUME), None), "{declared}");
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await.with("x-a2a-extensions", RESUME);
        let params = message(package, "go", true);
        let mut stream = client.stream("SendStreamingMessage", params.clone()).await.unwrap();
        let listed = if package == Package::V1 { "a2a-extensions" } else { "x-a2a-extensions" };
        assert_eq!(stream.metadata.get(listed).unwrap(), RESUME);
        let seen = [next(&mut stream).await, next(&mut stream).await, next(&mut stream).await];
        let numbers: Vec<_> = seen.iter().map(number).collect();
        assert!(numbers.is_sorted() && numbers.iter().all(Option::is_some), "{seen:?}");
        let id = seen[0]["task"]["id"].as_str().unwrap().to_owned();
        drop(stream);

        // From the second event on: what was lost, and what follows.
        // As Python writes it: numbers of metadata are doubles.
        let after = format!("{}.0", numbers[1].unwrap());
        let mut client = client.with("last-event-id", &after);
        let mut again = client.stream(subscribe(package), client.task(&id)).await.unwrap();
        assert_eq!(next(&mut again).await, seen[2]);
        gate.let_pass(1);
        let rest = again.rest().await.unwrap();
        let end = number(rest.last().unwrap()).unwrap();
        assert_eq!(kinds(&rest).last().unwrap(), "completed", "{rest:?}");
        // The numbers are those of the other bindings, and the rest of the metadata is there.
        let artifact = rest.iter().chain(&seen).find_map(|it| it.get("artifactUpdate")).unwrap();
        assert_eq!(artifact["artifact"]["metadata"], json!({"mine": 1}), "{artifact}");
        // The message sent again continues as well.
        let mut resent = client.stream("SendStreamingMessage", params).await.unwrap();
        assert_eq!(resent.metadata.get("a2a-idempotent-replay").unwrap(), "true");
        assert_eq!(next(&mut resent).await, seen[2]);
        // Nothing is left, or it is no number.
        for (after, code) in
            [(end.to_string(), None), ((end + 9).to_string(), Some(3)), ("x".to_owned(), Some(3))]
        {
            client = client.with("last-event-id", &after);
            let refused = client.stream(subscribe(package), client.task(&id)).await.err().unwrap();
            let unsupported = if package == Package::V1 { 9 } else { 12 };
            assert_eq!(refused.code() as i32, code.unwrap_or(unsupported), "{after}: {refused}");
        }
        // Without the extension no event carries a number; last-event-id is understood all the same.
        let mut plain = Grpc::connect(&server, package).await.with("last-event-id", &after);
        let rest = plain.stream("SendStreamingMessage", message(package, "new", true)).await;
        assert_eq!(told(&rest.err().unwrap()).0, Code::NotFound);
        gate.let_pass(1);
        let mut plain = plain.without("last-event-id");
        let all = plain.stream("SendStreamingMessage", message(package, "go", true)).await.unwrap();
        let mut all = all;
        let all = all.rest().await.unwrap();
        assert!(all.iter().all(|message| number(message).is_none()), "{all:?}");
    }
}

/// Number, content and order, after normalisation. (A task of 0.1 is not shown to clients of 0.3 as theirs.)
#[tokio::test]
async fn p04_subscribers_of_all_bindings_see_the_same_events() {
    let gate = Gate::new();
    let server = serve(speaking(with_agent(agent_with(&gate, steps)))).await;
    let id = server.start("go").await["id"].as_str().unwrap().to_owned();
    let mut streams = Vec::new();
    for face in FACES.into_iter().filter(|face| ![Face::V01Rpc, Face::V1Tenant].contains(face)) {
        let client = Client::new(&server, face);
        streams.push((face, client.subscribe(&id, Some(1)).await.unwrap()));
    }
    gate.let_pass(1);
    let mut usual = None;
    for (face, mut stream) in streams {
        let seen = stream.rest().await;
        let (first, last) = (seen.first().unwrap(), seen.last().unwrap());
        assert!(
            first.number < last.number && seen.iter().all(|it| it.number.is_some()),
            "{face:?}: {seen:?}"
        );
        assert!(seen.iter().any(|it| it.shape.to_string().contains("\"mine\":1")), "{face:?}: {seen:?}");
        assert_eq!(seen, *usual.get_or_insert_with(|| seen.clone()), "{face:?}");
    }
}

/// The card does not say that an extension is of one binding. Events of the others have their number as their id.
#[tokio::test]
async fn p02_the_extension_of_grpc_is_active_wherever_it_is_asked_for() {
    let server = serve(speaking(with_agent(obedient))).await;
    for interface in [Interface::V1Rpc, Interface::V1Rest, Interface::V1Grpc] {
        let headers = [("a2a-extensions", RESUME)];
        let answer = ask_with(&server, interface, &headers, &Ask::Send(sending("hello"))).await.unwrap();
        let listed = answer.headers().get("a2a-extensions").map(|value| value.as_bytes().to_vec());
        assert_eq!((answer.status().as_u16(), listed), (200, Some(RESUME.into())), "{interface:?}");
    }
}

#[tokio::test]
async fn s06_a_client_that_goes_away_does_not_stop_its_task() {
    let gate = Gate::new();
    let server = serve(speaking(with_agent(agent_with(&gate, steps)))).await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let params = message(package, "go", true);
        let mut stream = client.stream("SendStreamingMessage", params).await.unwrap();
        let id = next(&mut stream).await["task"]["id"].as_str().unwrap().to_owned();
        drop((stream, client));
        gate.let_pass(1);
        let mut client = Grpc::connect(&server, package).await;
        assert_eq!(client.until(&id, "COMPLETED").await["id"], id);
    }
    // A unary call is given up, and its connection closed.
    let mut client = Grpc::connect(&server, Package::V1).await;
    let giving_up = client.call("SendMessage", message(Package::V1, "again", true));
    assert!(tokio::time::timeout(Duration::from_millis(300), giving_up).await.is_err());
    drop(client);
    gate.let_pass(1);
    let page = server.call("ListTasks", json!({"pageSize": 1})).await.result()["tasks"][0].clone();
    server.eventually(page["id"].as_str().unwrap(), "COMPLETED").await;
}

#[tokio::test]
async fn o02_streams_of_a_stopping_server_end_as_unavailable() {
    let gate = Gate::new();
    let waiting = with_agent(agent_with(&gate, steps)).drain(Duration::from_millis(200));
    let server = serve(speaking(waiting)).await;
    let mut streams = Vec::new();
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let mut stream = client.stream("SendStreamingMessage", message(package, "hold", true)).await.unwrap();
        next(&mut stream).await;
        streams.push((client, stream));
    }
    let stopping = tokio::spawn(server.stop());
    for (_client, mut stream) in streams {
        let ended = stream.rest().await.unwrap_err();
        assert_eq!(told(&ended), (Code::Unavailable, "UNAVAILABLE".to_owned()), "{ended}");
    }
    tokio::time::timeout(TEST_TIMEOUT, stopping).await.expect("it stops").unwrap();
}

#[tokio::test]
async fn p04_a_thousand_quick_events_arrive_whole_and_in_order() {
    async fn quick(turn: Turn) -> Result<(), AgentError> {
        for n in 0..1000 {
            turn.progress(n.to_string()).await?;
        }
        Ok(())
    }
    let server = serve(speaking(with_agent(quick))).await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let mut stream = client.stream("SendStreamingMessage", message(package, "go", true)).await.unwrap();
        let all = stream.rest().await.unwrap();
        assert_eq!(all.len(), 1003);
        let said = if package == Package::V1 { "parts" } else { "content" };
        for (n, event) in all[2..1002].iter().enumerate() {
            assert_eq!(event["statusUpdate"]["status"]["message"][said][0]["text"], n.to_string());
        }
    }
}

#[tokio::test]
async fn p04_a_slow_reader_loses_nothing_and_holds_nobody_up() {
    async fn heavy(turn: Turn) -> Result<(), AgentError> {
        for n in 0..1000 {
            turn.progress(format!("{n} {}", "x".repeat(8 * 1024))).await?;
        }
        turn.text_artifact("large", "y".repeat(200_000)).await
    }
    let server = serve(speaking(with_agent(heavy))).await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let mut slow = client.stream("SendStreamingMessage", message(package, "go", true)).await.unwrap();
        let id = next(&mut slow).await["task"]["id"].as_str().unwrap().to_owned();
        // 8 MB exceed the windows: the task must end although nobody reads.
        server.eventually(&id, "COMPLETED").await;
        let events = slow.rest().await.unwrap();
        assert_eq!(events.len(), 1003);
        let said = if package == Package::V1 { "parts" } else { "content" };
        for (n, event) in events[1..1001].iter().enumerate() {
            let text = &event["statusUpdate"]["status"]["message"][said][0]["text"];
            assert!(text.as_str().unwrap().starts_with(&format!("{n} x")), "{n}");
        }
        let large = &events[1001]["artifactUpdate"]["artifact"]["parts"][0]["text"];
        assert_eq!(large.as_str().unwrap().len(), 200_000);
    }
}

/// A connection whose streams have this window, on which a call was made.
async fn stuck(server: &TestServer, window: u32, method: &str, params: &Value) -> TcpStream {
    const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
    let mut stream = socket::connect(server).await;
    let setting = [&INITIAL_WINDOW_SIZE[..], &window.to_be_bytes()].concat();
    let more = [("content-type", "application/grpc"), ("te", "trailers"), ("a2a-version", "1.0")];
    let head = frame(HEADERS, END_HEADERS, 1, &header_block("POST", &path(Package::V1, method), &more));
    let body = framed(0, &message_of(Package::V1, method, params).unwrap());
    let settings = frame(SETTINGS, 0, 0, &setting);
    let all = [PREFACE, &settings, &frame(WINDOW_UPDATE, 0, 0, &(1u32 << 20).to_be_bytes()), &head].concat();
    stream.write_all(&[all, frame(DATA, END_STREAM, 1, &body)].concat()).await.unwrap();
    loop {
        let came = frames::next(&mut stream).await.expect("an answer");
        if came.kind == HEADERS && came.stream == 1 {
            assert_eq!(came.flags & END_STREAM, 0, "no refusal");
            return stream;
        }
    }
}

#[tokio::test]
async fn s12_a_reader_that_takes_nothing_is_cut_off() {
    let stall = Duration::from_millis(500);
    let server = speaking(with_agent(obedient)).connections(connections(|all| all.reader_stall = stall));
    let server = serve(server).await;
    let task = server.send(&format!("say {}", "x".repeat(200_000))).await;
    let get = ("GetTask", json!({"id": task["id"]}));
    for (window, (method, params)) in [
        (0, get.clone()),
        (70, get.clone()),
        (100_000, get),
        (0, ("SendStreamingMessage", message(Package::V1, "hold", true))),
    ] {
        let mut connection = stuck(&server, window, method, &params).await;
        loop {
            let came = tokio::time::timeout(TEST_TIMEOUT / 2, frames::next(&mut connection)).await;
            let came = came.unwrap_or_else(|_| panic!("kept with a window of {window}: {method}"));
            if came.is_none_or(|came| came.kind == RST_STREAM && came.stream == 1) {
                break;
            }
        }
    }
}

const ROOM: usize = 1024 * 1024;
const LARGE: usize = 700 * 1024;

fn narrow(all: &mut Connections) {
    (all.max_answers_bytes, all.crowded_stall) = (ROOM, Duration::from_secs(600));
    all.room_wait = Duration::from_millis(300);
}

/// Answers of gRPC share the room with those of the other bindings.
#[tokio::test]
async fn s12_answers_that_nobody_reads_take_up_the_room_for_answers() {
    let server = serve(speaking(with_agent(obedient)).connections(connections(narrow))).await;
    let task = server.start(&format!("hold {}", "x".repeat(LARGE))).await;
    let get = json!({"id": task["id"]});
    for (method, params) in [
        ("GetTask", get.clone()),
        ("ListTasks", json!({"historyLength": 5})),
        ("SubscribeToTask", get.clone()),
    ] {
        let unread = stuck(&server, 100, method, &params).await;
        let refused = server.call("GetTask", get.clone()).await;
        assert_eq!((refused.status, refused.error_code()), (503, -32050), "{method}: {}", refused.body);
        for package in PACKAGES {
            let mut client = Grpc::connect(&server, package).await;
            let refused =
                client.call("GetTask", client.task(task["id"].as_str().unwrap())).await.unwrap_err();
            assert_eq!(told(&refused), (Code::Unavailable, "RESOURCE_EXHAUSTED".to_owned()), "{method}");
            assert_eq!(refused.metadata().get("retry-after").unwrap(), "5");
            let retry = crate::grpc_client::details(&refused);
            assert!(retry.iter().any(|detail| detail["retryDelay"] == "5s"), "{retry:?}");
        }
        // Its share is free once it is gone.
        drop(unread);
        let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
        let mut client = Grpc::connect(&server, Package::V1).await;
        loop {
            match client.call("GetTask", get.clone()).await {
                Ok(reply) => break assert_eq!(state(&reply.json), "WORKING"),
                Err(status) => assert_eq!(status.code(), Code::Unavailable),
            }
            assert!(tokio::time::Instant::now() < give_up, "{method}: the room stays taken");
        }
    }
}
