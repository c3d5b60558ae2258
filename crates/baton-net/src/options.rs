//! All limits on connections, with their defaults; `docs/connections.md` gives the reasons.

use std::time::Duration;

/// Limits on connections, and on how long a client may take.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Connections {
    /// How long a new connection may take to send its first byte.
    pub first_byte: Duration,
    /// How long the TLS handshake may take from its first byte on.
    pub handshake: Duration,
    /// How long the head of a request may take from its first byte on; in HTTP/2, any frame except DATA.
    pub head: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// How long the body of a request may take in all. Time in which the server does not read is not counted.
    pub body_total: Duration,
    /// How long a body may take before `body_rate` applies.
    pub body_grace: Duration,
    /// Bytes per second that a body must bring on average after `body_grace`.
    pub body_rate: u64,
    /// A client that reads no byte of an answer for so long is cut off: its connection, or in HTTP/2 its stream.
    pub reader_stall: Duration,
    /// Connections at once. Beyond it the one that has been idle longest is closed; if none is idle, the new connection
    /// gets 503. Each needs a file descriptor: keep it well below the process's limit.
    pub max_connections: usize,
    /// Connections at once from one address, or one /64 network in IPv6; beyond it 429. Addresses of this machine and
    /// of trusted proxies are not counted.
    pub max_per_address: usize,
    /// Event streams at once, of all callers; beyond it 503. This and the next are enforced by the application: only it
    /// knows which requests ask for a stream, and who asks.
    pub max_streams: usize,
    /// Event streams at once of one caller; beyond it 429. Callers who are not authenticated are counted by address; those
    /// on this machine, or behind a proxy that does not forward their address, are not counted.
    pub max_streams_per_owner: usize,
    /// Requests under way at once of one caller, event streams included; beyond it 429. Never more than half of
    /// `max_connections`, so that no caller takes the connections of all, also from many addresses or behind a proxy. Callers
    /// who are not authenticated are counted by address; those on this machine, or behind a proxy that does not forward their
    /// address, are not counted. Who is counted is said by the application.
    pub max_requests_per_owner: usize,
    /// Bytes of all request bodies that are being received. Beyond it the customer that holds most gives way: its body that
    /// has brought nothing for the longest time gets 429. The size of one body is the application's to limit.
    pub max_bodies_bytes: usize,
    /// Bytes of all answers above 64 KiB that are in memory until their clients have read them; of one customer at most half
    /// of that. Beyond it an answer waits before it is made.
    pub max_answers_bytes: usize,
    /// The same of one customer on one HTTP/2 connection. In HTTP/1 there is one answer at a time.
    pub max_answers_per_connection: usize,
    /// How long a large answer may wait for room; then 503.
    pub room_wait: Duration,
    /// While large answers wait for room, a client that has read less than 64 KiB of one for so long (on an HTTP/2 stream:
    /// less than 8 KiB) is cut off: first those of the customer that holds most, and of these the longest stuck.
    pub crowded_stall: Duration,
    /// Bytes that the kernel buffers beyond those it can send to the client now (`TCP_NOTSENT_LOWAT`, on Linux).
    pub max_unsent_bytes: u32,
    /// Largest head of an HTTP/1 request; beyond it 431. At least 8 KiB.
    pub max_head_bytes: usize,
    /// Largest list of headers of an HTTP/2 request; beyond it 431.
    pub max_header_list_bytes: u32,
    /// Requests at once on one HTTP/2 connection.
    pub max_concurrent_requests: u32,
    /// The same on a connection of a trusted proxy, which sends the requests of many callers on it; of one caller at most half
    /// of that, beyond it 429.
    pub max_concurrent_requests_of_proxy: u32,
    /// How much of an answer is buffered for a client that does not read it.
    pub write_buffer: usize,
    /// How long connections may take to finish after the drain.
    pub last_patience: Duration,
    /// HTTP/2 frames without a request or data that may come at once; beyond it the connection is closed.
    pub flood_burst: u32,
    /// How many of them per second may come in the long run. Clients that measure their line by pings stay far below.
    pub flood_rate: u32,
    /// How long the rest of a refused HTTP/1 request is read and dropped before the socket is closed: a reset could discard
    /// the answer.
    pub linger: Duration,
    /// Bytes of it that are read at most.
    pub linger_bytes: usize,
}

impl Default for Connections {
    fn default() -> Self {
        Connections {
            first_byte: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            body_total: Duration::from_secs(30),
            body_grace: Duration::from_secs(5),
            body_rate: 1024,
            reader_stall: Duration::from_secs(5 * 60),
            max_connections: 10_000,
            max_per_address: 256,
            max_streams: 20_000,
            max_streams_per_owner: 100,
            max_requests_per_owner: 1_000,
            max_bodies_bytes: 128 * 1024 * 1024,
            max_answers_bytes: 64 * 1024 * 1024,
            max_answers_per_connection: 16 * 1024 * 1024,
            room_wait: Duration::from_secs(30),
            crowded_stall: Duration::from_secs(10),
            max_unsent_bytes: 32 * 1024,
            max_head_bytes: 32 * 1024,
            max_header_list_bytes: 16 * 1024,
            max_concurrent_requests: 128,
            max_concurrent_requests_of_proxy: 1_024,
            write_buffer: 64 * 1024,
            last_patience: Duration::from_secs(5),
            flood_burst: 2_000,
            flood_rate: 500,
            linger: Duration::from_secs(2),
            linger_bytes: 16 * 1024 * 1024,
        }
    }
}

/// Which web pages may call the server from a browser. Without it, none may.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Cors {
    /// Origins such as `https://app.example`, or `*` for all. This allows pages, not users: authentication is required as
    /// before.
    pub origins: Vec<String>,
}

impl Cors {
    /// These origins.
    pub fn of(origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Cors { origins: origins.into_iter().map(Into::into).collect() }
    }
}
