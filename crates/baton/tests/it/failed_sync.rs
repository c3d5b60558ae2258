//! A failed sync: the data may be gone from the page cache, too, and a second sync would falsely succeed. So the
//! process ends, with its own exit code. strace makes the system call fail in the real binary.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::{Served, baton, finished, text};

const HANG: Duration = Duration::from_secs(60);
/// As `docs/operating.md` promises.
const STORE_LOST: i32 = 74;

fn serve_args(database: &Path) -> [String; 5] {
    let store = format!("sqlite:{}", database.display());
    ["serve", "--listen", "127.0.0.1:0", "--store", &store].map(str::to_owned)
}

fn serve(database: &Path) -> Served {
    let args = serve_args(database);
    Served::of(&mut baton(&args.each_ref().map(String::as_str)))
}

/// The binary with failing syncs. strace exits with the code of the program it runs.
fn failing(database: &Path, fault: &[&str]) -> Command {
    let probe = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let why = match probe {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = why {
        panic!(
            "strace cannot run programs here ({why}). Nothing else shows that a failed sync ends the real process: \
             install it (`cargo xtask setup` does) and allow ptrace (CAP_SYS_PTRACE in a container)"
        );
    }
    let args = serve_args(database);
    let server = baton(&args.each_ref().map(String::as_str));
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync"]).args(fault);
    traced.arg(server.get_program()).args(server.get_args());
    for name in ["BATON_LISTEN", "BATON_STORE", "BATON_LOG"] {
        traced.env_remove(name);
    }
    traced
}

/// The task of the acknowledgement; `None` if the send was refused, or the connection broke.
async fn send(server: &Served, id: &str, words: &str) -> Option<String> {
    let params = json!({"message": text(id, words), "configuration": {"returnImmediately": true}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let request = reqwest::Client::new().post(&server.url).header("A2A-Version", "1.0").json(&body);
    let response = request.timeout(HANG).send().await.ok()?;
    let status = response.status();
    let answer: Value = response.json().await.ok()?;
    if status == 200 {
        return Some(answer["result"]["task"]["id"].as_str().expect("a task").to_owned());
    }
    assert_eq!(status, 503, "{answer}");
    None
}

/// Sends until one is not acknowledged, and returns those that were.
async fn sends(server: &Served, name: &str, words: &str) -> Vec<String> {
    let since = Instant::now();
    let mut acknowledged = Vec::new();
    for n in 0.. {
        assert!(since.elapsed() < HANG, "no sync ever fails\n{}", server.log());
        match send(server, &format!("{name}-{n}"), words).await {
            Some(task) => acknowledged.push(task),
            None => break,
        }
    }
    acknowledged
}

fn ends_with_its_own_code(server: Served) {
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(STORE_LOST), "{log}");
    let said: Vec<_> = log.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(said.len(), 1, "{log}");
    assert!(
        ["failed for good", "Check the disk", "start again"].iter().all(|word| said[0].contains(word)),
        "{log}"
    );
}

async fn all_there(database: &Path, acknowledged: &[String]) {
    let server = serve(database);
    for task in acknowledged {
        let task = server.get(&json!({"id": task})).await;
        assert!(task["history"][0]["messageId"].is_string(), "{task}");
    }
    assert!(server.send(text("next", "echo next")).await["id"].is_string(), "and it goes on");
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_a_failed_sync_of_a_commit_ends_the_process_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("tasks.db");
    let server = serve(&database);
    let mut acknowledged = vec![send(&server, "first", "echo first").await.unwrap()];
    assert!(server.terminate().success());

    // Counted for each thread: the one that writes has some commits before its disk breaks.
    let fault = ["-e", "inject=fdatasync,fsync:error=EIO:when=12+"];
    let server = Served::of(&mut failing(&database, &fault));
    let during = sends(&server, "during", "echo during").await;
    assert!(!during.is_empty(), "the disk broke too early to show anything\n{}", server.log());
    acknowledged.extend(during);
    ends_with_its_own_code(server);
    all_there(&database, &acknowledged).await;
}

/// The log is synced, but the sync of the database fails. Nothing is lost, but the disk cannot be trusted any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_a_failed_sync_of_the_database_ends_the_process_too() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("tasks.db");
    let server = serve(&database);
    let mut acknowledged = vec![send(&server, "first", "echo first").await.unwrap()];
    assert!(server.terminate().success());

    let file = database.to_str().unwrap();
    let fault = ["-P", file, "-e", "inject=fdatasync,fsync:error=EIO"];
    let server = Served::of(&mut failing(&database, &fault));
    acknowledged.extend(sends(&server, "during", &format!("echo {}", "x".repeat(200_000))).await);
    assert!(acknowledged.len() > 3, "the log was not folded after so little\n{}", server.log());
    ends_with_its_own_code(server);
    all_there(&database, &acknowledged).await;
}

/// A disk that is broken from the start is found before the port is taken.
#[test]
fn a_start_on_a_disk_that_does_not_sync_has_the_same_code() {
    let folder = tempfile::tempdir().unwrap();
    let fault = ["-e", "inject=fdatasync:error=EIO"];
    let (code, said) = finished(&mut failing(&folder.path().join("tasks.db"), &fault));
    assert_eq!(code, Some(STORE_LOST), "{said}");
    assert!(said.contains("failed for good") && said.contains("tasks.db"), "{said}");
}
