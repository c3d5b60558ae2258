//! A receiver of webhooks that outlives the server: a plain socket, since it must answer late, half, or not at all.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_protocol::signature::webhook::{SignedHeaders, WebhookSecret, verify};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::checker::Entry;
use crate::faults::runs::Random;

/// The server has a bound for each host, and a port makes another host.
const PORTS: usize = 6;
const TOLERANCE: Duration = Duration::from_secs(300);

/// How the receiver treats the calls of one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    /// It takes every call at once.
    Quick,
    /// A third of the calls fail, in one way or another, and some take their time.
    Mixed,
    /// It fails every call, until the server gives up.
    Dead,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// 200, after so many milliseconds.
    Taken(u64),
    /// 200, and a body that comes byte by byte.
    Drip,
    /// 500
    Refused,
    /// The connection is reset once the call was read.
    Reset,
    /// The connection is closed once the call was read.
    Closed,
}

impl Answer {
    fn fails(self) -> bool {
        matches!(self, Answer::Refused | Answer::Reset | Answer::Closed)
    }
}

/// A cheap handle.
#[derive(Clone)]
pub(crate) struct Receiver {
    inbox: Arc<Mutex<Inbox>>,
    ports: Vec<SocketAddr>,
}

struct Inbox {
    entries: Vec<Entry>,
    hooks: Vec<(Temper, WebhookSecret)>,
    calls: u64,
    /// Calls that nothing was answered to yet, and the life of the server in which they were made.
    under_way: HashMap<u64, u64>,
    /// Each body once: a repeat has the same.
    bodies: HashSet<Arc<[u8]>>,
    random: Random,
    /// Connections from these ports tell a listener that a new life begins.
    heralds: HashSet<u16>,
    life: u64,
}

impl Receiver {
    pub(crate) async fn start(random: Random) -> Self {
        let inbox = Inbox {
            entries: Vec::new(),
            hooks: Vec::new(),
            calls: 0,
            under_way: HashMap::new(),
            bodies: HashSet::new(),
            random,
            heralds: HashSet::new(),
            life: 1,
        };
        let mut receiver = Receiver { inbox: Arc::new(Mutex::new(inbox)), ports: Vec::new() };
        for _ in 0..PORTS {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            receiver.ports.push(listener.local_addr().unwrap());
            tokio::spawn(listen(listener, Arc::clone(&receiver.inbox)));
        }
        receiver
    }

    /// Another webhook: its number, its address and its token.
    pub(crate) fn hook(&self, temper: Temper) -> (u64, String, String) {
        let mut inbox = self.inbox.lock().unwrap();
        let bytes: Vec<u8> = (0..4).flat_map(|_| inbox.random.next().to_be_bytes()).collect();
        let secret = WebhookSecret::new(bytes).unwrap();
        let (number, token) = (inbox.hooks.len() as u64, secret.to_text());
        inbox.hooks.push((temper, secret));
        (number, format!("http://{}/{number}", self.ports[number as usize % PORTS]), token)
    }

    /// The server is dead, and the next one not yet there. What is accepted from now on comes from the next one: a listener
    /// gives out connections in the order in which they were made, and each has seen a later one than those of the dead.
    pub(crate) async fn next_life(&self) {
        self.inbox.lock().unwrap().life += 1;
        for port in &self.ports {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
            self.inbox.lock().unwrap().heralds.insert(socket.local_addr().unwrap().port());
            let mut herald = socket.connect(*port).await.unwrap();
            assert_eq!(herald.read(&mut [0]).await.unwrap(), 0, "the listener closes it once it was seen");
        }
    }

    /// How many calls came in so far.
    pub(crate) fn calls(&self) -> u64 {
        self.inbox.lock().unwrap().calls
    }

    /// How many calls of this life have no answer yet.
    pub(crate) fn under_way(&self) -> usize {
        let inbox = self.inbox.lock().unwrap();
        inbox.under_way.values().filter(|life| **life == inbox.life).count()
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.inbox.lock().unwrap().entries.clone()
    }
}

async fn listen(listener: TcpListener, inbox: Arc<Mutex<Inbox>>) {
    let mut life = 1;
    loop {
        let (stream, from) = listener.accept().await.unwrap();
        if inbox.lock().unwrap().heralds.remove(&from.port()) {
            life += 1;
            continue;
        }
        tokio::spawn(converse(stream, life, Arc::clone(&inbox)));
    }
}

