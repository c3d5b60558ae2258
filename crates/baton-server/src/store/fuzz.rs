//! A target of the fuzzers: stored records, whole and damaged. What is read is kept as the same; what is not is damage
//! with a word on where.

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
        Err(error) => damage(&error),
    }
    log(bytes);
}

fn damage(error: &StoreError) {
    let StoreError::Damaged(what) = error else { panic!("{error:?}") };
    assert!(!what.is_empty() && what.len() < 4000, "{what}");
}

fn ids() -> (TaskId, ContextId) {
    (TaskId::parse("t").expect("an id"), ContextId::parse("c").expect("an id"))
}

fn event(record: &Bytes) {
    let stored = match StoredEvent::from_record(7, record.clone()) {
        Ok(stored) => stored,
        Err(error) => return damage(&error),
    };
    assert!(record.ends_with(&stored.json()));
    let event = match stored.decode() {
        Ok(event) => event,
        Err(error) => return damage(&error),
    };
    let (task, context) = ids();
    let again = StoredEvent::encode(&task, &context, &event);
    assert_eq!((again.number, again.at), (stored.number, stored.at));
    let json = again.json();
    assert!(!json.contains(&b'\n') && !json.contains(&b'\r'), "it could not be framed");
    let read = StoredEvent::from_record(7, again.record().clone()).and_then(|stored| stored.decode());
    assert_eq!(read.ok().as_ref(), Some(&event), "{again:?}");
}

fn snapshot(record: &Bytes) {
    match StoredSnapshot::from_record(record.clone()).and_then(|stored| stored.decode()) {
        Ok(snapshot) => kept(&snapshot),
        Err(error) => damage(&error),
    }
}

fn kept(snapshot: &Snapshot) {
    let stored = StoredSnapshot::encode(snapshot);
    assert_eq!(stored.version(), snapshot.version);
    let read = StoredSnapshot::from_record(stored.record().clone()).and_then(|stored| stored.decode());
    assert_eq!(read.ok().as_ref(), Some(snapshot), "{stored:?}");
}

/// Records one after the other, two lines each, as the log of one task.
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
        assert!(!ended, "an ended task goes on");
        kept(&folded);
    }
}
