//! The stored form of a credential that Baton issued: `1 K` and, on the next line, its JSON. The secret itself is never
//! stored, only its hash.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::domain::Timestamp;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{FORMAT, StoreError, first_line};

/// The kind of record: an API key.
const API_KEY: &str = "K";

/// A credential as a store keeps it: an id and bytes that only [`IssuedKey`] reads.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredCredential {
    /// Public, unique in the store.
    pub id: String,
    /// What [`IssuedKey::to_stored`] wrote.
    pub record: Bytes,
}

impl fmt::Debug for StoredCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCredential").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An API key without its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedKey {
    /// The public part of the key; finds it.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// The owner of what its bearer stores.
    pub owner: String,
    /// What its bearer may do.
    pub scopes: Vec<String>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// From this time on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked; a revoked key is refused and stays listed.
    pub revoked_at: Option<Timestamp>,
    /// SHA-256 of the whole key. The key has 256 random bits, so a slow hash would add nothing.
    pub sha256: [u8; 32],
}

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IssuedKey { id, name, owner, scopes, created_at, expires_at, revoked_at, sha256: _ } = self;
        f.debug_struct("IssuedKey")
            .field("id", id)
            .field("name", name)
            .field("owner", owner)
            .field("scopes", scopes)
            .field("created_at", created_at)
            .field("expires_at", expires_at)
            .field("revoked_at", revoked_at)
            .finish_non_exhaustive()
    }
}

/// The second line.
#[derive(Serialize, Deserialize)]
struct KeyJson {
    name: String,
    owner: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    /// Milliseconds, like the other times of records.
    created: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked: Option<i64>,
    sha256: String,
}

impl IssuedKey {
    /// Encodes it for a store.
    pub fn to_stored(&self) -> StoredCredential {
        let json = KeyJson {
            name: self.name.clone(),
            owner: self.owner.clone(),
            scopes: self.scopes.clone(),
            created: self.created_at.as_millis(),
            expires: self.expires_at.map(Timestamp::as_millis),
            revoked: self.revoked_at.map(Timestamp::as_millis),
            sha256: URL_SAFE_NO_PAD.encode(self.sha256),
        };
        let mut record = format!("{FORMAT} {API_KEY}\n").into_bytes();
        super::push_json(&mut record, json);
        StoredCredential { id: self.id.clone(), record: Bytes::from(record) }
    }

    /// Decodes a stored credential.
    pub fn from_stored(stored: &StoredCredential) -> Result<Self, StoreError> {
        let id = &stored.id;
        let damaged = |what: &dyn fmt::Display| StoreError::damaged(format!("credential {id}: {what}"));
        let (header, at) = first_line(&stored.record).ok_or_else(|| damaged(&"no header"))?;
        if header.split_once(' ') != Some((FORMAT, API_KEY)) {
            return Err(damaged(&"a format this version does not know; was it written by a newer Baton?"));
        }
        // The text of serde's error could quote the record.
        let json: KeyJson =
            serde_json::from_slice(&stored.record[at..]).map_err(|_| damaged(&"not the JSON of a key"))?;
        let digest = URL_SAFE_NO_PAD.decode(&json.sha256).ok();
        let sha256 = digest.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| damaged(&"bad hash"))?;
        Ok(IssuedKey {
            id: id.clone(),
            name: json.name,
            owner: json.owner,
            scopes: json.scopes,
            created_at: Timestamp::from_millis(json.created),
            expires_at: json.expires.map(Timestamp::from_millis),
            revoked_at: json.revoked.map(Timestamp::from_millis),
            sha256,
        })
    }
}
