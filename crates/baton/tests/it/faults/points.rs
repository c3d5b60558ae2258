//! T2: death at chosen points of the write path, each of them, by a hook of dev builds (`baton_server::points`).

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use baton_server::points::Point;
use rusqlite::Connection;

use super::checker::{Facts, violations};
use super::field::{Field, RERUNNABLE, complain};
use super::load::{ALL, Load};
use super::runs::{HANG, Random, Run, say};
use super::stored::{Stored, copied, integrity};
use crate::served::Served;

/// Where a point is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// At the first start on an empty folder.
    FirstStart,
    /// At any start; some find tasks that a crash has left.
    Start,
    UnderLoad,
    /// Where webhooks are called, which the load here does not ask for: T12 kills there.
    Deliveries,
    Stop,
    /// Retention removes what others want to check.
    Sweep,
}

fn when(point: Point) -> When {
    match point {
        Point::MigrateWithin | Point::SecretMade => When::FirstStart,
        Point::OpenLocked
        | Point::MigrateAfter
        | Point::OpenCheckpointed
        | Point::TendPlanned
        | Point::TendStored => When::Start,
        Point::StopTold | Point::StopDrained | Point::CheckpointBefore | Point::CheckpointAfter => When::Stop,
        Point::FoldEvents
        | Point::PurgeRows
        | Point::PurgeRecord
        | Point::SweepBegin
        | Point::SweepFolded => When::Sweep,
        Point::PushCalling | Point::PushAnswered | Point::PushStored => When::Deliveries,
        _ => When::UnderLoad,
    }
}

/// A server that dies at the n-th visit of a point; `Err` if it did so before it served.
fn doomed(field: &Field, database: &Path, point: Point, visit: u64) -> Result<Served, ()> {
    let mut command = field.command(database);
    command.env("BATON_FAULT_POINT", format!("{}:{visit}", point.name()));
    Served::unless_it_dies(&mut command).map_err(|(status, log)| assert!(killed(status), "{status}\n{log}"))
}

fn killed(status: std::process::ExitStatus) -> bool {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    #[cfg(not(unix))]
    return !status.success();
}

