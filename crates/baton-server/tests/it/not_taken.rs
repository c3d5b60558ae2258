use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_protocol::domain::{
    ContextId, Event, EventBody, Message, MessageId, Part, Role, Scope, TaskId, TaskState, Timestamp,
};
use baton_server::NOT_TAKEN;
use baton_server::Options;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{MessageRecord, NewRequest, Requested, Store, StoredEvent};
use baton_server::{AgentError, Turn};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use crate::faults::FaultyStore;
use crate::fixtures::{Backend, Gate, agent_with};
use crate::harness::{TEST_TIMEOUT, TestServer, id, message_to, serve, with_agent};
use crate::speakers::{Events, legacy, rpc, with_card};

/// The text of each message in the history, and whether it is marked as not taken.
fn history(task: &Value) -> Vec<(String, bool)> {
    let said = task["history"].as_array().expect("a history");
    let text = |said: &Value| said["parts"][0]["text"].as_str().unwrap().to_owned();
    said.iter().map(|said| (text(said), said["metadata"][NOT_TAKEN] == json!(true))).collect()
}

fn marked(texts: &[(&str, bool)]) -> Vec<(String, bool)> {
    texts.iter().map(|(text, mark)| ((*text).to_owned(), *mark)).collect()
}

/// Ends as its first message says, and never takes another message.
async fn ends(gate: Gate, turn: Turn) -> Result<(), AgentError> {
    match turn.text().as_str() {
        "ask" => {
            drop(turn.ask("which?"));
            return Ok(());
        }
        "silence" | "cancel" => std::future::pending().await,
        _ => gate.pass().await,
    }
    match turn.text().as_str() {
        "complete" => turn.complete().await?,
        "fail" => turn.fail("no").await?,
        "reject" => turn.reject("no").await?,
        "error" => return Err(AgentError::new("broken")),
        "panic" => resume_unwind(Box::new("on purpose")),
        "invalid" => {
            drop(turn.ask("which?"));
            turn.complete().await?;
        }
        _ => {}
    }
    Ok(())
}

/// A task started with this text, and two messages that wait for it. `None` if the task ended before.
async fn with_two_waiting(server: &TestServer, text: &str) -> Option<(Value, [Value; 2])> {
    let task = server.start(text).await;
    let waiting = ["one", "two"].map(|text| {
        let mut params = message_to(&task, text);
        params["configuration"] = json!({"returnImmediately": true});
        params["message"]["metadata"] = json!({"mine": 1.0, NOT_TAKEN: "claimed"});
        params
    });
    for params in &waiting {
        server.call("SendMessage", params.clone()).await.body.get("result")?;
    }
    Some((task, waiting))
}

