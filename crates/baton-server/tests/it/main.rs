//! Socket tests of the server library: a real listener, real requests, one file per rule.

// The lint allows `unwrap` in test functions, but not in the functions they share.
#![allow(clippy::unwrap_used)]

/// Agents the tests share.
mod agents;
/// Authenticators: one that takes the caller from a header, one that refuses everybody.
mod callers;
/// A store that fails or is slow where a test wants it to.
mod faults;
/// Stores that can be reopened, a clock set by the test, gates for agents.
mod fixtures;
/// HTTP/2 frame by frame.
mod frames;
mod harness;
/// A server that publishes keys and knows tokens, well or badly.
mod issuer;
/// Key pairs that sign tokens, right or wrong.
mod signers;
/// Requests that a proxy and a server could understand differently.
mod smuggling_corpus;
/// Requests byte by byte, for what no HTTP client would send.
mod socket;

/// Hostile bodies: deeply nested, with many members, long, compressed.
mod abuse;
/// Agents for tests that look at one server through several generations.
mod actors;
/// How many turns run, how many wait, and the error for the next one.
mod admission;
/// The allowed differences between generations, with reasons.
mod allowed;
/// One request in every generation and binding, for tables that compare them.
mod asking;
/// Authentication: who is refused, that it comes first, and that owners and tenants see nothing of each other.
mod auth;
/// Invalid values for each member of a send, by generation.
mod bad_values;
/// Every operation and every error in every generation and binding, or why not.
mod bindings_agree;
/// Cancel: the token, the grace time, and the race with the agent's own end.
mod cancel;
/// Operations that the card does not declare are refused; extensions that it requires must be requested.
mod capability;
/// A full server answers with an error and a time to retry.
mod capacity;
/// The public card: its path, its readers, and that its statements are true.
mod card;
/// One card in the form of each generation: caching, CORS, proxies, and URLs that work.
mod cards;
/// Unusual characters in every free-form member come back unchanged, in every generation.
mod characters;
/// How many connections and streams there may be, and the answer to the next one.
mod connection_caps;
/// Content types of requests and parts, and how much a body may hold.
mod content_type;
/// The crash rule: what happens to open tasks of a process that was killed or stopped.
mod crash;
/// A client that disconnects during a call does not stop its task.
mod disconnect;
/// Graceful stop: no new work, running calls finish, no client can delay it for ever.
mod drain;
/// The JSON-RPC envelope: invalid requests, and the id in every answer.
mod envelope;
/// Every error that can be provoked, in each generation and binding: codes, statuses, shapes.
mod error_rows;
/// The example programs of this crate, started and called as a client would.
mod examples;
/// A client for each generation and binding (a `Face`), with answers in one common form.
mod faces;
/// Stream readers that lag while their task's log is folded or their task is removed.
mod folded_meanwhile;
/// A full store: writes are refused, reads work, and running turns end when there is space again.
mod full_store;
/// GetTask: how much history, and tasks that are not the caller's.
mod get;
/// gRPC: every operation of both services, and how calls are refused.
#[cfg(feature = "grpc")]
mod grpc;
/// A client of gRPC without our codec.
#[cfg(feature = "grpc")]
mod grpc_client;
/// Requests of HTTP+JSON, sent over gRPC, for tables that compare bindings.
#[cfg(feature = "grpc")]
mod grpc_gateway;
/// gRPC: deadlines, limits on messages, and requests that are framed wrongly.
#[cfg(feature = "grpc")]
mod grpc_limits;
/// gRPC byte by byte.
#[cfg(feature = "grpc")]
mod grpc_raw;
/// Health and reflection of gRPC.
#[cfg(feature = "grpc")]
mod grpc_services;
/// Streams over gRPC: how they end, are resumed, and read slowly.
#[cfg(feature = "grpc")]
mod grpc_streams;
/// Clients that close their sending side after the request: a call is answered, a stream ends.
mod half_close;
/// Two processes on one store leave each other's tasks alone.
mod holders;
/// Paths with `..`, escapes or excessive length are refused.
mod hostile_paths;
/// Which `Host` names the server accepts, and which web pages may call it.
mod hosts;
/// HTTP/2 on the same port, and clients that abuse it.
mod http2_floods;
/// HTTP/2 streams that are read slowly, and streams that are not read.
mod http2_readers;
/// The same message again: one task, one call, the same answer.
mod idempotency;
/// Task and context ids: who chooses them, which combinations are valid, which characters.
mod ids;
/// How many requests of one caller are under way, also behind a proxy whose connections all share.
mod in_flight;
/// Tokens that only their issuer can read: what it is asked, and which answers are believed.
mod introspection;
/// The matrix of operations, callers and what they name: what another owner has is answered like what nobody has.
mod isolation;
/// How its calls are written, and its rows.
mod isolation_requests;
/// Its server, its keys, and answers in which only ids and times are masked.
mod isolation_stage;
/// The keys of a token issuer: fetched seldom, kept while it is down, replaced.
mod jwt_keys;
/// JWTs with one fault each: the table of row S13.
mod jwt_table;
/// `tasks/get` and `tasks/cancel` in 0.1: histories, states that 0.1 lacks, no second cancel.
mod legacy_get_cancel;
/// `tasks/send`: the client chooses the task's id, and the answer does not wait for the turn.
mod legacy_send;
/// `tasks/sendSubscribe` and `tasks/resubscribe`: named events, a final one, and nothing after it.
mod legacy_stream;
/// How streams begin and close, what a send waits for, histories and contexts, in each generation and binding.
mod lifecycle_rows;
/// How much one message, one artifact and one task may hold.
mod limits;
/// ListTasks: filters and what a listed task holds.
mod list;
/// Agents tried from inside the process, without a socket.
mod local_client;
/// Hundreds of requests with one fault each: the right error, and nothing stored.
mod malformed;
/// The same for every generation and binding, and paths that lead nowhere.
mod malformed_generations;
/// Metrics: what is counted and who may read it; request ids and traces.
mod metrics;
/// A server inside another axum application: nested, merged, as a service.
mod mounted;
/// Conversations: questions and answers, messages to a busy task, whose turn it is.
mod multi_turn;
/// Acknowledged messages that the agent never took: they are in the history and marked, however the task ended.
mod not_taken;
/// Tokens of an identity provider at a whole server.
mod oidc;
/// Error texts use the member and method names of the caller's generation.
mod own_names;
/// What each owner may have and do: one at its limits costs another nothing.
mod owner_limits;
/// Listing page by page, and page tokens.
mod pages;
/// Basic, digest and the user of a trusted proxy, by clients that others wrote.
mod passwords;
/// Agents that share the turn limits of one server and have limits of their own.
mod places_shared;
/// `/healthz` and `/readyz`: public, one word, cheap.
mod probes;
/// Webhooks: every event arrives, once and in order, in the form of the generation that asked for it.
mod push;
/// What an operator sees of webhooks and does about them.
mod push_admin;
/// Deliveries that are overtaken: webhooks that are removed meanwhile, panics, a store that fails.
mod push_jobs;
/// Webhooks whose calls carry a JWT, and the keys that verify it.
mod push_jwt;
/// Webhooks of a task, page by page.
mod push_pages;
/// Events that fail again and again, and webhooks whose message is repeated.
mod push_repeats;
/// Tokens and credentials of webhooks in the store.
mod push_secrets;
/// Receivers that hang, drip, reset and lie, beside one that is well.
mod push_sinks;
/// The Rust code in the README.
mod readme;
/// Refusals for lack of room, of a quota or of a rate, in every generation and binding.
mod refusal_rows;
/// Cards and limits that are replaced while the server serves.
mod replaced;
/// HTTP+JSON: every route, methods, media types, versions.
mod rest;
/// HTTP+JSON: query parameters, error texts, body limits.
mod rest_query;
/// `Last-Event-ID`: a stream continues after the reader's last event.
mod resume;
/// Resume, repeats, lists and cancel across generations, and after a restart.
mod resume_generations;
/// How long tasks, their logs and their records are kept.
mod retention;
/// What a caller has open when its credential is revoked, changed or expires.
mod revoked;
/// Which skill a message is routed to, in every generation, and that a task stays with its skill.
mod routing;
/// A table of scenarios, run in every generation and binding.
mod scenario;
mod schemes;
/// Blocking and immediate sends: when they answer, and with what.
mod send;
/// Request metadata and accepted output modes reach the agent; output modes that no skill makes are refused.
mod send_details;
/// Several agents on one server: paths, tenants, separate cards, limits and tasks.
mod several_agents;
/// The JSON of each generation and binding, written by hand, and its common form.
mod shapes;
/// `tasks/get`, `tasks/cancel`, `tasks/resubscribe` exist in 0.1 and 0.3: header or task decide which is meant.
mod shared_names;
/// A slow client loses its connection.
mod slow_clients;
/// A reader that stops reading costs one buffer and is disconnected after a while.
mod slow_readers;
/// Request smuggling: an ambiguous request is refused, and nothing after it on the connection is served.
mod smuggling;
/// Hand-written requests of every generation and binding, and event streams read line by line.
mod speakers;
/// An agent that starts over after a crash: artifact changes of the previous attempt are undone.
mod start_over;
/// A fatal store error stops the server.
mod store_lost;
/// Event streams: their events, the order, and when they close.
mod stream;
/// Streams under load: many events, slow readers, large events, unusual characters.
mod stream_volume;
/// TLS on the server's own port, and client certificates as credentials.
mod tls;
/// Large answers share a memory limit: who waits for it, and whose connection is closed.
mod unread_answers;
/// The methods of `Turn` that agents call, and what a client sees of them.
mod verbs;
/// The protocol version in a request's header or query.
mod version;
/// Event streams with pauses, and later requests on their connections.
mod waiting_streams;
/// Calls do not hang when stores fail or agents are silent, late or wrong.
mod waits;
