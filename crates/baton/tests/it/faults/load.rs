//! Clients as careful ones are: a message that was not answered is sent again as it was, a stream that broke is resumed
//! where it broke. What they are told goes into the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baton_protocol::wire::sse::SseParser;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::journal::{Entry, Journal};
use super::runs::{HANG, Random};
use crate::served::{Served, text};

/// One call may take as long as a turn and a restart.
const CALL: Duration = Duration::from_secs(20);
/// A client that finds nobody tries again after this, or when there is a new address.
const AGAIN: Duration = Duration::from_millis(50);

/// Several of these make the store fold its log.
const LARGE: usize = 40_000;

/// What a client may want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A task that ends at once.
    Echo,
    /// A task of many pages.
    Large,
    /// A task that asks; the answer ends it.
    Talk,
    /// A task that is canceled, with a message that comes while it is busy.
    Cancel,
    /// A task that ends at once, and a message to it that may come before the end.
    FollowUp,
    /// An answer without a task.
    Reply,
    /// A program that may not be run again.
    Once,
    /// A program that may.
    Again,
}

/// Everything, programs seldom: they cost a process each.
pub(crate) const ALL: &[Wish] = &[
    Wish::Echo,
    Wish::Echo,
    Wish::Echo,
    Wish::Echo,
    Wish::Echo,
    Wish::Echo,
    Wish::Talk,
    Wish::Talk,
    Wish::Reply,
    Wish::Cancel,
    Wish::FollowUp,
    Wish::Once,
    Wish::Again,
];

/// What the server does within its own process.
pub(crate) const WITHIN: &[Wish] =
    &[Wish::Echo, Wish::Echo, Wish::Echo, Wish::Talk, Wish::Reply, Wish::Cancel];

/// Clients at work.
pub(crate) struct Load {
    pub(crate) journal: Journal,
    address: watch::Sender<String>,
    stop: Arc<AtomicBool>,
    /// Messages begun, and calls that were cut.
    next: Arc<AtomicU64>,
    cut: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// They begin at once; what they find at the address is their own business.
    pub(crate) fn start(url: &str, clients: u64, seed: u64, wishes: &'static [Wish]) -> Self {
        let (address, listening) = watch::channel(url.to_owned());
        let (journal, stop) = (Journal::default(), Arc::new(AtomicBool::new(false)));
        let (next, cut, streams) =
            (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(1)));
        let clients = (1..=clients).map(|number| {
            let client = Client {
                http: reqwest::Client::new(),
                listening: listening.clone(),
                journal: journal.clone(),
                stop: Arc::clone(&stop),
                next: Arc::clone(&next),
                cut: Arc::clone(&cut),
                streams: Arc::clone(&streams),
                random: Random::new(seed.wrapping_mul(number)),
                name: seed % 10_000,
            };
            tokio::spawn(client.work(wishes))
        });
        let clients = clients.collect();
        Load { journal, address, stop, next, cut, clients }
    }

    /// The server is somewhere else now.
    pub(crate) fn moved(&self, server: &Served) {
        self.address.send(server.url.clone()).unwrap();
    }

    /// Waits for some more messages.
    pub(crate) async fn more(&self, messages: u64) {
        let (before, since) = (self.next.load(Ordering::Relaxed), Instant::now());
        while self.next.load(Ordering::Relaxed) < before + messages {
            assert!(since.elapsed() < HANG, "the load stands still");
            tokio::time::sleep(Duration::from_millis(1)).await; // tidy: allow-sleep polling a counter
        }
    }

    /// Calls that got no answer and were repeated.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Each client comes to the end of what it is at.
    pub(crate) async fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            tokio::time::timeout(HANG, client).await.expect("no client hangs").unwrap();
        }
    }
}

struct Client {
    http: reqwest::Client,
    listening: watch::Receiver<String>,
    journal: Journal,
    stop: Arc<AtomicBool>,
    next: Arc<AtomicU64>,
    cut: Arc<AtomicU64>,
    streams: Arc<AtomicU64>,
    random: Random,
    /// No two loads of a test have messages of the same id.
    name: u64,
}

/// Nobody answered, or not to the end.
struct Cut;

/// How a message is sent.
#[derive(Clone, Copy)]
enum Way {
    Blocking,
    Immediate,
    Stream,
    Rest,
}

impl Client {
    async fn work(mut self, wishes: &[Wish]) {
        while !self.stop.load(Ordering::Relaxed) {
            match *self.random.pick(wishes) {
                Wish::Echo => drop(self.task("demo", "echo ", None).await),
                Wish::Large => drop(self.task("demo", &format!("echo {} ", "x".repeat(LARGE)), None).await),
                Wish::Once => drop(self.program("once").await),
                Wish::Again => drop(self.program("again").await),
                Wish::Talk => {
                    let task = self.task("demo", "tck-input-required ", None).await;
                    self.task("demo", "Ada ", Some(&task)).await;
                }
                Wish::Reply => self.reply().await,
                Wish::Cancel => self.cancel().await,
                Wish::FollowUp => self.follow_up().await,
            }
        }
    }

