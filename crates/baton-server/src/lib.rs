//! Put an agent on the A2A (Agent2Agent) network: all generations of the protocol, JSON-RPC and HTTP+JSON, streams that
//! can be resumed, and tasks that survive a restart.
//!
//! # An agent in five lines
//!
//! ```no_run
//! use baton_server::{AgentError, Server, StartError, Turn};
//!
//! async fn hello(turn: Turn) -> Result<(), AgentError> {
//!     turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await
//! }
//!
//! # async fn serve() -> Result<(), StartError> {
//! let server = Server::agent("hello", "Greets whoever writes", hello).build().await?;
//! server.serve("127.0.0.1:3000").await
//! # }
//! ```
//!
//! Its card is at `/.well-known/agent-card.json`, JSON-RPC at `/`, HTTP+JSON at `/message:send` and so on. The folder
//! `examples` has more: `hello`, `ask`, `stream`, `mounted`, and `three_files`, a server with its card in a file.
//!
//! # Two kinds of agents
//!
//! | | works on tasks: [`Agent`] | answers: [`MessageAgent`] |
//! |---|---|---|
//! | is | `async fn(Turn) -> Result<(), AgentError>` | `async fn(Asked) -> Result<R, AgentError>`, `R` being text, parts, a message: whatever is [`Into<Content>`](Content) |
//! | the client gets | a task it can watch, answer, cancel and come back to | a message |
//! | an error | fails the task, with its text as the reason | is an error for the client |
//! | mounted by | [`Builder::task_skill`] | [`Builder::message_skill`] |
//!
//! Both may be closures, or types that implement the trait, and [`Server::agent`] takes either. Anything that is an error
//! becomes an [`AgentError`] by `?`.
//!
//! # What a turn can say
//!
//! A [`Turn`] is one message to a task and all that comes of it.
//!
//! | to say | write |
//! |---|---|
//! | working | `turn.progress("Half way").await?` |
//! | a message | `turn.say(content).await?` |
//! | a new artifact | `turn.text_artifact("notes", text).await?`, `turn.artifact_json("result", &value).await?`, `turn.artifact_file("a.csv", "text/csv", bytes).await?` |
//! | text as it comes | `let mut text = turn.stream_text("poem"); text.write(token).await?; text.finish().await?` |
//! | input required | `let answer = turn.ask("Which one?").await?`; or ask and return: the answer starts the next turn |
//! | auth required | `turn.require_auth("Sign in at …").await?` |
//! | completed | return `Ok(())`, or `turn.complete_with("Done").await` |
//! | failed | return an error, or `turn.fail("Why").await` |
//! | rejected | `turn.reject("Why").await` |
//!
//! What came in is `turn.text()`, `turn.data::<T>()?` (a data part as a type of your own), `turn.files()`,
//! `turn.message()`; `turn.task()` has what was said before, `turn.owner()` says who asks. When the client cancels or the
//! server stops, verbs and [`Turn::sleep`] return an error ([`AgentError::is_stop`]); `?` does the rest. What takes long
//! without a verb watches [`Turn::cancellation`].
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
//! A message that names no skill (`skillId` in its metadata) goes where its words lead, else to the default skill;
//! `docs/routing.md` has the rules. [`Builder::choose_skill`] replaces them.
//!
//! # Trying an agent
//!
//! A server need not listen. [`Server::send`] says something to its agent and gives the task or the message that comes of
//! it, [`Server::stream`] gives the events one by one, and [`Server::client`] can do the rest: answer questions, cancel,
//! call as somebody ([`LocalClient`]). All of it goes through the rules that clients on the network meet.
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
//! # Where tasks live
//!
//! In memory, unless [`Builder::store`] is given another store. [`store::sqlite`] keeps them in a file, and an answered
//! message survives a kill and a power cut:
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
//! A turn that a crash cut short is run again if the agent allows it ([`Agent::rerunnable`]), else its task fails with the
//! reason. Bounds are in [`engine::options`] and [`service::Limits`], and may change while the server serves
//! ([`Control`]).
//!
//! # In an application of one's own
//!
//! [`Server::router`] is an axum router, and a `tower` service. It may be nested or merged, and [`Server::serve_app`]
//! serves the whole: one listener, one stop.
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
//! The card says where the agent is found, by the request for it; [`Builder::public_url`] is the whole address where a
//! proxy stands before it. [`Server::serve_app_until`] stops both in the right order: a listener that waits for open
//! requests would wait for the last event stream, so an application that serves the router by other means calls
//! [`Server::shut_down`] *before* its listener stops ([`Server::router`] shows how).
//!
//! Several agents on one server are [`Mount`]s, given to [`Server::host`].
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (on) | tasks in a file; compiles SQLite from C |
//! | `postgres`, `redis` | stores that are prototypes so far, see `docs/stores.md` |
//! | `otel` | spans continue the caller's trace |
//!
//! # How it is built
//!
//! A request's path reads like the folders: `binding` → `service` → `engine` → `store`. A task is a log; replies and
//! streams are readers of it.

#![warn(missing_docs)]

pub mod a2a;
pub mod auth;
pub mod card;
pub mod engine;
#[doc(hidden)]
pub mod points;
pub mod service;
pub mod store;

mod binding;
mod control;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod local_client;
mod media;
mod mount;
mod net;
mod own_keys;
mod proxy;
mod server;
mod site;
mod telemetry;

pub use control::Control;
pub use engine::agent::{Agent, AgentError, Asked, IntoLogic, Logic, MessageAgent, Skill};
pub use engine::turn::{Question, Stopped, TextStream, Turn};
pub use engine::{Content, File, FileContent, InputError, NotJson, ReadMessage, Stop};
pub use local_client::{Answer, LocalClient, LocalStream};
pub use mount::{Mount, SkillEntry};
pub use net::{Connections, Cors};
pub use proxy::{BadRange, IpRange};
pub use server::{Builder, Server, StartError};
pub use telemetry::{MetricsAccess, OpenConnection, Telemetry};
