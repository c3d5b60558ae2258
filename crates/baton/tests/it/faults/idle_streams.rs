//! T8: thousands of streams on which nothing happens. They cost little, others are served meanwhile, and after a kill
//! all of them are back where they were.

use std::time::Instant;

use serde_json::json;
use tokio::task::JoinSet;

use super::field::Field;
use super::runs::Run;
use super::sockets::{Stream, address, affordable, resident_kib};
use crate::served::text;

/// What an idle stream may take of a dev build's memory. What it takes of a release build is for the benchmarks.
const MOST_KIB: u64 = 64;

async fn open_all(address: &str, task: &str, count: u64, after: Option<u64>) -> Vec<Stream> {
    let mut streams = Vec::new();
    while (streams.len() as u64) < count {
        let batch = 500.min(count - streams.len() as u64);
        let opening: JoinSet<_> = (0..batch)
            .map(|_| {
                let (address, task) = (address.to_owned(), task.to_owned());
                async move { Stream::open(&address, "/demo", &task, after, None).await.unwrap() }
            })
            .collect();
        streams.extend(opening.join_all().await);
    }
    streams
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_idle_streams_cost_little_and_all_come_back_after_a_kill() {
    let mut run = Run::begin("idle-streams");
    let count = affordable(run.count(1000, 10_000));
    // The streams take as many connections as the server has by default, and others are to be served as well.
    let field = Field::new("[connections]\nmax_connections = 12000");
    let server = field.serve();
    let params = json!({"message": text("wait", "tck-cancel"), "configuration": {"returnImmediately": true}});
    let started: serde_json::Value =
        server.at("/demo").post("SendMessage", params).await.json().await.unwrap();
    let task = started["result"]["task"]["id"].as_str().unwrap().to_owned();
    server.at("/demo").send(text("warm", "echo warm")).await;
    let before = resident_kib(server.pid());
    let since = Instant::now();
    let mut streams = open_all(&address(&server), &task, count, None).await;
    let opened = since.elapsed();
    let each = (resident_kib(server.pid()).saturating_sub(before)) as f64 / count as f64;
    assert!(each < MOST_KIB as f64, "{each:.1} KiB for an idle stream");
    // Others are served.
    let mut slowest = std::time::Duration::ZERO;
    for n in 0..50 {
        let since = Instant::now();
        server.at("/demo").send(text(&format!("other-{n}"), "echo other")).await;
        slowest = slowest.max(since.elapsed());
    }
    for stream in &mut streams {
        assert!(stream.read_until(|stream| !stream.frames.is_empty()).await, "each shows the task first");
    }
    drop(server); // SIGKILL
    let server = field.serve();
    let (since, at) = (Instant::now(), address(&server));
    let coming: JoinSet<_> = streams
        .into_iter()
        .map(|mut stream| {
            let (at, task) = (at.clone(), task.clone());
            async move {
                stream.resume(&at, "/demo", &task).await;
                stream
            }
        })
        .collect();
    let streams = coming.join_all().await;
    let back = since.elapsed();
    let canceled = server.at("/demo").post("CancelTask", json!({"id": task})).await;
    assert_eq!(canceled.status(), 200);
    let mut shown = Vec::new();
    for mut stream in streams {
        stream.read_until(Stream::is_over).await;
        assert!(stream.is_over(), "a stream ended without the end");
        shown.push(stream.numbers);
    }
    // The second attempt's words and the end: the same for everybody who saw the same before.
    shown.sort();
    shown.dedup();
    assert!(shown.len() <= 2, "streams of one task differ: {shown:?}");
    run.figure("streams", count);
    run.figure("opened in", format!("{:.1} s", opened.as_secs_f64()));
    run.figure("memory of each (dev build)", format!("{each:.1} KiB"));
    run.figure("slowest of 50 other calls", format!("{} ms", slowest.as_millis()));
    run.figure("all back after a kill in", format!("{:.1} s", back.as_secs_f64()));
    run.end();
}
