//! `append`: one atomic write to one task, or nothing.

use std::sync::Arc;

use baton_protocol::Generation;
use baton_protocol::domain::TaskState;

use super::fixture::*;
use crate::store::{Appended, Head, HeadState, ReplicaId, Store, TaskKey, Work};

pub(super) async fn a_birth_makes_the_task(store: &Arc<dyn Store>) {
    let append = birth("t").in_context("talk").events(2);
    let key = written(store, append.clone()).await;
    let expected = Head {
        key,
        context_id: context("talk"),
        generation: Generation::V1,
        created_at: at(0),
        version: 2,
        folded_through: 0,
        current: append.head,
    };
    assert_eq!(head(store, "t").await, expected);
    let loaded = load(store, "t").await;
    assert_eq!((loaded.id, loaded.head, loaded.snapshot), (id("t"), expected, None));
    assert_eq!(loaded.tail, append.events);
}

pub(super) async fn a_birth_with_a_taken_id_conflicts(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let before = everything(store, &scope(), "t").await;
    let again = birth("t").in_context("other").events(3);
    assert_eq!(store.append(&scope(), again).await.unwrap(), Appended::Conflict);
    assert_eq!(everything(store, &scope(), "t").await, before);
}

pub(super) async fn a_task_that_is_not_there_conflicts(store: &Arc<dyn Store>) {
    assert_eq!(store.append(&scope(), next("t", 3)).await.unwrap(), Appended::Conflict);
    assert!(!exists(store, "t").await);
}

pub(super) async fn another_version_conflicts(store: &Arc<dyn Store>) {
    written(store, birth("t").events(3)).await;
    for expected in [1, 2, 4, 5] {
        assert_eq!(
            store.append(&scope(), next("t", expected)).await.unwrap(),
            Appended::Conflict,
            "{expected}"
        );
    }
    assert_eq!(head(store, "t").await.version, 3);
    written(store, next("t", 3)).await;
}

pub(super) async fn another_fence_conflicts(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    written(store, next("t", 1).with(|append| append.head.fence = 5)).await;
    for fence in [0, 4, 6] {
        let stale = next("t", 2).with(|append| append.fence = fence);
        assert_eq!(store.append(&scope(), stale).await.unwrap(), Appended::Conflict, "{fence}");
    }
    written(store, next("t", 2).with(|append| append.fence = 5)).await;
}

pub(super) async fn a_conflict_writes_nothing(store: &Arc<dyn Store>) {
    written(store, birth("t").snapshot()).await;
    let request = noted(store, "t", new_request("w", Some(record("w", 1, "t")))).await;
    let before = everything(store, &scope(), "t").await;
    let full = |expected| {
        let append = next("t", expected)
            .events(3)
            .with_message("m", 1)
            .settling(request, Some(expected + 1))
            .snapshot();
        append.state(TaskState::Completed).at(900).work(Work::Idle)
    };
    let wrong_version = full(2);
    let wrong_fence = full(1).with(|append| append.fence = 1);
    let taken = birth("t").events(3).with_message("m", 1).settling(request, Some(1)).snapshot();
    for append in [wrong_version, wrong_fence, taken] {
        assert_eq!(store.append(&scope(), append).await.unwrap(), Appended::Conflict);
        assert_eq!(everything(store, &scope(), "t").await, before);
        assert_eq!(recorded(store, "m", 1).await, None);
        assert_eq!(recorded(store, "w", 1).await.unwrap().event, None);
        assert_eq!(tasks(store, &scope(), &query()).await[0].head.current, birth("t").head);
    }
}

pub(super) async fn events_are_numbered_without_a_gap(store: &Arc<dyn Store>) {
    written(store, birth("t").events(2)).await;
    written(store, next("t", 2).events(3)).await;
    written(store, next("t", 5).events(0)).await;
    written(store, next("t", 5).events(1)).await;
    let events = store.events(&scope(), &id("t"), 0, 100).await.unwrap();
    assert_eq!(numbers(&events), [1, 2, 3, 4, 5, 6]);
    assert_eq!(head(store, "t").await.version, 6);
}

pub(super) async fn a_thousand_events_in_one_append(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let append = next("t", 1).events(1_000);
    written(store, append.clone()).await;
    let mut events = Vec::new();
    while events.len() < 1_000 {
        let page = store.events(&scope(), &id("t"), 1 + events.len() as u64, 2_000).await.unwrap();
        assert!(!page.is_empty(), "it ends at {}", events.len());
        events.extend(page);
    }
    assert_eq!(events, append.events);
}

