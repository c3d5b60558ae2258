//! Follow-ups to tasks that are about to end: each one that was acknowledged must be in its task's history, marked if the
//! agent never took it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_server::NOT_TAKEN;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::owners::{Owners, bearer};
use crate::faults::runs::Run;
use crate::served::{Served, text};

/// Clients at once, and follow-ups that each sends to a task at once.
const CLIENTS: u64 = 8;
const FOLLOW_UPS: u64 = 4;

#[derive(Default)]
struct Counts {
    acknowledged: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    marked: AtomicU64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p02_no_acknowledged_follow_up_is_lost() {
    let mut run = Run::begin("attack-follow-ups");
    let rounds = run.count(3, 60);
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let owners = Owners::new(&["owner"]);
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--config", &owners.config()];
    let server = Arc::new(Served::with(&args).authorized(&bearer("owner")));
    let counts = Arc::new(Counts::default());
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (server, counts) = (Arc::clone(&server), Arc::clone(&counts));
        clients.spawn(async move {
            for round in 0..rounds {
                // One that ends by itself, and one that is canceled while messages come in.
                for words in ["echo", "tck-cancel"] {
                    chase(&server, &counts, words, &format!("{words}-{client}-{round}")).await;
                }
            }
        });
    }
    clients.join_all().await;
    let [acknowledged, refused, lost, marked] =
        [&counts.acknowledged, &counts.refused, &counts.lost, &counts.marked]
            .map(|n| n.load(Ordering::SeqCst));
    run.figure("follow-ups acknowledged", acknowledged);
    run.figure("refused, since the task had ended", refused);
    run.figure("lost", lost);
    run.figure("marked as not taken", marked);
    run.end();
    assert!(acknowledged > 0 && marked > 0, "nothing was put to the test");
    assert_eq!(lost, 0, "acknowledged, and in no history");
}

async fn chase(server: &Arc<Served>, counts: &Arc<Counts>, words: &str, name: &str) {
    let task = server.start_task(text(name, words)).await;
    let id = task["id"].as_str().unwrap().to_owned();
    let mut sending = JoinSet::new();
    for n in 0..FOLLOW_UPS {
        let (server, id, name) = (Arc::clone(server), id.clone(), format!("{name}-{n}"));
        sending.spawn(async move {
            let mut message = text(&name, "and this");
            message["taskId"] = json!(id);
            let params = json!({"message": message, "configuration": {"returnImmediately": true}});
            let answer = server.ask("SendMessage", params).await;
            answer["result"]["task"]["id"].is_string().then_some(name)
        });
    }
    if words == "tck-cancel" {
        server.ask("CancelTask", json!({"id": id})).await;
    }
    let noted: Vec<String> = sending.join_all().await.into_iter().flatten().collect();
    counts.acknowledged.fetch_add(noted.len() as u64, Ordering::SeqCst);
    counts.refused.fetch_add(FOLLOW_UPS - noted.len() as u64, Ordering::SeqCst);
    let ended = ended(server, &id).await;
    let history = ended["history"].as_array().unwrap();
    for name in noted {
        match history.iter().find(|said| said["messageId"] == *name) {
            Some(said) if said["metadata"][NOT_TAKEN] == json!(true) => {
                counts.marked.fetch_add(1, Ordering::SeqCst);
            }
            Some(_) => {}
            None => {
                counts.lost.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

async fn ended(server: &Served, id: &str) -> Value {
    loop {
        let task = server.call("GetTask", json!({"id": id})).await;
        let state = task["status"]["state"].as_str().unwrap();
        if ["COMPLETED", "CANCELED"].iter().any(|end| state.ends_with(end)) {
            return task;
        }
    }
}
