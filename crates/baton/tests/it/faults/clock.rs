//! T7: a wall clock that jumps an hour, a day, forty days, forward and back, under load and between two starts.
//! `libfaketime` gives the server a clock that the test moves.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::field::Field;
use super::journal::Entry;
use super::load::{ALL, Load};
use super::runs::Run;
use crate::served::Served;

/// Where Debian has it.
const LIBRARIES: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

const FORTY_DAYS: i64 = 86_400 * 40;
/// Where the clock is put, in seconds from the truth.
const JUMPS: &[i64] = &[-3000, -60, -1, 0, 1, 3600, 86_400, FORTY_DAYS];

fn library() -> &'static str {
    LIBRARIES.iter().find(|path| Path::new(path).exists()).unwrap_or_else(|| {
        panic!("libfaketime is not here. Nothing else moves the clock of a real process: `cargo xtask setup` installs it")
    })
}

/// Serves with a clock that is `offset` away from the real one, as the file says from moment to moment.
fn serve(field: &Field) -> Served {
    let mut command = field.command(&field.database());
    command
        .env("LD_PRELOAD", library())
        .env("FAKETIME_TIMESTAMP_FILE", field.path("clock"))
        .env("FAKETIME_NO_CACHE", "1")
        // Timers run by the count of the machine, which does not jump.
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Served::of(&mut command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_a_clock_that_jumps_loses_nothing_and_ages_nothing() {
    let mut run = Run::begin("clock-jumps");
    let jumps = run.count(6, 50);
    let mut random = run.random();
    // Ended tasks stay two hours: each longer jump forward would remove them all, if it were believed. A task that ends
    // while the clock is far behind does look old once it is right again; so it is never that far behind.
    let field = Field::new("[retention]\nended = \"2h\"\nfold = \"2h\"\nrecords = \"2h\"\nevery = \"1s\"");
    let set = |seconds: i64| {
        // In one step: a clock that is read half-way says anything.
        fs::write(field.path("clock.next"), format!("{seconds:+}\n")).unwrap();
        fs::rename(field.path("clock.next"), field.path("clock")).unwrap();
    };
    set(0);
    let mut server = serve(&field);
    let mut load = Load::start(&server.url, 4, run.seed, ALL);
    load.more(10).await;
    let mut restarts = 0;
    for jump in 0..jumps {
        set(*random.pick(JUMPS));
        load.more(8).await;
        // Some sweeps see the clock where it is now.
        tokio::time::sleep(Duration::from_millis(1100)).await; // tidy: allow-sleep a few rounds of the sweeper
        // The first one is never left to chance: everything that has ended would be gone with its first sweep.
        if jump == 0 || random.one_in(3) {
            set(if jump == 0 { FORTY_DAYS } else { *random.pick(JUMPS) });
            drop(server);
            server = serve(&field);
            load.moved(&server);
            restarts += 1;
            // Its first sweeps, before anything new is written.
            tokio::time::sleep(Duration::from_millis(1100)).await; // tidy: allow-sleep a few rounds of the sweeper
        }
    }
    load.finish().await;
    field.settle(&server).await;
    // Turns that wait, cursors and pages do not go by the wall clock.
    let listed = listed(&server).await;
    drop(server);
    let stored = field.check(&run, &load.journal).await;
    let demo = stored.tasks.values().filter(|task| task.agent == "demo").count();
    assert_eq!(listed, demo, "a page leaves tasks out, or shows them twice");
    run.figure("jumps", jumps);
    run.figure("restarts", restarts);
    run.figure(
        "acknowledged",
        load.journal.count(|entry| matches!(entry, Entry::Acked { .. } | Entry::Replied { .. })),
    );
    run.figure("tasks removed for an age they did not have", 0);
    run.figure("violations", 0);
    run.end();
}

/// How many tasks all pages of the list have together, each once.
async fn listed(server: &Served) -> usize {
    let mut seen = std::collections::HashSet::new();
    let mut token = String::new();
    loop {
        let params = serde_json::json!({"pageSize": 20, "pageToken": token});
        let mut page: serde_json::Value =
            server.at("/demo").post("ListTasks", params).await.json().await.unwrap();
        let page = page["result"].take();
        for task in page["tasks"].as_array().unwrap() {
            assert!(seen.insert(task["id"].as_str().unwrap().to_owned()), "{} is on two pages", task["id"]);
        }
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            return seen.len();
        }
    }
}
