use std::sync::Arc;
use std::time::Duration;

use baton_server::Options;
use baton_server::a2a::{AgentCard, AgentExtension, ErrorKind, Part, TaskState};
use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::asking::{ALL_BINDINGS, Ask, Sending, ask_with, sending};
use crate::fixtures::{Gate, agent_with};
use crate::harness::{TestServer, id, kinds, message_to, serve, serve_agent, state, with_agent};
use crate::speakers::{read, with_card};

async fn answer(server: &TestServer, task: &Value, text: &str) -> Value {
    server.call("SendMessage", message_to(task, text)).await.result()["task"].clone()
}

/// Sends without waiting; the message is stored when this returns.
async fn send_without_waiting(server: &TestServer, task: &Value, text: &str) -> Value {
    let mut params = message_to(task, text);
    params["configuration"] = json!({"returnImmediately": true});
    server.call("SendMessage", params).await.result()["task"].clone()
}

fn history(task: &Value) -> Vec<String> {
    let said = task["history"].as_array().expect("a history");
    said.iter().map(|said| said["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

fn artifacts(task: &Value) -> Vec<String> {
    let all = task["artifacts"].as_array().cloned().unwrap_or_default();
    all.iter().map(|artifact| artifact["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// Asks and ends the turn, twice; each answer starts the next turn.
async fn by_turns(turn: Turn) -> Result<(), AgentError> {
    let asked = turn.task().history.iter().filter(|said| said.text().ends_with('?')).count();
    match asked {
        0 => drop(turn.ask("colour?")),
        1 => drop(turn.ask("size?")),
        _ => turn.text_artifact("order", turn.text()).await?,
    }
    Ok(())
}

/// The same conversation within one turn.
async fn in_one_turn(turn: Turn) -> Result<(), AgentError> {
    turn.ask("colour?").await?;
    let size = turn.ask("size?").await?;
    turn.text_artifact("order", size.text()).await?;
    assert_eq!(turn.attempt(), 1);
    Ok(())
}

async fn converse(server: TestServer) {
    let task = server.send("a shirt").await;
    assert_eq!(
        (state(&task), &task["status"]["message"]["parts"][0]["text"]),
        ("INPUT_REQUIRED", &json!("colour?"))
    );
    let task = answer(&server, &task, "blue").await;
    assert_eq!(
        (state(&task), &task["status"]["message"]["parts"][0]["text"]),
        ("INPUT_REQUIRED", &json!("size?"))
    );
    assert_eq!(history(&task), ["a shirt", "colour?", "blue"]);
    let task = answer(&server, &task, "large").await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(history(&task), ["a shirt", "colour?", "blue", "size?", "large"]);
    assert_eq!(artifacts(&task), ["large"]);
    for said in task["history"].as_array().unwrap() {
        assert_eq!((&said["taskId"], &said["contextId"]), (&task["id"], &task["contextId"]));
    }
    assert_eq!(server.get(id(&task)).await, task);
    let refused = server.call("SendMessage", message_to(&task, "one more")).await;
    assert_eq!(refused.error_code(), -32004, "an ended task takes no more messages");
}

#[tokio::test]
async fn p02_an_answer_starts_the_next_turn() {
    converse(serve_agent(by_turns).await).await;
}

#[tokio::test]
async fn p02_an_answer_reaches_the_agent_that_waits_for_it() {
    converse(serve_agent(in_one_turn).await).await;
}

#[tokio::test]
async fn the_context_is_inferred_and_another_one_refused() {
    let server = serve_agent(by_turns).await;
    let task = server.send("a shirt").await;
    let mut wrong = message_to(&task, "blue");
    wrong["message"]["contextId"] = json!("another");
    assert_eq!(server.call("SendMessage", wrong).await.error_code(), -32602);
    assert_eq!(state(&server.get(id(&task)).await), "INPUT_REQUIRED");
    let mut right = message_to(&task, "blue");
    right["message"]["contextId"] = task["contextId"].clone();
    let next = server.call("SendMessage", right).await.result()["task"].clone();
    assert_eq!(next["contextId"], task["contextId"]);
    assert_eq!(history(&next), ["a shirt", "colour?", "blue"]);
}

#[tokio::test]
async fn messages_to_a_working_task_are_offered_to_its_turn_in_order() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        let mut taken = 0;
        while taken < 3 {
            match turn.next_message() {
                Some(said) => {
                    turn.text_artifact("heard", said.text()).await?;
                    taken += 1;
                }
                None => tokio::task::yield_now().await,
            }
        }
        turn.complete().await?;
        Ok(())
    }))
    .await;
    let task = server.start("listen").await;
    for text in ["one", "two", "three"] {
        assert_eq!(state(&send_without_waiting(&server, &task, text).await), "WORKING");
    }
    gate.let_pass(1);
    let task = server.eventually(id(&task), "COMPLETED").await;
    assert_eq!(artifacts(&task), ["one", "two", "three"]);
    assert_eq!(history(&task), ["listen", "one", "two", "three"]);
}

#[tokio::test]
async fn messages_that_were_not_taken_start_the_next_turns() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("turn", format!("{} {}", turn.attempt(), turn.text())).await?;
        match turn.text().as_str() {
            "last" => turn.complete().await?,
            _ => drop(turn.ask("next?")),
        }
        Ok(())
    }))
    .await;
    let task = server.start("first").await;
    send_without_waiting(&server, &task, "second").await;
    let waiting = tokio::join!(answer(&server, &task, "last"), async { gate.let_pass(3) }).0;
    assert_eq!(state(&waiting), "COMPLETED", "the send waits for its own turn");
    assert_eq!(artifacts(&waiting), ["1 first", "2 second", "3 last"]);
    assert_eq!(history(&waiting), ["first", "next?", "second", "next?", "last"]);
}

