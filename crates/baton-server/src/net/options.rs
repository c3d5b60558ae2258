//! What can be set about connections. Every bound is here, with its default; `docs/connections.md` gives the reasons.

use std::time::Duration;

/// Bounds on connections, and on how long a client may take.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Connections {
    /// How long a new connection may be silent.
    pub first_byte: Duration,
    /// How long the head of a request may take from its first byte on; in HTTP/2, any frame but DATA.
    pub head: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// How long the body of a request may take in all. Time in which the server does not read is not counted.
    pub body_total: Duration,
    /// How long a body may dawdle before its rate counts.
    pub body_grace: Duration,
    /// Bytes per second that a body must bring on average, once the grace is over.
    pub body_rate: u64,
    /// A reader that takes no byte of an answer for so long is cut off: its connection, or in HTTP/2 its stream.
    pub reader_stall: Duration,
    /// Connections at once. Beyond it the one that has been quiet longest makes room; when all are at work the
    /// newcomer is told to come back (503). Each needs a file descriptor: keep it well below the process's limit.
    pub max_connections: usize,
    /// Connections at once from one address, or one /64 network in IPv6; beyond it 429. Addresses of this machine and
    /// of trusted proxies are not counted.
    pub max_per_address: usize,
    /// Event streams at once, of everybody together; beyond it 503.
    pub max_streams: usize,
    /// Event streams at once of one caller; beyond it 429. The callers of a server without authentication are all
    /// `anonymous`, and not counted here.
    pub max_streams_per_owner: usize,
    /// Bytes of requests' bodies on their way at once, of everybody together; beyond it 503. What one body may have
    /// is each agent's own limit.
    pub max_bodies_bytes: usize,
    /// Bytes of answers above 64 KiB that are in memory at once, of everybody together, until their readers have taken
    /// them. Beyond it an answer waits before it is made.
    pub max_answers_bytes: usize,
    /// The same of one HTTP/2 connection. In HTTP/1 there is one answer at a time.
    pub max_answers_per_connection: usize,
    /// How long a large answer may wait for room; then 503.
    pub room_wait: Duration,
    /// While large answers wait for room, a reader of one that takes less than 64 KiB for so long (a stream of HTTP/2: less
    /// than 8 KiB) is cut off, the longest stuck first.
    pub crowded_stall: Duration,
    /// Bytes that the kernel takes beyond what it may send to the client at the moment (`TCP_NOTSENT_LOWAT`, on Linux).
    pub max_unsent_bytes: u32,
    /// Largest head of an HTTP/1 request; beyond it 431. At least 8 KiB.
    pub max_head_bytes: usize,
    /// Largest list of headers of an HTTP/2 request; beyond it 431.
    pub max_header_list_bytes: u32,
    /// Requests at once on one HTTP/2 connection.
    pub max_concurrent_requests: u32,
    /// How much of an answer is kept for a reader that does not take it.
    pub write_buffer: usize,
    /// How long connections may finish what is under way after the drain.
    pub last_patience: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Connections {
            first_byte: Duration::from_secs(5),
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
            max_bodies_bytes: 256 * 1024 * 1024,
            max_answers_bytes: 64 * 1024 * 1024,
            max_answers_per_connection: 16 * 1024 * 1024,
            room_wait: Duration::from_secs(30),
            crowded_stall: Duration::from_secs(10),
            max_unsent_bytes: 32 * 1024,
            max_head_bytes: 32 * 1024,
            max_header_list_bytes: 16 * 1024,
            max_concurrent_requests: 128,
            write_buffer: 64 * 1024,
            last_patience: Duration::from_secs(5),
        }
    }
}

/// Which web pages may call the server from a browser. Without it, none may.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Cors {
    /// Origins such as `https://app.example`, or `*` for all. Pages are let in, not people: whoever must be
    /// authenticated still must.
    pub origins: Vec<String>,
}

impl Cors {
    /// These origins.
    pub fn of(origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Cors { origins: origins.into_iter().map(Into::into).collect() }
    }
}
