//! Socket tests of the server library: a real listener, real requests, one file per rule.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// Agents the tests share.
mod agents;
/// Who calls: owners told by a header, and an authenticator that refuses everybody.
mod callers;
/// A store that fails, or dawdles, where a test wants it to.
mod faults;
/// HTTP/2 frame by frame.
mod frames;
mod harness;
/// Requests that two readers could understand differently.
mod smuggling_corpus;
/// Requests byte by byte, for what no HTTP client would send.
mod socket;
/// What test servers stand on: stores to open again, a clock set by hand, gates for agents.
mod stage;

/// Bodies made to hurt: deep, wide, long, packed.
mod abuse;
/// Agents for tests that look at one server through several generations.
mod actors;
/// How many turns run, how many wait, and what the next one is told.
mod admission;
/// What the generations may answer apart, and why.
mod allowed;
/// One request in every generation and binding, for tables that compare them.
mod asking;
/// Authentication: who is refused, before what, and what owners and tenants see of each other.
mod auth;
/// What the members of a send may not be, generation by generation.
mod bad_values;
/// Cancel: the token, the grace time, and the race with the agent's own end.
mod cancel;
/// What the card does not declare is refused; what it requires is asked for.
mod capability;
/// A full server says so, and when to come back.
mod capacity;
/// The public card: where it is, who may read it, and that it is true.
mod card;
/// One card, spelled for the generation that asks: caches, browsers, proxies, and URLs that answer.
mod cards;
/// Awkward characters in every free-form member come back as they were said, in every generation.
mod characters;
/// How many connections and streams there may be, and what the next one is told.
mod connection_caps;
/// Content types of requests and parts, and how much a body may hold.
mod content_type;
/// The crash rule: what a process that was killed or stopped leaves to the next.
mod crash;
/// Work outlives sockets: a client that hangs up in the middle of a call strands nothing.
mod disconnect;
/// A server that stops: nothing new, what is under way ends, nobody holds it up.
mod drain;
/// The JSON-RPC envelope: what is no request, and the id in every answer.
mod envelope;
/// Every error that can be provoked, in each generation and binding: codes, statuses, shapes.
mod error_rows;
/// The example programs of this crate, started and called as a client would.
mod examples;
/// The faces of one server, each of which says the same things in its own JSON.
mod faces;
/// Readers whose log is folded, or whose task is removed, while they are behind.
mod folded_meanwhile;
/// A store without room: writes are refused, reads go on, and running turns end when there is room again.
mod full_store;
/// GetTask: how much history, and tasks that are not the caller's.
mod get;
/// Clients that close their own side when they have asked: a call is answered, a stream ends.
mod half_close;
/// Paths that climb, hide or overflow lead nowhere.
mod hostile_paths;
/// Which names the server goes by, and which web pages may call it.
mod hosts;
/// HTTP/2 on the same port, and clients that abuse it.
mod http2_floods;
/// HTTP/2 streams that are read slowly, and streams that are not read.
mod http2_readers;
/// The same message again: one task, one call, the same answer.
mod idempotency;
/// Task and context ids: who makes them, which go together, what they may hold.
mod ids;
/// `tasks/get` and `tasks/cancel` of the legacy face: histories, older words for newer states, no second cancel.
mod legacy_get_cancel;
/// `tasks/send`: the client names the task, and the answer comes at once.
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
/// What the server counts about itself, who may read it, and what requests are known by.
mod metrics;
/// A server inside an application of one's own: nested, merged, as a service.
mod mounted;
/// Conversations: questions and answers, messages to a busy task, whose turn it is.
mod multi_turn;
/// Messages that were acknowledged and never taken: in the history, marked, however their task ended.
mod not_taken;
/// Error texts name members and methods as the caller's generation does.
mod own_names;
/// Walking a list page by page, and the tokens that lead on.
mod pages;
/// Agents that share the places of one server, with caps of their own.
mod places_shared;
/// `/healthz` and `/readyz`: for everybody, in one word, and cheap to ask.
mod probes;
/// The README's Rust.
mod readme;
/// Cards and limits that are replaced while the server serves.
mod replaced;
/// HTTP+JSON: every route, methods, media types, versions.
mod rest;
/// HTTP+JSON: query parameters, what errors say, how much a body may hold.
mod rest_query;
/// `Last-Event-ID`: a stream goes on where its reader left off.
mod resume;
/// Resume, repeats, lists and cancel across generations, and after a restart.
mod resume_generations;
/// How long tasks, their logs and their records are kept.
mod retention;
/// Which skill a message finds, in every generation, and that a task stays with it.
mod routing;
/// One table of scenarios through every generation and binding, and the differences allowed.
mod scenario;
/// Blocking and immediate sends: when they answer, and with what.
mod send;
/// What a send says beside its message: it reaches the agent, and output modes that do not fit are refused.
mod send_details;
/// Several agents on one server: paths, tenants, separate cards, limits and tasks.
mod several_agents;
/// How each face spells what, by hand.
mod shapes;
/// `tasks/get`, `tasks/cancel`, `tasks/resubscribe`: names of two generations, told by header or birth.
mod shared_names;
/// A client that takes its time does not keep a connection.
mod slow_clients;
/// A reader that takes nothing costs one buffer, and is cut off after a while.
mod slow_readers;
/// What could be taken for two requests is refused, and nothing behind it is served.
mod smuggling;
/// Requests of every generation and binding, spelled by hand, and event streams read line by line.
mod speakers;
/// An agent that begins anew after a crash: what the attempt before made of the artifacts is undone.
mod start_over;
/// A store that has failed for good ends the server.
mod store_lost;
/// Event streams: what comes, in which order, and when they close.
mod stream;
/// Streams under load: many events, slow readers, large events, awkward characters.
mod stream_volume;
/// Large answers share a room: who waits for it, who makes way.
mod unread_answers;
/// What an agent can read and say, and what a client sees of it.
mod verbs;
/// The protocol version a request names, in its header or its query.
mod version;
/// Event streams with pauses, and what follows them on their connections.
mod waiting_streams;
/// Nothing hangs: stores that fail, agents that are silent, late or wrong.
mod waits;
