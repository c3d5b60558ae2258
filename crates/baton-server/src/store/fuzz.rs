//! A fuzz target: stored records, valid and damaged. A record that can be read is written back as the same value; one that
//! cannot is `StoreError::Damaged` with a text.

use baton_protocol::domain::{ContextId, TaskId, Timestamp};
use baton_protocol::lifecycle::Snapshot;
use bytes::Bytes;

use super::StoreError;
use super::record::{StoredEvent, StoredSnapshot, read_reply, write_reply};

pub(crate) fn records(bytes: &[u8]) {
    let record = Bytes::copy_from_slice(bytes);
    event(&record);
    snapshot(&record);
    match read_reply(&record) {
        Ok(reply) => assert_eq!(read_reply(&write_reply(&reply)).ok().as_ref(), Some(&reply)),
        Err(error) => check_damaged(&error),
    }
    log(bytes);
}

fn check_damaged(error: &StoreError) {
    let StoreError::Damaged(what) = error else { panic!("{error:?}") };
    assert!(!what.text().is_empty() && what.text().len() < 4000, "{what}");
}

fn ids() -> (TaskId, ContextId) {
    (TaskId::parse("t").expect("an id"), ContextId::parse("c").expect("an id"))
}

fn event(record: &Bytes) {
    let stored = match StoredEvent::from_record(7, record.clone()) {
        Ok(stored) => stored,
        Err(error) => return check_damaged(&error),
    };
    assert!(record.ends_with(&stored.json()));
    let event = match stored.decode() {
        Ok(event) => event,
        Err(error) => return check_damaged(&error),
    };
    let (task, context) = ids();
    let again = StoredEvent::encode(&task, &context, &event);
    assert_eq!((again.number, again.at), (stored.number, stored.at));
    let json = again.json();
    assert!(!json.contains(&b'\n') && !json.contains(&b'\r'), "a line break would break its SSE frame");
    let read = StoredEvent::from_record(7, again.record().clone()).and_then(|stored| stored.decode());
    assert_eq!(read.ok().as_ref(), Some(&event), "{again:?}");
}

fn snapshot(record: &Bytes) {
    match StoredSnapshot::from_record(record.clone()).and_then(|stored| stored.decode()) {
        Ok(snapshot) => check_round_trip(&snapshot),
        Err(error) => check_damaged(&error),
    }
}

fn check_round_trip(snapshot: &Snapshot) {
    let stored = StoredSnapshot::encode(snapshot);
    assert_eq!(stored.version(), snapshot.version);
    let read = StoredSnapshot::from_record(stored.record().clone()).and_then(|stored| stored.decode());
    assert_eq!(read.ok().as_ref(), Some(snapshot), "{stored:?}");
}

/// Reads the bytes as the log of one task: records of two lines each.
fn log(bytes: &[u8]) {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (task, context) = ids();
    let mut folded = Snapshot::begin(task, context, Timestamp::from_millis(0));
    for (number, pair) in (1..).zip(lines.chunks_exact(2)) {
        let record = Bytes::from(pair.concat());
        let event = StoredEvent::from_record(number, record).and_then(|stored| stored.decode());
        let Ok(event) = event else { return };
        let ended = folded.state().is_terminal();
        if folded.apply(event).is_err() {
            return;
        }
        assert!(!ended, "an ended task accepted an event");
        check_round_trip(&folded);
    }
}
