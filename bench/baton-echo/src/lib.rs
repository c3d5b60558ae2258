//! The echo agent on Baton: working, one text artifact, completed. `hold` stays working until the order `go`, `burst`
//! emits a thousand chunks, `steps` as many status updates. `STORE` is `memory:` (the default) or `sqlite:PATH`. `GUARD` is `key`, `jwt` or `tls`; what a
//! caller then needs is written to `GUARD_FILE`. With `PUSH=1` it takes webhooks, with `GRPC=1` calls of gRPC, if it was built for them.

mod guard;
mod push;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use baton_server::a2a::{Artifact, ArtifactId, Part, TaskState};
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::store::sqlite::{self, SqliteStore};
use baton_server::{AgentError, Server, Turn};
use baton_server::{Builder, Options};
use bench_host::{Heap, Host};

const CHUNKS: usize = 1000;

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

async fn serve(host: Host) -> Result<(), String> {
    let address = host.address();
    let agent = move |turn: Turn| {
        let host = host.clone();
        async move { echo(turn, host).await }
    };
    let server = Server::agent("echo", "Says what it was told", agent).options(options()?).store(store()?);
    let server = grpc(push::applied(guard::applied(server)?)?)?;
    let server = server.build().await.map_err(|error| error.to_string())?;
    // On a worker thread of the runtime, as the connections are.
    let served = tokio::spawn(server.serve(address)).await;
    served.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn grpc(server: Builder) -> Result<Builder, String> {
    if std::env::var_os("GRPC").is_none() {
        return Ok(server);
    }
    #[cfg(feature = "grpc")]
    return Ok(server.grpc());
    #[cfg(not(feature = "grpc"))]
    Err("GRPC is set: use baton-echo-grpc".to_owned())
}

async fn echo(turn: Turn, host: Host) -> Result<(), AgentError> {
    match turn.text().as_str() {
        "hold" => {
            tokio::select! {
                () = host.gone() => burst(&turn).await?,
                () = turn.cancellation().cancelled() => {}
            }
        }
        "burst" => burst(&turn).await?,
        "steps" => {
            for _ in 0..CHUNKS {
                turn.status(TaskState::Working, None).await?;
            }
        }
        text => turn.text_artifact("echo", text).await?,
    }
    Ok(())
}

async fn burst(turn: &Turn) -> Result<(), AgentError> {
    let id = ArtifactId::parse("burst").expect("a short word is an id");
    for chunk in 0..CHUNKS {
        let mut artifact = Artifact::new(id.clone(), vec![Part::text("chunk of text ")]);
        artifact.name = Some("burst".to_owned());
        turn.artifact_update(artifact, chunk > 0, chunk + 1 == CHUNKS).await?;
    }
    Ok(())
}

/// Limits above what the bench uses: thousands of held tasks at once. `FOLD_MS` is the age at which ended tasks are
/// folded.
fn options() -> Result<Options, String> {
    let mut options = Options::default();
    options.max_running = 100_000;
    options.retention.max_tasks = 10_000_000;
    if let Ok(fold) = std::env::var("FOLD_MS") {
        let fold = fold.parse().map_err(|_| format!("FOLD_MS is no number: {fold}"))?;
        options.retention.fold = Duration::from_millis(fold);
        options.retention.every = Duration::from_millis(fold.max(200));
    }
    Ok(options)
}

fn store() -> Result<Arc<dyn Store>, String> {
    let url = std::env::var("STORE").unwrap_or_else(|_| "memory:".to_owned());
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::new())),
        Some(("sqlite", path)) => {
            let opened = SqliteStore::open(Path::new(path), sqlite::Options::default());
            Ok(Arc::new(opened.map_err(|error| error.to_string())?))
        }
        _ => Err(format!("STORE is {url}; write memory: or sqlite:PATH")),
    }
}
