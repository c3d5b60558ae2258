//! The row layout: events that share a row, message records in their task's row, keys.

use super::*;
use crate::store::suite::golden;

fn events(lengths: &[usize]) -> Vec<StoredEvent> {
    let text = |length: usize| format!("1 S2 1763200000000\n{{\"statusUpdate\":\"{}\"}}", "x".repeat(length));
    let event =
        |(number, length): (u64, &usize)| StoredEvent::from_record(number, text(*length).into()).unwrap();
    (1..).zip(lengths).map(event).collect()
}

async fn count(store: &SqliteStore, sql: &'static str) -> i64 {
    store
        .writer
        .run(move |session| Ok(session.connection.query_row(sql, [], |row| row.get(0))?))
        .await
        .unwrap()
}

#[tokio::test]
async fn small_events_of_an_append_share_a_row() {
    let (_folder, store) = store();
    let scope = scope("o");
    let all = events(&[10, 20, 30, 5000, 40, 1800, 900, 900, 900, 50]);
    let mut first = append("t", 0, TaskState::Working);
    first.events = all[..3].to_vec();
    store.append(&scope, first).await.unwrap();
    assert_eq!(count(&store, "SELECT count(*) FROM event").await, 1);
    let mut second = append("t", 3, TaskState::Working);
    second.events = all[3..].to_vec();
    store.append(&scope, second).await.unwrap();
    assert_eq!(count(&store, "SELECT count(*) FROM event").await, 1 + 5, "5000, 40+1800, 900+900, 900+50");
    for after in 0..=all.len() {
        for limit in 1..=all.len() as u32 + 1 {
            let page = store.events(&scope, &id("t"), after as u64, limit).await.unwrap();
            let end = all.len().min(after + limit as usize);
            assert_eq!(page, all[after..end], "{after} {limit}");
        }
    }
    let loaded = store.load(&scope, &id("t")).await.unwrap().unwrap();
    assert_eq!(loaded.tail, all);
}

/// The snapshot's version is the number of an event in the middle of a row.
#[tokio::test]
async fn a_tail_may_start_within_a_row() {
    let (_folder, store) = store();
    let scope = scope("o");
    let all = events(&[10, 20, 30, 40]);
    let mut whole = append("t", 0, TaskState::Working);
    whole.events = all.clone();
    whole.snapshot = Some(StoredSnapshot::encode(&golden::snapshot(3)));
    store.append(&scope, whole).await.unwrap();
    let loaded = store.load(&scope, &id("t")).await.unwrap().unwrap();
    assert_eq!(loaded.tail, all[3..]);
}

#[tokio::test]
async fn s06_lengths_that_changed_are_damage() {
    let (_folder, store) = store();
    let scope = scope("o");
    for (task, lengths) in [("bit", "x'1d001e002800'"), ("odd", "x'28'"), ("none", "NULL"), ("empty", "x''")]
    {
        let mut shared = append(task, 0, TaskState::Working);
        shared.events = events(&[1, 2, 3]);
        let Appended::Written(key) = store.append(&scope, shared).await.unwrap() else { panic!("{task}") };
        assert_eq!(store.events(&scope, &id(task), 0, 9).await.unwrap().len(), 3);
        let change = format!("UPDATE event SET lengths = {lengths} WHERE task = {}", key.0);
        store.writer.run(move |session| Ok(session.connection.execute_batch(&change)?)).await.unwrap();
        let read = store.events(&scope, &id(task), 0, 9).await;
        assert!(matches!(read, Err(StoreError::Damaged(_))), "{task}: {read:?}");
    }
}

#[tokio::test]
async fn a_first_message_is_in_its_tasks_row_and_outlives_it() {
    let (_folder, store) = store();
    let scope = scope("o");
    let message = MessageRecord {
        message_id: MessageId::parse("m").unwrap(),
        hash: [7; 32],
        task: Some(id("t")),
        event: Some(1),
        reply: None,
        at: time(0),
    };
    let mut birth = append("t", 0, TaskState::Completed);
    birth.message = Some(message.clone());
    store.append(&scope, birth.clone()).await.unwrap();
    assert_eq!(count(&store, "SELECT count(*) FROM message_record").await, 0);
    let mut again = append("other", 0, TaskState::Completed);
    again.message = Some(message.clone());
    for purged in [0, 1] {
        assert_eq!(store.purge_ended(time(5 * purged), 10).await.unwrap(), purged as u64);
        assert_eq!(count(&store, "SELECT count(*) FROM message_record").await, purged);
        assert_eq!(
            store.message(&scope, &message.message_id, &message.hash).await.unwrap().as_ref(),
            Some(&message)
        );
        for repeat in [&birth, &again] {
            let appended = store.append(&scope, repeat.clone()).await.unwrap();
            assert_eq!(appended, Appended::Duplicate(message.clone()), "purged: {purged}");
        }
    }
    // A message record that the task's row cannot hold gets a row of its own.
    let mut late = append("late", 0, TaskState::Completed);
    let (message_id, at) = (MessageId::parse("late").unwrap(), time(3));
    let record = MessageRecord { message_id, task: Some(id("late")), at, ..message };
    late.message = Some(record.clone());
    store.append(&scope, late).await.unwrap();
    assert_eq!(store.message(&scope, &record.message_id, &record.hash).await.unwrap(), Some(record));
    assert_eq!(count(&store, "SELECT count(*) FROM message_record").await, 2);
}

