//! The shortest agent: `cargo run -p baton-server --example hello`.

use baton_server::{AgentError, Server, StartError, Turn};

async fn hello(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    Server::agent("hello", "Greets whoever writes", hello).build().await?.serve(address).await
}
