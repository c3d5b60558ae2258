//! Large answers share a memory limit: when it is reached they wait, small ones do not, and readers that stop reading are
//! disconnected.

use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::{AgentError, Asked, Connections, Server, Turn};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::agents::obedient;
use crate::callers::{ByHeader, call_as};
use crate::fixtures::{Backend, connections};
use crate::frames::{
    self, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame, header_block,
};
use crate::harness::{Answer, TEST_TIMEOUT, TestServer, id, message, serve, serve_in_app, with_agent};
use crate::socket;
use crate::speakers::envelope;

const LONG: Duration = Duration::from_secs(600);

/// More than half of the limit: a second one waits until the first is read.
const LARGE: usize = 700 * 1024;
const ROOM: usize = 1024 * 1024;

fn limits(change: impl FnOnce(&mut Connections)) -> Connections {
    connections(|all| {
        (all.max_answers_bytes, all.crowded_stall, all.room_wait) = (ROOM, Duration::from_millis(300), LONG);
        change(all);
    })
}

async fn server(backend: &Backend, change: impl FnOnce(&mut Connections)) -> TestServer {
    serve(with_agent(obedient).connections(limits(change)).store(backend.open().await)).await
}

async fn large_task(server: &TestServer) -> Value {
    server.start(&format!("hold {}", "x".repeat(LARGE))).await
}

