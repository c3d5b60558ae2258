//! Put an agent on the A2A (Agent2Agent) network: all generations of the protocol, JSON-RPC, HTTP+JSON and gRPC, streams that
//! can be resumed, and tasks that survive a restart.
//!
//! # In your `Cargo.toml`
//!
//! The crates are not on crates.io yet. With a clone of the repository beside your project:
//!
//! ```toml
//! [dependencies]
//! baton-server = { path = "../baton/crates/baton-server" }
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! # Only for `turn.data()` and `turn.artifact_json()`, and for a router of your own:
//! serde = { version = "1", features = ["derive"] }
//! axum = "0.8"
//! ```
//!
//! # The shortest agent
//!
//! ```no_run
//! use baton_server::{AgentError, Server, StartError, Turn};
//!
//! async fn hello(turn: Turn) -> Result<(), AgentError> {
//!     turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), StartError> {
//!     let server = Server::agent("hello", "Greets whoever writes", hello).build().await?;
//!     server.serve("127.0.0.1:3000").await
//! }
//! ```
//!
//! Its card is at `/.well-known/agent-card.json`, JSON-RPC at `/`, HTTP+JSON at `/message:send` and so on. The folder
//! `examples` has more: `hello`, `ask`, `stream`, `mounted`, and `three_files`, a server with its card in a file.
//!
//! # Two kinds of agents
//!
//! | | works on tasks: [`Agent`] | answers: [`MessageAgent`] |
//! |---|---|---|
//! | you write | `async fn(Turn) -> Result<(), AgentError>` | `async fn(Asked) -> Result<R, AgentError>`, where `R` is text, parts or a message (anything that is [`Into<Content>`](Content)) |
//! | the client gets | a task that it can watch, answer, cancel and read again later | a message |
//! | an `Err` | fails the task, with the error's text as the reason | is sent to the client as an error |
//! | added by | [`Builder::task_skill`] | [`Builder::message_skill`] |
//!
//! Either may also be a closure, or a type that implements the trait; [`Server::agent`] takes both kinds. `?` turns any error
//! type into an [`AgentError`].
//!
//! # What a turn can say
//!
//! A *turn* is one run of the agent: it begins with a message to a task and ends when the function returns. A [`Turn`] holds
//! the message, and its methods are what the agent can say:
//!
//! | state or content | write |
//! |---|---|
//! | working | `turn.progress("Half way").await?` |
//! | a message | `turn.say(content).await?` |
//! | a new artifact | `turn.text_artifact("notes", text).await?`, `turn.artifact_json("result", &value).await?`, `turn.artifact_file("a.csv", "text/csv", bytes).await?` |
//! | text as it comes | `let mut text = turn.stream_text("poem"); text.write(token).await?; text.finish().await?` |
//! | input required | `let answer = turn.ask("Which one?").await?`. An agent may also ask and return: then the answer starts a new turn |
//! | auth required | `turn.require_auth("Sign in at …").await?` |
//! | completed | return `Ok(())`, or `turn.complete_with("Done").await` |
//! | failed | return an error, or `turn.fail("Why").await` |
//! | rejected | `turn.reject("Why").await` |
//!
//! The message is read with `turn.text()`, `turn.data::<T>()?` (a data part as a type of your own), `turn.files()` and
//! `turn.message()`. `turn.task()` is the task so far, `turn.owner()` is the caller.
//!
//! When the client cancels or the server stops, these methods and [`Turn::sleep`] return an error
//! ([`AgentError::is_stop`]), so that `?` ends the agent. Long work that calls none of them should watch
//! [`Turn::cancellation`].
//!
//! ```
//! use baton_server::{AgentError, Turn};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Order { item: String, count: u32 }
//! #[derive(Serialize)]
//! struct Receipt { total: u32 }
//!
//! async fn shop(turn: Turn) -> Result<(), AgentError> {
//!     // Data of another shape fails the task: "message.parts[0].data.count: invalid type: …".
//!     let order: Order = turn.data()?;
//!     if order.count > 10 {
//!         let answer = turn.ask(format!("Really {} {}?", order.count, order.item)).await?;
//!         if answer.text() != "yes" {
//!             return turn.reject("Then not").await;
//!         }
//!     }
//!     turn.artifact_json("receipt", &Receipt { total: order.count * 3 }).await
//! }
//! # let _ = baton_server::Server::agent("shop", "Sells", shop);
//! ```
//!
//! # The card, and which skill gets a message
//!
//! [`card::read`] reads a card from the JSON of any generation; [`a2a::AgentCard`] is one made in code. The server fills in
//! its own addresses and, if the card lists no skills, the skills. It does not start with a card that declares something
//! the server does not have. Streaming is on unless a card made in code says `Some(false)`; a card that was read has to
//! declare it. A skill is given with its entry for the card, or by its id on the card:
//!
//! ```
//! # async fn start() -> Result<(), baton_server::StartError> {
//! use baton_server::{AgentError, Asked, Server, Turn, card};
//! # async fn translate(_: Turn) -> Result<(), AgentError> { Ok(()) }
//! # async fn help(_: Asked) -> Result<&'static str, AgentError> { Ok("") }
//!
//! let card = card::read(r#"{
//!     "name": "Translator", "description": "Translates", "version": "1.0.0", "capabilities": {"streaming": true},
//!     "skills": [
//!         {"id": "translate", "name": "Translate", "description": "Any text", "tags": ["translation"]},
//!         {"id": "help", "name": "Help", "description": "What it can do", "tags": ["help"]}
//!     ]
//! }"#)?;
//! let server = Server::builder(card)
//!     .task_skill("translate", translate)
//!     .message_skill("help", help)
//!     .default_skill("translate")
//!     .build()
//!     .await?;
//! # drop(server);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(start()).unwrap();
//! ```
//!
//! A message may name its skill (`skillId` in its metadata). Otherwise its words are compared with each skill's id, name,
//! tags and examples, and if none fits it goes to the default skill; `docs/routing.md` has the rules.
//! [`Builder::choose_skill`] replaces them.
//!
//! # Testing an agent
//!
//! A test needs no socket. [`Server::send`] sends a message to the agent and returns the task or the reply,
//! [`Server::stream`] returns the events one by one, and [`Server::client`] has the rest: answering questions, canceling,
//! calling as a given owner ([`LocalClient`]). The same rules apply as for clients on the network.
//!
//! ```
//! use baton_server::a2a::{StreamItem, TaskState};
//! use baton_server::{AgentError, Server, Turn};
//!
//! async fn hello(turn: Turn) -> Result<(), AgentError> {
//!     turn.progress("Thinking of a greeting").await?;
//!     turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await
//! }
//!
//! # /*
//! #[tokio::test]
//! # */
//! async fn it_greets() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::agent("hello", "Greets whoever writes", hello).build().await?;
//!
//!     let task = server.send("Baton").await?.into_task()?;
//!     assert_eq!(task.status.state, TaskState::Completed);
//!     assert_eq!(task.artifacts[0].name.as_deref(), Some("greeting"));
//!
//!     let mut stream = server.stream("Baton").await?;
//!     while let Some(event) = stream.next().await {
//!         if let StreamItem::Status { update, .. } = event? {
//!             assert_ne!(update.state, TaskState::Failed);
//!         }
//!     }
//!     Ok(())
//! }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(it_greets()).unwrap();
//! ```
//!
//! # Where tasks are kept
//!
//! In memory, unless [`Builder::store`] is given another store. [`store::sqlite`] keeps them in a file; every write that
//! was acknowledged survives `kill -9` and a power cut:
//!
//! ```no_run
//! # async fn start() -> Result<(), baton_server::StartError> {
//! # async fn hello(_: baton_server::Turn) -> Result<(), baton_server::AgentError> { Ok(()) }
//! use baton_server::Server;
//! use baton_server::store::sqlite::{Options, SqliteStore};
//!
//! let store = SqliteStore::open("data/tasks.db", Options::default())?;
//! let server = Server::agent("hello", "Greets whoever writes", hello).store(store).build().await?;
//! # server.serve("127.0.0.1:3000").await
//! # }
//! ```
//!
//! If the process ends while a turn is running, the next start runs the turn again if the agent allows it
//! ([`Agent::rerunnable`]); otherwise the task fails with the reason. Bounds are in [`Options`] (all agents)
//! and [`Limits`] (one agent); [`Control`] changes them while the server runs.
//!
//! Any other store implements [`store::Store`]. The example `own_store` is one, with its tests: the feature `store-suite`
//! has the cases that every store must pass.
//!
//! # Inside your own web application
//!
//! [`Server::router`] is an axum router, and so a `tower` service. It can be nested or merged into yours;
//! [`Server::serve_app`] then serves both on one listener and stops them together.
//!
//! ```no_run
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! use axum::{Router, routing::get};
//! use baton_server::{AgentError, Server, Turn};
//! # async fn hello(turn: Turn) -> Result<(), AgentError> { turn.text_artifact("a", "b").await }
//!
//! let agent = Server::agent("hello", "Greets", hello).build().await?;
//! let app = Router::new()
//!     .route("/", get(|| async { "my own page" }))
//!     .nest("/agents/hello", agent.router());
//! agent.serve_app(app, "127.0.0.1:3000").await?;
//! # Ok(())
//! # }
//! ```
//!
//! The address on the card is taken from the request that asks for it. Behind a proxy, give the agent's whole address with
//! [`Builder::public_url`].
//!
//! If you serve the router by other means, call [`Server::shut_down`] *before* your listener stops ([`Server::router`] shows
//! how): a listener waits for open requests, and event streams stay open until the agent's server has shut down.
//! [`Server::serve_app_until`] does that for you.
//!
//! Several agents on one server are [`Mount`]s, given to [`Server::host`].
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default) | the store that keeps tasks in a file; compiles SQLite from C |
//! | `jwt` (default) | bearer tokens that another server issues: [`auth::jwt`], [`auth::introspection`] |
//! | `card-signing` (default) | signs the cards: [`Builder::sign_cards`] |
//! | `master-key` (default) | encrypts the secrets that the server keeps in its store: [`Builder::master_key`] |
//! | `postgres`, `redis` | two more stores, prototypes so far; see `docs/stores.md` |
//! | `grpc` | gRPC on the server's port: `Builder::grpc` |
//! | `otel` | spans continue the caller's trace, and a task's later turns continue its own |
//! | `store-suite` | tests of the store contract (`store::suite`), for a store of your own; for test builds, adds proptest |
//!
//! # How it is built
//!
//! A request passes through the folders in this order: `binding` → `service` → `engine` → `store`. A task is a log, a
//! numbered list of events; replies and streams read it.

