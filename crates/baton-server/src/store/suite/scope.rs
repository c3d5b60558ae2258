//! Calls see nothing of other scopes, and nothing is left of a scope after its last task and message record.

use std::sync::Arc;

use baton_protocol::domain::{ListFilter, Scope};

use super::fixture::*;
use crate::store::{Appended, OwnerUsage, Requested, Store, TaskKey};

/// Scopes that differ from [`scope`] in one member.
fn foreign() -> [Scope; 4] {
    [
        Scope::new("agent2", "tenant", "owner"),
        Scope::new("agent", "tenant2", "owner"),
        Scope::new("agent", "", "owner"),
        Scope::new("agent", "tenant", "owner2"),
    ]
}

/// Writes a task with a message, a snapshot and a pending request.
async fn write_task(store: &Arc<dyn Store>) {
    written(store, birth("t").events(3).with_message("m", 1).snapshot()).await;
    noted(store, "t", new_request("w", Some(record("w", 1, "t")))).await;
}

pub(super) async fn foreign_scopes_read_nothing(store: &Arc<dyn Store>) {
    write_task(store).await;
    for foreign in foreign() {
        assert_eq!(store.head(&foreign, &id("t")).await.unwrap(), None, "{foreign:?}");
        assert_eq!(store.load(&foreign, &id("t")).await.unwrap(), None, "{foreign:?}");
        assert_eq!(store.events(&foreign, &id("t"), 0, 10).await.unwrap(), [], "{foreign:?}");
        assert_eq!(store.requests(&foreign, &id("t")).await.unwrap(), [], "{foreign:?}");
        assert_eq!(store.message(&foreign, &message_id("m"), &[1; 32]).await.unwrap(), None, "{foreign:?}");
        assert_eq!(tasks(store, &foreign, &query()).await, [], "{foreign:?}");
        let context = ListFilter { context_id: Some(context("c")), ..ListFilter::default() };
        for filter in [ListFilter::default(), context] {
            assert_eq!(total_in(store, &foreign, &filter).await, 0, "{foreign:?}");
        }
    }
}

pub(super) async fn foreign_scopes_write_nothing(store: &Arc<dyn Store>) {
    write_task(store).await;
    let request = store.requests(&scope(), &id("t")).await.unwrap()[0].request;
    let before = everything(store, &scope(), "t").await;
    for foreign in foreign() {
        let append = next("t", 3).settling(request, Some(4)).ended(9);
        assert_eq!(store.append(&foreign, append).await.unwrap(), Appended::Conflict, "{foreign:?}");
        let request = new_request("x", Some(record("x", 1, "t")));
        assert_eq!(
            store.request(&foreign, &id("t"), request).await.unwrap(),
            Requested::NotFound,
            "{foreign:?}"
        );
        assert_eq!(everything(store, &scope(), "t").await, before, "{foreign:?}");
    }
}

pub(super) async fn the_same_names_live_side_by_side(store: &Arc<dyn Store>) {
    write_task(store).await;
    for (n, foreign) in (4..).zip(foreign()) {
        written_in(store, &foreign, birth("t").events(n).with_message("m", 1)).await;
        assert_eq!(store.put_reply(&foreign, reply("w", 1, "mine")).await.unwrap(), None);
        assert_eq!(store.head(&foreign, &id("t")).await.unwrap().unwrap().version, n);
        assert_eq!(tasks(store, &foreign, &query()).await.len(), 1);
        assert_eq!(total_in(store, &foreign, &ListFilter::default()).await, 1);
    }
    assert_eq!(head(store, "t").await.version, 3);
    assert_eq!(store.task_count().await.unwrap(), 5);
}

/// Stores that build keys by joining strings without escaping fail here.
pub(super) async fn names_that_run_together_stay_apart(store: &Arc<dyn Store>) {
    for joint in [":", "/", "|", ",", " ", "}", "{", "\u{1f}"] {
        let left = Scope::new(&format!("a{joint}b"), "c", "d");
        let right = Scope::new("a", &format!("b{joint}c"), "d");
        let far = Scope::new("a", "b", &format!("c{joint}d"));
        written_in(store, &left, birth("t").with_message("m", 1)).await;
        written_in(store, &right, birth("t").with_message("m", 1)).await;
        assert_eq!(store.head(&far, &id("t")).await.unwrap(), None, "{joint:?}");
        // The same for scope and task id.
        let task = format!("d{joint}t");
        assert_eq!(store.head(&Scope::new("a", "b", "c"), &id("t")).await.unwrap(), None, "{joint:?}");
        if !task.contains('\u{1f}') {
            assert_eq!(
                store.head(&Scope::new("a", &format!("b{joint}c"), ""), &id(&task)).await.unwrap(),
                None
            );
        }
    }
}

/// A scope as a caller may invent it.
fn invented(tenant: &str) -> Scope {
    Scope::new("agent", tenant, "owner")
}