/// Waits until it has died; `false` when it has not for a long while.
async fn dies(server: &mut Served) -> bool {
    let since = Instant::now();
    while !server.is_gone() {
        if since.elapsed() > HANG / 8 {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(2)).await; // tidy: allow-sleep polling a process
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_death_at_any_point_of_the_write_path_loses_nothing() {
    let mut run = Run::begin("kill-points");
    let rounds = run.count(1, 5);
    let mut random = run.random();
    let mut met = BTreeSet::new();
    let mut deaths = 0;
    for _ in 0..rounds {
        let field = Field::new("drain = \"500ms\"");
        for point in Point::ALL.iter().filter(|point| when(**point) == When::FirstStart) {
            let database = field.path(&format!("{}/tasks.db", point.name()));
            assert!(doomed(&field, &database, *point, 1).is_err(), "{point:?} was not met");
            // Nothing had been promised; the next start must do.
            let server = Served::of(&mut field.command(&database));
            assert!(server.terminate().success());
            met.insert(point.name());
            deaths += 1;
        }
        let server = field.serve();
        let mut load = Load::start(&server.url, 8, random.next(), ALL);
        load.more(20).await;
        drop(server);
        let points = Point::ALL
            .iter()
            .filter(|point| matches!(when(**point), When::Start | When::UnderLoad | When::Stop));
        for point in points {
            if die_at(&run, &field, &load, *point, &mut random).await {
                met.insert(point.name());
                deaths += 1;
            }
        }
        let server = field.serve();
        load.moved(&server);
        load.finish().await;
        field.settle(&server).await;
        drop(server);
        field.check(&run, &load.journal).await;
    }
    let missed: Vec<_> = Point::ALL
        .iter()
        .filter(|point| {
            !matches!(when(**point), When::Sweep | When::Deliveries) && !met.contains(point.name())
        })
        .collect();
    assert!(missed.is_empty(), "never met: {missed:?}");
    run.figure("points", met.len());
    run.figure("deaths", deaths);
    run.figure("violations", 0);
    run.end();
}

/// Answers whether it did.
async fn die_at(run: &Run, field: &Field, load: &Load, point: Point, random: &mut Random) -> bool {
    let visit = match when(point) {
        // Some are met often, some seldom: more visits would only take longer.
        When::UnderLoad => 1 + random.below(8),
        _ => 1,
    };
    let mut died = true;
    if let Ok(mut server) = doomed(field, &field.database(), point, visit) {
        load.moved(&server);
        if when(point) == When::Stop {
            load.more(10).await;
            server.signal("-TERM");
        }
        died = dies(&mut server).await;
    }
    // The dead tell nothing more, so what was told must be there, though most is still under way.
    let mut entries = load.journal.entries();
    entries.extend(field.marks());
    let copy = copied(&field.database());
    let stored = Stored::read(&copy.path().join("tasks.db")).await;
    let stored = stored.unwrap_or_else(|error| panic!("{point:?}: {error}"));
    let found = violations(&entries, &stored, Facts { rerunnable: RERUNNABLE, settled: false });
    if !found.is_empty() {
        say(&format!("after {} for the {visit}. time", point.name()));
    }
    complain(run, &entries, &found);
    died
}

/// Retention takes whole tasks and folds whole logs, whenever it dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_death_within_a_sweep_leaves_whole_tasks() {
    let mut run = Run::begin("kill-points-of-sweeps");
    let mut random = run.random();
    let rounds = run.count(1, 8);
    let keep =
        "[retention]\nended = \"1ms\"\nfold = \"0ms\"\nmin_age = \"0s\"\nrecords = \"1ms\"\nevery = \"1s\"";
    let field = Field::new(keep);
    let server = field.serve();
    let mut load = Load::start(&server.url, 2, random.next(), &[super::load::Wish::Echo]);
    load.more(5).await;
    drop(server);
    let mut deaths = 0;
    for _ in 0..rounds {
        for point in Point::ALL.iter().filter(|point| when(**point) == When::Sweep) {
            let visit = 1 + random.below(3);
            if let Ok(mut server) = doomed(&field, &field.database(), *point, visit) {
                load.moved(&server);
                assert!(dies(&mut server).await, "{point:?} was not met\n{}", server.log());
            }
            deaths += 1;
            whole(&copied(&field.database()).path().join("tasks.db"));
        }
    }
    let server = field.serve();
    load.moved(&server);
    load.finish().await;
    assert!(server.terminate().success());
    whole(&field.database());
    run.figure("deaths", deaths);
    run.figure("halves of tasks left", 0);
    run.end();
}

/// No row without its task, no task without its story.
fn whole(database: &Path) {
    assert_eq!(integrity(database), "ok");
    let connection = Connection::open(database).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    for table in ["event", "snapshot", "request"] {
        let orphans = format!("SELECT count(*) FROM {table} WHERE task NOT IN (SELECT key FROM task)");
        assert_eq!(count(&orphans), 0, "{table}");
    }
    for table in ["task", "message_record", "tally"] {
        let orphans = format!("SELECT count(*) FROM {table} WHERE scope NOT IN (SELECT id FROM scope)");
        assert_eq!(count(&orphans), 0, "{table}");
    }
    // A row holds one event, or as many as it has lengths, two bytes each.
    let untold = "SELECT count(*) FROM task WHERE
        (folded_through = 0 AND version <> (SELECT coalesce(sum(coalesce(length(lengths) / 2, 1)), 0)
            FROM event WHERE event.task = task.key))
        OR (folded_through > 0 AND NOT EXISTS
            (SELECT 1 FROM snapshot WHERE snapshot.task = task.key AND snapshot.version >= task.folded_through))";
    assert_eq!(count(untold), 0);
}
