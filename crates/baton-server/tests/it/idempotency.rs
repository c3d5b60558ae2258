use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::store::Store;
use baton_server::{Agent, AgentError, Asked, Builder, Content, MessageAgent, Server};
use futures_util::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::faults::FaultyStore;
use crate::fixtures::{Backend, Calls, Gate, TestClock, agent_with};
use crate::harness::{
    Answer, TestServer, id, message, message_to, message_with_id, serve, serve_agent, state, with_agent,
};

/// Counts its calls; asks a question for "ask", else waits at the gate and ends.
fn counting(calls: &Calls, gate: &Gate) -> impl Agent + use<> {
    agent_with(&(calls.clone(), gate.clone()), |(calls, gate), turn| async move {
        let _call = calls.enter();
        match turn.text().as_str() {
            "ask" => drop(turn.ask("which?")),
            "quick" => turn.text_artifact("done", turn.text()).await?,
            _ => gate.pass().await,
        }
        Ok(())
    })
}

struct Greeter(Calls);

#[async_trait::async_trait]
impl MessageAgent for Greeter {
    async fn reply(&self, asked: Asked) -> Result<Content, AgentError> {
        let _call = self.0.enter();
        tokio::task::yield_now().await;
        Ok(format!("hello {} {}", asked.text(), self.0.count()).into())
    }
}

fn greeter(calls: &Calls) -> Builder {
    let card = AgentCard::new("greeter", "Greets", "1.0.0");
    Server::builder(card).message_skill(AgentSkill::new("g", "g", "g"), Greeter(calls.clone()))
}

fn at_once(mut params: Value) -> Value {
    params["configuration"] = json!({"returnImmediately": true});
    params
}

async fn twenty(server: &TestServer, params: &Value) -> Vec<Answer> {
    join_all((0..20).map(|_| server.call("SendMessage", params.clone()))).await
}

#[track_caller]
fn one_first_and_replays(answers: &[Answer]) {
    let replays = answers.iter().filter(|answer| answer.header("a2a-idempotent-replay") == Some("true"));
    assert_eq!(replays.count(), answers.len() - 1);
}

async fn total(server: &TestServer) -> u64 {
    server.call("ListTasks", json!({})).await.result()["totalSize"].as_u64().unwrap()
}

#[tokio::test]
async fn twenty_at_once_are_one_task_and_one_call() {
    for backend in Backend::each() {
        let (calls, gate) = (Calls::default(), Gate::new());
        let server = serve(with_agent(counting(&calls, &gate)).store(backend.open().await)).await;
        let params = at_once(message("go"));
        let answers = twenty(&server, &params).await;
        one_first_and_replays(&answers);
        let first = answers[0].result()["task"]["id"].clone();
        assert!(answers.iter().all(|answer| answer.result()["task"]["id"] == first));
        gate.let_pass(1);
        server.eventually(first.as_str().unwrap(), "COMPLETED").await;
        assert_eq!((calls.count(), total(&server).await), (1, 1));
        server.stop().await;
    }
}

#[tokio::test]
async fn blocking_repeats_wait_with_the_first() {
    let (calls, gate) = (Calls::default(), Gate::new());
    let server = serve_agent(counting(&calls, &gate)).await;
    let params = message("go");
    let first = server.call("SendMessage", at_once(params.clone())).await.result()["task"].clone();
    assert_eq!(state(&first), "SUBMITTED");
    let waiting = twenty(&server, &params);
    let opening = async {
        // An immediate repeat answers while the others wait.
        let now = server.call("SendMessage", at_once(params.clone())).await;
        assert_eq!(now.header("a2a-idempotent-replay"), Some("true"));
        assert_eq!(state(&now.result()["task"]), "WORKING");
        gate.let_pass(1);
    };
    let (answers, ()) = tokio::join!(waiting, opening);
    for answer in answers {
        assert_eq!(answer.header("a2a-idempotent-replay"), Some("true"));
        assert_eq!(answer.result()["task"]["id"], first["id"]);
        assert_eq!(state(&answer.result()["task"]), "COMPLETED");
    }
    assert_eq!(calls.count(), 1);
}

