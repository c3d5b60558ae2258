use std::sync::Arc;
use std::time::Duration;

use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::fixtures::{Backend, Gate, TestClock, agent_with};
use crate::harness::{
    Answer, RpcEvent, Stream, TestServer, id, kinds, message, message_to, serve, state, with_agent,
};

/// "ask" waits for an answer between two turns; anything else completes in one turn.
async fn steps(turn: Turn) -> Result<(), AgentError> {
    turn.progress("one").await?;
    if turn.text() == "ask" {
        turn.ask("which?");
        return Ok(());
    }
    turn.text_artifact("result", "two").await?;
    turn.complete().await?;
    Ok(())
}

async fn subscribe(server: &TestServer, task: &Value, last: Option<&str>) -> Result<Stream, Answer> {
    server.stream("SubscribeToTask", json!({"id": task["id"]}), last).await
}

async fn resend(server: &TestServer, params: &Value, last: Option<&str>) -> Result<Stream, Answer> {
    server.stream("SendStreamingMessage", params.clone(), last).await
}

#[track_caller]
fn code(refused: Result<Stream, Answer>) -> i64 {
    refused.err().expect("a refusal, not a stream").error_code()
}

fn ids(events: &[RpcEvent]) -> Vec<u64> {
    events.iter().map(|event| event.id.expect("every event has its number")).collect()
}

fn shown(events: &[RpcEvent]) -> Vec<(Option<u64>, &Value)> {
    events.iter().map(|event| (event.id, event.result())).collect()
}

/// Runs a check on the server that wrote the log, and again on a new server on the same store.
async fn on_each_store_and_after_a_restart<F, Fut>(make: &Value, check: F)
where
    F: Fn(Arc<TestServer>, Vec<RpcEvent>) -> Fut,
    Fut: Future<Output = ()>,
{
    for backend in Backend::each() {
        let server = Arc::new(serve(with_agent(steps).store(backend.open().await)).await);
        let log = resend(&server, make, None).await.ok().unwrap().rest().await;
        check(Arc::clone(&server), log.clone()).await;
        Arc::into_inner(server).expect("the check is over").stop().await;
        let server = Arc::new(serve(with_agent(steps).store(backend.open().await)).await);
        check(Arc::clone(&server), log).await;
        Arc::into_inner(server).expect("the check is over").stop().await;
    }
}

#[tokio::test]
async fn p04_a_resumed_subscription_gives_exactly_what_follows() {
    on_each_store_and_after_a_restart(&message("go"), async |server, log| {
        assert_eq!(ids(&log), [1, 3, 4, 5, 6]);
        let task = log[0].result()["task"].clone();
        for n in 0..6 {
            let seen = subscribe(&server, &task, Some(&n.to_string())).await.ok().unwrap().rest().await;
            let expected: Vec<_> = log[1..].iter().filter(|event| event.id > Some(n)).cloned().collect();
            assert_eq!(shown(&seen), shown(&expected), "after {n}");
        }
        assert_eq!(code(subscribe(&server, &task, Some("6")).await), -32004, "nothing is left");
        assert_eq!(code(subscribe(&server, &task, None).await), -32004, "the rule of the specification");
    })
    .await;
}

#[tokio::test]
async fn a_number_that_cannot_be_is_refused() {
    on_each_store_and_after_a_restart(&message("go"), async |server, log| {
        let task = log[0].result()["task"].clone();
        for wrong in [
            "7",
            "1000000",
            "x",
            "-1",
            "+1",
            "1.0",
            "0x1",
            "1 2",
            "9223372036854775808",
            "99999999999999999999999",
        ] {
            assert_eq!(code(subscribe(&server, &task, Some(wrong)).await), -32602, "{wrong}");
        }
        let unknown = server.stream("SubscribeToTask", json!({"id": "nobody"}), Some("1")).await;
        assert_eq!(code(unknown), -32001);
    })
    .await;
}

#[tokio::test]
async fn a_send_stream_posted_again_replays_its_turn() {
    let params = message("go");
    on_each_store_and_after_a_restart(&params, async |server, log| {
        let mut again = resend(&server, &params, None).await.ok().unwrap();
        assert_eq!(again.headers["a2a-idempotent-replay"], "true");
        assert_eq!(again.rest().await, log, "the same events from the same Task on");
        for n in 0..6 {
            let mut seen = resend(&server, &params, Some(&n.to_string())).await.ok().unwrap();
            assert_eq!(seen.headers["a2a-idempotent-replay"], "true");
            let expected: Vec<_> = log[1..].iter().filter(|event| event.id > Some(n)).cloned().collect();
            assert_eq!(seen.rest().await, expected, "after {n}");
        }
        assert_eq!(code(resend(&server, &params, Some("6")).await), -32004);
        assert_eq!(code(resend(&server, &params, Some("7")).await), -32602);
        assert_eq!(code(resend(&server, &params, Some("soon")).await), -32602);
    })
    .await;
}

