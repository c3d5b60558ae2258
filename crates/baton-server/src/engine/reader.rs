//! Reads one task's log from a number on, and waits for more.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_protocol::Error;
use baton_protocol::domain::{Scope, TaskId};
use tokio_util::task::AbortOnDropHandle;

use super::commit::WatchedStore;
use super::hub::{Bell, Heard};
use super::view::View;
use super::{from_store, large, not_found};
use crate::net::{Asker, SMALL, Share};
use crate::store::{StoreError, StoredEvent};

/// Events taken at once: from the bell for nothing, from the store with one call.
const BATCH: usize = 256;

/// What a reader finds.
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
    /// Where the reader is somebody who may not read: who asks for room for large events.
    asker: Option<Asker>,
    /// The room of what is `ready`, and of what was given out last.
    share: Option<Share>,
    given: Option<Share>,
    /// Waits for room by itself, so that a stream that says in between that it is alive keeps its place in line.
    asking: Option<AbortOnDropHandle<Share>>,
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
            share: None,
            given: None,
            asking: None,
        }
    }

    pub(crate) fn with_asker(mut self, asker: Option<Asker>) -> Self {
        self.asker = asker;
        self
    }

    /// The room of the events given out last, if they are large.
    pub(crate) fn take_share(&mut self) -> Option<Share> {
        self.given.take()
    }

    /// The next event; waits for it as long as it takes. Safe to drop between two events.
    pub(crate) async fn next(&mut self) -> Result<Read, StoreError> {
        loop {
            let rings = self.bell.rings();
            match self.next_or_ring(rings).await? {
                Read::Nothing => {}
                read => return Ok(read),
            }
        }
    }

    /// The next event; [`Read::Nothing`] when there is none and the bell has been rung since `rings`.
    pub(crate) async fn next_or_ring(&mut self, rings: u64) -> Result<Read, StoreError> {
        if self.ready.is_empty() {
            // What was given out and not sent is not there any more.
            self.given = None;
            if self.asking.is_none() {
                let Some(events) = self.read().await? else { return Ok(Read::Gone) };
                match self.asks_for(&events) {
                    // Read again once there is room: nothing of it is held meanwhile.
                    Some(bytes) => self.asking = self.asker.as_ref().map(|asker| ask(asker, bytes)),
                    None => self.ready = events.into(),
                }
            }
            if let Some(asking) = &mut self.asking {
                let share = asking.await;
                self.asking = None;
                self.share = share.ok();
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
        match self.bell.heard(self.after, BATCH)? {
            Heard::Events(events) => Ok(Some(events)),
            Heard::Nothing => Ok(Some(Vec::new())),
            Heard::AskStore => self.ask_store().await,
        }
    }

    /// The next events of the log, none if all have been read. `None`: they are not in the log any more. A log that
    /// has nothing for this reader will not get it by waiting, so the head decides which of the two it is.
    async fn ask_store(&self) -> Result<Option<Vec<StoredEvent>>, StoreError> {
        loop {
            let events = self.store.events(&self.scope, &self.id, self.after, BATCH as u32).await?;
            if let Some(first) = events.first() {
                return Ok((first.number == self.after + 1).then_some(events));
            }
            match self.store.head(&self.scope, &self.id).await? {
                // Removed; another task may have been given its id since.
                None => return Ok(None),
                Some(head) if head.key != self.bell.key() || head.folded_through > self.after => {
                    return Ok(None);
                }
                Some(head) if head.version <= self.after => return Ok(Some(events)),
                // Appended between the two looks.
                Some(_) => {}
            }
        }
    }

    /// The task as it is now; what is read next comes after it. For a reader whose next event is gone.
    pub(crate) async fn skip_to_now(&mut self) -> Result<View, Error> {
        // Where this was given up while it waited, the room has been waited for since.
        let waited_for = self.share.take();
        let mut view = self.now().await?;
        if let Some(asker) = &self.asker {
            let bytes = view.bytes();
            self.given = match waited_for {
                Some(share) => asker.fit(share, bytes).ok(),
                None => asker.try_enter(bytes),
            };
            if self.given.is_none() {
                drop(view);
                let asking = self.asking.insert(ask(asker, bytes));
                self.given = asking.await.ok();
                self.asking = None;
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

    /// How much room is needed for these, if they are large and there is none at once.
    fn asks_for(&mut self, events: &[StoredEvent]) -> Option<usize> {
        self.share = None;
        let asker = self.asker.as_ref()?;
        let bytes = events.iter().map(|event| event.record().len()).sum();
        if bytes > SMALL {
            self.share = asker.try_enter(bytes);
        }
        (bytes > SMALL && self.share.is_none()).then_some(bytes)
    }

    /// The next event if it is at hand: lets a stream put many small events into one write.
    pub(crate) fn at_hand(&mut self) -> Option<StoredEvent> {
        self.fetch();
        self.take()
    }

    /// How many events come next without waiting, as far as is known, and how many bytes they have.
    pub(crate) fn ahead(&mut self) -> (usize, usize) {
        self.fetch();
        (self.ready.len(), self.ready.iter().map(|event| event.record().len()).sum())
    }

    fn fetch(&mut self) {
        if self.ready.is_empty()
            && self.asking.is_none()
            && let Ok(Heard::Events(events)) = self.bell.heard(self.after, BATCH)
            && self.asks_for(&events).is_none()
        {
            self.ready = events.into();
        }
    }

    fn take(&mut self) -> Option<StoredEvent> {
        let event = self.ready.pop_front()?;
        debug_assert_eq!(event.number, self.after + 1, "the log has no gap");
        self.after = event.number;
        // A large event is the last of its page. What comes next may be fetched before this is sent.
        if self.ready.is_empty() && self.share.is_some() {
            self.given = self.share.take();
        }
        Some(event)
    }
}

fn ask(asker: &Asker, bytes: usize) -> AbortOnDropHandle<Share> {
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

    use super::super::hub::Hub;
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

    /// A reader of such a task, with all of it at hand.
    async fn reader(sizes: &[usize], asker: &Asker) -> LogReader {
        reader_of(MemoryStore::new(), sizes, asker).await
    }

    async fn reader_of(store: MemoryStore, sizes: &[usize], asker: &Asker) -> LogReader {
        let (id, events) = (names().0, said(sizes));
        let bell = Hub::new().bell(TaskKey(1));
        bell.ring(events.len() as u64, &events, None);
        let store = Arc::new(store);
        let callers = Callers::load(&*store).await.unwrap();
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
        assert_eq!(reader.at_hand().unwrap().number, 2);
        drop(share);
        assert_eq!((reader.ahead().0, asker.taken() / LARGE), (1, 1));
        drop(reader.take_share());
        assert_eq!(asker.taken(), 0);
    }

    /// The log of the task is gone from where the reader is, so it is shown the task.
    #[tokio::test]
    async fn s12_a_large_task_is_folded_apart_from_the_worker_threads() {
        for (bytes, apart) in [(10, false), (5 * LARGE, true)] {
            let (task, context_id) = names();
            let at = Timestamp::from_millis(0);
            let append = Append {
                task,
                birth: Some(Birth { context_id, generation: Generation::V1, created_at: at }),
                expected: 0,
                fence: 0,
                events: said(&[bytes]),
                head: HeadState {
                    state: TaskState::Working,
                    status_at: at,
                    work: Work::Idle,
                    attempts: 1,
                    holder: None,
                    fence: 0,
                },
                snapshot: None,
                message: None,
                settled: Vec::new(),
            };
            let store = MemoryStore::new();
            store.append(&Scope::new("a", "", "o"), append).await.unwrap();
            let mut reader = reader_of(store, &[], &Asker::alone()).await;
            let mut shown = pin!(reader.skip_to_now());
            assert_eq!(futures_util::poll!(shown.as_mut()).is_pending(), apart);
        }
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
            assert!(reader.at_hand().is_none());
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
