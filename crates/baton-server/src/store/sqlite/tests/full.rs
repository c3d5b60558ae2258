//! A full disk, simulated by SQLite's page limit, which gives the same error. Tests with real full disks are in the
//! `baton` crate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::store::sqlite::disk_space::is_full;
use crate::store::{NewRequest, Requested};

/// Limits the file to this many pages, or to those it already has.
async fn limit(store: &SqliteStore, pages: u32) {
    let limit = format!("PRAGMA max_page_count = {pages}");
    store.writer.run(move |session| Ok(session.connection.execute_batch(&limit)?)).await.unwrap();
}

const NONE: u32 = 1;
const PLENTY: u32 = 1_000_000;

fn is_refused<T>(result: &StoreResult<T>) -> bool {
    matches!(result, Err(StoreError::Full(_)))
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    let (_folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    let mut big = append("t", 1, TaskState::Working);
    big.snapshot = Some(StoredSnapshot::from_record(snapshot(1 << 20)).unwrap());
    limit(&store, NONE).await;
    let held = HeldWriter::new(&store);
    let mut refused = store.append(&scope, big.clone());
    let mut small = store.append(&scope, append("t", 1, TaskState::Working));
    enqueue(refused.as_mut());
    enqueue(small.as_mut());
    held.release().await;
    let refused = refused.await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    assert!(matches!(small.await, Ok(Appended::Written(_))), "a write that needs no new page succeeds");
    assert_eq!(store.head(&scope, &id("t")).await.unwrap().unwrap().version, 2);
    limit(&store, PLENTY).await;
    big.expected = 2;
    big.events = vec![status(3, TaskState::Working)];
    assert!(matches!(store.append(&scope, big).await, Ok(Appended::Written(_))));
}

#[tokio::test]
async fn a_check_tells_of_a_full_disk_and_of_its_end() {
    let (_folder, store) = store();
    limit(&store, NONE).await;
    for _ in 0..3 {
        let checked = store.check().await;
        assert!(is_refused(&checked), "{checked:?}");
    }
    limit(&store, PLENTY).await;
    assert_eq!(store.check().await, Ok(()));
    limit(&store, NONE).await;
    // The check's row keeps its space, so a check may succeed where other writes do not.
    assert_eq!(store.check().await, Ok(()));
}

/// A check that writes nothing would always succeed.
#[tokio::test]
async fn a_check_writes_as_much_every_time() {
    let (_folder, store) = store();
    let pages = || store.writer.run(|session| Ok(session.wal_pages()));
    store.check().await.unwrap();
    for _ in 0..3 {
        let before = pages().await.unwrap();
        store.check().await.unwrap();
        assert!(pages().await.unwrap() >= before + 10);
    }
}

/// Each writing operation, several times: a refused one leaves no open transaction and no partial write.
#[tokio::test]
async fn refusals_leave_everything_as_it_was() {
    let (_folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    let before = store.load(&scope, &id("t")).await.unwrap();
    limit(&store, NONE).await;
    let stranger = super::scope("a scope that is refused with its first task");
    let large = || {
        let mut large = append("u", 0, TaskState::Working);
        large.snapshot = Some(StoredSnapshot::from_record(snapshot(1 << 20)).unwrap());
        large
    };
    let event = || {
        let text = "x".repeat(1 << 20);
        let record = format!("1 U 1763200000001\n{{\"messageId\":\"{text}\"}}");
        StoredEvent::from_record(0, bytes::Bytes::from(record)).unwrap()
    };
    let reply = || MessageRecord {
        message_id: MessageId::parse("m").unwrap(),
        hash: [1; 32],
        task: None,
        event: None,
        reply: Some(snapshot(1 << 20)),
        at: time(1),
    };
    for _ in 0..3 {
        let request = NewRequest { event: event(), message: None, most_pending: 16 };
        assert!(is_refused(&store.append(&scope, large()).await));
        assert!(is_refused(&store.append(&stranger, large()).await));
        assert!(is_refused(&store.request(&scope, &id("t"), request).await));
        assert!(is_refused(&store.put_reply(&scope, reply()).await));
        assert!(is_refused(&store.secret("s", vec![0; 1 << 20]).await));
    }
    assert_eq!(store.load(&scope, &id("t")).await.unwrap(), before);
    assert_eq!(store.requests(&scope, &id("t")).await.unwrap(), []);
    assert_eq!(store.task_count().await.unwrap(), 1);
    limit(&store, PLENTY).await;
    let request = NewRequest { event: event(), message: None, most_pending: 16 };
    assert!(matches!(store.append(&stranger, large()).await, Ok(Appended::Written(_))));
    let noted = store.request(&scope, &id("t"), request).await.unwrap();
    assert!(
        matches!(noted, Requested::Noted { request, .. } if request.0 == 1),
        "no id was used up: {noted:?}"
    );
    assert_eq!(store.put_reply(&scope, reply()).await.unwrap(), None);
    assert_eq!(store.task_count().await.unwrap(), 2);
}

/// Otherwise 256 writes to a full disk would be 257 failing transactions.
#[tokio::test]
async fn a_batch_that_finds_no_room_is_not_tried_write_by_write() {
    let (_folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Working)).await.unwrap();
    limit(&store, NONE).await;
    let tries = Arc::new(AtomicUsize::new(0));
    let large = |n: usize| {
        let (scope, tries) = (scope.clone(), Arc::clone(&tries));
        let mut large = append(&format!("t{n}"), 0, TaskState::Working);
        large.snapshot = Some(StoredSnapshot::from_record(snapshot(1 << 20)).unwrap());
        Box::pin(store.writer.run(move |session| {
            tries.fetch_add(1, Ordering::Relaxed);
            write::append(session, &scope, &large)
        }))
    };
    let held = HeldWriter::new(&store);
    let mut writes: Vec<_> = (0..64).map(large).collect();
    writes.iter_mut().for_each(|write| enqueue(write.as_mut()));
    held.release().await;
    for write in writes {
        assert!(is_refused(&write.await));
    }
    let tries = tries.load(Ordering::Relaxed);
    assert!(tries <= 4, "{tries} tries");
}

/// A removed task frees space for the next, though the file does not shrink.
#[tokio::test]
async fn what_retention_removes_can_be_used_again() {
    let (_folder, store) = store();
    let scope = scope("o");
    let large = |task: &str, state| {
        let mut large = append(task, 0, state);
        large.snapshot = Some(StoredSnapshot::from_record(snapshot(1 << 20)).unwrap());
        large
    };
    store.append(&scope, large("old", TaskState::Completed)).await.unwrap();
    limit(&store, NONE).await;
    assert!(is_refused(&store.append(&scope, large("young", TaskState::Working)).await));
    assert_eq!(store.purge_ended(Timestamp::MAX, 1).await.unwrap(), 1);
    let appended = store.append(&scope, large("young", TaskState::Working)).await;
    assert!(matches!(appended, Ok(Appended::Written(_))), "{appended:?}");
}

/// SQLite reports one of these as "disk full" and the others as I/O errors.
#[cfg(target_os = "linux")]
#[test]
fn all_kinds_of_no_room_are_known() {
    for (number, full) in [(28, true), (122, true), (27, true), (5, false), (30, false)] {
        let error = io::Error::from_raw_os_error(number);
        assert_eq!(is_full(&error), full, "{error}");
    }
}

#[test]
fn an_io_error_on_a_disk_with_room_stays_one() {
    let folder = TempDir::new().unwrap();
    let disk = DiskSpace::beside(&folder.path().join("baton.db"));
    let error = StoreError::unavailable("disk I/O error");
    assert_eq!(disk.classify(error.clone()), error);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the probe file is removed");
}

/// A snapshot record of that size.
pub(super) fn snapshot(bytes: usize) -> bytes::Bytes {
    let mut record = b"1 2 1\n{\"transitions\":[]}\n".to_vec();
    record.resize(bytes, b' ');
    record.into()
}
