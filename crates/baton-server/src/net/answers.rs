//! Room for answers. What a reader does not take lies in memory, so the bytes of answers are counted: those above [`SMALL`]
//! for the whole server, and in HTTP/2 all above [`FREE`] for each connection. An answer asks for its share before it is
//! made, or is let go of and made again if it has to wait. Where there is no room the reader that has taken next to
//! nothing for longest makes some, if that is longer than [`Connections::crowded_stall`].
//! `docs/decisions/0007-answers-nobody-reads.md` gives the reasons.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::bodies::Watch;
use super::caps::one_customer;
use super::options::Connections;
use super::pulse::{Order, Pulse};

/// Answers up to this size never wait for other connections. While answers wait for room, a reader has to take as much
/// within [`Connections::crowded_stall`].
pub(crate) const SMALL: usize = 64 * 1024;

/// Answers up to this size are not counted: with all that belongs to a request they cost no less.
const FREE: usize = 4 * 1024;

/// What the answers of one HTTP/2 connection that are not above [`SMALL`] may have together.
const SMALL_ONES: usize = 8 * SMALL;

/// When nobody has been stuck for long enough, how soon to look again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const AT_LEAST: Duration = Duration::from_millis(10);

/// What semaphores count in: their numbers are too small for bytes.
const UNIT: usize = 1024;

/// The room of a server.
#[derive(Debug)]
pub(crate) struct AnswerRoom {
    max: usize,
    max_per_connection: usize,
    crowded_stall: Duration,
    wait: Duration,
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
    /// Of each peer only one stands in the line of all; the others wait here. So whoever asks for many answers does not
    /// stand before everybody else.
    lines: HashMap<IpAddr, Weak<Line>>,
}

#[derive(Debug)]
struct Holder {
    reader: Reader,
    /// Of the server's room; none for a small answer.
    bytes: usize,
    /// HTTP/2 only: what it has of its connection's room, in units.
    connection: Option<(Arc<Semaphore>, usize)>,
    /// Since when its reader has taken less than it must, and what it had taken by then. Noted while answers wait.
    slow: Option<(Instant, u64)>,
    /// It was told to leave, and its share comes back any moment.
    cut: bool,
}

/// Who reads an answer, and can be cut off: an HTTP/1 connection, or one stream of an HTTP/2 connection.
#[derive(Debug, Clone)]
pub(super) enum Reader {
    Connection(Arc<Pulse>),
    Stream(Arc<Watch>),
}

/// What the requests of a connection have in common.
#[derive(Debug)]
pub(super) struct OfConnection {
    room: Arc<AnswerRoom>,
    peer: IpAddr,
    /// In HTTP/1 there is one answer at a time.
    streams: Option<OfStreams>,
}

/// What all streams of an HTTP/2 connection share.
#[derive(Debug)]
struct OfStreams {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// A request that may need room for its answer.
#[derive(Debug, Clone)]
pub struct Asker {
    connection: Arc<OfConnection>,
    reader: Reader,
}

/// The room of one answer, for as long as its bytes are in memory. An answer that is not counted has none.
#[derive(Debug)]
pub struct Share(Option<Taken>);

#[derive(Debug)]
struct Taken {
    room: Arc<AnswerRoom>,
    id: u64,
    bytes: usize,
    _connection: Option<OwnedSemaphorePermit>,
}

/// There was no room in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room for a large answer came free in time")]
pub(crate) struct NoRoom;

impl Holder {
    /// Since when its reader has taken less than [`SMALL`], if it could take something now. One that takes a byte now and
    /// then is not let off for it.
    fn stuck_since(&mut self) -> Option<Instant> {
        let (blocked, taken) = (self.reader.blocked_since()?, self.reader.taken());
        let (since, before) = self.slow.get_or_insert((blocked, taken));
        if taken - *before >= SMALL as u64 {
            (*since, *before) = (blocked, taken);
        }
        Some(*since)
    }
}

impl AnswerRoom {
    pub(super) fn new(options: &Connections) -> Arc<Self> {
        Arc::new(AnswerRoom {
            max: options.max_answers_bytes.max(SMALL),
            max_per_connection: options.max_answers_per_connection.clamp(SMALL, u32::MAX as usize),
            crowded_stall: options.crowded_stall,
            wait: options.room_wait,
            state: Mutex::default(),
            first_in_line: tokio::sync::Mutex::default(),
            given_back: Notify::new(),
        })
    }

