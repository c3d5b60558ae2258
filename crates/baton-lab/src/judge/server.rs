//! The sockets of the scripted agents: one listener for all scripts, and another one that is a foreign origin.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::card;
use super::heard::{Heard, Place, understand};
use super::play::{self, Addresses, Reply};
use super::script::{Credential, Script};
use super::stage::{MOST_HEARD, ScriptState};
use super::variant::Variant;
use crate::wire::Received;
use crate::wire::evidence::shown;

const MOST_CONNECTIONS: usize = 256;
const MOST_BODY: usize = 4 * 1024 * 1024;
/// Pause between the pieces of a stream, so that each is sent on its own.
const PAUSE: Duration = Duration::from_millis(4);

type Key = (Variant, &'static str);
type Body = UnsyncBoxBody<Bytes, io::Error>;

#[derive(Debug)]
pub(super) struct ScriptServer {
    pub(super) home: String,
    foreign: String,
    down: String,
    /// Bound, but never listening: connections to it are refused, and no other process can take the port.
    _nobody: TcpSocket,
    stages: BTreeMap<Key, Mutex<ScriptState>>,
    /// The script whose card is at the root, for clients that look only there.
    root: Mutex<Option<Key>>,
    last: Mutex<Option<Instant>>,
    stop: CancellationToken,
    connections: TaskTracker,
}

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts serving.
pub(super) async fn open(
    listener: TcpListener,
    plays: impl IntoIterator<Item = (Variant, &'static Script)>,
) -> io::Result<Arc<ScriptServer>> {
    let address = listener.local_addr()?;
    let other = TcpListener::bind(SocketAddr::new(address.ip(), 0)).await?;
    let nobody = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    nobody.bind(SocketAddr::new(address.ip(), 0))?;
    let stages: BTreeMap<Key, Mutex<ScriptState>> = plays
        .into_iter()
        .map(|(variant, script)| ((variant, script.name), Mutex::new(ScriptState::new(variant, script))))
        .collect();
    let root = if stages.len() == 1 { stages.keys().next().copied() } else { None };
    let running = Arc::new(ScriptServer {
        home: format!("http://{}", reachable(address)),
        foreign: format!("http://{}", reachable(other.local_addr()?)),
        down: format!("http://{}", reachable(nobody.local_addr()?)),
        _nobody: nobody,
        stages,
        root: Mutex::new(root),
        last: Mutex::default(),
        stop: CancellationToken::new(),
        connections: TaskTracker::new(),
    });
    for (listener, foreign) in [(listener, false), (other, true)] {
        running.connections.spawn(accept(Arc::clone(&running), listener, foreign));
    }
    Ok(running)
}

/// An address that can be connected to from this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            [127, 0, 0, 1].into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

async fn accept(running: Arc<ScriptServer>, listener: TcpListener, foreign: bool) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let permit = Arc::clone(&room).acquire_owned().await;
        let socket = tokio::select! {
            accepted = listener.accept() => accepted,
            () = running.stop.cancelled() => return,
        };
        let Ok((socket, _)) = socket else {
            // Out of file descriptors, or a connection that was closed immediately.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        // Small pieces must not be delayed by Nagle's algorithm.
        let _ = socket.set_nodelay(true);
        let served = Arc::clone(&running);
        running.connections.spawn(async move {
            let service = service_fn(|request| serve(Arc::clone(&served), request, foreign));
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            tokio::select! {
                // Some scripts break the connection; otherwise the client may close it.
                _ = connection => {}
                () = served.stop.cancelled() => {}
            }
            drop(permit);
        });
    }
}

/// An error makes hyper close the connection.
async fn serve(
    running: Arc<ScriptServer>,
    request: Request<Incoming>,
    foreign: bool,
) -> Result<Response<Body>, io::Error> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let body = Limited::new(body, MOST_BODY).collect().await;
    let Ok(body) = body.map(|body| body.to_bytes()) else { return Ok(plain(413, "this is too long\n")) };
    *held(&running.last) = Some(Instant::now());
    let method = head.method.to_string();
    let Some((key, below)) = running.find(&target) else { return Ok(running.front_page(&target)) };
    let Some(stage) = running.stages.get(&key) else { return Ok(plain(404, "no such script\n")) };
    let host =
        headers.iter().find(|(name, _)| name == "host").map(|(_, value)| value.clone()).unwrap_or_default();
    let heard = Heard {
        at: Instant::now(),
        method,
        place: place(below),
        target: target.clone(),
        host: host.clone(),
        headers,
        json: serde_json::from_slice(&body).ok(),
        body: body.to_vec(),
        foreign,
        call: None,
        late: false,
        answer: None,
    };
    respond(running.played(stage, heard, &host)).map_err(|()| io::Error::other("closed as the script says"))
}

fn place(below: &str) -> Place {
    let path = below.split('?').next().unwrap_or_default();
    match path {
        "/.well-known/agent-card.json" | "/.well-known/agent.json" => {
            Place::Card(path.rsplit('/').next().unwrap_or_default().to_owned())
        }
        _ => {
            let below = below.strip_prefix('/').unwrap_or(below);
            let end = below.find(['/', '?']).unwrap_or(below.len());
            let (name, rest) = below.split_at(end);
            let known = [card::INTERFACE, card::SECOND, card::FUTURE, card::PIGEON, card::MOVED];
            if known.contains(&name) {
                Place::Door { name: name.to_owned(), rest: rest.to_owned() }
            } else {
                Place::Elsewhere
            }
        }
    }
}

