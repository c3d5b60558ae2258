//! `kill -9` under load, again and again, on the durable store. A journal on the clients' side says what was
//! acknowledged and seen; afterwards the store is opened and held against it.
//!
//! What this shows is order and recovery: commit before answer, idempotency, the crash rule. That commits are
//! synced is another test's matter: the page cache outlives a killed process.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baton_protocol::domain::{EventBody, Scope, TaskId};
use baton_protocol::wire::sse::SseParser;
use baton_server::store::sqlite::{Options, SqliteStore};
use baton_server::store::{Store, record};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::served::{Served, text};

const CLIENTS: u64 = 8;
/// How long anything may take before the test counts as hung.
const HANG: Duration = Duration::from_secs(60);

/// What the clients know.
#[derive(Default)]
pub(crate) struct Journal {
    /// Every task id a message was answered with.
    pub(crate) answered: HashMap<String, HashSet<String>>,
    /// Frames seen on streams: task, number, the result member as text.
    pub(crate) seen: Vec<(String, u64, String)>,
    retries: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_nothing_acknowledged_is_lost_by_kill_9() {
    let kills: u64 = std::env::var("BATON_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let seed = std::env::var("BATON_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64 | 1
    });
    println!("seed {seed} (BATON_SEED replays the moments of the kills)");
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("tasks.db");

    let journal = Arc::new(Mutex::new(Journal::default()));
    let stop = Arc::new(AtomicBool::new(false));
    let mut server = start(&database);
    let (address, listening) = watch::channel(server.url.clone());
    let next = Arc::new(AtomicU64::new(1));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let client = Client {
                http: reqwest::Client::new(),
                listening: listening.clone(),
                journal: Arc::clone(&journal),
                stop: Arc::clone(&stop),
                next: Arc::clone(&next),
            };
            tokio::spawn(client.work(seed.wrapping_mul(n + 1)))
        })
        .collect();

    let mut random = Random(seed);
    for _ in 0..kills {
        let before = next.load(Ordering::Relaxed);
        // Some load first, then a moment that the seed chooses.
        wait_until(|| next.load(Ordering::Relaxed) > before + 10).await;
        let moment = Duration::from_micros(random.below(60_000));
        tokio::time::sleep(moment).await; // tidy: allow-sleep the moment of the kill is what is random here
        drop(server); // SIGKILL
        server = start(&database);
        address.send(server.url.clone()).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        tokio::time::timeout(HANG, client).await.expect("no client hangs").unwrap();
    }
    let tasks = all_tasks(&server).await;
    drop(server);

    let journal = Arc::into_inner(journal).expect("the clients are gone").into_inner().unwrap();
    check(&database, &journal, &tasks).await;
    println!(
        "{kills} kills: {} messages acknowledged, {} tasks, {} frames seen, {} sends repeated; 0 lost, 0 doubled",
        journal.answered.len(),
        tasks.len(),
        journal.seen.len(),
        journal.retries
    );
    assert!(journal.answered.len() as u64 >= kills * 10, "too little load to show anything");
    assert!(journal.retries > 0, "no send was ever cut: the kills came at the wrong moments");
}

fn start(database: &Path) -> Served {
    let store = format!("sqlite:{}", database.display());
    Served::with(&["serve", "--listen", "127.0.0.1:0", "--store", &store])
}

async fn wait_until(condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < HANG, "the load stands still");
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await; // tidy: allow-sleep polling a counter
    }
}

struct Client {
    http: reqwest::Client,
    listening: watch::Receiver<String>,
    journal: Arc<Mutex<Journal>>,
    stop: Arc<AtomicBool>,
    next: Arc<AtomicU64>,
}

impl Client {
    async fn work(mut self, seed: u64) {
        let mut random = Random(seed | 1);
        while !self.stop.load(Ordering::Relaxed) {
            let id = format!("m{}", self.next.fetch_add(1, Ordering::Relaxed));
            let kind = random.below(3);
            // The same message until it is answered: what a careful client does when a connection breaks.
            while !self.attempt(&id, kind).await {
                self.journal.lock().unwrap().retries += 1;
                let moved = tokio::time::timeout(Duration::from_millis(50), self.listening.changed());
                let _ = moved.await;
            }
        }
    }