    fn message(&self, words: &str, task: Option<&str>) -> (String, Value) {
        let id = format!("m{}-{}", self.name, self.next.fetch_add(1, Ordering::Relaxed));
        let mut message = text(&id, &format!("{words}{id}"));
        if let Some(task) = task {
            message["taskId"] = json!(task);
        }
        (id, message)
    }

    async fn program(&mut self, agent: &str) -> String {
        let words = if self.random.one_in(2) { "slow " } else { "quick " };
        self.task(agent, words, None).await
    }

    /// A message until it is acknowledged, and a stream until it has shown the turn's end. Answers the task.
    async fn task(&mut self, agent: &str, words: &str, task: Option<&str>) -> String {
        let (id, message) = self.message(words, task);
        let way = *self.random.pick(&[Way::Blocking, Way::Immediate, Way::Stream, Way::Rest]);
        let task = match way {
            Way::Stream => self.streamed(agent, &id, &message).await,
            way => self.sent(agent, &id, &message, way).await,
        };
        // Whoever answers a question waits until it is asked.
        if words.starts_with("tck-input-required") && !matches!(way, Way::Stream | Way::Blocking) {
            self.asked(agent, &task).await;
        }
        task
    }

    async fn sent(&mut self, agent: &str, id: &str, message: &Value, way: Way) -> String {
        let mut params = json!({"message": message});
        if matches!(way, Way::Immediate) {
            params["configuration"] = json!({"returnImmediately": true});
        }
        loop {
            self.journal.note(Entry::Sent { message: id.to_owned() });
            let answer = match way {
                Way::Rest => self.post(&format!("/{agent}/message:send"), &params).await,
                _ => self.call(agent, "SendMessage", &params).await,
            };
            if let Ok(answer) = answer {
                let Some(task) = answer["task"]["id"].as_str() else {
                    self.wait().await;
                    continue;
                };
                self.journal.acked(id, task);
                self.told(&answer["task"]["status"]["state"], task);
                return task.to_owned();
            }
            self.wait().await;
        }
    }

