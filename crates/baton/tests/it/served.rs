//! A served process and the calls a test makes to it.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::user::with_clean_environment;

/// Longer than any healthy step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A master key.
pub(crate) const MASTER_KEY: &str = "eKNJQC5x+hjYPoJk6mcGzslYX0hBg3R0F5xtbQzZ/0I=";

/// Names another binary to be tested: attacks are measured on a release build.
const ANOTHER: &str = "BATON_TESTED_BINARY";

/// The built binary with these arguments, untouched by the environment of whoever runs the tests.
pub(crate) fn baton(args: &[&str]) -> Command {
    let built = || env!("CARGO_BIN_EXE_baton").into();
    let command = Command::new(std::env::var_os(ANOTHER).unwrap_or_else(built));
    let mut command = with_clean_environment(command);
    command.args(args);
    command
}

/// Runs a command that should end by itself, and says how.
pub(crate) fn finished(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// A running server. It is killed when dropped, and what it logged is in every panic of a call.
pub(crate) struct Served {
    child: Child,
    pub(crate) welcome: String,
    pub(crate) url: String,
    log: Arc<Mutex<String>>,
    log_reader: Option<JoinHandle<()>>,
    client: reqwest::Client,
}

impl Served {
    /// The demo agent at a free port, with its tasks in memory.
    pub(crate) fn start() -> Self {
        Self::with(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"])
    }

    /// The same with gRPC.
    pub(crate) fn with_grpc() -> Self {
        Self::with(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--grpc"])
    }

    pub(crate) fn with(args: &[&str]) -> Self {
        Self::of(&mut baton(args))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        Self::unless_it_dies(command).unwrap_or_else(|(_, log)| panic!("no welcome:\n{log}"))
    }

    /// The same, for a process that may end before it serves: then how, and what it logged.
    pub(crate) fn unless_it_dies(command: &mut Command) -> Result<Self, (ExitStatus, String)> {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap();
        let (log, log_reader) = keep(child.stderr.take().unwrap());
        let lines = lines(child.stdout.take().unwrap());
        let client = reqwest::Client::new();
        let mut served = Served {
            child,
            welcome: String::new(),
            url: String::new(),
            log,
            log_reader: Some(log_reader),
            client,
        };
        while !served.welcome.contains("curl ") {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => served.welcome += &line,
                Err(RecvTimeoutError::Disconnected) => return Err(served.ended()),
                Err(error) => panic!("no welcome: {error}\n{}{}", served.welcome, served.log()),
            }
        }
        served.url = served.line("listening").to_owned();
        Ok(served)
    }

    /// Calls have this `Authorization`, unless they bring their own.
    pub(crate) fn authorized(mut self, credential: &str) -> Self {
        let headers = [(reqwest::header::AUTHORIZATION, credential.parse().unwrap())];
        self.client =
            reqwest::Client::builder().default_headers(headers.into_iter().collect()).build().unwrap();
        self
    }

    /// Has it ended by itself?
    pub(crate) fn is_gone(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The agent below a path of the server.
    pub(crate) fn at(&self, path: &str) -> Agent<'_> {
        Agent { server: self, url: format!("{}{path}/", self.url) }
    }

    /// What follows a label of the welcome text.
    pub(crate) fn line(&self, label: &str) -> &str {
        let found = self.welcome.lines().find_map(|line| line.trim().strip_prefix(label));
        found.unwrap_or_else(|| panic!("no {label} in {}", self.welcome)).trim()
    }

    /// The log once it holds these words: it comes by another pipe than the welcome.
    pub(crate) fn log_with(&self, words: &str) -> String {
        let since = Instant::now();
        loop {
            let log = self.log();
            // Whole lines only: the last one may still be on its way.
            if log.contains(words) && log.ends_with('\n') {
                return log;
            }
            assert!(since.elapsed() < PATIENCE, "no {words} in the log:\n{log}");
            thread::yield_now();
        }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal: `-HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.signal("-TERM");
        self.ended().0
    }

    /// Asks it to stop, for all that it has logged until its end.
    pub(crate) fn stop_and_log(self) -> String {
        self.signal("-TERM");
        let (status, log) = self.ended();
        assert!(status.success(), "{log}");
        log
    }

    /// Waits until it has ended, by itself; how, and what it logged.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let pid = self.pid().to_string();
        let (ended, end) = channel();
        let status = thread::scope(|scope| {
            scope.spawn(|| ended.send(self.child.wait().unwrap()));
            // A process that hangs must not hang the test.
            end.recv_timeout(PATIENCE).inspect_err(|_| {
                let _ = Command::new("kill").args(["-KILL", &pid]).status();
            })
        });
        let status = status.unwrap_or_else(|_| panic!("it did not stop\n{}", self.log()));
        if let Some(reader) = self.log_reader.take() {
            reader.join().unwrap();
        }
        (status, self.log())
    }

    /// What it says about itself: status and word.
    pub(crate) async fn probe(&self, path: &str) -> (u16, String) {
        let sent = self.client.get(format!("{}{path}", self.url)).timeout(PATIENCE).send().await;
        let answer = sent.unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.log()));
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// The card, as a client of no particular version gets it.
    pub(crate) async fn card(&self) -> Value {
        let url = format!("{}/.well-known/agent-card.json", self.url);
        let sent = self.client.get(url).timeout(PATIENCE).send().await;
        let response = sent.unwrap_or_else(|error| panic!("card: {error}\n{}", self.log()));
        assert_eq!(response.status(), 200, "{}", self.log());
        response.json().await.unwrap()
    }

    /// The response as it begins; a stream is still open then.
    pub(crate) async fn post(&self, method: &str, params: Value) -> reqwest::Response {
        self.post_to(&self.url, method, params).await
    }

    async fn post_to(&self, url: &str, method: &str, params: Value) -> reqwest::Response {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let sent = self.client.post(url).header("A2A-Version", "1.0").json(&request).timeout(PATIENCE);
        sent.send().await.unwrap_or_else(|error| panic!("{method}: {error}\n{}", self.log()))
    }

    /// The whole response to a call.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        self.post(method, params).await.json().await.unwrap()
    }

    /// The result of a call that must succeed.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let mut response = self.ask(method, params).await;
        assert!(response["result"].is_object(), "{method}: {response}\n{}", self.log());
        response["result"].take()
    }

    /// The same, with more headers.
    pub(crate) async fn call_with(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> Value {
        let mut response = self.ask_with(method, params, headers).await;
        assert!(response["result"].is_object(), "{method}: {response}\n{}", self.log());
        response["result"].take()
    }

    /// The whole response to a call with more headers.
    pub(crate) async fn ask_with(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut sent =
            self.client.post(&self.url).header("A2A-Version", "1.0").json(&request).timeout(PATIENCE);
        for (name, value) in headers {
            sent = sent.header(*name, *value);
        }
        sent.send().await.unwrap().json().await.unwrap()
    }

    /// Sends a message and waits for the task to end or to ask.
    pub(crate) async fn send(&self, message: Value) -> Value {
        self.call("SendMessage", json!({"message": message})).await["task"].take()
    }

    /// Sends a message without waiting for the work.
    pub(crate) async fn start_task(&self, message: Value) -> Value {
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.call("SendMessage", params).await["task"].take()
    }

    pub(crate) async fn get(&self, task: &Value) -> Value {
        self.call("GetTask", json!({"id": task["id"]})).await
    }

    pub(crate) async fn cancel(&self, task: &Value) -> Value {
        self.call("CancelTask", json!({"id": task["id"]})).await
    }

    /// Every event of a stream, up to its end.
    pub(crate) async fn stream(&self, method: &str, params: Value) -> Vec<Value> {
        let body = self.post(method, params).await.text().await.unwrap();
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].take()).collect()
    }

    pub(crate) async fn send_stream(&self, message: Value) -> Vec<Value> {
        self.stream("SendStreamingMessage", json!({"message": message})).await
    }

    /// The task once it has reached a state; every reading is a call, so a busy loop is kept polite by it.
    pub(crate) async fn until(&self, task: &Value, state: &str) -> Value {
        let since = Instant::now();
        loop {
            let now = self.get(task).await;
            if now["status"]["state"] == state {
                return now;
            }
            assert!(since.elapsed() < PATIENCE, "not {state}: {now}\n{}", self.log());
        }
    }
}

/// One of several agents of a server.
pub(crate) struct Agent<'a> {
    server: &'a Served,
    url: String,
}

impl Agent<'_> {
    pub(crate) async fn post(&self, method: &str, params: Value) -> reqwest::Response {
        self.server.post_to(&self.url, method, params).await
    }

    /// Sends a message and waits for the task to end or to ask.
    pub(crate) async fn send(&self, message: Value) -> Value {
        let mut response: Value =
            self.post("SendMessage", json!({"message": message})).await.json().await.unwrap();
        assert!(response["result"]["task"].is_object(), "{response}\n{}", self.server.log());
        response["result"]["task"].take()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A user's message with one text part.
pub(crate) fn text(id: &str, text: &str) -> Value {
    parts(id, json!([{"text": text}]))
}

pub(crate) fn parts(id: &str, parts: Value) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": parts})
}

/// The same message, sent to a task.
pub(crate) fn to(task: &Value, mut message: Value) -> Value {
    message["taskId"] = task["id"].clone();
    message
}

fn keep(mut from: impl Read + Send + 'static) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let kept = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&kept);
    let reader = thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            log.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    });
    (kept, reader)
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (said, heard) = channel();
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = String::new();
        while let Ok(1..) = from.read_line(&mut line) {
            // When nobody listens any more the pipe is still emptied, so that the process never blocks on it.
            let _ = said.send(std::mem::take(&mut line));
        }
    });
    heard
}
