//! From an older format to the newest. Replicas of older versions must have stopped: they know no other format, and look
//! at its number only when they start.

use super::keys::Bucket;
use super::{FORMAT, RedisStore};
use crate::store::StoreResult;

/// Keys looked at in one step; the server answers others between two.
const STEP: u32 = 500;

/// In `meta` from before the first change until after the last.
pub(super) const MIGRATING: &str = "migrating";

/// The new number comes first: older versions must not start on keys of which some are changed already. All that is
/// done is also right a second time, so a start that was cut short or two at once do no harm.
pub(super) async fn from_format_1(store: &RedisStore, meta: &str) -> StoreResult<()> {
    let mut begin = redis::cmd("HSET");
    begin.arg(meta).arg("format").arg(FORMAT).arg(MIGRATING).arg(1);
    let () = begin.query_async(&mut store.connection()).await?;

    // Tasks and message records of all buckets.
    let wanted = format!("{{{}:??}}:[tm]:*", store.prefix);
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(&wanted).arg("COUNT").arg(STEP);
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