#[tokio::test]
async fn each_turn_is_replayed_on_its_own() {
    let question = message("ask");
    for backend in Backend::each() {
        let server = serve(with_agent(steps).store(backend.open().await)).await;
        let first = resend(&server, &question, None).await.ok().unwrap().rest().await;
        assert_eq!(kinds(&first), ["task", "working", "working", "input_required"]);
        let task = first[0].result()["task"].clone();
        assert_eq!(code(resend(&server, &question, Some("5")).await), -32004, "that turn is over");
        server.stop().await;

        // The restart happens between the turns; a subscription waits for further events.
        let server = serve(with_agent(steps).store(backend.open().await)).await;
        let mut watch = subscribe(&server, &task, Some("4")).await.ok().unwrap();
        assert_eq!(watch.next().await.unwrap().kind(), "input_required");
        let answer = message_to(&task, "this one");
        let second = resend(&server, &answer, None).await.ok().unwrap().rest().await;
        assert_eq!(kinds(&second), ["task", "working", "working", "artifactUpdate", "completed"]);
        assert_eq!(second[0].id, Some(6));
        assert_eq!(shown(&watch.rest().await), shown(&second[1..]));
        server.stop().await;

        let server = serve(with_agent(steps).store(backend.open().await)).await;
        assert_eq!(resend(&server, &question, None).await.ok().unwrap().rest().await, first);
        assert_eq!(resend(&server, &answer, None).await.ok().unwrap().rest().await, second);
        let rest = resend(&server, &answer, Some("2")).await.ok().unwrap().rest().await;
        assert_eq!(rest, second[1..], "a number before the turn starts with the turn");
        server.stop().await;
    }
}

#[tokio::test]
async fn an_unknown_message_with_a_number_starts_nothing() {
    on_each_store_and_after_a_restart(&message("go"), async |server, _| {
        assert_eq!(code(resend(&server, &message("go"), Some("1")).await), -32001);
        assert_eq!(code(resend(&server, &message("go"), Some("0")).await), -32001);
        let tasks = server.call("ListTasks", json!({})).await;
        assert_eq!(tasks.result()["totalSize"], 1, "only the earlier task");
    })
    .await;
}

#[tokio::test]
async fn a_running_task_is_followed_from_where_a_reader_left_off() {
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate, turn| async move {
        for n in 0..6 {
            gate.pass().await;
            turn.progress(n.to_string()).await?;
        }
        Ok(())
    });
    let server = serve(with_agent(agent)).await;
    let params = message("go");
    let mut stream = resend(&server, &params, None).await.ok().unwrap();
    let task = stream.next().await.unwrap().result()["task"].clone();
    stream.next().await.unwrap();
    gate.let_pass(3);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(stream.next().await.unwrap());
    }
    drop(stream);
    let last = seen[1].id.unwrap().to_string();
    let mut watch = subscribe(&server, &task, Some(&last)).await.ok().unwrap();
    let mut again = resend(&server, &params, Some(&last)).await.ok().unwrap();
    let mut replay = resend(&server, &params, None).await.ok().unwrap();
    gate.let_pass(3);
    let rest = watch.rest().await;
    assert_eq!(shown(&rest[..1]), shown(&seen[2..]));
    assert_eq!(ids(&rest), [6, 7, 8, 9, 10]);
    assert_eq!(again.rest().await, rest);
    assert_eq!(ids(&replay.rest().await), [1, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn a_folded_log_starts_with_a_fresh_task() {
    for backend in Backend::each() {
        let clock = TestClock::new();
        let builder = async || with_agent(steps).clock(clock.clone()).store(backend.open().await);
        let server = serve(builder().await).await;
        let params = message("go");
        let log = resend(&server, &params, None).await.ok().unwrap().rest().await;
        let task = log[0].result()["task"].clone();
        clock.advance(Duration::from_secs(25 * 60 * 60));
        assert_eq!(server.server.sweep().await.unwrap().folded, 1);
        server.stop().await;

        let server = serve(builder().await).await;
        let whole = server.get(id(&task)).await;
        assert_eq!(
            (state(&whole), &whole["artifacts"][0]["parts"]),
            ("COMPLETED", &json!([{"text": "two"}]))
        );
        for n in 0..6 {
            let n = n.to_string();
            for stream in
                [subscribe(&server, &task, Some(&n)).await, resend(&server, &params, Some(&n)).await]
            {
                let seen = stream.ok().unwrap().rest().await;
                assert_eq!((kinds(&seen), ids(&seen)), (vec!["task".to_owned()], vec![6]), "after {n}");
                assert_eq!(seen[0].result()["task"], whole);
            }
        }
        let again = resend(&server, &params, None).await.ok().unwrap().rest().await;
        assert_eq!(again[0].result()["task"], whole);
        assert_eq!(code(subscribe(&server, &task, Some("6")).await), -32004);
        assert_eq!(code(resend(&server, &params, Some("6")).await), -32004);
        assert_eq!(code(subscribe(&server, &task, Some("7")).await), -32602);
        let blocking = server.call("SendMessage", params.clone()).await;
        assert_eq!(blocking.result()["task"], whole, "a repeat does not wait for a log that is gone");
        server.stop().await;
    }
}
