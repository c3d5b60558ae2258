//! What an owner has stored is counted with each write, and no longer when it is removed.

use std::sync::Arc;

use baton_protocol::domain::{Scope, TaskState};

use super::fixture::*;
use crate::store::{
    Append, Appended, MessageRecord, NewRequest, OwnerUsage, Requested, Store, StoredEvent, Work,
};

async fn usage(store: &Arc<dyn Store>) -> OwnerUsage {
    store.owner_usage("owner").await.unwrap()
}

async fn bytes(store: &Arc<dyn Store>) -> u64 {
    usage(store).await.bytes
}

fn record_bytes(event: &StoredEvent) -> u64 {
    event.record().len() as u64
}

/// Events of different sizes, small ones (which a store may keep together) and large ones.
fn with_sizes(append: Append, sizes: &[usize]) -> Append {
    append.with(|append| {
        let numbered = (append.expected + 1..).zip(sizes);
        append.events = numbered.map(|(number, size)| large_event(number, *size)).collect();
    })
}

pub(super) async fn s12_a_task_counts_its_events_its_snapshot_and_its_requests(store: &Arc<dyn Store>) {
    assert_eq!(usage(store).await, OwnerUsage::default());
    let first = with_sizes(birth("t"), &[10, 300, 5000]);
    written(store, first.clone()).await;
    let mut expected = OwnerUsage { tasks: 1, bytes: first.record_bytes() };
    assert_eq!(usage(store).await, expected);
    // Neither state nor work changes, and nothing but bytes is added; then a snapshot is added and replaced.
    let small = with_sizes(next("t", 3), &[40, 1]);
    let again = with_sizes(next("t", 5), &[2000]).with(|append| append.head = small.head);
    for append in [small, again] {
        expected.bytes += append.record_bytes();
        written(store, append).await;
        assert_eq!(usage(store).await, expected);
    }
    let mut kept = 0;
    for (version, text) in [(6, "a"), (7, "a longer one"), (8, "b")] {
        let append = next("t", version).with(|append| append.snapshot = Some(snapshot(version + 1, text)));
        expected.bytes = expected.bytes + append.record_bytes() - kept;
        kept = append.snapshot.as_ref().unwrap().record().len() as u64;
        written(store, append).await;
        assert_eq!(usage(store).await, expected);
    }
    // A request counts until it is settled; then its event does.
    let requests = [new_request("one", None), new_request("the other", None)];
    let one = noted(store, "t", requests[0].clone()).await;
    noted(store, "t", requests[1].clone()).await;
    expected.bytes += requests.iter().map(|request| record_bytes(&request.event)).sum::<u64>();
    assert_eq!(usage(store).await, expected);
    let settling = next("t", 9).settling(one, Some(10));
    expected.bytes = expected.bytes + settling.record_bytes() - record_bytes(&requests[0].event);
    written(store, settling).await;
    assert_eq!(usage(store).await, expected);
}

pub(super) async fn s12_what_is_not_written_counts_nothing(store: &Arc<dyn Store>) {
    written(store, birth("t").with_message("m", 1)).await;
    let counted = usage(store).await;
    for append in [birth("t"), next("t", 7), next("other", 1), birth("other").with_message("m", 1)] {
        assert!(!matches!(store.append(&scope(), append).await.unwrap(), Appended::Written(_)));
    }
    let full = NewRequest { most_pending: 0, ..new_request("r", Some(record("r", 1, "t"))) };
    assert_eq!(store.request(&scope(), &id("t"), full).await.unwrap(), Requested::Full);
    let repeated = new_request("m", Some(record("m", 1, "t")));
    let repeated = store.request(&scope(), &id("t"), repeated).await.unwrap();
    assert!(matches!(repeated, Requested::Duplicate(_)));
    assert!(store.put_reply(&scope(), reply("m", 1, "r")).await.unwrap().is_some());
    assert_eq!(usage(store).await, counted);
    assert_eq!(store.owner_usage("nobody").await.unwrap(), OwnerUsage::default());
}

/// The snapshot covers some of the events, perhaps of one row.
pub(super) async fn s12_folding_and_purging_give_the_room_back(store: &Arc<dyn Store>) {
    let first = with_sizes(birth("t"), &[10, 20, 30, 4000, 40, 50]);
    let (folded, kept) = first.events.split_at(5);
    let folded: u64 = folded.iter().map(record_bytes).sum();
    let kept: u64 = kept.iter().map(record_bytes).sum();
    let covering = snapshot(5, "t");
    let snapshot_bytes = covering.record().len() as u64;
    let first = first.with(|append| append.snapshot = Some(covering)).state(TaskState::Completed).at(1);
    written(store, first.work(Work::Idle)).await;
    assert_eq!(usage(store).await, OwnerUsage { tasks: 1, bytes: folded + kept + snapshot_bytes });
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 1);
    assert_eq!(usage(store).await, OwnerUsage { tasks: 1, bytes: kept + snapshot_bytes });
    written(store, birth("open")).await;
    let open = birth("open").record_bytes();
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(usage(store).await, OwnerUsage { tasks: 1, bytes: open });
    written(store, next("open", 1).ended(3)).await;
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(usage(store).await, OwnerUsage::default());
}

