//! Tests of this backend only; what every store must do is tested by `suite`.

use std::sync::Arc;

use baton_protocol::domain::{Scope, TaskState};

use super::keys::Bucket;
use super::{Options, RedisStore, check_settings};
use crate::store::suite::fixture::*;
use crate::store::{Store, StoreError, Work};

/// A store under a fresh prefix of the server that `cargo xtask test --only stores` starts.
pub(in crate::store) async fn open() -> RedisStore {
    RedisStore::connect(&address(), fresh()).await.unwrap()
}

fn fresh() -> Options {
    Options { prefix: format!("test_{}", uuid::Uuid::new_v4().simple()), ..Options::default() }
}

fn address() -> String {
    std::env::var("BATON_TEST_REDIS")
        .expect("BATON_TEST_REDIS must name a running Redis; `cargo xtask test --only stores` starts one")
}

/// All keys under a store's prefix.
async fn keys(prefix: &str) -> Vec<String> {
    let client = redis::Client::open(address()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let pattern = format!("{{{prefix}*");
    let mut keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut connection).await.unwrap();
    keys.sort();
    keys
}

/// On a cluster a script fails if it uses a key of another node.
#[tokio::test]
async fn all_of_a_scope_is_in_one_bucket_and_purging_leaves_nothing() {
    let options = fresh();
    let prefix = options.prefix.clone();
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&address(), options).await.unwrap());
    written(&store, birth("t").with_message("m", 1).snapshot()).await;
    let request = noted(&store, "t", new_request("w", Some(record("w", 1, "t")))).await;
    noted(&store, "t", new_request("stays", None)).await;
    written(&store, next("t", 1).settling(request, Some(2)).ended(5)).await;
    store.put_reply(&scope(), reply("r", 1, "r")).await.unwrap();
    let bucket = Bucket::of(&scope()).key(&prefix);
    let meta = format!("{{{prefix}}}:meta");
    let all = keys(&prefix).await;
    assert!(all.iter().all(|key| key.starts_with(&bucket) || *key == meta), "{all:?}");
    assert_eq!(all.iter().filter(|key| key.starts_with(&bucket)).count(), 17, "{all:?}");

    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 1);
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(store.purge_records(at(10), 10).await.unwrap(), 3);
    let counters = [format!("{bucket}number"), format!("{bucket}tasks")];
    let mut expected = vec![counters[0].clone(), counters[1].clone(), meta];
    expected.sort();
    assert_eq!(keys(&prefix).await, expected);
}

/// After a restart the server has lost its scripts.
#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let store: Arc<dyn Store> = Arc::new(open().await);
    written(&store, birth("t")).await;
    let client = redis::Client::open(address()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.unwrap();
    written(&store, next("t", 1)).await;
    assert_eq!(numbers(&load(&store, "t").await.tail), [1, 2]);
}

#[tokio::test]
async fn keys_of_another_format_are_refused() {
    let options = fresh();
    let client = redis::Client::open(address()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let meta = format!("{{{}}}:meta", options.prefix);
    let () = redis::cmd("HSET").arg(meta).arg(&["format", "4"]).query_async(&mut connection).await.unwrap();
    assert!(matches!(RedisStore::connect(&address(), options).await, Err(StoreError::Unavailable(_))));
    let odd = Options { prefix: "a{b}".to_owned(), ..Options::default() };
    assert!(matches!(RedisStore::connect(&address(), odd).await, Err(StoreError::Unavailable(_))));
}

/// Message records of format 1 are found, get the number of their event and are removed; its tasks are folded. Versions
/// that know format 1 only do not start on partly migrated keys, and the next start finishes an interrupted migration.
#[tokio::test]
async fn s12_records_of_format_1_are_found() {
    let options = fresh();
    let prefix = options.prefix.clone();
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&address(), options.clone()).await.unwrap());
    written(&store, birth("t").with_message("m", 1)).await;
    let request = noted(&store, "t", new_request("w", Some(record("w", 1, "t")))).await;
    store.put_reply(&scope(), reply("r", 1, "r")).await.unwrap();
    written(&store, birth("older").snapshot()).await;
    written(&store, next("older", 1).state(TaskState::Completed).at(1).work(Work::Idle)).await;
    drop(store);
    // Rewrites the keys as format 1 had them: the whole hash in every name.
    let client = redis::Client::open(address()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let bucket = Bucket::of(&scope()).key(&prefix);
    let path = super::keys::path(&scope(), &id("t"));
    let named = |message: &str, version: &str| {
        let digest = super::keys::reference(&scope(), &message_id(message), &[1; 32]);
        digest.replace(&"01".repeat(31), &format!("{}{version}", "01".repeat(31)))
    };
    let mut downgrade = redis::pipe();
    for (message, set) in [("m", "o:"), ("w", "o:"), ("r", "")] {
        let (new, old) = (named(message, ""), named(message, "c8"));
        downgrade.cmd("RENAME").arg(format!("{bucket}m:{new}")).arg(format!("{bucket}m:{old}"));
        if set.is_empty() {
            downgrade.cmd("ZREM").arg(format!("{bucket}orphans")).arg(&new);
            downgrade.cmd("ZADD").arg(format!("{bucket}orphans")).arg(0).arg(&old);
        } else {
            downgrade.cmd("SREM").arg(format!("{bucket}o:{path}")).arg(&new);
            downgrade.cmd("SADD").arg(format!("{bucket}o:{path}")).arg(&old);
        }
    }
    downgrade.cmd("HSET").arg(format!("{bucket}q:{path}")).arg(request.0).arg(named("w", "c8"));
    // A second record of the same message, with another version of its hash.
    let again = format!("{bucket}m:{}", named("m", "02"));
    downgrade.cmd("HSET").arg(again).arg(&["at", &at(5).as_millis().to_string(), "task", "t", "path", &path]);
    // Format 1 did not mark a task as foldable if its snapshot was older than its last event.
    downgrade.cmd("DEL").arg(format!("{bucket}foldable"));
    let meta = format!("{{{prefix}}}:meta");
    downgrade.cmd("HSET").arg(&meta).arg(&["format", "1"]);
    // A key that is no record makes the migration fail midway.
    let no_record = format!("{bucket}m:{}", named("x", "02"));
    downgrade.cmd("SET").arg(&no_record).arg("");
    let () = downgrade.exec_async(&mut connection).await.unwrap();

    assert!(RedisStore::connect(&address(), options.clone()).await.is_err());
    let mut after = redis::pipe();
    after.cmd("HGET").arg(&meta).arg("format").cmd("DEL").arg(&no_record).ignore();
    let (format,): (String,) = after.query_async(&mut connection).await.unwrap();
    assert_eq!(format, "3", "versions that know format 1 only refuse to start");

    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&address(), options).await.unwrap());
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 1);
    assert_eq!(head(&store, "older").await.folded_through, 1);
    assert_eq!(recorded(&store, "m", 1).await, Some(record("m", 1, "t")));
    assert_eq!(recorded(&store, "r", 1).await, Some(reply("r", 1, "r")));
    written(&store, next("t", 1).settling(request, Some(2)).ended(1)).await;
    assert_eq!(recorded(&store, "w", 1).await.unwrap().event, Some(2));
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 2);
    assert_eq!(store.purge_records(at(10), 10).await.unwrap(), 3);
    assert_eq!(keys(&prefix).await.iter().filter(|key| key.contains(":m:")).count(), 0);
    let fields: Vec<String> = redis::cmd("HKEYS").arg(meta).query_async(&mut connection).await.unwrap();
    assert_eq!(fields, ["format", "buckets"], "the migration is over");
}

