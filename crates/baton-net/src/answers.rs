//! Limits the memory of answers that clients do not read. Answers above [`SMALL`] share one limit for the whole server; in
//! HTTP/2 those above [`FREE`] also have a limit for each connection. Of event streams only events above [`SMALL`] count,
//! since a slow reader holds one write and one page of events at most. An answer reserves its bytes (a [`Share`]) before it
//! is made; one that has to wait is dropped and made again. When the limit is reached, the client that has read next to
//! nothing for the longest time is cut off, if that time is longer than [`Connections::crowded_stall`].
//! `docs/decisions/0007-answers-nobody-reads.md` gives the reasons.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::bodies::Watch;
use super::caps::one_customer;
use super::options::Connections;
use super::pulse::{Order, Pulse};

/// Answers up to this size, in bytes, never wait for other connections. While answers wait for room, a client has to read as
/// much of its own within [`Connections::crowded_stall`].
pub const SMALL: usize = 64 * 1024;

/// The same for an HTTP/2 stream, which shares its connection with others.
const SMALL_OF_STREAM: usize = SMALL / 8;

/// Answers up to this size are not counted: the rest of a request costs more memory than they do.
const FREE: usize = 4 * 1024;

/// Limit for all answers of one HTTP/2 connection that are not above [`SMALL`].
const SMALL_ONES: usize = 8 * SMALL;

/// If no reader has been stuck for long enough, how soon to look again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const AT_LEAST: Duration = Duration::from_millis(100);

/// A limit in bytes, and who has reserved how many of them.
#[derive(Debug)]
struct Room {
    max: usize,
    crowded_stall: Duration,
    state: Mutex<State>,
    /// Held by the first of those who wait; the others queue for it in order.
    first_in_line: Queue,
    given_back: Notify,
}

/// tokio's mutex is fair: it is given in the order in which it is asked for.
type Queue = tokio::sync::Mutex<()>;

#[derive(Debug, Default)]
struct State {
    taken: usize,
    next: u64,
    holders: HashMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    reader: Reader,
    bytes: usize,
    /// Since when its reader has read less than it must, and how much it had read by then. Kept while others wait.
    slow: Option<(Instant, u64)>,
    /// It was told to close; its bytes will be free in a moment.
    cut: bool,
}

/// Bytes reserved in a [`Room`], until it is dropped.
#[derive(Debug)]
struct Taken {
    room: Arc<Room>,
    id: u64,
}

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
    wait: Duration,
    /// Each peer has one request in the queue of the server; its others wait here, so that a peer with many requests does
    /// not delay all others.
    queues: Mutex<HashMap<IpAddr, Weak<Queue>>>,
}

/// What the requests of a connection share.
#[derive(Debug)]
pub(super) struct OfConnection {
    answers: Arc<AnswerRoom>,
    peer: IpAddr,
    /// `None` in HTTP/1, which has one answer at a time.
    streams: Option<OfStreams>,
}

/// What all streams of an HTTP/2 connection share.
#[derive(Debug)]
struct OfStreams {
    small: Arc<Room>,
    large: Arc<Room>,
}