/// A new task and the chunks of its artifacts do not write the row of their owner; nothing is lost by a restart.
#[tokio::test]
async fn s12_an_open_task_does_not_write_its_owners_row() {
    let (folder, store) = store();
    let (scope, counted) = (scope("o"), "SELECT bytes FROM owner_usage WHERE owner = 'o'");
    let mut chunk = append("t", 0, TaskState::Working);
    store.append(&scope, chunk.clone()).await.unwrap();
    let born = chunk.record_bytes();
    chunk.birth = None;
    for expected in 1..4 {
        chunk.expected = expected;
        chunk.events = vec![events(&[1000]).remove(0).renumbered(expected + 1)];
        store.append(&scope, chunk.clone()).await.unwrap();
    }
    let bytes = born + 3 * chunk.record_bytes();
    assert_eq!(count(&store, "SELECT count(*) FROM owner_usage").await, 0);
    assert_eq!(store.owner_usage("o").await.unwrap(), OwnerUsage { tasks: 1, bytes });
    drop(store);
    let store = open(&folder.path().join("baton.db"));
    assert_eq!(store.owner_usage("o").await.unwrap(), OwnerUsage { tasks: 1, bytes });
    let end = append("t", 4, TaskState::Completed);
    let bytes = bytes + end.record_bytes();
    store.append(&scope, end).await.unwrap();
    assert_eq!(count(&store, counted).await, bytes.cast_signed());
    assert_eq!(store.owner_usage("o").await.unwrap(), OwnerUsage { tasks: 1, bytes });
    assert_eq!(store.purge_ended(Timestamp::MAX, 10).await.unwrap(), 1);
    assert_eq!(count(&store, "SELECT count(*) FROM owner_usage").await, 0);
}

#[tokio::test]
async fn keys_do_not_come_back_after_a_purge_and_a_restart() {
    let (folder, store) = store();
    let scope = scope("o");
    let mut last = TaskKey(0);
    let path = folder.path().join("baton.db");
    let mut store = Some(store);
    for task in ["a", "b", "c"] {
        let open_store = store.take().unwrap_or_else(|| open(&path));
        let Appended::Written(key) =
            open_store.append(&scope, append(task, 0, TaskState::Completed)).await.unwrap()
        else {
            panic!("{task}")
        };
        assert!(key > last, "{task}: {key:?} after {last:?}");
        last = key;
        assert_eq!(open_store.purge_ended(Timestamp::MAX, 10).await.unwrap(), 1);
    }
}

/// Formats before the ninth kept every scope that ever had a task.
#[tokio::test]
async fn s12_scopes_that_format_8_left_behind_are_removed() {
    let (folder, store) = store();
    let path = folder.path().join("baton.db");
    store.append(&scope("o"), append("t", 0, TaskState::Completed)).await.unwrap();
    drop(store);
    let leave_behind = "
        INSERT INTO scope (id, agent, tenant, owner) VALUES (7, 'agent', 'invented', 'o'), (8, 'agent', 'replied', 'o');
        INSERT INTO tally (scope, state, tasks) VALUES (7, 2, 0), (7, 3, 0);
        INSERT INTO message_record (scope, message_id, hash, reply, at) VALUES (8, 'm', zeroblob(32), x'31', 0);
        DROP TABLE webhook;
        DROP TABLE failed_webhook;
        CREATE TABLE push_config (task INTEGER NOT NULL) STRICT;
        CREATE TABLE outbox (task INTEGER NOT NULL) STRICT;
        PRAGMA user_version = 8;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(leave_behind).unwrap();
    let store = open(&path);
    assert_eq!(count(&store, "SELECT count(*) FROM scope").await, 2);
    assert_eq!(count(&store, "SELECT count(*) FROM tally").await, 1);
    assert!(store.head(&scope("o"), &id("t")).await.unwrap().is_some());
    let replied = Scope::new("agent", "replied", "o");
    assert!(store.message(&replied, &MessageId::parse("m").unwrap(), &[0; 32]).await.unwrap().is_some());
}

/// A scope that a later write of the same commit stores something in stays.
#[tokio::test]
async fn s12_a_scope_is_removed_only_if_it_is_empty_at_the_end_of_the_commit() {
    let (_folder, store) = store();
    let scope = scope("o");
    store.append(&scope, append("t", 0, TaskState::Completed)).await.unwrap();
    let held = HeldWriter::new(&store);
    let mut purge = Box::pin(store.purge_ended(Timestamp::MAX, 10));
    enqueue(purge.as_mut());
    let mut send = Box::pin(store.append(&scope, append("u", 0, TaskState::Completed)));
    enqueue(send.as_mut());
    let commits = store.commits();
    held.release().await;
    assert_eq!(purge.await.unwrap(), 1);
    assert!(matches!(send.await.unwrap(), Appended::Written(_)));
    assert_eq!(store.commits(), commits + 2, "the one that was held, and one for both");
    assert!(store.head(&scope, &id("u")).await.unwrap().is_some());
    assert_eq!(count(&store, "SELECT count(*) FROM scope").await, 1);
    assert_eq!(count(&store, "SELECT sum(tasks) FROM tally").await, 1);
}

/// A reader may have looked up the number of a scope just before the scope was removed.
#[tokio::test]
async fn s12_the_number_of_a_removed_scope_is_not_given_to_another() {
    let (_folder, store) = store();
    let mut last = 0;
    for owner in ["a", "b", "c"] {
        store.append(&scope(owner), append("t", 0, TaskState::Completed)).await.unwrap();
        let number = count(&store, "SELECT max(id) FROM scope").await;
        assert!(number > last, "{owner}: {number} after {last}");
        last = number;
        assert_eq!(store.purge_ended(Timestamp::MAX, 10).await.unwrap(), 1);
        assert_eq!(count(&store, "SELECT count(*) FROM scope").await, 0);
    }
}