#[tokio::test]
async fn p02_what_was_acknowledged_is_in_the_history_however_the_task_ends() {
    let ways = [
        ("complete", "COMPLETED"),
        ("fail", "FAILED"),
        ("reject", "REJECTED"),
        ("error", "FAILED"),
        ("panic", "FAILED"),
        ("invalid", "FAILED"),
        ("silence", "FAILED"),
        ("cancel", "CANCELED"),
    ];
    for backend in Backend::each() {
        let gate = Gate::new();
        let mut options = Options::default();
        options.cancel_grace = Duration::from_millis(10);
        let store = backend.open().await;
        let server = serve(with_agent(agent_with(&gate, ends)).store(store).options(options.clone())).await;
        for (text, end) in ways {
            if text == "silence" {
                options.turn_idle = Duration::from_millis(200);
            } else {
                options.turn_idle = Options::default().turn_idle;
            }
            server.server.control().set_options(options.clone());
            let (task, waiting) = loop {
                if let Some(begun) = with_two_waiting(&server, text).await {
                    break begun;
                }
                assert_eq!(text, "silence", "nothing else ends by itself");
            };
            match text {
                "cancel" => drop(server.call("CancelTask", json!({"id": id(&task)})).await),
                "silence" => {}
                _ => gate.let_pass(1),
            }
            let ended = server.eventually(id(&task), end).await;
            let said: Vec<_> = history(&ended).into_iter().filter(|(text, _)| text != "which?").collect();
            assert_eq!(said, marked(&[(text, false), ("one", true), ("two", true)]));
            for (params, at) in waiting.into_iter().zip([1, 2]) {
                let again = server.call("SendMessage", params).await;
                assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
                assert_eq!(again.result()["task"], ended, "a repeat gets the same answer");
                let kept = &ended["history"][at];
                assert!(
                    text == "invalid" || kept["metadata"] == json!({NOT_TAKEN: true, "mine": 1.0}),
                    "{kept}"
                );
            }
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn p04_who_waits_with_a_message_that_is_not_taken_sees_the_mark() {
    let gate = Gate::new();
    let server = serve(with_agent(agent_with(&gate, ends))).await;
    let task = server.start("complete").await;
    let stream = server.stream("SendStreamingMessage", message_to(&task, "streamed"), None);
    let mut stream = stream.await.ok().expect("it is open before the message has its place");
    let late = message_to(&task, "late");
    let (blocking, ()) = tokio::join!(server.call("SendMessage", late), async {
        // Fills the task's queue of 16 requests: when the next one is refused, the two sends above are stored.
        let mut sixteenth = false;
        while !sixteenth {
            let mut params = message_to(&task, "filler");
            params["configuration"] = json!({"returnImmediately": true});
            sixteenth = server.call("SendMessage", params).await.status == 429;
        }
        gate.let_pass(1);
    });
    let ended = server.get(id(&task)).await;
    assert_eq!(blocking.result()["task"], ended);
    assert!(history(&ended).contains(&("late".to_owned(), true)));
    let events = stream.rest().await;
    let last = history(&events[0].result()["task"]).pop();
    assert_eq!(last, Some(("streamed".to_owned(), true)), "the task as of the message");
    assert_eq!(events.last().unwrap().kind(), "completed");
}

/// Headers and method names of a generation.
struct Words {
    headers: &'static [(&'static str, &'static str)],
    send: &'static str,
    stream: &'static str,
    get: &'static str,
    list: Option<&'static str>,
    resubscribe: &'static str,
}

const GENERATIONS: [Words; 3] = [
    Words {
        headers: &[("a2a-version", "1.0")],
        send: "SendMessage",
        stream: "SendStreamingMessage",
        get: "GetTask",
        list: Some("ListTasks"),
        resubscribe: "SubscribeToTask",
    },
    Words {
        headers: &[("a2a-version", "0.3")],
        send: "message/send",
        stream: "message/stream",
        get: "tasks/get",
        list: Some("tasks/list"),
        resubscribe: "tasks/resubscribe",
    },
    Words {
        headers: &[],
        send: "tasks/send",
        stream: "tasks/sendSubscribe",
        get: "tasks/get",
        list: None,
        resubscribe: "tasks/resubscribe",
    },
];

/// The params of a message to a task, in the JSON of a generation.
fn said_to(words: &Words, task: &str, text: &str) -> Value {
    match words.send {
        "SendMessage" => {
            json!({"message": {"messageId": text, "taskId": task, "role": "ROLE_USER", "parts": [{"text": text}]},
                                "configuration": {"returnImmediately": true, "historyLength": 0}})
        }
        "message/send" => {
            json!({"message": {"kind": "message", "messageId": text, "taskId": task, "role": "user",
                                             "parts": [{"kind": "text", "text": text}]},
                                 "configuration": {"blocking": false, "historyLength": 0}})
        }
        _ => {
            json!({"id": task, "historyLength": 0, "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
        }
    }
}

/// The mark in an answer or event: in the metadata of the task or of the status update.
fn mark(result: &Value) -> &Value {
    let inside = ["task", "statusUpdate"].iter().find_map(|member| result.get(*member)).unwrap_or(result);
    &inside["metadata"][NOT_TAKEN]
}

/// Ruling 8: every answer has the mark, even without history, before and after the log is folded.
#[tokio::test]
async fn p02_every_answer_of_every_generation_tells_what_was_not_taken() {
    for words in GENERATIONS {
        for state_history in [false, true] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let gate = Gate::new();
            let builder = with_card(
                |card| card.capabilities.state_transition_history = Some(state_history),
                agent_with(&gate, ends),
            );
            let server = serve(builder.store(Arc::clone(&store))).await;
            let begun = match words.list {
                None => legacy(&server, "tasks/send", said_to(&words, "client-made", "complete")).await.body,
                Some(_) => {
                    let mut params = said_to(&words, "", "complete");
                    params["message"].as_object_mut().unwrap().remove("taskId");
                    rpc(&server, words.headers, words.send, params).await.body
                }
            };
            let begun = begun["result"].get("task").unwrap_or(&begun["result"]);
            let task = id(begun).to_owned();
            for text in ["late", "later"] {
                let sent = rpc(&server, words.headers, words.send, said_to(&words, &task, text)).await;
                assert!(sent.body.get("result").is_some(), "{}", sent.body);
            }
            gate.let_pass(1);
            let get = || rpc(&server, words.headers, words.get, json!({"id": task, "historyLength": 0}));
            let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
            let ended = loop {
                let answer = get().await.result().clone();
                if answer["status"]["state"]
                    .as_str()
                    .is_some_and(|state| state.to_lowercase().ends_with("completed"))
                {
                    break answer;
                }
                assert!(tokio::time::Instant::now() < give_up, "{answer}");
            };
            let listed = mark(&ended).clone();
            let numbers: Vec<_> = listed.as_array().unwrap().iter().map(|entry| &entry["number"]).collect();
            assert_eq!(numbers, [2, 3], "{ended}");
            if words.list.is_some() {
                assert_eq!(
                    (&listed[0]["messageId"], &listed[1]["messageId"]),
                    (&json!("late"), &json!("later"))
                );
            }
            for folded in [false, true] {
                if folded {
                    assert_eq!(
                        store
                            .fold_ended(
                                Timestamp::from_millis(i64::MAX),
                                Timestamp::from_millis(i64::MAX),
                                10
                            )
                            .await,
                        Ok(1)
                    );
                }
                let what = format!("{}, folded: {folded}, states: {state_history}", words.send);
                assert_eq!(mark(get().await.result()), &listed, "get, {what}");
                for history in [0, 1] {
                    let Some(method) = words.list else { continue };
                    let list = rpc(&server, words.headers, method, json!({"historyLength": history})).await;
                    assert_eq!(mark(&list.result()["tasks"][0]), &listed, "list, {what}");
                }
                let again = rpc(&server, words.headers, words.send, said_to(&words, &task, "late")).await;
                assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
                assert_eq!(mark(again.result()), &listed, "repeat, {what}");
                let resumed = [words.headers, &[("last-event-id", "2")]].concat();
                for (method, params, headers) in [
                    (words.resubscribe, json!({"id": task}), resumed.as_slice()),
                    (words.stream, said_to(&words, &task, "late"), words.headers),
                ] {
                    let stream = Events::of(&server, "/", headers, method, params).await;
                    let mut stream =
                        stream.unwrap_or_else(|answer| panic!("{method}, {what}: {}", answer.body));
                    let last = stream.rest().await.pop().expect("an event");
                    assert_eq!(mark(last.result()), &listed, "{method}, {what}: {last:?}");
                }
            }
            server.stop().await;
        }
    }
}

/// Stores a message request right before an append that ends the task, as another caller could.
fn request_before_end(store: &Arc<FaultyStore>, inner: &Arc<dyn Store>, times: usize) -> Arc<AtomicUsize> {
    let (inner, noted) = (Arc::clone(inner), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&noted);
    store.fail(move |_, append| {
        let append = append.filter(|append| append.ends_task())?;
        if count.load(Ordering::SeqCst) < times {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let request = request(&append.task, &format!("late {n}"));
            let scope = Scope::new("default", "", "anonymous");
            let answer =
                inner.request(&scope, &append.task, request).now_or_never().expect("memory does not wait");
            assert!(matches!(answer, Ok(Requested::Noted { .. })), "{answer:?}");
        }
        None
    });
    noted
}

fn request(task: &TaskId, text: &str) -> NewRequest {
    let at = Timestamp::from_millis(1_763_200_000_000);
    let mut message =
        Message::new(MessageId::parse(text).unwrap(), Role::User, vec![Part::text(text.to_owned())]);
    message.task_id = Some(task.clone());
    let record = MessageRecord {
        message_id: message.id.clone(),
        hash: [7; 32],
        task: Some(task.clone()),
        event: None,
        reply: None,
        at,
    };
    let body = EventBody::said(message);
    let context = ContextId::parse("any").unwrap();
    let event = StoredEvent::encode(task, &context, &Event { number: 0, at, body });
    NewRequest { event, message: Some(record), most_pending: 100 }
}

#[tokio::test]
async fn a_message_noted_in_the_last_moment_is_not_lost() {
    for (text, end) in [("complete", "COMPLETED"), ("cancel", "CANCELED"), ("ask", "CANCELED")] {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let store = FaultyStore::over(Arc::clone(&inner));
        let gate = Gate::new();
        let mut options = Options::default();
        options.cancel_grace = Duration::from_millis(10);
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let server = serve(with_agent(agent_with(&gate, ends)).store(shared).options(options)).await;
        let task = server.start(text).await;
        if text == "ask" {
            server.eventually(id(&task), "INPUT_REQUIRED").await;
        }
        // Three times: each of the first three appends lacks a message and conflicts.
        let noted = request_before_end(&store, &inner, 3);
        match text {
            "complete" => gate.let_pass(1),
            _ => drop(server.call("CancelTask", json!({"id": id(&task)})).await),
        }
        let ended = server.eventually(id(&task), end).await;
        assert_eq!(noted.load(Ordering::SeqCst), 3);
        let said: Vec<_> = history(&ended).into_iter().filter(|(text, _)| text != "which?").collect();
        let expected = [(text, false), ("late 0", true), ("late 1", true), ("late 2", true)];
        assert_eq!(said, marked(&expected), "{text}");
        let scope = Scope::new("default", "", "anonymous");
        let task = TaskId::parse(id(&task)).unwrap();
        assert_eq!(inner.requests(&scope, &task).await.unwrap(), []);
        let record = inner.message(&scope, &MessageId::parse("late 2").unwrap(), &[7; 32]).await.unwrap();
        let head = inner.head(&scope, &task).await.unwrap().unwrap();
        assert_eq!(record.unwrap().event, Some(head.version - 1), "right before the end");
        assert!(head.current.state != TaskState::Working);
    }
}

#[tokio::test]
async fn an_end_that_nobody_said_gives_way_to_a_message() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = FaultyStore::over(Arc::clone(&inner));
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("turn", turn.text()).await?;
        Ok(())
    });
    let server = serve(with_agent(agent).store(Arc::clone(&store) as Arc<dyn Store>)).await;
    let task = server.start("first").await;
    request_before_end(&store, &inner, 1);
    gate.let_pass(2);
    let ended = server.eventually(id(&task), "COMPLETED").await;
    assert_eq!(history(&ended), marked(&[("first", false), ("late 0", false)]), "it had a turn of its own");
    assert_eq!(ended["artifacts"].as_array().unwrap().len(), 2);
}
