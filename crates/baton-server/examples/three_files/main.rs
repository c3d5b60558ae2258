//! A server in three small files: `card.json` says who the agent is, `agent.rs` what it does, and this one starts it.
//! `cargo run -p baton-server --example three_files`

mod agent;

use baton_server::{Server, StartError, card};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    Server::builder(card::read(include_str!("card.json"))?)
        .task_skill("roll", agent::roll)
        .message_skill("explain", agent::explain)
        .default_skill("roll")
        .build()
        .await?
        .serve(address)
        .await
}
