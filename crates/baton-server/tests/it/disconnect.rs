use std::sync::Arc;

use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Turn};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::faults::FaultyStore;
use crate::fixtures::Gate;
use crate::harness::{TestServer, id, message, message_to, serve, state, with_agent};

async fn asks_once(turn: Turn) -> Result<(), AgentError> {
    if turn.is_first() && turn.text() == "ask" {
        turn.ask("which?");
    }
    Ok(())
}

/// Sends a whole request, and disconnects while the store is still writing.
async fn send_and_hang_up(server: &TestServer, store: &FaultyStore, method: &str, params: Value) {
    let (slow, before) = (Gate::new(), store.appends());
    store.slow_appends(Some(&slow));
    hang_up_once(server, method, params, store.appended(before + 1)).await;
    store.slow_appends(None);
    slow.let_pass(100);
}

/// Sends a whole request, disconnects at this moment, and waits until the server must have noticed.
pub(crate) async fn hang_up_once(
    server: &TestServer,
    method: &str,
    params: Value,
    moment: impl Future<Output = ()>,
) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let address = server.url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(body.as_bytes()).await.unwrap();
    moment.await;
    drop(socket);
    // A few round trips give the server time to notice.
    for _ in 0..20 {
        server.call("ListTasks", json!({})).await.result();
    }
}

async fn only_task(server: &TestServer) -> Value {
    server.call("ListTasks", json!({})).await.result()["tasks"][0].clone()
}

#[tokio::test]
async fn s06_a_client_that_hangs_up_during_its_send_does_not_strand_the_task() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(asks_once).store(store.clone())).await;
    send_and_hang_up(&server, &store, "SendMessage", message("go")).await;
    let task = only_task(&server).await;
    server.eventually(id(&task), "COMPLETED").await;
}

#[tokio::test]
async fn s06_nor_during_a_follow_up_or_a_cancel() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(asks_once).store(store.clone())).await;
    let task = server.send("ask").await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    send_and_hang_up(&server, &store, "SendMessage", message_to(&task, "this one")).await;
    server.eventually(id(&task), "COMPLETED").await;

    let task = server.send("ask").await;
    let mut watch = server.stream("SubscribeToTask", json!({"id": id(&task)}), None).await.ok().unwrap();
    assert_eq!(watch.next().await.unwrap().kind(), "task");
    send_and_hang_up(&server, &store, "CancelTask", json!({"id": id(&task)})).await;
    assert_eq!(watch.next().await.unwrap().kind(), "canceled", "subscribers see the end");
}
