//! S-08, S-09, S-17, S-18. `tasks/send` as the guide describes it: the client chooses the task's id, the answer comes as soon
//! as the task is stored, and the same id means the same task.

use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::AgentSkill;
use baton_server::Limits;
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Asked, Turn};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agents::obedient;
use crate::callers::ByHeader;
use crate::faults::FaultyStore;
use crate::fixtures::{Calls, Gate, agent_with};
use crate::harness::{Answer, TEST_TIMEOUT, TestServer, serve, serve_agent, with_agent};
use crate::speakers::{legacy, read, request, rpc, task, wait_for_state};

async fn send(server: &TestServer, id: &str, text: &str) -> Answer {
    legacy(server, "tasks/send", task(id, text)).await
}

#[track_caller]
fn state(answer: &Answer) -> &str {
    answer.result()["status"]["state"].as_str().expect("a task has a state")
}

#[track_caller]
fn refused(answer: &Answer, code: i64, reason: &str) {
    assert_eq!((answer.status, answer.error_code()), (200, code), "{}", answer.body);
    assert_eq!(answer.body["error"]["data"], json!({"reason": reason}));
    assert_eq!(answer.body["id"], "r");
}

/// The guide's smoke test, byte for byte, twice: the second answer is the same task, in whatever state it is by then.
#[tokio::test]
async fn s18_the_printed_line_works_twice_in_a_row() {
    const PRINTED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"task-1","sessionId":"session-1","message":{"role":"user","parts":[{"type":"text","text":"Analyze my dataset"}]}}}"#;
    let calls = Calls::default();
    let server = serve_agent(agent_with(&calls, |calls, turn| async move {
        let _under_way = calls.enter();
        turn.text_artifact("analysis", "42").await?;
        Ok(())
    }))
    .await;
    let post = || async {
        let headers = [("content-type", "application/json")];
        read(request(&server, http::Method::POST, "/", &headers, PRINTED).await).await
    };
    for _ in 0..2 {
        let answer = post().await;
        assert_eq!(
            (answer.status, &answer.body["jsonrpc"], &answer.body["id"]),
            (200, &json!("2.0"), &json!(1))
        );
        let shown = answer.result();
        assert_eq!((&shown["id"], &shown["sessionId"]), (&json!("task-1"), &json!("session-1")));
        assert!(["submitted", "working", "completed"].contains(&state(&answer)), "{shown}");
    }
    wait_for_state(&server, "task-1", "completed").await;
    let ended = post().await;
    assert_eq!(state(&ended), "completed");
    assert_eq!(ended.result()["artifacts"][0]["parts"], json!([{"type": "text", "text": "42"}]));
    assert_eq!(calls.count(), 1, "the agent was asked once");
}

/// The same request from several clients at the same time makes one task.
#[tokio::test]
async fn s17_the_same_send_at_the_same_time_is_one_task() {
    let calls = Calls::default();
    let server = serve_agent(agent_with(&calls, |calls, turn| async move {
        let _under_way = calls.enter();
        turn.text_artifact("echo", turn.text()).await?;
        Ok(())
    }))
    .await;
    let answers = futures_util::future::join_all((0..12).map(|_| send(&server, "t", "hello"))).await;
    assert!(answers.iter().all(|answer| answer.result()["id"] == "t"));
    wait_for_state(&server, "t", "completed").await;
    assert_eq!(calls.count(), 1);
}

