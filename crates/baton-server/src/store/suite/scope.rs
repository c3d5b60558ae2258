//! Calls see nothing of other scopes.

use std::sync::Arc;

use baton_protocol::domain::{ListFilter, Scope};

use super::fixture::*;
use crate::store::{Appended, Requested, Store};

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