/// Ruling 9: messages that differ only in their JSON form, not in meaning, are the same message.
#[tokio::test]
async fn s17_spelling_makes_no_other_message() {
    let server = serve_agent(counting(&Calls::default(), &Gate::new())).await;
    let send = |metadata: &str, data: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"one","role":"ROLE_USER","parts":[{{"text":"quick"}},{{"data":{data}}}],"metadata":{metadata}}}}}}}"#
        );
        server.post(&[("content-type", "application/json"), ("a2a-version", "1.0")], body)
    };
    let first = send(r#"{"b":1,"a":{"d":"é","c":[1.5,100]}}"#, "12345678901234567890").await;
    let id = first.result()["task"]["id"].clone();
    for (metadata, data, same) in [
        (r#"{"b":1,"a":{"d":"é","c":[1.5,100]}}"#, "12345678901234567890", true),
        (r#"{ "a": {"c": [ 15e-1, 1e2 ], "d": "\u00e9"}, "b": 1.0 }"#, " 12345678901234567890", true),
        (r#"{"b":1,"a":{"d":"é","c":[1.5,100]}}"#, "12345678901234567891", false),
        (r#"{"b":1,"a":{"d":"é","c":[100,1.5]}}"#, "12345678901234567890", false),
        (r#"{"b":"1","a":{"d":"é","c":[1.5,100]}}"#, "12345678901234567890", false),
    ] {
        let again = send(metadata, data).await;
        assert_eq!(again.result()["task"]["id"] == id, same, "{metadata} {data}");
        assert_eq!(again.header("a2a-idempotent-replay") == Some("true"), same, "{metadata} {data}");
    }
    // The same in 0.1, where the task's id is the message's.
    let legacy = |metadata: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{{"id":"t","message":{{"role":"user","parts":[{{"type":"text","text":"quick"}}],"metadata":{metadata}}}}}}}"#
        );
        server.post(&[("content-type", "application/json")], body)
    };
    assert_eq!(legacy(r#"{"b":1,"a":2}"#).await.result()["id"], "t");
    crate::speakers::wait_for_state(&server, "t", "completed").await;
    let again = legacy(r#"{"a":2.0,"b":1}"#).await;
    assert_eq!(again.header("a2a-idempotent-replay"), Some("true"), "{}", again.body);
}

/// A message that was stored before hashes had a version is found by a retry after the upgrade, on every backend that keeps
/// its data across an upgrade.
#[tokio::test]
async fn s17_records_of_the_first_version_are_found() {
    for backend in Backend::each() {
        let (calls, store) = (Calls::default(), FaultyStore::over(backend.open().await));
        let builder = with_agent(counting(&calls, &Gate::new())).store(store.clone() as Arc<dyn Store>);
        let server = serve(builder).await;
        for (place, parts) in [
            r#"[{"text":"quick"}]"#,
            r#"[{"text":"quick"},{"data":{"a":1,"b":2}}]"#,
            r#"[{"text":"quick"},{"data":{"b":1.0,"a":2}}]"#,
        ]
        .into_iter()
        .enumerate()
        {
            let message = format!(r#"{{"messageId":"m{place}","role":"ROLE_USER","parts":{parts}}}"#);
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{message}}}}}"#
            );
            let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
            // The first version hashed the message's 1.0 JSON.
            store.record_under(Some(Sha256::digest(&message).into()));
            let first = server.post(&headers, body.clone()).await;
            store.record_under(None);
            let again = server.post(&headers, body).await;
            assert_eq!(again.header("a2a-idempotent-replay"), Some("true"), "{parts}: {}", again.body);
            assert_eq!(again.result()["task"]["id"], first.result()["task"]["id"], "{parts}");
        }
        assert_eq!(calls.count(), 3);
        server.stop().await;
    }
}

#[tokio::test]
async fn another_text_under_the_same_id_is_another_message() {
    let (calls, gate) = (Calls::default(), Gate::new());
    let server = serve_agent(counting(&calls, &gate)).await;
    let first = server.call("SendMessage", message_with_id("same", "quick")).await;
    let mut other = message_with_id("same", "quick");
    other["message"]["metadata"] = json!({"a": 1});
    let second = server.call("SendMessage", other).await;
    assert_ne!(first.result()["task"]["id"], second.result()["task"]["id"]);
    assert_eq!(second.header("a2a-idempotent-replay"), None);
    assert_eq!(calls.count(), 2);
    for params in [message_with_id("same", "quick")] {
        assert_eq!(
            server.call("SendMessage", params).await.result()["task"]["id"],
            first.result()["task"]["id"]
        );
    }
}

