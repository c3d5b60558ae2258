//! Room for large answers. What a reader does not take lies in memory, so the bytes of answers above [`SMALL`] are
//! counted: for the whole server, and in HTTP/2 for each connection. An answer asks for its share before it is made; when
//! there is none left it waits for its turn, and the reader that has taken nothing for longest makes room, if that is
//! longer than [`Connections::crowded_stall`]. `docs/decisions/0007-answers-nobody-reads.md` gives the reasons.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::bodies::Watch;
use super::options::Connections;
use super::pulse::{Order, Pulse};

/// Answers up to this size are not counted and never wait.
pub(crate) const SMALL: usize = 64 * 1024;

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
    first_in_line: tokio::sync::Mutex<()>,
    given_back: Notify,
}

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
    /// HTTP/2 only: what it has of its connection's room, in units.
    connection: Option<(Arc<Semaphore>, usize)>,
    /// It was told to leave, and its share comes back any moment.
    cut: bool,
}

/// Who reads an answer, and can be cut off: an HTTP/1 connection, or one stream of an HTTP/2 connection.
#[derive(Debug, Clone)]
pub(super) enum Reader {
    Connection(Arc<Pulse>),
    Stream(Arc<Watch>),
}

/// A request that may need room for its answer.
#[derive(Debug, Clone)]
pub struct Asker {
    room: Arc<AnswerRoom>,
    reader: Reader,
    /// What all streams of an HTTP/2 connection share. In HTTP/1 there is one answer at a time.
    connection: Option<Arc<Semaphore>>,
}

/// The room of one answer, for as long as its bytes are in memory.
#[derive(Debug)]
pub struct Share {
    room: Arc<AnswerRoom>,
    id: u64,
    _connection: Option<OwnedSemaphorePermit>,
}

/// There was no room in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room for a large answer came free in time")]
pub(crate) struct NoRoom;

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

    /// What the streams of a new HTTP/2 connection will share.
    pub(super) fn of_connection(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.max_per_connection.div_ceil(UNIT)))
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
        state.holders.insert(id, Holder { reader: reader.clone(), bytes, connection, cut: false });
        Some(id)
    }

    /// Makes room for an answer of so many bytes. Answers when to look again.
    fn make_room(&self, bytes: usize) -> Instant {
        self.cut_the_stuck(self.max, bytes.min(self.max), |holder| holder.bytes)
    }

    /// Makes room within a connection. Those of its streams that wait for the server's room are not counted: they take
    /// nothing from a reader yet, and are when they have it.
    fn make_room_within(&self, connection: &Arc<Semaphore>, units: u32) -> Instant {
        let most = self.max_per_connection.div_ceil(UNIT);
        self.cut_the_stuck(most, units as usize, |holder| match &holder.connection {
            Some((its, units)) if Arc::ptr_eq(its, connection) => *units,
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
            let stuck = staying.filter_map(|holder| Some((holder.reader.stuck_since()?, holder)));
            let Some((since, longest)) = stuck.min_by_key(|(since, _)| *since) else {
                return now + LOOK_AGAIN;
            };
            if since + self.crowded_stall > now {
                return (since + self.crowded_stall).clamp(now + AT_LEAST, now + LOOK_AGAIN);
            }
            tracing::debug!(
                bytes = longest.bytes,
                "a reader that takes nothing makes room for other answers"
            );
            longest.cut = true;
            longest.reader.cut();
            lacking = lacking.saturating_sub(part(longest));
        }
        now + LOOK_AGAIN
    }
}

impl Reader {
    fn stuck_since(&self) -> Option<Instant> {
        match self {
            Reader::Connection(pulse) => pulse.blocked_since().map(|since| pulse.moment(since)),
            Reader::Stream(watch) => watch.stuck_since(),
        }
    }

    fn cut(&self) {
        match self {
            Reader::Connection(pulse) => pulse.tell(Order::Leave),
            Reader::Stream(watch) => watch.cut(),
        }
    }
}

impl Asker {
    pub(super) fn new(room: &Arc<AnswerRoom>, reader: Reader, connection: Option<Arc<Semaphore>>) -> Self {
        Asker { room: Arc::clone(room), reader, connection }
    }

