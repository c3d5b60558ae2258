//! Room for answers. What a reader does not take lies in memory, so the bytes of answers are counted: those above [`SMALL`]
//! for the whole server, and in HTTP/2 all above [`FREE`] for each connection; of event streams only what is above [`SMALL`],
//! since a reader that is behind has one write and one page of the log at most. An answer asks for its share before it is
//! made, or is let go of and made again if it has to wait. Where there is no room the reader that has taken next to
//! nothing for longest makes some, if that is longer than [`Connections::crowded_stall`].
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

/// Answers up to this size never wait for other connections. While answers wait for room, a connection has to take as much
/// within [`Connections::crowded_stall`].
pub(crate) const SMALL: usize = 64 * 1024;

/// What a stream of HTTP/2 has to take: it shares its line with others.
const SMALL_OF_STREAM: usize = SMALL / 8;

/// Answers up to this size are not counted: with all that belongs to a request they cost no less.
const FREE: usize = 4 * 1024;

/// What the answers of one HTTP/2 connection that are not above [`SMALL`] may have together.
const SMALL_ONES: usize = 8 * SMALL;

/// When nobody has been stuck for long enough, how soon to look again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const AT_LEAST: Duration = Duration::from_millis(100);

/// So many bytes, and who has which part of them.
#[derive(Debug)]
struct Room {
    max: usize,
    crowded_stall: Duration,
    state: Mutex<State>,
    /// Whoever waits does so in order; the first of them looks for room.
    first_in_line: Line,
    given_back: Notify,
}

/// Locks are given in the order in which they are asked for.
type Line = tokio::sync::Mutex<()>;

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
    /// Since when its reader has taken less than it must, and what it had taken by then. Noted while others wait.
    slow: Option<(Instant, u64)>,
    /// It was told to leave, and its part comes back any moment.
    cut: bool,
}

/// A part of a room.
#[derive(Debug)]
struct Taken {
    room: Arc<Room>,
    id: u64,
}

/// Who reads an answer, and can be cut off: an HTTP/1 connection, or one stream of an HTTP/2 connection.
#[derive(Debug, Clone)]
pub(super) enum Reader {
    Connection(Arc<Pulse>),
    Stream(Arc<Watch>),
}

/// The room of a server.
#[derive(Debug)]
pub(crate) struct AnswerRoom {
    all: Arc<Room>,
    max_per_connection: usize,
    wait: Duration,
    /// Of each peer only one stands in the line of all; its others wait here. So whoever asks for many answers does not
    /// stand before everybody else.
    lines: Mutex<HashMap<IpAddr, Weak<Line>>>,
}

/// What the requests of a connection have in common.
#[derive(Debug)]
pub(super) struct OfConnection {
    answers: Arc<AnswerRoom>,
    peer: IpAddr,
    /// In HTTP/1 there is one answer at a time.
    streams: Option<OfStreams>,
}

/// What all streams of an HTTP/2 connection share.
#[derive(Debug)]
struct OfStreams {
    small: Arc<Room>,
    large: Arc<Room>,
}

/// A request that may need room for its answer.
#[derive(Debug, Clone)]
pub struct Asker {
    connection: Arc<OfConnection>,
    reader: Reader,
}

/// The room of one answer, for as long as its bytes are in memory. An answer that is not counted has none.
#[derive(Debug)]
pub struct Share {
    /// How many bytes it is for.
    bytes: usize,
    parts: Vec<Taken>,
}

/// There was no room in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room for a large answer came free in time")]
pub(crate) struct NoRoom;

impl Room {
    fn new(max: usize, crowded_stall: Duration) -> Arc<Self> {
        let (state, first_in_line, given_back) = Default::default();
        Arc::new(Room { max, crowded_stall, state, first_in_line, given_back })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole at every moment the lock is free.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part of so many bytes, if it is there. An answer larger than all the room takes all of it.
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

    /// The same, if nobody waits for it.
    fn try_enter(self: &Arc<Self>, bytes: usize, reader: &Reader) -> Option<Taken> {
        let _nobody_waits = self.first_in_line.try_lock().ok()?;
        self.take(bytes, reader)
    }

    /// The same, waiting for it.
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

    /// Cuts readers that have been stuck for too long, the longest first, until what is asked for would fit. Answers
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
                "a reader that takes next to nothing makes room for other answers"
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
        // Kept for the first in line, should it be about to wait.
        self.room.given_back.notify_one();
    }
}

