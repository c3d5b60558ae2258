//! A server on a disk that fills up, by its own writes and by another file. Clients keep a journal of what was
//! acknowledged; at the end the process is killed, and the store is compared with the journal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::faults::checker::{Facts, violations};
use crate::faults::journal::{Entry, Journal};
use crate::faults::runs::Run;
use crate::faults::stored::{Stored, integrity};
use crate::served::{Served, finished, text};
use crate::small_disk::SmallDisk;

/// How long anything may take before the test counts as hung.
const HANG: Duration = Duration::from_secs(60);
/// Enough for the task's message, but not for the output of its turn.
const SOME_ROOM: u64 = 600 << 10;
/// What the log says of a turn that waits for room.
const STUCK: &str = "it is tried again";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_a_full_disk_refuses_writes_and_loses_nothing() {
    fills_and_clears(&SmallDisk::mounted(), Run::begin("disk-full")).await;
}

/// The same with a limit on file size, which SQLite reports as an I/O error, like a broken disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_a_limit_on_the_size_of_files_is_a_full_disk() {
    fills_and_clears(&SmallDisk::limited(), Run::begin("files-full")).await;
}

async fn fills_and_clears(disk: &SmallDisk, mut run: Run) {
    let server = disk.serve();
    let journal = Journal::default();
    assert_eq!(server.probe("/readyz").await, (200, "ready".to_owned()));
    let before = server.send(text("before", "echo before")).await;
    note(&journal, "before", &before);
    for n in 0..40 {
        assert!(taken(&server, &journal, &format!("before-{n}"), "echo before").await);
    }
    // A new process has an empty log: how much room there is, is known.
    assert!(server.terminate().success());
    let server = disk.serve();
    disk.fill(&server, SOME_ROOM);
    let stuck = a_turn_gets_stuck(&server, &journal, disk.more_than_half()).await;

    let stop = AtomicBool::new(false);
    let client = |number| keep_sending(&server, &journal, &stop, number);
    let story = async {
        until_says(&server, 503, "store full").await;
        assert_eq!(server.probe("/healthz").await, (200, "ok".to_owned()), "a restart would not help");
        every_face_is_refused(&server).await;
        reads_go_on(&server, &before).await;
        // A stream on a turn that waits for room is quiet, not broken.
        assert_eq!(server.get(&stuck).await["status"]["state"], "TASK_STATE_WORKING");
        let watched = server.post("SubscribeToTask", json!({"id": stuck["id"]})).await;
        // Each client has one message left: more would fill the disk again.
        stop.store(true, Ordering::Relaxed);
        disk.make_room(&server);
        let (since, watched) = (Instant::now(), watched.text().await.unwrap());
        let last = watched.lines().rfind(|line| line.starts_with("data:")).unwrap();
        assert!(last.contains("TASK_STATE_COMPLETED"), "{last}");
        until_says(&server, 200, "ready").await;
        let back = since.elapsed();
        note(&journal, "after", &server.send(text("after", "echo after")).await);
        back
    };
    let (one, two, three, four, back) = tokio::join!(client(1), client(2), client(3), client(4), story);
    let refused = one + two + three + four;
    assert!(refused > 0, "no send was ever refused");
    for task in all_tasks(&server).await {
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "what was taken is done: {task}");
    }

    drop(server); // SIGKILL
    let server = disk.serve();
    all_tasks(&server).await;
    drop(server);
    let stored = Stored::read(&disk.database()).await.unwrap();
    // It may be run again, and was not: a turn waits for room as long as it has to.
    let found = violations(&journal.entries(), &stored, Facts { rerunnable: &[], settled: true });
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(integrity(&disk.database()), "ok");
    run.figure("sends refused", refused);
    run.figure("acknowledged", journal.count(|entry| matches!(entry, Entry::Acked { .. })));
    run.figure("violations", 0);
    run.figure("service back after", format!("{:.2} s", back.as_secs_f64()));
    run.end();
}

fn note(journal: &Journal, message: &str, task: &Value) {
    journal.acked(message, task["id"].as_str().unwrap());
}

/// Every task of the store, once nothing works any more.
async fn all_tasks(server: &Served) -> Vec<Value> {
    let since = Instant::now();
    'again: loop {
        assert!(since.elapsed() < HANG, "tasks stay open\n{}", server.log());
        let (mut tasks, mut token) = (Vec::new(), String::new());
        loop {
            let page = server.call("ListTasks", json!({"pageSize": 100, "pageToken": token})).await;
            for task in page["tasks"].as_array().unwrap() {
                let state = task["status"]["state"].as_str().unwrap();
                if state == "TASK_STATE_SUBMITTED" || state == "TASK_STATE_WORKING" {
                    continue 'again;
                }
                tasks.push(task.clone());
            }
            token = page["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                return tasks;
            }
        }
    }
}

/// There is room for this message, and not for its echo.
async fn a_turn_gets_stuck(server: &Served, journal: &Journal, bytes: usize) -> Value {
    let task = server.start_task(text("stuck", &format!("echo {}", "x".repeat(bytes)))).await;
    note(journal, "stuck", &task);
    let since = Instant::now();
    while !server.log().contains(STUCK) {
        assert!(since.elapsed() < HANG, "there was room for it\n{}", server.log());
        server.get(&task).await;
    }
    task
}

