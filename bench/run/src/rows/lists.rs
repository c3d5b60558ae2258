//! Whether a page of a list costs more if the database has more tasks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bench_load::Expect;

use super::replies::loaded;
use super::{Point, Points, Row, Verdict};
use crate::cores::Place;
use crate::subjects::BATON;
use crate::wire;

pub const SQLITE: Row = Row {
    id: "list-sqlite",
    work: "ListTasks page of 50 on SQLite at 1,000, 100,000 and 1,000,000 tasks, server CPU per request",
    remark: "Two connections; the first page, with its total. The file is filled by the store itself, and is the same \
             one that grows.",
    rounds: (1, 2),
    subjects: &[BATON],
    measure,
    columns: &[
        ("at_1k", "CPU µs at 1,000"),
        ("at_100k", "at 100,000"),
        ("at_1m", "at 1,000,000"),
        ("ratio", "most / at 1,000"),
        ("brief", "at the most, without history"),
    ],
    judge: |figures| {
        let most = ["at_1k", "at_100k", "at_1m"].map(|name| figures.get("list-sqlite", name, &BATON));
        let most = most.into_iter().flatten().reduce(f64::max);
        let ratio = figures.get("list-sqlite", "ratio", &BATON);
        vec![
            Verdict::at_most("at most 250 µs CPU", most, 250.0, " µs"),
            Verdict::at_most("at most 1.3 × from 1,000 to 1,000,000", ratio, 1.3, " ×"),
        ]
    },
};

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let folder = point.bench.scratch.join("store-lists");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let measured = measure_in(point, &folder);
    let _ = fs::remove_dir_all(&folder);
    measured
}

fn measure_in(point: &Point<'_>, folder: &std::path::Path) -> Result<Points, String> {
    let file = folder.join("tasks.db");
    let store = PathBuf::from(format!("sqlite:{}", file.display()));
    let mut points = Vec::new();
    for (name, tasks) in [("at_1k", 1_000_u64), ("at_100k", 100_000), ("at_1m", 1_000_000)] {
        let mut fill = Command::new(point.bench.programs.join("baton-fill"));
        let filled = fill.arg(&file).arg(tasks.to_string()).status().map_err(|error| error.to_string())?;
        if !filled.success() {
            return Err(format!("{tasks} tasks could not be put into the store: {filled}"));
        }
        let server = point.bench.start(&point.subject, Place::Own, &[("STORE", store.as_path())])?;
        // Check that the page has tasks: an empty page would be cheap.
        let total = format!("\"totalSize\":{tasks}");
        let cpu = |body| {
            let mut calls = wire::list_calls_of(&server, body);
            loaded(point, &server, &mut calls, Expect::reply(&total), 2).map(|load| load.cpu)
        };
        points.push((name, cpu(wire::LIST)?));
        if tasks == 1_000_000 {
            points.push(("brief", cpu(wire::LIST_BRIEF)?));
        }
    }
    let most = points[..3].iter().map(|(_, cpu)| *cpu).fold(0.0, f64::max);
    points.push(("ratio", most / points[0].1));
    Ok(points)
}
