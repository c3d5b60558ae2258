use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use baton_protocol::domain::security::SecurityScheme;
use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::auth::{
    ApiKeys, AuthRequest, Chain, IssuedKeys, KeySet, MAX_KEYS, NewKey, Refusal, Scheme, Scopes, Verdict,
};
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::store::sqlite::{self, SqliteStore};
use baton_server::{AgentError, Server, Turn};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::faults::runs::Random;

use super::LEAKED;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StoreKind {
    Memory,
    Sqlite,
}

/// What the server tells by its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Leak {
    None,
    /// Takes longer for ids that exist.
    Ids,
    /// Takes longer, the more characters of a key are right.
    Keys,
}

/// Tasks of the other owner, and as many unknown ids: a single one would be measured with warm caches.
const IDS: usize = 64;

const CHOSEN: &str = "a-secret-that-the-operator-chose";

/// A server in this process, on threads of its own.
pub(super) struct Stage {
    address: SocketAddr,
    /// Keys of the other owner and of the caller.
    other_key: String,
    key: String,
    /// Tasks of the other owner.
    tasks: Vec<String>,
    _folder: Option<tempfile::TempDir>,
    _stop: oneshot::Sender<()>,
}

async fn echo(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("echo", turn.text()).await?;
    Ok(())
}

