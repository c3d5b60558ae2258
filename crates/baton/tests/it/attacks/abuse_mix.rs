//! T24: every kind of abuse at once, by strangers and by owners who authenticate, while other owners send, read, list and
//! watch, with large bodies and large answers, too. None of those may get an error, and memory stays bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::abusers::{self, Frames, Target, pace};
use super::owners::{Owners, basic, bearer};
use crate::faults::runs::{HANG, Run};
use crate::faults::sockets::{address, resident_kib};
use crate::served::{Served, baton, text};

/// What the server may have resident, whoever calls.
const MOST_KIB: u64 = 512 * 1024;

/// One owner abuses streams and answers, another requests and tasks, and the third does not finish its bodies.
const WATCHER: &str = "attacker-0";
const SENDER: &str = "attacker-1";
const HOLDER: &str = "attacker-2";
/// An honest owner with a password, for which others try wrong ones.
const USER: &str = "honest-0";

/// How many rounds the honest make between two with large messages.
const LARGE_EVERY: u64 = 10;

/// What happened to the honest.
#[derive(Default)]
struct Seen {
    took: Vec<Duration>,
    limited: u64,
    errors: Vec<String>,
}

struct Honest {
    url: String,
    name: String,
    credential: String,
    /// The text of its large message.
    large: String,
    client: reqwest::Client,
    seen: Seen,
}

impl Honest {
    fn new(server: &Served, n: u64, large: usize) -> Self {
        let name = format!("honest-{n}");
        let credential = if name == USER { basic(&name) } else { bearer(&name) };
        let (client, large) = (reqwest::Client::new(), "x".repeat(large));
        Honest { url: server.url.clone(), name, credential, large, client, seen: Seen::default() }
    }

    /// The text of an answer; `None` if there is none, for which there is an entry among the errors then.
    async fn call(&mut self, method: &str, params: Value) -> Option<String> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self.client.post(&self.url).header("A2A-Version", "1.0").json(&body).timeout(HANG);
        let request = request.header("Authorization", &self.credential);
        let since = Instant::now();
        let answered = async {
            let answer = request.send().await?;
            reqwest::Result::Ok((answer.status().as_u16(), answer.text().await?))
        };
        let answered = answered.await;
        self.seen.took.push(since.elapsed());
        match answered {
            Ok((200, text)) => return Some(text),
            Ok((429, _)) => self.seen.limited += 1,
            other => self.wrong(method, &format!("{other:?}")),
        }
        None
    }

    fn wrong(&mut self, method: &str, what: &str) {
        let what: String = what.chars().take(500).collect();
        self.seen.errors.push(format!("{} {method}: {what}", self.name));
    }

    async fn result(&mut self, method: &str, params: Value) -> Option<Value> {
        let text = self.call(method, params).await?;
        let mut answer: Value = serde_json::from_str(&text).unwrap_or_default();
        if answer["result"].is_object() {
            return Some(answer["result"].take());
        }
        self.wrong(method, &text);
        None
    }

    /// Sends a large message, or the same once more, and reads the large task. The room for both is shared with those who
    /// abuse it, and this owner never has much of it: it must not be refused.
    async fn send_and_read_large(&mut self) {
        let message = json!({"message": text("tck-reject-task-large", &self.large)});
        let Some(sent) = self.result("SendMessage", message).await else {
            return self.wrong("SendMessage", "a large message was not taken");
        };
        let id = sent["task"]["id"].clone();
        match self.result("GetTask", json!({"id": id})).await {
            Some(task) if task["history"][0]["parts"][0]["text"] == self.large.as_str() => {}
            _ => self.wrong("GetTask", "a large task was not shown"),
        }
    }

    /// Sends, gets, lists and streams until it is over. It sees its own tasks, all of them, and no others.
    async fn work(mut self, over: Arc<AtomicBool>) -> Seen {
        let (mut own, mut pace) = (0_u64, pace(200));
        for n in 0_u64.. {
            pace.tick().await;
            if over.load(Ordering::SeqCst) {
                break;
            }
            if n.is_multiple_of(LARGE_EVERY) {
                self.send_and_read_large().await;
                own += u64::from(n == 0);
            }
            let message = |kind: &str| json!({"message": text(&format!("{kind}-{n}"), "Hello, Baton")});
            if let Some(sent) = self.result("SendMessage", message("send")).await {
                own += 1;
                let id = &sent["task"]["id"];
                if sent["task"]["status"]["state"] != "TASK_STATE_COMPLETED" {
                    self.wrong("SendMessage", &sent.to_string());
                }
                match self.result("GetTask", json!({"id": id})).await {
                    Some(task) if task["id"] != *id => self.wrong("GetTask", &task.to_string()),
                    _ => {}
                }
            }
            if let Some(events) = self.call("SendStreamingMessage", message("stream")).await {
                own += 1;
                if !events.contains("TASK_STATE_COMPLETED") {
                    self.wrong("SendStreamingMessage", &events);
                }
            }
            match self.result("ListTasks", json!({"pageSize": 5})).await {
                Some(page) if page["totalSize"] != own => {
                    self.wrong("ListTasks", &page["totalSize"].to_string())
                }
                _ => {}
            }
        }
        self.seen
    }
}