/// Removes all ended tasks and all message records without a task.
async fn purge(store: &Arc<dyn Store>) {
    while store.purge_ended(at(100), 100).await.unwrap() > 0 {}
    while store.purge_records(at(100), 100).await.unwrap() > 0 {}
}

/// Tenants are names that callers choose: one who invents a tenant for every message must not grow the store for ever.
pub(super) async fn s12_nothing_is_left_of_invented_tenants(store: &Arc<dyn Store>) {
    let mut left = Vec::new();
    for round in 0..2 {
        // So many that a store with several parts has used each of them after the first round.
        for n in 0..200 {
            let scope = invented(&format!("invented {round} {n}"));
            match n % 3 {
                0 => drop(store.put_reply(&scope, reply("m", 1, "r")).await.unwrap()),
                1 => drop(written_in(store, &scope, birth("t").with_message("m", 1).ended(1)).await),
                _ => {
                    written_in(store, &scope, birth("t").in_context(&scope.tenant)).await;
                    let request = new_request("w", Some(record("w", 1, "t")));
                    let noted = store.request(&scope, &id("t"), request).await.unwrap();
                    let Requested::Noted { request, .. } = noted else { panic!("{noted:?}") };
                    written_in(store, &scope, next("t", 1).settling(request, Some(2)).ended(2)).await;
                }
            }
        }
        purge(store).await;
        assert_eq!(store.owner_usage("owner").await.unwrap(), OwnerUsage::default());
        left.push(store.row_count().await.unwrap());
    }
    assert_eq!(left[0], left[1], "what is left after each round");
}

/// Whatever is refused or only read stores nothing of the tenant that the caller named.
pub(super) async fn s12_calls_that_write_nothing_leave_nothing(store: &Arc<dyn Store>) {
    write_task(store).await;
    let before = store.row_count().await.unwrap();
    for n in 0..20 {
        let scope = invented(&format!("invented {n}"));
        assert_eq!(store.append(&scope, next("t", 3)).await.unwrap(), Appended::Conflict);
        let request = new_request("x", Some(record("x", 1, "t")));
        assert_eq!(store.request(&scope, &id("t"), request).await.unwrap(), Requested::NotFound);
        assert_eq!(everything(store, &scope, "t").await, everything(store, &scope, "unknown").await);
        assert_eq!(store.message(&scope, &message_id("m"), &[1; 32]).await.unwrap(), None);
        assert_eq!(total_in(store, &scope, &ListFilter::default()).await, 0);
    }
    purge(store).await;
    assert_eq!(store.row_count().await.unwrap(), before);
}

/// A message record outlives its task, and its scope with it.
pub(super) async fn s12_a_message_record_keeps_its_scope(store: &Arc<dyn Store>) {
    let scope = invented("invented");
    let born = || birth("t").with_message("m", 1).ended(1);
    written_in(store, &scope, born()).await;
    assert_eq!(store.purge_ended(at(100), 10).await.unwrap(), 1);
    let repeated = store.append(&scope, born()).await.unwrap();
    assert_eq!(repeated, Appended::Duplicate(record("m", 1, "t")));
    assert_eq!(store.purge_records(at(100), 10).await.unwrap(), 1);
    written_in(store, &scope, born()).await;
}

/// A store that has a short name for a scope must not use it for another one, nor the old one for the scope itself.
pub(super) async fn s12_a_scope_that_was_removed_may_come_back(store: &Arc<dyn Store>) {
    let (one, other) = (invented("one"), invented("other"));
    let mut keys = Vec::<TaskKey>::new();
    for round in 0..6 {
        // The scopes come back in turn, and the last one that was removed is not always the first to come back.
        let (scope, foreign) = if round % 4 < 2 { (&one, &other) } else { (&other, &one) };
        let key = written_in(store, scope, birth("t").with_message("m", 1)).await;
        assert!(!keys.contains(&key), "{key:?} after {keys:?}");
        keys.push(key);
        // Often, since a store may read with several connections.
        for _ in 0..8 {
            assert_eq!(store.head(scope, &id("t")).await.unwrap().map(|head| head.key), Some(key));
            assert_eq!(store.events(scope, &id("t"), 0, 10).await.unwrap().len(), 1);
            assert_eq!(total_in(store, scope, &ListFilter::default()).await, 1);
            assert_eq!(store.head(foreign, &id("t")).await.unwrap(), None);
            assert_eq!(store.message(foreign, &message_id("m"), &[1; 32]).await.unwrap(), None);
            assert_eq!(total_in(store, foreign, &ListFilter::default()).await, 0);
        }
        written_in(store, scope, next("t", 1).ended(1)).await;
        purge(store).await;
        assert_eq!(store.head(scope, &id("t")).await.unwrap(), None);
        assert_eq!(total_in(store, scope, &ListFilter::default()).await, 0);
    }
}
