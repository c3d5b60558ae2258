//! The memory of a small task.

use std::path::Path;
use std::time::{Duration, Instant};

use super::replies::fill;
use super::{Point, Points, Row, Verdict};
use crate::cores::Place;
use crate::server::Server;
use crate::subjects::{BATON, BATON_COUNTED, LF_COUNTED, LF_MIMALLOC, SDK_COUNTED, SDK_MIMALLOC};

/// Longest wait for the sweeper, which folds tasks page by page.
const FOLD_PATIENCE: Duration = Duration::from_secs(60);

pub const TASK: Row = Row {
    id: "memory",
    work: "memory per small task",
    remark: "Resident: growth over the last five sixths of the tasks. Heap: by a counting allocator, without the \
             allocator's own losses. Folded: ended tasks whose log was folded into a snapshot (after a day, \
             unless told).",
    rounds: (1, 3),
    subjects: &[BATON, BATON_COUNTED, LF_MIMALLOC, LF_COUNTED, SDK_MIMALLOC, SDK_COUNTED],
    measure: |point| {
        let tasks = point.bench.pick(30_000, 100_000);
        if point.subject.name.ends_with("-counted") {
            return counted(point, tasks / 2);
        }
        let server = point.bench.start(&point.subject, Place::Own, &[])?;
        // Measured after some tasks, so that buffers, pools and first tables are not counted.
        fill(&server, tasks / 5)?;
        let before = server.resident()?;
        fill(&server, tasks)?;
        let after = server.resident()?;
        Ok(vec![("resident", (after as f64 - before as f64) * 1024.0 / tasks as f64)])
    },
    columns: &[
        ("resident", "B/task, resident"),
        ("heap", "B/task, heap"),
        ("folded", "B/task, heap, folded"),
    ],
    judge: |figures| {
        let live = figures.get("memory", "resident", &BATON);
        let folded = figures.get("memory", "folded", &BATON_COUNTED);
        vec![
            Verdict::at_most("at most 2.4 kB live (resident)", live, 2400.0, " B"),
            Verdict::at_most("at most 1.2 kB folded (heap)", folded, 1200.0, " B"),
        ]
    },
};

/// Heap bytes per task, before and after folding.
fn counted(point: &Point<'_>, tasks: u64) -> Result<Points, String> {
    let mut server = point.bench.start(&point.subject, Place::Own, &[])?;
    let mut points = vec![("heap", per_task(&mut server, tasks, false)?)];
    drop(server);
    if point.subject == BATON_COUNTED {
        let mut server = point.bench.start(&point.subject, Place::Own, &[("FOLD_MS", Path::new("200"))])?;
        points.push(("folded", per_task(&mut server, tasks, true)?));
    }
    Ok(points)
}

fn per_task(server: &mut Server, tasks: u64, folded: bool) -> Result<f64, String> {
    fill(server, tasks / 5)?;
    let before = settled(server, folded)?;
    fill(server, tasks)?;
    let after = settled(server, folded)?;
    Ok((after as f64 - before as f64) / tasks as f64)
}

/// Live heap bytes; if tasks are folded, after folding has finished.
fn settled(server: &mut Server, folded: bool) -> Result<u64, String> {
    let start = Instant::now();
    let (_, mut live) = server.heap()?;
    while folded && start.elapsed() < FOLD_PATIENCE {
        std::thread::sleep(Duration::from_millis(1500));
        let (_, now) = server.heap()?;
        // Changes below a thousandth come from the sweeper's own buffers.
        if now.abs_diff(live) < live / 1000 {
            return Ok(now);
        }
        live = now;
    }
    Ok(live)
}
