//! What a second worker thread costs: wake-ups across threads, locks, caches.

use std::path::Path;
use std::time::Duration;

use bench_load::{Expect, Stop};

use super::replies::{fleet, good, warm_up};
use super::{Point, Row, Verdict};
use crate::cores::Place;
use crate::subjects::{BATON, LF_MIMALLOC, REPLY, SDK_MIMALLOC};
use crate::wire::{self, COMPLETED};

pub const TWO: Row = Row {
    id: "workers",
    work: "two workers instead of one, server CPU per SendMessage, 32 connections",
    remark: "The server may use both cores in either case; the generator is on one of them.",
    rounds: (1, 3),
    subjects: &[BATON, REPLY, LF_MIMALLOC, SDK_MIMALLOC],
    measure: |point| {
        let one = with(point, "1")?;
        let two = with(point, "2")?;
        Ok(vec![("one", one), ("two", two), ("ratio", two / one)])
    },
    columns: &[("one", "CPU µs, one worker"), ("two", "CPU µs, two workers"), ("ratio", "two / one")],
    judge: |figures| {
        let ratio = figures.get("workers", "ratio", &BATON);
        vec![Verdict::at_most("at most 1.4 ×", ratio, 1.4, " ×")]
    },
};

/// The server may use both cores in both cases, so that only the number of workers differs.
fn with(point: &Point<'_>, workers: &str) -> Result<f64, String> {
    let env = [("WORKERS", Path::new(workers)), ("BODY", point.bench.recorded.send.as_path())];
    let server = point.bench.start(&point.subject, Place::Both, &env)?;
    let mut calls = wire::send_calls(&server);
    let mut fleet = fleet(&server, 32)?;
    let expect = Expect::reply(COMPLETED);
    good(fleet.closed(&mut calls, expect, warm_up(point)).map_err(|error| error.to_string())?)?;
    let time = point.bench.pick(Duration::from_millis(1000), Duration::from_millis(2500));
    let before = server.cpu()?;
    let outcome =
        good(fleet.closed(&mut calls, expect, Stop::After(time)).map_err(|error| error.to_string())?)?;
    let after = server.cpu()?;
    Ok(before.until(after) / outcome.answered.max(1) as f64)
}