/// One connection. All that is on it is of one life.
async fn converse(mut stream: TcpStream, life: u64, inbox: Arc<Mutex<Inbox>>) {
    let mut buffer = Vec::new();
    while let Some(post) = read(&mut stream, &mut buffer).await {
        let (call, answer) = inbox.lock().unwrap().called(life, post);
        if let Answer::Taken(pause @ 1..) = answer {
            let pause = Duration::from_millis(pause);
            tokio::time::sleep(pause).await; // tidy: allow-sleep a receiver that takes its time is what is tested
        }
        // Before the answer: once it is out, the server may make the next call.
        inbox.lock().unwrap().over(call, answer);
        match answer {
            Answer::Taken(_) => {
                if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                    return;
                }
                inbox.lock().unwrap().entries.push(Entry::Accepted { call });
            }
            Answer::Drip => {
                if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n").await.is_err() {
                    return;
                }
                inbox.lock().unwrap().entries.push(Entry::Accepted { call });
                for byte in b"welcome\n" {
                    let pause = Duration::from_millis(2);
                    tokio::time::sleep(pause).await; // tidy: allow-sleep a body that drips is what is tested
                    if stream.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                }
            }
            Answer::Refused => {
                let refused = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";
                if stream.write_all(refused).await.is_err() {
                    return;
                }
            }
            Answer::Reset => return drop(stream.set_zero_linger()),
            Answer::Closed => return,
        }
    }
}

/// A call as it came.
struct Post {
    hook: u64,
    id: String,
    timestamp: String,
    signature: String,
    body: Vec<u8>,
}

/// `None` if the connection ends before a whole call has come.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Post> {
    let head = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head: Vec<u8> = buffer.drain(..end + 4).collect();
            break String::from_utf8(head).unwrap();
        }
        more(stream, buffer).await?;
    };
    let mut lines = head.lines();
    let path = lines.next().unwrap().strip_prefix("POST /").unwrap().split(' ').next().unwrap();
    let headers: HashMap<String, &str> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    let text = |name: &str| headers.get(name).copied().unwrap_or_default().to_owned();
    Some(Post {
        hook: path.parse().unwrap(),
        id: text("webhook-id"),
        timestamp: text("webhook-timestamp"),
        signature: text("webhook-signature"),
        body: buffer.drain(..length).collect(),
    })
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(buffer).await {
        Ok(1..) => Some(()),
        _ => None,
    }
}

impl Inbox {
    /// Notes a call, and chooses what becomes of it.
    fn called(&mut self, life: u64, post: Post) -> (u64, Answer) {
        let Post { hook, id, timestamp, signature, body } = post;
        let (temper, secret) = &self.hooks[hook as usize];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let headers = SignedHeaders { id: &id, timestamp: &timestamp, signature: &signature };
        let signed =
            verify([secret], &headers, &body, now, TOLERANCE).map(drop).map_err(|bad| bad.to_string());
        let answer = match temper {
            Temper::Quick => Answer::Taken(0),
            Temper::Mixed => *self.random.pick(&[
                Answer::Taken(0),
                Answer::Taken(0),
                Answer::Taken(0),
                Answer::Taken(0),
                Answer::Taken(5),
                Answer::Taken(40),
                Answer::Drip,
                Answer::Refused,
                Answer::Refused,
                Answer::Reset,
                Answer::Closed,
            ]),
            Temper::Dead => *self.random.pick(&[Answer::Refused, Answer::Reset, Answer::Closed]),
        };
        let body = match self.bodies.get(&body[..]) {
            Some(known) => Arc::clone(known),
            None => {
                let body: Arc<[u8]> = body.into();
                self.bodies.insert(Arc::clone(&body));
                body
            }
        };
        self.calls += 1;
        let call = self.calls;
        self.under_way.insert(call, life);
        self.entries.push(Entry::Called { call, hook, life, id, body, signed });
        (call, answer)
    }

    fn over(&mut self, call: u64, answer: Answer) {
        self.under_way.remove(&call);
        self.entries.push(Entry::Over { call, fails: answer.fails() });
    }
}
