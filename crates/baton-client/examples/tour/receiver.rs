//! Receives what the agent sends to a webhook.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use baton_client::protocol::domain::{Part, PushConfig, TaskState};
use baton_client::protocol::operation::SendMessage;
use baton_client::protocol::wire::StreamItem;
use baton_client::{Client, Notification, WebhookVerifier, message};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::{Outcome, check};

/// Agents call within milliseconds; whoever waits this long waits in vain.
const PATIENCE: Duration = Duration::from_secs(30);

/// A webhook that comes with a message is called, with the token, until the task has ended.
pub(crate) async fn receive(client: &Client) -> Outcome {
    const TOKEN: &str = "token-of-the-tour";
    let (sender, mut calls) = mpsc::channel(64);
    let verifier = WebhookVerifier::with_token(TOKEN);
    let called = move |headers: HeaderMap, body: Bytes| async move {
        let (status, told) = match verifier.verify(&headers, &body) {
            Ok(call) => (StatusCode::OK, Ok(call.done())),
            Err(error) => {
                (StatusCode::BAD_REQUEST, Err(format!("{error}: {}", String::from_utf8_lossy(&body))))
            }
        };
        // Calls after the last one that is waited for.
        let _ = sender.try_send(told);
        status
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    let serving = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(called)).await });
    let config = PushConfig { token: Some(TOKEN.to_owned()), ..PushConfig::new(url) };
    let send = SendMessage {
        push_config: Some(config),
        ..SendMessage::new(message(vec![Part::text("tck-complete-task")]))
    };
    let answered = client.send(send).await?;
    let id = &answered.task().ok_or("no task")?.id;
    let mut count = 0;
    let outcome = loop {
        let Ok(Some(call)) = timeout(PATIENCE, calls.recv()).await else {
            break Err(format!("after {count} calls the end is missing").into());
        };
        count += 1;
        let Notification { event, .. } = call?;
        let (of, state) = match &event {
            StreamItem::Task(task) => (&task.id, Some(task.status.state)),
            StreamItem::Status { task_id, update, .. } => (task_id, Some(update.state)),
            StreamItem::Artifact { task_id, .. } => (task_id, None),
            StreamItem::Message(message) => break Err(format!("a message: {message:?}").into()),
        };
        check(of == id, format!("a call names {of}, not {id}"))?;
        if state == Some(TaskState::Completed) {
            break Ok(());
        }
    };
    serving.abort();
    outcome
}
