//! Limits the memory of answers that clients do not read. Answers above [`SMALL`] share one limit for the whole server; in
//! HTTP/2 those above [`FREE`] also have a limit for each connection. Of event streams only events above [`SMALL`] count,
//! since a slow reader holds one write and one page of events at most. An answer reserves its bytes (a [`Share`]) before it
//! is made; one that has to wait is dropped and made again. One customer has at most half of the server's limit, and
//! whoever holds least is served first. When a limit is reached, a client that has read next to nothing for longer than
//! [`Connections::crowded_stall`] is cut off, of the customer that holds most.
//! `docs/decisions/0007-answers-nobody-reads.md` gives the reasons.

mod room;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::bodies::Watch;
use super::customer::{Customer, CustomerOfRequest};
use super::in_flight::{InFlight, TooManyRequests};
use super::options::Connections;
use super::pulse::{Order, Pulse};
use room::{Room, Taken};

/// Answers up to this size, in bytes, never wait for other connections. While answers wait for room, a client has to read as
/// much of its own within [`Connections::crowded_stall`].
pub const SMALL: usize = 64 * 1024;

/// The same for an HTTP/2 stream, which shares its connection with others.
const SMALL_OF_STREAM: usize = SMALL / 8;

/// Answers up to this size are not counted: the rest of a request costs more memory than they do.
const FREE: usize = 4 * 1024;

/// Limit for all answers of one HTTP/2 connection that are not above [`SMALL`].
const SMALL_ONES: usize = 8 * SMALL;

/// The reader of an answer, which can be cut off: an HTTP/1 connection, or one stream of an HTTP/2 connection.
#[derive(Debug, Clone)]
pub(super) enum Reader {
    Connection(Arc<Pulse>),
    Stream(Arc<Watch>),
}

/// The limit of a whole server.
#[derive(Debug)]
pub(super) struct AnswerRoom {
    all: Arc<Room>,
    max_per_connection: usize,
    crowded_stall: Duration,
    wait: Duration,
}

/// What the requests of a connection share.
#[derive(Debug)]
pub(super) struct OfConnection {
    answers: Arc<AnswerRoom>,
    /// `None` in HTTP/1, which has one answer at a time.
    streams: Option<OfStreams>,
}

/// What the streams of an HTTP/2 connection share. It may come from a proxy, with the requests of several customers: each
/// has limits of its own here.
#[derive(Debug)]
struct OfStreams {
    small: Arc<Room>,
    large: Arc<Room>,
    /// Of a proxy's connection: how many of its streams one customer may have.
    requests: Option<Arc<InFlight>>,
}

/// Reserves memory for the answer to one request.
#[derive(Debug, Clone)]
pub struct Asker {
    connection: Arc<OfConnection>,
    reader: Reader,
    customer: CustomerOfRequest,
}

/// The bytes reserved for one answer, free again when this is dropped. Empty for an answer that is not counted.
#[derive(Debug)]
pub struct Share {
    /// The size of the answer.
    bytes: usize,
    parts: Vec<Taken>,
}

/// No memory for the answer became free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room for a large answer came free in time")]
pub struct NoRoom;

impl Reader {
    /// Since when it has read no byte although there is something to read.
    fn blocked_since(&self) -> Option<Instant> {
        match self {
            Reader::Connection(pulse) => pulse.blocked_since().map(|since| pulse.moment(since)),
            Reader::Stream(watch) => watch.stuck_since(),
        }
    }

    /// How many bytes it has read so far.
    fn taken(&self) -> u64 {
        match self {
            Reader::Connection(pulse) => pulse.taken(),
            Reader::Stream(watch) => watch.taken(),
        }
    }

    /// How many bytes it has to read within [`Connections::crowded_stall`] while others wait.
    fn has_to_take(&self) -> u64 {
        match self {
            Reader::Connection(_) => SMALL as u64,
            Reader::Stream(_) => SMALL_OF_STREAM as u64,
        }
    }

    fn cut(&self) {
        match self {
            Reader::Connection(pulse) => pulse.tell(Order::Leave),
            Reader::Stream(watch) => watch.cut(),
        }
    }
}

impl AnswerRoom {
    pub(super) fn new(options: &Connections) -> Arc<Self> {
        let (max, crowded_stall) = (options.max_answers_bytes.max(SMALL), options.crowded_stall);
        Arc::new(AnswerRoom {
            all: Room::new(Some(max), max / 2, crowded_stall),
            max_per_connection: options.max_answers_per_connection.max(SMALL),
            crowded_stall,
            wait: options.room_wait,
        })
    }

    /// For a new HTTP/1 connection.
    pub(super) fn of_connection(self: &Arc<Self>) -> Arc<OfConnection> {
        Arc::new(OfConnection { answers: Arc::clone(self), streams: None })
    }

