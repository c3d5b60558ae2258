//! Sends that survive a power cut: SQLite, synchronous=FULL, on the disk that the scratch folder is on.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bench_load::{Expect, Stop};

use super::replies::{fleet, good};
use super::{Point, Row, Verdict};
use crate::cores::Place;
use crate::server::Server;
use crate::strace::Strace;
use crate::subjects::{BATON, Kind, PYTHON_SQLITE, Program, SDK_SQLITE, SQLITE, Subject};
use crate::wire::{self, COMPLETED};

const PEERS: &[Subject] = &[SDK_SQLITE, PYTHON_SQLITE];
/// The number of sends on one connection for counting syncs, in quick and in full runs. Few, since strace slows the
/// server down.
const SENDS: (u64, u64) = (60, 300);

pub const SEND: Row = Row {
    id: "durable",
    work: "durable SendMessage (SQLite, FULL), 256 connections; syncs at one connection",
    remark: "All with WAL and synchronous=FULL, a fresh database each, on one core with one worker. a2a-server-lf \
             has no durable store. Syncs are counted by strace.",
    rounds: (1, 3),
    subjects: &[BATON, SQLITE, SDK_SQLITE, PYTHON_SQLITE],
    measure: |point| {
        if point.bench.quick && point.subject == PYTHON_SQLITE {
            return Err("left out of quick runs: 256 connections at some sends a second take long to drain"
                .to_owned());
        }
        let (server, folder) = start(point)?;
        let mut calls = wire::send_calls(&server);
        let mut many = fleet(&server, 256)?;
        let warm = point.bench.pick(Duration::from_millis(300), Duration::from_millis(700));
        let time = point.bench.pick(Duration::from_millis(1500), Duration::from_secs(4));
        let expect = Expect::reply(COMPLETED);
        many.closed(&mut calls, expect, Stop::After(warm)).map_err(|error| error.to_string())?;
        let outcome =
            many.closed(&mut calls, expect, Stop::After(time)).map_err(|error| error.to_string())?;
        // Peers refuse some sends when their database is busy: those are not counted.
        let good_ones = (outcome.answered - outcome.wrong) as f64;
        let mut points = vec![
            ("rate", good_ones / outcome.elapsed.as_secs_f64()),
            ("refused", 100.0 * outcome.wrong as f64 / outcome.answered.max(1) as f64),
        ];
        drop((many, server));
        remove(&folder);
        if point.round == 0 {
            points.push(("syncs", syncs(point)?));
        }
        Ok(points)
    },
    columns: &[("rate", "sends/s"), ("refused", "% refused"), ("syncs", "syncs/send, one connection")],
    judge: |figures| {
        let probe = figures.ratio("durable", "rate", &BATON, &SQLITE);
        let ours = figures.get("durable", "rate", &BATON);
        let best = figures.most("durable", "rate", PEERS).map(|(_, value)| value);
        let syncs = figures.worst("durable", "syncs", &BATON);
        vec![
            Verdict::at_least("at least 0.45 × the probe", probe, 0.45, " ×"),
            Verdict::at_least("stretch: 10 × the best peer", ours.zip(best).map(|(a, b)| a / b), 10.0, " ×"),
            // The figure includes the syncs of checkpoints.
            Verdict::at_most("one connection: at most 2 fdatasync per send", syncs, 2.0, ""),
        ]
    },
};

/// On a database of its own, which is removed afterwards.
pub(super) fn start(point: &Point<'_>) -> Result<(Server, PathBuf), String> {
    let folder = point.bench.scratch.join(format!("store-{}", point.subject.name));
    remove(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join("tasks.db");
    let store = match (point.subject.kind, point.subject.program) {
        (Kind::Baton, _) => PathBuf::from(format!("sqlite:{}", file.display())),
        (Kind::Control, _) => file,
        (Kind::Peer, Program::Rust(_)) => PathBuf::from(format!("sqlite://{}?mode=rwc", file.display())),
        (Kind::Peer, _) => PathBuf::from(format!("sqlite+aiosqlite:///{}", file.display())),
    };
    let env = [("STORE", store.as_path()), ("BODY", point.bench.recorded.send.as_path())];
    Ok((point.bench.start(&point.subject, Place::Own, &env)?, folder))
}

pub(super) fn remove(folder: &PathBuf) {
    let _ = fs::remove_dir_all(folder);
}

/// The number of syncs per send.
fn syncs(point: &Point<'_>) -> Result<f64, String> {
    let (server, folder) = start(point)?;
    let mut calls = wire::send_calls(&server);
    let mut one = fleet(&server, 1)?;
    let expect = Expect::reply(COMPLETED);
    good(one.closed(&mut calls, expect, Stop::Count(20)).map_err(|error| error.to_string())?)?;
    let sends = point.bench.pick(SENDS.0, SENDS.1);
    let strace = Strace::attach(&server, &["-e", "trace=fdatasync,fsync"], &point.bench.scratch)?;
    good(one.closed(&mut calls, expect, Stop::Count(sends)).map_err(|error| error.to_string())?)?;
    let calls = strace.finish()?;
    drop(server);
    remove(&folder);
    Ok(calls as f64 / sends as f64)
}