#[tokio::test]
async fn a_turn_that_just_returns_leaves_waiting_messages_to_the_next() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("turn", turn.text()).await?;
        Ok(())
    }))
    .await;
    let task = server.start("first").await;
    for text in ["second", "third"] {
        send_without_waiting(&server, &task, text).await;
    }
    gate.let_pass(3);
    let task = server.eventually(id(&task), "COMPLETED").await;
    assert_eq!(artifacts(&task), ["first", "second", "third"]);
    assert_eq!(history(&task), ["first", "second", "third"]);
}

#[tokio::test]
async fn a_stream_of_a_waiting_message_begins_with_its_turn() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        match turn.text().as_str() {
            "last" => turn.complete().await?,
            _ => drop(turn.ask("next?")),
        }
        Ok(())
    }))
    .await;
    let task = server.start("first").await;
    let stream = server.stream("SendStreamingMessage", message_to(&task, "last"), None);
    let (stream, ()) = tokio::join!(stream, async {
        server.get(id(&task)).await;
        gate.let_pass(2);
    });
    let events = stream.ok().unwrap().rest().await;
    assert_eq!(crate::harness::kinds(&events), ["task", "working", "completed"]);
    assert_eq!(history(&events[0].result()["task"]), ["first", "next?", "last"]);
}

#[tokio::test]
async fn s12_the_seventeenth_waiting_message_is_refused() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.complete().await?;
        Ok(())
    }))
    .await;
    let task = server.start("work").await;
    for n in 0..16 {
        send_without_waiting(&server, &task, &n.to_string()).await;
    }
    let refused = server.call("SendMessage", message_to(&task, "one too many")).await;
    assert_eq!((refused.status, refused.error_code()), (429, -32050));
    assert_eq!(refused.header("retry-after"), Some("1"));
    // The agent has not taken the messages when the task ends; they are in the history all the same.
    let waiting = server.call("CancelTask", json!({"id": id(&task)}));
    let (canceled, ()) = tokio::join!(waiting, async { gate.let_pass(1) });
    let ended = server.get(id(&task)).await;
    assert!(["CANCELED", "COMPLETED"].contains(&state(&ended)), "{ended} {}", canceled.body);
    let expected: Vec<_> = ["work".to_owned()].into_iter().chain((0..16).map(|n| n.to_string())).collect();
    assert_eq!(history(&ended), expected);
}

#[tokio::test]
async fn a_message_still_waiting_when_the_task_ends_answers_with_the_ended_task() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.complete().await?;
        Ok(())
    }))
    .await;
    let task = server.start("work").await;
    send_without_waiting(&server, &task, "first").await;
    let late = message_to(&task, "late");
    let stream = server.stream("SendStreamingMessage", message_to(&task, "later"), None);
    let (blocking, stream, ()) = tokio::join!(server.call("SendMessage", late.clone()), stream, async {
        server.get(id(&task)).await;
        gate.let_pass(1);
    });
    // A message after the end is refused; one that waited is in the history.
    match blocking.body.get("result") {
        Some(result) => {
            assert_eq!(state(&result["task"]), "COMPLETED");
            assert!(history(&result["task"]).contains(&"late".to_owned()), "{result}");
            let again = server.call("SendMessage", late).await;
            assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
            assert_eq!(again.result()["task"], result["task"]);
        }
        None => assert_eq!(blocking.error_code(), -32004),
    }
    match stream {
        Ok(mut stream) => {
            let events = stream.rest().await;
            assert_eq!(kinds(&events), ["task", "completed"]);
            assert_eq!(history(&events[0].result()["task"]).last().unwrap(), "later");
        }
        Err(refused) => assert_eq!(refused.error_code(), -32004),
    }
}

