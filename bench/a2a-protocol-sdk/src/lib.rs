//! The echo agent on `a2a-protocol-sdk` as published. `STORE` is the URL of a SQLite database; without it the store is
//! in memory. With `GRPC=1` it is served over gRPC.

use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use a2a_protocol_sdk::prelude::*;
use a2a_protocol_sdk::server::{GrpcConfig, GrpcDispatcher};
use a2a_protocol_sdk::server::store::{SqliteTaskStore, TaskStoreConfig};
use bench_host::{Heap, Host};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

const CHUNKS: usize = 1000;

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

struct Echo;

agent_executor!(Echo, |context, queue| async {
    let emit = EventEmitter::new(context, queue);
    emit.status(TaskState::Working).await?;
    match context.message.text() {
        Some("hold") => std::future::pending::<()>().await,
        Some("burst") => {
            for chunk in 0..CHUNKS {
                let part = vec![Part::text("chunk of text ")];
                emit.artifact("burst", part, Some(chunk > 0), Some(chunk + 1 == CHUNKS)).await?;
            }
        }
        text => emit.artifact("echo", vec![Part::text(text.unwrap_or_default())], None, Some(true)).await?,
    }
    emit.status(TaskState::Completed).await
});

async fn serve(host: Host) -> Result<(), String> {
    let (address, port) = host.address();
    let interface = AgentInterface::jsonrpc(format!("http://{address}:{port}"));
    let mut card = AgentCard::new("echo", "1.0.0", interface)
        .with_description("Says what it was told")
        .with_skill(AgentSkill::new("echo", "Echo", "Echoes text").with_tags(["echo"]));
    card.capabilities.streaming = Some(true);
    // Limits above what the bench uses, as for Baton's agent.
    let mut builder =
        RequestHandlerBuilder::new(Echo).with_agent_card(card).with_max_concurrent_streams(100_000);
    if let Ok(url) = std::env::var("STORE") {
        builder = builder.with_task_store(durable(&url).await.map_err(|error| error.to_string())?);
    } else {
        builder = builder.with_task_store_config(TaskStoreConfig::default().with_max_capacity(None));
    }
    let handler = Arc::new(builder.build().map_err(|error| error.to_string())?);
    if std::env::var_os("GRPC").is_some() {
        let server = GrpcDispatcher::new(handler, GrpcConfig::default());
        let served = tokio::spawn(server.serve(format!("{address}:{port}"))).await;
        return served.map_err(|error| error.to_string())?.map_err(|error| error.to_string());
    }
    let served = tokio::spawn(a2a_protocol_sdk::server::serve(
        format!("{address}:{port}"),
        JsonRpcDispatcher::new(handler),
    ));
    served.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// The SDK's own pool has synchronous=NORMAL; all servers in that row use FULL.
async fn durable(url: &str) -> Result<SqliteTaskStore, sqlx::Error> {
    let options = SqliteConnectOptions::from_str(url)?
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await?;
    SqliteTaskStore::from_pool(pool).await
}