    /// Alone in a room of the usual size.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        let (room, watch) = (AnswerRoom::new(&Connections::default()), Arc::new(Watch::new()));
        let connection = room.of_connection();
        Asker::new(&room, Reader::Stream(watch), Some(connection))
    }

    /// How many bytes of the room are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.room.state().taken
    }

    /// A share for an answer of so many bytes, if there is one now and nobody waits for it.
    pub(crate) fn try_enter(&self, bytes: usize) -> Option<Share> {
        let _nobody_waits = self.room.first_in_line.try_lock().ok()?;
        let connection = match &self.connection {
            Some(all) => Some(Arc::clone(all).try_acquire_many_owned(self.units(bytes)).ok()?),
            None => None,
        };
        let id = self.room.take(bytes, &self.reader, connection.as_ref())?;
        Some(Share { room: Arc::clone(&self.room), id, _connection: connection })
    }

    /// The same, waiting for it. Nothing of the answer should be held meanwhile.
    pub(crate) async fn enter(&self, bytes: usize) -> Result<Share, NoRoom> {
        timeout(self.room.wait, self.enter_in_turn(bytes)).await.map_err(|_| NoRoom)?
    }

    /// The same, however long it takes. Must be polled all the time: others wait behind it.
    pub(crate) async fn enter_in_turn(&self, bytes: usize) -> Result<Share, NoRoom> {
        let room = &self.room;
        let connection = match &self.connection {
            Some(all) => Some(self.enter_within(all, self.units(bytes)).await?),
            None => None,
        };
        let _first = room.first_in_line.lock().await;
        loop {
            if let Some(id) = room.take(bytes, &self.reader, connection.as_ref()) {
                return Ok(Share { room: Arc::clone(room), id, _connection: connection });
            }
            let look_again = room.make_room(bytes);
            tokio::select! {
                () = room.given_back.notified() => {}
                () = sleep_until(look_again) => {}
            }
        }
    }

    /// Room within the connection. Its streams make way for each other, too.
    async fn enter_within(
        &self,
        connection: &Arc<Semaphore>,
        units: u32,
    ) -> Result<OwnedSemaphorePermit, NoRoom> {
        let mut entered = pin!(Arc::clone(connection).acquire_many_owned(units));
        let mut look_again = Instant::now();
        loop {
            tokio::select! {
                biased;
                permit = &mut entered => return permit.map_err(|_| NoRoom),
                () = sleep_until(look_again) => look_again = self.room.make_room_within(connection, units),
            }
        }
    }

    fn units(&self, bytes: usize) -> u32 {
        bytes.min(self.room.max_per_connection).div_ceil(UNIT) as u32
    }
}

impl Share {
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
        Bytes::from_owner(Held { bytes, _share: self })
    }
}

impl Drop for Share {
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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    const MIB: usize = 1 << 20;

    fn room() -> (Arc<AnswerRoom>, Instant) {
        let mut options = Connections::default();
        (options.max_answers_bytes, options.max_answers_per_connection) = (10 * MIB, 4 * MIB);
        (AnswerRoom::new(&options), Instant::now())
    }

    /// An HTTP/1 reader, and the way to see what it does.
    fn reader(room: &Arc<AnswerRoom>, epoch: Instant) -> (Asker, Arc<Pulse>) {
        let pulse = Arc::new(Pulse::new(epoch));
        (Asker::new(room, Reader::Connection(Arc::clone(&pulse)), None), pulse)
    }

