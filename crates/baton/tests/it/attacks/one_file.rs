//! A8: several servers on one database, by every name an operator may give it; servers killed and started anew at once;
//! a data folder that is deleted or replaced under a running server.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::faults::runs::{HANG, Run};
use crate::served::{Served, baton, text};

fn command(database: &Path) -> Command {
    baton(&["serve", "--listen", "127.0.0.1:0", "--store", &format!("sqlite:{}", database.display())])
}

/// Each tries at the same time as the others; how many serve.
fn intruders(databases: &[std::path::PathBuf], reason: &str) -> usize {
    std::thread::scope(|scope| {
        let tries: Vec<_> = databases
            .iter()
            .map(|database| scope.spawn(|| Served::unless_it_dies(&mut command(database))))
            .collect();
        let mut inside = 0;
        for (tried, database) in tries.into_iter().zip(databases) {
            match tried.join().unwrap() {
                Ok(_served) => inside += 1,
                Err((status, log)) => {
                    assert_eq!(status.code(), Some(1), "{log}");
                    assert!(log.contains(reason), "{}: {log}", database.display());
                }
            }
        }
        inside
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_one_database_has_one_server_by_whatever_name() {
    let mut run = Run::begin("attack-one-file");
    let outer = tempfile::tempdir().unwrap();
    let at = |name: &str| outer.path().join(name);
    let database = at("data/tasks.db");
    let server = Served::of(&mut command(&database));
    let kept = server.send(text("first", "echo first")).await;

    symlink("tasks.db", at("data/link.db")).unwrap();
    symlink(at("data"), at("folder")).unwrap();
    fs::remove_file(at("data/tasks.db.lock")).unwrap();
    let names = [at("data/link.db"), at("folder/tasks.db"), database.clone()];
    let mut inside = intruders(&names, "another Baton runs on");
    fs::hard_link(&database, at("data/hard.db")).unwrap();
    inside += intruders(&[at("data/hard.db")], "2 names (hard links)");
    fs::remove_file(at("data/hard.db")).unwrap();
    assert_eq!(inside, 0, "two servers write to one file");
    run.figure("second servers that got in", inside);

    // Whoever follows a server that was killed this moment does not find its lock.
    let kills = run.count(3, 40);
    let mut server = server;
    for _ in 0..kills {
        server.signal("-KILL");
        server = Served::of(&mut command(&database));
    }
    run.figure("starts at once after a kill", kills);
    assert_eq!(server.get(&kept).await, kept);

    let noticed = deleted_under(&server, &at("data")).await;
    run.figure("a deleted folder is noticed within", format!("{noticed:.1} s"));
    assert_eq!(server.get(&kept).await, kept, "what it has, it still shows");
    let log = server.stop_and_log();
    assert_eq!(log.matches("writes are refused").count(), 1, "{log}");
    assert!(!at("data").exists(), "nothing was put in its place");
    run.end();
}

/// How long it takes until the server says that it is not ready and refuses what it could not keep.
async fn deleted_under(server: &Served, folder: &Path) -> f64 {
    assert_eq!(server.probe("/readyz").await, (200, "ready".to_owned()));
    fs::remove_dir_all(folder).unwrap();
    let since = Instant::now();
    while server.probe("/readyz").await != (503, "store unavailable".to_owned()) {
        assert!(since.elapsed() < HANG, "it goes on as if nothing had happened\n{}", server.log());
    }
    let noticed = since.elapsed().as_secs_f64();
    let refused = server.post("SendMessage", json!({"message": text("lost", "echo lost")})).await;
    assert_eq!(refused.status(), 503);
    noticed
}
