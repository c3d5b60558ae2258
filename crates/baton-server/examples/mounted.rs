//! An agent inside an application of one's own, below a path: `cargo run -p baton-server --example mounted`.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use baton_server::{AgentError, Server, StartError, Turn};

/// Counts the seconds up to the number it is given.
async fn count(turn: Turn) -> Result<(), AgentError> {
    let most: u32 = turn.text().trim().parse()?;
    for number in 1..=most {
        turn.sleep(Duration::from_secs(1)).await?;
        turn.progress(number.to_string()).await?;
    }
    turn.complete_with(format!("{most} seconds")).await
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(&address).await.map_err(StartError::Listen)?;

    let agent = Server::agent("counter", "Counts seconds", count).build().await?;
    let app =
        Router::new().route("/", get(|| async { "My own page\n" })).nest("/agents/counter", agent.router());

    // Serves both and stops both: an event stream that is open at Ctrl-C is closed, not waited for.
    let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    agent.serve_app_until(app, listener, stop).await
}