#[tokio::test]
async fn authorisation_may_come_as_a_message_too() {
    async fn guarded(turn: Turn) -> Result<(), AgentError> {
        let said = turn.require_auth("sign in").await?;
        turn.text_artifact("signed in", said.text()).await?;
        Ok(())
    }
    let server = serve_agent(guarded).await;
    let task = server.send("open").await;
    assert_eq!(
        (state(&task), &task["status"]["message"]["parts"][0]["text"]),
        ("AUTH_REQUIRED", &json!("sign in"))
    );
    let task = answer(&server, &task, "done").await;
    assert_eq!((state(&task), artifacts(&task)), ("COMPLETED", vec!["done".to_owned()]));
}

#[tokio::test]
async fn when_nobody_answers_the_agent_goes_and_the_question_stays() {
    let mut options = Options::default();
    options.answer_wait = Duration::from_millis(30);
    options.cancel_grace = Duration::from_millis(30);
    let gone = Gate::new();
    let agent = agent_with(&gone, |gone, turn| async move {
        if turn.attempt() > 1 {
            turn.text_artifact("late answer", turn.text()).await?;
            return Ok(());
        }
        let answer = turn.ask("anybody?").await;
        gone.let_pass(1);
        answer?;
        Ok(())
    });
    let server = serve(with_agent(agent).options(options)).await;
    let task = server.send("hello").await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    gone.pass().await;
    let task = answer(&server, &task, "yes, sorry").await;
    assert_eq!((state(&task), artifacts(&task)), ("COMPLETED", vec!["yes, sorry".to_owned()]));
    assert_eq!(history(&task), ["hello", "anybody?", "yes, sorry"]);
}

#[tokio::test]
async fn p04_a_stream_for_a_busy_task_is_open_and_kept_alive_before_its_turn() {
    let release = Arc::new(tokio::sync::Notify::new());
    let gate = Arc::clone(&release);
    let agent = move |turn: Turn| {
        let gate = Arc::clone(&gate);
        async move {
            if turn.is_first() {
                gate.notified().await;
            }
            Ok::<(), AgentError>(())
        }
    };
    let mut limits = baton_server::Limits::default();
    limits.keep_alive = Duration::from_millis(20);
    let server = serve(with_agent(agent).limits(limits)).await;
    let task = server.start("hold").await;
    let params = message_to(&task, "and then this");
    let mut stream = server.stream("SendStreamingMessage", params, None).await.ok().expect("a stream");
    stream.until_bytes(b": keep-alive").await;
    release.notify_one();
    let events = stream.rest().await;
    let shown = kinds(&events);
    assert_eq!(
        (shown.first().map(String::as_str), shown.last().map(String::as_str)),
        (Some("task"), Some("completed"))
    );
}

/// The server's own application learns beside the protocol that the user has signed in.
#[tokio::test]
async fn a13_authorisation_is_told_by_a_call_of_the_library() {
    async fn awaits(turn: Turn) -> Result<(), AgentError> {
        let said = turn.require_auth("sign in").await?;
        turn.text_artifact("signed in", said.text()).await
    }
    async fn ends_its_turn(turn: Turn) -> Result<(), AgentError> {
        if turn.is_first() {
            drop(turn.require_auth("sign in"));
            return Ok(());
        }
        turn.text_artifact("signed in", turn.text()).await
    }
    let uri = "https://a.example/needed";
    for ends in [false, true] {
        let needs = |card: &mut AgentCard| {
            let uri = uri.to_owned();
            let needed = AgentExtension { uri, description: None, required: true, params: None };
            card.capabilities.extensions = vec![needed];
        };
        let builder = if ends { with_card(needs, ends_its_turn) } else { with_card(needs, awaits) };
        let server = serve(builder).await;
        let client = server.server.client();
        for interface in ALL_BINDINGS {
            let headers = [("a2a-extensions", uri)];
            let open = Ask::Send(Sending { wait: Some(true), ..sending("open") });
            let answer = read(ask_with(&server, interface, &headers, &open).await.unwrap()).await;
            let whole = if interface.is_rest() { answer.body.clone() } else { answer.result().clone() };
            let task = whole.get("task").unwrap_or(&whole)["id"].as_str().unwrap().to_owned();
            let id = baton_server::a2a::TaskId::parse(&task).unwrap();
            let until = async |state: TaskState| loop {
                let task = client.task(&id).await.unwrap();
                if task.status.state == state {
                    break task;
                }
                tokio::task::yield_now().await;
            };
            until(TaskState::AuthRequired).await;
            let somebody = client.clone().as_owner("somebody").unwrap();
            let unknown = somebody.authorized(&id, "granted").await.unwrap_err();
            assert_eq!(unknown.kind(), ErrorKind::TaskNotFound, "{interface:?}");
            client.authorized(&id, "granted").await.unwrap();
            let ended = until(TaskState::Completed).await;
            let texts: Vec<_> = ended.artifacts.iter().map(|it| it.parts.clone()).collect();
            assert_eq!(texts, [vec![Part::text("granted")]], "{interface:?}");
            let late = client.authorized(&id, "granted").await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::UnsupportedOperation, "{interface:?}: it waits for nothing");
        }
    }
}