/// Makes a request and reads nothing of the answer.
async fn ask(server: &TestServer, owner: &str, method: &str, params: &Value) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(socket::address(server)).await.unwrap();
    let body = envelope(method, params);
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";
    let request = format!("{head}X-Owner: {owner}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Makes a request and reads only the first bytes of the answer.
async fn stuck(server: &TestServer, owner: &str, method: &str, params: &Value) -> TcpStream {
    let mut stream = ask(server, owner, method, params).await;
    let mut first = [0; 12];
    timeout(TEST_TIMEOUT, stream.read_exact(&mut first)).await.expect("an answer").unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// Calls with large answers, and their params.
fn calls(task: &Value) -> [(&'static str, Value); 3] {
    let this = json!({"id": task["id"]});
    [("GetTask", this.clone()), ("ListTasks", json!({"historyLength": 5})), ("SubscribeToTask", this)]
}

async fn whole(server: &TestServer, method: &str, params: Value) -> Value {
    let answer = timeout(TEST_TIMEOUT, server.call(method, params)).await.expect("it gets its turn");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.result().clone()
}

#[tokio::test]
async fn a_reader_that_takes_nothing_makes_way_for_a_large_answer() {
    for backend in Backend::each() {
        let server = server(&backend, |_| {}).await;
        let task = large_task(&server).await;
        for (method, params) in calls(&task) {
            let unread = stuck(&server, "anybody", method, &params).await;
            let shown = whole(&server, "GetTask", json!({"id": task["id"]})).await;
            assert!(shown["history"][0]["parts"][0]["text"].as_str().unwrap().len() > LARGE, "{method}");
            is_cut_off(unread).await;
        }
    }
}

#[tokio::test]
async fn small_answers_never_wait_and_large_ones_are_told_when_there_is_no_room() {
    for backend in Backend::each() {
        let server = server(&backend, |all| {
            (all.crowded_stall, all.room_wait) = (LONG, Duration::from_millis(300));
        })
        .await;
        let task = large_task(&server).await;
        let unread = stuck(&server, "anybody", "GetTask", &json!({"id": task["id"]})).await;
        let refused: Answer = server.call("GetTask", json!({"id": task["id"]})).await;
        assert_eq!((refused.status, refused.error_code()), (503, -32050), "{}", refused.body);
        assert_eq!(refused.header("retry-after"), Some("5"), "{}", refused.body);
        assert!(
            refused.body["error"]["message"].as_str().unwrap().contains("large answers"),
            "{}",
            refused.body
        );
        // Small answers do not wait: a small task, and a list without history.
        let small = whole(&server, "GetTask", json!({"id": server.send("hello").await["id"]})).await;
        assert_eq!(small["status"]["state"], "TASK_STATE_COMPLETED");
        whole(&server, "ListTasks", json!({"historyLength": 0})).await;
        // Closing the connection frees its share of the limit.
        drop(unread);
        let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
        while server.call("GetTask", json!({"id": task["id"]})).await.status != 200 {
            assert!(tokio::time::Instant::now() < give_up, "the limit stays used up");
        }
    }
}

/// A send may have a large answer, too; its message is not lost while the answer waits.
#[tokio::test]
async fn a_send_whose_answer_has_to_wait_is_answered() {
    for backend in Backend::each() {
        let server = server(&backend, |_| {}).await;
        let task = large_task(&server).await;
        for method in ["SendMessage", "SendStreamingMessage"] {
            let unread = stuck(&server, "anybody", "GetTask", &json!({"id": task["id"]})).await;
            let text = format!("fail {}", "y".repeat(LARGE));
            let ended = match method {
                "SendMessage" => whole(&server, method, message(&text)).await["task"].clone(),
                _ => {
                    let mut events = server.stream(method, message(&text), None).await.ok().unwrap();
                    let task = timeout(TEST_TIMEOUT, events.next())
                        .await
                        .expect("its turn")
                        .unwrap()
                        .result()
                        .clone();
                    events.rest().await;
                    task["task"].clone()
                }
            };
            assert_eq!(ended["history"][0]["parts"][0]["text"], text);
            server.eventually(id(&ended), "FAILED").await;
            drop(unread);
        }
    }
}

/// Checks that the connection is closed before the whole answer was sent.
async fn is_cut_off(mut unread: TcpStream) {
    let mut got = Vec::new();
    let _ = timeout(TEST_TIMEOUT, unread.read_to_end(&mut got)).await.expect("it is cut off");
    assert!(got.len() < LARGE, "{}", got.len());
}

#[tokio::test]
async fn the_reply_of_a_message_skill_has_its_room_too() {
    let echo = async |asked: Asked| Ok::<_, AgentError>(asked.text().to_owned());
    let card = AgentCard::new("test", "An agent for tests", "1.0.0");
    let builder = Server::builder(card).message_skill(AgentSkill::new("m", "m", "m"), echo);
    let server = serve(builder.connections(limits(|_| {}))).await;
    // After a first request the listener has set its socket buffer sizes.
    whole(&server, "SendMessage", message("hello")).await;
    let text = "x".repeat(LARGE);
    for method in ["SendMessage", "SendStreamingMessage"] {
        let unread = stuck(&server, "anybody", method, &message(&text)).await;
        let reply = whole(&server, "SendMessage", message(&text)).await;
        assert_eq!(reply["message"]["parts"][0]["text"], text, "after {method}");
        is_cut_off(unread).await;
    }
    let unread = stuck(&server, "anybody", "SendMessage", &message(&text)).await;
    let mut events = server.stream("SendStreamingMessage", message(&text), None).await.ok().unwrap();
    let reply = timeout(TEST_TIMEOUT, events.next()).await.expect("its turn").unwrap();
    assert_eq!(reply.result()["message"]["parts"][0]["text"], text);
    is_cut_off(unread).await;
}

#[tokio::test]
async fn an_agent_within_an_application_has_the_room_of_its_listener() {
    let server = serve_in_app(with_agent(obedient).connections(limits(|_| {}))).await;
    let task = large_task(&server).await;
    let unread = stuck(&server, "anybody", "GetTask", &json!({"id": task["id"]})).await;
    whole(&server, "GetTask", json!({"id": task["id"]})).await;
    is_cut_off(unread).await;
}

/// In HTTP/2 the unread stream is reset, not the connection.
#[tokio::test]
async fn a_stream_of_http2_that_takes_nothing_makes_way_and_its_connection_goes_on() {
    const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];
    let [_, backend] = Backend::each();
    let server = server(&backend, |_| {}).await;
    let task = large_task(&server).await;
    let mut connection = socket::connect(&server).await;
    connection.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &NO_WINDOW)].concat()).await.unwrap();
    let more = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let ask = |stream| {
        let body = envelope("GetTask", &json!({"id": task["id"]}));
        let head = frame(HEADERS, END_HEADERS, stream, &header_block("POST", "/", &more));
        [head, frame(DATA, END_STREAM, stream, body.as_bytes())].concat()
    };
    // The first answer takes the limit; the second and another client's wait.
    connection.write_all(&ask(1)).await.unwrap();
    while frames::next(&mut connection).await.expect("an answer").kind != HEADERS {}
    connection.write_all(&ask(3)).await.unwrap();
    whole(&server, "GetTask", json!({"id": task["id"]})).await;
    let (mut reset, mut answered) = (false, false);
    while !(reset && answered) {
        let came = frames::next(&mut connection).await.expect("the connection goes on");
        reset |= came.kind == RST_STREAM && came.stream == 1;
        answered |= came.kind == HEADERS && came.stream == 3;
    }
}

