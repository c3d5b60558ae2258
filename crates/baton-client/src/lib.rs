//! Talks to any A2A (Agent2Agent) agent: protocol 1.0, 0.3 and 0.1, by JSON-RPC, HTTP+JSON and gRPC (feature `grpc`, on by
//! default).
//!
//! # A message and its answer
//!
//! ```
//! # async fn hello(turn: baton_server::Turn) -> Result<(), baton_server::AgentError> {
//! #     turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await
//! # }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = baton_server::Server::agent("hello", "Greets whoever writes", hello).build().await?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(server.serve_until(listener, std::future::pending()));
//! use baton_client::Client;
//!
//! let client = Client::connect(&url).await?;
//! let answered = client.send("world").await?;
//! let task = answered.task().ok_or("the agent answered with a message")?;
//! assert_eq!(task.artifacts[0].name.as_deref(), Some("greeting"));
//!
//! let again = client.get(&task.id).await?;
//! assert!(again.status.state.is_terminal());
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! An agent is named by its address (`https://agent.example`, `localhost:3000`), by the address of its card, or by a file
//! with its card. The card's first interface that is understood is used, unless [`Builder::bindings`] or
//! [`Builder::versions`] choose another; if it cannot be reached, the next one is.
//!
//! # Events as they happen
//!
//! ```
//! # async fn poet(turn: baton_server::Turn) -> Result<(), baton_server::AgentError> {
//! #     let mut stream = turn.stream_text("poem");
//! #     for word in ["Roses ", "are ", "red"] { stream.write(word).await?; }
//! #     stream.finish().await
//! # }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = baton_server::Server::agent("poet", "Writes poems", poet).build().await?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(server.serve_until(listener, std::future::pending()));
//! use baton_client::protocol::wire::StreamItem;
//! use baton_client::{Client, Ending};
//!
//! let client = Client::connect(&url).await?;
//! let mut events = client.stream("a poem, please").await?;
//! while let Some(event) = events.next().await {
//!     match event?.item {
//!         StreamItem::Status { update, .. } => eprintln!("now {:?}", update.state),
//!         StreamItem::Artifact { update, .. } => eprintln!("{:?}", update.artifact.parts),
//!         StreamItem::Task(_) | StreamItem::Message(_) => {}
//!     }
//! }
//! assert_eq!(events.ending(), Some(Ending::Terminal));
//! let task = events.task().expect("a poem is a task");
//! assert_eq!(task.artifacts.len(), 1);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! [`EventStream::task`] is what the events add up to. A lost connection is taken up again: behind the last event if the
//! agent numbers its events, else with the task as it is then; an agent that cannot be subscribed to is asked for the task
//! again and again, and so is one whose stream is silent for too long. Events come once each. [`EventStream::ending`] tells a
//! stream that ended from one that failed, whose last item is an error. [`Reconnects`] sets how long it tries.
//!
//! An [`EventStream`] is a `Stream`, too, and goes on although its caller looks at something else in between:
//!
//! ```
//! # async fn poet(turn: baton_server::Turn) -> Result<(), baton_server::AgentError> {
//! #     let mut stream = turn.stream_text("poem");
//! #     for word in ["Roses ", "are ", "red"] { stream.write(word).await?; }
//! #     stream.finish().await
//! # }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = baton_server::Server::agent("poet", "Writes poems", poet).build().await?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(server.serve_until(listener, std::future::pending()));
//! use futures_util::{StreamExt as _, TryStreamExt as _};
//!
//! let client = baton_client::Client::connect(&url).await?;
//! let mut events = client.stream("a poem, please").await?;
//! let seen: Vec<_> = events.by_ref().try_filter_map(async |event| Ok(event.id)).try_collect().await?;
//! assert!(!seen.is_empty());
//! assert!(events.task().is_some() && events.ending().is_some());
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! A state that this library does not know (`TASK_STATE_UNSPECIFIED`, or one of a later version) is neither an end nor a
//! question: the task counts as working, waits go on, and the name is in [`StreamEvent::unknown_state`] and
//! [`TaskPages::unknown_states`].
//!
//! # A conversation
//!
//! ```
//! # async fn book(turn: baton_server::Turn) -> Result<(), baton_server::AgentError> {
//! #     let city = turn.ask("Where to?").await?.text();
//! #     turn.text_artifact("ticket", city).await
//! # }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = baton_server::Server::agent("booking", "Books trips", book).build().await?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(server.serve_until(listener, std::future::pending()));
//! use baton_client::protocol::domain::{Part, TaskState};
//! use baton_client::{Client, message};
//!
//! let client = Client::connect(&url).await?;
//! let asked = client.send("a ticket").await?;
//! let task = asked.task().ok_or("no task")?;
//! assert_eq!(task.status.state, TaskState::InputRequired);
//!
//! let mut answer = message(vec![Part::text("Rome")]);
//! answer.task_id = Some(task.id.clone());
//! let done = client.send(answer).await?;
//! assert_eq!(done.task().ok_or("no task")?.status.state, TaskState::Completed);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! A message with everything that can go with it is a
//! [`SendMessage`](protocol::operation::SendMessage): it may return at once, name a webhook, or ask for a part of the history.
//!
//! # Lists
//!
//! ```
//! # async fn hello(_: baton_server::Turn) -> Result<(), baton_server::AgentError> { Ok(()) }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = baton_server::Server::agent("hello", "Greets", hello).build().await?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(server.serve_until(listener, std::future::pending()));
//! use baton_client::Client;
//! use baton_client::protocol::operation::ListTasks;
//!
//! let client = Client::connect(&url).await?;
//! client.send("one").await?;
//! client.send("two").await?;
//! let mut tasks = client.tasks(ListTasks { page_size: Some(1), ..ListTasks::default() });
//! let mut count = 0;
//! while let Some(task) = tasks.next().await {
//!     task?;
//!     count += 1;
//! }
//! assert_eq!(count, 2);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Errors
//!
//! [`Error::Agent`] is an answer of the agent: its kind and its name in the specification are the same in every binding and
//! generation. [`Error::Transport`] is everything between: no connection, no trust, no answer in time, an answer that was cut
//! off, is too large or makes no sense. What the agent says is never to be trusted: texts may contain control characters.
//!
//! ```
//! # async fn hello(_: baton_server::Turn) -> Result<(), baton_server::AgentError> { Ok(()) }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = baton_server::Server::agent("hello", "Greets", hello).build().await?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(server.serve_until(listener, std::future::pending()));
//! use baton_client::protocol::domain::TaskId;
//! use baton_client::{Client, Error};
//!
//! let client = Client::connect(&url).await?;
//! match client.get(&TaskId::parse("no-such-task")?).await {
//!     Err(Error::Agent(error)) => assert_eq!(error.name(), Some("TaskNotFoundError")),
//!     other => panic!("{other:?}"),
//! }
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! What is sent again, and when, is in [`Retries`]; bounds and timeouts are in [`SizeLimits`] and [`Timeouts`]. Each begins with
//! its defaults:
//!
//! ```
//! let mut timeouts = baton_client::Timeouts::default();
//! timeouts.send = Some(std::time::Duration::from_secs(300));
//! let builder = baton_client::Client::builder().timeouts(timeouts);
//! ```
//!
//! # Credentials
//!
//! ```no_run
//! # async fn example() -> Result<(), baton_client::Error> {
//! use baton_client::{Client, Credential, OAuthClient, Origin};
//!
//! let by_token = Client::builder().bearer("token").connect("https://agent.example").await?;
//! let by_changing_token = Client::builder()
//!     .bearer_from(|| async { Ok::<_, std::io::Error>(std::fs::read_to_string("/run/token")?.trim().to_owned()) })
//!     .connect("https://agent.example")
//!     .await?;
//! let by_user = Client::builder().password("ann", "open sesame").connect("https://agent.example").await?;
//! let app = OAuthClient::new("my-app").secret("…").trust(Origin::parse("https://id.example")?);
//! let by_oauth = Client::builder().credential(Credential::OAuth(app)).connect("https://agent.example").await?;
//! # Ok(())
//! # }
//! ```
//!
//! The card says which of them the agent wants, and where. Credentials, and headers of one's own, go to the origin that was
//! given to `connect` and to no other, whatever the card lists; [`Builder::trust_origin`] allows more. Redirects of cards are
//! followed without them, calls are not redirected, and a card that came by https cannot lead to http.
//! [`Client::log_in`] runs the flows that need a user.
//!
//! [`Builder::verify_card`] checks the signatures of a card with keys that the user trusts.
//!
//! # Webhooks
//!
//! An agent can call a webhook when a task changes ([`Client::create_push_config`]). [`WebhookVerifier`] checks who calls, and
//! reads what is said, in the generation that the webhook was created in. [`WebhookKeys`] verify the calls of agents that sign
//! with a key of their own.
//!
//! The library reads no environment and no configuration: [`Proxies`] are given to it.

