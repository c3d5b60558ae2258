use std::time::Duration;

use baton_server::Options;
use baton_server::{AgentError, Turn};
use serde_json::json;

use crate::harness::{id, message, serve, serve_agent, state, with_agent};

async fn echo(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("echo", turn.text()).await?;
    turn.complete().await?;
    Ok(())
}

/// Works until it is told to stop.
async fn hold(turn: Turn) -> Result<(), AgentError> {
    turn.cancellation().cancelled().await;
    Ok(())
}

#[tokio::test]
async fn p02_a_blocking_send_answers_with_the_ended_task_and_all_artifacts() {
    let server = serve_agent(echo).await;
    let answer = server.call("SendMessage", message("hello")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let task = &answer.result()["task"];
    assert_eq!(state(task), "COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "hello"}]));
    assert_eq!(task["history"][0]["parts"], json!([{"text": "hello"}]));
    assert_eq!(task["history"][0]["taskId"], task["id"]);
    assert_eq!(*task, server.get(id(task)).await);
}

#[tokio::test]
async fn s09_an_immediate_send_answers_while_the_agent_works() {
    let server = serve_agent(hold).await;
    let task = server.start("anything").await;
    assert!(["SUBMITTED", "WORKING"].contains(&state(&task)), "{task}");
    assert_eq!(state(&server.get(id(&task)).await), "WORKING");
}

#[tokio::test]
async fn a_wait_ends_at_its_deadline_with_the_task_as_it_is() {
    let mut options = Options::default();
    options.send_wait = Duration::from_millis(50);
    let server = serve(with_agent(hold).options(options)).await;
    let task = server.send("anything").await;
    assert_eq!(state(&task), "WORKING");
}

#[tokio::test]
async fn s09_a_failing_agent_fails_its_task_with_the_reason() {
    async fn fails(turn: Turn) -> Result<(), AgentError> {
        match turn.text().as_str() {
            "panic" => panic!("oh no"),
            text => Err(AgentError::new(format!("cannot do {text}"))),
        }
    }
    let server = serve_agent(fails).await;
    for (text, reason) in [("sums", "cannot do sums"), ("panic", "The agent stopped unexpectedly")] {
        let task = server.send(text).await;
        assert_eq!(state(&task), "FAILED");
        assert_eq!(task["status"]["message"]["parts"][0]["text"], reason);
        assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
    }
}
