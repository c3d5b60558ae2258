//! A11: a server that has no file descriptor left for programs. Its tasks wait, and all of them end well once there are
//! some again; one that is canceled does not wait.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use serde_json::json;

use crate::faults::runs::Run;
use crate::keep_alive::Connection;
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
    // The one connection that everything is said over: the server can accept no other.
    let mut connection = Connection::to(&server);
    let before = connection.call("SendMessage", json!({"message": text("before", "before")}));
    assert_eq!(before["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    allow(&server, Some(0));
    let count = run.count(10, 60);
    let mut tasks = Vec::new();
    for n in 0..count {
        let message = text(&format!("m{n}"), &format!("word {n}"));
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        tasks.push(connection.call("SendMessage", params)["task"].take());
    }
    server.log_with("programs wait to be started");
    let canceled = tasks.pop().unwrap();
    let canceled = connection.call("CancelTask", json!({"id": canceled["id"]}));
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    for task in &tasks {
        let task = connection.call("GetTask", json!({"id": task["id"]}));
        assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{}", server.log());
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
