//! The secrets that the server makes for itself at its first start and keeps in its store: the keys behind page tokens, the
//! pseudonyms of callers and the ids of webhook events, and the keys that sign calls of webhooks. With a master key they are stored wrapped, that is encrypted, so that a stolen
//! database does not tell them.
//!
//! The stored form of a wrapped value is a line, `baton-secret 1 ` and the id of the master key, then 12 bytes of nonce,
//! then the value under AES-256-GCM. That line, the id of the store and the value's name are authenticated with it: a
//! value that is moved to another name, or comes from another store, cannot be unwrapped. The master key itself encrypts
//! nothing; its key for wrapping and its id are derived from it. A value without such a line is stored as it is.

#[cfg(feature = "master-key")]
mod guessable;
#[cfg(feature = "master-key")]
mod master_key;
#[cfg(not(feature = "master-key"))]
mod no_master_key;
#[cfg(feature = "master-key")]
#[cfg(test)]
mod tests;

#[cfg(feature = "master-key")]
pub use master_key::{BadMasterKey, MasterKey, MasterKeys};
#[cfg(not(feature = "master-key"))]
use no_master_key::MasterKeys;

use std::sync::Arc;

use crate::auth::{NoRandomNumbers, random_bytes};
use crate::store::{Store, StoreError};

/// How the first line begins in every version of the form. A secret that is stored as it is has 32 random bytes, or begins
/// with another name, so it never begins like this.
const MARK: &[u8] = b"baton-secret ";
const VERSION: &[u8] = b"1 ";
/// Of the id of a master key, in hexadecimal digits.
const ID: usize = 16;
/// The line, with its line break.
const LINE: usize = MARK.len() + VERSION.len() + ID + 1;

/// The name of the store's own id, which is no secret: it is never wrapped.
const STORE_ID: &str = "store-id";

/// Signs page tokens.
pub(crate) const CURSOR: &str = "cursor";
/// Makes the pseudonyms of callers in the log.
pub(crate) const CALLERS: &str = "callers";
/// Makes the ids of events that webhooks get.
pub(crate) const WEBHOOK_IDS: &str = "webhook-ids";
/// Sign the JWTs of webhooks.
pub(crate) const WEBHOOK_KEYS: &str = "webhook-keys";
/// Wraps what callers give with their webhooks. There is one only with a master key.
const CONTENTS: &str = "contents";
/// All that [`Secrets`] is asked for.
const NAMES: [&str; 5] = [CURSOR, CALLERS, WEBHOOK_IDS, WEBHOOK_KEYS, CONTENTS];

/// Why the secrets of the store cannot be used. Master keys are named by their ids, which are not secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretsError {
    /// They are wrapped, and the server has no master key.
    #[error(
        "the secrets in the store are wrapped with the master key {wrapped_with}, and no master key was given"
    )]
    NoMasterKey {
        /// The id of the key.
        wrapped_with: String,
    },
    /// They are wrapped with a key that is not among those that the server has.
    #[error(
        "the secrets in the store are wrapped with the master key {wrapped_with}, which was not given: given was {}",
        given.join(", ")
    )]
    OtherMasterKey {
        /// The id of the key.
        wrapped_with: String,
        /// The ids of the keys that the server has.
        given: Vec<String>,
    },
    /// The value was changed, or wrapped under another name or in another store.
    #[error("the secret `{0}` in the store cannot be unwrapped: it was changed, or is from another store")]
    Changed(String),
    /// It is wrapped in a form that this version does not know.
    #[error(
        "the secret `{0}` in the store is in a form that this Baton does not know: it was written by a newer one"
    )]
    UnknownForm(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No secret can be made.
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
}

/// Wraps and unwraps what one store keeps.
#[derive(Debug, Clone)]
pub(crate) struct Wrapping {
    keys: Option<MasterKeys>,
    store_id: Arc<[u8]>,
}

/// A value that was unwrapped.
#[derive(Debug, PartialEq)]
pub(crate) struct Unwrapped {
    pub(crate) value: Vec<u8>,
    pub(crate) stored_as: StoredAs,
}

