use std::time::Duration;

use baton_server::Limits;
use baton_server::{Agent, AgentError, Turn};
use serde_json::{Value, json};

use crate::fixtures::{Gate, agent_with};
use crate::harness::{RpcEvent, id, kinds, message, serve, serve_agent, state, with_agent};

/// Sends progress, one artifact, and completes.
async fn steps(turn: Turn) -> Result<(), AgentError> {
    turn.progress("one").await?;
    turn.progress("two").await?;
    turn.text_artifact("result", "three").await?;
    turn.complete().await?;
    Ok(())
}

/// Sends one status each time the gate lets it pass, as many as the message's text says.
fn speaker(gate: &Gate) -> impl Agent + use<> {
    agent_with(gate, |gate, turn| async move {
        for n in 0..turn.text().parse().expect("a number") {
            gate.pass().await;
            turn.progress(format!("word {n}")).await?;
        }
        turn.complete().await?;
        Ok(())
    })
}

fn ids(events: &[RpcEvent]) -> Vec<u64> {
    events.iter().map(|event| event.id.expect("every event has its number")).collect()
}

fn status_text(event: &RpcEvent) -> &Value {
    &event.result()["statusUpdate"]["status"]["message"]["parts"][0]["text"]
}

#[tokio::test]
async fn p04_the_task_comes_first_and_the_rest_in_the_order_it_was_made() {
    let server = serve_agent(steps).await;
    let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    assert_eq!(stream.headers["cache-control"], "no-cache, no-store");
    assert_eq!(stream.headers["connection"], "keep-alive");
    assert_eq!(stream.headers["x-accel-buffering"], "no");
    assert!(!stream.headers.contains_key("a2a-idempotent-replay"));
    let events = stream.rest().await;
    assert_eq!(kinds(&events), ["task", "working", "working", "working", "artifactUpdate", "completed"]);
    for event in &events {
        assert_eq!(event.envelope["jsonrpc"], "2.0");
        assert_eq!(event.envelope["id"], "s", "the id of the request that opened the stream");
    }
    assert_eq!(events[0].result()["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!((status_text(&events[2]), status_text(&events[3])), (&json!("one"), &json!("two")));
    // The numbers are those of the log: 1 is the user's message, 2 the start of the attempt.
    assert_eq!(ids(&events), [1, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn s06_ten_subscribers_see_the_same_events_with_the_same_numbers() {
    let gate = Gate::new();
    let server = serve_agent(speaker(&gate)).await;
    let mut first = server.stream("SendStreamingMessage", message("20"), None).await.ok().unwrap();
    let task = first.next().await.unwrap().result()["task"].clone();
    let working = first.next().await.unwrap();
    let mut others = Vec::new();
    for _ in 0..10 {
        let mut other = server.stream("SubscribeToTask", json!({"id": id(&task)}), None).await.ok().unwrap();
        let shown = other.next().await.unwrap();
        assert_eq!(shown.kind(), "task");
        assert_eq!(shown.id, working.id, "the task as of the last event");
        assert_eq!(state(&shown.result()["task"]), "WORKING");
        others.push(other);
    }
    // One reader disconnects halfway; the others are not affected.
    gate.let_pass(5);
    let mut gone = others.pop().unwrap();
    assert_eq!(status_text(&gone.next().await.unwrap()), "word 0");
    drop(gone);
    gate.let_pass(15);
    let all = first.rest().await;
    assert_eq!(all.len(), 21);
    let (numbers, results): (Vec<_>, Vec<_>) = all.iter().map(|got| (got.id, got.result().clone())).unzip();
    for mut other in others {
        let seen = other.rest().await;
        assert_eq!(seen.iter().map(|got| got.id).collect::<Vec<_>>(), numbers);
        assert_eq!(seen.iter().map(|got| got.result().clone()).collect::<Vec<_>>(), results);
    }
}

#[tokio::test]
async fn a_send_stream_closes_at_input_required_and_a_subscription_at_the_end() {
    async fn asks(turn: Turn) -> Result<(), AgentError> {
        if turn.attempt() == 1 {
            turn.ask("which one?");
        } else {
            turn.text_artifact("chosen", turn.text()).await?;
        }
        Ok(())
    }
    let server = serve_agent(asks).await;
    let mut first = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    let events = first.rest().await;
    assert_eq!(kinds(&events), ["task", "working", "input_required"]);
    let task = events[0].result()["task"].clone();

    let mut watch = server.stream("SubscribeToTask", json!({"id": id(&task)}), None).await.ok().unwrap();
    assert_eq!(state(&watch.next().await.unwrap().result()["task"]), "INPUT_REQUIRED");
    let mut answer = message("the blue one");
    answer["message"]["taskId"] = task["id"].clone();
    let mut second = server.stream("SendStreamingMessage", answer, None).await.ok().unwrap();
    let events = second.rest().await;
    assert_eq!(kinds(&events), ["task", "working", "artifactUpdate", "completed"]);
    assert_eq!(events[0].result()["task"]["id"], task["id"]);
    assert_eq!(kinds(&watch.rest().await), ["working", "artifactUpdate", "completed"]);
}

#[tokio::test]
async fn a_subscription_stays_open_through_input_required() {
    async fn asks_twice(turn: Turn) -> Result<(), AgentError> {
        turn.ask("first?").await?;
        turn.ask("second?").await?;
        Ok(())
    }
    let server = serve_agent(asks_twice).await;
    let task = server.send("go").await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let mut watch = server.stream("SubscribeToTask", json!({"id": id(&task)}), None).await.ok().unwrap();
    watch.next().await.unwrap();
    for expected in [["working", "input_required"], ["working", "completed"]] {
        let mut answer = message("this");
        answer["message"]["taskId"] = task["id"].clone();
        server.call("SendMessage", answer).await.result();
        let seen = [watch.next().await.unwrap().kind(), watch.next().await.unwrap().kind()];
        assert_eq!(seen, expected);
    }
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_send_stream_stays_open_while_authorisation_is_awaited() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        turn.require_auth("sign in at https://example.org");
        gate.pass().await;
        turn.resume().await?;
        Ok(())
    }))
    .await;
    let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    for expected in ["task", "working", "auth_required"] {
        assert_eq!(stream.next().await.unwrap().kind(), expected);
    }
    gate.let_pass(1);
    assert_eq!(kinds(&stream.rest().await), ["working", "completed"]);
}

#[tokio::test]
async fn an_ended_or_unknown_task_is_not_streamed() {
    let server = serve_agent(steps).await;
    let task = server.send("go").await;
    for (asked, code) in [(id(&task), -32004), ("nobody", -32001)] {
        let refused = server.stream("SubscribeToTask", json!({"id": asked}), None).await.err().unwrap();
        assert_eq!((refused.status, refused.error_code()), (200, code));
        assert_eq!(refused.header("content-type"), Some("application/json"));
        assert_eq!(refused.body["id"], "s");
    }
}

#[tokio::test]
async fn s06_a_reader_that_goes_away_does_not_touch_the_task() {
    let gate = Gate::new();
    let server = serve_agent(speaker(&gate)).await;
    let mut stream = server.stream("SendStreamingMessage", message("3"), None).await.ok().unwrap();
    let task = stream.next().await.unwrap().result()["task"].clone();
    drop(stream);
    for _ in 0..10 {
        assert_eq!(state(&server.get(id(&task)).await), "WORKING");
    }
    let mut watch = server.stream("SubscribeToTask", json!({"id": id(&task)}), None).await.ok().unwrap();
    gate.let_pass(3);
    assert_eq!(kinds(&watch.rest().await), ["task", "working", "working", "working", "completed"]);
    assert_eq!(state(&server.get(id(&task)).await), "COMPLETED");
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_with_comments() {
    let gate = Gate::new();
    let mut limits = Limits::default();
    limits.keep_alive = Duration::from_millis(20);
    let server = serve(with_agent(speaker(&gate)).limits(limits)).await;
    let mut stream = server.stream("SendStreamingMessage", message("1"), None).await.ok().unwrap();
    stream.until_bytes(b": keep-alive\n").await;
    stream.until_bytes(b": keep-alive\n").await;
    gate.let_pass(1);
    assert_eq!(kinds(&stream.rest().await), ["working", "completed"]);
}

#[tokio::test]
async fn a_message_skill_streams_its_one_message() {
    use baton_protocol::domain::{AgentCard, AgentSkill, Part};
    async fn greet(asked: baton_server::Asked) -> Result<Part, AgentError> {
        Ok(Part::text(format!("hello {}", asked.text())))
    }
    let card = AgentCard::new("greeter", "Greets", "1.0.0");
    let skill = AgentSkill::new("greet", "greet", "greets");
    let server = serve(baton_server::Server::builder(card).message_skill(skill, greet)).await;
    let mut stream = server.stream("SendStreamingMessage", message("you"), None).await.ok().unwrap();
    let events = stream.rest().await;
    assert_eq!(kinds(&events), ["message"]);
    assert_eq!(events[0].result()["message"]["parts"], json!([{"text": "hello you"}]));
    assert_eq!(events[0].id, None, "a message is not in any log");
}
