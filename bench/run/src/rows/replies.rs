//! Requests with one reply: SendMessage, GetTask, ListTasks.

use std::time::Duration;

use bench_load::{Calls, Expect, Fleet, Outcome, Stop};

use super::{Point, Row, Verdict};
use crate::cores::Place;
use crate::server::Server;
use crate::subjects::{
    BATON, KEEP, Kind, LF, LF_MIMALLOC, NODE, PYTHON, Program, REPLY, SDK, SDK_MIMALLOC, Subject,
};
use crate::wire::{self, COMPLETED, RESULT};

const SAME_ALLOCATOR: &[Subject] = &[LF_MIMALLOC, SDK_MIMALLOC];

pub const SEND: Row = Row {
    id: "send",
    work: "SendMessage, server CPU per request, 32 connections",
    remark: "The control parses the JSON-RPC envelope and answers with as many bytes. The generator's own cost is \
             what one request takes on its core.",
    rounds: (1, 5),
    subjects: &[BATON, REPLY, KEEP, LF, LF_MIMALLOC, SDK, SDK_MIMALLOC, NODE, PYTHON],
    measure: |point| {
        let server = start(point, &point.bench.recorded.send)?;
        let mut calls = wire::send_calls(&server);
        let load = loaded(point, &server, &mut calls, Expect::reply(COMPLETED), 32)?;
        Ok(load.points())
    },
    columns: &[
        ("cpu", "CPU µs/request"),
        ("rate", "requests/s"),
        ("p50", "p50 µs"),
        ("p99", "p99 µs"),
        ("generator", "generator µs/request"),
    ],
    judge: |figures| {
        let to_control = figures.ratio("send", "cpu", &BATON, &REPLY);
        let best = figures.least("send", "cpu", SAME_ALLOCATOR).map(|(_, value)| value);
        let to_best = figures.get("send", "cpu", &BATON).zip(best).map(|(ours, best)| ours / best);
        vec![
            Verdict::at_most("at most 2.0 × the control", to_control, 2.0, " ×"),
            Verdict::at_most("stretch: 1.6 × the control", to_control, 1.6, " ×"),
            Verdict::at_most("at most 0.75 × the best SDK with the same allocator", to_best, 0.75, " ×"),
        ]
    },
};

pub const THROUGHPUT: Row = Row {
    id: "throughput",
    work: "SendMessage throughput, 256 connections",
    remark: "The server has one worker on one core. Latencies here are those of a queue 256 deep.",
    rounds: (1, 5),
    subjects: &[BATON, REPLY, LF, LF_MIMALLOC, SDK_MIMALLOC, NODE, PYTHON],
    measure: |point| {
        let server = start(point, &point.bench.recorded.send)?;
        let mut calls = wire::send_calls(&server);
        let load = loaded(point, &server, &mut calls, Expect::reply(COMPLETED), 256)?;
        Ok(load.points())
    },
    columns: &[("rate", "requests/s"), ("cpu", "CPU µs/request"), ("p50", "p50 µs"), ("p99", "p99 µs")],
    judge: |figures| {
        let ratio = figures.ratio("throughput", "rate", &BATON, &LF_MIMALLOC);
        vec![Verdict::at_least("at least 1.5 × a2a-server-lf with mimalloc", ratio, 1.5, " ×")]
    },
};

/// At a rate that the peer can still serve, so that the result is not dominated by queues.
pub const LATENCY: Row = Row {
    id: "latency",
    work: "SendMessage, open loop at 70 % of the peer's maximum rate, 256 connections",
    remark: "Time counts from when a request was due.",
    rounds: (1, 5),
    subjects: &[BATON, REPLY, LF_MIMALLOC],
    measure: |point| {
        let rate = match point.figures.get("throughput", "rate", &LF_MIMALLOC) {
            Some(rate) => rate * 0.7,
            None => return Err("needs the row `throughput` in the same run".to_owned()),
        };
        let server = start(point, &point.bench.recorded.send)?;
        let mut calls = wire::send_calls(&server);
        let mut fleet = fleet(&server, 256)?;
        let expect = Expect::reply(COMPLETED);
        good(fleet.closed(&mut calls, expect, warm_up(point)).map_err(|error| error.to_string())?)?;
        let time = point.bench.pick(Duration::from_millis(1500), Duration::from_secs(5));
        let mut outcome =
            good(fleet.open(&mut calls, expect, rate, time).map_err(|error| error.to_string())?)?;
        let mut points = vec![("rate", outcome.per_second())];
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
            points.extend(outcome.latencies.percentile(share).map(|value| (name, value)));
        }
        Ok(points)
    },
    columns: &[("rate", "requests/s"), ("p50", "p50 µs"), ("p99", "p99 µs"), ("p999", "p99.9 µs")],
    judge: |figures| {
        let ratio = figures.ratio("latency", "p99", &BATON, &LF_MIMALLOC);
        vec![Verdict::at_most("p99 at most half of the peer's", ratio, 0.5, " ×")]
    },
};

pub const GET: Row = Row {
    id: "get",
    work: "GetTask, server CPU per request, 32 connections",
    remark: "The same 200 tasks, again and again.",
    rounds: (1, 5),
    subjects: &[BATON, REPLY, LF_MIMALLOC, SDK_MIMALLOC, NODE, PYTHON],
    measure: |point| {
        let server = start(point, &point.bench.recorded.get)?;
        let ids = match point.subject.kind {
            Kind::Control => vec!["0".repeat(36)],
            _ => wire::task_ids(&server, 200)?,
        };
        let mut calls = wire::get_calls(&server, &ids);
        Ok(loaded(point, &server, &mut calls, Expect::reply(COMPLETED), 32)?.points())
    },
    columns: &[("cpu", "CPU µs/request"), ("rate", "requests/s"), ("p99", "p99 µs")],
    judge: |figures| {
        let ratio = figures.ratio("get", "cpu", &BATON, &REPLY);
        vec![Verdict::at_most("at most 1.4 × the control", ratio, 1.4, " ×")]
    },
};

