//! Migrates an older format to the newest. Replicas of older versions must be stopped before: they cannot read the new
//! format, and check its number only when they start.

use redis::Script;

use super::keys::Bucket;
use super::{FORMAT, RedisStore};
use crate::store::StoreResult;

/// Field of `meta` that is set while a migration runs: the format it started from.
pub(super) const MIGRATING: &str = "migrating";

/// Sets the new format number first, so that older versions do not start on partly migrated keys. Every step is idempotent,
/// so a migration may be interrupted and repeated, or run twice at the same time.
pub(super) async fn migrate(store: &RedisStore, meta: &str, from: u64) -> StoreResult<()> {
    let mut begin = redis::cmd("HSET");
    begin.arg(meta).arg("format").arg(FORMAT).arg(MIGRATING).arg(from);
    let () = begin.query_async(&mut store.connection()).await?;
    if from < 2 {
        for_all(store, &store.scripts.from_format_1).await?;
    }
    // Not in the same pass: the one above renames keys, and a scan may miss keys that are renamed meanwhile.
    for_all(store, &store.scripts.from_format_2).await?;
    let mut end = redis::cmd("HDEL");
    end.arg(meta).arg(MIGRATING);
    Ok(end.query_async(&mut store.connection()).await?)
}

/// Runs a script on the tasks and message records of all buckets.
async fn for_all(store: &RedisStore, script: &Script) -> StoreResult<()> {
    let pattern = format!("{{{}:??}}:[tm]:*", store.prefix);
    let mut cursor = 0_u64;
    loop {
        let (next, found) = store.scan(&pattern, cursor).await?;
        for bucket in Bucket::all() {
            let bucket = store.bucket(bucket);
            let mut keys = found.iter().filter_map(|key| key.strip_prefix(bucket.as_bytes())).peekable();
            if keys.peek().is_some() {
                let mut call = script.key(&bucket);
                for key in keys {
                    call.arg(key);
                }
                let () = call.invoke_async(&mut store.connection()).await?;
            }
        }
        cursor = next;
        if cursor == 0 {
            return Ok(());
        }
    }
}
