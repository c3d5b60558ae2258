//! `load_within` finds the size of a large task in the row headers, without reading the task.

use std::fs;

use super::full::snapshot;
use super::*;
use crate::store::Weighed;

const LARGE: usize = 4_000_000;
const SMALL: usize = 64 * 1024;

/// Bytes that this process has read from files so far.
fn read_so_far() -> usize {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

fn large_event(number: u64) -> StoredEvent {
    let text = format!("1 S2 1763200000000\n{{\"statusUpdate\":\"{}\"}}", "x".repeat(LARGE));
    StoredEvent::from_record(number, text.into()).unwrap()
}

#[tokio::test]
async fn s10_a_task_that_is_too_large_is_not_read() {
    let (folder, store) = store();
    let scope = scope("o");
    let mut unfolded = append("unfolded", 0, TaskState::Completed);
    unfolded.events = vec![large_event(1)];
    store.append(&scope, unfolded).await.unwrap();
    let mut folded = append("folded", 0, TaskState::Completed);
    folded.snapshot = Some(StoredSnapshot::from_record(snapshot(LARGE)).unwrap());
    store.append(&scope, folded).await.unwrap();
    // The writer's checkpoint reads what it wrote, and may run after the answer. Closing the store completes it.
    drop(store);
    let store = open(&folder.path().join("baton.db"));
    let before = read_so_far();
    for task in ["unfolded", "folded"] {
        for _ in 0..10 {
            let weighed = store.load_within(&scope, &id(task), SMALL).await.unwrap();
            assert!(matches!(weighed, Some(Weighed::Heavy(bytes)) if bytes >= LARGE), "{task}");
        }
    }
    let read = read_so_far() - before;
    assert!(read < LARGE, "{read} bytes were read to weigh two tasks of {LARGE}");
}
