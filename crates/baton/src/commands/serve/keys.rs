//! API keys of the server: those of the store, and the socket at which `baton key` changes them.

use std::path::Path;
use std::sync::Arc;

use baton_protocol::domain::{ListFilter, Timestamp};
use baton_server::Server;
use baton_server::auth::{IssuedKeys, KeySet, Principal};
use baton_server::store::{Detail, ListQuery, Scope, Store};
use tokio_util::sync::CancellationToken;

use super::first_call::word;
use super::store::Opened;
use super::store_failed;
use crate::admin;
use crate::config::{AdminSocket, Config, Loaded, StoreUrl, StoredKeys};
use crate::exit::Failure;

/// The keys of the store.
pub(super) struct Keys {
    set: Arc<KeySet>,
    issued: Arc<IssuedKeys>,
    /// How many there were at the start, revoked ones included.
    stored: usize,
    /// Whether there is any, also one that cannot be read: it must not let everybody in.
    any: bool,
}

impl Keys {
    pub(super) async fn open(config: &Config, store: &Arc<dyn Store>) -> Result<Self, Failure> {
        let set = Arc::new(KeySet::new().map_err(|error| Failure::failed(error.to_string()))?);
        let failed = |error| store_failed(&error, &error.to_string());
        let most = *config.auth.api_key.max_keys;
        let issued = IssuedKeys::open(Arc::clone(store), Arc::clone(&set), most).await.map_err(failed)?;
        let stored = issued.list().await.map_err(failed)?.len();
        let any = issued.any().await.map_err(failed)?;
        Ok(Keys { set, issued: Arc::new(issued), stored, any })
    }

    /// For the configuration, which decides whether callers need a key.
    pub(super) fn stored(&self) -> StoredKeys {
        StoredKeys { keys: Arc::clone(&self.set), any: self.any }
    }

    /// Tells what may surprise: keys that nobody is asked for, no key although callers need one, and tasks that no key can
    /// see.
    pub(super) async fn warn(&self, loaded: &Loaded, opened: &Opened) {
        let keys = self.stored;
        if loaded.auth.takes_keys() {
            if keys == 0 && loaded.config.auth.api_key.secret.is_none() {
                match command(loaded, &opened.url) {
                    Some(command) => {
                        tracing::warn!("callers need a key, and there is none yet: `{command}` makes one");
                    }
                    None => tracing::warn!(
                        "callers need a key, and there is none yet: set admin.socket, so that `baton key` can make one"
                    ),
                }
            }
        } else if keys > 0 {
            tracing::warn!(
                keys,
                "the store has keys, and nobody is asked for one: auth.api_key.enabled is false"
            );
        }
        if loaded.auth.enforces() {
            warn_of_anonymous_tasks(loaded, &*opened.store).await;
        }
    }

    /// Opens the socket for administration. `url` is the server's, and `trusted` a certificate that clients must trust. Without one the server runs all the same, unless the configuration names a path.
    #[cfg(unix)]
    pub(super) fn serve_admin(
        &self,
        loaded: &Loaded,
        store: &StoreUrl,
        (url, trusted): (&str, Option<&Path>),
        server: &Server,
        stop: CancellationToken,
    ) -> Result<(), Failure> {
        let config = &loaded.config;
        let is_named = matches!(*config.admin.socket, AdminSocket::At(_));
        let path = admin::socket_path(config, store).map_err(|none| match none {
            admin::NoSocket::Off | admin::NoSocket::Memory => None,
            admin::NoSocket::TooLong(_) => Some(none.reason()),
        });
        let listener = match path.and_then(|path| admin::bind(&path).map_err(Some)) {
            Ok(listener) => listener,
            Err(None) => return Ok(()),
            Err(Some(reason)) if is_named => return Err(Failure::failed(format!("admin.socket: {reason}"))),
            Err(Some(reason)) => {
                tracing::warn!(
                    reason,
                    "`baton key` and `baton push` cannot reach this server: no administration socket"
                );
                return Ok(());
            }
        };
        let (keys, enforced) = (Arc::clone(&self.issued), loaded.auth.takes_keys());
        tokio::spawn(listener.serve(
            admin::AdminServer {
                keys,
                enforced,
                url: url.to_owned(),
                trusted: trusted.map(Path::to_owned),
                store: store.to_string(),
                webhooks: server.webhooks(),
                tasks: server.clone(),
            },
            stop,
        ));
        Ok(())
    }

    #[cfg(not(unix))]
    pub(super) fn serve_admin(
        &self,
        _loaded: &Loaded,
        _store: &StoreUrl,
        _address: (&str, Option<&Path>),
        _server: &Server,
        _stop: CancellationToken,
    ) -> Result<(), Failure> {
        Ok(())
    }
}

/// The command that makes a key for this server; `None` if `baton key` cannot reach it.
pub(super) fn command(loaded: &Loaded, store: &StoreUrl) -> Option<String> {
    let config = &loaded.config;
    let mut command = format!("baton key new NAME --store {}", word(&store.to_string()));
    if let AdminSocket::At(path) = &*config.admin.socket {
        command += &format!(" --socket {}", word(&path.to_string_lossy()));
    }
    // One in the working folder is found without a flag.
    if let Some(file) = loaded.file.as_deref().filter(|file| *file != Path::new("baton.toml")) {
        command += &format!(" --config {}", word(&file.to_string_lossy()));
    }
    admin::socket_path(config, store).ok().map(|_| command)
}

/// Tasks of anonymous callers, from before callers had to authenticate.
async fn warn_of_anonymous_tasks(loaded: &Loaded, store: &dyn Store) {
    let anonymous = Principal::anonymous();
    let query = ListQuery {
        filter: ListFilter::default(),
        after: None,
        not_after: Timestamp::MAX,
        limit: 1,
        detail: Detail::Status,
        most_bytes: 0,
        counted: true,
    };
    for plan in &loaded.agents {
        let (agent, tenant) = (plan.id.as_str(), plan.tenant().unwrap_or_default());
        let scope = Scope::of(agent.into(), tenant.into(), anonymous.owner().into());
        let total = store.list(&scope, &query).await.ok().and_then(|page| page.total);
        if let Some(tasks @ 1..) = total {
            tracing::warn!(agent, tasks, "tasks of anonymous callers are kept, but no key can see them");
        }
    }
}