    /// A client that is told of an end notes it.
    fn told(&self, state: &Value, task: &str) {
        let state = state.as_str().unwrap_or_default();
        if ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|end| state.ends_with(end)) {
            self.journal.note(Entry::Ended { task: task.to_owned(), state: state.to_owned() });
        }
    }

    async fn asked(&mut self, agent: &str, task: &str) {
        loop {
            if let Ok(now) = self.call(agent, "GetTask", &json!({"id": task})).await
                && now["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            {
                return;
            }
            self.wait().await;
        }
    }

    async fn reply(&mut self) {
        let (id, message) = self.message("say ", None);
        loop {
            self.journal.note(Entry::Sent { message: id.clone() });
            let answer = self.call("answer", "SendMessage", &json!({"message": message})).await;
            if let Some(reply) =
                answer.ok().and_then(|answer| Some(answer["message"]["messageId"].as_str()?.to_owned()))
            {
                return self.journal.note(Entry::Replied { message: id, reply });
            }
            self.wait().await;
        }
    }

    async fn follow_up(&mut self) {
        // The program is surely busy when the message comes; the other may have ended, be ending, or have begun.
        let (agent, words) = if self.random.one_in(4) { ("again", "slow ") } else { ("demo", "echo ") };
        let (id, message) = self.message(words, None);
        let task = self.sent(agent, &id, &message, Way::Immediate).await;
        let (id, message) = self.message("and one more thing ", Some(&task));
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        loop {
            self.journal.note(Entry::Sent { message: id.clone() });
            let sent = self.request(agent, "SendMessage", &params).send().await;
            match self.whole(sent).await {
                Ok(answer) if answer["result"]["task"]["id"] == *task => {
                    return self.journal.note(Entry::Noted { message: id, task });
                }
                // Too late: the task had ended.
                Ok(answer) if answer["error"]["code"] == -32004 => return,
                _ => self.wait().await,
            }
        }
    }

    async fn cancel(&mut self) {
        let (id, message) = self.message("tck-cancel ", None);
        let task = self.sent("demo", &id, &message, Way::Immediate).await;
        let (id, message) = self.message("and one more thing ", Some(&task));
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        loop {
            self.journal.note(Entry::Sent { message: id.clone() });
            if let Ok(answer) = self.call("demo", "SendMessage", &params).await
                && answer["task"]["id"] == *task
            {
                self.journal.note(Entry::Noted { message: id.clone(), task: task.clone() });
                break;
            }
            self.wait().await;
        }
        loop {
            // Canceled before is refused: then the task says so.
            let _ = self.call("demo", "CancelTask", &json!({"id": task})).await;
            if let Ok(now) = self.call("demo", "GetTask", &json!({"id": task})).await
                && now["status"]["state"] == "TASK_STATE_CANCELED"
            {
                return self.told(&now["status"]["state"], &task);
            }
            self.wait().await;
        }
    }

    /// Sent, and resumed until the turn's end was shown.
    async fn streamed(&mut self, agent: &str, id: &str, message: &Value) -> String {
        let (mut task, mut last, mut over) = (None::<String>, 0, false);
        loop {
            let (method, params) = match &task {
                // A careful client knows by now what to ask for.
                Some(task) => ("SubscribeToTask", json!({"id": task})),
                None => ("SendStreamingMessage", json!({"message": message})),
            };
            let request = self.request(agent, method, &params);
            let request = match &task {
                Some(_) => request.header("Last-Event-ID", last),
                None => {
                    self.journal.note(Entry::Sent { message: id.to_owned() });
                    request
                }
            };
            let read = self.read(request, id, &mut task, &mut last, &mut over).await;
            if over && let Some(task) = &task {
                return task.clone();
            }
            if read.is_err() {
                self.cut.fetch_add(1, Ordering::Relaxed);
            }
            self.wait().await;
        }
    }

    /// One connection's worth of a stream.
    async fn read(
        &self,
        request: reqwest::RequestBuilder,
        id: &str,
        task: &mut Option<String>,
        last: &mut u64,
        over: &mut bool,
    ) -> Result<(), Cut> {
        let mut response = request.send().await.map_err(|_| Cut)?;
        if !is_stream(&response) {
            let answer: Value = response.json().await.map_err(|_| Cut)?;
            // Everything up to the end has been shown, which this client had not understood as an end.
            assert_ne!(answer["error"]["code"], -32004, "the end was shown, and not seen as one: {answer}");
            return Err(Cut);
        }
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        if let Some(task) = &task {
            self.journal.note(Entry::Opened { stream, task: task.clone(), after: *last });
        }
        let mut parser = SseParser::new(1 << 20);
        loop {
            let chunk = response.chunk().await.map_err(|_| Cut)?;
            let Some(chunk) = chunk else { break };
            parser.feed(&chunk).unwrap();
            while let Some(event) = parser.next_event() {
                let frame: Value = serde_json::from_str(&event.data).unwrap();
                let result = &frame["result"];
                let Some(number) = event.id.as_deref().and_then(|id| id.parse().ok()) else {
                    return Err(Cut);
                };
                if let Some(of) = result["task"]["id"].as_str() {
                    self.journal.acked(id, of);
                    self.journal.note(Entry::Opened { stream, task: of.to_owned(), after: number });
                    *task = Some(of.to_owned());
                } else {
                    self.journal.note(Entry::Seen { stream, number, json: result.to_string() });
                }
                *last = number;
                let state = &result["statusUpdate"]["status"]["state"];
                if let (Some(task), Some(state)) = (&task, state.as_str()) {
                    self.told(&json!(state), task);
                    *over |= !state.ends_with("WORKING") && !state.ends_with("SUBMITTED");
                }
            }
        }
        if *over {
            self.journal.note(Entry::Closed { stream });
        }
        Ok(())
    }

    fn request(&self, agent: &str, method: &str, params: &Value) -> reqwest::RequestBuilder {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let url = format!("{}/{agent}/", self.listening.borrow().as_str());
        self.http.post(url).header("A2A-Version", "1.0").json(&body).timeout(CALL)
    }

    async fn call(&self, agent: &str, method: &str, params: &Value) -> Result<Value, Cut> {
        let sent = self.request(agent, method, params).send().await;
        let mut answer = self.whole(sent).await?;
        Ok(answer["result"].take())
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Cut> {
        let url = format!("{}{path}", self.listening.borrow().as_str());
        let sent = self.http.post(url).header("A2A-Version", "1.0").json(body).timeout(CALL).send().await;
        self.whole(sent).await
    }

    async fn whole(&self, sent: Result<reqwest::Response, reqwest::Error>) -> Result<Value, Cut> {
        let cut = |_| {
            self.cut.fetch_add(1, Ordering::Relaxed);
            Cut
        };
        sent.map_err(cut)?.json().await.map_err(cut)
    }

    /// Until there may be somebody again.
    async fn wait(&mut self) {
        let _ = tokio::time::timeout(AGAIN, self.listening.changed()).await;
    }
}

fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get("content-type");
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
