//! T9: one reader in ten stops reading while a turn has much to say. The others get everything, memory stays bounded, and
//! those that stopped come back without a gap.

use std::fs;
use std::time::Instant;

use serde_json::json;
use tokio::task::JoinSet;

use super::field::Field;
use super::runs::Run;
use super::sockets::{Stream, address, affordable, resident_kib};
use crate::served::{Served, text};

/// Says many things, each large: together more than the sockets between server and reader hold.
const TALKER: &str = r#"
import json, os, sys, time
sys.stdin.readline()
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)  # // tidy: allow-sleep a program that waits to be told
for n in range(int(os.environ["COUNT"])):
    print(json.dumps({"progress": str(n) + " " + "x" * 16000}), flush=True)
"#;

/// What a reader may cost the server, in KiB, and what all else may grow by meanwhile: the log's tail and SQLite. On a
/// busy machine every reader may be behind, and those that are behind hold as much as those that are stuck.
const EACH_KIB: u64 = 160;
const REST_KIB: u64 = 96 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_readers_that_stop_hold_nobody_up_and_resume_without_a_gap() {
    let mut run = Run::begin("slow-readers");
    let readers = affordable(run.count(40, 1000));
    let field = Field::new("");
    fs::write(field.path("talker.py"), TALKER).unwrap();
    let store = format!("sqlite:{}", field.database().display());
    let (exec, go) = (format!("python3 {}", field.path("talker.py").display()), field.path("go"));
    let environment = format!("GO={}", go.display());
    let events = run.count(150, 300) as usize;
    let count = format!("COUNT={events}");
    let server = Served::with(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        &store,
        "--exec",
        &exec,
        "--exec-env",
        &environment,
        "--exec-env",
        &count,
        "--exec-output",
        "jsonl",
        "--exec-input",
        "json",
    ]);
    let task = server.start_task(text("go", "go")).await;
    let (id, at) = (task["id"].as_str().unwrap().to_owned(), address(&server));
    let (mut healthy, mut stuck) = (JoinSet::new(), Vec::new());
    for n in 0..readers {
        let buffer = n.is_multiple_of(10).then_some(4096);
        let mut stream = Stream::open(&at, "", &id, None, buffer).await.unwrap();
        assert!(stream.read_until(|stream| !stream.frames.is_empty()).await);
        if buffer.is_some() {
            stuck.push(stream);
        } else {
            healthy.spawn(async move {
                stream.frames.clear();
                while !stream.is_over() {
                    stream.frames.clear();
                    let shown = stream.numbers.len();
                    if !stream.read_until(|stream| stream.numbers.len() > shown).await {
                        break;
                    }
                }
                stream.numbers
            });
        }
    }
    let before = resident_kib(server.pid());
    let since = Instant::now();
    fs::write(&go, "").unwrap();
    let mut most = before;
    let mut shown = Vec::new();
    while let Some(numbers) = healthy.join_next().await {
        most = most.max(resident_kib(server.pid()));
        shown.push(numbers.unwrap());
    }
    let took = since.elapsed();
    let right = shown[0].clone();
    assert!(right.len() > events, "{}", right.len());
    assert!(right.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(shown.iter().all(|numbers| *numbers == right), "healthy readers saw different things");
    let grown = most.saturating_sub(before);
    let allowed = readers * EACH_KIB + REST_KIB;
    assert!(grown < allowed, "{grown} KiB for {readers} readers; {allowed} are allowed");
    let count = stuck.len();
    for mut stream in stuck {
        // What was on its way, then from a new connection what was not.
        let half = right.len() / 2;
        stream.read_until(|stream| stream.numbers.len() >= half || stream.is_over()).await;
        if !stream.is_over() {
            stream.resume(&at, "", &id).await;
            stream.read_until(Stream::is_over).await;
        }
        assert_eq!(stream.numbers, right, "a gap, or something twice");
    }
    let closing = server.call("GetTask", json!({"id": id})).await;
    assert_eq!(closing["status"]["state"], "TASK_STATE_COMPLETED");
    run.figure("readers", readers);
    run.figure("that stopped reading", count);
    run.figure("events to each", right.len());
    run.figure("all others done in", format!("{:.1} s", took.as_secs_f64()));
    run.figure("server grew by", format!("{:.1} MiB", grown as f64 / 1024.0));
    run.figure("gaps", 0);
    run.end();
}
