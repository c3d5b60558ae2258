//! What is said on the socket.

use std::path::PathBuf;

use baton_protocol::domain::Timestamp;
use baton_protocol::wire::v1::write_timestamp;
use baton_server::store::record::IssuedKey;
use serde::{Deserialize, Serialize};

/// A key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) scopes: Vec<String>,
    /// `active`, `expired` or `revoked`.
    pub(crate) state: String,
    /// RFC 3339, like the other times.
    pub(crate) created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revoked: Option<String>,
}

impl Key {
    pub(crate) fn of(key: &IssuedKey, now: Timestamp) -> Self {
        let state = match (key.revoked_at, key.expires_at) {
            (Some(_), _) => "revoked",
            (None, Some(at)) if at <= now => "expired",
            (None, _) => "active",
        };
        Key {
            id: key.id.clone(),
            name: key.name.clone(),
            owner: key.owner.clone(),
            scopes: key.scopes.clone(),
            state: state.to_owned(),
            created: time_text(key.created_at),
            expires: key.expires_at.map(time_text),
            revoked: key.revoked_at.map(time_text),
        }
    }
}

pub(super) fn time_text(at: Timestamp) -> String {
    let mut text = Vec::new();
    write_timestamp(&mut text, at);
    // It is a JSON string.
    String::from_utf8_lossy(&text).trim_matches('"').to_owned()
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) keys: Vec<Key>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKeyCall {
    pub(crate) name: String,
    pub(crate) owner: String,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(crate) expires: Option<i64>,
}

/// A new key. No `Debug`, since it has the secret.
#[derive(Serialize, Deserialize)]
pub(crate) struct Issued {
    pub(crate) key: Key,
    pub(crate) secret: String,
    /// Whether the server requires keys now.
    pub(crate) enforced: bool,
    /// Where the server listens.
    pub(crate) url: String,
    /// The certificate that clients have to be told to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trusted: Option<PathBuf>,
    /// Where the key is stored.
    #[serde(default)]
    pub(crate) store: String,
    /// Whether a server runs on the store; it has the key.
    #[serde(default)]
    pub(crate) running: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) error: String,
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_millis(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}