pub(super) async fn s12_message_records_and_replies_count_until_they_are_removed(store: &Arc<dyn Store>) {
    written(store, birth("t").with_message("first", 1)).await;
    let waiting = noted(store, "t", new_request("w", Some(record("waiting", 1, "t")))).await;
    let end = next("t", 1).settling(waiting, Some(2)).ended(1);
    let bytes_of_end = end.record_bytes();
    written(store, end).await;
    let long = MessageRecord { reply: Some(vec![b'x'; 10_000].into()), ..reply("asked", 1, "r") };
    assert_eq!(store.put_reply(&scope(), long.clone()).await.unwrap(), None);
    let own = record("first", 1, "t").counted_bytes() + record("waiting", 1, "t").counted_bytes();
    let records = own + long.counted_bytes();
    assert!(long.counted_bytes() > 10_000 && own > 2 * 256);
    assert_eq!(bytes(store).await, birth("t").record_bytes() + bytes_of_end + records);
    // They outlive the task.
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(usage(store).await, OwnerUsage { tasks: 0, bytes: records });
    assert_eq!(store.purge_records(at(10), 2).await.unwrap(), 2);
    assert!(bytes(store).await < records);
    assert_eq!(store.purge_records(at(10), 10).await.unwrap(), 1);
    assert_eq!(usage(store).await, OwnerUsage::default());
}

/// Whatever agents and tenants an owner names, it is one owner.
pub(super) async fn s12_all_scopes_of_an_owner_count_together(store: &Arc<dyn Store>) {
    let mut expected = OwnerUsage::default();
    for (agent, tenant) in [("a", ""), ("a", "invented"), ("a", "another"), ("b", "invented"), ("b:c", "%")] {
        let (scope, task) = (Scope::new(agent, tenant, "owner"), birth("t").with_message("m", 1));
        expected.tasks += 1;
        expected.bytes += task.record_bytes() + record("m", 1, "t").counted_bytes();
        written_in(store, &scope, task).await;
        assert_eq!(store.put_reply(&scope, reply("r", 1, "r")).await.unwrap(), None);
        expected.bytes += reply("r", 1, "r").counted_bytes();
        assert_eq!(usage(store).await, expected);
        let foreign = Scope::new(agent, tenant, "owner:2 ü");
        written_in(store, &foreign, birth("t")).await;
        assert_eq!(usage(store).await, expected);
    }
    let foreign = OwnerUsage { tasks: 5, bytes: 5 * birth("t").record_bytes() };
    assert_eq!(store.owner_usage("owner:2 ü").await.unwrap(), foreign);
}

/// Writers of many tasks and of one task at the same time, and a sweep beside them.
pub(super) async fn s12_nothing_is_counted_twice_or_lost_in_a_race(store: &Arc<dyn Store>) {
    let mut writers = Vec::new();
    for writer in 0..16_u8 {
        let store = Arc::clone(store);
        writers.push(tokio::spawn(async move {
            let scope = Scope::new("agent", &format!("t{}", writer % 4), "owner");
            for round in 0..8 {
                let task = format!("task-{writer}-{round}");
                let message = format!("m-{}-{round}", writer / 2);
                let born = birth(&task).with_message(&message, 1);
                if let Appended::Written(_) = store.append(&scope, born).await.unwrap() {
                    written_in(&store, &scope, next(&task, 1)).await;
                    written_in(&store, &scope, next(&task, 2).ended(round)).await;
                }
                store.put_reply(&scope, reply(&message, 2, "r")).await.unwrap();
                store.fold_ended(at(8), at(8), 4).await.unwrap();
                store.purge_ended(at(round), 4).await.unwrap();
                store.purge_records(at(round), 4).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    while store.purge_ended(at(100), 100).await.unwrap() > 0 {}
    let counted = usage(store).await;
    assert!(counted.tasks == 0 && counted.bytes > 0, "{counted:?}");
    while store.purge_records(at(100), 100).await.unwrap() > 0 {}
    assert_eq!(usage(store).await, OwnerUsage::default());
}
