//! Tests of this backend only; what every store must do is tested by `suite`.

use std::sync::Arc;

use baton_protocol::domain::{ContextId, ListFilter, TaskState, Timestamp};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

use super::{Options, PostgresStore};
use crate::store::suite::fixture::*;
use crate::store::{
    Append, Appended, Detail, ListPosition, ListQuery, OwnerUsage, Store, StoreError, StoreResult, TaskKey,
    Work,
};

/// A store in a fresh schema of the server that `cargo xtask test --only stores` starts.
pub(in crate::store) async fn open() -> PostgresStore {
    connect(Options { connections: 8, ..fresh() }).await.unwrap()
}

async fn connect(options: Options) -> Result<PostgresStore, StoreError> {
    PostgresStore::connect(&address(), options).await
}

fn fresh() -> Options {
    Options { schema: format!("test_{}", uuid::Uuid::new_v4().simple()), ..Options::default() }
}

fn address() -> String {
    std::env::var("BATON_TEST_POSTGRES").expect(
        "BATON_TEST_POSTGRES must name a running PostgreSQL; `cargo xtask test --only stores` starts one",
    )
}

/// A plain connection to the store's tables, outside the store.
async fn raw_client(schema: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&address(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_start_together_migrate_once() {
    let options = Options { connections: 2, ..fresh() };
    let starts = (0..8).map(|_| tokio::spawn(connect(options.clone()))).collect::<Vec<_>>();
    for start in starts {
        let store: Arc<dyn Store> = Arc::new(start.await.unwrap().unwrap());
        store.append(&scope(), birth("t")).await.unwrap();
        assert_eq!(store.task_count().await.unwrap(), 1, "all see the same tables");
    }
}

/// A replica of the previous version still writes while the migration creates the counters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_born_during_the_migration_is_counted() {
    let options = Options { connections: 1, ..fresh() };
    let (mut old, watcher) = (raw_client(&options.schema).await, raw_client(&options.schema).await);
    old.batch_execute(&format!("CREATE SCHEMA {}", options.schema)).await.unwrap();
    for sql in [include_str!("migrations/0001.sql"), include_str!("migrations/0002.sql")] {
        old.batch_execute(sql).await.unwrap();
    }
    old.batch_execute("INSERT INTO meta (name, value) VALUES ('format', '2')").await.unwrap();
    let born = old.transaction().await.unwrap();
    let birth = "INSERT INTO task (scope, id, context, generation, created_at, version, state, status_at, work, \
                 attempts, fence, ended, foldable) VALUES (1, 't', 'c', 1, 0, 1, 1, 0, 0, 0, 0, false, false)";
    born.batch_execute(birth).await.unwrap();
    let migrated = tokio::spawn(connect(options.clone()));
    wait_until_blocked(&watcher, &options.schema, "task").await;
    born.commit().await.unwrap();
    migrated.await.unwrap().unwrap();
    let row = watcher.query_one("SELECT coalesce(sum(tasks), 0)::bigint FROM tally", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

/// Existing databases have already run them, so an edit would not reach those.
#[test]
fn released_migrations_are_as_they_were() {
    let starts = [[0xd3, 0xff, 0xff, 0x94], [0x1c, 0x2f, 0x17, 0x3d], [0x21, 0x19, 0x54, 0x28]];
    for (number, (sql, start)) in super::schema::MIGRATIONS.iter().zip(starts).enumerate() {
        assert_eq!(Sha256::digest(sql)[..4], start, "migration {}", number + 1);
    }
}

/// Format 3 kept whole hashes with their version byte, so some messages are recorded twice. It marked tasks as foldable
/// only if their snapshot was of the last version.
#[tokio::test]
async fn s12_what_format_3_wrote_is_found_and_folded() {
    let options = Options { connections: 1, ..fresh() };
    let old = raw_client(&options.schema).await;
    old.batch_execute(&format!("CREATE SCHEMA {}", options.schema)).await.unwrap();
    for sql in &super::schema::MIGRATIONS[..3] {
        old.batch_execute(sql).await.unwrap();
    }
    let rows = "INSERT INTO meta (name, value) VALUES ('format', '3'); \
                INSERT INTO scope (agent, tenant, owner) VALUES ('agent', 'tenant', 'owner'); \
                INSERT INTO message_record (scope, message_id, hash, task, at) SELECT id, 'm', hash, task, at \
                FROM scope, (VALUES (decode(repeat('01', 31) || 'c8', 'hex'), 'first', 1), \
                                    (decode(repeat('01', 31) || '02', 'hex'), 'again', 2), \
                                    (decode(repeat('02', 31) || '02', 'hex'), 'other', 3)) r (hash, task, at); \
                INSERT INTO task (scope, id, context, generation, created_at, version, state, status_at, work, \
                attempts, fence, ended, foldable) SELECT id, 'before', 'c', 1, 0, 2, 3, 0, 0, 0, 0, true, false FROM scope; \
                INSERT INTO snapshot SELECT key, 1, '\\x3120312031' FROM task";
    old.batch_execute(rows).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(connect(options).await.unwrap());
    for (hash, task) in [(1, "first"), (2, "other")] {
        let found = recorded(&store, "m", hash).await;
        assert_eq!(found.and_then(|found| found.task), Some(id(task)));
    }
    written(&store, birth("after").snapshot()).await;
    written(&store, next("after", 1).state(TaskState::Completed).at(1).work(Work::Idle)).await;
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 2);
    for task in ["before", "after"] {
        assert_eq!(head(&store, task).await.folded_through, 1, "{task}");
    }
}

/// What format 6 stored is counted for its owners, under all their tenants.
#[tokio::test]
async fn s12_what_format_6_stored_is_counted() {
    let options = Options { connections: 1, ..fresh() };
    let old = raw_client(&options.schema).await;
    old.batch_execute(&format!("CREATE SCHEMA {}", options.schema)).await.unwrap();
    for sql in &super::schema::MIGRATIONS[..6] {
        old.batch_execute(sql).await.unwrap();
    }
    // One task is folded and still has its status event, the other is not and has a request.
    let rows = "INSERT INTO meta (name, value) VALUES ('format', '6'); \
                INSERT INTO scope (agent, tenant, owner) \
                VALUES ('agent', 'tenant', 'owner'), ('agent', 'invented', 'owner'), ('agent', '', 'other'); \
                INSERT INTO task (scope, id, context, generation, created_at, version, folded_through, state, status_at, \
                work, attempts, fence, ended, foldable) \
                VALUES (1, 'folded', 'c', 1, 0, 2, 2, 3, 0, 0, 0, 0, true, false), \
                       (2, 'open', 'c', 1, 0, 2, 0, 2, 0, 2, 0, 0, false, false); \
                INSERT INTO event SELECT key, number, convert_to('1 S2 ' || number || chr(10) || '{}', 'UTF8') \
                FROM task, (VALUES (1), (2)) n (number) WHERE number > folded_through - 1; \
                INSERT INTO snapshot SELECT key, 2, '\\x3120312031' FROM task WHERE ended; \
                INSERT INTO request (task, id, record) SELECT key, 1, '\\x313233' FROM task WHERE NOT ended; \
                INSERT INTO message_record (scope, message_id, hash, task, reply, at) \
                VALUES (1, 'm', decode(repeat('01', 31), 'hex'), 'folded', NULL, 0), \
                       (2, 'mü', decode(repeat('01', 31), 'hex'), NULL, '\\x0001', 0), \
                       (3, 'm', decode(repeat('01', 31), 'hex'), 'gone', NULL, 0)";
    old.batch_execute(rows).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(connect(options).await.unwrap());
    // The snapshot; the two events of 9 bytes and the request; two records.
    let bytes = 5 + 2 * 9 + 3 + (256 + 1 + 6) + (256 + 3 + 2);
    let expected = OwnerUsage { tasks: 2, bytes };
    assert_eq!(store.owner_usage("owner").await.unwrap(), expected);
    assert_eq!(store.owner_usage("other").await.unwrap(), OwnerUsage { tasks: 0, bytes: 256 + 1 + 4 });
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(store.purge_records(at(10), 10).await.unwrap(), 3);
    assert_eq!(store.owner_usage("owner").await.unwrap(), OwnerUsage { tasks: 1, bytes: 2 * 9 + 3 });
    assert_eq!(store.owner_usage("other").await.unwrap(), OwnerUsage::default());
}

/// An append of the version before has read and is about to write when the migration begins: both succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_the_migration_to_format_7_waits_for_appends() {
    let options = Options { connections: 1, ..fresh() };
    let (mut old, watcher) = (raw_client(&options.schema).await, raw_client(&options.schema).await);
    old.batch_execute(&format!("CREATE SCHEMA {}", options.schema)).await.unwrap();
    for sql in &super::schema::MIGRATIONS[..6] {
        old.batch_execute(sql).await.unwrap();
    }
    old.batch_execute("INSERT INTO meta (name, value) VALUES ('format', '6')").await.unwrap();
    let append = old.transaction().await.unwrap();
    append.batch_execute("SELECT FROM scope; SELECT FROM task").await.unwrap();
    let migrated = tokio::spawn(connect(options.clone()));
    wait_until_blocked(&watcher, &options.schema, "scope").await;
    let birth = "INSERT INTO scope (agent, tenant, owner) VALUES ('agent', '', 'owner'); \
                 INSERT INTO task (scope, id, context, generation, created_at, version, folded_through, state, status_at, \
                 work, attempts, fence, ended, foldable) \
                 SELECT id, 't', 'c', 1, 0, 1, 0, 2, 0, 2, 0, 0, false, false FROM scope";
    append.batch_execute(birth).await.unwrap();
    append.commit().await.unwrap();
    let store = migrated.await.unwrap().unwrap();
    assert_eq!(store.owner_usage("owner").await.unwrap().tasks, 1);
}

#[tokio::test]
async fn tables_of_others_and_of_newer_batons_are_refused() {
    let foreign = fresh();
    let client = raw_client("public").await;
    let make = format!("CREATE SCHEMA {0}; CREATE TABLE {0}.task (id int)", foreign.schema);
    client.batch_execute(&make).await.unwrap();
    assert!(matches!(connect(foreign).await, Err(StoreError::Damaged(_))));

    let newer = fresh();
    drop(connect(newer.clone()).await.unwrap());
    let raise = format!("UPDATE {}.meta SET value = '99' WHERE name = 'format'", newer.schema);
    client.batch_execute(&raise).await.unwrap();
    assert!(matches!(connect(newer).await, Err(StoreError::Unavailable(_))));

    let odd = Options { schema: "a; DROP TABLE task".to_owned(), ..Options::default() };
    assert!(matches!(connect(odd).await, Err(StoreError::Unavailable(_))));
}

/// Waits until a backend is waiting for a lock on this table; answers its pid.
async fn wait_until_blocked(client: &tokio_postgres::Client, schema: &str, table: &str) -> i32 {
    let find = "SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid \
                WHERE l.relation = $1::text::regclass AND a.wait_event_type = 'Lock'";
    let table = format!("{schema}.{table}");
    loop {
        if let Some(row) = client.query(find, &[&table]).await.unwrap().first() {
            return row.get(0);
        }
        tokio::task::yield_now().await;
    }
}

fn spawn_append(store: &Arc<dyn Store>, append: Append) -> JoinHandle<StoreResult<Appended>> {
    let store = store.clone();
    tokio::spawn(async move { store.append(&scope(), append).await })
}

/// A connection that is lost during a write fails that write only; the store keeps working.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_is_an_error_and_no_more() {
    let options = Options { connections: 2, ..fresh() };
    let store: Arc<dyn Store> = Arc::new(connect(options.clone()).await.unwrap());
    written(&store, birth("t")).await;
    let (mut blocker, killer) = (raw_client(&options.schema).await, raw_client(&options.schema).await);
    let lock = blocker.transaction().await.unwrap();
    lock.query("SELECT key FROM task FOR UPDATE", &[]).await.unwrap();
    let waiting = spawn_append(&store, next("t", 1));
    let pid = wait_until_blocked(&killer, &options.schema, "task").await;
    killer.query("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Err(StoreError::Unavailable(_))));
    lock.rollback().await.unwrap();
    // The pool may hand out the broken connection once more before it notices.
    while store.head(&scope(), &id("t")).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(head(&store, "t").await.version, 1);
    written(&store, next("t", 1)).await;
}

/// An append loses to another transaction that commits while it waits: the two places where this can happen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_birth_that_waited_writes_nothing_when_it_loses() {
    let options = Options { connections: 2, ..fresh() };
    let store: Arc<dyn Store> = Arc::new(connect(options.clone()).await.unwrap());
    written(&store, birth("first")).await;
    let (mut other, watcher) = (raw_client(&options.schema).await, raw_client(&options.schema).await);

    // Another birth of the same id is about to commit: the loser's message record must not stay.
    let winner = other.transaction().await.unwrap();
    let copy = "INSERT INTO task (scope, id, context, generation, created_at, version, state, status_at, work, \
                attempts, fence, ended, foldable) \
                SELECT scope, 'taken', context, generation, created_at, version, state, status_at, work, \
                attempts, fence, ended, foldable FROM task";
    winner.execute(copy, &[]).await.unwrap();
    let loser = spawn_append(&store, birth("taken").with_message("m", 1));
    wait_until_blocked(&watcher, &options.schema, "task").await;
    winner.commit().await.unwrap();
    assert_eq!(loser.await.unwrap().unwrap(), Appended::Conflict);
    assert_eq!(recorded(&store, "m", 1).await, None);

    // The same message is about to be recorded: no task must be created.
    let winner = other.transaction().await.unwrap();
    let keep = "INSERT INTO message_record (scope, message_id, hash, task, at) SELECT scope, 'n', $1, 'first', $2 \
                FROM task WHERE id = 'first'";
    winner.execute(keep, &[&&[1_u8; 31][..], &at(0).as_millis()]).await.unwrap();
    let loser = spawn_append(&store, birth("second").with_message("n", 1));
    wait_until_blocked(&watcher, &options.schema, "task").await;
    winner.commit().await.unwrap();
    assert_eq!(loser.await.unwrap().unwrap(), Appended::Duplicate(record("n", 1, "first")));
    assert!(!exists(&store, "second").await);
}