#[tokio::test]
async fn repeats_come_before_the_rules_about_states_and_survive_a_restart() {
    for backend in Backend::each() {
        let (calls, gate) = (Calls::default(), Gate::new());
        let open = async || serve(with_agent(counting(&calls, &gate)).store(backend.open().await)).await;
        let server = open().await;
        let question = message("ask");
        let task = server.call("SendMessage", question.clone()).await.result()["task"].clone();
        assert_eq!(state(&task), "INPUT_REQUIRED");
        let answer = message_to(&task, "quick");
        let ended = server.call("SendMessage", answer.clone()).await.result()["task"].clone();
        assert_eq!(state(&ended), "COMPLETED");
        let refused = server.call("SendMessage", message_to(&task, "quick")).await;
        assert_eq!(refused.error_code(), -32004, "a new message to an ended task");
        let repeated = async |server: &TestServer| {
            for params in [&question, &answer] {
                let again = server.call("SendMessage", params.clone()).await;
                assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
                assert_eq!(again.result()["task"], ended);
            }
            assert_eq!((calls.count(), total(server).await), (2, 1));
        };
        repeated(&server).await;
        server.stop().await;
        let server = open().await;
        repeated(&server).await;
        server.stop().await;
    }
}

#[tokio::test]
async fn twenty_follow_ups_at_once_are_one_turn() {
    for backend in Backend::each() {
        let (calls, gate) = (Calls::default(), Gate::new());
        let server = serve(with_agent(counting(&calls, &gate)).store(backend.open().await)).await;
        for round in 1..=10 {
            let task = server.send("ask").await;
            let answers = twenty(&server, &message_to(&task, "quick")).await;
            one_first_and_replays(&answers);
            for answer in answers {
                assert_eq!(state(&answer.result()["task"]), "COMPLETED");
                assert_eq!(answer.result()["task"]["history"].as_array().unwrap().len(), 3);
            }
            assert_eq!(calls.count(), 2 * round);
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn twenty_at_once_to_a_message_skill_are_one_call() {
    for backend in Backend::each() {
        let calls = Calls::default();
        let server = serve(greeter(&calls).store(backend.open().await)).await;
        for round in 1..=10 {
            let answers = twenty(&server, &message("you")).await;
            assert_eq!(calls.count(), round);
            one_first_and_replays(&answers);
            let first = answers[0].result()["message"].clone();
            assert_eq!(first["parts"], json!([{"text": format!("hello you {round}")}]));
            assert!(answers.iter().all(|answer| answer.result()["message"] == first));
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn a_reply_survives_a_restart() {
    for backend in Backend::each() {
        let calls = Calls::default();
        let server = serve(greeter(&calls).store(backend.open().await)).await;
        let params = message("you");
        let first = server.call("SendMessage", params.clone()).await.result().clone();
        server.stop().await;
        let server = serve(greeter(&calls).store(backend.open().await)).await;
        let again = server.call("SendMessage", params.clone()).await;
        assert_eq!(*again.result(), first);
        assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
        let mut stream = server.stream("SendStreamingMessage", params, None).await.ok().unwrap();
        assert_eq!(stream.rest().await[0].result(), &first);
        assert_eq!(calls.count(), 1);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_record_outlives_its_task_and_says_so() {
    for backend in Backend::each() {
        let (calls, gate, clock) = (Calls::default(), Gate::new(), TestClock::new());
        let builder = with_agent(counting(&calls, &gate)).clock(Arc::clone(&clock) as _);
        let server = serve(builder.store(backend.open().await)).await;
        let params = message("quick");
        let task = server.call("SendMessage", params.clone()).await.result()["task"].clone();
        clock.advance(Duration::from_secs(31 * 24 * 60 * 60));
        assert_eq!(server.server.sweep().await.unwrap().removed, 1);
        let gone = server.call("GetTask", json!({"id": id(&task)})).await;
        assert_eq!(gone.error_code(), -32001);
        for _ in 0..2 {
            let again = server.call("SendMessage", params.clone()).await;
            assert_eq!(again.error_code(), -32001);
            let text = again.body["error"]["message"].as_str().unwrap();
            assert!(text.contains("removed") && text.contains("messageId"), "{text}");
        }
        assert_eq!(calls.count(), 1, "the work is not done twice");
        server.stop().await;
    }
}
