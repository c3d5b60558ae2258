//! How long others wait for small answers while an attack is under way. Printed, never asserted: a busy machine is slow.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::served::Served;

/// All but one in a hundred of so many calls are faster.
pub(super) async fn p99(server: &Served, small: &Value, calls: u64) -> Duration {
    let mut took = Vec::new();
    for _ in 0..calls {
        let since = Instant::now();
        server.get(small).await;
        took.push(since.elapsed());
    }
    took.sort_unstable();
    took[took.len() * 99 / 100]
}
