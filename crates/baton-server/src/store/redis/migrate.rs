//! From an older format to the newest. Replicas of older versions must have stopped: they know no other format, and look
//! at its number only when they start.

use super::RedisStore;
use super::keys::Bucket;
use crate::store::StoreResult;

/// Keys looked at in one step; the server answers others between two.
const STEP: u32 = 500;

/// Message records were named by a whole hash, the byte of its version included. All that is done is also right a
/// second time, so a start that was cut short or two at once do no harm.
pub(super) async fn from_format_1(store: &RedisStore) -> StoreResult<()> {
    for bucket in Bucket::all() {
        let records = store.key(bucket, "m:", "");
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{records}*")).arg("COUNT").arg(STEP);
            let (next, found): (u64, Vec<Vec<u8>>) = scan.query_async(&mut store.connection()).await?;
            if !found.is_empty() {
                let mut call = store.scripts.rename_records.key(store.bucket(bucket));
                for key in &found {
                    call.arg(&key[records.len()..]);
                }
                let () = call.invoke_async(&mut store.connection()).await?;
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
    }
    Ok(())
}
