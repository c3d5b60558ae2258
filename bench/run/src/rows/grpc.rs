//! Calls of gRPC: SendMessage, GetTask, a stream of 1,000 events.

use std::fs;
use std::path::PathBuf;

use bench_load::Stop;
use bench_load::grpc::{Ends, Method};

use super::replies::{good, measured};
use super::{Point, Points, Row, Verdict};
use crate::callgrind::Counted;
use crate::cores::Place;
use crate::figures::Figures;
use crate::grpc;
use crate::server::Server;
use crate::subjects::{BATON_GRPC, CONTROL_GRPC, Kind, LF_GRPC, NODE_GRPC, PYTHON_GRPC, SDK_GRPC, Subject};
use crate::wire::TEXT;

const CONNECTIONS: usize = 4;
const CALLS_EACH: usize = 8;
const TASKS: usize = 200;
const CHUNKS: usize = 1000;

const SUBJECTS: &[Subject] = &[BATON_GRPC, CONTROL_GRPC, LF_GRPC, SDK_GRPC, NODE_GRPC, PYTHON_GRPC];
const PEERS: &[Subject] = &[LF_GRPC, SDK_GRPC, NODE_GRPC, PYTHON_GRPC];

const COLUMNS: &[(&str, &str)] = &[
    ("cpu", "CPU µs/call"),
    ("rate", "calls/s"),
    ("p99", "p99 µs"),
    ("instructions", "instructions/call"),
    ("generator", "generator µs/call"),
];

pub const SEND: Row = Row {
    id: "grpc-send",
    work: "SendMessage over gRPC, server CPU per call, 4 connections with 8 calls at once on each",
    remark: "The control is a service as tonic generates it: it decodes the request, and encodes the message that Baton \
             answered with. Instructions are counted as in the row `guarded`, in full runs.",
    rounds: (1, 5),
    subjects: SUBJECTS,
    measure: |point| unary(point, grpc::SEND, grpc::SENT),
    columns: COLUMNS,
    judge: |figures| vec![ahead("grpc-send", figures)],
};

pub const GET: Row = Row {
    id: "grpc-get",
    work: "GetTask over gRPC, server CPU per call, 4 connections with 8 calls at once on each",
    remark: "The same 200 tasks, again and again.",
    rounds: (1, 5),
    subjects: SUBJECTS,
    measure: |point| unary(point, grpc::GET, grpc::GOT),
    columns: COLUMNS,
    judge: |figures| vec![to_control("grpc-get", figures), ahead("grpc-get", figures)],
};

pub const BURST: Row = Row {
    id: "grpc-burst",
    work: "one task, 1,000 events, one subscriber over gRPC",
    remark: "In the control a task of its own produces the events, and tonic encodes and writes them.",
    rounds: (1, 3),
    subjects: SUBJECTS,
    measure: burst,
    columns: &[
        ("cpu", "CPU ms/stream"),
        ("wall", "wall ms/stream"),
        ("first", "first event p50 µs"),
        ("instructions", "instructions/stream"),
    ],
    judge: |figures| vec![to_control("grpc-burst", figures), ahead("grpc-burst", figures)],
};

fn to_control(row: &'static str, figures: &Figures) -> Verdict {
    let ratio = figures.ratio(row, "cpu", &BATON_GRPC, &CONTROL_GRPC);
    Verdict::at_most("CPU at most 2.0 × the control", ratio, 2.0, " ×")
}

fn ahead(row: &'static str, figures: &Figures) -> Verdict {
    let best = figures.least(row, "cpu", PEERS).map(|(_, value)| value);
    let ratio = figures.get(row, "cpu", &BATON_GRPC).zip(best).map(|(ours, best)| ours / best);
    Verdict::at_most("CPU below that of every SDK", ratio, 1.0, " ×")
}

