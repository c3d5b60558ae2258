//! A9: tasks that grow. What they take in time, bytes written and memory grows with them, not with their square.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::faults::field::Field;
use crate::faults::runs::Run;
use crate::faults::sockets::resident_kib;
use crate::served::{Served, parts, to};

/// Makes many small artifacts as fast as it can.
const MAKER: &str = r#"
import os, sys
sys.stdin.readline()
for n in range(int(os.environ["COUNT"])):
    sys.stdout.write('{"artifact": {"id": "a%d", "parts": [{"text": "x"}]}}\n' % n)
"#;

const MB: u64 = 1_000_000;

/// Bytes written for one small artifact, however many there are: its record, twice, and its share of the pages around it.
const MOST_WRITTEN: u64 = 4_000;

fn serve(field: &Field, more: &[&str]) -> Served {
    let store = format!("sqlite:{}", field.database().display());
    let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--store", &store];
    args.extend_from_slice(more);
    Served::with(&args)
}

/// A first word, and many bytes behind it.
fn long(id: &str, text: &str, bytes: u64) -> Value {
    parts(id, json!([{"text": text}, {"text": "x".repeat(bytes as usize)}]))
}

async fn send(server: &Served, message: Value, immediately: bool) -> Value {
    let configuration = json!({"historyLength": 0, "returnImmediately": immediately});
    let params = json!({"message": message, "configuration": configuration});
    server.call("SendMessage", params).await["task"].clone()
}

/// What the process has handed to the kernel to be written, in bytes.
fn written(server: &Served) -> u64 {
    let io = fs::read_to_string(format!("/proc/{}/io", server.pid())).unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_a_task_with_many_artifacts_ends_and_holds_nobody_up() {
    let mut run = Run::begin("attack-artifacts");
    let count = run.count(2_000, 100_000);
    let field = Field::new("");
    fs::write(field.path("maker.py"), MAKER).unwrap();
    let (exec, environment) =
        (format!("python3 {}", field.path("maker.py").display()), format!("COUNT={count}"));
    let more =
        ["--exec", &exec, "--exec-env", &environment, "--exec-output", "jsonl", "--exec-input", "json"];
    let server = Arc::new(serve(&field, &more));
    let (asking, over) = (Arc::clone(&server), Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&over);
    let other = tokio::spawn(async move {
        let mut times = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            let since = Instant::now();
            asking.probe("/healthz").await;
            times.push(since.elapsed());
        }
        times.sort_unstable();
        times
    });
    let before = written(&server);
    let since = Instant::now();
    let task = send(&server, parts("go", json!([{"text": "go"}])), false).await;
    let took = since.elapsed();
    over.store(true, Ordering::SeqCst);
    let times = other.await.unwrap();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{}", task["status"]);
    assert_eq!(task["artifacts"].as_array().unwrap().len() as u64, count);
    let each = (written(&server) - before) / count;
    assert!(each < MOST_WRITTEN, "{each} bytes were written for each artifact");
    run.figure("artifacts of one task", count);
    run.figure("bytes written for each", each);
    run.figure("made and answered in", format!("{:.1} s", took.as_secs_f64()));
    let slowest = times[times.len() * 99 / 100];
    run.figure("others meanwhile, p99", format!("{:.1} ms", slowest.as_secs_f64() * 1000.0));
    run.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_over_its_life_a_task_is_written_three_times_at_most() {
    let mut run = Run::begin("attack-long-turns");
    let (turns, bytes) = (run.count(10, 40), run.count(MB / 2, 4 * MB));
    let field = Field::new("");
    let server = serve(&field, &[]);
    let before = written(&server);
    let task = send(&server, long("m-0", "talk until I say done", bytes), false).await;
    for n in 1..turns {
        let asked = send(&server, to(&task, long(&format!("m-{n}"), "more", bytes)), false).await;
        assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{}", asked["status"]);
    }
    let ended = send(&server, to(&task, parts("end", json!([{"text": "done"}]))), false).await;
    assert_eq!(ended["status"]["state"], "TASK_STATE_COMPLETED");
    let (said, written) = (turns * bytes, written(&server) - before);
    assert!(written < 3 * said + MB, "{written} bytes were written for {said}");
    // Nothing of it was lost for that.
    let whole = server.get(&task).await;
    let history = whole["history"].as_array().unwrap();
    let length = |message: &Value| message["parts"][1]["text"].as_str().map_or(0, str::len) as u64;
    assert_eq!(history.iter().map(length).sum::<u64>(), said);
    run.figure("turns", turns);
    run.figure("bytes of each", bytes);
    run.figure("written (log and database)", format!("{:.0} MB", written as f64 / MB as f64));
    run.figure("for what was said, times", format!("{:.2}", written as f64 / said as f64));
    run.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_a_running_task_is_held_once() {
    /// What the server may need beside the tasks: buffers of requests, SQLite's pages.
    const REST_KIB: u64 = 48 * 1024;
    let mut run = Run::begin("attack-running-tasks");
    let (tasks, bytes) = (run.count(60, 200), run.count(MB, 4 * MB));
    let field = Field::new("");
    let server = serve(&field, &[]);
    let first = send(&server, long("first", "wait until I cancel", bytes), true).await;
    server.until(&first, "TASK_STATE_WORKING").await;
    let before = resident_kib(server.pid());
    let mut last = first;
    for n in 0..tasks {
        last = send(&server, long(&format!("m-{n}"), "wait until I cancel", bytes), true).await;
    }
    server.until(&last, "TASK_STATE_WORKING").await;
    let grown = resident_kib(server.pid()).saturating_sub(before);
    let stored = tasks * bytes / 1024;
    assert!(grown < stored * 3 / 2 + REST_KIB, "{grown} KiB for {stored} KiB stored");
    run.figure("running tasks", tasks);
    run.figure("bytes of each message", bytes);
    run.figure("server grew by", format!("{:.0} MiB", grown as f64 / 1024.0));
    run.figure("for what is stored, times", format!("{:.2}", grown as f64 / stored as f64));
    run.end();
}
