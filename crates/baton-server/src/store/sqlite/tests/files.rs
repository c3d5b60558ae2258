//! Opening: locks, formats, damage, permissions, and that a reopened store has everything.

use super::*;
use crate::store::suite::fixture::query;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};

#[tokio::test]
async fn reopening_finds_everything() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a folder/that is not there/baton.db");
    let scope = scope("o");
    let store = open(&path);
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    store.append(&scope, append("t", 1, TaskState::Working)).await.unwrap();
    store.append(&scope, append("ended", 0, TaskState::Completed)).await.unwrap();
    let secret = store.secret("cursor", vec![1, 2, 3]).await.unwrap();
    let (kept, open_tasks) = everything(&store, &scope).await;
    assert_eq!((kept.tasks.len(), kept.total, open_tasks.len()), (2, Some(2), 1));
    drop(store);
    let wal = with_suffix(&path, "-wal");
    assert!(!wal.exists() || fs::metadata(wal).unwrap().len() == 0, "a clean stop checkpoints the log");

    let store = open(&path);
    assert_eq!(everything(&store, &scope).await, (kept, open_tasks));
    assert_eq!(store.secret("cursor", vec![9]).await.unwrap(), secret);
    assert_eq!(store.task_count().await.unwrap(), 2);
    let next = store.append(&scope, append("t", 2, TaskState::Completed)).await.unwrap();
    assert!(matches!(next, Appended::Written(_)));
}

async fn everything(store: &SqliteStore, scope: &Scope) -> (ListPage, Vec<OpenTask>) {
    let query = ListQuery { counted: true, ..query() };
    (store.list(scope, &query).await.unwrap(), store.open_tasks(TaskKey(0), 100).await.unwrap())
}

#[test]
fn files_of_a_newer_baton_or_of_somebody_else_are_left_alone() {
    let (folder, store) = store();
    let path = folder.path().join("baton.db");
    drop(store);
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let newer = SqliteStore::open(&path, Options::default()).unwrap_err();
    assert!(newer.to_string().contains("newer Baton"), "{newer}");

    let foreign = folder.path().join("foreign.db");
    for content in ["CREATE TABLE task (x)", "DROP TABLE task; VACUUM; PRAGMA application_id = 7"] {
        rusqlite::Connection::open(&foreign).unwrap().execute_batch(content).unwrap();
        let before = fs::read(&foreign).unwrap();
        let refused = SqliteStore::open(&foreign, Options::default()).unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable(_)), "nothing is damaged: {refused:?}");
        assert!(refused.to_string().contains("another program's SQLite database"), "{refused}");
        assert_eq!(fs::read(&foreign).unwrap(), before, "as its owner left it");
        assert!(!with_suffix(&foreign, ".lock").exists(), "no lock file stays beside it");
    }
    // A log that its owner has not checkpointed yet.
    let owner = rusqlite::Connection::open(&foreign).unwrap();
    owner.pragma_update(None, "journal_mode", "WAL").unwrap();
    owner.execute_batch("CREATE TABLE theirs (x)").unwrap();
    let copy = folder.path().join("copy.db");
    for suffix in ["", "-wal"] {
        fs::copy(with_suffix(&foreign, suffix), with_suffix(&copy, suffix)).unwrap();
    }
    let contents = || ["", "-wal"].map(|suffix| fs::read(with_suffix(&copy, suffix)).unwrap());
    let before = contents();
    assert!(!before[1].is_empty());
    SqliteStore::open(&copy, Options::default()).unwrap_err();
    assert!(contents() == before, "neither the file nor its log has changed");
}

#[test]
fn a_damaged_file_is_called_damaged() {
    let (folder, store) = store();
    let path = folder.path().join("baton.db");
    drop(store);
    let length = fs::metadata(&path).unwrap().len();
    for (from, what) in [(4096, "the pages"), (0, "the header")] {
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(from)).unwrap();
        file.write_all(&vec![0xa5; (length - from) as usize]).unwrap();
        drop(file);
        let error = SqliteStore::open(&path, Options::default()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged(_)), "{what}: {error:?}");
        assert!(error.to_string().contains("baton.db"), "{what}: {error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, store) = store();
    store.secret("cursor", vec![1]).await.unwrap();
    for name in ["baton.db", "baton.db-wal", "baton.db-shm", "baton.db.lock"] {
        let mode = fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let root = folder.path().to_owned();
    // Existing folders keep their mode; new ones are accessible to their owner only.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    drop(open(&folder.path().join("made/also made/baton.db")));
    for (folder, expected) in [("", 0o755), ("made", 0o700), ("made/also made", 0o700)] {
        let mode = fs::metadata(root.join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, expected, "{folder}");
    }
}

/// Copies an open store, whose log is not checkpointed: the files are as after a kill.
#[tokio::test]
async fn what_a_killed_process_left_in_its_log_is_folded_at_the_start() {
    let (folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    let copy = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("baton.db"), copy.path().join("baton.db"));
    for suffix in ["", "-wal"] {
        fs::copy(with_suffix(&from, suffix), with_suffix(&to, suffix)).unwrap();
    }
    let before = fs::read(&to).unwrap();
    let revived = open(&to);
    assert_eq!(revived.head(&scope, &id("t")).await.unwrap().unwrap().version, 1);
    assert_eq!(fs::metadata(with_suffix(&to, "-wal")).unwrap().len(), 0, "all of it is in the database now");
    assert_ne!(fs::read(&to).unwrap(), before);
}