/// Reserves memory for the answer to one request.
#[derive(Debug, Clone)]
pub struct Asker {
    connection: Arc<OfConnection>,
    reader: Reader,
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

impl Room {
    fn new(max: usize, crowded_stall: Duration) -> Arc<Self> {
        let (state, first_in_line, given_back) = Default::default();
        Arc::new(Room { max, crowded_stall, state, first_in_line, given_back })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole at every moment the lock is free.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves so many bytes, if they are free. An answer larger than the limit reserves all of it.
    fn take(self: &Arc<Self>, bytes: usize, reader: &Reader) -> Option<Taken> {
        let (bytes, mut state) = (bytes.min(self.max), self.state());
        if state.taken + bytes > self.max {
            return None;
        }
        let id = state.next;
        state.next += 1;
        state.taken += bytes;
        state.holders.insert(id, Holder { reader: reader.clone(), bytes, slow: None, cut: false });
        Some(Taken { room: Arc::clone(self), id })
    }

    /// The same, if nobody waits in the queue.
    fn try_enter(self: &Arc<Self>, bytes: usize, reader: &Reader) -> Option<Taken> {
        let _nobody_waits = self.first_in_line.try_lock().ok()?;
        self.take(bytes, reader)
    }

    /// The same, but waits for it.
    async fn enter(self: &Arc<Self>, bytes: usize, reader: &Reader) -> Taken {
        let _first = self.first_in_line.lock().await;
        loop {
            if let Some(taken) = self.take(bytes, reader) {
                return taken;
            }
            let look_again = self.cut_the_stuck(bytes.min(self.max));
            tokio::select! {
                () = self.given_back.notified() => {}
                () = sleep_until(look_again) => {}
            }
        }
    }

    /// Cuts off readers that have been stuck for too long, the longest first, until `asked` bytes would be free. Returns
    /// when to look again.
    fn cut_the_stuck(&self, asked: usize) -> Instant {
        let (now, mut state) = (Instant::now(), self.state());
        let staying: usize =
            state.holders.values().filter(|holder| !holder.cut).map(|holder| holder.bytes).sum();
        let mut lacking = (staying + asked).saturating_sub(self.max);
        while lacking > 0 {
            let staying = state.holders.values_mut().filter(|holder| !holder.cut);
            let stuck = staying.filter_map(|holder| Some((holder.stuck_since()?, holder)));
            let Some((since, longest)) = stuck.min_by_key(|(since, _)| *since) else {
                return now + LOOK_AGAIN;
            };
            if since + self.crowded_stall > now {
                return (since + self.crowded_stall).clamp(now + AT_LEAST, now + LOOK_AGAIN);
            }
            tracing::debug!(
                bytes = longest.bytes,
                "a client that hardly reads its answer is cut off, to make room for other answers"
            );
            longest.cut = true;
            longest.reader.cut();
            lacking = lacking.saturating_sub(longest.bytes);
        }
        now + LOOK_AGAIN
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.room.state();
        if let Some(holder) = state.holders.remove(&self.id) {
            state.taken -= holder.bytes;
        }
        drop(state);
        // `notify_one` is kept if the first in the queue is not waiting yet.
        self.room.given_back.notify_one();
    }
}

impl Holder {
    /// Since when its reader has read less than it must; `None` if there is nothing for it to read now. Reading a byte now
    /// and then does not count.
    fn stuck_since(&mut self) -> Option<Instant> {
        let (blocked, taken) = (self.reader.blocked_since()?, self.reader.taken());
        let (since, before) = self.slow.get_or_insert((blocked, taken));
        if taken - *before >= self.reader.has_to_take() {
            (*since, *before) = (blocked, taken);
        }
        Some(*since)
    }
}

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
        Arc::new(AnswerRoom {
            all: Room::new(options.max_answers_bytes.max(SMALL), options.crowded_stall),
            max_per_connection: options.max_answers_per_connection.max(SMALL),
            wait: options.room_wait,
            queues: Mutex::default(),
        })
    }

    /// For a new HTTP/1 connection.
    pub(super) fn of_connection(self: &Arc<Self>, peer: IpAddr) -> Arc<OfConnection> {
        Arc::new(OfConnection { answers: Arc::clone(self), peer, streams: None })
    }

    /// For a new HTTP/2 connection.
    pub(super) fn of_http2(self: &Arc<Self>, peer: IpAddr) -> Arc<OfConnection> {
        let room = |bytes: usize| Room::new(bytes, self.all.crowded_stall);
        let streams = Some(OfStreams { small: room(SMALL_ONES), large: room(self.max_per_connection) });
        Arc::new(OfConnection { answers: Arc::clone(self), peer, streams })
    }

    /// The queue of one peer's requests.
    fn queue_of(&self, peer: IpAddr) -> Arc<Queue> {
        let peer = one_customer(peer);
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&peer).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Queue::default());
        queues.insert(peer, Arc::downgrade(&queue));
        queue
    }
}

impl Asker {
    pub(super) fn new(connection: &Arc<OfConnection>, reader: Reader) -> Self {
        Asker { connection: Arc::clone(connection), reader }
    }

    /// One that shares the default limits with nobody: for tests of applications.
    pub fn alone() -> Self {
        let (answers, watch) = (AnswerRoom::new(&Connections::default()), Arc::new(Watch::new()));
        Asker::new(&answers.of_http2(IpAddr::from([127, 0, 0, 1])), Reader::Stream(watch))
    }

    /// How many bytes of the server's limit are reserved.
    pub fn taken(&self) -> usize {
        self.connection.answers.all.state().taken
    }

    /// Reserves so many bytes for an answer, if they are free and nobody waits for them.
    pub fn try_enter(&self, bytes: usize) -> Option<Share> {
        let mut parts = Vec::new();
        if let Some(room) = self.room_of_connection(bytes) {
            parts.push(room.try_enter(bytes, &self.reader)?);
        }
        if bytes > SMALL {
            parts.push(self.connection.answers.all.try_enter(bytes, &self.reader)?);
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
        if let Some(room) = self.room_of_connection(bytes) {
            parts.push(room.enter(bytes, &self.reader).await);
        }
        if bytes > SMALL {
            let answers = &self.connection.answers;
            let queue = answers.queue_of(self.connection.peer);
            let _first_of_its_peer = queue.lock().await;
            parts.push(answers.all.enter(bytes, &self.reader).await);
        }
        Share { bytes, parts }
    }

    fn room_of_connection(&self, bytes: usize) -> Option<&Arc<Room>> {
        let OfStreams { small, large } = self.connection.streams.as_ref()?;
        (bytes > FREE).then_some(if bytes > SMALL { large } else { small })
    }

    /// Adapts a share that was reserved by an estimate to the real size of the answer. If that is small, the bytes of the
    /// server's limit are freed; if it is larger, more must be free at once.
    pub fn fit(&self, share: Share, bytes: usize) -> Result<Share, NoRoom> {
        if bytes > SMALL && bytes > share.bytes + share.bytes / 4 {
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
