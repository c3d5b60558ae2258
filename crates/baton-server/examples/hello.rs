//! The shortest agent: `cargo run -p baton-server --example hello`.

use baton_server::{AgentError, Server, StartError, Turn};

async fn hello(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    Server::agent("hello", "Greets whoever writes", hello).build().await?.serve("127.0.0.1:3000").await
}
