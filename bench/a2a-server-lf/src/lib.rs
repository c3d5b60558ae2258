//! The echo agent on `a2a-server-lf` as published, with its in-memory store. With `PUSH=1` it takes webhooks, on this machine
//! too.

use std::process::ExitCode;
use std::sync::Arc;

use a2a::{
    A2AError, AgentCapabilities, Artifact, Part, StreamResponse, TaskArtifactUpdateEvent, TaskState,
    TaskStatus, TaskStatusUpdateEvent,
};
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, HttpPushSender, HttpPushSenderConfig,
    InMemoryPushConfigStore, InMemoryTaskStore, RequestHandler,
};
use axum::serve::ListenerExt;
use bench_host::{Heap, Host};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

const CHUNKS: usize = 1000;

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

async fn serve(host: Host) -> Result<(), String> {
    let handler = handler();
    let listener = tokio::net::TcpListener::bind(host.address()).await.map_err(|error| error.to_string())?;
    // Without it, Nagle's algorithm delays every stream by 44 ms; the SDK's documentation says to set it.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    let router = jsonrpc_router(Arc::new(handler));
    let served = tokio::spawn(async move { axum::serve(listener, router).await }).await;
    served.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// What answers requests, whatever they come by.
pub fn handler() -> impl RequestHandler {
    let capabilities = AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() };
    let handler = DefaultRequestHandler::new(Echo, InMemoryTaskStore::new()).with_capabilities(capabilities);
    if std::env::var_os("PUSH").is_none() {
        return handler;
    }
    // Without its guard, which refuses every address of this machine.
    let config = HttpPushSenderConfig { validate_urls: false, ..HttpPushSenderConfig::default() };
    handler.with_push_notifications(InMemoryPushConfigStore::new(), HttpPushSender::new(Some(config)))
}

struct Echo;

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

#[async_trait::async_trait]
impl AgentExecutor for Echo {
    fn execute(&self, context: ExecutorContext) -> Events {
        let text = context.message.as_ref().and_then(|message| message.text()).unwrap_or_default().to_owned();
        let working = status(&context, TaskState::Working);
        let completed = status(&context, TaskState::Completed);
        match text.as_str() {
            "hold" => stream::iter([Ok(working)]).chain(stream::pending()).boxed(),
            "burst" => {
                let chunks = (0..CHUNKS).map(move |chunk| Ok(piece(&context, chunk)));
                stream::iter([Ok(working)])
                    .chain(stream::iter(chunks))
                    .chain(stream::iter([Ok(completed)]))
                    .boxed()
            }
            "steps" => {
                let step = working.clone();
                stream::iter([Ok(working)])
                    .chain(stream::repeat_with(move || Ok(step.clone())).take(CHUNKS))
                    .chain(stream::iter([Ok(completed)]))
                    .boxed()
            }
            _ => {
                let artifact = artifact(&context, a2a::new_artifact_id(), "echo", text, None, Some(true));
                stream::iter([Ok(working), Ok(artifact), Ok(completed)]).boxed()
            }
        }
    }

    fn cancel(&self, context: ExecutorContext) -> Events {
        stream::iter([Ok(status(&context, TaskState::Canceled))]).boxed()
    }
}

fn status(context: &ExecutorContext, state: TaskState) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: context.task_id.clone(),
        context_id: context.context_id.clone(),
        status: TaskStatus { state, message: None, timestamp: Some(chrono::Utc::now()) },
        metadata: None,
    })
}

fn piece(context: &ExecutorContext, chunk: usize) -> StreamResponse {
    let text = "chunk of text ".to_owned();
    artifact(context, "burst".to_owned(), "burst", text, Some(chunk > 0), Some(chunk + 1 == CHUNKS))
}

fn artifact(
    context: &ExecutorContext,
    id: String,
    name: &str,
    text: String,
    append: Option<bool>,
    last_chunk: Option<bool>,
) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: context.task_id.clone(),
        context_id: context.context_id.clone(),
        artifact: Artifact {
            artifact_id: id,
            name: Some(name.to_owned()),
            description: None,
            parts: vec![Part::text(text)],
            metadata: None,
            extensions: None,
        },
        append,
        last_chunk,
        metadata: None,
    })
}