/// How a value was stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StoredAs {
    /// As [`Wrapping::wrap`] stores it now.
    Now,
    /// In the clear, though there is a master key.
    Plain,
    /// Wrapped with an old master key.
    WithOldKey,
}

impl Wrapping {
    /// Writes nothing before it is known that all secrets in the store can be read. Otherwise a start without the master key
    /// could store a secret in plain text beside wrapped ones, and then refuse.
    async fn open(store: &dyn Store, keys: Option<MasterKeys>) -> Result<Self, SecretsError> {
        let store_id = match (&keys, store.find_secret(STORE_ID).await?) {
            (None, _) => Vec::new(),
            (Some(_), Some(kept)) => kept,
            (Some(_), None) => random_bytes::<16>()?.to_vec(),
        };
        let mut wrapping = Wrapping { keys, store_id: store_id.into() };
        for name in NAMES {
            if let Some(stored) = store.find_secret(name).await? {
                wrapping.unwrap(name, &stored)?;
            }
        }
        if wrapping.keys.is_some() {
            // Another replica may have made it meanwhile.
            wrapping.store_id = store.secret(STORE_ID, wrapping.store_id.to_vec()).await?.into();
        }
        Ok(wrapping)
    }

    /// The form in which the value is stored under this name. Without a master key that is the value itself.
    pub(crate) fn wrap(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, NoRandomNumbers> {
        let Some(keys) = &self.keys else { return Ok(value.to_vec()) };
        let mut stored = [MARK, VERSION, keys.current_id().as_bytes(), b"\n"].concat();
        stored.extend(keys.encrypt(&self.context(&stored, name), value)?);
        Ok(stored)
    }

    /// The value that is stored under this name.
    pub(crate) fn unwrap(&self, name: &str, stored: &[u8]) -> Result<Unwrapped, SecretsError> {
        let unknown = || SecretsError::UnknownForm(name.to_owned());
        if !stored.starts_with(MARK) {
            let stored_as = if self.keys.is_some() { StoredAs::Plain } else { StoredAs::Now };
            return Ok(Unwrapped { value: stored.to_vec(), stored_as });
        }
        let (line, encrypted) = stored.split_at_checked(LINE).ok_or_else(unknown)?;
        let id = line.strip_prefix(MARK).and_then(|rest| rest.strip_prefix(VERSION)).ok_or_else(unknown)?;
        let wrapped_with =
            std::str::from_utf8(id).ok().and_then(|id| id.strip_suffix('\n')).ok_or_else(unknown)?.to_owned();
        let Some(keys) = &self.keys else { return Err(SecretsError::NoMasterKey { wrapped_with }) };
        if !keys.ids().contains(&wrapped_with) {
            return Err(SecretsError::OtherMasterKey { wrapped_with, given: keys.ids() });
        }
        let value = keys.decrypt(&wrapped_with, &self.context(line, name), encrypted);
        let value = value.ok_or_else(|| SecretsError::Changed(name.to_owned()))?;
        let is_current = keys.current_id() == wrapped_with;
        Ok(Unwrapped { value, stored_as: if is_current { StoredAs::Now } else { StoredAs::WithOldKey } })
    }

    /// What is authenticated with the value.
    fn context(&self, line: &[u8], name: &str) -> Vec<u8> {
        let mut context = line.to_vec();
        // With its length, so that no other id and name give the same bytes.
        context.extend((self.store_id.len() as u64).to_be_bytes());
        context.extend_from_slice(&self.store_id);
        context.extend_from_slice(name.as_bytes());
        context
    }
}

/// The secrets of the store, as they are read at start.
#[derive(Debug)]
pub(crate) struct Secrets {
    store: Arc<dyn Store>,
    wrapping: Wrapping,
    /// How many were stored plain, and how many with an old key.
    plain: u32,
    with_old_key: u32,
}

impl Secrets {
    pub(crate) async fn open(store: Arc<dyn Store>, keys: Option<MasterKeys>) -> Result<Self, SecretsError> {
        let wrapping = Wrapping::open(&*store, keys).await?;
        Ok(Secrets { store, wrapping, plain: 0, with_old_key: 0 })
    }