fn unary(point: &Point<'_>, method: Method<'static>, ends: Ends<'static>) -> Result<Points, String> {
    let recorded = recorded(point)?;
    let server = point.bench.start(&point.subject, Place::Own, &env(&recorded))?;
    let mut calls = calls(&server, method)?;
    let mut channels = grpc::channels(&server, method, CONNECTIONS, CALLS_EACH)?;
    let load = measured(point, &server, |stop| channels.closed(&mut calls, ends, stop))?;
    drop(server);
    let mut points = load.points();
    points.extend(instructions(point, &recorded, method, ends, (2000, 12_000))?);
    Ok(points)
}

fn burst(point: &Point<'_>) -> Result<Points, String> {
    let recorded = recorded(point)?;
    let server = point.bench.start(&point.subject, Place::Own, &env(&recorded))?;
    let mut calls = grpc::send_calls("burst");
    let mut channels = grpc::channels(&server, grpc::STREAM, 1, 1)?;
    let ends = grpc::streamed(CHUNKS);
    let mut load = measured(point, &server, |stop| channels.closed(&mut calls, ends, stop))?;
    drop(server);
    let streams = load.outcome.answered.max(1) as f64;
    let mut points =
        vec![("cpu", load.cpu / 1000.0), ("wall", load.outcome.elapsed.as_secs_f64() * 1000.0 / streams)];
    points.extend(load.outcome.first_events.percentile(0.5).map(|value| ("first", value)));
    points.extend(instructions(point, &recorded, grpc::STREAM, ends, (10, 60))?);
    Ok(points)
}

/// For SendMessage and streams a new message each time, for GetTask the ids of finished tasks.
fn calls(server: &Server, method: Method<'_>) -> Result<bench_load::Calls, String> {
    match method.path {
        path if path == grpc::GET.path => Ok(grpc::get_calls(&grpc::task_ids(server, TASKS)?)),
        path if path == grpc::STREAM.path => Ok(grpc::send_calls("burst")),
        _ => Ok(grpc::send_calls(TEXT)),
    }
}

/// Counted by valgrind in the first round of a full run, for Baton and the control: the difference between many calls and few.
fn instructions(
    point: &Point<'_>,
    recorded: &[(&'static str, PathBuf)],
    method: Method<'static>,
    ends: Ends<'static>,
    (few, many): (u64, u64),
) -> Result<Option<(&'static str, f64)>, String> {
    if point.bench.quick || point.round > 0 || point.subject.kind == Kind::Peer {
        return Ok(None);
    }
    let total = |count| -> Result<u64, String> {
        let counted = Counted::start(point.bench, &point.subject, &env(recorded))?;
        let mut calls = calls(&counted.server, method)?;
        let mut channels = grpc::channels(&counted.server, method, CONNECTIONS, CALLS_EACH)?;
        let outcome = channels.closed(&mut calls, ends, Stop::Count(count));
        good(outcome.map_err(|error| error.to_string())?)?;
        drop(channels);
        counted.instructions()
    };
    let (least, most) = (total(few)?, total(many)?);
    Ok(Some(("instructions", most.saturating_sub(least) as f64 / (many - few) as f64)))
}

/// What Baton answers, for the control.
fn recorded(point: &Point<'_>) -> Result<Vec<(&'static str, PathBuf)>, String> {
    if point.subject.kind != Kind::Control {
        return Ok(Vec::new());
    }
    let server = point.bench.start(&BATON_GRPC, Place::Own, &[])?;
    let keep = |variable, name: &str, bytes: Vec<u8>| {
        let path = point.bench.scratch.join(name);
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, String>((variable, path))
    };
    Ok(vec![
        keep("BODY", "grpc-send.bin", grpc::ask(&server, grpc::SEND, TEXT)?)?,
        keep("EVENTS", "grpc-burst.bin", grpc::ask(&server, grpc::STREAM, "burst")?)?,
    ])
}

fn env<'a>(recorded: &'a [(&'static str, PathBuf)]) -> Vec<(&'a str, &'a std::path::Path)> {
    recorded.iter().map(|(name, path)| (*name, path.as_path())).collect()
}