/// Runs every operation often enough for the server to use generic plans, on tables too large to be worth scanning.
#[tokio::test]
async fn no_verb_scans_a_table() {
    let options = Options { connections: 1, ..fresh() };
    drop(connect(options.clone()).await.unwrap());
    let client = raw_client(&options.schema).await;
    client.batch_execute(FILL).await.unwrap();
    client.batch_execute("ANALYZE; SELECT pg_stat_force_next_flush()").await.unwrap();
    // A new connection, since the migration's count of scans includes the creation of indexes.
    let store: Arc<dyn Store> = Arc::new(connect(options).await.unwrap());
    let before = scans(&client).await;
    written(&store, birth("t")).await;
    for round in 0..8 {
        every_operation(&store, round).await;
    }
    drop(store);
    let mut after = scans(&client).await;
    // The server adds a backend's counters when the backend ends, a moment after its connection.
    while after == before {
        after = scans(&client).await;
    }
    for ((table, before, _), (_, after, used)) in before.iter().zip(&after) {
        assert_eq!(before, after, "{table} was scanned");
        assert!(*used > 0, "{table} was used");
    }
}

/// 200 scopes of 100 tasks, one in ten ended and one in fifty open.
const FILL: &str = "
    INSERT INTO scope (agent, tenant, owner) SELECT 'agent', 'tenant', 'owner' || n FROM generate_series(1, 200) n;
    INSERT INTO task (scope, id, context, generation, created_at, version, state, status_at, work, attempts,
                      fence, ended, foldable)
        SELECT s.id, 't' || n, 'c' || n % 10, 1, 0, 1, 2, 1763200000000 + n, (n % 50 = 0)::int, 0, 0, n % 10 = 0, n % 10 = 0
        FROM scope s, generate_series(1, 100) n;
    INSERT INTO event SELECT key, 1, '\\x3120532030000a7b7d' FROM task;
    INSERT INTO snapshot SELECT key, 1, '\\x3120312031' FROM task;
    INSERT INTO message_record SELECT scope, id, decode(repeat('00', 31), 'hex'), id, 1, NULL, status_at FROM task;
    INSERT INTO request SELECT key, 1, '\\x31', NULL, NULL FROM task;";