impl ScriptServer {
    /// The script that an address belongs to, and the rest of the path.
    fn find<'a>(&self, target: &'a str) -> Option<(Key, &'a str)> {
        if target.starts_with("/.well-known/") {
            return held(&self.root).map(|key| (key, target));
        }
        let (variant, rest) = target.strip_prefix('/')?.split_once('/')?;
        let variant = Variant::named(variant)?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let script = Script::named(&rest[..end])?;
        Some(((variant, script.name), &rest[end..]))
    }

    /// Records the request, answers it, and records the answer.
    fn played(&self, stage: &Mutex<ScriptState>, mut heard: Heard, host: &str) -> Reply {
        let mut stage = held(stage);
        let stage = &mut *stage;
        if let Place::Door { rest, .. } = &heard.place {
            heard.call = understand(stage.variant, &heard, rest, card::tenant(stage.script));
            heard.late = stage.is_late(&heard);
        }
        let usable = |c: char| c.is_ascii_alphanumeric() || ".:-[]".contains(c);
        let origin = if host.is_empty() || heard.foreign || !host.chars().all(usable) {
            self.home.clone()
        } else {
            format!("http://{host}")
        };
        let path = format!("/{}/{}", stage.variant, stage.script.name);
        let addresses = Addresses {
            base: &format!("{origin}{path}"),
            foreign: &format!("{}{path}", self.foreign),
            down: &self.down,
        };
        let reply = play::answer(stage, &heard, &addresses);
        heard.answer = received(&reply);
        if stage.heard.len() < MOST_HEARD {
            stage.heard.push(heard);
        }
        reply
    }

    fn front_page(&self, target: &str) -> Response<Body> {
        if target != "/" {
            return plain(404, "There is nothing here; / lists the scripts.\n");
        }
        plain(200, &self.index())
    }

    /// The list of scripts, with addresses and credentials.
    pub(super) fn index(&self) -> String {
        let mut text = "Scripted agents that judge the client that calls them.\n".to_owned();
        for ((variant, name), stage) in &self.stages {
            let stage = held(stage);
            let Script { about, does, ends, .. } = stage.script;
            let does = [does.sentence(), ends.sentence()].join(" ");
            text += &format!("\n{}/{variant}/{name}\n  {about}\n  Do: {}\n", self.home, does.trim());
            match stage.script.credential() {
                Some(Credential::Bearer) => text += &format!("  Bearer token: {}\n", stage.secret()),
                Some(Credential::ApiKey) => text += &format!("  API key: {}\n", stage.secret()),
                None => {}
            }
        }
        text
    }

    pub(super) fn stages(&self) -> impl Iterator<Item = &Mutex<ScriptState>> {
        self.stages.values()
    }

    pub(super) fn stage(&self, variant: Variant, script: &str) -> Option<&Mutex<ScriptState>> {
        let found = self.stages.iter().find(|((known, name), _)| *known == variant && *name == script);
        found.map(|(_, stage)| stage)
    }

    pub(super) fn put_at_root(&self, play: Option<(Variant, &'static Script)>) {
        *held(&self.root) = play.map(|(variant, script)| (variant, script.name));
    }

    pub(super) fn last_heard(&self) -> Option<Instant> {
        *held(&self.last)
    }

    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.connections.close();
        self.connections.wait().await;
    }
}

/// The answer as evidence.
fn received(reply: &Reply) -> Option<Received> {
    let owned = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
    match reply {
        Reply::Plain { status, headers, body } => Some(Received {
            status: *status,
            headers: headers.iter().map(owned).collect(),
            body: shown(body),
        }),
        Reply::Stream { pieces, .. } => Some(Received {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            body: shown(&pieces.concat()),
        }),
        Reply::Nothing => None,
    }
}

fn plain(status: u16, text: &str) -> Response<Body> {
    let headers = vec![("content-type", "text/plain; charset=utf-8".to_owned())];
    respond(Reply::Plain { status, headers, body: text.as_bytes().to_vec() }).unwrap_or_default()
}

fn respond(reply: Reply) -> Result<Response<Body>, ()> {
    let (status, headers, body) = match reply {
        Reply::Nothing => return Err(()),
        Reply::Plain { status, headers, body } => (
            status,
            headers,
            Full::new(Bytes::from(body)).map_err(|never: Infallible| match never {}).boxed_unsync(),
        ),
        Reply::Stream { pieces, cut } => {
            let headers = vec![
                ("content-type", "text/event-stream".to_owned()),
                ("cache-control", "no-cache".to_owned()),
            ];
            (200, headers, body_of(pieces, cut))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// A body of several pieces; an error instead of the end breaks the connection.
fn body_of(pieces: Vec<Vec<u8>>, cut: bool) -> Body {
    let frames = stream::unfold((pieces.into_iter(), cut), |(mut pieces, cut)| async move {
        match pieces.next() {
            Some(piece) => {
                tokio::time::sleep(PAUSE).await;
                Some((Ok(Frame::data(Bytes::from(piece))), (pieces, cut)))
            }
            None if cut => {
                tokio::time::sleep(PAUSE).await;
                Some((Err(io::Error::other("cut as the script says")), (pieces, false)))
            }
            None => None,
        }
    });
    StreamBody::new(frames).boxed_unsync()
}
