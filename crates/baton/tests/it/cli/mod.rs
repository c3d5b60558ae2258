//! The client commands, as users and programs run them. Each test is named after the requirement of the CLI specification
//! that it shows (`A2ACLI_SEND_001` is `cli_send_001`).

/// Credentials: where they are sent, and where they never appear.
mod auth;
/// `baton bench`: what it measures and counts, with agents that are slow, stall, lose and repeat events.
mod bench;
/// Cards as files: made, checked, signed, verified and compared; and a server that signs its own.
mod card_files;
/// Cards: references, validation, versions and interfaces.
mod cards;
/// `baton chat` without a terminal.
mod chat;
/// The six defaults, each with its flag.
mod defaults;
/// Errors and exit statuses.
mod errors;
/// Agents that try to drive the terminal.
mod escapes;
/// What agents send is printed as it came.
mod fidelity;
/// gRPC: the commands by it, and where TLS is spoken.
mod grpc;
/// The help, completions, the skill and the demo server.
mod help;
/// Hostile servers: every command ends, with the right error, and with bounded memory.
#[cfg(target_os = "linux")]
mod hostile;
/// JSON and JSON Lines.
mod json;
/// The client commands, judged by the lab's scripted agents: correct, odd, broken and lying ones.
mod judged;
/// `baton listen`: a webhook that shows its calls.
mod listen;
/// The commands with any agent: here with the demo agent, in `cargo xtask interop` with those of other SDKs.
mod live;
/// Logging in with OAuth, and the tokens that are kept.
mod login;
/// Agents of the older versions.
mod older;
/// Agents that are silent, refuse, fail for a while or never end.
mod patience;
/// An agent that says what a test wants, and remembers what it was asked.
mod scripted;
/// Sending, waiting, streaming, going on.
mod send;
/// Flags, variables and files.
mod settings;
/// The text of every command, compared with stored files.
mod snapshots;
/// Tasks that exist.
mod tasks;
/// At a terminal.
mod terminal;
/// A user who types commands, and how they ended.
pub(crate) mod user;
/// Waiting: when to look, when to stop.
mod waiting;

use self::user::{Said, User};
use crate::served::baton;