    /// A new connection.
    pub(super) fn of_connection(self: &Arc<Self>, peer: IpAddr) -> Arc<OfConnection> {
        Arc::new(OfConnection { room: Arc::clone(self), peer, streams: None })
    }

    /// A new connection of HTTP/2.
    pub(super) fn of_http2(self: &Arc<Self>, peer: IpAddr) -> Arc<OfConnection> {
        let part = |bytes: usize| Arc::new(Semaphore::new(bytes.div_ceil(UNIT)));
        let streams = Some(OfStreams { small: part(SMALL_ONES), large: part(self.max_per_connection) });
        Arc::new(OfConnection { room: Arc::clone(self), peer, streams })
    }

    /// Where the requests of one peer wait for each other.
    fn line_of(&self, peer: IpAddr) -> Arc<Line> {
        let (peer, mut state) = (one_customer(peer), self.state());
        if let Some(line) = state.lines.get(&peer).and_then(Weak::upgrade) {
            return line;
        }
        state.lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Line::default());
        state.lines.insert(peer, Arc::downgrade(&line));
        line
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole at every moment the lock is free.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the share. An answer larger than all the room takes all of it.
    fn take(&self, bytes: usize, reader: &Reader, connection: Option<&OwnedSemaphorePermit>) -> Option<u64> {
        let (bytes, mut state) = (bytes.min(self.max), self.state());
        if state.taken + bytes > self.max {
            return None;
        }
        let id = state.next;
        state.next += 1;
        state.taken += bytes;
        let connection = connection.map(|permit| (Arc::clone(permit.semaphore()), permit.num_permits()));
        let reader = reader.clone();
        state.holders.insert(id, Holder { reader, bytes, connection, slow: None, cut: false });
        Some(id)
    }

    /// Makes room for an answer of so many bytes. Answers when to look again.
    fn make_room(&self, bytes: usize) -> Instant {
        self.cut_the_stuck(self.max, bytes.min(self.max), |holder| holder.bytes)
    }

    /// Makes room within a connection. Those of its streams that wait for the server's room are not counted: they take
    /// nothing from a reader yet, and are when they have it.
    fn make_room_within(&self, part: &Part<'_>) -> Instant {
        self.cut_the_stuck(part.most, part.units as usize, |holder| match &holder.connection {
            Some((its, units)) if Arc::ptr_eq(its, part.of) => *units,
            _ => 0,
        })
    }

    /// Cuts readers that have been stuck for too long, the longest first, until what is asked for would fit. Answers
    /// when to look again.
    fn cut_the_stuck(&self, most: usize, asked: usize, part: impl Fn(&Holder) -> usize) -> Instant {
        let (now, mut state) = (Instant::now(), self.state());
        let staying: usize = state.holders.values().filter(|holder| !holder.cut).map(&part).sum();
        let mut lacking = (staying + asked).saturating_sub(most);
        while lacking > 0 {
            let staying = state.holders.values_mut().filter(|holder| !holder.cut && part(holder) > 0);
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
            lacking = lacking.saturating_sub(part(longest));
        }
        now + LOOK_AGAIN
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

    fn cut(&self) {
        match self {
            Reader::Connection(pulse) => pulse.tell(Order::Leave),
            Reader::Stream(watch) => watch.cut(),
        }
    }
}

/// What an answer needs of its connection's room.
struct Part<'a> {
    of: &'a Arc<Semaphore>,
    most: usize,
    units: u32,
}

impl Asker {
    pub(super) fn new(connection: &Arc<OfConnection>, reader: Reader) -> Self {
        Asker { connection: Arc::clone(connection), reader }
    }

    /// Alone in a room of the usual size.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        let (room, watch) = (AnswerRoom::new(&Connections::default()), Arc::new(Watch::new()));
        Asker::new(&room.of_http2(IpAddr::from([127, 0, 0, 1])), Reader::Stream(watch))
    }