pub const LIST: Row = Row {
    id: "list",
    work: "ListTasks page of 50 at 100,000 tasks, server CPU per request",
    remark: "Two connections. Node and Python are left out: filling their stores takes minutes.",
    rounds: (1, 3),
    subjects: &[BATON, LF_MIMALLOC, SDK_MIMALLOC],
    measure: |point| {
        let server = start(point, &point.bench.recorded.send)?;
        let ids = wire::task_ids(&server, 200)?;
        let mut gets = wire::get_calls(&server, &ids);
        let few = loaded(point, &server, &mut gets, Expect::reply(COMPLETED), 8)?;
        fill(&server, 100_000)?;
        let many = loaded(point, &server, &mut gets, Expect::reply(COMPLETED), 8)?;
        let mut calls = wire::list_calls(&server);
        // Few connections: a server that needs a second per page must still answer the pending requests at the end.
        let list = loaded(point, &server, &mut calls, Expect::reply(RESULT), 2)?;
        Ok(vec![
            ("cpu", list.cpu),
            ("get_few", few.cpu),
            ("get_many", many.cpu),
            ("get_ratio", many.cpu / few.cpu),
        ])
    },
    columns: &[
        ("cpu", "ListTasks CPU µs"),
        ("get_few", "GetTask CPU µs, 200 tasks"),
        ("get_many", "GetTask CPU µs, 100,000 tasks"),
        ("get_ratio", "many / few"),
    ],
    judge: |figures| {
        let list = figures.get("list", "cpu", &BATON);
        let get = figures.get("list", "get_ratio", &BATON);
        vec![
            Verdict::at_most("at most 120 µs CPU", list, 120.0, " µs"),
            Verdict::at_most("GetTask as from an empty store (within 10 %)", get, 1.1, " ×"),
        ]
    },
};

/// The cost of a load.
pub(super) struct Load {
    pub(super) cpu: f64,
    pub(super) generator: f64,
    pub(super) outcome: Outcome,
}

impl Load {
    pub(super) fn points(mut self) -> Vec<(&'static str, f64)> {
        let mut points =
            vec![("cpu", self.cpu), ("rate", self.outcome.per_second()), ("generator", self.generator)];
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            points.extend(self.outcome.latencies.percentile(share).map(|value| (name, value)));
        }
        points
    }
}

/// Starts a server, with the recorded reply for controls.
pub(super) fn start(point: &Point<'_>, body: &std::path::Path) -> Result<Server, String> {
    point.bench.start(&point.subject, Place::Own, &[("BODY", body)])
}

pub(super) fn fleet(server: &Server, connections: usize) -> Result<Fleet, String> {
    Fleet::connect(server.target.clone(), connections).map_err(|error| format!("cannot connect: {error}"))
}

/// Warms up caches, pools and JIT compilers.
pub(super) fn warm_up(point: &Point<'_>) -> Stop {
    let slow = !matches!(point.subject.program, Program::Rust(_));
    Stop::After(
        point.bench.pick(Duration::from_millis(300), Duration::from_millis(if slow { 2000 } else { 700 })),
    )
}

/// A warm-up, then a closed loop whose processor time is counted.
pub(super) fn loaded(
    point: &Point<'_>,
    server: &Server,
    calls: &mut Calls,
    expect: Expect<'_>,
    connections: usize,
) -> Result<Load, String> {
    let mut fleet = fleet(server, connections)?;
    measured(point, server, |stop| fleet.closed(calls, expect, stop))
}

/// The same for any load that can be stopped.
pub(super) fn measured(
    point: &Point<'_>,
    server: &Server,
    mut run: impl FnMut(Stop) -> std::io::Result<Outcome>,
) -> Result<Load, String> {
    let mut run = |stop| good(run(stop).map_err(|error| error.to_string())?);
    run(warm_up(point))?;
    let time = point.bench.pick(Duration::from_millis(1000), Duration::from_millis(2500));
    let (before, own) = (server.cpu()?, own_cpu());
    let outcome = run(Stop::After(time))?;
    let after = server.cpu()?;
    let per = |total: f64| total / outcome.answered.max(1) as f64;
    Ok(Load { cpu: per(before.until(after)), generator: per(own_cpu() - own), outcome })
}

/// Microseconds of this process.
fn own_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// An error if any answer was wrong: such a figure would be meaningless.
pub(super) fn good(outcome: Outcome) -> Result<Outcome, String> {
    if outcome.wrong == 0 && outcome.aborted == 0 {
        return Ok(outcome);
    }
    let sample = outcome.sample.as_deref().unwrap_or("connections were closed");
    Err(format!(
        "of {} answers {} wrong, {} aborted: {sample}",
        outcome.answered, outcome.wrong, outcome.aborted
    ))
}

/// Fills the store with this many tasks.
pub(super) fn fill(server: &Server, tasks: u64) -> Result<(), String> {
    let mut calls = wire::send_calls(server);
    let filled = fleet(server, 64)?.closed(&mut calls, Expect::reply(COMPLETED), Stop::Count(tasks));
    good(filled.map_err(|error| error.to_string())?).map(drop)
}
