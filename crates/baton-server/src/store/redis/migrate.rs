//! Migrates an older format to the newest. Replicas of older versions must be stopped before: they cannot read the new
//! format, and check its number only when they start.

use super::keys::Bucket;
use super::{FORMAT, RedisStore};
use crate::store::StoreResult;

/// Keys scanned per step; between two steps the server serves other clients.
const STEP: u32 = 500;

/// Field of `meta` that is set while a migration runs.
pub(super) const MIGRATING: &str = "migrating";

/// Sets the new format number first, so that older versions do not start on partly migrated keys. Every step is idempotent,
/// so a migration may be interrupted and repeated, or run twice at the same time.
pub(super) async fn from_format_1(store: &RedisStore, meta: &str) -> StoreResult<()> {
    let mut begin = redis::cmd("HSET");
    begin.arg(meta).arg("format").arg(FORMAT).arg(MIGRATING).arg(1);
    let () = begin.query_async(&mut store.connection()).await?;

    // Tasks and message records of all buckets.
    let pattern = format!("{{{}:??}}:[tm]:*", store.prefix);
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(STEP);
        let (next, found): (u64, Vec<Vec<u8>>) = scan.query_async(&mut store.connection()).await?;
        for bucket in Bucket::all() {
            let bucket = store.bucket(bucket);
            let mut keys = found.iter().filter_map(|key| key.strip_prefix(bucket.as_bytes())).peekable();
            if keys.peek().is_some() {
                let mut call = store.scripts.from_format_1.key(&bucket);
                for key in keys {
                    call.arg(key);
                }
                let () = call.invoke_async(&mut store.connection()).await?;
            }
        }
        cursor = next;
        if cursor == 0 {
            break;
        }
    }

    let mut end = redis::cmd("HDEL");
    end.arg(meta).arg(MIGRATING);
    Ok(end.query_async(&mut store.connection()).await?)
}
