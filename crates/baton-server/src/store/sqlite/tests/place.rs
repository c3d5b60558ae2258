//! Files that are deleted, moved or replaced while the store is open.

use super::*;
use std::fs;

/// Checks now, as the thread does once a second. Answers whether a file is gone.
fn check_files(store: &SqliteStore) -> bool {
    store.files.check()
}

async fn write(store: &SqliteStore, task: &str) -> StoreResult<Appended> {
    store.append(&scope("o"), append(task, 0, TaskState::Working)).await
}

#[tokio::test]
async fn a_store_that_was_deleted_takes_no_writes_and_can_be_read() {
    for file in ["baton.db", "baton.db-wal"] {
        let (folder, store) = store();
        write(&store, "t").await.unwrap();
        assert!(!check_files(&store));
        fs::remove_file(folder.path().join(file)).unwrap();
        assert!(check_files(&store), "{file}");
        let refused = write(&store, "lost").await.unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable(_)), "{file}: {refused:?}");
        assert!(refused.to_string().contains("deleted or replaced"), "{refused}");
        assert!(matches!(store.check().await, Err(StoreError::Unavailable(_))), "{file}");
        assert_eq!(store.head(&scope("o"), &id("t")).await.unwrap().unwrap().version, 1, "{file}");
    }
}

#[tokio::test]
async fn a_folder_that_was_moved_is_found_when_it_is_back() {
    let outer = TempDir::new().unwrap();
    let (folder, moved) = (outer.path().join("data"), outer.path().join("moved"));
    let store = open(&folder.join("baton.db"));
    fs::rename(&folder, &moved).unwrap();
    assert!(check_files(&store));
    write(&store, "t").await.unwrap_err();
    fs::rename(&moved, &folder).unwrap();
    assert!(!check_files(&store));
    write(&store, "t").await.unwrap();
}

/// The files at the path are another store's now, and SQLite deletes a log by its name when it closes.
#[tokio::test]
async fn a_store_that_was_replaced_leaves_the_other_one_alone() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("data");
    let path = folder.join("baton.db");
    let first = open(&path);
    write(&first, "of the first").await.unwrap();
    fs::rename(&folder, outer.path().join("moved")).unwrap();
    let second = open(&path);
    write(&second, "of the second").await.unwrap();
    let log = fs::metadata(folder.join("baton.db-wal")).unwrap().len();
    assert!(log > 0);
    drop(first);
    assert_eq!(fs::metadata(folder.join("baton.db-wal")).unwrap().len(), log);
    assert!(folder.join("baton.db-shm").exists() && !check_files(&second));
    write(&second, "more").await.unwrap();
    drop(second);
    assert_eq!(open(&path).task_count().await.unwrap(), 2);
    assert_eq!(open(&outer.path().join("moved/baton.db")).task_count().await.unwrap(), 1, "nothing was lost");
}

/// No write is acknowledged that the next start would not find.
#[tokio::test]
async fn s12_the_first_write_to_deleted_files_is_refused() {
    for file in ["baton.db", "baton.db-wal"] {
        let (folder, store) = store();
        write(&store, "t").await.unwrap();
        fs::remove_file(folder.path().join(file)).unwrap();
        let refused = write(&store, "lost").await.unwrap_err();
        assert!(refused.to_string().contains("deleted or replaced"), "{file}: {refused}");
    }
}

/// Without any call, the thread notices.
#[tokio::test]
async fn a_store_looks_after_its_files_by_itself() {
    let (folder, store) = store();
    fs::remove_file(folder.path().join("baton.db")).unwrap();
    let noticed = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while store.files.refusal().is_none() {
            tokio::task::yield_now().await;
        }
    });
    noticed.await.expect("it is noticed");
}

/// The database is still found by its path, but the next start would look for its log elsewhere.
#[tokio::test]
async fn s12_a_database_that_became_a_link_is_replaced() {
    let (folder, store) = store();
    write(&store, "t").await.unwrap();
    let (path, moved) = (folder.path().join("baton.db"), folder.path().join("moved.db"));
    fs::rename(&path, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &path).unwrap();
    write(&store, "lost").await.unwrap_err();
    fs::rename(&moved, &path).unwrap();
    assert!(!check_files(&store));
    write(&store, "back").await.unwrap();
    // A store that was opened through a link works until the link is removed.
    drop(store);
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let store = open(&link);
    write(&store, "by the link").await.unwrap();
    fs::remove_file(&link).unwrap();
    write(&store, "lost").await.unwrap_err();
}
