//! Reads one task's log from a number on, and waits for more.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_protocol::Error;
use baton_protocol::domain::{Scope, TaskId};
use tokio_util::task::AbortOnDropHandle;

use super::commit::WatchedStore;
use super::hub::{Bell, Cached};
use super::view::View;
use super::{from_store, large, not_found};
use crate::net::{Asker, SMALL, Share};
use crate::store::{StoreError, StoredEvent};

/// Most events that are read at a time, from the bell or with one call of the store.
const BATCH: usize = 256;

/// The result of reading.
#[derive(Debug)]
pub(crate) enum Read {
    Event(StoredEvent),
    /// No event yet.
    Nothing,
    /// The next event is no longer in the log: it was folded into the task, or the task was removed.
    Gone,
}

#[derive(Debug)]
pub(crate) struct LogReader {
    pub(crate) store: WatchedStore,
    pub(crate) bell: Arc<Bell>,
    pub(crate) scope: Scope,
    pub(crate) id: TaskId,
    /// Number of the last event given out.
    pub(crate) after: u64,
    ready: VecDeque<StoredEvent>,
    /// Reserves room (memory) for large events, if they go to a client, who may be slow to read them.
    asker: Option<Asker>,
    /// The share of the events in `ready`.
    ready_share: Option<Share>,
    /// The share of the events given out last.
    given_share: Option<Share>,
    /// Waits for room in a tokio task of its own: the stream's future is dropped for each keep-alive, and would otherwise
    /// lose its place in the line.
    waiting_for_room: Option<AbortOnDropHandle<Share>>,
}

impl LogReader {
    pub(crate) fn new(store: WatchedStore, bell: Arc<Bell>, scope: Scope, id: TaskId, after: u64) -> Self {
        LogReader {
            store,
            bell,
            scope,
            id,
            after,
            ready: VecDeque::new(),
            asker: None,
            ready_share: None,
            given_share: None,
            waiting_for_room: None,
        }
    }

    pub(crate) fn with_asker(mut self, asker: Option<Asker>) -> Self {
        self.asker = asker;
        self
    }

    /// The share of the events given out last, if they are large.
    pub(crate) fn take_share(&mut self) -> Option<Share> {
        self.given_share.take()
    }

    /// The next event; waits until there is one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Read, StoreError> {
        loop {
            let rings = self.bell.rings();
            match self.next_or_ring(rings).await? {
                Read::Nothing => {}
                read => return Ok(read),
            }
        }
    }

    /// The next event; [`Read::Nothing`] when there is none and the bell has rung since `rings`.
    pub(crate) async fn next_or_ring(&mut self, rings: u64) -> Result<Read, StoreError> {
        if self.ready.is_empty() {
            // The events given out before have been dropped if their share was not taken.
            self.given_share = None;
            if self.waiting_for_room.is_none() {
                let Some(events) = self.read().await? else { return Ok(Read::Gone) };
                match self.reserve_room(&events) {
                    // The events are dropped, and read again once there is room.
                    Some(bytes) => {
                        self.waiting_for_room = self.asker.as_ref().map(|asker| wait_for_room(asker, bytes))
                    }
                    None => self.ready = events.into(),
                }
            }
            if let Some(waiting) = &mut self.waiting_for_room {
                let share = waiting.await;
                self.waiting_for_room = None;
                self.ready_share = share.ok();
                let Some(events) = self.read().await? else { return Ok(Read::Gone) };
                self.ready = events.into();
            }
        }
        if let Some(event) = self.take() {
            return Ok(Read::Event(event));
        }
        self.bell.rung_since(rings).await;
        Ok(Read::Nothing)
    }

    /// The next events, from the bell or the log; `None` as in [`ask_store`](Self::ask_store).
    async fn read(&self) -> Result<Option<Vec<StoredEvent>>, StoreError> {
        match self.bell.cached(self.after, BATCH)? {
            Cached::Events(events) => Ok(Some(events)),
            Cached::Nothing => Ok(Some(Vec::new())),
            Cached::AskStore => self.ask_store().await,
        }
    }

    /// The next events of the log; empty if all have been read. `None`: they are no longer in the log. If the store returns no
    /// events, the task's head tells which of the two it is.
    async fn ask_store(&self) -> Result<Option<Vec<StoredEvent>>, StoreError> {
        loop {
            let events = self.store.events(&self.scope, &self.id, self.after, BATCH as u32).await?;
            if let Some(first) = events.first() {
                return Ok((first.number == self.after + 1).then_some(events));
            }
            match self.store.head(&self.scope, &self.id).await? {
                // The task was removed. (In the next case, another task may have got its id since.)
                None => return Ok(None),
                Some(head) if head.key != self.bell.key() || head.folded_through > self.after => {
                    return Ok(None);
                }
                Some(head) if head.version <= self.after => return Ok(Some(events)),
                // An event was appended between the two reads.
                Some(_) => {}
            }
        }
    }

    /// The task as it is now, for a reader whose next event is no longer in the log. Reading continues after it.
    pub(crate) async fn skip_to_now(&mut self) -> Result<View, Error> {
        // An earlier call may have been dropped while it waited for room; then this is the share it waited for.
        let waited_for = self.ready_share.take();
        let mut view = self.now().await?;
        if let Some(asker) = &self.asker {
            let bytes = view.bytes();
            self.given_share = match waited_for {
                Some(share) => asker.fit(share, bytes).ok(),
                None => asker.try_enter(bytes),
            };
            if self.given_share.is_none() {
                drop(view);
                let waiting = self.waiting_for_room.insert(wait_for_room(asker, bytes));
                self.given_share = waiting.await.ok();
                self.waiting_for_room = None;
                view = self.now().await?;
            }
        }
        self.after = view.version();
        Ok(view)
    }

    async fn now(&self) -> Result<View, Error> {
        let loaded = self.store.load(&self.scope, &self.id).await.map_err(from_store)?;
        let loaded = loaded.filter(|loaded| loaded.head.key == self.bell.key());
        large::view(loaded.ok_or_else(|| not_found(&self.id))?).await.map_err(from_store)
    }

    /// If the events are large: reserves room for them. Returns how many bytes are needed if there is no room now.
    fn reserve_room(&mut self, events: &[StoredEvent]) -> Option<usize> {
        self.ready_share = None;
        let asker = self.asker.as_ref()?;
        let bytes = events.iter().map(|event| event.record().len()).sum();
        if bytes > SMALL {
            self.ready_share = asker.try_enter(bytes);
        }
        (bytes > SMALL && self.ready_share.is_none()).then_some(bytes)
    }

    /// The next event if it is available without waiting, so that a stream can put many small events into one write.
    pub(crate) fn next_ready(&mut self) -> Option<StoredEvent> {
        self.fetch();
        self.take()
    }

    /// How many events are known to be available without waiting, and how many bytes they have.
    pub(crate) fn ahead(&mut self) -> (usize, usize) {
        self.fetch();
        (self.ready.len(), self.ready.iter().map(|event| event.record().len()).sum())
    }

    fn fetch(&mut self) {
        if self.ready.is_empty()
            && self.waiting_for_room.is_none()
            && let Ok(Cached::Events(events)) = self.bell.cached(self.after, BATCH)
            && self.reserve_room(&events).is_none()
        {
            self.ready = events.into();
        }
    }

    fn take(&mut self) -> Option<StoredEvent> {
        let event = self.ready.pop_front()?;
        debug_assert_eq!(event.number, self.after + 1, "the log has no gap");
        self.after = event.number;
        // A large event is the last of its page. The next page, with its own share, may be read before this one is sent.
        if self.ready.is_empty() && self.ready_share.is_some() {
            self.given_share = self.ready_share.take();
        }
        Some(event)
    }
}