pub(super) async fn an_append_without_events_changes_the_head_alone(store: &Arc<dyn Store>) {
    written(store, birth("t").events(2).snapshot()).await;
    let before = load(store, "t").await;
    let claim = next("t", 2).events(0).with(|append| {
        append.head.holder = Some(ReplicaId(7));
        append.head.fence = 1;
    });
    written(store, claim.clone()).await;
    let after = load(store, "t").await;
    assert_eq!(after.head, Head { current: claim.head, ..before.head });
    assert_eq!((after.snapshot, after.tail), (before.snapshot, before.tail));
    // The fence was raised, so the old holder's append is refused.
    assert_eq!(store.append(&scope(), next("t", 2)).await.unwrap(), Appended::Conflict);
}

pub(super) async fn the_head_is_kept_as_told(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let mut head_state = birth("t").head;
    let works = [Work::Idle, Work::Queued, Work::Running];
    for (n, state) in (1..).zip(TaskState::ALL) {
        for (m, work) in (1..).zip(works) {
            let holder = (m != 2).then_some(ReplicaId(u64::from(n) << 40));
            let fence = head_state.fence;
            head_state = HeadState {
                state,
                status_at: at(-i64::from(n * m)),
                work,
                attempts: n * m,
                holder,
                fence: fence + 3,
            };
            let append =
                next("t", 1).events(0).with(|append| (append.fence, append.head) = (fence, head_state));
            written(store, append).await;
            assert_eq!(head(store, "t").await.current, head_state);
        }
    }
}

pub(super) async fn the_birth_is_kept_as_told(store: &Arc<dyn Store>) {
    for (name, generation) in [("a", Generation::V0_1), ("b", Generation::V0_3), ("c", Generation::V1)] {
        let append = birth(name).in_context(name).with(|append| {
            let birth = append.birth.as_mut().unwrap();
            (birth.generation, birth.created_at) = (generation, at(-5));
        });
        written(store, append).await;
        written(store, next(name, 1)).await;
        let head = head(store, name).await;
        assert_eq!((head.context_id, head.generation, head.created_at), (context(name), generation, at(-5)));
    }
}

pub(super) async fn a_snapshot_is_replaced_and_otherwise_kept(store: &Arc<dyn Store>) {
    written(store, birth("t").with(|append| append.snapshot = Some(snapshot(1, "first")))).await;
    assert_eq!(load(store, "t").await.snapshot, Some(snapshot(1, "first")));
    written(store, next("t", 1)).await;
    assert_eq!(load(store, "t").await.snapshot, Some(snapshot(1, "first")));
    // An append may have a snapshot and no events.
    written(store, next("t", 2).events(0).with(|append| append.snapshot = Some(snapshot(2, "second")))).await;
    assert_eq!(load(store, "t").await.snapshot, Some(snapshot(2, "second")));
}

/// `lifecycle` decides what may follow a terminal state; a store that refused an append would hide faults of the engine.
pub(super) async fn stores_never_decide(store: &Arc<dyn Store>) {
    written(store, birth("t").ended(1)).await;
    written(store, next("t", 1).at(-10).work(Work::Running)).await;
    assert_eq!(head(store, "t").await.current, next("t", 1).at(-10).head);
    assert_eq!(listed(store, &query()).await, ["t"]);
    assert_eq!(store.purge_ended(at(1_000), 10).await.unwrap(), 0);
}

pub(super) async fn keys_are_unique_and_never_reused(store: &Arc<dyn Store>) {
    let mut keys: Vec<TaskKey> = Vec::new();
    for name in ["a", "b", "c"] {
        let key = written(store, birth(name).ended(1)).await;
        assert_eq!(written(store, next(name, 1).events(0).ended(1)).await, key);
        keys.push(key);
    }
    // Purges the newest, too: a store that takes the largest stored key plus one would reuse its key.
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 3);
    keys.push(written(store, birth("a")).await);
    keys.push(written(store, birth("d")).await);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 5, "{keys:?}");
    assert!(keys.iter().all(|key| *key > TaskKey(0)), "`open_tasks` starts after key 0");
}