/// The second copy arrives while the first is being stored: the task has a run but cannot be read yet.
#[tokio::test]
async fn s17_a_send_waits_for_the_first_of_its_id_to_be_stored() {
    for text in ["hello", "another"] {
        let (store, gate, go) = (FaultyStore::over(Arc::new(MemoryStore::new())), Gate::new(), Gate::new());
        let heads = watch::Sender::new(0);
        let seen = heads.clone();
        store.fail(move |call, _| {
            seen.send_modify(|heads| *heads += usize::from(call == "head"));
            None
        });
        store.hold_appends(&gate);
        let builder = with_agent(agent_with(&go, |go, turn| async move {
            go.pass().await;
            turn.text_artifact("echo", turn.text()).await?;
            Ok(())
        }));
        let server = serve(builder.store(Arc::clone(&store) as Arc<dyn Store>)).await;
        let looked = |count: usize| {
            let mut heads = heads.subscribe();
            async move {
                tokio::time::timeout(TEST_TIMEOUT, heads.wait_for(|heads| *heads >= count))
                    .await
                    .unwrap()
                    .unwrap();
            }
        };
        let first = async {
            let answer = send(&server, "t", "hello").await;
            assert_eq!(answer.result()["id"], "t", "{}", answer.body);
        };
        let second = async {
            looked(1).await;
            let answer = send(&server, "t", text).await;
            assert_eq!(answer.result()["id"], "t", "{text}: {}", answer.body);
        };
        let release = async {
            looked(2).await;
            // Gives the second send time for all store calls that do not wait for the first's append.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            gate.let_pass(1000);
        };
        tokio::join!(first, second, release);
        go.let_pass(1000);
        wait_for_state(&server, "t", "completed").await;
        assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 1);
    }
}

#[tokio::test]
async fn s09_a_send_answers_at_once_and_the_skill_goes_on() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("echo", turn.text()).await?;
        Ok(())
    }))
    .await;
    let answer = send(&server, "mine", "hello").await;
    assert!(["submitted", "working"].contains(&state(&answer)), "{}", answer.body);
    let shown = answer.result();
    assert_eq!((&shown["id"], &shown["sessionId"]), (&json!("mine"), &json!("session-1")));
    // Members that 0.1 does not have are left out.
    for newer in ["kind", "contextId"] {
        assert_eq!(shown.get(newer), None);
    }
    gate.let_pass(1);
    let ended = wait_for_state(&server, "mine", "completed").await;
    assert_eq!(ended["artifacts"][0]["parts"][0], json!({"type": "text", "text": "hello"}));
}

