//! How long others wait for small answers while an attack is under way. Printed, never asserted: a busy machine is slow.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::keep_alive::{Connection, request};
use crate::served::Served;

/// All but one in a hundred of so many calls of an owner are faster. On a thread and a connection of its own: it is the server that is
/// asked, not the runtime of the attackers.
pub(super) async fn p99(server: &Served, credential: &str, small: &Value, calls: u64) -> Duration {
    let request = request("GetTask", json!({"id": small["id"]}), &[("Authorization", credential)]);
    let mut connection = Connection::to(server);
    let measured = tokio::task::spawn_blocking(move || {
        let mut took: Vec<_> = (0..calls).map(|_| one(&mut connection, &request)).collect();
        took.sort_unstable();
        took[took.len() * 99 / 100]
    });
    measured.await.unwrap()
}

fn one(connection: &mut Connection, request: &str) -> Duration {
    let since = Instant::now();
    let (status, body) = connection.exchange(request);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    since.elapsed()
}