/// A client that repeats each message until it is acknowledged. Returns how often it was refused.
async fn keep_sending(server: &Served, journal: &Journal, stop: &AtomicBool, client: u32) -> usize {
    let mut refused = 0;
    for sent in 0.. {
        let id = format!("client-{client}-{sent}");
        let words = if sent % 4 == 0 { "x".repeat(50_000) } else { id.clone() };
        while !taken(server, journal, &id, &format!("echo {words}")).await {
            refused += 1;
            tokio::time::sleep(Duration::from_millis(20)).await; // tidy: allow-sleep a client that was told to come back
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    refused
}

/// True if it was acknowledged; otherwise it must have been refused with the right error.
async fn taken(server: &Served, journal: &Journal, id: &str, words: &str) -> bool {
    let params = json!({"message": text(id, words), "configuration": {"returnImmediately": true}});
    let response = server.post("SendMessage", params).await;
    let (status, retry) = (response.status(), response.headers().get("retry-after").cloned());
    let body: Value = response.json().await.unwrap();
    if status == 200 {
        note(journal, id, &body["result"]["task"]);
        return true;
    }
    assert_eq!((status.as_u16(), &body["error"]["code"]), (503, &json!(-32050)), "{body}\n{}", server.log());
    assert!(retry.is_some_and(|seconds| seconds.to_str().unwrap().parse::<u32>().unwrap() > 0));
    assert_eq!(body["error"]["data"][0]["reason"], "RESOURCE_EXHAUSTED");
    false
}

/// The refusal in each generation and binding, with its own code.
async fn every_face_is_refused(server: &Served) {
    let client = reqwest::Client::new();
    let rpc =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let new = |id: &str| json!({"message": text(id, "echo"), "configuration": {"returnImmediately": true}});
    let old = |id: &str| {
        let parts = json!([{"kind": "text", "text": "echo"}]);
        let message = json!({"kind": "message", "messageId": id, "role": "user", "parts": parts});
        json!({"message": message, "configuration": {"blocking": false}})
    };
    let old_rest = |id: &str| {
        let message = json!({"messageId": id, "role": "ROLE_USER", "content": [{"text": "echo"}]});
        json!({"message": message, "configuration": {"blocking": false}})
    };
    let oldest = |id: &str| json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": "echo"}]}});
    // The store's files may have room for one more small task: then it is taken, and the next one is not.
    for attempt in 0.. {
        assert!(attempt < 100, "it is never refused\n{}", server.log());
        let id = |face: &str| format!("face-{attempt}-{face}");
        let asked = [
            ("/", None, rpc("message/send", old(&id("a"))), -32050),
            ("/", None, rpc("message/stream", old(&id("b"))), -32050),
            ("/", None, rpc("tasks/send", oldest(&id("c"))), -32003),
            ("/subscribe", None, rpc("tasks/sendSubscribe", oldest(&id("d"))), -32003),
            ("/message:send", Some("1.0"), new(&id("e")), 503),
            ("/message:stream", Some("1.0"), new(&id("f")), 503),
            ("/v1/message:send", None, old_rest(&id("g")), 503),
        ];
        let mut refused = 0;
        let faces = asked.len();
        for (path, version, body, code) in asked {
            let mut request = client.post(format!("{}{path}", server.url)).json(&body).timeout(HANG);
            if let Some(version) = version {
                request = request.header("A2A-Version", version);
            }
            let response = request.send().await.unwrap();
            if response.status() == 200 {
                // A stream, or a send that waits for its turn: taken, and not waited for.
                continue;
            }
            assert_eq!(response.status(), 503, "{path}");
            assert!(response.headers().contains_key("retry-after"), "{path}");
            let said: Value = response.json().await.unwrap();
            assert_eq!(said["error"]["code"], code, "{path} {body}: {said}");
            refused += 1;
        }
        if refused == faces {
            return;
        }
    }
}

async fn reads_go_on(server: &Served, before: &Value) {
    assert_eq!(server.get(before).await, *before);
    let list = server.call("ListTasks", json!({"pageSize": 100})).await;
    assert!(list["totalSize"].as_u64().unwrap() > 1);
    let card = format!("{}/.well-known/agent-card.json", server.url);
    assert_eq!(reqwest::get(card).await.unwrap().status(), 200);
    // The stored events of a task that has ended.
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": before["id"]}});
    let resumed =
        reqwest::Client::new().post(&server.url).header("A2A-Version", "1.0").header("Last-Event-ID", "1");
    let events = resumed.json(&body).timeout(HANG).send().await.unwrap().text().await.unwrap();
    assert!(events.contains("TASK_STATE_COMPLETED"), "{events}");
}

async fn until_says(server: &Served, status: u16, word: &str) {
    let since = Instant::now();
    while server.probe("/readyz").await != (status, word.to_owned()) {
        assert!(since.elapsed() < HANG, "it never says {word}\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await; // tidy: allow-sleep an answer stands for a second
    }
}

/// A start on a full disk prints one line, and does not damage the store.
#[tokio::test]
async fn a_start_on_a_full_disk_says_what_to_do() {
    let disk = SmallDisk::mounted();
    let server = disk.serve();
    let task = server.send(text("m-1", "echo kept")).await;
    disk.fill(&server, 0);
    let (code, said) = finished(&mut disk.crowded());
    assert_eq!(code, Some(1), "{said}");
    let told = ["--store", "other.db", "full", "make some room"];
    assert!(told.iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // Killed and started again while it is full: what is there can still be read.
    drop(server);
    let server = disk.serve();
    assert_eq!(server.get(&task).await, task);
}
