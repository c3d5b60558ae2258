//! What basic and digest have in common: users, their owners, and the realm.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _};
use secrecy::SecretString;
use sha2::Sha256;

use super::principal::is_anonymous;

/// Longest realm; it is in every challenge.
const MAX_REALM: usize = 256;

/// A user with the stored form of a password.
#[derive(Clone)]
pub struct StoredUser {
    pub(super) user: String,
    pub(super) owner: String,
    pub(super) scopes: Vec<String>,
    pub(super) password: SecretString,
}

impl StoredUser {
    /// `password` is the stored form: what [`hash_password`](super::hash_password) makes for [`Basic`](super::Basic), and
    /// [`digest_password`](super::digest_password) for [`Digest`](super::Digest). The owner has the user's name.
    pub fn new(user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        let user = user.into();
        StoredUser { owner: user.clone(), user, scopes: Vec::new(), password: password.into() }
    }

    /// The owner of the user's tasks.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// What the user may do.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }
}

impl fmt::Debug for StoredUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoredUser { user, owner, scopes, password: _ } = self;
        f.debug_struct("StoredUser")
            .field("user", user)
            .field("owner", owner)
            .field("scopes", scopes)
            .finish_non_exhaustive()
    }
}

/// Why a list of users cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadUser {
    /// The user is there twice.
    #[error("user `{0}` is there twice")]
    Twice(String),
    /// A client could not send this name.
    #[error("user `{0:?}` is empty, too long, or has a colon or a control character")]
    Name(String),
    /// The owner cannot be used.
    #[error("the owner of user `{0}` is empty, has a control character, or is `anonymous`")]
    Owner(String),
    /// The realm cannot be part of a challenge.
    #[error("the realm is empty, too long, or has a quote, a backslash, or characters beyond ASCII")]
    Realm,
}

pub(super) fn check(user: &str, owner: &str, max_user: usize) -> Result<(), BadUser> {
    let is_long = user.is_empty() || user.len() > max_user;
    if is_long || user.contains(|character: char| character == ':' || character.is_control()) {
        return Err(BadUser::Name(user.to_owned()));
    }
    if owner.is_empty() || owner.contains(char::is_control) || is_anonymous(owner) {
        return Err(BadUser::Owner(user.to_owned()));
    }
    Ok(())
}

/// A realm that can be written between quotes as it is.
#[derive(Debug, Clone)]
pub(super) struct Realm(Arc<str>);

impl Realm {
    pub(super) fn new(realm: &str) -> Result<Self, BadUser> {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        if realm.is_empty() || realm.len() > MAX_REALM || !realm.bytes().all(is_plain) {
            return Err(BadUser::Realm);
        }
        Ok(Realm(realm.into()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key that only this process knows.
pub(super) fn random_key() -> Hmac<Sha256> {
    let key = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
    Hmac::new_from_slice(&key).expect("HMAC takes keys of any length")
}
