//! An agent inside an application of one's own, below a path: `cargo run -p baton-server --example mounted`.

use axum::Router;
use axum::routing::get;
use baton_server::a2a::AgentSkill;
use baton_server::{AgentError, Asked, Server, card};

/// Answers with a message: no task, nothing to follow.
async fn shout(asked: Asked) -> Result<String, AgentError> {
    Ok(asked.text().to_uppercase())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(&address).await?;

    let card = card::read(r#"{"name": "Shouter", "description": "Shouts", "version": "1.0.0"}"#)?;
    let agent = Server::builder(card)
        .message_skill(AgentSkill::new("shout", "Shout", "Says it louder"), shout)
        .public_url(&format!("http://{}/agents/shouter", listener.local_addr()?))
        .build()
        .await?;

    let app =
        Router::new().route("/", get(|| async { "My own page\n" })).nest("/agents/shouter", agent.router());
    let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;
    agent.shut_down().await;
    Ok(())
}