#![warn(missing_docs)]

pub mod a2a;
pub mod auth;
pub mod card;
#[doc(hidden)]
pub mod points;
pub mod store;
#[cfg(feature = "tls")]
pub mod tls;

mod binding;
mod control;
mod encoding;
mod engine;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(any(feature = "jwt", feature = "card-signing"))]
mod jwk;
mod local_client;
mod media;
mod mount;
mod net;
mod public_url;
mod push;
mod routing;
mod secrets;
mod server;
mod service;
mod site;
mod telemetry;
mod token_buckets;

/// For implementations of [`Agent`], [`MessageAgent`], [`store::Store`] and [`auth::Authenticator`].
pub use async_trait::async_trait;
pub use baton_net::{BadRange, BadSetting, Connections, Cors, IpRange, one_customer};
pub use control::Control;
pub use engine::agent::{
    Agent, AgentError, AnswersMessages, Asked, IntoLogic, Logic, MessageAgent, Skill, WorksOnTasks,
};
pub use engine::clock::Clock;
pub use engine::options::{Options, OwnerLimits, Retention};
pub use engine::turn::{Question, Stopped, TextStream, Turn};
pub use engine::{
    Content, File, FileContent, Health, InputError, Load, NOT_TAKEN, NotJson, ReadMessage, Stop, Swept,
};
pub use local_client::{Answer, LocalClient, LocalStream};
pub use mount::{Mount, MountError, SkillEntry};
pub use push::admin::{
    ReplayPage, Replayed, SwitchedOff, WebhookError, WebhookFilter, WebhookGroup, WebhookName, WebhookPage,
    WebhookStatus, Webhooks,
};
pub use push::options::PushOptions;
pub use secrets::SecretsError;
#[cfg(feature = "master-key")]
pub use secrets::{BadMasterKey, MasterKey, MasterKeys};
pub use server::{Builder, Server, StartError};
pub use service::Limits;
pub use telemetry::{MetricsAccess, OpenConnection, Telemetry};
