//! T19: stops in order (SIGTERM) under load. The process ends with code 0 within its drain time; what was acknowledged is
//! finished, or taken up by the next start.

use std::time::{Duration, Instant};

use super::field::Field;
use super::journal::Entry;
use super::load::{ALL, Load};
use super::runs::Run;

const DRAIN: Duration = Duration::from_secs(2);
/// Connections have 5 s after the drain; a busy machine a little more.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_a_stop_in_order_loses_nothing() {
    let mut run = Run::begin("graceful-stop");
    let stops = run.count(8, 50);
    let field = Field::new("drain = \"2s\"");
    let mut server = field.serve();
    let mut load = Load::start(&server.url, run.count(8, 32), run.seed, ALL);
    let mut random = run.random();
    let mut slowest = Duration::ZERO;
    for _ in 0..stops {
        load.more(15).await;
        let moment = Duration::from_micros(random.below(30_000));
        tokio::time::sleep(moment).await; // tidy: allow-sleep the moment of the stop is what is random here
        let since = Instant::now();
        server.signal("-TERM");
        let (status, log) = server.ended();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
        slowest = slowest.max(since.elapsed());
        assert!(since.elapsed() < DRAIN + PATIENCE, "it took {:?}", since.elapsed());
        // A store that was closed in order leaves no log behind.
        let left = std::fs::metadata(field.path("data/tasks.db-wal")).map_or(0, |file| file.len());
        assert_eq!(left, 0, "the log was not folded\n{log}");
        server = field.serve();
        load.moved(&server);
    }
    load.finish().await;
    field.settle(&server).await;
    assert!(server.terminate().success());
    let stored = field.check(&run, &load.journal).await;
    let journal = &load.journal;
    run.figure("stops", stops);
    run.figure(
        "acknowledged",
        journal.count(|entry| matches!(entry, Entry::Acked { .. } | Entry::Replied { .. })),
    );
    run.figure("tasks", stored.tasks.len());
    run.figure("exit codes other than 0", 0);
    run.figure("slowest stop (drain 2 s)", format!("{:.1} s", slowest.as_secs_f64()));
    run.figure("violations", 0);
    run.end();
}
