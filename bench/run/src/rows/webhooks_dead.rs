//! What a webhook costs a task if its receiver is dead.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bench_load::{Calls, Expect, Manner, Refusing, Sink, Stop};

use super::replies::{fleet, good};
use super::webhooks::webhook;
use super::{Point, Points, Row, Verdict};
use crate::callgrind::Counted;
use crate::cores::Place;
use crate::server::Server;
use crate::subjects::{
    BATON_HOOK_HEALTHY, BATON_HOOK_NONE, BATON_HOOK_OFF, BATON_HOOK_REFUSING, BATON_HOOK_SILENT,
};
use crate::wire::{self, COMPLETED, TEXT};

/// Longest wait until every webhook is finished or has failed for good.
const PATIENCE: Duration = Duration::from_secs(60);

pub const RECEIVERS: Row = Row {
    id: "webhooks-dead",
    work: "SendMessage with a webhook whose receiver is healthy or dead, short tasks",
    remark: "The tasks are those of the row `send`: a healthy receiver gets four notifications of each. `While tasks run`: \
             one connection, the usual waits between attempts, so that of a dead receiver the first attempts are in it. \
             A receiver that refuses has no listener; one that is silent accepts and never answers. Instructions are \
             counted by valgrind, once, whose processor has none for SHA-256. `To the last attempt`: eight connections, \
             waits of less than a second instead of 75 hours, until no webhook is open; a dead receiver has ten \
             attempts by then, each with a connection of its own, and the silent one ends each after 3 ms. It has no goal: what \
             ten attempts cost is spread over 75 hours, and tells what may be set aside, not what a task waits for.",
    rounds: (1, 5),
    subjects: &[BATON_HOOK_OFF, BATON_HOOK_NONE, BATON_HOOK_HEALTHY, BATON_HOOK_REFUSING, BATON_HOOK_SILENT],
    measure,
    columns: &[
        ("send", "CPU µs/task while tasks run"),
        ("instructions", "instructions/task"),
        ("p50", "answer p50 µs"),
        ("life", "CPU µs/task to the last attempt"),
    ],
    judge: |figures| {
        let ratio = |name| {
            let to_healthy = |subject| figures.ratio("webhooks-dead", name, subject, &BATON_HOOK_HEALTHY);
            to_healthy(&BATON_HOOK_REFUSING).zip(to_healthy(&BATON_HOOK_SILENT)).map(|(a, b)| a.max(b))
        };
        vec![
            Verdict::at_most(
                "without a webhook: instructions within 1 % of a server that takes none",
                figures.ratio("webhooks-dead", "instructions", &BATON_HOOK_NONE, &BATON_HOOK_OFF),
                1.01,
                " ×",
            ),
            Verdict::at_most(
                "instructions while tasks run: dead at most 1.05 × healthy",
                ratio("instructions"),
                1.05,
                " ×",
            ),
            Verdict::at_most("CPU while tasks run: dead at most 1.05 × healthy", ratio("send"), 1.05, " ×"),
            Verdict::at_most("answer p50: dead at most 1.05 × healthy", ratio("p50"), 1.05, " ×"),
        ]
    },
};

/// The receiver of a point, and the configuration that names it.
struct Receiver {
    configuration: String,
    _sink: Option<Sink>,
    _refusing: Option<Refusing>,
}

impl Receiver {
    fn of(point: &Point<'_>) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("the receiver: {error}");
        let sink = |manner| Sink::start(manner, COMPLETED).map_err(said);
        let (sink, refusing) = match point.subject {
            BATON_HOOK_HEALTHY => (Some(sink(Manner::Answers)?), None),
            BATON_HOOK_SILENT => (Some(sink(Manner::Silent)?), None),
            BATON_HOOK_REFUSING => (None, Some(Refusing::bind().map_err(said)?)),
            _ => (None, None),
        };
        let address =
            sink.as_ref().map(|sink| sink.address).or(refusing.as_ref().map(|refusing| refusing.address));
        Ok(Receiver {
            configuration: address.map(webhook).unwrap_or_default(),
            _sink: sink,
            _refusing: refusing,
        })
    }

