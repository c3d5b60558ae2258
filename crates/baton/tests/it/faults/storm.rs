//! T10: all streams are cut at once, again and again, while their task talks; everybody comes back at the same moment and
//! misses nothing.

use std::time::Instant;

use tokio::task::JoinSet;

use super::field::Field;
use super::runs::Run;
use super::sockets::{Stream, address, affordable};
use crate::served::text;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_a_storm_of_reconnections_misses_nothing() {
    let mut run = Run::begin("reconnect-storm");
    let count = affordable(run.count(500, 5000));
    let storms = run.count(3, 10);
    let field = Field::new("");
    let server = field.serve();
    let at = address(&server);
    let mut slowest = std::time::Duration::ZERO;
    for storm in 0..storms {
        // Seven events in about a second; the storm comes after the first.
        let params = serde_json::json!({
            "message": text(&format!("story-{storm}"), "tell me a story"),
            "configuration": {"returnImmediately": true},
        });
        let started: serde_json::Value =
            server.at("/demo").post("SendMessage", params).await.json().await.unwrap();
        let task = started["result"]["task"]["id"].as_str().unwrap().to_owned();
        let since = Instant::now();
        let readers: JoinSet<_> = (0..count)
            .map(|_| {
                let (at, task) = (at.clone(), task.clone());
                async move {
                    // From the beginning, whenever it gets in.
                    let mut stream = Stream::open(&at, "/demo", &task, Some(1), None).await.unwrap();
                    stream.read_until(|stream| !stream.numbers.is_empty()).await;
                    // Dropping the socket is the cut.
                    let cut = Instant::now();
                    if !stream.is_over() {
                        stream.resume(&at, "/demo", &task).await;
                    }
                    let back = cut.elapsed();
                    while !stream.is_over() {
                        if !stream.read_until(Stream::is_over).await {
                            stream.resume(&at, "/demo", &task).await;
                        }
                    }
                    (stream.numbers, back)
                }
            })
            .collect();
        let mut all = Vec::new();
        for (numbers, back) in readers.join_all().await {
            slowest = slowest.max(back);
            all.push(numbers);
        }
        println!("storm {storm}: {count} streams back and done in {:.1} s", since.elapsed().as_secs_f64());
        assert!(all[0].len() >= 6, "{:?}", all[0]);
        assert!(all.iter().all(|numbers| *numbers == all[0]), "streams of one task differ");
    }
    run.figure("storms", storms);
    run.figure("streams in each", count);
    run.figure("slowest back in", format!("{:.1} s", slowest.as_secs_f64()));
    run.figure("gaps or repeats", 0);
    run.end();
}
