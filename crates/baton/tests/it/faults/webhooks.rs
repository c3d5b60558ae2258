//! T12: `kill -9` while webhooks are being called.
//!
//! The receiver outlives the server. At the end, when the last server has nothing left to deliver, what it got is held
//! against the store: every event at least once, in order, and repeats that can be told as such.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use baton_server::points::Point;
use rusqlite::{Connection, OpenFlags};

use self::checker::{Entry, Hook, Violation, violations};
use self::receiver::Receiver;
use self::senders::Senders;
use super::field::Field;
use super::runs::{HANG, Random, Run};
use super::stored;
use crate::served::Served;

/// Calls that may get no answer.
mod caller;
/// The rules.
mod checker;
/// Each rule can fail.
mod checker_tests;
/// What senders say, in each generation.
mod forms;
/// Who is called.
mod receiver;
/// Who asks to be called.
mod senders;
/// What a webhook is to be told.
mod told;
/// What it was told.
mod walk;

/// Ten attempts take 75 hours; with this, three seconds.
const PACE: &str = "0.00001";

const SETTINGS: &str = "[push]\nenabled = true\ndevelopment = true\nmax_per_owner = 100000";

const POINTS: [Point; 3] = [Point::PushCalling, Point::PushAnswered, Point::PushStored];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_every_webhook_gets_every_event_whatever_kills_the_server() {
    let mut run = Run::begin("webhook-kills");
    let kills = run.count(20, 300);
    let field = Field::new(SETTINGS);
    let mut random = run.random();
    let receiver = Receiver::start(Random::new(random.next())).await;
    let mut senders = Senders::start(8, run.seed, &receiver);
    let (mut at_points, mut within_calls, mut restarts) = (0, 0, Vec::new());
    for kill in 0..kills {
        let point = (kill % 3 == 2).then(|| (*random.pick(&POINTS), 1 + random.below(30)));
        let since = Instant::now();
        // A server with much to deliver may meet its point before it says that it serves.
        if let Some(mut server) = serve(&field, point) {
            restarts.push(since.elapsed());
            senders.moved(&server);
            senders.feed(1 + random.below(8));
            if point.is_some() {
                wait_for(&senders, || server.is_gone()).await;
            } else {
                let enough = receiver.calls() + random.below(40);
                wait_for(&senders, || receiver.calls() >= enough).await;
                let moment = Duration::from_micros(random.below(50_000));
                tokio::time::sleep(moment).await; // tidy: allow-sleep the moment of the kill is what is random here
                within_calls += u64::from(receiver.under_way() > 0);
            }
            drop(server); // SIGKILL
        }
        at_points += u64::from(point.is_some());
        receiver.next_life().await;
    }
    let server = serve(&field, None).expect("nothing kills this one");
    senders.moved(&server);
    let hooks = senders.finish().await;
    field.settle(&server).await;
    let since = Instant::now();
    while count(&field, "webhook WHERE state = 0") > 0 {
        assert!(since.elapsed() < HANG, "webhooks stay open\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: allow-sleep polling a database
    }
    let log = server.stop_and_log();
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");

    let mut tasks: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
    for hook in hooks.values() {
        tasks.entry(hook.task.clone()).or_default().insert(hook.generation);
    }
    let logs = told::read(&field.database(), &tasks).await.unwrap();
    let entries = receiver.entries();
    let (found, counts) = violations(&hooks, &entries, &logs);
    complain(&run, &hooks, &entries, &found);
    assert_eq!(stored::integrity(&field.database()), "ok");
    assert!(count(&field, "failed_webhook") >= counts.given_up, "those that failed for good are kept");

    restarts.sort();
    run.figure("kills", kills);
    run.figure("of these at chosen points", at_points);
    run.figure("of the others while a call had no answer", within_calls);
    run.figure("tasks", tasks.len());
    run.figure("webhooks", hooks.values().filter(|hook| hook.since.is_some()).count());
    run.figure("events that they were due", counts.due);
    run.figure("calls", receiver.calls());
    let failed = entries.iter().filter(|entry| matches!(entry, Entry::Over { fails: true, .. })).count();
    run.figure("calls that the receiver failed", failed);
    run.figure("events delivered again, after a kill", counts.repeats - counts.repeats_of_one_life);
    run.figure("events delivered again by the same process", counts.repeats_of_one_life);
    run.figure("times the whole task took the place of events", counts.skips);
    run.figure("webhooks given up after ten failures", counts.given_up);
    run.figure("webhooks of 0.1 removed after four failures", counts.removed);
    run.figure("calls of the clients that got no answer", senders.cut());
    run.figure("violations", found.len());
    run.figure(
        "restart, slowest of a hundred",
        format!("{} ms", restarts[restarts.len() * 99 / 100].as_millis()),
    );
    assert!(counts.due >= kills * 10, "too little to deliver: {counts:?}");
    assert!(within_calls > 0 && counts.repeats > 0, "the kills came at the wrong moments: {counts:?}");
    run.end();
}

/// `None` if it met its point before it served.
fn serve(field: &Field, point: Option<(Point, u64)>) -> Option<Served> {
    let mut command = field.command(&field.database());
    command.env("BATON_FAULT_PUSH_PACE", PACE);
    let Some((point, visit)) = point else { return Some(Served::of(&mut command)) };
    command.env("BATON_FAULT_POINT", format!("{}:{visit}", point.name()));
    Served::unless_it_dies(&mut command).ok()
}

/// Waits for something that deliveries bring about. Should everything be delivered, there is more.
async fn wait_for(senders: &Senders, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    for round in 1.. {
        if is_so() {
            return;
        }
        assert!(since.elapsed() < HANG, "nothing is delivered");
        if round % 50 == 0 {
            senders.feed(1);
        }
        tokio::time::sleep(Duration::from_millis(1)).await; // tidy: allow-sleep polling a counter
    }
}

/// How many rows there are, while a server may be at work.
fn count(field: &Field, rows: &str) -> u64 {
    let connection = Connection::open_with_flags(field.database(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    connection.busy_timeout(HANG).unwrap();
    let count = connection.query_row(&format!("SELECT count(*) FROM {rows}"), [], |row| row.get::<_, i64>(0));
    count.unwrap().cast_unsigned()
}

/// Fails with what was found, and leaves what the receiver got.
fn complain(run: &Run, hooks: &BTreeMap<u64, Hook>, entries: &[Entry], found: &[Violation]) {
    if found.is_empty() {
        return;
    }
    let mut journal = String::new();
    for (number, Hook { task, generation, since }) in hooks {
        journal += &format!("hook\t{number}\t{task}\t{}\t{since:?}\n", generation.version());
    }
    for entry in entries {
        journal += &match entry {
            Entry::Called { call, hook, life, id, body, .. } => {
                let body = String::from_utf8_lossy(body);
                format!("called\t{call}\t{hook}\t{life}\t{id}\t{body}\n")
            }
            Entry::Over { call, fails } => format!("over\t{call}\t{fails}\n"),
            Entry::Accepted { call } => format!("accepted\t{call}\n"),
        };
    }
    let journal = run.leave("journal", &journal);
    let all: Vec<_> = found.iter().take(20).map(ToString::to_string).collect();
    let (count, seed) = (found.len(), run.seed);
    panic!("{count} violations; seed {seed}, journal {}\n{}", journal.display(), all.join("\n"));
}
