//! A11: a server that has no file descriptor left for programs. Its tasks wait, and all of them end well once there are
//! some again; one that is canceled does not wait.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::faults::runs::Run;
use crate::served::{Served, text};

/// So many files the server may have open; without a number, as many as before.
fn allow(server: &Served, files: Option<u64>) {
    let pid = Pid::from_raw(server.pid().cast_signed());
    // Once lowered, the other limit could not be raised again.
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current: files.or(maximum), maximum }).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s09_without_file_descriptors_programs_wait() {
    let mut run = Run::begin("attack-out-of-files");
    let server =
        Served::with(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--exec", "tr a-z A-Z"]);
    // The connection that everything is said over is there.
    let before = server.send(text("before", "before")).await;
    assert_eq!(before["status"]["state"], "TASK_STATE_COMPLETED");
    let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count() as u64;
    allow(&server, Some(open));
    let count = run.count(10, 60);
    let mut tasks = Vec::new();
    for n in 0..count {
        tasks.push(server.start_task(text(&format!("m{n}"), &format!("word {n}"))).await);
    }
    server.log_with("programs wait to be started");
    let canceled = tasks.pop().unwrap();
    assert_eq!(server.cancel(&canceled).await["status"]["state"], "TASK_STATE_CANCELED");
    for task in &tasks {
        assert_eq!(server.get(task).await["status"]["state"], "TASK_STATE_WORKING", "{}", server.log());
    }
    allow(&server, None);
    for (n, task) in tasks.iter().enumerate() {
        let done = server.until(task, "TASK_STATE_COMPLETED").await;
        assert_eq!(done["artifacts"][0]["parts"][0]["text"], format!("WORD {n}"));
    }
    run.figure("programs asked for without a descriptor", count);
    run.figure("failed tasks", 0);
    let log = server.log();
    let lines = log.matches("programs wait to be started").count();
    assert_eq!(lines, 1, "{log}");
    run.figure("lines in the log", lines);
    run.end();
}