/// What format 2 stored is counted for its owners, once, also if the migration is repeated.
#[tokio::test]
async fn s12_what_format_2_stored_is_counted() {
    let options = fresh();
    let prefix = options.prefix.clone();
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&address(), options.clone()).await.unwrap());
    for tenant in ["", "one", "two"] {
        let scope = Scope::new("agent", tenant, "owner of:all");
        written_in(&store, &scope, birth("open").events(40).with_message("m:1", 1)).await;
        let request = new_request("w", Some(record("w", 1, "open")));
        store.request(&scope, &id("open"), request).await.unwrap();
        written_in(&store, &scope, birth("ended").events(3).ended(1)).await;
        written_in(&store, &scope, birth("folded").events(3).ended(0)).await;
        store.put_reply(&scope, reply("r", 1, "r")).await.unwrap();
    }
    assert_eq!(store.fold_ended(at(1), at(1), 10).await.unwrap(), 3);
    let usage = store.owner_usage("owner of:all").await.unwrap();
    assert_eq!(usage.tasks, 9);
    drop(store);
    let client = redis::Client::open(address()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let meta = format!("{{{prefix}}}:meta");
    let mut downgrade = redis::pipe();
    for key in keys(&prefix).await {
        if key.contains("}:t:") || key.contains("}:m:") {
            downgrade.cmd("HDEL").arg(key).arg(&["bytes", "log", "covered"]);
        } else if key.contains("}:u:") {
            downgrade.cmd("DEL").arg(key);
        }
    }
    downgrade.cmd("HSET").arg(&meta).arg(&["format", "2"]);
    let () = downgrade.exec_async(&mut connection).await.unwrap();

    for _ in 0..2 {
        let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&address(), options.clone()).await.unwrap());
        assert_eq!(store.owner_usage("owner of:all").await.unwrap(), usage);
        let mut again = redis::cmd("HSET");
        again.arg(&meta).arg(&["migrating", "2"]);
        let () = again.query_async(&mut connection).await.unwrap();
    }
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&address(), options).await.unwrap());
    assert_eq!(store.fold_ended(at(10), at(10), 10).await.unwrap(), 3);
    assert!(store.owner_usage("owner of:all").await.unwrap().bytes < usage.bytes);
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 6);
    assert_eq!(store.owner_usage("owner of:all").await.unwrap().tasks, 3);
}

#[test]
fn servers_that_forget_are_refused() {
    for (info, with_log, without) in [
        ("maxmemory_policy:noeviction\r\naof_enabled:1\r\n", true, true),
        ("maxmemory_policy:noeviction\r\naof_enabled:0\r\n", false, true),
        ("maxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n", false, false),
        ("", false, false),
    ] {
        assert_eq!(check_settings(info, true).is_ok(), with_log, "{info}");
        assert_eq!(check_settings(info, false).is_ok(), without, "{info}");
    }
}
