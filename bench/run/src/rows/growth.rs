//! Whether a task costs more the more of them there are.

use super::replies::{fill, loaded, start};
use super::{Point, Points, Row, Verdict};
use crate::subjects::BATON;
use crate::wire::{self, COMPLETED};
use bench_load::Expect;

pub const FLAT: Row = Row {
    id: "growth",
    work: "server CPU per SendMessage, from 1,000 to 1,000,000 tasks in store (100,000 in a quick run)",
    rounds: (1, 2),
    subjects: &[BATON],
    measure,
    columns: &[
        ("at_1k", "CPU µs at 1,000"),
        ("at_10k", "at 10,000"),
        ("at_100k", "at 100,000"),
        ("at_1m", "at 1,000,000"),
        ("ratio", "last / first"),
    ],
    judge: |figures| {
        let ratio = figures.get("growth", "ratio", &BATON);
        vec![Verdict::at_most("flat (within 15 %)", ratio, 1.15, " ×")]
    },
};

/// A measurement adds tasks of its own, so that the first one ends at some ten thousand, in a store that began empty.
fn measure(point: &Point<'_>) -> Result<Points, String> {
    let mut points = Vec::new();
    let sizes = [("at_1k", 1000u64), ("at_10k", 10_000), ("at_100k", 100_000), ("at_1m", 1_000_000)];
    let server = start(point, &point.bench.recorded.send)?;
    let mut there = 0;
    for (name, size) in &sizes[..point.bench.pick(3, 4)] {
        fill(&server, size.saturating_sub(there))?;
        let mut calls = wire::send_calls(&server);
        let load = loaded(point, &server, &mut calls, Expect::reply(COMPLETED), 32)?;
        there = (*size).max(there) + load.answered();
        points.push((*name, load.cpu));
    }
    let (first, last) = (points[0].1, points[points.len() - 1].1);
    points.push(("ratio", last / first));
    Ok(points)
}