    async fn attempt(&self, id: &str, kind: u64) -> bool {
        let mut params = json!({"message": text(id, &format!("echo {id}"))});
        let method = match kind {
            0 => "SendMessage",
            1 => {
                params["configuration"] = json!({"returnImmediately": true});
                "SendMessage"
            }
            _ => "SendStreamingMessage",
        };
        let url = self.listening.borrow().clone();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request =
            self.http.post(url).header("A2A-Version", "1.0").json(&body).timeout(Duration::from_secs(20));
        let Ok(mut response) = request.send().await else { return false };
        if kind < 2 {
            let Ok(answer) = response.json::<Value>().await else { return false };
            let Some(task) = answer["result"]["task"]["id"].as_str() else { return false };
            self.answered(id, task);
            return true;
        }
        let mut parser = SseParser::new(1 << 20);
        let mut ended = false;
        while let Ok(Some(chunk)) = response.chunk().await {
            parser.feed(&chunk).unwrap();
            while let Some(event) = parser.next_event() {
                let frame: Value = serde_json::from_str(&event.data).unwrap();
                let result = &frame["result"];
                let number = event.id.as_deref().and_then(|id| id.parse().ok());
                let task = result["task"]["id"].as_str().or_else(|| {
                    let update = result.get("statusUpdate").or_else(|| result.get("artifactUpdate"))?;
                    update["taskId"].as_str()
                });
                let (Some(number), Some(task)) = (number, task) else { return false };
                self.answered(id, task);
                let state = &result["statusUpdate"]["status"]["state"];
                ended |= state == "TASK_STATE_COMPLETED" || state == "TASK_STATE_FAILED";
                if result.get("task").is_none() {
                    self.journal.lock().unwrap().seen.push((task.to_owned(), number, result.to_string()));
                }
            }
        }
        ended
    }

    fn answered(&self, message: &str, task: &str) {
        let mut journal = self.journal.lock().unwrap();
        journal.answered.entry(message.to_owned()).or_default().insert(task.to_owned());
    }
}

/// Every task of the store, once nothing works any more.
pub(crate) async fn all_tasks(server: &Served) -> Vec<Value> {
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

pub(crate) async fn check(database: &Path, journal: &Journal, tasks: &[Value]) {
    let store = SqliteStore::open(database, Options::default()).unwrap();
    let scope = Scope::new("default", "", "anonymous");

    // No messageId has two tasks: neither in the answers nor in the store.
    let mut by_message: HashMap<&str, Vec<&str>> = HashMap::new();
    for task in tasks {
        let message = task["history"][0]["messageId"].as_str().unwrap();
        by_message.entry(message).or_default().push(task["id"].as_str().unwrap());
    }
    for (message, tasks) in &by_message {
        assert_eq!(tasks.len(), 1, "{message} has several tasks: {tasks:?}");
    }
    for (message, answered) in &journal.answered {
        let stored =
            by_message.get(message.as_str()).unwrap_or_else(|| panic!("{message} was lost: {answered:?}"));
        let answered: Vec<_> = answered.iter().map(String::as_str).collect();
        assert_eq!(answered, *stored, "{message}");
    }

    // Logs without a gap, folding to an ended task; attempts counted one by one.
    let mut events: HashMap<(&str, u64), String> = HashMap::new();
    for task in tasks {
        let id = task["id"].as_str().unwrap();
        let task_id = TaskId::parse(id).unwrap();
        let loaded = store.load(&scope, &task_id).await.unwrap().unwrap();
        let folded = record::fold(&loaded).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(folded.state().is_terminal(), "{id} is {:?}", folded.state());
        let (mut numbers, mut attempts, mut after) = (Vec::new(), Vec::new(), 0);
        loop {
            let page = store.events(&scope, &task_id, after, 100).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.number;
            for event in page {
                numbers.push(event.number);
                if let EventBody::AttemptStarted { attempt, .. } = event.decode().unwrap().body {
                    attempts.push(attempt);
                }
                let json = serde_json::from_slice::<Value>(&event.json()).unwrap();
                events.insert((id, event.number), json.to_string());
            }
        }
        assert_eq!(numbers, (1..=folded.version).collect::<Vec<_>>(), "{id} has a gap");
        assert_eq!(attempts, (1..=attempts.len() as u32).collect::<Vec<_>>(), "{id}: attempts");
    }

    // Whatever a stream showed is in the log, under the same number and with the same content.
    for (task, number, frame) in &journal.seen {
        let stored = events.get(&(task.as_str(), *number));
        assert_eq!(stored, Some(frame), "{task} #{number} was shown, but the log does not have it");
    }
}

/// xorshift: all the randomness a moment needs, and it replays.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