/// The task is small, but the agent's first event is large: both may be sent in one write.
#[tokio::test]
async fn a_large_event_has_its_room_beside_the_task_that_comes_first() {
    let talkative = async |turn: Turn| {
        turn.text_artifact("much", "x".repeat(LARGE)).await?;
        turn.cancellation().cancelled().await;
        Ok::<_, AgentError>(())
    };
    let server = serve(with_agent(talkative).connections(limits(|_| {}))).await;
    let task = server.start("go on").await;
    for _ in 0..3 {
        let unread = stuck(&server, "anybody", "SendStreamingMessage", &message("go on")).await;
        let shown = whole(&server, "GetTask", json!({"id": task["id"]})).await;
        assert_eq!(shown["artifacts"][0]["parts"][0]["text"].as_str().map(str::len), Some(LARGE));
        is_cut_off(unread).await;
    }
}

/// A connection may have 512 KiB of unread small answers. The next one waits until one of them is read or reset.
#[tokio::test]
async fn small_answers_of_one_http2_connection_have_a_room_of_their_own() {
    const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];
    const STREAMS: u32 = 10;
    const ROOM_FOR: usize = 8;
    for backend in Backend::each() {
        let server = server(&backend, |_| {}).await;
        let task = server.start(&format!("hold {}", "x".repeat(60_000))).await;
        let mut connection = socket::connect(&server).await;
        connection.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &NO_WINDOW)].concat()).await.unwrap();
        let more = [("content-type", "application/json"), ("a2a-version", "1.0")];
        for stream in (0..STREAMS).map(|n| 2 * n + 1) {
            let body = envelope("GetTask", &json!({"id": task["id"]}));
            let head = frame(HEADERS, END_HEADERS, stream, &header_block("POST", "/", &more));
            let ask = [head, frame(DATA, END_STREAM, stream, body.as_bytes())].concat();
            connection.write_all(&ask).await.unwrap();
        }
        let (mut answered, mut cut) = (0, 0);
        while answered < STREAMS as usize {
            let came = frames::next(&mut connection).await.expect("the connection goes on");
            answered += usize::from(came.kind == HEADERS);
            cut += usize::from(came.kind == RST_STREAM);
            assert!(answered - cut <= ROOM_FOR, "{answered} answers, of which {cut} were cut off");
        }
    }
}

/// Nobody is cut off here, and nobody is told that there is no room: who waits for the greedy owner's readers, waits for ever.
#[tokio::test]
async fn s12_answers_that_one_owner_does_not_read_cost_another_nothing() {
    for backend in Backend::each() {
        let roomy = limits(|all| (all.max_answers_bytes, all.crowded_stall) = (4 * ROOM, LONG));
        let builder = with_agent(obedient).authenticator(Arc::new(ByHeader)).connections(roomy);
        let server = serve(builder.store(backend.open().await)).await;
        let send = async |owner: &str| {
            let text = format!("hold {}", "x".repeat(LARGE));
            let mut params = message(&text);
            params["configuration"] = json!({"returnImmediately": true, "historyLength": 0});
            call_as(&server, owner, "SendMessage", params).await.result()["task"].clone()
        };
        let (greedy, calm) = (send("greedy").await, send("calm").await);
        let get = json!({"id": greedy["id"]});
        // Two answers are half of the room; the others wait.
        let mut unread = vec![
            stuck(&server, "greedy", "GetTask", &get).await,
            stuck(&server, "greedy", "GetTask", &get).await,
        ];
        for (method, params) in calls(&greedy).into_iter().cycle().take(12) {
            unread.push(ask(&server, "greedy", method, &params).await);
        }
        for _ in 0..10 {
            for (method, params) in calls(&calm).into_iter().take(2) {
                let answer = timeout(TEST_TIMEOUT, call_as(&server, "calm", method, params)).await;
                let answer = answer.expect("it does not wait for another's readers");
                assert_eq!(answer.status, 200, "{method}: {}", answer.body);
            }
        }
    }
}