/// Everybody who abuses. In the test command they are few and slow: a dev build needs seconds for some of it.
fn abuse(target: &Arc<Target>, endless: &Value, large: &Value, run: &Run) -> JoinSet<()> {
    let mut abuse = JoinSet::new();
    let (flood_pace, guess_pace) = (run.count(500, 50), run.count(200, 20));
    let bytes = run.count(300_000, 3_900_000) as usize;
    for frames in Frames::ALL {
        let target = Arc::clone(target);
        abuse.spawn(async move { abusers::floods(&target, frames, &bearer(SENDER), flood_pace).await });
    }
    for n in 0..run.count(20, 400) {
        let target = Arc::clone(target);
        let credential = n.is_multiple_of(4).then(|| bearer(SENDER));
        abuse.spawn(async move { abusers::trickles(&target, credential.as_deref()).await });
    }
    for _ in 0..run.count(1, 4) {
        let target = Arc::clone(target);
        abuse.spawn(async move { abusers::large_json(&target, &bearer(SENDER), bytes).await });
    }
    for n in 0..run.count(1, 16) {
        let target = Arc::clone(target);
        abuse.spawn(async move { abusers::failed_authentication(&target, USER, n, guess_pace).await });
    }
    for n in 0..run.count(2, 4) {
        let target = Arc::clone(target);
        abuse.spawn(async move { abusers::endless_tasks(&target, &bearer(SENDER), n).await });
    }
    for _ in 0..run.count(12, 70) {
        let target = Arc::clone(target);
        let bytes = run.count(900_000, 4_000_000) as usize;
        abuse.spawn(async move { abusers::held_bodies(&target, &bearer(HOLDER), bytes).await });
    }
    for _ in 0..run.count(15, 150) {
        let (target, endless) = (Arc::clone(target), endless.clone());
        abuse.spawn(async move { abusers::streams(&target, &bearer(WATCHER), &endless).await });
    }
    for _ in 0..run.count(6, 100) {
        let (target, large) = (Arc::clone(target), large.clone());
        abuse.spawn(async move { abusers::unread(&target, &bearer(WATCHER), &large).await });
    }
    abuse
}

