//! Baton's server library: the engine that runs tasks, the stores that keep them, the bindings that speak A2A.
//!
//! ```no_run
//! use baton_server::{AgentError, Server, StartError, Turn};
//!
//! async fn hello(turn: Turn) -> Result<(), AgentError> {
//!     turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await?;
//!     Ok(())
//! }
//!
//! # async fn serve() -> Result<(), StartError> {
//! let server = Server::agent("hello", "Greets whoever writes", hello).build().await?;
//! server.serve("127.0.0.1:3000").await
//! # }
//! ```
//!
//! A request's path reads like the folders: `binding` → `service` → `engine` → `store`.

pub mod a2a;
pub mod auth;
pub mod card;
pub mod engine;
pub mod service;
pub mod store;

mod binding;
mod control;
mod media;
mod mount;
mod net;
mod proxy;
mod server;
mod site;
mod telemetry;

pub use control::Control;
pub use engine::agent::{Agent, AgentError, Asked, Logic, MessageAgent, Skill};
pub use engine::turn::{Question, Stopped, TextStream, Turn};
pub use engine::{Content, File, FileContent, InputError, NotJson, ReadMessage, Stop};
pub use mount::{Mount, SkillEntry};
pub use net::{Connections, Cors};
pub use proxy::{BadRange, IpRange};
pub use server::{Builder, Server, StartError};
pub use telemetry::{MetricsAccess, OpenConnection, Telemetry};
