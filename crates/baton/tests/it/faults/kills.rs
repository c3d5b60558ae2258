//! T1: `kill -9` at random moments, again and again.
//!
//! What this shows is order and recovery: commit before answer, idempotency, the crash rule. That commits are synced is
//! another test's matter: the page cache outlives a killed process.

use std::time::{Duration, Instant};

use super::field::Field;
use super::journal::Entry;
use super::load::{ALL, Load};
use super::runs::Run;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_nothing_acknowledged_is_lost_by_kill_9() {
    let mut run = Run::begin("kills");
    let asked = std::env::var("BATON_KILLS").ok().and_then(|count| count.parse().ok());
    let kills: u64 = asked.unwrap_or(run.count(50, 1000));
    let field = Field::new("");
    let mut server = field.serve();
    let mut load = Load::start(&server.url, 8, run.seed, ALL);
    let mut random = run.random();
    let mut restarts = Vec::new();
    for _ in 0..kills {
        // Some load first, then a moment that the seed chooses.
        load.more(10).await;
        let moment = Duration::from_micros(random.below(60_000));
        tokio::time::sleep(moment).await; // tidy: allow-sleep the moment of the kill is what is random here
        drop(server); // SIGKILL
        let since = Instant::now();
        server = field.serve();
        restarts.push(since.elapsed());
        load.moved(&server);
    }
    load.finish().await;
    field.settle(&server).await;
    drop(server);
    let stored = field.check(&run, &load.journal).await;

    let journal = &load.journal;
    let acked = journal.count(|entry| matches!(entry, Entry::Acked { .. } | Entry::Replied { .. }));
    restarts.sort();
    run.figure("kills", kills);
    run.figure("acknowledged", acked);
    run.figure("tasks", stored.tasks.len());
    run.figure("events seen", journal.count(|entry| matches!(entry, Entry::Seen { .. })));
    run.figure("calls that got no answer", load.cut());
    run.figure("second attempts", stored.tasks.values().filter(|task| task.has_rerun()).count());
    run.figure("violations", 0);
    run.figure(
        "restart, slowest of a hundred",
        format!("{} ms", restarts[restarts.len() * 99 / 100].as_millis()),
    );
    assert!(acked as u64 >= kills * 5, "too little load to show anything: {acked}");
    assert!(load.cut() > 0, "no call was ever cut: the kills came at the wrong moments");
    run.end();
}
