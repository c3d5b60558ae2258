//! S-14: what is repeated stays what it was: an event that fails again and again, and a webhook whose message comes again.

use std::sync::Arc;

use baton_server::store::Store as _;
use baton_server::store::memory::MemoryStore;
use baton_server::{Asked, Server, Turn};
use serde_json::{Value, json};

use crate::harness::{id, message_to, serve, with_agent};
use crate::push::{Got, Receiver, busy, options, with_webhook};

/// With nothing newer, no whole task takes the place of an event.
#[tokio::test]
async fn s14_the_last_event_stays_what_it_is_however_often_it_fails() {
    // Five events are taken, the sixth is the last.
    let receiver = Receiver::start(&[200, 200, 200, 200, 200, 500, 500, 500]).await;
    let server = serve(with_agent(busy).push(options())).await;
    server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
    let got = receiver.wait_for(9).await;
    assert_eq!(got[5].json()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(got[5..].iter().all(|call| same(call) == same(&got[5])), "the same id and bytes");
}

/// A status does not show the artifact that it would leave out.
#[tokio::test]
async fn s14_in_0_1_nothing_takes_the_place_of_an_artifact() {
    let receiver = Receiver::start(&[200, 200, 500, 500, 500]).await;
    let server = serve(with_agent(busy).push(options())).await;
    let said = json!({"role": "user", "parts": [{"type": "text", "text": "go"}]});
    let params = json!({"id": "task-1", "message": said, "pushNotification": {"url": receiver.url}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": params});
    server.post(&[("content-type", "application/json")], body.to_string()).await.result();
    let got = receiver.wait_for_end().await;
    let artifacts: Vec<&Got> = got.iter().filter(|call| call.json()["eventType"] == "artifact").collect();
    assert_eq!(artifacts.len(), 4, "three failures, and then it is taken");
    assert!(artifacts.iter().all(|call| same(call) == same(artifacts[0])));
}

fn same(call: &Got) -> (String, Vec<u8>) {
    (call.header("webhook-id").to_owned(), call.body.to_vec())
}

/// A client that got no answer sends its message again; its receiver may have switched the webhook off meanwhile.
#[tokio::test]
async fn s14_a_message_that_is_repeated_leaves_its_webhook_as_it_is() {
    let agent = async |turn: Turn| {
        let said = turn.ask("which?").await?;
        turn.text_artifact("answer", said.text()).await
    };
    let server = serve(with_agent(agent).push(options())).await;
    for webhook in [json!({}), json!({"id": "mine"})] {
        let receiver = Receiver::start(&[410]).await;
        let mut webhook = webhook;
        webhook["url"] = json!(receiver.url);
        let task = server.send("go").await;
        let mut answer = message_to(&task, "this");
        answer["configuration"] = json!({"taskPushNotificationConfig": webhook});
        server.call("SendMessage", answer.clone()).await.result();
        receiver.wait_for(1).await;
        server.call("SendMessage", answer).await.result();
        // The calls of another task come after, and nothing of the first is among them.
        let other = server.send("go").await;
        let mut answer = message_to(&other, "that");
        answer["configuration"] = json!({"taskPushNotificationConfig": {"url": receiver.url}});
        server.call("SendMessage", answer).await.result();
        let of_first = |call: &&Got| of_task(&call.json(), id(&task));
        assert_eq!(receiver.wait_for_end().await.iter().filter(of_first).count(), 1);
    }
}

/// A reply that is a message has no task, and nothing that a webhook could be told.
#[tokio::test]
async fn s14_the_webhook_of_a_message_that_is_answered_by_a_message_is_ignored() {
    let store = Arc::new(MemoryStore::new());
    let agent = async |asked: Asked| Ok(format!("you said {}", asked.text()));
    let server = serve(Server::agent("talker", "talks", agent).push(options()).store(store.clone())).await;
    let receiver = Receiver::start(&[]).await;
    let asked = with_webhook("go", json!({"url": receiver.url, "id": "mine"}));
    for _ in 0..2 {
        let reply = server.call("SendMessage", asked.clone()).await;
        assert_eq!(reply.result()["message"]["parts"][0]["text"], "you said go", "{}", reply.body);
    }
    assert_eq!(store.open_webhooks(None, 10).await.unwrap(), []);
    assert_eq!((store.task_count().await.unwrap(), receiver.all().len()), (0, 0));
    // It is still checked: what would be refused with a task is refused.
    let refused = with_webhook("go", json!({"url": "http://10.0.0.1/"}));
    assert_eq!(server.call("SendMessage", refused).await.error_code(), -32602);
    server.stop().await;
}

fn of_task(body: &Value, task: &str) -> bool {
    body.to_string().contains(task)
}
