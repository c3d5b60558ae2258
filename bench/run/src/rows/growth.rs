//! Whether a send costs more if the store has more tasks.

use bench_load::{Expect, Stop};

use super::replies::{fill, fleet, good, start};
use super::{Point, Points, Row, Verdict};
use crate::subjects::BATON;
use crate::wire::{self, COMPLETED};

pub const FLAT: Row = Row {
    id: "growth",
    work: "server CPU per SendMessage, from 1,000 to 1,000,000 tasks in store (100,000 in a quick run)",
    remark: "One process; the store is filled between the points.",
    rounds: (1, 2),
    subjects: &[BATON],
    measure,
    columns: &[
        ("at_1k", "CPU µs at 1,000"),
        ("at_10k", "at 10,000"),
        ("at_100k", "at 100,000"),
        ("at_1m", "at 1,000,000"),
        ("ratio", "last / least"),
    ],
    judge: |figures| {
        let ratio = figures.get("growth", "ratio", &BATON);
        vec![Verdict::at_most("flat (within 15 %)", ratio, 1.15, " ×")]
    },
};

/// Few enough that the smallest store stays small.
const SENDS: u64 = 4000;

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let mut points = Vec::new();
    let sizes = [("at_1k", 1000u64), ("at_10k", 10_000), ("at_100k", 100_000), ("at_1m", 1_000_000)];
    let server = start(point, &point.bench.recorded.send)?;
    let mut there = 0;
    for (name, size) in &sizes[..point.bench.pick(3, 4)] {
        fill(&server, size.saturating_sub(there))?;
        let mut calls = wire::send_calls(&server);
        let mut fleet = fleet(&server, 32)?;
        let before = server.cpu()?;
        let outcome = fleet.closed(&mut calls, Expect::reply(COMPLETED), Stop::Count(SENDS));
        good(outcome.map_err(|error| error.to_string())?)?;
        points.push((*name, before.until(server.cpu()?) / SENDS as f64));
        there = size + SENDS;
    }
    // The first point runs with cold caches, so the largest store is compared with the cheapest of the small ones.
    let last = points[points.len() - 1].1;
    let least = points[..points.len() - 1].iter().map(|(_, cpu)| *cpu).fold(f64::INFINITY, f64::min);
    points.push(("ratio", last / least));
    Ok(points)
}
