//! An agent that streams text as it comes into being: `cargo run -p baton-server --example stream`.

use std::time::Duration;

use baton_server::{AgentError, Server, StartError, Turn};

/// Stands for a language model: a word at a time, and not in a hurry.
async fn poet(turn: Turn) -> Result<(), AgentError> {
    let poem = format!("Roses are red, violets are blue, {} is fine, and so are you.", turn.text());
    let mut stream = turn.stream_text("poem");
    for word in poem.split_inclusive(' ') {
        stream.write(word).await?;
        // Ends early when the client cancels the task, or the server stops.
        turn.sleep(Duration::from_millis(50)).await?;
    }
    stream.finish().await
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    Server::agent("poet", "Writes poems", poet).build().await?.serve(address).await
}
