//! An agent on `a2a-server-lf`, as its examples show one: JSON-RPC and REST, with streams and webhooks.
//!
//! ```text
//! a2a_server_lf PORT
//! ```
//!
//! It knows the `tck-` phrases of the conformance tests, and it is open to everybody.

use std::sync::Arc;
use std::time::Duration;

use a2a::*;
use a2a_server::*;
use async_stream::stream;
use futures::stream::BoxStream;
use serde_json::json;
use tokio::time::sleep;

const STORY: [&str; 3] = ["One runner, ", "one baton, ", "one lap."];

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// Does what the first text of a task asks for; a text it does not know is echoed.
struct Phrases;

impl AgentExecutor for Phrases {
    fn execute(&self, ctx: ExecutorContext) -> Events {
        let message = ctx.message.clone().unwrap_or_else(|| Message::new(Role::User, Vec::new()));
        let text = message.text().unwrap_or_default().to_owned();
        let task = begun(&ctx, message);
        let first = task.history.iter().flatten().next().and_then(Message::text).unwrap_or(&text).to_owned();
        let is_follow_up = task.history.iter().flatten().filter(|said| said.role == Role::User).count() > 1;
        let ids = Ids { task: ctx.task_id, context: ctx.context_id };
        Box::pin(stream! {
            let known = if first.starts_with("tck-") { first.split_whitespace().next().unwrap_or_default() } else { "" };
            if known == "tck-message-response" {
                let mut reply = Message::new(Role::Agent, vec![Part::text("Just a message.")]);
                reply.context_id = Some(ids.context.clone());
                yield Ok(StreamResponse::Message(reply));
                return;
            }
            yield Ok(StreamResponse::Task(task));
            match known {
                "tck-reject-task" => yield Ok(ids.status(TaskState::Rejected, "Refused, as asked.")),
                "tck-task-failure" => yield Ok(ids.status(TaskState::Failed, "Failed, as asked.")),
                "tck-input-required" if !is_follow_up => {
                    yield Ok(ids.status(TaskState::InputRequired, "What is your name?"));
                }
                "tck-auth-required" if !is_follow_up => {
                    yield Ok(ids.status(TaskState::AuthRequired, "Sign in, then send a message."));
                }
                "tck-multi-turn" if !(is_follow_up && text == "done") => {
                    yield Ok(ids.status(TaskState::InputRequired, "Go on, or say done."));
                }
                "tck-cancel" => {
                    // The SDK stops listening to this stream once the task is canceled.
                    yield Ok(ids.status(TaskState::Working, "Waiting to be canceled."));
                    sleep(Duration::from_secs(60)).await;
                    yield Ok(ids.status(TaskState::Failed, "Nobody canceled."));
                }
                "tck-long-running" => {
                    yield Ok(ids.status(TaskState::Working, "This takes a while."));
                    sleep(Duration::from_secs(5)).await;
                    yield Ok(ids.artifact("result", Part::text("Here it is."), false, true));
                    yield Ok(ids.status(TaskState::Completed, "Done."));
                }
                "tck-stream-basic" => {
                    yield Ok(ids.status(TaskState::Working, "Working."));
                    sleep(Duration::from_millis(600)).await;
                    yield Ok(ids.artifact("result", Part::text("The result."), false, true));
                    sleep(Duration::from_millis(600)).await;
                    yield Ok(ids.status(TaskState::Completed, "Done."));
                }
                "tck-stream-chunked" => {
                    yield Ok(ids.status(TaskState::Working, "Once upon a time."));
                    for (place, chunk) in STORY.into_iter().enumerate() {
                        sleep(Duration::from_millis(200)).await;
                        yield Ok(ids.artifact("story", Part::text(chunk), place > 0, place + 1 == STORY.len()));
                    }
                    yield Ok(ids.status(TaskState::Completed, "Done."));
                }
                _ => {
                    yield Ok(ids.artifact("result", result(known, &text), false, true));
                    yield Ok(ids.status(TaskState::Completed, "Done."));
                }
            }
        })
    }