fn serve(run: &Run, owners: &Owners, store: &str) -> Served {
    let config = owners.config();
    let mut command = baton(&["serve", "--listen", "127.0.0.1:0", "--store", store, "--config", &config]);
    command.env("BATON_DRAIN", "2s");
    if !run.full {
        // So low that they are reached within seconds.
        command.env("BATON_LIMITS_OWNER_RUNNING", "8").env("BATON_LIMITS_OWNER_QUEUED", "20");
        command.env("BATON_CONNECTIONS_MAX_STREAMS_PER_OWNER", "10");
        command.env("BATON_CONNECTIONS_MAX_BODIES", "8MiB").env("BATON_CONNECTIONS_MAX_ANSWERS", "16MiB");
    }
    Served::of(&mut command).authorized(&bearer(WATCHER))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s16_s22_honest_owners_are_served_while_others_abuse_the_server() {
    let mut run = Run::begin("abuse-mix");
    let honest = run.count(4, 20);
    let length = Duration::from_secs(run.count(3, 60));
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let names: Vec<String> = (1..honest).map(|n| format!("honest-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain([WATCHER, SENDER, HOLDER]).collect();
    let owners = Owners::new(&names).with_password(USER).with_all_schemes();
    let server = serve(&run, &owners, &store);
    let endless = server.start_task(text("endless", "wait until I cancel")).await;
    let params = json!({"message": text("tck-reject-task-large", &"x".repeat(3_900_000)),
        "configuration": {"historyLength": 0}});
    let large = server.call("SendMessage", params).await["task"].take();
    let target = Arc::new(Target::new(address(&server)));

    let mut abuse = abuse(&target, &endless, &large, &run);
    let (over, mut working) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for n in 0..honest {
        let large = run.count(300_000, 1_800_000) as usize;
        working.spawn(Honest::new(&server, n, large).work(Arc::clone(&over)));
    }
    let (since, mut most, mut pace) = (Instant::now(), 0, pace(100));
    // On a slow machine longer, until the limits are reached.
    let refused = |what: &&str| target.answers(what).contains_key(&429);
    while since.elapsed() < length || !["endless tasks", "streams", "held bodies"].iter().all(refused) {
        pace.tick().await;
        most = most.max(resident_kib(server.pid()));
        assert!(since.elapsed() < HANG, "limits of an owner were not reached\n{}", server.log());
    }
    over.store(true, Ordering::SeqCst);
    let seen =
        tokio::time::timeout(HANG, working.join_all()).await.expect("the honest are served to the end");
    abuse.shutdown().await;
    assert_eq!(server.probe("/healthz").await.0, 200);
    server.call("GetTask", json!({"id": endless["id"], "historyLength": 0})).await;
    let log = server.stop_and_log();

    let errors: Vec<&String> = seen.iter().flat_map(|seen| &seen.errors).collect();
    let mut took: Vec<Duration> = seen.iter().flat_map(|seen| seen.took.iter().copied()).collect();
    took.sort_unstable();
    run.figure("honest owners", honest);
    run.figure("their calls", took.len());
    run.figure("errors", errors.len());
    run.figure("refused by their own limits", seen.iter().map(|seen| seen.limited).sum::<u64>());
    let milliseconds = |part: usize| format!("{:.1} ms", took[took.len() * part / 100].as_secs_f64() * 1e3);
    run.figure("p50", milliseconds(50));
    run.figure("p99", milliseconds(99));
    for what in ["HTTP/2 floods", "slow requests", "unread answers"] {
        run.figure(what, target.answers(what).values().sum::<u64>());
    }
    let mut unexpected = Vec::new();
    for (what, expected) in [
        ("large JSON", &[200, 400, 413][..]),
        ("failed authentication", &[401, 429]),
        ("endless tasks", &[200, 429]),
        ("streams", &[200, 429]),
        ("held bodies", &[408, 429]),
    ] {
        let answers = target.answers(what);
        let listed: Vec<_> = answers.iter().map(|(status, count)| format!("{count} × {status}")).collect();
        run.figure(what, listed.join(", "));
        let others = answers.keys().filter(|status| !expected.contains(status));
        unexpected.extend(others.map(|status| format!("{what}: {status}")));
        assert!(!answers.is_empty(), "{what}: nothing was put to the test");
    }
    run.figure("most resident", format!("{:.0} MiB", most as f64 / 1024.0));
    run.figure("lines in the log", log.lines().count());
    let panics = log.lines().filter(|line| line.contains("panicked")).count();
    run.figure("panics", panics);
    run.end();
    assert!(errors.is_empty(), "{} errors, the first: {:?}", errors.len(), &errors[..errors.len().min(5)]);
    assert!(seen.iter().all(|seen| seen.took.len() as u64 > seen.limited), "each was served");
    assert_eq!(unexpected, Vec::<String>::new());
    assert!(most < MOST_KIB, "{most} KiB resident; {MOST_KIB} are allowed");
    assert_eq!(panics, 0, "{log}");
}
