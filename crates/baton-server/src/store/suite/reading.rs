//! `head`, `load`, `events`: what readers of the log get.

use std::sync::Arc;

use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, Event, EventBody, Message, Part, Role, StatusUpdate, TaskState,
};
use baton_protocol::lifecycle::Snapshot;

use super::fixture::*;
use crate::store::{EVENTS_BYTES, Store, StoredEvent, StoredSnapshot, record};

pub(super) async fn nothing_is_read_of_an_unknown_task(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    assert_eq!(store.head(&scope(), &id("u")).await.unwrap(), None);
    assert_eq!(store.load(&scope(), &id("u")).await.unwrap(), None);
    assert_eq!(store.events(&scope(), &id("u"), 0, 10).await.unwrap(), []);
    assert_eq!(store.requests(&scope(), &id("u")).await.unwrap(), []);
}

pub(super) async fn a_load_is_the_snapshot_and_the_events_after_it(store: &Arc<dyn Store>) {
    written(store, birth("t").events(2)).await;
    let loaded = load(store, "t").await;
    assert_eq!((loaded.snapshot, numbers(&loaded.tail)), (None, vec![1, 2]));
    written(store, next("t", 2).events(2).snapshot()).await;
    written(store, next("t", 4).events(3)).await;
    let loaded = load(store, "t").await;
    assert_eq!(loaded.snapshot, Some(snapshot(4, "t")));
    assert_eq!(loaded.tail, next("t", 4).events(3).events);
    assert_eq!(loaded.head, head(store, "t").await);
    // The events before the snapshot are still in the log.
    assert_eq!(numbers(&store.events(&scope(), &id("t"), 0, 100).await.unwrap()), [1, 2, 3, 4, 5, 6, 7]);
}

pub(super) async fn a_snapshot_of_the_last_version_leaves_no_tail(store: &Arc<dyn Store>) {
    written(store, birth("t").events(5).snapshot()).await;
    let loaded = load(store, "t").await;
    assert_eq!((loaded.snapshot, loaded.tail), (Some(snapshot(5, "t")), vec![]));
}

pub(super) async fn events_come_after_a_number_up_to_a_limit(store: &Arc<dyn Store>) {
    let append = birth("t").events(9);
    written(store, append.clone()).await;
    let read = async |after, limit| store.events(&scope(), &id("t"), after, limit).await.unwrap();
    assert_eq!(read(0, 100).await, append.events);
    assert_eq!(read(0, 1).await, append.events[..1]);
    assert_eq!(read(4, 3).await, append.events[4..7]);
    assert_eq!(read(8, 3).await, append.events[8..]);
    assert_eq!(read(9, 3).await, []);
    assert_eq!(read(1_000_000, 3).await, []);
}

pub(super) async fn events_stop_early_by_bytes(store: &Arc<dyn Store>) {
    let sizes = [100_000, 25_000, 25_000, 25_000, 10, 75_000, 10];
    let append = birth("t").with(|append| {
        append.events = (1..).zip(sizes).map(|(number, bytes)| large_event(number, bytes)).collect();
    });
    written(store, append.clone()).await;
    let mut read: Vec<StoredEvent> = Vec::new();
    let mut pages = 0;
    while read.len() < append.events.len() {
        let page = store.events(&scope(), &id("t"), read.len() as u64, 100).await.unwrap();
        assert!(!page.is_empty(), "after {}", read.len());
        // The contract says "about": the event that exceeds the limit may be on this page or on the next.
        let bytes: usize = page[..page.len() - 1].iter().map(|event| event.record().len()).sum();
        assert!(bytes <= EVENTS_BYTES, "{bytes} bytes before the last of {} events", page.len());
        read.extend(page);
        pages += 1;
    }
    assert_eq!(read, append.events);
    assert!(pages <= 6, "small events share a page");
}

/// Uses the real codec: a loaded task is equal to the one that was written, before and after folding.
pub(super) async fn what_is_loaded_folds_into_the_task(store: &Arc<dyn Store>) {
    let message = |role, text: &str| Message::new(message_id(text), role, vec![Part::text(text)]);
    let status = |state, said| EventBody::Status(StatusUpdate { state, message: said, metadata: None });
    let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("result")]);
    let bodies = [
        EventBody::said(message(Role::User, "go")),
        EventBody::AttemptStarted { attempt: 1, skill: None },
        status(TaskState::Working, Some(message(Role::Agent, "on it"))),
        EventBody::Artifact(ArtifactUpdate {
            artifact,
            append: false,
            joins: false,
            last_chunk: true,
            ordinal: 0,
            metadata: None,
        }),
        status(TaskState::Completed, None),
    ];
    let mut task = Snapshot::begin(id("t"), context("c"), at(0));
    for (number, body) in (1..).zip(bodies) {
        let event = Event { number, at: at(number as i64), body };
        let stored = StoredEvent::encode(&id("t"), &context("c"), &event);
        task.apply(event).unwrap();
        let append = if number == 1 { birth("t") } else { next("t", number - 1) };
        let append = append.state(task.state()).at(number as i64).with(|append| append.events = vec![stored]);
        let halfway = (number == 3 || number == 5).then(|| StoredSnapshot::encode(&task));
        written(store, append.with(|append| append.snapshot = halfway)).await;
        assert_eq!(record::fold(&load(store, "t").await).unwrap(), task);
    }
    assert_eq!(store.fold_ended(at(100), at(100), 10).await.unwrap(), 1);
    assert_eq!(record::fold(&load(store, "t").await).unwrap(), task);
    let page = tasks(store, &scope(), &query()).await;
    assert_eq!(record::fold(&page[0]).unwrap(), task);
}
