//! The client, library and commands, while its server is killed (`kill -9`) in the middle of streams and started again at
//! the same address: it ends with the whole task, each event once and in order, and what the events add up to is what the
//! server says of the task.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use baton_client::protocol::domain::Task;
use baton_client::protocol::lifecycle::{Fold, say_the_same};
use baton_client::protocol::wire::{StreamItem, v1};
use baton_client::{Binding, Client, Ending, Retries};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::field::Field;
use super::journal::{Entry, Journal};
use super::runs::{HANG, Random, Run};
use super::stored::Stored;
use crate::served::{Served, baton};

/// Agent and words: streams of about a second, which are begun again after a kill; and one that is not.
const WISHES: &[(&str, &str)] = &[
    ("demo", "tell me a story"),
    ("demo", "tell me a story"),
    ("demo", "work step by step"),
    ("again", "slow"),
    ("once", "slow"),
];

/// Who reads a stream.
#[derive(Debug, Clone, Copy)]
enum Reader {
    Library(Binding),
    /// `baton send --stream`
    Send,
    /// `baton task subscribe --stream`
    Subscribe,
}

const READERS: [Reader; 6] = [
    Reader::Library(Binding::JsonRpc),
    Reader::Library(Binding::HttpJson),
    Reader::Library(Binding::JsonRpc),
    Reader::Library(Binding::HttpJson),
    Reader::Send,
    Reader::Subscribe,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p09_the_client_ends_with_the_whole_task_whatever_kills_its_server() {
    let mut run = Run::begin("client-kills");
    let kills = run.count(6, 100);
    let field = Field::new("");
    let port = quiet_port(&mut run.random());
    let serve = || {
        let mut command = field.command(&field.database());
        Served::of(command.args(["--listen", &format!("127.0.0.1:{port}")]))
    };
    let mut server = serve();
    let (is_up, up) = watch::channel(true);
    let counts = Arc::new(Counts::default());
    let journal = Journal::default();
    let readers: Vec<JoinHandle<Vec<Printed>>> = (1..)
        .zip(READERS)
        .map(|(number, reader)| {
            let user = User {
                url: server.url.clone(),
                up: up.clone(),
                counts: Arc::clone(&counts),
                journal: journal.clone(),
                random: Random::new(run.seed.wrapping_mul(number)),
                number,
            };
            tokio::spawn(user.work(reader))
        })
        .collect();
    let mut random = run.random();
    for _ in 0..kills {
        // In the middle of a stream: at least one event has come since the last kill.
        counts.more_events().await;
        // At length there is time for streams to end in between.
        let moment = Duration::from_micros(random.below(run.count(700_000, 3_000_000)));
        tokio::time::sleep(moment).await; // tidy: allow-sleep the moment of the kill is what is random here
        is_up.send_replace(false);
        drop(server); // SIGKILL
        server = serve();
        is_up.send_replace(true);
    }
    counts.stop.store(true, Ordering::Relaxed);
    let mut printed = Vec::new();
    for reader in readers {
        printed.extend(tokio::time::timeout(HANG, reader).await.expect("no client hangs").unwrap());
    }
    field.settle(&server).await;
    drop(server);
    // Library: every stream is its task's log, from its first event to its last.
    let stored = field.check(&run, &journal).await;
    // Commands: so is what they printed.
    printed.iter().for_each(|printed| printed.check(&stored));

    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let commands = printed.len() as u64;
    run.figure("kills", kills);
    run.figure("streams of the library", count(&counts.streams));
    run.figure("streams of the commands", commands);
    run.figure("streams of the library that were cut", count(&counts.cut_streams));
    run.figure("connections taken up again", count(&counts.reconnects));
    run.figure(
        "events",
        count(&counts.events) + printed.iter().map(|printed| printed.lines.len() as u64).sum::<u64>(),
    );
    run.figure(
        "tasks worked on again after a kill",
        stored.tasks.values().filter(|task| task.has_rerun()).count(),
    );
    run.figure("commands that found no server, or no task to watch any more", count(&counts.refused));
    run.figure("events lost, repeated or out of order", 0);
    run.figure("tasks that differ from what the server says", 0);
    assert!(count(&counts.cut_streams) > 0 && commands > 0, "the kills came at the wrong moments");
    run.end();
}

/// A port that no outgoing connection is given while the server is down.
fn quiet_port(random: &mut Random) -> u16 {
    loop {
        let port = 20_000 + random.below(12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[derive(Default)]
struct Counts {
    stop: AtomicBool,
    events: AtomicU64,
    streams: AtomicU64,
    cut_streams: AtomicU64,
    reconnects: AtomicU64,
    refused: AtomicU64,
}

impl Counts {
    async fn more_events(&self) {
        let (before, since) = (self.events.load(Ordering::Relaxed), std::time::Instant::now());
        while self.events.load(Ordering::Relaxed) == before {
            assert!(since.elapsed() < HANG, "no events");
            tokio::time::sleep(Duration::from_millis(1)).await; // tidy: allow-sleep polling a counter
        }
    }
}

/// Sends one message after the other, and reads each stream to its end.
struct User {
    url: String,
    up: watch::Receiver<bool>,
    counts: Arc<Counts>,
    journal: Journal,
    random: Random,
    number: u64,
}

impl User {
    /// Returns what commands have printed.
    async fn work(mut self, reader: Reader) -> Vec<Printed> {
        let home = tempfile::tempdir().unwrap();
        let mut printed = Vec::new();
        let mut streams = 0;
        while !self.counts.stop.load(Ordering::Relaxed) {
            let (agent, words) = *self.random.pick(WISHES);
            let agent = format!("{}/{agent}", self.url);
            self.up.wait_for(|up| *up).await.unwrap();
            match reader {
                Reader::Library(binding) => {
                    streams += 1;
                    self.read(&agent, words, binding, self.number * 1_000_000 + streams).await;
                }
                Reader::Send => printed.extend(self.command(home.path(), &agent, &["send", words]).await),
                Reader::Subscribe => {
                    let started =
                        run(home.path(), &["send", words, "--async", "-o", "json", "-a", &agent]).await;
                    let started: Value = serde_json::from_str(&started).unwrap_or_default();
                    let Some(id) = started["task"]["id"].as_str() else {
                        self.counts.refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    printed.extend(self.command(home.path(), &agent, &["task", "subscribe", id]).await);
                }
            }
        }
        printed
    }

    async fn read(&self, agent: &str, words: &str, binding: Binding, stream: u64) {
        // Baton knows a repeated message, so that it may be sent again.
        let mut retries = Retries::default();
        retries.uncertain = true;
        let Ok(client) = Client::builder().bindings([binding]).retries(retries).connect(agent).await else {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut events = loop {
            if let Ok(events) = client.stream(words).await {
                break events;
            }
        };
        while let Some(event) = events.next().await {
            let event = event.unwrap_or_else(|error| panic!("{agent} {words}: {error}"));
            let number =
                event.id.as_deref().and_then(|id| id.parse().ok()).expect("Baton numbers its events");
            match event.item {
                StreamItem::Task(task) => {
                    let task = task.id.as_str().to_owned();
                    self.journal.note(Entry::Opened { stream, task, after: number });
                }
                _ => {
                    let json: Value = serde_json::from_str(&event.json).unwrap();
                    self.journal.note(Entry::Seen { stream, number, json: json.to_string() });
                }
            }
            self.counts.events.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(events.ending(), Some(Ending::Terminal), "{agent} {words}");
        self.journal.note(Entry::Closed { stream });
        self.counts.streams.fetch_add(1, Ordering::Relaxed);
        self.counts.reconnects.fetch_add(events.reconnects().into(), Ordering::Relaxed);
        self.counts.cut_streams.fetch_add(u64::from(events.reconnects() > 0), Ordering::Relaxed);
        let task = events.task().expect("every stream is one of a task");
        let now = get(&client, task).await;
        assert!(say_the_same(task, &now), "{agent} {words}: {task:?}, the server has {now:?}");
    }

    /// A command that follows a task; `None` if it did not get that far.
    async fn command(&self, home: &Path, agent: &str, words: &[&str]) -> Option<Printed> {
        let out = run(home, &[words, &["--stream", "-o", "json", "-a", agent]].concat()).await;
        let lines: Vec<String> = out.lines().map(str::to_owned).collect();
        let last: Value = serde_json::from_str(lines.last()?).unwrap();
        if let Some(code) = last["error"]["code"].as_str() {
            // Nobody there, nobody knows whether the message arrived, or the task had ended before anybody watched. Nothing
            // of that happens in the middle.
            let may_be = ["A2ACLI_ERR_UNREACHABLE", "UnsupportedOperationError"].contains(&code);
            assert!(lines.len() == 1 && may_be, "{words:?}: {out}");
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let mut fold = Fold::default();
        for line in &lines {
            fold.take(&v1::read_stream_item(line).unwrap()).unwrap();
        }
        let task = fold.into_task().expect("every event is one of a task");
        loop {
            let out = run(home, &["task", "get", task.id.as_str(), "-o", "json", "-a", agent]).await;
            match v1::read_task(&out) {
                Ok(now) => {
                    assert!(say_the_same(&task, &now), "{words:?}: {task:?}, the server has {now:?}");
                    return Some(Printed { task: task.id.as_str().to_owned(), lines });
                }
                Err(_) => drop(self.up.clone().wait_for(|up| *up).await.unwrap()),
            }
        }
    }
}

/// The task as the server has it, when it is there.
async fn get(client: &Client, task: &Task) -> Task {
    loop {
        if let Ok(task) = client.get(&task.id).await {
            return task;
        }
    }
}

async fn run(home: &Path, args: &[&str]) -> String {
    let mut command = baton(args);
    command.env("HOME", home).current_dir(home);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What a command printed of a task: the task, then its events to the last.
struct Printed {
    task: String,
    lines: Vec<String>,
}

impl Printed {
    fn check(&self, stored: &Stored) {
        let json = |line: &String| serde_json::from_str::<Value>(line).unwrap();
        let (first, events) = self.lines.split_first().unwrap();
        assert!(json(first)["task"].is_object(), "{first}");
        // Subscriptions that end twice without an event make the client read the whole task instead, which has the rest in it.
        let is_whole = |line: &String| json(line)["task"].is_object();
        let (events, is_cut_short) = match events.split_last() {
            Some((last, before)) if is_whole(last) => (before, true),
            _ => (events, false),
        };
        let events: Vec<String> = events.iter().map(|line| json(line).to_string()).collect();
        let log = stored.tasks[&self.task].log.iter().filter(|line| !line.kind.is_internal());
        let log: Vec<&str> = log.map(|line| line.json.as_str()).collect();
        assert!(log.len() >= events.len(), "{}: {events:?}, the log has {log:?}", self.task);
        let found = match is_cut_short {
            true => events.is_empty() || log.windows(events.len()).any(|part| part == events),
            false => log[log.len() - events.len()..] == events,
        };
        assert!(found, "{}: {events:?} of {log:?}", self.task);
    }
}
