//! Event streams: short ones, a burst, many readers of one task, and idle ones.

use std::path::Path;
use std::time::{Duration, Instant};

use bench_load::{Expect, Fleet, Stop};

use super::replies::{fleet, good, loaded};
use super::{Point, Row, Verdict};
use crate::callgrind;
use crate::cores::Place;
use crate::server::Server;
use crate::subjects::{
    BATON, BATON_TLS, Kind, LF_MIMALLOC, NODE, PYTHON, Program, SDK_MIMALLOC, STREAM, STREAM_HELD,
};
use crate::wire::{self, COMPLETED, TEXT};

const CHUNKS: usize = 1000;
const READERS: usize = 100;
const IDLE_STREAMS: usize = 5000;

pub const SHORT: Row = Row {
    id: "stream",
    work: "short stream (SendStreamingMessage): server CPU at 32 connections; first event at one",
    remark: "In the control a task of its own produces the events and hyper writes them.",
    rounds: (1, 3),
    subjects: &[BATON, STREAM, LF_MIMALLOC, SDK_MIMALLOC, NODE, PYTHON],
    measure: |point| {
        let server = start(point, &point.bench.recorded.stream)?;
        let mut calls = wire::stream_calls(&server, TEXT);
        let expect = Expect::stream(COMPLETED, 1);
        let load = loaded(point, &server, &mut calls, expect, 32)?;
        let count = if matches!(point.subject.program, Program::Rust(_)) { 2000 } else { 200 };
        let mut one = fleet(&server, 1)?;
        let mut outcome =
            good(one.closed(&mut calls, expect, Stop::Count(count)).map_err(|error| error.to_string())?)?;
        let first = outcome.first_events.percentile(0.5).ok_or("no stream had an event")?;
        let whole = outcome.latencies.percentile(0.5).unwrap_or_default();
        Ok(vec![("cpu", load.cpu), ("first", first), ("whole", whole)])
    },
    columns: &[("cpu", "CPU µs/stream"), ("first", "first event p50 µs"), ("whole", "whole stream p50 µs")],
    judge: |figures| {
        let cpu = figures.ratio("stream", "cpu", &BATON, &STREAM);
        let first = figures.ratio("stream", "first", &BATON, &STREAM);
        vec![
            Verdict::at_most("CPU at most 1.5 × the control", cpu, 1.5, " ×"),
            Verdict::at_most("first event at most 1.5 × the control", first, 1.5, " ×"),
        ]
    },
};

pub const BURST: Row = Row {
    id: "burst",
    work: "one task, 1,000 events, one subscriber",
    remark: "Streams that lost events or ended early count as streams, so that a server cannot be fast by losing.",
    rounds: (1, 3),
    subjects: &[BATON, STREAM, LF_MIMALLOC, SDK_MIMALLOC, NODE, PYTHON],
    measure: |point| {
        let server = start(point, &point.bench.recorded.burst)?;
        let mut calls = wire::stream_calls(&server, "burst");
        let expect = Expect::stream(COMPLETED, CHUNKS);
        let mut fleet = fleet(&server, 1)?;
        let limit = point.bench.pick(Duration::from_millis(700), Duration::from_secs(2));
        let run = |fleet: &mut Fleet, calls: &mut _, stop| {
            fleet.closed(calls, expect, stop).map_err(|error| error.to_string())
        };
        run(&mut fleet, &mut calls, Stop::Count(3))?;
        let before = server.cpu()?;
        let outcome = run(&mut fleet, &mut calls, Stop::After(limit))?;
        let after = server.cpu()?;
        let streams = (outcome.answered + outcome.aborted).max(1) as f64;
        // Lost events are a figure of this row, so they are not an error here.
        Ok(vec![
            ("cpu", before.until(after) / streams / 1000.0),
            ("wall", outcome.elapsed.as_secs_f64() * 1000.0 / streams),
            ("lost", 100.0 * outcome.wrong as f64 / streams),
            ("aborted", 100.0 * outcome.aborted as f64 / streams),
        ])
    },
    columns: &[
        ("cpu", "CPU ms/stream"),
        ("wall", "wall ms/stream"),
        ("lost", "% with events lost"),
        ("aborted", "% aborted"),
    ],
    judge: |figures| {
        let cpu = figures.ratio("burst", "cpu", &BATON, &STREAM);
        let lost = figures.worst("burst", "lost", &BATON);
        let broken =
            lost.zip(figures.worst("burst", "aborted", &BATON)).map(|(lost, aborted)| lost + aborted);
        vec![
            Verdict::at_most("CPU at most 2 × the control", cpu, 2.0, " ×"),
            Verdict::at_most("none lost or aborted", broken, 0.0, " %"),
        ]
    },
};