impl Stage {
    pub(super) fn start(store: StoreKind, leak: Leak) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (server, keys, folder) = build(store, leak).await;
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                started.send((address, keys, folder)).unwrap();
                let stopped = async {
                    let _ = stopped.await;
                };
                server.serve_until(listener, stopped).await.unwrap();
            });
        });
        let (address, [other_key, key], _folder) = start.recv().unwrap();
        let mut stage = Stage { address, other_key, key, tasks: Vec::new(), _folder, _stop: stop };
        let owners = [(stage.other_key.clone(), IDS), (stage.key.clone(), 1)];
        for (key, count) in owners {
            let made: Vec<_> = (0..count).map(|n| stage.send(&key, n)).collect();
            if count == IDS {
                stage.tasks = made;
            }
        }
        stage
    }

    /// Makes a task and answers its id.
    fn send(&self, key: &str, number: usize) -> String {
        let message =
            json!({"messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": [{"text": "hello"}]});
        let body = json!({"message": message}).to_string();
        let request = format!(
            "POST /message:send HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\nx-api-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut wire = Wire::connect(self);
        let answer = wire.exchange(request.as_bytes()).to_owned();
        let answer = String::from_utf8(answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        body["task"]["id"].as_str().unwrap_or_else(|| panic!("no task: {body}")).to_owned()
    }

    pub(super) fn foreign_and_unknown(&self) -> [Vec<Vec<u8>>; 2] {
        let unknown = |id: &String| {
            // Another last character: the same form, and nobody's.
            let (start, last) = id.split_at(id.len() - 1);
            let last = if last == "0" { "1" } else { "0" };
            format!("{start}{last}")
        };
        let unknown: Vec<String> =
            self.tasks.iter().map(unknown).filter(|id| !self.tasks.contains(id)).collect();
        let get = |id: &String| get(id, &self.key);
        [self.tasks.iter().map(get).collect(), unknown.iter().map(get).collect()]
    }

    pub(super) fn issued_key_wrong_at_both_ends(&self) -> [Vec<Vec<u8>>; 2] {
        // `bk_`, eight public characters and `_` come before the secret.
        self.wrong_at(&self.other_key, [12, self.other_key.len() - 1])
    }

    pub(super) fn chosen_key_wrong_at_both_ends(&self) -> [Vec<Vec<u8>>; 2] {
        self.wrong_at(CHOSEN, [0, CHOSEN.len() - 1])
    }

    fn wrong_at(&self, key: &str, places: [usize; 2]) -> [Vec<Vec<u8>>; 2] {
        let digits = ["x", "y", "z", "0", "1", "2"];
        places.map(|at| {
            let wrong = digits.iter().filter(|digit| !key[at..].starts_with(**digit));
            wrong
                .map(|digit| get(&self.tasks[0], &format!("{}{digit}{}", &key[..at], &key[at + 1..])))
                .collect()
        })
    }

    pub(super) fn known_and_unknown_key(&self) -> [Vec<Vec<u8>>; 2] {
        let (known, secret) = (&self.other_key[3..11], "x".repeat(43));
        let of = |id: &str| vec![get(&self.tasks[0], &format!("bk_{id}_{secret}"))];
        [of(known), of("nosuchid")]
    }
}

fn get(id: &str, key: &str) -> Vec<u8> {
    let head = "host: localhost\r\na2a-version: 1.0";
    format!("GET /tasks/{id} HTTP/1.1\r\n{head}\r\nx-api-key: {key}\r\n\r\n").into_bytes()
}

async fn build(store: StoreKind, leak: Leak) -> (Server, [String; 2], Option<tempfile::TempDir>) {
    let (store, folder): (Arc<dyn Store>, _) = match store {
        StoreKind::Memory => (Arc::new(MemoryStore::new()), None),
        StoreKind::Sqlite => {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("tasks.db");
            (Arc::new(SqliteStore::open(&path, sqlite::Options::default()).unwrap()), Some(folder))
        }
    };
    let set = Arc::new(KeySet::new().unwrap());
    set.add_chosen(CHOSEN, "chosen", "operator", Scopes::default()).unwrap();
    let issued = IssuedKeys::open(Arc::clone(&store), Arc::clone(&set), MAX_KEYS).await.unwrap();
    let mut keys = Vec::new();
    for owner in ["ann", "bob"] {
        let (name, owner) = (owner.to_owned(), owner.to_owned());
        let new = NewKey { name, owner, scopes: Vec::new(), expires_at: None };
        keys.push(issued.issue(new).await.unwrap().1.expose_secret().to_owned());
    }
    let leaky = Leaky {
        keys: ApiKeys::header("X-API-Key", set).unwrap(),
        leak,
        known_key: keys[0].clone(),
        store: Arc::clone(&store),
    };
    let card = AgentCard::new("timed", "An agent for measurements", "1.0.0");
    let builder = Server::builder(card).task_skill(AgentSkill::new("echo", "echo", "echo"), echo);
    let server = builder.auth(Chain::new().scheme("apiKey", leaky)).store(store).build().await.unwrap();
    (server, [keys.remove(0), keys.remove(0)], folder)
}

/// API keys as they are, and on wish a leak that somebody could have written.
#[derive(Debug)]
struct Leaky {
    keys: ApiKeys,
    leak: Leak,
    known_key: String,
    store: Arc<dyn Store>,
}

#[async_trait]
impl Scheme for Leaky {
    fn declared(&self) -> SecurityScheme {
        self.keys.declared()
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        match self.leak {
            Leak::None => {}
            // Does a task with this id exist, whoever owns it?
            Leak::Ids => {
                let id = request.uri.path().rsplit('/').next().unwrap_or_default();
                let id = baton_protocol::domain::TaskId::parse(id).unwrap();
                let ann = baton_protocol::domain::Scope::new("default", "", "ann");
                if self.store.head(&ann, &id).await.unwrap().is_some() {
                    spend(LEAKED);
                }
            }
            // A comparison that stops at the first difference; slow enough for a few characters to be measured.
            Leak::Keys => {
                let given = request.headers.get("x-api-key").map(|key| key.as_bytes()).unwrap_or_default();
                let right =
                    given.iter().zip(self.known_key.bytes()).take_while(|(one, other)| **one == *other);
                spend(LEAKED * right.count() as u32 / 43);
            }
        }
        self.keys.verify(request).await
    }

    fn challenge(&self, refused: Option<&Refusal>) -> Option<http::HeaderValue> {
        self.keys.challenge(refused)
    }
}

fn spend(time: Duration) {
    let since = Instant::now();
    while since.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// One connection, with calls one after the other.
pub(super) struct Wire {
    socket: TcpStream,
    answer: Vec<u8>,
}

impl Wire {
    pub(super) fn connect(stage: &Stage) -> Self {
        let socket = TcpStream::connect(stage.address).unwrap();
        socket.set_nodelay(true).unwrap();
        Wire { socket, answer: Vec::new() }
    }

    /// Times of so many calls of each kind, in pairs of random order. All answers must be the same but for ids and dates.
    pub(super) fn measure(
        &mut self,
        both: &[Vec<Vec<u8>>; 2],
        calls: usize,
        random: &mut Random,
    ) -> [Vec<Duration>; 2] {
        let mut times = [Vec::with_capacity(calls), Vec::with_capacity(calls)];
        let mut seen: Option<String> = None;
        for _ in 0..calls {
            let first = random.below(2) as usize;
            for kind in [first, 1 - first] {
                let request = random.pick(&both[kind]);
                let since = Instant::now();
                let answer = self.exchange(request);
                times[kind].push(since.elapsed());
                let shown = without_ids(answer);
                assert_eq!(*seen.get_or_insert_with(|| shown.clone()), shown);
            }
        }
        times
    }

    fn exchange(&mut self, request: &[u8]) -> &[u8] {
        self.socket.write_all(request).unwrap();
        self.answer.clear();
        let mut some = [0; 4096];
        loop {
            let read = self.socket.read(&mut some).unwrap();
            assert!(read > 0, "it hung up: {}", String::from_utf8_lossy(&self.answer));
            self.answer.extend_from_slice(&some[..read]);
            let Some(end) = self.answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&self.answer[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if self.answer.len() == end + 4 + length.trim().parse::<usize>().unwrap() {
                return &self.answer;
            }
        }
    }
}

/// The answer without its date and without ids: its own, and the one that the caller named.
fn without_ids(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let is_its_own = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.starts_with("date:") || line.starts_with("x-request-id:")
    };
    let mut shown = String::new();
    for line in text.lines().filter(|line| !is_its_own(line)) {
        let is_in_id = |char: char| char.is_ascii_hexdigit() || char == '-';
        for word in line.split_inclusive(|char| !is_in_id(char)) {
            let end = word.trim_end_matches(|char| !is_in_id(char));
            shown.push_str(if end.len() == 36 { "<id>" } else { word });
        }
        shown.push('\n');
    }
    shown
}
