//! Databases written in each version of the format. Every later version must read them.

use super::*;
use crate::store::record::{IssuedKey, fold, write_reply};
use crate::store::suite::fixture::query;
use crate::store::suite::golden;
use crate::store::{
    Bytes, Claim, FailedWebhook, NewRequest, NewWebhook, OwnerUsage, PendingRequest, ReplicaId, Settled,
    StoredWebhook, WebhookCursor, WebhookState,
};
use crate::store::{Detail, ListQuery, Listed, said};
use baton_protocol::domain::{ListFilter, PushConfigId, Role};

/// The newest is the last. The older ones cannot be generated any more.
const FILES: [&str; 10] = [
    "sqlite-v1.db",
    "sqlite-v2.db",
    "sqlite-v3.db",
    "sqlite-v4.db",
    "sqlite-v5.db",
    "sqlite-v6.db",
    "sqlite-v7.db",
    "sqlite-v8.db",
    "sqlite-v9.db",
    "sqlite-v10.db",
];

/// The first that has credentials, and the first that has webhooks.
const WITH_CREDENTIALS: usize = 5;
const WITH_WEBHOOKS: usize = 9;

fn events(range: std::ops::Range<usize>) -> Vec<StoredEvent> {
    let story = golden::story();
    let (task, context) = (golden::task_id(), golden::context_id());
    story[range].iter().map(|(_, event)| StoredEvent::encode(&task, &context, event)).collect()
}

fn record(message: &str, task: Option<TaskId>, event: Option<u64>) -> MessageRecord {
    let message_id = MessageId::parse(message).unwrap();
    MessageRecord { message_id, hash: [7; 32], task, event, reply: None, at: golden::at(1) }
}

fn reply() -> MessageRecord {
    let reply = write_reply(&golden::message("m-9", Role::Agent, "an answer"));
    MessageRecord { reply: Some(reply), ..record("asked", None, None) }
}

fn head(state: TaskState, at: u64, work: Work) -> HeadState {
    let holder = Some(ReplicaId(u64::MAX - 1));
    HeadState { state, status_at: golden::at(at), work, attempts: 1, holder, fence: 3 }
}

/// Two tasks with the events of `golden::story`: one waits for an answer, which is a pending request; one has ended and is
/// folded.
async fn write(store: &SqliteStore, scope: &Scope) {
    for owned in [scope, &super::scope("ended")] {
        let mut first = Append {
            task: golden::task_id(),
            birth: Some(Birth {
                context_id: golden::context_id(),
                generation: Generation::V0_3,
                created_at: golden::at(0),
            }),
            expected: 0,
            fence: 0,
            events: events(0..3),
            head: head(TaskState::Working, 3, Work::Running),
            snapshot: Some(StoredSnapshot::encode(&golden::snapshot(3))),
            message: Some(record("m-1", Some(golden::task_id()), Some(1))),
            settled: Vec::new(),
            webhook: None,
        };
        store.append(owned, first.clone()).await.unwrap();
        first = Append { birth: None, expected: 3, fence: 3, snapshot: None, message: None, ..first };
        first.events = events(3..6);
        first.head = head(TaskState::InputRequired, 6, Work::Idle);
        store.append(owned, first.clone()).await.unwrap();
        let message = Some(record("m-3", Some(golden::task_id()), None));
        let event = events(6..7).remove(0).renumbered(0);
        let noted =
            store.request(owned, &golden::task_id(), NewRequest { event, message, most_pending: 16 }).await;
        let Ok(Requested::Noted { request, .. }) = noted else { panic!("{noted:?}") };
        if owned != scope {
            first.expected = 6;
            first.events = events(6..10);
            first.head = head(TaskState::Canceled, 10, Work::Idle);
            first.snapshot = Some(StoredSnapshot::encode(&golden::snapshot(10)));
            first.settled = vec![Settled { request, event: Some(7) }];
            store.append(owned, first).await.unwrap();
        }
    }
    assert_eq!(store.fold_ended(Timestamp::MAX, Timestamp::MAX, 10).await.unwrap(), 1);
    assert_eq!(store.put_reply(scope, reply()).await.unwrap(), None);
    store.secret("cursor", b"not so secret".to_vec()).await.unwrap();
    store.put_credential(golden::key().to_stored()).await.unwrap();
    let key = store.head(scope, &golden::task_id()).await.unwrap().unwrap().key;
    let StoredWebhook { id, record, cursor } = webhook();
    let new = NewWebhook { id: id.clone(), record: record.clone(), most: 1 };
    store.put_webhook(scope, &golden::task_id(), new).await.unwrap();
    let failed = FailedWebhook { key, id, at: golden::at(9), record };
    assert!(store.set_aside_webhook(1, cursor, failed, 10).await.unwrap());
}

