//! Callers that list tasks whose messages are large, without their history: what is shown is small, and so must be what is
//! read for it. Other owners must not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::latency::p99;
use super::owners::{Owners, bearer};
use crate::faults::runs::Run;
use crate::faults::sockets::resident_kib;
use crate::served::{Served, parts, text};

/// Just below what a request may weigh; less in the test command, where a dev build reads them.
const MESSAGE: (u64, u64) = (400_000, 4_000_000);

/// What the server may grow by while lists are read, in KiB. It was 4 GB.
const GROWTH_KIB: u64 = 64 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_lists_of_large_tasks_hold_nobody_up() {
    let mut run = Run::begin("attack-lists");
    let (tasks, callers) = (run.count(5, 20), run.count(16, 64));
    let (gets, bytes) = (run.count(100, 2000), run.count(MESSAGE.0, MESSAGE.1) as usize);
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let (owners, honest) = (Owners::new(&["attacker", "honest"]), bearer("honest"));
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--config", &owners.config()];
    let server = Arc::new(Served::with(&args).authorized(&bearer("attacker")));
    let mut shown = Vec::new();
    for n in 0..tasks {
        let message = parts(&format!("m{n}"), json!([{"text": "x".repeat(bytes)}]));
        shown.push(server.send(message).await["id"].clone());
    }
    let params = json!({"message": text("small", "hello")});
    let small = server.call_with("SendMessage", params, &[("Authorization", &honest)]).await["task"].take();
    let page = server.call("ListTasks", attack()).await;
    assert_eq!(page["totalSize"], tasks);
    let listed: Vec<&Value> = page["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
    assert_eq!(listed.len() as u64, tasks, "what is not shown takes no room on a page");
    assert!(shown.iter().all(|id| listed.contains(&id)));
    let before = resident_kib(server.pid());
    let quiet = p99(&server, &honest, &small, gets).await;

    let stop = Arc::new(AtomicBool::new(false));
    let pages = Arc::new(AtomicU64::new(0));
    let mut attack_under_way = JoinSet::new();
    for _ in 0..callers {
        let (server, stop, pages) = (Arc::clone(&server), Arc::clone(&stop), Arc::clone(&pages));
        attack_under_way.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                server.call("ListTasks", attack()).await;
                pages.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let busy = p99(&server, &honest, &small, gets).await;
    let grown = resident_kib(server.pid()).saturating_sub(before);
    stop.store(true, Ordering::Relaxed);
    attack_under_way.join_all().await;
    assert!(grown < GROWTH_KIB, "{grown} KiB; {GROWTH_KIB} are allowed");

    run.figure("tasks", tasks);
    run.figure("bytes of a message", bytes);
    run.figure("callers", callers);
    run.figure("pages", pages.load(Ordering::Relaxed));
    run.figure("another owner's GetTask p99, quiet", format!("{:.1} ms", quiet.as_secs_f64() * 1e3));
    run.figure("under attack", format!("{:.1} ms", busy.as_secs_f64() * 1e3));
    run.figure("server grew by", format!("{:.1} MiB", grown as f64 / 1024.0));
    run.end();
}

fn attack() -> Value {
    json!({"pageSize": 100, "historyLength": 0})
}

/// With the history a page is bounded in bytes: fewer tasks, and a token that goes on behind them.
#[tokio::test]
async fn s10_a_page_of_large_tasks_is_short_and_the_next_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("baton.toml");
    std::fs::write(&config, "store = \"memory:\"\n[limits]\nmax_page_bytes = \"64KiB\"\n").unwrap();
    let config = config.display().to_string();
    let server = Served::with(&["serve", "--listen", "127.0.0.1:0", "--config", &config]);
    let mut sent = Vec::new();
    for n in 0..3 {
        let message = parts(&format!("m{n}"), json!([{"text": "x".repeat(60_000)}]));
        sent.push(server.send(message).await["id"].clone());
    }
    let (mut listed, mut token) = (Vec::new(), json!(""));
    loop {
        let page = server.call("ListTasks", json!({"pageSize": 10, "pageToken": token})).await;
        let tasks = page["tasks"].as_array().unwrap();
        assert_eq!((tasks.len(), &page["totalSize"], &page["pageSize"]), (1, &json!(3), &json!(10)));
        assert_eq!(tasks[0]["history"][0]["parts"][0]["text"].as_str().unwrap().len(), 60_000);
        listed.push(tasks[0]["id"].clone());
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    listed.reverse();
    assert_eq!(listed, sent);
}
