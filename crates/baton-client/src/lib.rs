//! Talks to any A2A (Agent2Agent) agent: protocol 1.0, 0.3 and 0.1, by JSON-RPC and HTTP+JSON.
#![warn(missing_docs)]

mod builder;
mod choose;
mod client;
mod credentials;
mod discover;
mod error;
mod http;
mod operations;
mod options;
mod origin;
mod outgoing;
mod pages;
mod retry;
mod stream;
mod tls;
mod transport;

pub use builder::Builder;
pub use choose::{Binding, Interface, NoInterface, Preference, choose};
pub use client::Client;
pub use credentials::Credential;
pub use credentials::oauth::{Flow, OAuthClient, Prompt, Token};
pub use discover::{CardCache, Discovered, Reference};
pub use error::{AgentError, CardError, Error, TransportError, TransportKind};
pub use operations::{Answered, PushConfigPage};
pub use options::{Reconnects, Retries, SizeLimits, Timeouts};
pub use origin::Origin;
pub use outgoing::{Outgoing, message};
pub use pages::TaskPages;
pub use stream::{Ending, EventStream, StreamEvent};
pub use tls::{Proxies, TlsOptions};

/// The protocol's own types.
pub use baton_protocol as protocol;