impl Holder {
    /// Since when its reader has taken less than it must, if it could take something now. One that takes a byte now and
    /// then is not let off for it.
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
    /// Since when it has taken no byte of what is there for it.
    fn blocked_since(&self) -> Option<Instant> {
        match self {
            Reader::Connection(pulse) => pulse.blocked_since().map(|since| pulse.moment(since)),
            Reader::Stream(watch) => watch.stuck_since(),
        }
    }

    /// How many bytes it has taken so far.
    fn taken(&self) -> u64 {
        match self {
            Reader::Connection(pulse) => pulse.taken(),
            Reader::Stream(watch) => watch.taken(),
        }
    }

    /// While others wait, in [`Connections::crowded_stall`].
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
            lines: Mutex::default(),
        })
    }

    /// A new connection.
    pub(super) fn of_connection(self: &Arc<Self>, peer: IpAddr) -> Arc<OfConnection> {
        Arc::new(OfConnection { answers: Arc::clone(self), peer, streams: None })
    }

    /// A new connection of HTTP/2.
    pub(super) fn of_http2(self: &Arc<Self>, peer: IpAddr) -> Arc<OfConnection> {
        let room = |bytes: usize| Room::new(bytes, self.all.crowded_stall);
        let streams = Some(OfStreams { small: room(SMALL_ONES), large: room(self.max_per_connection) });
        Arc::new(OfConnection { answers: Arc::clone(self), peer, streams })
    }

    /// Where the requests of one peer wait for each other.
    fn line_of(&self, peer: IpAddr) -> Arc<Line> {
        let peer = one_customer(peer);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&peer).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Line::default());
        lines.insert(peer, Arc::downgrade(&line));
        line
    }
}

impl Asker {
    pub(super) fn new(connection: &Arc<OfConnection>, reader: Reader) -> Self {
        Asker { connection: Arc::clone(connection), reader }
    }

    /// Alone in a room of the usual size.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        let (answers, watch) = (AnswerRoom::new(&Connections::default()), Arc::new(Watch::new()));
        Asker::new(&answers.of_http2(IpAddr::from([127, 0, 0, 1])), Reader::Stream(watch))
    }

    /// How many bytes of the server's room are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.connection.answers.all.state().taken
    }

    /// A share for an answer of so many bytes, if there is one now and nobody waits for it.
    pub(crate) fn try_enter(&self, bytes: usize) -> Option<Share> {
        let mut parts = Vec::new();
        if let Some(room) = self.room_of_connection(bytes) {
            parts.push(room.try_enter(bytes, &self.reader)?);
        }
        if bytes > SMALL {
            parts.push(self.connection.answers.all.try_enter(bytes, &self.reader)?);
        }
        Some(Share { bytes, parts })
    }

    /// The same, waiting for it. Nothing of the answer should be held meanwhile.
    pub(crate) async fn enter(&self, bytes: usize) -> Result<Share, NoRoom> {
        timeout(self.connection.answers.wait, self.enter_in_turn(bytes)).await.map_err(|_| NoRoom)
    }

    /// The same, however long it takes. Must be polled all the time: others wait behind it.
    pub(crate) async fn enter_in_turn(&self, bytes: usize) -> Share {
        let mut parts = Vec::new();
        if let Some(room) = self.room_of_connection(bytes) {
            parts.push(room.enter(bytes, &self.reader).await);
        }
        if bytes > SMALL {
            let answers = &self.connection.answers;
            let line = answers.line_of(self.connection.peer);
            let _first_of_its_peer = line.lock().await;
            parts.push(answers.all.enter(bytes, &self.reader).await);
        }
        Share { bytes, parts }
    }

    fn room_of_connection(&self, bytes: usize) -> Option<&Arc<Room>> {
        let OfStreams { small, large } = self.connection.streams.as_ref()?;
        (bytes > FREE).then_some(if bytes > SMALL { large } else { small })
    }

    /// The share for an answer of which the size is known by now. One that turned out to be small leaves the room of large
    /// ones to others; one that turned out to be larger has to get its room at once.
    pub(crate) fn fit(&self, share: Share, bytes: usize) -> Result<Share, NoRoom> {
        if bytes > SMALL && bytes > share.bytes + share.bytes / 4 {
            return self.try_enter(bytes).ok_or(NoRoom);
        }
        let smaller = if bytes <= SMALL && share.bytes > SMALL { self.try_enter(bytes) } else { None };
        Ok(smaller.unwrap_or(share))
    }
}

impl Share {
    /// The room of both.
    pub(crate) fn joined(mut self, other: Share) -> Share {
        self.bytes += other.bytes;
        self.parts.extend(other.parts);
        self
    }

    /// The bytes keep the share as long as any part of them is there.
    pub(crate) fn holding(self, bytes: Bytes) -> Bytes {
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
