//! Bounds and timeouts, with their defaults. More may be added: begin with `default()` and change what should differ.

use std::time::Duration;

/// How long things may take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// For a connection, TLS included. Default: 10 seconds.
    pub connect: Duration,
    /// The longest silence in the middle of an answer or a stream; comments of a stream end it, too. After it, the
    /// task of a silent stream is read, and the stream opened again. Also the longest wait for the beginning of a stream, and for the answer to a message
    /// that is not to be waited for. Default: 2 minutes.
    pub idle: Duration,
    /// A whole call, except sends and streams. Default: 1 minute.
    pub call: Duration,
    /// A whole send, which waits for the agent's work; or the wait for the beginning of its stream. Default: none.
    pub send: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            call: Duration::from_secs(60),
            send: None,
        }
    }
}

/// The largest things that are accepted, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SizeLimits {
    /// An agent card. Default: 1 MiB.
    pub card: usize,
    /// An answer that is no stream. Default: 64 MiB.
    pub reply: usize,
    /// The task that the events of a stream add up to, as JSON. Default: 64 MiB.
    pub task: usize,
    /// One event of a stream. Default: 16 MiB.
    pub event: usize,
    /// An answer of an authorization server. Default: 256 KiB.
    pub token: usize,
}

impl Default for SizeLimits {
    fn default() -> Self {
        SizeLimits { card: 1 << 20, reply: 64 << 20, task: 64 << 20, event: 16 << 20, token: 256 << 10 }
    }
}

/// When a request is sent again. A send is repeated with the same `messageId`, so that agents that recognise repeats
/// answer with the first task instead of starting another.
///
/// | what happened | sent again |
/// |---|---|
/// | the request never left (no connection) | always |
/// | 429 or 503 with `Retry-After`; over gRPC, RESOURCE_EXHAUSTED or UNAVAILABLE with a time | always, after that time |
/// | the connection broke, or a timeout, after the request left | if the operation only reads, cancels or deletes; a send or a new webhook only with [`uncertain`](Self::uncertain) |
/// | any other error | never |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// How often, in addition to the first time. Default: 3.
    pub most: u32,
    /// The first wait; each further one is twice as long. Default: 250 ms.
    pub first_wait: Duration,
    /// The longest wait. If the agent asks for more, the error is returned. Default: 30 seconds.
    pub longest_wait: Duration,
    /// Repeat sends whose fate is unknown. The specification lets agents recognise a repeated `messageId`, but does not
    /// ask them to: Baton does, others may do the work twice. Default: false.
    pub uncertain: bool,
}

impl Default for Retries {
    fn default() -> Self {
        Retries {
            most: 3,
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(30),
            uncertain: false,
        }
    }
}

impl Retries {
    /// Nothing is sent twice.
    pub fn none() -> Self {
        Retries { most: 0, ..Retries::default() }
    }
}

/// How a stream that was cut is taken up again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconnects {
    /// How many tries in a row may bring no event. Default: 8; 0 turns it off.
    pub most: u32,
    /// The first wait; each further one is twice as long. An agent's `retry:` replaces it. Default: 250 ms.
    pub first_wait: Duration,
    /// The longest wait. Default: 5 seconds.
    pub longest_wait: Duration,
    /// Between two reads of the task, if the agent cannot be subscribed to. Default: 2 seconds.
    pub poll: Duration,
}

impl Default for Reconnects {
    fn default() -> Self {
        Reconnects {
            most: 8,
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(5),
            poll: Duration::from_secs(2),
        }
    }
}

/// The wait before try number `nth` (from 0): doubled each time, and a random part of it taken off, so that many
/// clients of one agent don't come back at the same moment.
pub(crate) fn backoff(first: Duration, longest: Duration, nth: u32) -> Duration {
    let whole = first.saturating_mul(1 << nth.min(16)).min(longest);
    let mut random = [0; 1];
    // Without randomness the wait is the whole one.
    let _ = getrandom::fill(&mut random);
    whole - whole.mul_f64(f64::from(random[0]) / 1024.0)
}