fn wait_for_room(asker: &Asker, bytes: usize) -> AbortOnDropHandle<Share> {
    let asker = asker.clone();
    AbortOnDropHandle::new(tokio::spawn(async move { asker.enter_in_turn(bytes).await }))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use baton_protocol::Generation;
    use baton_protocol::domain::{
        ContextId, Event, EventBody, Message, MessageId, Part, Role, StatusUpdate, TaskState, Timestamp,
    };

    use tokio::time::timeout;

    use super::super::hub::{Hub, TailLimits};
    use super::*;
    use crate::store::memory::MemoryStore;
    use crate::store::{Append, Birth, HeadState, Store as _, TaskKey, Work};
    use crate::telemetry::{Callers, MetricsAccess, Telemetry};

    const LARGE: usize = 100_000;

    fn names() -> (TaskId, ContextId) {
        (TaskId::parse("t").unwrap(), ContextId::parse("c").unwrap())
    }

    /// The events of a task that says this much each time.
    fn said(sizes: &[usize]) -> Vec<StoredEvent> {
        let (id, context) = names();
        let event = |(number, size): (u64, &usize)| {
            let said = vec![Part::text("x".repeat(*size))];
            let message = Some(Message::new(MessageId::parse("m").unwrap(), Role::Agent, said));
            let update = StatusUpdate { state: TaskState::Working, message, metadata: None };
            let (at, body) = (Timestamp::from_millis(0), EventBody::Status(update));
            StoredEvent::encode(&id, &context, &Event { number, at, body })
        };
        (1..).zip(sizes).map(event).collect()
    }

    /// Adds events to the log of such a task.
    fn append(expected: u64, events: Vec<StoredEvent>) -> Append {
        let (task, context_id) = names();
        let at = Timestamp::from_millis(0);
        let birth = Birth { context_id, generation: Generation::V1, created_at: at };
        let (state, work) = (TaskState::Working, Work::Idle);
        Append {
            task,
            birth: (expected == 0).then_some(birth),
            expected,
            fence: 0,
            events,
            head: HeadState { state, status_at: at, work, attempts: 1, holder: None, fence: 0 },
            snapshot: None,
            message: None,
            settled: Vec::new(),
            webhook: None,
        }
    }

    /// A reader of such a task, with all of it at hand.
    async fn reader(sizes: &[usize], asker: &Asker) -> LogReader {
        reader_of(MemoryStore::new(), sizes, asker).await
    }

    async fn reader_of(store: MemoryStore, sizes: &[usize], asker: &Asker) -> LogReader {
        let (id, events) = (names().0, said(sizes));
        let bell = Hub::new(TailLimits { events: 1024, bytes: 256 * 1024 }).bell(TaskKey(1));
        bell.ring(events.len() as u64, &events, None);
        let store = Arc::new(store);
        let callers = Callers::new(vec![7; 32]);
        let telemetry = Telemetry::new([], callers, MetricsAccess::default(), false);
        let store = WatchedStore::new(store, telemetry);
        LogReader::new(store, bell, Scope::new("a", "", "o"), id, 0).with_asker(Some(asker.clone()))
    }

    #[tokio::test]
    async fn a_large_event_keeps_its_room_when_the_next_is_fetched() {
        let asker = Asker::alone();
        let mut reader = reader(&[LARGE, LARGE, 10], &asker).await;
        let Read::Event(first) = reader.next().await.unwrap() else { panic!("it is there") };
        assert_eq!((first.number, asker.taken() / LARGE), (1, 1));
        assert_eq!(reader.ahead().0, 1);
        assert_eq!(asker.taken() / LARGE, 2, "one is to be sent, one is ready");
        let share = reader.take_share();
        assert!(share.is_some() && reader.take_share().is_none(), "what is ready keeps its own");
        assert_eq!(reader.next_ready().unwrap().number, 2);
        drop(share);
        assert_eq!((reader.ahead().0, asker.taken() / LARGE), (1, 1));
        drop(reader.take_share());
        assert_eq!(asker.taken(), 0);
    }

    /// The log of the task is gone from where the reader is, so it is shown the task.
    #[tokio::test]
    async fn s12_a_large_task_is_folded_apart_from_the_worker_threads() {
        for (bytes, apart) in [(10, false), (5 * LARGE, true)] {
            let mut waited = false;
            // On a busy machine the other thread may be done before it is waited for; not every time.
            for _ in 0..if apart { 50 } else { 1 } {
                let store = MemoryStore::new();
                store.append(&Scope::new("a", "", "o"), append(0, said(&[bytes]))).await.unwrap();
                let mut reader = reader_of(store, &[], &Asker::alone()).await;
                let mut shown = pin!(reader.skip_to_now());
                waited |= futures_util::poll!(shown.as_mut()).is_pending();
                if waited {
                    break;
                }
            }
            assert_eq!(waited, apart);
        }
    }

    #[tokio::test]
    async fn events_that_another_process_wrote_are_read_from_the_store() {
        let (store, scope) = (MemoryStore::new(), Scope::new("a", "", "o"));
        store.append(&scope, append(0, said(&[10]))).await.unwrap();
        store.append(&scope, append(1, said(&[10, 10])[1..].to_vec())).await.unwrap();
        // Only the first has passed through here.
        let mut reader = reader_of(store, &[10], &Asker::alone()).await;
        assert!(matches!(reader.next().await.unwrap(), Read::Event(first) if first.number == 1));
        let bell = Arc::clone(&reader.bell);
        let mut next = pin!(reader.next());
        assert!(futures_util::poll!(next.as_mut()).is_pending());
        bell.written_elsewhere();
        let next = timeout(Duration::from_secs(10), next).await.expect("it is rung").unwrap();
        assert!(matches!(next, Read::Event(second) if second.number == 2));
    }

    #[tokio::test]
    async fn what_was_given_out_and_not_sent_leaves_its_room_to_others() {
        let asker = Asker::alone();
        let mut reader = reader(&[LARGE, 10], &asker).await;
        reader.next().await.unwrap();
        assert_eq!(asker.taken() / LARGE, 1);
        reader.next().await.unwrap();
        assert_eq!(asker.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_keeps_its_place_in_line_when_it_looks_up_in_between() {
        let asker = Asker::alone();
        let mut reader = reader(&[LARGE], &asker).await;
        let all = asker.try_enter(usize::MAX).expect("room");
        let a_while = Duration::from_secs(15);
        assert!(timeout(a_while, reader.next()).await.is_err());
        let later = tokio::spawn({
            let asker = asker.clone();
            async move { asker.enter_in_turn(usize::MAX).await }
        });
        for _ in 0..10 {
            assert!(reader.next_ready().is_none());
            assert!(timeout(a_while, reader.next()).await.is_err());
        }
        drop(all);
        let read = timeout(a_while, reader.next()).await.expect("its turn").unwrap();
        assert!(matches!(read, Read::Event(_)) && !later.is_finished());
        drop(reader.take_share());
        later.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_leaves_leaves_the_line() {
        let asker = Asker::alone();
        let mut reader = reader(&[LARGE], &asker).await;
        let all = asker.try_enter(usize::MAX).expect("room");
        assert!(timeout(Duration::from_secs(15), reader.next()).await.is_err());
        drop((reader, all));
        assert!(asker.enter(usize::MAX).await.is_ok());
    }
}