    fn cancel(&self, ctx: ExecutorContext) -> Events {
        let ids = Ids { task: ctx.task_id, context: ctx.context_id };
        Box::pin(futures::stream::once(async move { Ok(ids.status(TaskState::Canceled, "Canceled.")) }))
    }
}

/// The task at the beginning of a turn, including the message that started it.
fn begun(ctx: &ExecutorContext, message: Message) -> Task {
    let mut task = ctx.stored_task.clone().unwrap_or_else(|| Task {
        id: ctx.task_id.clone(),
        context_id: ctx.context_id.clone(),
        status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: None },
        artifacts: None,
        history: None,
        metadata: None,
    });
    // The SDK adds it by itself for a send, but not for a stream.
    let history = task.history.get_or_insert_with(Vec::new);
    if !history.iter().any(|said| said.message_id == message.message_id) {
        history.push(message);
    }
    task
}

struct Ids {
    task: String,
    context: String,
}

impl Ids {
    fn status(&self, state: TaskState, words: &str) -> StreamResponse {
        let mut message = Message::new(Role::Agent, vec![Part::text(words)]);
        message.task_id = Some(self.task.clone());
        message.context_id = Some(self.context.clone());
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            status: TaskStatus { state, message: Some(message), timestamp: None },
            metadata: None,
        })
    }

    fn artifact(&self, id: &str, part: Part, append: bool, last_chunk: bool) -> StreamResponse {
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            artifact: Artifact {
                artifact_id: id.to_owned(),
                name: Some("result".to_owned()),
                description: None,
                parts: vec![part],
                metadata: None,
                extensions: None,
            },
            append: Some(append),
            last_chunk: Some(last_chunk),
            metadata: None,
        })
    }
}

fn result(known: &str, text: &str) -> Part {
    match known {
        "tck-artifact-file" => {
            Part::raw(b"A file.\n".to_vec()).with_filename("file.txt").with_media_type("text/plain")
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

fn modes() -> Vec<String> {
    vec!["text/plain".to_owned(), "application/json".to_owned()]
}

fn card(url: &str) -> AgentCard {
    let skill = |id: &str, example: &str| AgentSkill {
        id: id.to_owned(),
        name: id.to_owned(),
        description: "A skill for tests.".to_owned(),
        tags: vec!["test".to_owned()],
        examples: Some(vec![example.to_owned()]),
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    };
    AgentCard {
        name: "a2a-server-lf 0.5.3".to_owned(),
        description: "Does what conformance tests ask for.".to_owned(),
        version: "1.0.0".to_owned(),
        supported_interfaces: vec![
            AgentInterface::new(format!("{url}/jsonrpc"), TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(format!("{url}/rest"), TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: capabilities(),
        default_input_modes: modes(),
        default_output_modes: modes(),
        skills: vec![skill("phrases", "tck-complete-task"), skill("echo", "hello")],
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}

fn capabilities() -> AgentCapabilities {
    AgentCapabilities {
        streaming: Some(true),
        push_notifications: Some(true),
        extensions: None,
        extended_agent_card: Some(false),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("give the port")?.parse()?;
    // Webhooks of tests are on this machine.
    let sender = HttpPushSender::new(Some(HttpPushSenderConfig { validate_urls: false, ..Default::default() }));
    let handler = Arc::new(
        DefaultRequestHandler::new(Phrases, InMemoryTaskStore::new())
            .with_push_notifications(InMemoryPushConfigStore::new(), sender)
            .with_capabilities(capabilities())
            .with_default_input_modes(modes()),
    );
    let producer = Arc::new(StaticAgentCard::new(card(&format!("http://127.0.0.1:{port}"))));
    let app = axum::Router::new()
        .nest("/jsonrpc", a2a_server::jsonrpc::jsonrpc_router(handler.clone()))
        .nest("/rest", a2a_server::rest::rest_router(handler))
        .merge(a2a_server::agent_card::agent_card_router(producer));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, app).await?;
    Ok(())
}