pub const FAN_OUT: Row = Row {
    id: "fan-out",
    work: "one task, 1,000 events, 100 subscribers",
    remark: "The 100 subscribers wait on a held task; then it emits 1,000 chunks. In the control every event is a \
             frame of its own, and all are ready at once. Peers are left out: only Baton's agent and the control \
             can be told when to begin.",
    rounds: (1, 3),
    subjects: &[BATON, STREAM_HELD],
    measure: |point| {
        let mut server = start(point, &point.bench.recorded.burst)?;
        let mut readers = subscribed(point, &server, READERS)?;
        let before = server.cpu()?;
        let start = Instant::now();
        server.order("go")?;
        let expect = Expect::stream(COMPLETED, CHUNKS);
        good(readers.finish(expect).map_err(|error| error.to_string())?)?;
        let wall = start.elapsed();
        let cpu = before.until(server.cpu()?);
        Ok(vec![("cpu", cpu / 1000.0), ("wall", wall.as_secs_f64() * 1000.0)])
    },
    columns: &[("cpu", "CPU ms"), ("wall", "wall ms")],
    judge: |figures| {
        let cpu = figures.ratio("fan-out", "cpu", &BATON, &STREAM_HELD);
        vec![Verdict::at_most("CPU at most 1.5 × a control that writes the same bytes", cpu, 1.5, " ×")]
    },
};

pub const ENCODINGS: Row = Row {
    id: "encodings",
    work: "one task, 1,000 events, 100 subscribers: how often an artifact event is spelled out",
    remark: "Counted by valgrind: calls of the function that spells an event out. A task has four events beside \
             its artifacts.",
    rounds: (1, 1),
    subjects: &[BATON],
    measure: |point| Ok(vec![("encodings", encodings(point)?)]),
    columns: &[("encodings", "encodings")],
    judge: |figures| {
        let encodings = figures.worst("encodings", "encodings", &BATON);
        vec![Verdict::at_most("encodings counted: 1,000", encodings, CHUNKS as f64 * 1.01, "")]
    },
};

pub const IDLE: Row = Row {
    id: "idle",
    work: "idle stream, resident memory, at 5,000 streams",
    remark: "Growth of resident memory from 500 streams to 5,500. Memory of the kernel's sockets is not in it.",
    rounds: (1, 3),
    subjects: &[BATON, BATON_TLS, STREAM_HELD, LF_MIMALLOC, SDK_MIMALLOC],
    measure: |point| {
        let own = idle(point, |server| Ok(wire::stream_calls(server, "hold")))?;
        let mut points = vec![("own", own)];
        if point.subject.kind == Kind::Baton {
            points.push(("shared", idle(point, |server| Ok(wire::subscribe_calls(server, &held(server)?)))?));
        }
        Ok(points)
    },
    columns: &[("own", "kB/stream, a held task each"), ("shared", "kB/stream, all of one task")],
    judge: |figures| {
        let own = figures.get("idle", "own", &BATON);
        let shared = figures.get("idle", "shared", &BATON);
        let tls = figures.get("idle", "shared", &BATON_TLS);
        vec![
            Verdict::at_most("at most 16 kB, a task and its run included", own, 16.0, " kB"),
            Verdict::at_most("at most 16 kB, the stream alone", shared, 16.0, " kB"),
            Verdict::at_most("stretch: 12 kB, the stream alone", shared, 12.0, " kB"),
            Verdict::at_most("at most 16 kB over TLS, the stream alone", tls, 16.0, " kB"),
        ]
    },
};

fn start(point: &Point<'_>, events: &Path) -> Result<Server, String> {
    point.bench.start(&point.subject, Place::Own, &[("EVENTS", events)])
}

fn held(server: &Server) -> Result<String, String> {
    wire::task_id(server, "hold", r#","configuration":{"returnImmediately":true}"#)
}

/// Opens streams that have had their first event and wait.
fn subscribed(point: &Point<'_>, server: &Server, count: usize) -> Result<Fleet, String> {
    let mut calls = match point.subject.kind {
        Kind::Control => wire::subscribe_calls(server, "any"),
        _ => wire::subscribe_calls(server, &held(server)?),
    };
    let mut readers = fleet(server, 0)?;
    readers.begin(&mut calls, count, 32).map_err(|error| error.to_string())?;
    Ok(readers)
}

/// Kilobytes per additional stream, from 500 streams to 5,500.
fn idle(
    point: &Point<'_>,
    calls: impl Fn(&Server) -> Result<bench_load::Calls, String>,
) -> Result<f64, String> {
    let server = start(point, &point.bench.recorded.burst)?;
    let mut calls = calls(&server)?;
    let mut streams = fleet(&server, 0)?;
    streams.begin(&mut calls, 500, 32).map_err(|error| error.to_string())?;
    let before = server.resident()?;
    streams.begin(&mut calls, IDLE_STREAMS, 32).map_err(|error| error.to_string())?;
    let after = server.resident()?;
    Ok((after as f64 - before as f64) * 1.024 / IDLE_STREAMS as f64)
}

/// How often an artifact event was encoded for a hundred subscribers, by valgrind's count of calls.
fn encodings(point: &Point<'_>) -> Result<f64, String> {
    let mut counted = callgrind::Counted::start(point.bench, &BATON, &[])?;
    let mut readers = subscribed(point, &counted.server, READERS)?;
    counted.server.order("go")?;
    good(readers.finish(Expect::stream(COMPLETED, CHUNKS)).map_err(|error| error.to_string())?)?;
    drop(readers);
    // The compiler decides which of these are inlined. The last one is called for every event, and a task has four
    // other events.
    counted.calls_of(&["v1::from_domain::write_stream_artifact", "write_artifact_event", "EventBatch::push"])
}
