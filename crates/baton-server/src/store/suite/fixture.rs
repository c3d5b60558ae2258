//! Short helpers for the cases.
//!
//! Records are hand-written, so that a case about stores cannot fail because of the codec.

use std::any::Any;
use std::sync::Arc;

use baton_protocol::Generation;
use baton_protocol::domain::{ContextId, ListFilter, MessageId, Scope, TaskId, TaskState, Timestamp};
use bytes::Bytes;

use crate::store::{
    Append, Appended, Birth, Detail, Head, HeadState, ListPage, ListQuery, Listed, Loaded, MessageRecord,
    NewRequest, PendingRequest, RequestId, Requested, Settled, Store, StoredEvent, StoredSnapshot, TaskKey,
    Work,
};

/// An empty store, and what must live as long as it.
#[derive(Debug)]
pub struct Fixture {
    pub(in crate::store) store: Arc<dyn Store>,
    _guard: Option<Box<dyn Any + Send>>,
}

impl<S: Store> From<S> for Fixture {
    fn from(store: S) -> Self {
        Fixture { store: Arc::new(store), _guard: None }
    }
}

impl<S: Store, G: Any + Send> From<(S, G)> for Fixture {
    fn from((store, guard): (S, G)) -> Self {
        Fixture { store: Arc::new(store), _guard: Some(Box::new(guard)) }
    }
}

pub(in crate::store) fn scope() -> Scope {
    Scope::new("agent", "tenant", "owner")
}

pub(in crate::store) fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

pub(in crate::store) fn context(text: &str) -> ContextId {
    ContextId::parse(text).unwrap()
}

pub(in crate::store) fn message_id(text: &str) -> MessageId {
    MessageId::parse(text).unwrap()
}

/// This many milliseconds after a fixed time in November 2025.
pub(in crate::store) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_763_200_000_000 + millis)
}

pub(in crate::store) fn status_event(number: u64, text: &str) -> StoredEvent {
    let record = format!("1 S2 1763200000000\n{{\"statusUpdate\":{{\"taskId\":\"{text}\"}}}}");
    StoredEvent::from_record(number, Bytes::from(record)).unwrap()
}

/// A status event whose record has about this many bytes.
pub(in crate::store) fn large_event(number: u64, bytes: usize) -> StoredEvent {
    status_event(number, &"x".repeat(bytes))
}

/// The event of a request.
pub(in crate::store) fn user_event(text: &str) -> StoredEvent {
    let record = format!("1 U 1763200000001\n{{\"messageId\":\"{text}\"}}");
    StoredEvent::from_record(0, Bytes::from(record)).unwrap()
}

pub(in crate::store) fn snapshot(version: u64, text: &str) -> StoredSnapshot {
    StoredSnapshot::from_record(Bytes::from(format!("1 {version} 1\n{{}}\n{{\"id\":\"{text}\"}}"))).unwrap()
}

/// The record of a message that belongs to a task; the hash is that byte 32 times.
pub(in crate::store) fn record(message: &str, hash: u8, task: &str) -> MessageRecord {
    MessageRecord {
        message_id: message_id(message),
        hash: [hash; 32],
        task: Some(id(task)),
        event: None,
        reply: None,
        at: at(0),
    }
}

pub(in crate::store) fn reply(message: &str, hash: u8, text: &str) -> MessageRecord {
    let reply = Some(Bytes::from(format!("1\n{{\"messageId\":\"{text}\"}}")));
    MessageRecord { task: None, reply, ..record(message, hash, "unused") }
}

/// The append that creates a task: one event, queued, at time 0, in context `c`.
pub(in crate::store) fn birth(task: &str) -> Append {
    Append {
        task: id(task),
        birth: Some(Birth { context_id: context("c"), generation: Generation::V1, created_at: at(0) }),
        expected: 0,
        fence: 0,
        events: vec![status_event(1, task)],
        head: HeadState {
            state: TaskState::Submitted,
            status_at: at(0),
            work: Work::Queued,
            attempts: 0,
            holder: None,
            fence: 0,
        },
        snapshot: None,
        message: None,
        settled: Vec::new(),
        webhook: None,
    }
}

/// The append of one more event to a task at version `expected`: working, at a time equal to the event's number.
pub(in crate::store) fn next(task: &str, expected: u64) -> Append {
    let head = HeadState {
        state: TaskState::Working,
        status_at: at(expected as i64 + 1),
        work: Work::Running,
        attempts: 1,
        holder: None,
        fence: 0,
    };
    Append { birth: None, expected, events: vec![status_event(expected + 1, task)], head, ..birth(task) }
}

/// Changes to an append, as chained calls.
pub(in crate::store) trait Vary: Sized {
    fn with(self, change: impl FnOnce(&mut Append)) -> Append;

    fn state(self, state: TaskState) -> Append {
        self.with(|append| append.head.state = state)
    }

    fn at(self, millis: i64) -> Append {
        self.with(|append| append.head.status_at = at(millis))
    }

    fn work(self, work: Work) -> Append {
        self.with(|append| append.head.work = work)
    }

    fn in_context(self, text: &str) -> Append {
        self.with(|append| append.birth.as_mut().unwrap().context_id = context(text))
    }

