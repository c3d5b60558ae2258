//! The server's side of the socket.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{self, State};
use axum::routing::{delete, get};
use baton_protocol::domain::Timestamp;
use baton_server::auth::{IssuedKeys, KeyError, NewKey};
use baton_server::{Server, Webhooks};
use http::{Response, StatusCode, header};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::{Issued, Key, Listed, NewKeyCall, Refused, now, task_routes, webhook_routes};

/// A pause after a failed accept, so that a lack of files does not spin.
const PAUSE: Duration = Duration::from_millis(100);

/// What the calls work on.
#[derive(Debug)]
pub(crate) struct AdminServer {
    pub(crate) keys: Arc<IssuedKeys>,
    /// Whether the server requires keys.
    pub(crate) enforced: bool,
    /// Where the server listens.
    pub(crate) url: String,
    /// The certificate that clients have to be told to trust, if it is one of our own.
    pub(crate) trusted: Option<PathBuf>,
    /// Its URL.
    pub(crate) store: String,
    pub(crate) webhooks: Webhooks,
    /// Whose tasks can be told that they are authorized.
    pub(crate) tasks: Server,
}

/// A bound socket. Its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: UnixListener,
    path: PathBuf,
}

/// Binds the socket. Its folder is created for this user alone; one that others own or can enter is refused. The file of a
/// server that was killed is replaced.
pub(crate) fn bind(path: &Path) -> Result<AdminListener, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let folder = folder_of(path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    check_folder(folder)?;
    remove_stale(path)?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Nobody else could connect in between, since they cannot enter the folder.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(AdminListener { listener, path: path.to_owned() })
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Why [`bind`] would refuse this path, as far as that is known without creating anything.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let folder = folder_of(path);
    match std::fs::symlink_metadata(folder) {
        // It will be created.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        _ => check_folder(folder)?,
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(no_socket(path)),
        _ => Ok(()),
    }
}

fn no_socket(path: &Path) -> String {
    format!("{} is there and is not a socket", path.display())
}

fn check_folder(folder: &Path) -> Result<(), String> {
    // Not through a link: whoever owns the link could later lead it elsewhere.
    let found =
        std::fs::symlink_metadata(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if !found.is_dir() {
        return Err(format!("{}: a link, not a folder; choose another for the socket", folder.display()));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!(
            "{}: another user owns this folder; choose another for the socket",
            folder.display()
        ));
    }
    let mode = found.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "{}: other users can enter this folder (mode {:o}); `chmod 700` it, or choose another for the socket",
            folder.display(),
            mode & 0o777
        ));
    }
    Ok(())
}

/// Removes a socket that nobody listens at. Any other file stays.
fn remove_stale(path: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(no_socket(path));
        }
        Ok(_) => {}
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        Ok(_) => Err(format!("another server listens at {}", path.display())),
        Err(error) => Err(failed(error)),
    }
}

impl AdminListener {
    /// Answers calls until the server stops.
    pub(crate) async fn serve(self, server: AdminServer, stop: CancellationToken) {
        let webhooks = webhook_routes::routes(server.webhooks.clone());
        let tasks = task_routes::routes(server.tasks.clone());
        let calls = Router::new()
            .route("/keys", get(list).post(issue))
            .route("/keys/{key}", delete(revoke))
            .with_state(Arc::new(server))
            .merge(webhooks)
            .merge(tasks);
        let serving = axum::serve(self, calls);
        // A command that is being answered is not waited for.
        tokio::select! {
            ended = serving.into_future() => if let Err(error) = ended {
                tracing::error!(%error, "the administration socket is no longer served");
            },
            () = stop.cancelled_owned() => {}
        }
    }
}

impl Drop for AdminListener {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl axum::serve::Listener for AdminListener {
    type Io = UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    /// The next connection of this process's own user.
    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "could not accept an administration call");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == rustix::process::geteuid().as_raw() => return (stream, address),
                Ok(peer) => {
                    tracing::warn!(target: "audit", event = "administration refused", user = peer.uid());
                }
                Err(error) => tracing::warn!(%error, "the user of an administration call is unknown"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

async fn list(State(server): State<Arc<AdminServer>>) -> Response<Body> {
    match server.keys.list().await {
        Ok(keys) => {
            let keys = keys.iter().map(|key| Key::of(key, now())).collect();
            json(StatusCode::OK, &Listed { keys })
        }
        Err(error) => refused(&KeyError::Store(error)),
    }
}

async fn issue(State(server): State<Arc<AdminServer>>, body: Bytes) -> Response<Body> {
    let call: NewKeyCall = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(error) => return refused(&KeyError::Invalid(error.to_string())),
    };
    let NewKeyCall { name, owner, scopes, expires } = call;
    let new = NewKey { name, owner, scopes, expires_at: expires.map(Timestamp::from_millis) };
    match server.keys.issue(new).await {
        Ok((key, secret)) => {
            let (key, secret) = (Key::of(&key, now()), secret.expose_secret().to_owned());
            let (enforced, url, trusted) = (server.enforced, server.url.clone(), server.trusted.clone());
            let (store, running) = (server.store.clone(), true);
            json(StatusCode::CREATED, &Issued { key, secret, enforced, url, trusted, store, running })
        }
        Err(error) => refused(&error),
    }
}

async fn revoke(
    State(server): State<Arc<AdminServer>>,
    extract::Path(key): extract::Path<String>,
) -> Response<Body> {
    match server.keys.revoke(&key).await {
        Ok(key) => json(StatusCode::OK, &Key::of(&key, now())),
        Err(error) => refused(&error),
    }
}

fn refused(error: &KeyError) -> Response<Body> {
    let status = match error {
        KeyError::NotFound(_) => StatusCode::NOT_FOUND,
        KeyError::NameTaken { .. } | KeyError::AlreadyRevoked(_) | KeyError::Full(_) => StatusCode::CONFLICT,
        KeyError::Store(_) | KeyError::Random(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    json(status, &Refused { error: error.to_string() })
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
