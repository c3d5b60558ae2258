//! The Rust code in the README, copied exactly: it compiles, and its assertions hold.

// `main` serves for ever, so it is compiled but not run.
#![allow(dead_code)]

use baton_server::store::sqlite::{Options, SqliteStore};
use baton_server::{AgentError, Server, StartError, Turn};

async fn hello(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let store = SqliteStore::open("data/tasks.db", Options::default())?;
    let server = Server::agent("hello", "Greets whoever writes", hello).store(store).build().await?;
    server.serve("127.0.0.1:3000").await
}

#[tokio::test]
async fn it_greets() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::agent("hello", "Greets whoever writes", hello).build().await?;
    assert_eq!(server.send("Baton").await?.text(), "Hello, Baton!");
    Ok(())
}

#[test]
fn p08_the_rust_in_the_readme_is_the_rust_in_this_file() {
    let (page, here) = (include_str!("../../../../README.md"), include_str!("readme.rs"));
    let blocks: Vec<_> =
        page.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(here.contains(block), "compiled nowhere:\n{block}");
    }
}