/// As it is stored: moved once.
fn webhook() -> StoredWebhook {
    let cursor = WebhookCursor {
        revision: 2,
        done: 4,
        task_as_of: Some(6),
        failures: 3,
        failing_since: Some(golden::at(2)),
        due: golden::at(8),
        claim: Some(Claim { by: ReplicaId(5), until: golden::at(9) }),
        state: WebhookState::Open,
    };
    StoredWebhook { id: PushConfigId::parse("hook").unwrap(), record: Bytes::from_static(b"1 W\n{}"), cursor }
}

#[tokio::test]
async fn what_every_version_wrote_is_read() {
    let newest = FILES[FILES.len() - 1];
    if golden::must_write(newest) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(newest);
        let store = open(&path);
        write(&store, &scope("waiting")).await;
        drop(store);
        std::fs::copy(&path, golden::path(newest)).unwrap();
    }
    for (n, file) in FILES.into_iter().enumerate() {
        let keys = if n < WITH_CREDENTIALS { vec![] } else { vec![golden::key()] };
        let webhooks = if n < WITH_WEBHOOKS { vec![] } else { vec![webhook()] };
        check_reads(file, &keys, &webhooks).await;
    }
}

/// A format without a file would be noticed when it can no longer be generated.
#[test]
fn the_newest_file_has_the_format_of_today() {
    let version = |path: &std::path::Path| {
        let file = rusqlite::Connection::open(path).unwrap();
        file.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).unwrap()
    };
    let (folder, store) = store();
    drop(store);
    let copy = folder.path().join("copy.db");
    std::fs::copy(golden::path(FILES[FILES.len() - 1]), &copy).unwrap();
    assert_eq!(version(&copy), version(&folder.path().join("baton.db")));
}

async fn check_reads(file: &str, keys: &[IssuedKey], webhooks: &[StoredWebhook]) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(file);
    let (waiting, ended) = (scope("waiting"), scope("ended"));
    std::fs::copy(golden::path(file), &path).unwrap();
    let store = open(&path);
    let task = golden::task_id();

    let loaded = store.load(&waiting, &task).await.unwrap().unwrap();
    assert_eq!(loaded.head.current, head(TaskState::InputRequired, 6, Work::Idle));
    assert_eq!((loaded.head.version, loaded.head.folded_through), (6, 0));
    assert_eq!((loaded.head.generation, loaded.head.created_at), (Generation::V0_3, golden::at(0)));
    assert_eq!(loaded.snapshot.as_ref().unwrap().version(), 3);
    assert_eq!(fold(&loaded).unwrap(), golden::snapshot(6));
    assert_eq!(store.events(&waiting, &task, 0, 100).await.unwrap(), events(0..6));
    let pending: Vec<PendingRequest> = store.requests(&waiting, &task).await.unwrap();
    assert_eq!(pending.iter().map(|pending| pending.event.renumbered(7)).collect::<Vec<_>>(), events(6..7));
    let open_tasks = store.open_tasks(TaskKey(0), 10).await.unwrap();
    assert_eq!(open_tasks, [OpenTask { key: loaded.head.key, scope: waiting.clone(), id: task.clone() }]);

    let loaded = store.load(&ended, &task).await.unwrap().unwrap();
    assert_eq!((loaded.head.version, loaded.head.folded_through), (10, 10));
    assert_eq!(fold(&loaded).unwrap(), golden::snapshot(10));
    assert_eq!(store.events(&ended, &task, 0, 100).await.unwrap(), []);

    for (scope, expected) in [
        (&waiting, record("m-1", Some(task.clone()), Some(1))),
        (&waiting, record("m-3", Some(task.clone()), None)),
        (&ended, record("m-3", Some(task.clone()), Some(7))),
        (&waiting, reply()),
    ] {
        let found = store.message(scope, &expected.message_id, &expected.hash).await.unwrap();
        assert_eq!(found, Some(expected));
    }
    assert_eq!(store.secret("cursor", Vec::new()).await.unwrap(), b"not so secret");

    let stored = store.credentials().await.unwrap();
    let read: Vec<_> = stored.iter().map(|stored| IssuedKey::from_stored(stored).unwrap()).collect();
    assert_eq!(read, keys, "{file}");

    assert_eq!(store.webhooks(&waiting, &task).await.unwrap(), webhooks, "{file}");
    let still_open = store.open_webhooks(None, 10).await.unwrap();
    assert_eq!(
        still_open.iter().map(|open| &open.webhook).collect::<Vec<_>>(),
        webhooks.iter().collect::<Vec<_>>()
    );
    assert_eq!(store.failed_webhooks(None, 10).await.unwrap().len(), webhooks.len(), "{file}");

    check_lists(&store, file).await;
    check_usage(&store, file).await;

    // The second of two tasks is purged; its key must not be used again.
    assert_eq!(store.purge_ended(Timestamp::MAX, 10).await.unwrap(), 1);
    drop(store);
    let store = open(&path);
    let first = record("m-1", Some(task.clone()), Some(1));
    assert_eq!(store.message(&ended, &first.message_id, &first.hash).await.unwrap(), Some(first));
    let born = store.append(&ended, append("new", 0, TaskState::Working)).await.unwrap();
    assert!(matches!(born, Appended::Written(key) if key > TaskKey(2)), "{born:?}");
}

