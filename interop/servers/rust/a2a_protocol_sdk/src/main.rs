//! An agent on `a2a-protocol-sdk`, as its documentation shows one: JSON-RPC and REST on one listener, with streams,
//! webhooks, the extended card, and users.
//!
//! ```text
//! a2a_protocol_sdk_agent PORT
//! ```
//!
//! It knows the `tck-` phrases of the conformance tests. Two users are known, by the bearer tokens below; the card is for
//! everybody.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use a2a_protocol_sdk::prelude::*;
use a2a_protocol_sdk::server::dispatch::CombinedDispatcher;
use a2a_protocol_sdk::server::push::HttpPushSender;
use a2a_protocol_sdk::types::security::{HttpAuthSecurityScheme, SecurityRequirement, SecurityScheme, StringList};
use serde_json::json;

const TOKENS: [(&str, &str); 2] = [("first-token", "first"), ("second-token", "second")];

const STORY: [&str; 3] = ["One runner, ", "one baton, ", "one lap."];

/// Does what the first text of a task asks for; a text it does not know is echoed.
struct Phrases;

agent_executor!(Phrases, |ctx, queue| async {
    let emit = EventEmitter::new(ctx, queue);
    let text = ctx.message.text().unwrap_or_default();
    // It may be another task of the same context.
    let task = ctx.stored_task.as_ref().filter(|task| task.id == ctx.task_id);
    let asked = task.and_then(|task| task.history.as_ref()).and_then(|history| history.first());
    let first = asked.and_then(Message::text).unwrap_or(text);
    let is_follow_up = task.is_some();
    let known = if first.starts_with("tck-") { first.split_whitespace().next().unwrap_or_default() } else { "" };
    match known {
        "tck-message-response" => {
            let message = Message::agent_text(uuid::Uuid::new_v4().to_string(), "Just a message.")
                .with_context_id(ctx.context_id.clone());
            queue.write(StreamResponse::Message(message)).await
        }
        "tck-reject-task" => say(&emit, TaskState::Rejected, "Refused, as asked.").await,
        "tck-task-failure" => say(&emit, TaskState::Failed, "Failed, as asked.").await,
        "tck-input-required" if !is_follow_up => say(&emit, TaskState::InputRequired, "What is your name?").await,
        "tck-auth-required" if !is_follow_up => emit.auth_required("Sign in, then send a message.").await,
        "tck-multi-turn" if !(is_follow_up && text == "done") => {
            say(&emit, TaskState::InputRequired, "Go on, or say done.").await
        }
        "tck-cancel" => {
            say(&emit, TaskState::Working, "Waiting to be canceled.").await?;
            work(&emit, 60_000).await;
            Ok(())
        }
        "tck-long-running" => {
            say(&emit, TaskState::Working, "This takes a while.").await?;
            if !work(&emit, 5000).await {
                return Ok(());
            }
            emit.artifact("result", vec![Part::text("Here it is.")], None, Some(true)).await?;
            emit.status(TaskState::Completed).await
        }
        "tck-stream-basic" => {
            say(&emit, TaskState::Working, "Working.").await?;
            if !work(&emit, 600).await {
                return Ok(());
            }
            emit.artifact("result", vec![Part::text("The result.")], None, Some(true)).await?;
            if !work(&emit, 600).await {
                return Ok(());
            }
            emit.status(TaskState::Completed).await
        }
        "tck-stream-chunked" => {
            emit.status(TaskState::Working).await?;
            for (place, chunk) in STORY.into_iter().enumerate() {
                work(&emit, 200).await;
                let (append, last) = (place > 0, place + 1 == STORY.len());
                emit.artifact("story", vec![Part::text(chunk)], Some(append), Some(last)).await?;
            }
            emit.status(TaskState::Completed).await
        }
        _ => {
            emit.status(TaskState::Working).await?;
            emit.artifact("result", vec![result(known, text)], None, Some(true)).await?;
            emit.status(TaskState::Completed).await
        }
    }
});

/// A status with a message.
async fn say(emit: &EventEmitter<'_>, state: TaskState, words: &str) -> A2aResult<()> {
    let message = Message::agent_text(uuid::Uuid::new_v4().to_string(), words)
        .with_task_id(emit.ctx.task_id.clone())
        .with_context_id(emit.ctx.context_id.clone());
    let mut status = TaskStatus::with_timestamp(state);
    status.message = Some(message);
    let update = TaskStatusUpdateEvent {
        task_id: emit.ctx.task_id.clone(),
        context_id: ContextId::new(emit.ctx.context_id.clone()),
        status,
        metadata: None,
    };
    emit.queue.write(StreamResponse::StatusUpdate(update)).await
}

/// Works for that long; false if it was canceled. The SDK publishes the cancellation itself.
async fn work(emit: &EventEmitter<'_>, milliseconds: u64) -> bool {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(milliseconds)) => true,
        () = emit.ctx.cancellation_token.cancelled() => false,
    }
}

fn result(known: &str, text: &str) -> Part {
    match known {
        "tck-artifact-file" => {
            Part::raw("QSBmaWxlLgo=").with_filename("file.txt").with_media_type("text/plain")
        }
        "tck-artifact-file-url" => {
            Part::url("https://example.com/file.txt").with_filename("file.txt").with_media_type("text/plain")
        }
        "tck-artifact-data" => {
            Part::data(json!({"laps": 4, "dropped": false})).with_media_type("application/json")
        }
        _ => Part::text(format!("You said: {text}")),
    }
}

fn card(url: &str, name: &str) -> AgentCard {
    let skill = |id: &str, example: &str| {
        AgentSkill::new(id, id, "A skill for tests.").with_tags(["test"]).with_examples([example])
    };
    let modes = ["text/plain", "application/json"];
    let bearer =
        HttpAuthSecurityScheme { description: None, scheme: "bearer".to_owned(), bearer_format: None };
    let needed = HashMap::from([("bearer".to_owned(), StringList { list: Vec::new() })]);
    AgentCard::new(name, "1.0.0", AgentInterface::jsonrpc(format!("{url}/rpc")))
        .with_interface(AgentInterface::rest(url))
        .with_description("Does what conformance tests ask for.")
        .with_input_modes(modes)
        .with_output_modes(modes)
        .with_capabilities(
            AgentCapabilities::none()
                .with_streaming(true)
                .with_push_notifications(true)
                .with_extended_agent_card(true),
        )
        .with_security_schemes(HashMap::from([("bearer".to_owned(), SecurityScheme::Http(bearer))]))
        .with_security_requirements(vec![SecurityRequirement { schemes: needed }])
        .with_skill(skill("phrases", "tck-complete-task"))
        .with_skill(skill("echo", "hello"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("give the port")?.parse()?;
    let url = format!("http://127.0.0.1:{port}");
    let handler = RequestHandlerBuilder::new(Phrases)
        .with_agent_card(card(&url, "a2a-protocol-sdk 0.15.0"))
        .with_extended_agent_card(card(&url, "a2a-protocol-sdk 0.15.0, for users"))
        .with_interceptor(BearerTokenAuthInterceptor::with_labelled_tokens(TOKENS))
        // Webhooks of tests are on this machine.
        .with_push_sender(HttpPushSender::new().allow_private_urls())
        .build()?;
    let dispatcher = CombinedDispatcher::new(Arc::new(handler)).with_jsonrpc_path("/rpc")?;
    serve(format!("127.0.0.1:{port}"), dispatcher).await?;
    Ok(())
}