    /// How many bytes of the room are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.connection.room.state().taken
    }

    /// A share for an answer of so many bytes, if there is one now and nobody waits for it.
    pub(crate) fn try_enter(&self, bytes: usize) -> Option<Share> {
        if !self.counts(bytes) {
            return Some(Share(None));
        }
        let _nobody_waits =
            if bytes > SMALL { Some(self.connection.room.first_in_line.try_lock().ok()?) } else { None };
        let connection = match self.part(bytes) {
            Some(part) => Some(Arc::clone(part.of).try_acquire_many_owned(part.units).ok()?),
            None => None,
        };
        self.take(bytes, connection).ok()
    }

    /// The same, waiting for it. Nothing of the answer should be held meanwhile.
    pub(crate) async fn enter(&self, bytes: usize) -> Result<Share, NoRoom> {
        timeout(self.connection.room.wait, self.enter_in_turn(bytes)).await.map_err(|_| NoRoom)?
    }

    /// The same, however long it takes. Must be polled all the time: others wait behind it.
    pub(crate) async fn enter_in_turn(&self, bytes: usize) -> Result<Share, NoRoom> {
        if !self.counts(bytes) {
            return Ok(Share(None));
        }
        let OfConnection { room, peer, .. } = &*self.connection;
        let mut connection = match self.part(bytes) {
            Some(part) => Some(self.enter_within(&part).await?),
            None => None,
        };
        if bytes <= SMALL {
            return self.take(bytes, connection).map_err(|_| NoRoom);
        }
        let line = room.line_of(*peer);
        let _first_of_its_peer = line.lock().await;
        let _first = room.first_in_line.lock().await;
        loop {
            connection = match self.take(bytes, connection) {
                Ok(share) => return Ok(share),
                Err(connection) => connection,
            };
            let look_again = room.make_room(bytes);
            tokio::select! {
                () = room.given_back.notified() => {}
                () = sleep_until(look_again) => {}
            }
        }
    }

    /// Room within the connection. Its streams make way for each other, too.
    async fn enter_within(&self, part: &Part<'_>) -> Result<OwnedSemaphorePermit, NoRoom> {
        let mut entered = pin!(Arc::clone(part.of).acquire_many_owned(part.units));
        let mut look_again = Instant::now();
        loop {
            tokio::select! {
                biased;
                permit = &mut entered => return permit.map_err(|_| NoRoom),
                () = sleep_until(look_again) => look_again = self.connection.room.make_room_within(part),
            }
        }
    }

    /// The share for an answer that may have turned out to be small: it leaves the room of large ones to others.
    pub(crate) fn fit(&self, share: Share, bytes: usize) -> Share {
        let is_large = share.0.as_ref().is_some_and(|taken| taken.bytes > SMALL);
        let smaller = if is_large && bytes <= SMALL { self.try_enter(bytes) } else { None };
        smaller.unwrap_or(share)
    }

    fn counts(&self, bytes: usize) -> bool {
        bytes > SMALL || (bytes > FREE && self.connection.streams.is_some())
    }

    fn part(&self, bytes: usize) -> Option<Part<'_>> {
        let OfConnection { room, streams, .. } = &*self.connection;
        let OfStreams { small, large } = streams.as_ref()?;
        let (of, most) = if bytes > SMALL { (large, room.max_per_connection) } else { (small, SMALL_ONES) };
        Some(Part { of, most: most.div_ceil(UNIT), units: bytes.min(most).div_ceil(UNIT) as u32 })
    }

    /// What it has of its connection's room is given back if the server has none.
    fn take(
        &self,
        bytes: usize,
        connection: Option<OwnedSemaphorePermit>,
    ) -> Result<Share, Option<OwnedSemaphorePermit>> {
        let of_server = if bytes > SMALL { bytes } else { 0 };
        match self.connection.room.take(of_server, &self.reader, connection.as_ref()) {
            Some(id) => {
                let room = Arc::clone(&self.connection.room);
                Ok(Share(Some(Taken { room, id, bytes, _connection: connection })))
            }
            None => Err(connection),
        }
    }
}

impl Share {
    /// The bytes keep the share as long as any part of them is there.
    pub(crate) fn holding(self, bytes: Bytes) -> Bytes {
        struct Held {
            bytes: Bytes,
            _taken: Taken,
        }
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        match self.0 {
            Some(taken) => Bytes::from_owner(Held { bytes, _taken: taken }),
            None => bytes,
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.room.state();
        let held = state.holders.remove(&self.id).map_or(0, |holder| holder.bytes);
        state.taken -= held;
        drop(state);
        if held > 0 {
            // Kept for the first in line, should it be about to wait.
            self.room.given_back.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