    /// For a new HTTP/2 connection.
    pub(super) fn of_http2(self: &Arc<Self>, requests: Option<Arc<InFlight>>) -> Arc<OfConnection> {
        let room = |bytes: usize| Room::new(None, bytes, self.crowded_stall);
        let (small, large) = (room(SMALL_ONES), room(self.max_per_connection));
        let streams = Some(OfStreams { small, large, requests });
        Arc::new(OfConnection { answers: Arc::clone(self), streams })
    }
}

impl OfConnection {
    /// The limit of a proxy's connection on the requests of one customer.
    pub(super) fn requests(&self) -> Option<&Arc<InFlight>> {
        self.streams.as_ref()?.requests.as_ref()
    }
}

impl Asker {
    pub(super) fn new(connection: &Arc<OfConnection>, reader: Reader, customer: CustomerOfRequest) -> Self {
        Asker { connection: Arc::clone(connection), reader, customer }
    }

    /// One that shares the default limits with nobody: for tests of applications.
    pub fn alone() -> Self {
        let (answers, watch) = (AnswerRoom::new(&Connections::default()), Arc::new(Watch::new()));
        let customer = CustomerOfRequest::new(IpAddr::from([127, 0, 0, 1]), [None, None]);
        Asker::new(&answers.of_http2(None), Reader::Stream(watch), customer)
    }

    /// Says who is counted for this request, its body and its answer. Without it, or before it, everybody at the client's
    /// address is one customer. The first call counts, and should come before the body is read.
    pub fn set_customer(&self, customer: Customer) {
        self.customer.set(customer);
    }

    /// Counts the request for this customer, until its answer has been sent. A later call with another customer counts it for
    /// that one instead. An error: the customer has too many requests under way ([`Connections::max_requests_per_owner`]).
    pub fn count(&self, customer: &Customer) -> Result<(), TooManyRequests> {
        self.customer.count(customer)
    }

    /// How many bytes of the server's limit are reserved.
    pub fn taken(&self) -> usize {
        self.connection.answers.all.taken()
    }

    /// Reserves so many bytes for an answer, if they are free and nobody waits for them.
    pub fn try_enter(&self, bytes: usize) -> Option<Share> {
        let mut parts = Vec::new();
        for room in self.rooms(bytes) {
            parts.push(room.try_enter(bytes, &self.reader, &self.customer.get())?);
        }
        Some(Share { bytes, parts })
    }

    /// Waits for so many bytes, at most [`Connections::room_wait`]. The caller should not hold the answer meanwhile.
    pub async fn enter(&self, bytes: usize) -> Result<Share, NoRoom> {
        timeout(self.connection.answers.wait, self.enter_in_turn(bytes)).await.map_err(|_| NoRoom)
    }

    /// Waits for so many bytes without a limit of time. The future must be polled until it ends: others queue behind it.
    pub async fn enter_in_turn(&self, bytes: usize) -> Share {
        let mut parts = Vec::new();
        for room in self.rooms(bytes) {
            parts.push(room.enter(bytes, &self.reader, &self.customer.get()).await);
        }
        Share { bytes, parts }
    }

    /// The limits that count for an answer of this size: its connection's, and the server's.
    fn rooms(&self, bytes: usize) -> impl Iterator<Item = &Arc<Room>> {
        let OfConnection { answers, streams } = &*self.connection;
        let of_streams = streams.as_ref().filter(|_| bytes > FREE);
        let of_connection = of_streams.map(|of| if bytes > SMALL { &of.large } else { &of.small });
        of_connection.into_iter().chain((bytes > SMALL).then_some(&answers.all))
    }

    /// Adapts a share that was reserved by an estimate to the real size of the answer. If that is small, the bytes of the
    /// server's limit are freed; if it is larger, more must be free at once.
    pub fn fit(&self, share: Share, bytes: usize) -> Result<Share, NoRoom> {
        if bytes > SMALL && bytes > share.bytes + share.bytes / 4 {
            drop(share);
            return self.try_enter(bytes).ok_or(NoRoom);
        }
        let smaller = if bytes <= SMALL && share.bytes > SMALL { self.try_enter(bytes) } else { None };
        Ok(smaller.unwrap_or(share))
    }
}

impl Share {
    /// One share for both.
    pub fn joined(mut self, other: Share) -> Share {
        self.bytes += other.bytes;
        self.parts.extend(other.parts);
        self
    }

    /// Ties the share to the bytes: it is freed with the last slice of them.
    pub fn holding(self, bytes: Bytes) -> Bytes {
        struct Held {
            bytes: Bytes,
            _share: Share,
        }
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        if self.parts.is_empty() {
            return bytes;
        }
        Bytes::from_owner(Held { bytes, _share: self })
    }
}

#[cfg(test)]
mod tests;
