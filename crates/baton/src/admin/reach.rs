//! Reaches what belongs to a server: the running server if there is one, else its store.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{NoSocket, Refused, socket_path};
use crate::commands::serve::first_call::word;
use crate::commands::serve::store::{self, Opened};
use crate::config::{self, Config, Source, StoreUrl};
use crate::exit::Failure;

/// Begins what is said of a store with a server.
const RUNS: &str = "and a server runs on";

pub(crate) enum Reach {
    /// The running server's socket.
    #[cfg(unix)]
    Server(Socket),
    /// No server runs: the store is open in this process.
    Store(Opened),
}

/// `what` is looked for, such as keys. `may_create`: a store that does not exist is created.
pub(crate) async fn reach(config: &Config, what: &str, may_create: bool) -> Result<Reach, Failure> {
    let socket = socket_path(config, &config.store.url);
    #[cfg(unix)]
    if let Ok(path) = &socket
        && let Some(socket) = Socket::connect(path)?
    {
        return Ok(Reach::Server(socket));
    }
    if let (Ok(path), true) = (&socket, matches!(config.admin.socket.source(), Source::Flag(_))) {
        return Err(Failure::failed(format!("--socket: no server listens at {}", path.display())));
    }
    match &*config.store.url {
        StoreUrl::Memory => {
            let reason = match socket {
                Ok(path) => format!("no server listens at {}", path.display()),
                Err(none) => format!("there is no administration socket: {}", none.reason()),
            };
            Err(Failure::failed(format!(
                "{what} of a store in memory are in the running server only, and {reason}"
            )))
        }
        StoreUrl::Sqlite(path) if !config.store.url.is_set() && !path.exists() => {
            match others(config, path) {
                Some(others) => {
                    Err(Failure::failed(format!("there is no store at {}, {others}", path.display())))
                }
                None if may_create => open(config, socket).await,
                None => Err(no_store(path)),
            }
        }
        StoreUrl::Sqlite(path) if !may_create && !path.exists() => Err(no_store(path)),
        StoreUrl::Sqlite(_) => open(config, socket).await,
    }
}

fn no_store(path: &Path) -> Failure {
    Failure::failed(format!("there is no store at {}; --store names another", path.display()))
}

async fn open(config: &Config, socket: Result<PathBuf, NoSocket>) -> Result<Reach, Failure> {
    let opened = store::open(config).await.map_err(|failure| match socket {
        Ok(socket) => failure.with(&format!("no server listens at {} either", socket.display())),
        Err(none) => failure.with(&format!("there is no administration socket: {}", none.reason())),
    })?;
    Ok(Reach::Store(opened))
}

/// A server on another store than the one by default, which may be the one that is meant.
pub(crate) fn server_elsewhere(config: &Config) -> Option<String> {
    match &*config.store.url {
        StoreUrl::Sqlite(path) if !config.store.url.is_set() => others(config, path)
            .filter(|said| said.starts_with(RUNS))
            .map(|said| said.replacen("and ", "", 1)),
        _ => None,
    }
}

/// Which other store may be meant, if the one by default does not exist.
fn others(config: &Config, store: &Path) -> Option<String> {
    let others = config::others_than(store);
    let url = |path: &Path| StoreUrl::Sqlite(path.to_owned());
    let add = |path: &Path| format!("add --store {}", word(&url(path).to_string()));
    if let Some(path) = others.iter().find(|path| has_server(config, &url(path))) {
        return Some(format!("{RUNS} {}: {}", path.display(), add(path)));
    }
    let list: Vec<_> = others.iter().map(|path| path.display().to_string()).collect();
    Some(format!("but there is {}: {}", list.join(", "), add(others.first()?)))
}

/// Whether a server listens at the socket beside this store.
#[cfg(unix)]
fn has_server(config: &Config, store: &StoreUrl) -> bool {
    socket_path(config, store).is_ok_and(|path| std::os::unix::net::UnixStream::connect(path).is_ok())
}

#[cfg(not(unix))]
fn has_server(_: &Config, _: &StoreUrl) -> bool {
    false
}

/// The user of the process at the other end.
#[cfg(unix)]
fn peer_of(stream: std::os::unix::net::UnixStream) -> std::io::Result<u32> {
    stream.set_nonblocking(true)?;
    Ok(tokio::net::UnixStream::from_std(stream)?.peer_cred()?.uid())
}

/// The running server.
#[cfg(unix)]
pub(crate) struct Socket {
    client: reqwest::Client,
    path: PathBuf,
}

#[cfg(unix)]
impl Socket {
    /// `None` if no server listens there.
    fn connect(path: &Path) -> Result<Option<Self>, Failure> {
        use std::io::ErrorKind::{ConnectionRefused, NotFound};

        let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("{}: {error}", path.display()));
        let peer = match std::os::unix::net::UnixStream::connect(path) {
            Ok(stream) => peer_of(stream).map_err(|error| failed(&error))?,
            Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        // Whoever else could listen there would get the new key, or pretend that one is revoked.
        if peer != rustix::process::geteuid().as_raw() {
            return Err(failed(&format_args!(
                "the server there belongs to another user (id {peer}); run this command as that user"
            )));
        }
        let client = reqwest::Client::builder().unix_socket(path).no_proxy().build();
        Ok(Some(Socket { client: client.map_err(|error| failed(&error))?, path: path.to_owned() }))
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: reqwest::Method,
        path: &[&str],
        query: &[(&str, Option<&str>)],
        body: Option<&impl Serialize>,
    ) -> Result<T, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("the server at {} did not answer: {error}", self.path.display()))
        };
        let mut url = reqwest::Url::parse("http://localhost").map_err(|error| failed(&error))?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        for (name, value) in query {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let mut request = self.client.request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let sent = request.send().await;
        let answer = sent
            .map_err(|_| failed(&"it accepts calls of its own user only; run this command as that user"))?;
        let is_done = answer.status().is_success();
        let body = answer.bytes().await.map_err(|error| failed(&error))?;
        if !is_done {
            let refused: Option<Refused> = serde_json::from_slice(&body).ok();
            return Err(refused
                .map_or_else(|| failed(&"an unknown answer"), |refused| Failure::failed(refused.error)));
        }
        serde_json::from_slice(&body).map_err(|_| failed(&"an unknown answer"))
    }
}
