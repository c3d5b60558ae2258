//! The writer: group commit, failures, callers that go away.

use super::*;
use futures_util::future::join_all;

#[tokio::test]
async fn appends_that_wait_share_a_commit() {
    let (_folder, store) = store();
    let scope = scope("o");
    let held = HeldWriter::new(&store);
    let names: Vec<String> = (0..64).map(|n| format!("t{n}")).collect();
    let mut appends: Vec<_> =
        names.iter().map(|name| store.append(&scope, append(name, 0, TaskState::Working))).collect();
    appends.iter_mut().for_each(|append| enqueue(append.as_mut()));
    held.release().await;
    for appended in join_all(appends).await {
        assert!(matches!(appended, Ok(Appended::Written(_))), "{appended:?}");
    }
    assert_eq!(store.commits(), 2, "the holding one and one for all 64");
    assert_eq!(store.task_count().await.unwrap(), 64);
}

#[tokio::test]
async fn a_write_whose_caller_went_away_is_done_all_the_same() {
    let (_folder, store) = store();
    let scope = scope("o");
    let held = HeldWriter::new(&store);
    let mut abandoned = store.append(&scope, append("t", 0, TaskState::Working));
    enqueue(abandoned.as_mut());
    drop(abandoned);
    held.release().await;
    let next = store.append(&scope, append("t", 1, TaskState::Completed)).await.unwrap();
    assert!(matches!(next, Appended::Written(_)), "{next:?}");
    assert_eq!(store.events(&scope, &id("t"), 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_bad_write_fails_alone() {
    let (_folder, store) = store();
    let scope = scope("made by the batch that is undone");
    let bad = || store.writer.run(|_| Err::<(), _>(StoreError::damaged("bad")));
    let held = HeldWriter::new(&store);
    let mut before = store.append(&scope, append("before", 0, TaskState::Working));
    let mut failing = Box::pin(bad());
    let mut after = store.append(&scope, append("after", 0, TaskState::Working));
    enqueue(before.as_mut());
    enqueue(failing.as_mut());
    enqueue(after.as_mut());
    held.release().await;
    assert!(matches!(before.await, Ok(Appended::Written(_))));
    assert_eq!(failing.await, Err(StoreError::damaged("bad")));
    assert!(matches!(after.await, Ok(Appended::Written(_))));
    assert_eq!(store.task_count().await.unwrap(), 2);
    for task in ["before", "after"] {
        assert!(store.head(&scope, &id(task)).await.unwrap().is_some(), "{task}");
    }
}

/// The writer caches heads of open tasks; those of a batch that was rolled back must be dropped from the cache.
#[tokio::test]
async fn a_head_that_was_undone_is_not_compared_with() {
    let (_folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    let held = HeldWriter::new(&store);
    let mut undone = store.append(&scope, append("t", 1, TaskState::Working));
    let mut bad = Box::pin(store.writer.run(|_| Err::<(), _>(StoreError::damaged("fails its batch"))));
    enqueue(undone.as_mut());
    enqueue(bad.as_mut());
    held.release().await;
    assert!(matches!(undone.await, Ok(Appended::Written(_))), "written alone, on what was there before");
    assert!(bad.await.is_err());
    let next = store.append(&scope, append("t", 2, TaskState::Completed)).await.unwrap();
    assert!(matches!(next, Appended::Written(_)), "{next:?}");
    assert_eq!(store.append(&scope, append("t", 2, TaskState::Completed)).await.unwrap(), Appended::Conflict);
}

#[tokio::test]
async fn nothing_is_written_once_durability_is_in_doubt() {
    let (_folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    let held = HeldWriter::new(&store);
    let mut failing = Box::pin(store.writer.run(|_| Err::<(), _>(StoreError::fatal("sync failed"))));
    let mut neighbour = store.append(&scope, append("t", 1, TaskState::Completed));
    enqueue(failing.as_mut());
    enqueue(neighbour.as_mut());
    held.release().await;
    let lost = failing.await.unwrap_err();
    assert!(
        matches!(&lost, StoreError::Fatal(cause) if cause.text().contains("baton.db: sync failed")),
        "{lost}"
    );
    let lost = || lost.clone();
    assert_eq!(neighbour.await, Err(lost()));
    assert_eq!(store.append(&scope, append("t", 1, TaskState::Completed)).await, Err(lost()));
    assert_eq!(store.check().await, Err(lost()));
    assert_eq!(store.head(&scope, &id("t")).await.unwrap().unwrap().version, 1, "reads go on");
}

/// After a failed sync there is no checkpoint: it is unknown which pages of the log are on disk.
#[tokio::test]
async fn a_store_that_failed_leaves_its_log_alone() {
    let (folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    let log = with_suffix(&folder.path().join("baton.db"), "-wal");
    let before = std::fs::read(&log).unwrap();
    let lost = store.writer.run(|_| Err::<(), _>(StoreError::fatal("sync failed"))).await;
    assert!(matches!(lost, Err(StoreError::Fatal(_))), "{lost:?}");
    drop(store);
    assert_eq!(std::fs::read(&log).unwrap(), before);
    let store = open(&folder.path().join("baton.db"));
    assert_eq!(store.head(&scope, &id("t")).await.unwrap().unwrap().version, 1);
}

/// There are checkpoints while the store is open: otherwise the log would fill the disk.
#[tokio::test]
async fn a_long_log_is_folded_on_the_way() {
    let (folder, store) = store();
    let scope = scope("o");
    let path = folder.path().join("baton.db");
    let length = |path: &Path| std::fs::metadata(path).unwrap().len();
    let fresh = length(&path);
    for n in 0..24 {
        let mut large = append(&format!("t{n}"), 0, TaskState::Working);
        large.snapshot = Some(StoredSnapshot::from_record(full::snapshot(1 << 20)).unwrap());
        store.append(&scope, large).await.unwrap();
    }
    // The writer checkpoints after the answer; this write is answered after the last checkpoint.
    store.check().await.unwrap();
    assert!(length(&path) > fresh + (16 << 20), "the database holds most of it");
    assert!(length(&with_suffix(&path, "-wal")) < 16 << 20, "the log starts anew");
}

/// Such a log holds the same few pages many times.
#[tokio::test]
async fn a_log_of_small_commits_is_not_folded_early() {
    let (folder, store) = store();
    let scope = scope("o");
    let path = folder.path().join("baton.db");
    let length = |path: &Path| std::fs::metadata(path).unwrap().len();
    let fresh = length(&path);
    for n in 0..200 {
        store.append(&scope, append(&format!("t{n}"), 0, TaskState::Working)).await.unwrap();
    }
    assert!(length(&with_suffix(&path, "-wal")) > 4 << 20, "large commits would be checkpointed by now");
    assert_eq!(length(&path), fresh);
}

#[tokio::test]
async fn a_lost_compare_writes_nothing() {
    let (_folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    let changes = || store.writer.run(|session| Ok(session.connection.total_changes()));
    let before = changes().await.unwrap();
    for (task, expected) in [("t", 0), ("t", 2), ("unknown", 1)] {
        let lost = store.append(&scope, append(task, expected, TaskState::Completed)).await.unwrap();
        assert_eq!(lost, Appended::Conflict, "{task} {expected}");
    }
    let stranger = super::scope("stranger");
    let lost = store.append(&stranger, append("t", 1, TaskState::Completed)).await.unwrap();
    assert_eq!(lost, Appended::Conflict);
    assert_eq!(changes().await.unwrap(), before);
}