    fn events(self, count: u64) -> Append {
        self.with(|append| {
            let number = append.expected + 1..=append.expected + count;
            append.events = number.map(|number| status_event(number, append.task.as_str())).collect();
        })
    }

    fn with_message(self, message: &str, hash: u8) -> Append {
        self.with(|append| append.message = Some(record(message, hash, append.task.as_str())))
    }

    /// With a snapshot of the version after this append.
    fn snapshot(self) -> Append {
        self.with(|append| {
            let version = append.expected + append.events.len() as u64;
            append.snapshot = Some(snapshot(version, append.task.as_str()));
        })
    }

    fn settling(self, request: RequestId, event: Option<u64>) -> Append {
        self.with(|append| append.settled.push(Settled { request, event }))
    }

    /// Completed at that time, idle, with a snapshot.
    fn ended(self, millis: i64) -> Append {
        self.state(TaskState::Completed).at(millis).work(Work::Idle).snapshot()
    }
}

impl Vary for Append {
    fn with(mut self, change: impl FnOnce(&mut Append)) -> Append {
        change(&mut self);
        self
    }
}

/// A request with a user message; without a record it stands for a cancellation.
pub(in crate::store) fn new_request(text: &str, message: Option<MessageRecord>) -> NewRequest {
    NewRequest { event: user_event(text), message, most_pending: 16 }
}

pub(in crate::store) async fn written(store: &Arc<dyn Store>, append: Append) -> TaskKey {
    written_in(store, &scope(), append).await
}

pub(in crate::store) async fn written_in(store: &Arc<dyn Store>, scope: &Scope, append: Append) -> TaskKey {
    match store.append(scope, append.clone()).await.unwrap() {
        Appended::Written(key) => key,
        other => panic!("{append:?} was answered {other:?}"),
    }
}

pub(in crate::store) async fn noted(store: &Arc<dyn Store>, task: &str, request: NewRequest) -> RequestId {
    match store.request(&scope(), &id(task), request).await.unwrap() {
        Requested::Noted { request, .. } => request,
        other => panic!("a request to {task} was answered {other:?}"),
    }
}

pub(in crate::store) async fn head(store: &Arc<dyn Store>, task: &str) -> Head {
    store.head(&scope(), &id(task)).await.unwrap().expect("the task is there")
}

pub(in crate::store) async fn load(store: &Arc<dyn Store>, task: &str) -> Loaded {
    store.load(&scope(), &id(task)).await.unwrap().expect("the task is there")
}

pub(in crate::store) async fn exists(store: &Arc<dyn Store>, task: &str) -> bool {
    store.head(&scope(), &id(task)).await.unwrap().is_some()
}

pub(in crate::store) async fn recorded(
    store: &Arc<dyn Store>,
    message: &str,
    hash: u8,
) -> Option<MessageRecord> {
    store.message(&scope(), &message_id(message), &[hash; 32]).await.unwrap()
}

/// Everything a store answers about a task; compared to show that nothing was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Everything {
    loaded: Option<Loaded>,
    events: Vec<StoredEvent>,
    requests: Vec<PendingRequest>,
}

pub(in crate::store) async fn everything(store: &Arc<dyn Store>, scope: &Scope, task: &str) -> Everything {
    Everything {
        loaded: store.load(scope, &id(task)).await.unwrap(),
        events: store.events(scope, &id(task), 0, 10_000).await.unwrap(),
        requests: store.requests(scope, &id(task)).await.unwrap(),
    }
}

/// The first page of all tasks, whole and without the total.
pub(in crate::store) fn query() -> ListQuery {
    ListQuery {
        filter: ListFilter::default(),
        after: None,
        not_after: Timestamp::MAX,
        limit: 1_000,
        detail: Detail::Whole,
        most_bytes: usize::MAX,
        counted: false,
    }
}

pub(in crate::store) async fn page(store: &Arc<dyn Store>, scope: &Scope, query: &ListQuery) -> ListPage {
    store.list(scope, query).await.unwrap()
}

/// The tasks of a page with [`Detail::Whole`].
pub(in crate::store) async fn tasks(store: &Arc<dyn Store>, scope: &Scope, query: &ListQuery) -> Vec<Loaded> {
    let whole = |listed| match listed {
        Listed::Whole(loaded) => loaded,
        Listed::Status(brief) => panic!("{brief:?} is not the whole task"),
    };
    page(store, scope, query).await.tasks.into_iter().map(whole).collect()
}

pub(in crate::store) async fn listed(store: &Arc<dyn Store>, query: &ListQuery) -> Vec<String> {
    let page = page(store, &scope(), query).await;
    page.tasks.iter().map(|listed| listed.id().as_str().to_owned()).collect()
}

/// How many tasks a filter matches.
pub(in crate::store) async fn total(store: &Arc<dyn Store>, filter: &ListFilter) -> u64 {
    total_in(store, &scope(), filter).await
}

pub(in crate::store) async fn total_in(store: &Arc<dyn Store>, scope: &Scope, filter: &ListFilter) -> u64 {
    let query =
        ListQuery { filter: filter.clone(), limit: 1, counted: true, detail: Detail::Status, ..query() };
    page(store, scope, &query).await.total.expect("the total was asked for")
}

pub(in crate::store) fn numbers(events: &[StoredEvent]) -> Vec<u64> {
    events.iter().map(|event| event.number).collect()
}
