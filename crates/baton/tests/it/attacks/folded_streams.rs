//! Readers that stop in the middle of a long log, which is folded before they go on: each gets the task and the end, none
//! hangs.

use std::fs;
use std::time::Instant;

use serde_json::json;

use crate::faults::runs::{HANG, Run};
use crate::faults::sockets::{Stream, address};
use crate::served::{Served, text};

/// Says more than the sockets between server and reader hold, of which the task keeps the last artifact alone: its
/// log is worth folding.
const TALKER: &str = r#"
import json, sys
sys.stdin.read()
for n in range(250):
    print(json.dumps({"artifact": {"id": "a", "text": "x" * 16000 if n < 249 else "done"}}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p04_a_log_that_is_folded_under_its_readers_leaves_none_hanging() {
    let mut run = Run::begin("attack-folded-streams");
    let readers = run.count(3, 100);
    let folder = tempfile::tempdir().unwrap();
    let (config, store) = (folder.path().join("baton.toml"), folder.path().join("tasks.db"));
    fs::write(folder.path().join("talker.py"), TALKER).unwrap();
    let agent = "[[agent]]\nid = \"demo\"\n[[agent.skill]]\nid = \"work\"\n\
                 exec = [\"python3\", \"talker.py\"]\nexec_output = \"jsonl\"\n";
    fs::write(
        &config,
        format!("listen = \"127.0.0.1:0\"\n[retention]\nfold = \"1s\"\nevery = \"1s\"\n{agent}"),
    )
    .unwrap();
    let store = format!("sqlite:{}", store.display());
    let server = Served::with(&["serve", "--config", config.to_str().unwrap(), "--store", &store]);
    let at = address(&server);
    let (mut hung_at_risk, mut streams, mut task) = (0, Vec::new(), String::new());
    // Several tasks, so that some readers open their streams while the sweeper is at work.
    for n in 0..readers {
        if n.is_multiple_of(10) {
            let sent = server.at("/demo").send(text(&format!("long-{n}"), "talk")).await;
            sent["id"].as_str().unwrap().clone_into(&mut task);
        }
        let mut stream = Stream::open(&at, "/demo", &task, Some(1), Some(64 * 1024)).await.unwrap();
        if n.is_multiple_of(3) {
            stream.read_until(|stream| !stream.frames.is_empty()).await;
        }
        streams.push((stream, task.clone()));
    }
    let since = Instant::now();
    loop {
        // A log that is folded begins with the task.
        let mut fresh = Stream::open(&at, "/demo", &task, Some(1), None).await.unwrap();
        assert!(fresh.read_until(|stream| !stream.frames.is_empty()).await);
        if fresh.frames[0].get("task").is_some() {
            break;
        }
        assert!(since.elapsed() < HANG, "nothing is folded\n{}", server.log());
    }
    for (mut stream, task) in streams {
        assert!(stream.read_until(|_| false).await, "a stream of {task} broke off");
        let last = stream.frames.last().expect("a stream shows something");
        let state = last["task"]["status"]["state"].as_str();
        if state.is_some() {
            hung_at_risk += 1;
        }
        assert!(
            stream.is_over() || state == Some("TASK_STATE_COMPLETED"),
            "it ended without the end: {task}"
        );
    }
    let ended = server.at("/demo").post("GetTask", json!({"id": task})).await.status();
    assert_eq!(ended, 200);
    run.figure("streams", readers);
    run.figure("whose log was folded while they were behind", hung_at_risk);
    run.figure("hanging", 0);
    run.end();
    assert!(hung_at_risk > 0, "nothing was put to the test");
}
