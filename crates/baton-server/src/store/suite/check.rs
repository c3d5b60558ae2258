//! `check`: answers whether the store can be written.

use std::sync::Arc;

use futures_util::future::join_all;

use super::fixture::*;
use crate::store::{Appended, Store, TaskKey};

pub(super) async fn a_store_that_works_says_so(store: &Arc<dyn Store>) {
    for _ in 0..3 {
        assert_eq!(store.check().await, Ok(()));
    }
    written(store, birth("t")).await;
    assert_eq!(store.check().await, Ok(()));
}

pub(super) async fn a_check_changes_nothing_that_is_shown(store: &Arc<dyn Store>) {
    written(store, birth("t").events(2).with_message("m", 1)).await;
    store.secret("cursor", vec![1]).await.unwrap();
    let (before, open) = (load(store, "t").await, store.open_tasks(TaskKey(0), 10).await.unwrap());
    store.check().await.unwrap();
    assert_eq!(load(store, "t").await, before);
    assert_eq!(store.open_tasks(TaskKey(0), 10).await.unwrap(), open);
    assert_eq!(store.task_count().await.unwrap(), 1);
    assert_eq!(store.secret("cursor", vec![2]).await.unwrap(), [1]);
    // An append after a check works as before.
    written(store, next("t", 2)).await;
}

pub(super) async fn checks_and_appends_go_side_by_side(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let appends = join_all((0..16).map(|n| {
        let store = Arc::clone(store);
        async move { store.append(&scope(), birth(&format!("t{n}"))).await }
    }));
    let checks = join_all((0..16).map(|_| store.check()));
    let (appended, checked) = tokio::join!(appends, checks);
    assert!(appended.iter().all(|one| matches!(one, Ok(Appended::Written(_)))), "{appended:?}");
    assert!(checked.iter().all(Result::is_ok), "{checked:?}");
    assert_eq!(store.task_count().await.unwrap(), 17);
}
