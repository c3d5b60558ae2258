//! Reaches the keys: through the running server if there is one, else in the store.

use std::sync::Arc;

use baton_protocol::domain::Timestamp;
use baton_server::auth::{IssuedKeys, KeyError, KeySet, NewKey};
use secrecy::ExposeSecret as _;

#[cfg(unix)]
use crate::admin::Socket;
use crate::admin::{self, Issued, Key, Listed, NewKeyCall, Reach};
use crate::config::Config;
use crate::exit::Failure;

pub(super) enum Reached {
    /// The running server's socket.
    #[cfg(unix)]
    Server(Socket),
    /// No server runs: the store is open in this process.
    Store { keys: IssuedKeys, url: String, store: String, enforced: bool },
}

impl Reached {
    /// `may_create`: a store that does not exist is created.
    pub(super) async fn of(config: &Config, may_create: bool) -> Result<Self, Failure> {
        let opened = match admin::reach(config, "keys", may_create).await? {
            #[cfg(unix)]
            Reach::Server(socket) => return Ok(Reached::Server(socket)),
            Reach::Store(opened) => opened,
        };
        let set = Arc::new(KeySet::new().map_err(|error| Failure::failed(error.to_string()))?);
        let settings = &config.auth.api_key;
        let keys = IssuedKeys::open(opened.store, set, *settings.max_keys).await;
        let keys = keys.map_err(|error| Failure::failed(error.to_string()))?;
        let scheme = if config.tls.is_on() { "https" } else { "http" };
        let url = format!("{scheme}://{}", config.listen.as_str());
        let store = opened.url.to_string();
        Ok(Reached::Store { keys, url, store, enforced: settings.is_on() != Some(false) })
    }

    pub(super) async fn list(&self) -> Result<Listed, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => socket.call(reqwest::Method::GET, &["keys"], &[], None::<&()>).await,
            Reached::Store { keys, .. } => {
                let keys = keys.list().await.map_err(|error| refused(&error.into()))?;
                Ok(Listed { keys: keys.iter().map(|key| Key::of(key, admin::now())).collect() })
            }
        }
    }

    pub(super) async fn issue(&self, call: NewKeyCall) -> Result<Issued, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => socket.call(reqwest::Method::POST, &["keys"], &[], Some(&call)).await,
            Reached::Store { keys, url, store, enforced } => {
                let NewKeyCall { name, owner, scopes, expires } = call;
                let new = NewKey { name, owner, scopes, expires_at: expires.map(Timestamp::from_millis) };
                let (key, secret) = keys.issue(new).await.map_err(|error| refused(&error))?;
                let (key, secret) = (Key::of(&key, admin::now()), secret.expose_secret().to_owned());
                let (enforced, url, store) = (*enforced, url.clone(), store.clone());
                Ok(Issued { key, secret, enforced, url, trusted: None, store, running: false })
            }
        }
    }

    pub(super) async fn revoke(&self, key: &str) -> Result<Key, Failure> {
        match self {
            #[cfg(unix)]
            Reached::Server(socket) => {
                socket.call(reqwest::Method::DELETE, &["keys", key], &[], None::<&()>).await
            }
            Reached::Store { keys, .. } => {
                let key = keys.revoke(key).await.map_err(|error| refused(&error))?;
                Ok(Key::of(&key, admin::now()))
            }
        }
    }
}

fn refused(error: &KeyError) -> Failure {
    Failure::failed(error.to_string())
}