    #[tokio::test(start_paused = true)]
    async fn the_reader_that_is_stuck_longest_makes_room() {
        let (room, epoch) = room();
        let readers: Vec<_> = (0..3).map(|_| reader(&room, epoch)).collect();
        let mut shares: Vec<_> = readers.iter().map(|(asker, _)| asker.try_enter(3 * MIB)).collect();
        assert!(shares.iter().all(Option::is_some));
        // The second is stuck first, the first later; the third reads all the time.
        readers[1].1.write_blocked();
        tokio::time::advance(Duration::from_secs(3)).await;
        readers[0].1.write_blocked();
        let (newcomer, _) = reader(&room, epoch);
        assert!(newcomer.try_enter(3 * MIB).is_none());
        assert!(newcomer.try_enter(MIB).is_some(), "what fits need not wait");
        let entering =
            tokio::spawn(async move { newcomer.enter(3 * MIB).await.map(|share| (share, Instant::now())) });
        let told = |at: usize| readers[at].1.order() == Order::Leave;
        tokio::time::sleep(Duration::from_millis(6900)).await;
        assert_eq!([told(0), told(1), told(2)], [false; 3], "not before its ten seconds");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!([told(0), told(1), told(2)], [false, true, false]);
        // It is gone a moment later.
        shares[1] = None;
        let (share, _) = entering.await.unwrap().expect("there is room now");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!([told(0), told(2)], [false; 2], "nobody else needs room");
        drop((share, shares));
        let state = room.state();
        assert_eq!((state.taken, state.holders.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_served_in_order_or_told_that_there_is_no_room() {
        let (room, epoch) = room();
        let all = reader(&room, epoch).0.try_enter(usize::MAX).expect("an answer of any size");
        let (one, two) = (reader(&room, epoch).0, reader(&room, epoch).0);
        let asker = one.clone();
        let first = tokio::spawn(async move { asker.enter(9 * MIB).await });
        tokio::task::yield_now().await;
        let second = tokio::spawn(async move { two.enter(MIB).await });
        tokio::task::yield_now().await;
        assert_eq!(one.enter(MIB).await.err(), Some(NoRoom), "after its time");
        assert_eq!([first.await.unwrap().err(), second.await.unwrap().err()], [Some(NoRoom); 2]);
        drop(all);
        assert!(one.try_enter(10 * MIB).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_streams_of_one_connection_share_its_part() {
        let (room, _) = room();
        let connection = room.of_connection();
        let stream =
            || Asker::new(&room, Reader::Stream(Arc::new(Watch::new())), Some(Arc::clone(&connection)));
        let held = stream().try_enter(3 * MIB).expect("room");
        assert!(stream().try_enter(2 * MIB).is_none(), "its connection has as much as it may");
        assert!(stream().try_enter(MIB).is_some());
        let elsewhere = room.of_connection();
        let other = Asker::new(&room, Reader::Stream(Arc::new(Watch::new())), Some(elsewhere));
        assert!(other.try_enter(4 * MIB).is_some());
        drop(held);
        assert!(stream().try_enter(usize::MAX).is_some(), "a large answer takes what a connection may have");
    }

    #[tokio::test(start_paused = true)]
    async fn the_stuck_streams_of_a_full_connection_make_room() {
        let (room, _) = room();
        let (connection, elsewhere) = (room.of_connection(), room.of_connection());
        let stream = |of: &Arc<Semaphore>| {
            let watch = Arc::new(Watch::new());
            (Asker::new(&room, Reader::Stream(Arc::clone(&watch)), Some(Arc::clone(of))), watch)
        };
        let streams = [stream(&elsewhere), stream(&connection), stream(&connection)];
        let mut shares: Vec<_> = streams.iter().map(|(asker, _)| asker.try_enter(2 * MIB)).collect();
        assert!(shares.iter().all(Option::is_some));
        // The stream of another connection is stuck longest, but it is not in the way.
        for (_, watch) in &streams {
            watch.offered();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let waiting = [stream(&connection).0, stream(&connection).0]
            .map(|asker| tokio::spawn(async move { asker.enter(2 * MIB).await }));
        let cut = || [0, 1, 2].map(|at: usize| streams[at].1.is_cut(Waker::noop()));
        tokio::time::sleep(Duration::from_millis(7900)).await;
        assert_eq!(cut(), [false; 3], "not before its ten seconds");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(cut(), [false, true, false], "the first who waits needs no more");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(cut(), [false, true, false], "and it has not gone yet");
        shares[1] = None;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(cut(), [false, true, true], "the second needs room as well");
        shares[2] = None;
        for waiting in waiting {
            waiting.await.unwrap().expect("there is room now");
        }
    }

    #[test]
    fn bytes_keep_their_share_while_any_part_of_them_is_there() {
        let (room, epoch) = room();
        let share = reader(&room, epoch).0.try_enter(MIB).expect("room");
        let bytes = share.holding(Bytes::from_static(b"abc"));
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!((&part[..], room.state().taken), (&b"b"[..], MIB));
        drop(part);
        assert_eq!(room.state().taken, 0);
    }
}