#![warn(missing_docs)]

mod address;
mod builder;
mod choose;
mod client;
mod credentials;
mod discover;
mod error;
mod http;
mod observe;
mod operations;
mod options;
mod origin;
mod outgoing;
mod page_tokens;
mod pages;
mod raw;
mod retry;
mod signature;
mod stream;
mod tls;
mod transport;
mod webhook;

pub use builder::Builder;
pub use choose::{Binding, Interface, NoInterface, Preference, choose};
pub use client::Client;
pub use credentials::oauth::{Flow, OAuthClient, Prompt, Token, TokenStore};
pub use credentials::{Credential, TokenProvider};
pub use discover::{CardCache, Discovered, Reference};
pub use error::{AgentError, CardError, Error, TransportError, TransportKind};
pub use observe::Observed;
pub use operations::{Answered, PushConfigPage};
pub use options::{Reconnects, Retries, SizeLimits, Timeouts};
pub use origin::Origin;
pub use outgoing::{Outgoing, message};
pub use page_tokens::{EndlessList, PageTokens};
pub use pages::TaskPages;
pub use raw::RawStream;
pub use signature::{CardKeys, CardTrust};
pub use stream::{Ending, EventStream, StreamEvent};
pub use tls::{Proxies, TlsOptions};
pub use webhook::{BadJwt, Notification, Webhook, WebhookError, WebhookKeys, WebhookVerifier};

/// The protocol's own types.
pub use baton_protocol as protocol;
