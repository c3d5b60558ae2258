//! An agent that asks back: `cargo run -p baton-server --example ask`.

use baton_server::{AgentError, Server, StartError, Turn};

/// One turn: the answers come while it waits.
async fn book(turn: Turn) -> Result<(), AgentError> {
    let city = turn.ask("Where do you want to go?").await?.text();
    let mut answer = turn.ask(format!("How many of you go to {city}?")).await?;
    let people: u32 = loop {
        match answer.text().trim().parse() {
            Ok(0) => return turn.reject("I book for people only").await,
            Ok(people) => break people,
            Err(_) => answer = turn.ask("That is no number. How many?").await?,
        }
    };
    turn.progress(format!("Booking {people} seats to {city}")).await?;
    turn.text_artifact("ticket", format!("{people} to {city}")).await?;
    turn.complete_with("Have a good trip!").await
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    Server::agent("booking", "Books trips", book).build().await?.serve(address).await
}