    fn calls(&self, server: &Server) -> Calls {
        let body = wire::send("SendMessage", TEXT, &self.configuration);
        Calls::stamped(server.path, &server.headers, &body)
    }
}

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let (cpu, p50) = while_tasks_run(point)?;
    let mut points = vec![("send", cpu), ("p50", p50), ("life", to_the_last_attempt(point)?)];
    // They hardly vary between rounds.
    if point.round == 0 {
        points.push(("instructions", instructions(point)?));
    }
    Ok(points)
}

/// Of a task and its deliveries, but without what is put off: the difference between many tasks and few.
fn instructions(point: &Point<'_>) -> Result<f64, String> {
    let total = |tasks| -> Result<u64, String> {
        let receiver = Receiver::of(point)?;
        let counted = Counted::start(point.bench, &point.subject, &[])?;
        let mut one = fleet(&counted.server, 1)?;
        let sent =
            one.closed(&mut receiver.calls(&counted.server), Expect::reply(COMPLETED), Stop::Count(tasks));
        good(sent.map_err(|error| error.to_string())?)?;
        if point.subject == BATON_HOOK_HEALTHY {
            await_settled(&counted.server)?;
        }
        counted.instructions()
    };
    let (few, many) = (1000, point.bench.pick(3000, 6000));
    let (least, most) = (total(few)?, total(many)?);
    Ok(most.saturating_sub(least) as f64 / (many - few) as f64)
}

/// With the usual waits between attempts: CPU per task, and the time of an answer, on one connection.
fn while_tasks_run(point: &Point<'_>) -> Result<(f64, f64), String> {
    let receiver = Receiver::of(point)?;
    let server = point.bench.start(&point.subject, Place::Own, &[])?;
    let mut calls = receiver.calls(&server);
    let mut one = fleet(&server, 1)?;
    let expect = Expect::reply(COMPLETED);
    let mut run =
        |tasks| good(one.closed(&mut calls, expect, Stop::Count(tasks)).map_err(|e| e.to_string())?);
    run(point.bench.pick(500, 2000))?;
    let before = server.cpu()?;
    let tasks = point.bench.pick(3000, 15_000);
    let mut outcome = run(tasks)?;
    let cpu = before.until(server.cpu()?) / tasks as f64;
    let p50 = outcome.latencies.percentile(0.5).ok_or("no answer was timed")?;
    Ok((cpu, p50))
}

/// With waits of less than a second, so that all ten attempts are made: until no webhook is open any more.
fn to_the_last_attempt(point: &Point<'_>) -> Result<f64, String> {
    let receiver = Receiver::of(point)?;
    let mut env = vec![("PUSH_PACE", Path::new("0.000001"))];
    if point.subject == BATON_HOOK_SILENT {
        // A healthy receiver on a busy machine may need longer.
        env.push(("PUSH_TIMEOUT_MS", Path::new("3")));
    }
    let server = point.bench.start(&point.subject, Place::Own, &env)?;
    let mut calls = receiver.calls(&server);
    let mut fleet = fleet(&server, 8)?;
    let mut run = |tasks: u64| -> Result<f64, String> {
        let before = server.cpu()?;
        let sent = fleet.closed(&mut calls, Expect::reply(COMPLETED), Stop::Count(tasks));
        good(sent.map_err(|error| error.to_string())?)?;
        if !receiver.configuration.is_empty() {
            await_settled(&server)?;
        }
        Ok(before.until(server.cpu()?) / tasks as f64)
    };
    run(50)?;
    // A silent receiver takes 30 ms of each task, one task after the other.
    run(point.bench.pick(100, 200))
}

fn await_settled(server: &Server) -> Result<(), String> {
    let start = Instant::now();
    while open_webhooks(server)? > 0 {
        if start.elapsed() > PATIENCE {
            return Err(format!("webhooks are still open after {PATIENCE:?}"));
        }
        // Seldom: the metrics cost the server something, too.
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}

/// As the server's metrics say.
fn open_webhooks(server: &Server) -> Result<u64, String> {
    let said = |error: std::io::Error| format!("metrics: {error}");
    let mut socket = TcpStream::connect(server.target.address).map_err(said)?;
    socket
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        .map_err(said)?;
    let mut text = String::new();
    socket.read_to_string(&mut text).map_err(said)?;
    let line = text.lines().find_map(|line| line.strip_prefix("baton_webhooks_open "));
    let number = line.and_then(|number| number.trim().parse::<f64>().ok());
    number
        .map(|number| number as u64)
        .ok_or_else(|| "the metrics do not tell how many webhooks are open".to_owned())
}
