//! How quickly events are delivered to a receiver of webhooks on this machine.

use std::time::{Duration, Instant};

use bench_load::{Arrived, Expect, Manner, Sink, Stop};

use super::durable;
use super::replies::{fleet, good};
use super::{Point, Points, Row, Verdict};
use crate::cores::Place;
use crate::server::Server;
use crate::subjects::{BATON_PUSH, BATON_PUSH_SQLITE, Kind, LF_PUSH, LF_PUSH_MIMALLOC, Subject};
use crate::wire::{self, COMPLETED, TEXT};

const PEERS: &[Subject] = &[LF_PUSH, LF_PUSH_MIMALLOC];
/// Tasks at the same time. Baton has as many calls at once; a2a-server-lf has one for each task.
const AT_ONCE: usize = 64;
const STEPS: u64 = 1000;
/// Of a key of 32 bytes, so that deliveries are signed.
const TOKEN: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
/// Longest time without a delivery before all have arrived.
const PATIENCE: Duration = Duration::from_secs(20);

pub const DELIVERIES: Row = Row {
    id: "webhooks",
    work: "webhooks, deliveries per second to one receiver on this machine, 64 tasks at the same time",
    remark: "Long tasks have 1,000 status updates each, so that the deliveries are the work; short ones are those of the \
             row `send`. The rate is from the first request to the last delivery, the CPU that of the whole server, tasks \
             included. The receiver is a thread on the generator's core; it answers 200. Baton signs every \
             notification, delivers after the event is stored, and keeps how far each webhook has got (SQLite: WAL, \
             synchronous=FULL), with caps of 64 calls at once. a2a-server-lf calls before the event is published, \
             neither signs nor repeats nor keeps anything, has no caps, and its guard of targets is off; it has one call \
             at once for each task.",
    rounds: (1, 5),
    subjects: &[BATON_PUSH, BATON_PUSH_SQLITE, LF_PUSH, LF_PUSH_MIMALLOC],
    measure,
    columns: &[
        ("long", "deliveries/s, long tasks"),
        ("long_cpu", "CPU µs/delivery"),
        ("short", "deliveries/s, short tasks"),
        ("short_cpu", "CPU µs/delivery"),
        ("each", "deliveries/short task"),
        ("head", "B/head"),
        ("body", "B/body, long tasks"),
        ("signed", "% signed"),
        ("sink", "receiver µs/delivery"),
    ],
    judge: |figures| {
        let best = figures.most("webhooks", "long", PEERS).map(|(_, rate)| rate);
        let to_best =
            |subject| figures.get("webhooks", "long", subject).zip(best).map(|(ours, best)| ours / best);
        vec![
            Verdict::at_least(
                "in memory, signed: at least 0.8 × a2a-server-lf",
                to_best(&BATON_PUSH),
                0.8,
                " ×",
            ),
            Verdict::at_least(
                "durable, signed: at least 0.4 × a2a-server-lf in memory",
                to_best(&BATON_PUSH_SQLITE),
                0.4,
                " ×",
            ),
        ]
    },
};

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let (server, folder) = match point.subject == BATON_PUSH_SQLITE {
        true => durable::start(point).map(|(server, folder)| (server, Some(folder)))?,
        false => (point.bench.start(&point.subject, Place::Own, &[])?, None),
    };
    let sink = Sink::start(Manner::Answers, COMPLETED).map_err(|error| format!("the receiver: {error}"))?;
    delivered(point, &server, &sink, TEXT, 1000)?;
    let long = delivered(point, &server, &sink, "steps", point.bench.pick(64, 128))?;
    let short = delivered(point, &server, &sink, TEXT, point.bench.pick(4000, 10_000))?;
    drop(server);
    if let Some(folder) = folder {
        durable::remove(&folder);
    }
    let requests = long.arrived.requests as f64;
    Ok(vec![
        ("long", long.rate()),
        ("long_cpu", long.cpu / requests),
        ("short", short.rate()),
        ("short_cpu", short.cpu / short.arrived.requests as f64),
        ("each", short.arrived.requests as f64 / short.tasks as f64),
        ("head", long.arrived.head_bytes as f64 / requests),
        ("body", long.arrived.body_bytes as f64 / requests),
        ("signed", 100.0 * long.arrived.signed as f64 / requests),
        ("sink", long.arrived.cpu / requests),
    ])
}

/// What a number of tasks brought to the receiver.
struct Delivered {
    tasks: u64,
    arrived: Arrived,
    elapsed: Duration,
    /// Of the server, in microseconds.
    cpu: f64,
}

impl Delivered {
    fn rate(&self) -> f64 {
        self.arrived.requests as f64 / self.elapsed.as_secs_f64()
    }
}

/// The part of a SendMessage's parameters that registers a webhook.
pub(super) fn webhook(address: std::net::SocketAddr) -> String {
    format!(
        r#","configuration":{{"taskPushNotificationConfig":{{"url":"http://{address}/hooks/a2a","token":"{TOKEN}"}}}}"#
    )
}

/// Sends that many messages, and waits until everything has arrived.
fn delivered(
    point: &Point<'_>,
    server: &Server,
    sink: &Sink,
    text: &str,
    tasks: u64,
) -> Result<Delivered, String> {
    let body = wire::send("SendMessage", text, &webhook(sink.address));
    let mut calls = bench_load::Calls::stamped(server.path, &server.headers, &body);
    let mut fleet = fleet(server, AT_ONCE)?;
    let (before, cpu, start) = (sink.arrived(), server.cpu()?, Instant::now());
    let sent = fleet.closed(&mut calls, Expect::reply(COMPLETED), Stop::Count(tasks));
    good(sent.map_err(|error| error.to_string())?)?;
    let expected = tasks * notifications(&point.subject, text);
    await_all(sink, before.requests + expected)?;
    let cpu = cpu.until(server.cpu()?);
    let arrived = sink.arrived().since(&before);
    if (arrived.requests, arrived.last_ones) != (expected, tasks) {
        return Err(format!(
            "{} notifications arrived instead of {expected}, {} last ones of {tasks} tasks",
            arrived.requests, arrived.last_ones
        ));
    }
    let newest = arrived.newest.ok_or("nothing arrived")?;
    Ok(Delivered { tasks, arrived, elapsed: newest - start, cpu })
}

/// How many notifications a task has: a2a-server-lf does not send its birth.
fn notifications(subject: &Subject, text: &str) -> u64 {
    let events = if text == "steps" { STEPS + 2 } else { 3 };
    events + u64::from(subject.kind == Kind::Baton)
}

fn await_all(sink: &Sink, requests: u64) -> Result<(), String> {
    let mut last = (sink.arrived().requests, Instant::now());
    while last.0 < requests {
        sink.check()?;
        std::thread::sleep(Duration::from_millis(1));
        let now = sink.arrived().requests;
        if now > last.0 {
            last = (now, Instant::now());
        } else if last.1.elapsed() > PATIENCE {
            return Err(format!("{now} of {requests} notifications arrived, then none for {PATIENCE:?}"));
        }
    }
    Ok(())
}