/// Totals and status messages are right, whether the migration or an append wrote them.
async fn check_lists(store: &SqliteStore, file: &str) {
    for (owner, state, at) in [("waiting", TaskState::InputRequired, 6), ("ended", TaskState::Canceled, 10)] {
        let query = ListQuery { counted: true, detail: Detail::Status, ..query() };
        let page = store.list(&scope(owner), &query).await.unwrap();
        assert_eq!((page.tasks.len(), page.more, page.total), (1, false, Some(1)), "{file}");
        let shown = match &page.tasks[0] {
            Listed::Status(brief) => said::task(brief).unwrap(),
            Listed::Whole(loaded) => fold(loaded).unwrap().task,
        };
        assert_eq!((shown.status.state, shown.status.timestamp), (state, golden::at(at)), "{file}");
        assert_eq!(shown.status.message, golden::snapshot(at as usize).task.status.message, "{file}");
        for (state, total) in [(state, 1), (TaskState::Working, 0)] {
            let filter = ListFilter { states: vec![state], ..ListFilter::default() };
            let page = store.list(&scope(owner), &ListQuery { filter, ..query.clone() }).await.unwrap();
            assert_eq!((page.tasks.len() as u64, page.total), (total, Some(total)), "{file}");
        }
    }
}

/// What an owner has stored is right, whether the migration or the writes counted it.
async fn check_usage(store: &SqliteStore, file: &str) {
    let task = golden::task_id();
    let message = |message| record(message, Some(task.clone()), None).counted_bytes();
    for (owner, records) in [
        ("waiting", message("m-1") + message("m-3") + reply().counted_bytes()),
        ("ended", message("m-1") + message("m-3")),
    ] {
        let scope = scope(owner);
        let events = store.events(&scope, &task, 0, 100).await.unwrap();
        let pending = store.requests(&scope, &task).await.unwrap();
        let snapshot = store.load(&scope, &task).await.unwrap().unwrap().snapshot.unwrap();
        let events = events.iter().chain(pending.iter().map(|pending| &pending.event));
        let webhooks = store.webhooks(&scope, &task).await.unwrap();
        let records_of = events.map(StoredEvent::record).chain([snapshot.record()]);
        let all = records_of.chain(webhooks.iter().map(|webhook| &webhook.record));
        let bytes = all.map(Bytes::len).sum::<usize>();
        let expected = OwnerUsage { tasks: 1, bytes: bytes as u64 + records };
        assert_eq!(store.owner_usage(owner).await.unwrap(), expected, "{file}");
    }
    assert_eq!(store.owner_usage("nobody").await.unwrap(), OwnerUsage::default());
}

/// Tasks that ended before the upgrade are folded after it, up to their snapshot.
#[tokio::test]
async fn s12_what_format_4_left_unfolded_is_folded() {
    const DOWNGRADE_TO_4: &str = "
        DROP INDEX task_foldable;
        DROP INDEX task_ended;
        DROP INDEX task_by_context;
        ALTER TABLE task DROP COLUMN foldable;
        CREATE INDEX task_by_context ON task (scope, context, status_at, id, state) WHERE work = 0;
        CREATE INDEX task_unfolded ON task (ended_at) WHERE ended_at IS NOT NULL AND folded_through = 0;
        CREATE INDEX task_folded ON task (ended_at) WHERE ended_at IS NOT NULL AND folded_through <> 0;
        DROP TABLE credential;
        DROP TABLE webhook;
        DROP TABLE failed_webhook;
        CREATE TABLE push_config (task INTEGER NOT NULL) STRICT;
        CREATE TABLE outbox (task INTEGER NOT NULL) STRICT;
        DROP TABLE owner_usage;
        ALTER TABLE task DROP COLUMN bytes;
        ALTER TABLE task DROP COLUMN uncounted;
        ALTER TABLE task DROP COLUMN uncounted_task;
        PRAGMA user_version = 4;";
    let (folder, store) = store();
    let path = folder.path().join("baton.db");
    let snapshot = StoredSnapshot::encode(&golden::snapshot(1));
    for (task, snapshot) in [("with-snapshot", Some(snapshot)), ("without", None)] {
        let first = Append { snapshot, ..append(task, 0, TaskState::Working) };
        store.append(&scope("o"), first).await.unwrap();
        store.append(&scope("o"), append(task, 1, TaskState::Completed)).await.unwrap();
    }
    drop(store);
    rusqlite::Connection::open(&path).unwrap().execute_batch(DOWNGRADE_TO_4).unwrap();
    let store = open(&path);
    assert_eq!(store.fold_ended(Timestamp::MAX, Timestamp::MAX, 10).await.unwrap(), 1);
    for (task, folded) in [("with-snapshot", 1), ("without", 0)] {
        assert_eq!(
            store.head(&scope("o"), &id(task)).await.unwrap().unwrap().folded_through,
            folded,
            "{task}"
        );
    }
    assert_eq!(store.purge_ended(Timestamp::MAX, 10).await.unwrap(), 2);
}
