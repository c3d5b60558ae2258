//! `fold_ended`, `purge_ended`, `purge_records`: what is removed, and what is not.

use std::sync::Arc;

use baton_protocol::domain::{ListFilter, Scope, TaskState};

use super::fixture::*;
use crate::store::{Head, Loaded, MessageRecord, Store, TaskKey, Work};

pub(super) async fn folding_keeps_the_task_and_drops_its_events(store: &Arc<dyn Store>) {
    written(store, birth("t").events(3)).await;
    written(store, next("t", 3).events(2).ended(10)).await;
    let before = load(store, "t").await;
    assert_eq!(store.fold_ended(at(11), at(11), 10).await.unwrap(), 1);
    let after = load(store, "t").await;
    assert_eq!(after.head, Head { folded_through: 5, ..before.head });
    assert_eq!((after.snapshot, after.tail), (Some(snapshot(5, "t")), vec![]));
    for after in [0, 2, 5] {
        assert_eq!(store.events(&scope(), &id("t"), after, 10).await.unwrap(), []);
    }
    assert_eq!(listed(store, &query()).await, ["t"]);
    // A folded task is not folded again.
    assert_eq!(store.fold_ended(at(11), at(11), 10).await.unwrap(), 0);
}

/// A large task gets no new snapshot when it ends; its log is folded up to its last snapshot.
pub(super) async fn s12_folding_goes_as_far_as_the_snapshot(store: &Arc<dyn Store>) {
    let end = |append: crate::store::Append| append.state(TaskState::Failed).at(1).work(Work::Idle);
    written(store, end(birth("none"))).await;
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 0);
    written(store, birth("older").events(4).snapshot()).await;
    written(store, end(next("older", 4).events(3))).await;
    let before = load(store, "older").await;
    // Tasks that cannot be folded do not count for the limit.
    assert_eq!(store.fold_ended(at(10), at(10), 1).await.unwrap(), 1);
    let after = load(store, "older").await;
    assert_eq!(after, Loaded { head: Head { folded_through: 4, ..before.head }, ..before });
    for (cursor, left) in [(0, 5..8), (5, 6..8), (7, 8..8)] {
        let events = store.events(&scope(), &id("older"), cursor, 10).await.unwrap();
        assert_eq!(numbers(&events), left.collect::<Vec<u64>>());
    }
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 0);
    written(store, end(next("older", 7).events(0).snapshot())).await;
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 1);
    assert_eq!(head(store, "older").await.folded_through, 7);
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 2);
}

pub(super) async fn folding_leaves_what_lives_or_ended_later(store: &Arc<dyn Store>) {
    for state in TaskState::ALL {
        written(store, birth(&format!("{state:?}")).ended(1).state(state)).await;
    }
    written(store, birth("later").ended(10)).await;
    assert_eq!(store.fold_ended(at(10), at(10), 100).await.unwrap(), 4);
    for state in TaskState::ALL {
        let folded = head(store, &format!("{state:?}")).await.folded_through;
        assert_eq!(folded, u64::from(state.is_terminal()), "{state:?}");
    }
    assert_eq!(head(store, "later").await.folded_through, 0, "the bound is exclusive");
}

pub(super) async fn folding_goes_up_to_the_limit_and_then_on(store: &Arc<dyn Store>) {
    for n in 0..7 {
        written(store, birth(&format!("t{n}")).ended(n)).await;
    }
    let mut folded = Vec::new();
    for _ in 0..4 {
        folded.push(store.fold_ended(at(100), at(100), 3).await.unwrap());
    }
    assert_eq!(folded, [3, 3, 1, 0]);
}

pub(super) async fn purging_removes_the_oldest_first(store: &Arc<dyn Store>) {
    for (name, millis) in [("a", 30), ("b", 10), ("c", 50), ("d", 20), ("e", 40)] {
        written(store, birth(name).ended(millis)).await;
    }
    assert_eq!(store.purge_ended(at(100), 2).await.unwrap(), 2);
    assert_eq!(listed(store, &query()).await, ["c", "e", "a"]);
    assert_eq!(store.purge_ended(at(41), 100).await.unwrap(), 2);
    assert_eq!(listed(store, &query()).await, ["c"]);
    assert_eq!(store.purge_ended(at(41), 100).await.unwrap(), 0);
}

pub(super) async fn purging_leaves_what_lives_or_ended_later(store: &Arc<dyn Store>) {
    for state in TaskState::ALL {
        // An ended task is purged even without a snapshot and with work left.
        written(store, birth(&format!("{state:?}")).state(state).at(1)).await;
    }
    written(store, birth("later").ended(10)).await;
    assert_eq!(store.purge_ended(at(10), 100).await.unwrap(), 4);
    for state in TaskState::ALL {
        assert_eq!(exists(store, &format!("{state:?}")).await, !state.is_terminal(), "{state:?}");
    }
    assert!(exists(store, "later").await, "the bound is exclusive");
}

pub(super) async fn purging_removes_events_requests_and_rows(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    noted(store, "t", new_request("w", None)).await;
    written(store, next("t", 1).ended(1)).await;
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(store.head(&scope(), &id("t")).await.unwrap(), None);
    assert_eq!(store.load(&scope(), &id("t")).await.unwrap(), None);
    assert_eq!(store.events(&scope(), &id("t"), 0, 10).await.unwrap(), []);
    assert_eq!(store.requests(&scope(), &id("t")).await.unwrap(), []);
    assert_eq!(tasks(store, &scope(), &query()).await, []);
    let within = ListFilter { context_id: Some(context("c")), ..ListFilter::default() };
    assert_eq!(total(store, &within).await, 0);
    assert_eq!(store.open_tasks(TaskKey(0), 10).await.unwrap(), []);
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 0);
    assert_eq!(store.task_count().await.unwrap(), 0);
}