type Scans = Vec<(String, i64, i64)>;

/// How often each table was scanned, and how often an index of it was used.
async fn scans(client: &tokio_postgres::Client) -> Scans {
    let scans = "SELECT relname::text, seq_scan, coalesce(idx_scan, 0) FROM pg_stat_user_tables \
                 WHERE schemaname = current_schema() \
                 AND relname IN ('task', 'event', 'snapshot', 'message_record', 'request') ORDER BY relname";
    let rows = client.query(scans, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

async fn every_operation(store: &Arc<dyn Store>, round: u64) {
    let (version, message) = (1 + 2 * round, format!("m{round}"));
    written(store, birth(&format!("new{round}")).ended(5).with_message(&format!("new{round}"), 1)).await;
    let request = noted(store, "t", new_request("w", Some(record(&message, 1, "t")))).await;
    store.requests(&scope(), &id("t")).await.unwrap();
    written(store, next("t", version).events(2).snapshot().settling(request, Some(version + 1))).await;
    head(store, "t").await;
    load(store, "t").await;
    store.events(&scope(), &id("t"), 1, 100).await.unwrap();
    recorded(store, &message, 1).await.unwrap();
    store.put_reply(&scope(), reply(&format!("r{round}"), 1, "r")).await.unwrap();
    for context_id in [None, ContextId::parse("c1").ok()] {
        for detail in [Detail::Status, Detail::Whole] {
            let filter = ListFilter { context_id: context_id.clone(), ..ListFilter::default() };
            let first = ListQuery { filter, limit: 50, detail, counted: true, ..query() };
            store.list(&scope(), &first).await.unwrap();
            let after = Some(ListPosition { status_at: at(50), id: id("t") });
            store.list(&scope(), &ListQuery { after, counted: false, ..first }).await.unwrap();
        }
    }
    store.open_tasks(TaskKey(0), 100).await.unwrap();
    store.task_count().await.unwrap();
    store.owner_usage("owner").await.unwrap();
    for before in [Timestamp::MIN, at(6 + round as i64)] {
        store.fold_ended(before, before, 10).await.unwrap();
        store.purge_ended(before, 10).await.unwrap();
        store.purge_records(before, 10).await.unwrap();
    }
}

/// What earlier formats left of scopes goes with the first sweep, and a scope that somebody writes to stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_scopes_left_behind_are_removed_unless_somebody_writes_to_them() {
    let options = Options { connections: 2, ..fresh() };
    let mut old = raw_client(&options.schema).await;
    old.batch_execute(&format!("CREATE SCHEMA {}", options.schema)).await.unwrap();
    for sql in &super::schema::MIGRATIONS[..7] {
        old.batch_execute(sql).await.unwrap();
    }
    let rows = "INSERT INTO meta (name, value) VALUES ('format', '7'); \
                INSERT INTO scope (agent, tenant, owner) VALUES ('agent', 'invented', 'owner'), ('agent', 'tenant', 'owner'); \
                INSERT INTO tally SELECT id, 2, 0, 0 FROM scope";
    old.batch_execute(rows).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(connect(options.clone()).await.unwrap());
    // A birth is under way, as `intern_scope` begins it.
    let birth_under_way = old.transaction().await.unwrap();
    birth_under_way.query_one("SELECT intern_scope('agent', 'tenant', 'owner')", &[]).await.unwrap();
    let watcher = raw_client(&options.schema).await;
    let left = async || {
        let rows = watcher.query("SELECT tenant FROM scope", &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    assert_eq!(store.purge_ended(at(0), 10).await.unwrap(), 0);
    assert_eq!(left().await, ["tenant"]);
    birth_under_way.rollback().await.unwrap();
    assert_eq!(store.purge_records(at(0), 10).await.unwrap(), 0);
    assert_eq!(left().await, [""; 0]);
    assert_eq!(store.row_count().await.unwrap(), Some(0));
}

/// A scope is removed while a birth waits for it: the birth makes it anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_a_birth_that_waited_for_the_removal_of_its_scope_is_found() {
    let options = Options { connections: 2, ..fresh() };
    let store: Arc<dyn Store> = Arc::new(connect(options.clone()).await.unwrap());
    let (mut sweep, watcher) = (raw_client(&options.schema).await, raw_client(&options.schema).await);
    written(&store, birth("first").ended(1)).await;
    // What `purge_ended` does, and the removal of the scope, which is not committed.
    sweep.batch_execute("DELETE FROM snapshot; DELETE FROM event; DELETE FROM task").await.unwrap();
    let removal = sweep.transaction().await.unwrap();
    removal.query("SELECT remove_empty_scopes(10)", &[]).await.unwrap();
    let born = spawn_append(&store, birth("second"));
    wait_until_blocked(&watcher, &options.schema, "scope").await;
    removal.commit().await.unwrap();
    assert!(matches!(born.await.unwrap().unwrap(), Appended::Written(_)));
    assert!(exists(&store, "second").await);
    assert_eq!(listed(&store, &query()).await, ["second"]);
}