    /// The secret with this name; the first start makes it: 32 random bytes.
    pub(crate) async fn get(&mut self, name: &str) -> Result<Vec<u8>, SecretsError> {
        self.get_or_make(name, || Ok(random_bytes::<32>()?.to_vec())).await
    }

    /// The secret with this name; the first start makes it.
    pub(crate) async fn get_or_make(
        &mut self,
        name: &str,
        make: impl FnOnce() -> Result<Vec<u8>, NoRandomNumbers>,
    ) -> Result<Vec<u8>, SecretsError> {
        let fresh = self.wrapping.wrap(name, &make()?)?;
        let stored = self.store.secret(name, fresh).await?;
        self.unwrapped(name, stored).await
    }

    /// The secret with this name, if there is one. One that this server has no use for has to be found, too: otherwise it stays
    /// wrapped with an old master key, and cannot be read when that is taken away.
    pub(crate) async fn find(&mut self, name: &str) -> Result<Option<Vec<u8>>, SecretsError> {
        match self.store.find_secret(name).await? {
            Some(stored) => self.unwrapped(name, stored).await.map(Some),
            None => Ok(None),
        }
    }

    /// Stores `new` if the secret with this name is `old`; answers whether it was.
    #[cfg(feature = "jwt")]
    pub(crate) async fn replace(&self, name: &str, old: &[u8], new: &[u8]) -> Result<bool, SecretsError> {
        let Some(stored) = self.store.find_secret(name).await? else { return Ok(false) };
        if self.wrapping.unwrap(name, &stored)?.value != old {
            return Ok(false);
        }
        let wrapped = self.wrapping.wrap(name, new)?;
        Ok(self.store.replace_secret(name, &stored, wrapped).await?)
    }

    /// If it is not wrapped as it should be now, it is wrapped again.
    async fn unwrapped(&mut self, name: &str, stored: Vec<u8>) -> Result<Vec<u8>, SecretsError> {
        debug_assert!(NAMES.contains(&name), "`{name}` was not looked for when the secrets were opened");
        let Unwrapped { value, stored_as } = self.wrapping.unwrap(name, &stored)?;
        let count = match stored_as {
            StoredAs::Now => return Ok(value),
            StoredAs::Plain => &mut self.plain,
            StoredAs::WithOldKey => &mut self.with_old_key,
        };
        // If it is another one meanwhile, another replica has wrapped the same value.
        let wrapped = self.wrapping.wrap(name, &value)?;
        *count += u32::from(self.store.replace_secret(name, &stored, wrapped).await?);
        Ok(value)
    }

    #[cfg(feature = "jwt")]
    pub(crate) fn wrapping(&self) -> Wrapping {
        self.wrapping.clone()
    }

    /// For values that are not the server's own. With a master key they are wrapped with a key of their own, which is stored
    /// like the other secrets: when the master key is replaced, only that has to be wrapped again.
    pub(crate) async fn contents(&mut self) -> Result<Wrapping, SecretsError> {
        let mut wrapping = self.wrapping.clone();
        if wrapping.keys.is_some() {
            wrapping.keys = MasterKeys::of_contents(&self.get(CONTENTS).await?);
        }
        Ok(wrapping)
    }

    /// Logs what was wrapped.
    pub(crate) fn finish(self) {
        let Secrets { wrapping: Wrapping { keys: Some(keys), .. }, plain, with_old_key, .. } = self else {
            return;
        };
        let master_key = keys.current_id();
        if plain > 0 {
            tracing::info!(
                secrets = plain,
                master_key,
                "the secrets in the store were plain and are now wrapped with the master key; older backups still have \
                 them in plain"
            );
        }
        if with_old_key > 0 {
            tracing::info!(
                secrets = with_old_key,
                master_key,
                "the secrets in the store are now wrapped with the new master key; the old one is no longer needed for them"
            );
        }
    }
}