pub(super) async fn message_records_outlive_their_task(store: &Arc<dyn Store>) {
    written(store, birth("t").with_message("m", 1)).await;
    let request = noted(store, "t", new_request("w", Some(record("w", 1, "t")))).await;
    written(store, next("t", 1).settling(request, Some(2)).ended(1)).await;
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(recorded(store, "m", 1).await, Some(record("m", 1, "t")));
    assert_eq!(recorded(store, "w", 1).await, Some(MessageRecord { event: Some(2), ..record("w", 1, "t") }));
}

pub(super) async fn records_go_once_old_and_their_task_is_gone(store: &Arc<dyn Store>) {
    let said =
        |message: &str, task: &str, millis| MessageRecord { at: at(millis), ..record(message, 1, task) };
    for (task, message, millis) in [("gone", "old", 1), ("gone2", "young", 20), ("here", "kept", 1)] {
        written(store, birth(task).with(|append| append.message = Some(said(message, task, millis)))).await;
    }
    let noted = noted(store, "gone", new_request("noted", Some(said("noted", "gone", 2)))).await;
    written(store, next("gone", 1).settling(noted, Some(2)).ended(1)).await;
    written(store, next("gone2", 1).ended(1)).await;
    assert_eq!(store.purge_records(at(10), 100).await.unwrap(), 0, "all tasks are there");
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 2);
    assert_eq!(store.purge_records(at(1), 100).await.unwrap(), 0, "the bound is exclusive");
    assert_eq!(store.purge_records(at(10), 100).await.unwrap(), 2);
    assert_eq!(recorded(store, "old", 1).await, None);
    assert_eq!(recorded(store, "noted", 1).await, None);
    assert_eq!(recorded(store, "young", 1).await, Some(said("young", "gone2", 20)));
    assert_eq!(recorded(store, "kept", 1).await, Some(said("kept", "here", 1)));
    // A message without a record counts as new.
    written(store, birth("again").with_message("old", 1)).await;
}

pub(super) async fn replies_go_once_old(store: &Arc<dyn Store>) {
    for (message, millis) in [("a", 1), ("b", 10)] {
        let reply = MessageRecord { at: at(millis), ..reply(message, 1, "r") };
        store.put_reply(&scope(), reply).await.unwrap();
    }
    assert_eq!(store.purge_records(at(10), 100).await.unwrap(), 1);
    assert_eq!(recorded(store, "a", 1).await, None);
    assert!(recorded(store, "b", 1).await.is_some());
}

pub(super) async fn records_go_up_to_the_limit(store: &Arc<dyn Store>) {
    // Records of existing tasks do not count for the limit, however many and old.
    for n in 0..20 {
        written(store, birth(&format!("t{n}")).with_message(&format!("t{n}"), 1)).await;
    }
    for n in 0..7 {
        let reply = MessageRecord { at: at(5), ..reply(&format!("r{n}"), 1, "r") };
        store.put_reply(&Scope::new("agent", "", &format!("owner{}", n % 2)), reply).await.unwrap();
    }
    let mut purged = Vec::new();
    for _ in 0..4 {
        purged.push(store.purge_records(at(10), 3).await.unwrap());
    }
    assert_eq!(purged, [3, 3, 1, 0]);
}

pub(super) async fn a_purged_id_may_be_born_again(store: &Arc<dyn Store>) {
    written(store, birth("t").events(4).in_context("old").with_message("m", 1)).await;
    noted(store, "t", new_request("w", None)).await;
    written(store, next("t", 4).ended(1)).await;
    store.fold_ended(at(10), at(10), 10).await.unwrap();
    store.purge_ended(at(10), 10).await.unwrap();
    written(store, birth("t").in_context("new").at(50)).await;
    let loaded = load(store, "t").await;
    assert_eq!((loaded.head.version, loaded.head.folded_through), (1, 0));
    assert_eq!(
        (loaded.head.context_id, loaded.snapshot, numbers(&loaded.tail)),
        (context("new"), None, vec![1])
    );
    assert_eq!(store.requests(&scope(), &id("t")).await.unwrap(), []);
    // A task with the id in the old message's record exists again, so the record is kept.
    assert_eq!(store.purge_records(at(100), 10).await.unwrap(), 0);
}

pub(super) async fn tasks_of_all_scopes_are_counted(store: &Arc<dyn Store>) {
    assert_eq!(store.task_count().await.unwrap(), 0);
    for n in 0..5 {
        written_in(store, &Scope::new("agent", "", &format!("owner{n}")), birth("t").ended(n)).await;
    }
    assert_eq!(store.task_count().await.unwrap(), 5);
    // The sweeps cover all scopes, oldest first.
    assert_eq!(store.fold_ended(at(10), at(10), 2).await.unwrap(), 2);
    assert_eq!(store.purge_ended(at(10), 3).await.unwrap(), 3);
    assert_eq!(store.task_count().await.unwrap(), 2);
    let left = store.head(&Scope::new("agent", "", "owner3"), &id("t")).await.unwrap();
    assert!(left.is_some(), "the oldest went first");
}