#[tokio::test]
async fn s08_the_same_id_resumes_a_task_that_waits_for_input() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        match turn.attempt() {
            1 => drop(turn.ask("Which colour?")),
            2 => {
                gate.pass().await;
                drop(turn.ask("Sure?"));
            }
            _ => turn.text_artifact("order", turn.text()).await?,
        }
        Ok(())
    }))
    .await;
    send(&server, "shirt", "yes").await;
    let asked = wait_for_state(&server, "shirt", "input-required").await;
    let question = &asked["status"]["message"];
    assert_eq!(*question, json!({"role": "agent", "parts": [{"type": "text", "text": "Which colour?"}]}));
    // Messages have no ids in 0.1: an answer with the same text as the first message is an answer, not a repeat.
    let answer = send(&server, "shirt", "yes").await;
    assert_eq!(state(&answer), "working", "{}", answer.body);
    gate.let_pass(1);
    let asked = wait_for_state(&server, "shirt", "input-required").await;
    assert_eq!(asked["status"]["message"]["parts"][0]["text"], "Sure?");
    let answer = send(&server, "shirt", "yes").await;
    assert!(["working", "completed"].contains(&state(&answer)), "{}", answer.body);
    let ended = wait_for_state(&server, "shirt", "completed").await;
    assert_eq!(ended["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(ended["sessionId"], "session-1");
}

#[tokio::test]
async fn s08_another_message_to_an_ended_task_is_an_invalid_transition() {
    let server = serve_agent(obedient).await;
    for (id, text, ends) in [("a", "hello", "completed"), ("b", "fail", "failed"), ("c", "reject", "failed")]
    {
        send(&server, id, text).await;
        let before = wait_for_state(&server, id, ends).await;
        refused(&send(&server, id, "more").await, -32002, "UNSUPPORTED_OPERATION");
        assert_eq!(wait_for_state(&server, id, ends).await, before, "nothing has changed");
        assert_eq!(state(&send(&server, id, text).await), ends, "a repeat is no new message");
    }
    send(&server, "d", "hold").await;
    legacy(&server, "tasks/cancel", json!({"id": "d"})).await.result();
    refused(&send(&server, "d", "more").await, -32002, "UNSUPPORTED_OPERATION");
}

#[tokio::test]
async fn s08_the_session_is_kept_or_made() {
    let server = serve_agent(obedient).await;
    let mut named = task("a", "ask");
    named["sessionId"] = json!("my session / 1");
    assert_eq!(legacy(&server, "tasks/send", named.clone()).await.result()["sessionId"], "my session / 1");
    wait_for_state(&server, "a", "input-required").await;
    // The next message need not repeat it, and cannot change it: the task's id decides.
    let mut silent = task("a", "ask");
    silent.as_object_mut().unwrap().remove("sessionId");
    assert_eq!(legacy(&server, "tasks/send", silent).await.result()["sessionId"], "my session / 1");
    wait_for_state(&server, "a", "input-required").await;
    let mut other = task("a", "blue");
    other["sessionId"] = json!("another");
    for method in ["tasks/send", "tasks/send"] {
        let answer = legacy(&server, method, other.clone()).await;
        assert_eq!(answer.result()["sessionId"], "my session / 1", "{}", answer.body);
    }
    let ended = wait_for_state(&server, "a", "completed").await;
    assert_eq!(ended["artifacts"][0]["parts"][0]["text"], "blue");

    let mut nobody = task("b", "hello");
    nobody["sessionId"] = Value::Null;
    let made = legacy(&server, "tasks/send", nobody).await.result()["sessionId"].clone();
    assert!(made.as_str().is_some_and(|made| !made.is_empty()), "{made}");
    assert_eq!(wait_for_state(&server, "b", "completed").await["sessionId"], made);
}

#[tokio::test]
async fn s08_null_stands_for_absent_everywhere() {
    let server = serve_agent(obedient).await;
    let file = |content: Value| json!({"type": "file", "file": content, "text": null, "data": null, "metadata": null});
    for (n, part) in [
        json!({"type": "text", "text": "hi", "file": null, "data": null, "metadata": null}),
        json!({"type": null, "text": "hi"}),
        file(json!({"name": null, "mimeType": null, "bytes": "AAAA", "uri": null})),
        file(json!({"name": null, "mimeType": "image/png", "bytes": null, "uri": "https://a.example/b"})),
        json!({"type": "data", "data": {"a": null}, "text": null, "file": null, "metadata": null}),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("n{n}");
        let params = json!({
            "id": id, "sessionId": null, "historyLength": null, "pushNotification": null, "metadata": null,
            "acceptedOutputModes": null, "message": {"role": "user", "parts": [part], "metadata": null},
        });
        let answer = legacy(&server, "tasks/send", params).await;
        assert_eq!(answer.result()["id"], id, "{part}");
        for method in ["tasks/get", "tasks/resubscribe"] {
            let params = json!({"id": id, "historyLength": null, "metadata": null});
            let answer = legacy(&server, method, params).await;
            // `tasks/resubscribe` refuses an ended task, but because of its state and not because of null members.
            assert_ne!(answer.body["error"]["code"], -32602, "{method} {part}");
        }
    }
}

#[tokio::test]
async fn s17_an_id_is_unique_per_owner_only() {
    let server = serve(with_agent(obedient).authenticator(Arc::new(ByHeader))).await;
    let as_owner = |owner: &'static str, method: &'static str, params: Value| {
        let server = &server;
        async move { rpc(server, &[("x-owner", owner)], method, params).await }
    };
    for (owner, text) in [("ann", "from ann"), ("ben", "from ben")] {
        let answer = as_owner(owner, "tasks/send", task("task-1", text)).await;
        assert!(["submitted", "working"].contains(&state(&answer)), "{owner}: {}", answer.body);
    }
    for (owner, text) in [("ann", "from ann"), ("ben", "from ben")] {
        let shown = loop {
            let shown = as_owner(owner, "tasks/get", json!({"id": "task-1"})).await;
            if state(&shown) == "completed" {
                break shown;
            }
        };
        assert_eq!(shown.result()["artifacts"][0]["parts"][0]["text"], text);
    }
    assert_eq!(as_owner("eve", "tasks/get", json!({"id": "task-1"})).await.error_code(), -32001);
}

#[tokio::test]
async fn s17_a_send_without_a_usable_id_is_refused() {
    let server = serve_agent(obedient).await;
    let long = "x".repeat(5000);
    for id in [Value::Null, json!(""), json!(7), json!({"a": 1}), json!(long)] {
        let mut params = task("a", "hello");
        params["id"] = id.clone();
        refused(&legacy(&server, "tasks/send", params).await, -32602, "INVALID_PARAMS");
    }
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
}

/// 0.1 has no message replies: a reply completes a task, which can be read later.
#[tokio::test]
async fn s08_a_skill_that_answers_with_a_message_is_a_completed_task() {
    async fn parrot(asked: Asked) -> Result<String, AgentError> {
        Ok(format!("{}!", asked.text()))
    }
    let card = baton_protocol::domain::AgentCard::new("test", "An agent for tests", "1.0.0");
    let parrot = baton_server::Server::builder(card).message_skill(AgentSkill::new("p", "p", "p"), parrot);
    let server = serve(parrot).await;
    let first = send(&server, "said", "hello").await;
    assert!(["submitted", "working"].contains(&state(&first)), "{}", first.body);
    wait_for_state(&server, "said", "completed").await;
    let (again, got) =
        (send(&server, "said", "hello").await, legacy(&server, "tasks/get", json!({"id": "said"})).await);
    for answer in [again, got] {
        let shown = answer.result();
        assert_eq!((state(&answer), &shown["id"]), ("completed", &json!("said")));
        assert_eq!(shown["sessionId"], "session-1");
        let said = json!({"role": "agent", "parts": [{"type": "text", "text": "hello!"}]});
        assert_eq!(shown["status"]["message"], said);
    }
}

#[tokio::test]
async fn s09_a_failing_skill_fails_its_task_with_the_reason() {
    async fn fails(turn: Turn) -> Result<(), AgentError> {
        match turn.text().as_str() {
            "panic" => panic!("oh no"),
            text => Err(AgentError::new(format!("cannot do {text}"))),
        }
    }
    let server = serve_agent(fails).await;
    for (id, text, reason) in
        [("a", "sums", "cannot do sums"), ("b", "panic", "The agent stopped unexpectedly")]
    {
        assert!(["submitted", "working"].contains(&state(&send(&server, id, text).await)));
        let failed = wait_for_state(&server, id, "failed").await;
        let said = json!({"role": "agent", "parts": [{"type": "text", "text": reason}]});
        assert_eq!(failed["status"]["message"], said);
    }
}

#[tokio::test]
async fn s08_no_matching_skill_is_a_failed_task_that_says_so() {
    let server =
        serve(with_agent(obedient).choose_skill(|message, _| message.text().contains("sum").then_some(0)))
            .await;
    let answer = send(&server, "a", "sing").await;
    assert_eq!(answer.result()["id"], "a");
    let failed = wait_for_state(&server, "a", "failed").await;
    let said = failed["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("No matching skill"), "{said}");
    send(&server, "b", "sum it up").await;
    wait_for_state(&server, "b", "completed").await;
}

/// `legacy.wait`: for clients that do not poll after the first answer.
#[tokio::test]
async fn s09_a_server_may_be_told_to_wait() {
    let mut limits = Limits::default();
    limits.legacy_wait = Duration::from_secs(10);
    let server = serve(with_agent(obedient).limits(limits)).await;
    for (id, text, expected) in
        [("a", "hello", "completed"), ("b", "ask", "input-required"), ("c", "fail", "failed")]
    {
        assert_eq!(state(&send(&server, id, text).await), expected, "{text}");
    }
    let mut limits = Limits::default();
    limits.legacy_wait = Duration::from_millis(20);
    let server = serve(with_agent(obedient).limits(limits)).await;
    assert_eq!(state(&send(&server, "a", "hold").await), "working", "the wait has an end");
}
