//! Issues, lists and revokes API keys: in the store, and in the [`KeySet`] that requests are compared with.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use baton_protocol::domain::Timestamp;
use secrecy::SecretString;
use tokio::sync::Mutex;

use super::audit;
use super::key_set::KeySet;
use super::key_text;
use super::principal::{ReservedOwner, is_anonymous};
use super::random::NoRandomNumbers;
use crate::engine::clock::{Clock as _, SystemClock};
use crate::store::record::{IssuedKey, StoredCredential};
use crate::store::{Store, StoreError};

/// Longest name of a key or an owner, in characters.
const LONGEST_NAME: usize = 128;
/// Most scopes of one key.
const MOST_SCOPES: usize = 64;

/// Default of [`IssuedKeys::open`]: each key takes about 500 bytes of memory.
pub const MAX_KEYS: usize = 10_000;

/// The keys of a store. One process changes them; another process with the same store sees a change after
/// [`IssuedKeys::refresh`].
pub struct IssuedKeys {
    store: Arc<dyn Store>,
    set: Arc<KeySet>,
    max_keys: usize,
    /// Held while a change reads, decides and writes.
    changing: Mutex<Unstored>,
}

/// The keys that were revoked while the store failed, and when. They stay revoked in this process, whatever the store says.
type Unstored = HashMap<String, Timestamp>;

/// What to issue.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// What the operator calls it; no other key that is not revoked may have the name.
    pub name: String,
    /// The owner of what its bearer stores. Several keys may have the same owner.
    pub owner: String,
    /// What its bearer may do.
    pub scopes: Vec<String>,
    /// From this time on it is refused.
    pub expires_at: Option<Timestamp>,
}

/// Why a key was not issued or revoked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A value that cannot be used; the text says which and why.
    #[error("{0}")]
    Invalid(String),
    /// Another key has the name.
    #[error("the key {id} has the name `{name}` already; choose another, or revoke it first")]
    NameTaken {
        /// The wanted name.
        name: String,
        /// The key that has it.
        id: String,
    },
    /// There are too many keys.
    #[error("there are {0} keys, which is the limit, and none of them is revoked or expired")]
    Full(usize),
    /// No key has this id or name.
    #[error("there is no key `{0}`")]
    NotFound(String),
    /// It was revoked before.
    #[error("the key {0} has been revoked before")]
    AlreadyRevoked(String),
    /// The reserved owner.
    #[error(transparent)]
    Owner(#[from] ReservedOwner),
    /// No secret can be made.
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
    /// The store failed. The change may have been stored all the same.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl IssuedKeys {
    /// Reads the keys of a store. `set` accepts them from now on, beside the secrets that it has.
    pub async fn open(store: Arc<dyn Store>, set: Arc<KeySet>, max_keys: usize) -> Result<Self, StoreError> {
        let keys = IssuedKeys { store, set, max_keys, changing: Mutex::default() };
        keys.refresh().await?;
        Ok(keys)
    }

    /// Reads the keys again, for changes that another process made.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let unstored = self.changing.lock().await;
        self.set.set_issued(&self.read(&unstored).await?);
        Ok(())
    }

    /// All keys, those that are revoked or expired included, oldest first.
    pub async fn list(&self) -> Result<Vec<IssuedKey>, StoreError> {
        let unstored = self.changing.lock().await;
        self.read(&unstored).await
    }

    /// Whether the store has any key, also one that is revoked or cannot be read.
    pub async fn any(&self) -> Result<bool, StoreError> {
        Ok(!self.store.credentials().await?.is_empty())
    }

    /// Issues a key and answers its text, which is not kept anywhere.
    pub async fn issue(&self, new: NewKey) -> Result<(IssuedKey, SecretString), KeyError> {
        let now = SystemClock.now();
        new.check(now)?;
        let unstored = self.changing.lock().await;
        let keys = self.read(&unstored).await?;
        if let Some(other) = keys.iter().find(|key| key.revoked_at.is_none() && key.name == new.name) {
            return Err(KeyError::NameTaken { name: new.name, id: other.id.clone() });
        }
        if keys.len() >= self.max_keys {
            // What is listed is bounded: the oldest key that nobody can use makes room.
            let is_over =
                |key: &&IssuedKey| key.revoked_at.is_some() || key.expires_at.is_some_and(|at| at <= now);
            let over = keys.iter().find(is_over).ok_or(KeyError::Full(keys.len()))?;
            self.store.remove_credential(&over.id).await?;
            self.set.remove_issued(&over.id);
        }
        let ids: HashSet<&str> = keys.iter().map(|key| &*key.id).collect();
        let (key, text) = loop {
            let (key, text) = key_text::make(&new.name, &new.owner, new.scopes.clone(), now, new.expires_at)?;
            if !ids.contains(&*key.id) {
                break (key, text);
            }
        };
        self.store.put_credential(key.to_stored()).await?;
        self.set.put_issued(&key);
        audit::key_issued(&key);
        Ok((key, text))
    }

    /// Revokes the key with this id, else the one with this name that is not revoked. It is refused from now on, even if
    /// the store then fails; revoking it again then stores it.
    pub async fn revoke(&self, id_or_name: &str) -> Result<IssuedKey, KeyError> {
        let mut unstored = self.changing.lock().await;
        let mut keys = self.read(&unstored).await?;
        let by_id = keys.iter().position(|key| key.id == id_or_name);
        let by_name = || keys.iter().position(|key| key.revoked_at.is_none() && key.name == id_or_name);
        // Several may have had the name; the newest is meant.
        let revoked = || keys.iter().rposition(|key| key.name == id_or_name);
        let Some(at) = by_id.or_else(by_name).or_else(revoked) else {
            return Err(KeyError::NotFound(id_or_name.to_owned()));
        };
        let mut key = keys.swap_remove(at);
        if key.revoked_at.is_some() && !unstored.contains_key(&key.id) {
            return Err(KeyError::AlreadyRevoked(key.id));
        }
        let at = *key.revoked_at.get_or_insert_with(|| SystemClock.now());
        // First: a caller that goes away while the store writes must not leave a key that works.
        self.set.put_issued(&key);
        unstored.insert(key.id.clone(), at);
        audit::key_revoked(&key);
        self.store.put_credential(key.to_stored()).await?;
        unstored.remove(&key.id);
        Ok(key)
    }

    /// A record that cannot be read is left out: nobody can use such a key, and the others must still be revocable.
    async fn read(&self, unstored: &Unstored) -> Result<Vec<IssuedKey>, StoreError> {
        let stored = self.store.credentials().await?;
        let readable = |stored: &StoredCredential| match IssuedKey::from_stored(stored) {
            Ok(key) => Some(key),
            Err(error) => {
                tracing::error!(%error, "a key in the store cannot be read, and is refused");
                None
            }
        };
        let mut keys: Vec<_> = stored.iter().filter_map(readable).collect();
        for key in &mut keys {
            key.revoked_at = key.revoked_at.or_else(|| unstored.get(&key.id).copied());
        }
        keys.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(keys)
    }
}

impl NewKey {
    fn check(&self, now: Timestamp) -> Result<(), KeyError> {
        let invalid = |text: String| Err(KeyError::Invalid(text));
        for (what, text) in [("name", &self.name), ("owner", &self.owner)] {
            let length = text.chars().count();
            if length == 0
                || length > LONGEST_NAME
                || text.chars().any(char::is_control)
                || text.trim() != text
            {
                return invalid(format!(
                    "the {what} must have 1 to {LONGEST_NAME} characters, without control characters and without \
                     spaces at its ends"
                ));
            }
        }
        if is_anonymous(&self.owner) {
            return Err(ReservedOwner.into());
        }
        // The characters of RFC 6749, section 3.3.
        let in_scope = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        let bad =
            |scope: &&String| scope.is_empty() || !scope.bytes().all(in_scope) || scope.len() > LONGEST_NAME;
        if let Some(scope) = self.scopes.iter().find(bad) {
            return invalid(format!(
                "`{}` is not a scope: letters, digits and signs, without spaces",
                scope.escape_debug()
            ));
        }
        if self.scopes.len() > MOST_SCOPES {
            return invalid(format!("a key has at most {MOST_SCOPES} scopes"));
        }
        if self.expires_at.is_some_and(|at| at <= now) {
            return invalid("the key would have expired already".to_owned());
        }
        Ok(())
    }
}

impl fmt::Debug for IssuedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedKeys").field("set", &self.set).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::store::memory::MemoryStore;

    async fn opened(max_keys: usize) -> (Arc<dyn Store>, Arc<KeySet>, IssuedKeys) {
        let (store, set) = (Arc::new(MemoryStore::new()), Arc::new(KeySet::new().unwrap()));
        let keys = IssuedKeys::open(store.clone(), Arc::clone(&set), max_keys).await.unwrap();
        (store, set, keys)
    }

    fn new(name: &str) -> NewKey {
        NewKey { name: name.to_owned(), owner: "alice".to_owned(), scopes: Vec::new(), expires_at: None }
    }

    #[tokio::test]
    async fn s16_a_key_works_from_its_issue_to_its_revocation_and_in_the_next_process() {
        let (store, set, keys) = opened(10).await;
        let (key, text) = keys.issue(new("ci")).await.unwrap();
        let text = text.expose_secret().as_bytes();
        assert_eq!(&*set.verify(text).unwrap().owner, "alice");
        let again = Arc::new(KeySet::new().unwrap());
        let elsewhere = IssuedKeys::open(store, Arc::clone(&again), 10).await.unwrap();
        assert!(again.verify(text).is_ok());
        assert_eq!(elsewhere.list().await.unwrap(), std::slice::from_ref(&key));

        let revoked = keys.revoke("ci").await.unwrap();
        assert_eq!((&revoked.id, revoked.revoked_at.is_some()), (&key.id, true));
        assert_eq!(set.verify(text).unwrap_err().reason, "revoked");
        elsewhere.refresh().await.unwrap();
        assert_eq!(again.verify(text).unwrap_err().reason, "revoked");
        assert_eq!(keys.list().await.unwrap(), [revoked]);
    }

    #[tokio::test]
    async fn s16_a_key_is_revoked_by_its_id_or_by_its_name() {
        let (_, _, keys) = opened(10).await;
        let (first, _) = keys.issue(new("ci")).await.unwrap();
        let taken = KeyError::NameTaken { name: "ci".to_owned(), id: first.id.clone() };
        assert_eq!(keys.issue(new("ci")).await.unwrap_err(), taken);
        keys.revoke(&first.id).await.unwrap();
        for twice in [&*first.id, "ci"] {
            assert_eq!(keys.revoke(twice).await, Err(KeyError::AlreadyRevoked(first.id.clone())));
        }
        assert_eq!(keys.revoke("other").await, Err(KeyError::NotFound("other".to_owned())));
        let (second, _) = keys.issue(new("ci")).await.unwrap();
        assert_eq!(keys.revoke("ci").await.unwrap().id, second.id);
    }

    #[tokio::test]
    async fn s16_a_record_that_cannot_be_read_is_refused_and_leaves_the_others_alone() {
        let (store, set, keys) = opened(10).await;
        let (one, text) = keys.issue(new("one")).await.unwrap();
        let (other, damaged) = keys.issue(new("other")).await.unwrap();
        let unreadable = StoredCredential { id: other.id, record: bytes::Bytes::from_static(b"9 ?\n") };
        store.put_credential(unreadable).await.unwrap();
        keys.refresh().await.unwrap();
        assert!(set.verify(text.expose_secret().as_bytes()).is_ok());
        assert_eq!(set.verify(damaged.expose_secret().as_bytes()).unwrap_err().reason, "unknown key");
        assert_eq!(keys.list().await.unwrap(), [one]);
        keys.revoke("one").await.unwrap();
        assert!(keys.any().await.unwrap());
    }

    #[tokio::test]
    async fn s16_a_revocation_counts_even_if_it_is_not_stored() {
        let (store, set, keys) = opened(10).await;
        let (key, text) = keys.issue(new("ci")).await.unwrap();
        // As a store that fails leaves it.
        keys.changing.lock().await.insert(key.id.clone(), SystemClock.now());
        keys.refresh().await.unwrap();
        assert_eq!(set.verify(text.expose_secret().as_bytes()).unwrap_err().reason, "revoked");
        assert!(keys.list().await.unwrap()[0].revoked_at.is_some());
        // Again, to store it.
        keys.revoke("ci").await.unwrap();
        assert_eq!(keys.revoke("ci").await, Err(KeyError::AlreadyRevoked(key.id)));
        let stored = IssuedKey::from_stored(&store.credentials().await.unwrap()[0]).unwrap();
        assert!(stored.revoked_at.is_some());
    }

    #[tokio::test]
    async fn s16_keys_are_bounded_and_dead_ones_make_room() {
        let (_, set, keys) = opened(2).await;
        let (_, text) = keys.issue(new("one")).await.unwrap();
        keys.issue(new("two")).await.unwrap();
        assert_eq!(keys.issue(new("three")).await.unwrap_err(), KeyError::Full(2));
        keys.revoke("one").await.unwrap();
        keys.issue(new("three")).await.unwrap();
        let names: Vec<_> = keys.list().await.unwrap().into_iter().map(|key| key.name).collect();
        assert_eq!((names.len(), names.contains(&"one".to_owned())), (2, false));
        assert_eq!(set.verify(text.expose_secret().as_bytes()).unwrap_err().reason, "unknown key");
    }

    #[tokio::test]
    async fn s16_values_that_cannot_be_used_are_refused() {
        let (_, _, keys) = opened(10).await;
        let good = new("ci");
        let past = Timestamp::from_millis(0);
        for bad in [
            new(""),
            new(" ci"),
            new("c\ni"),
            new(&"x".repeat(129)),
            NewKey { owner: String::new(), ..good.clone() },
            NewKey { scopes: vec!["a b".to_owned()], ..good.clone() },
            NewKey { scopes: vec![String::new()], ..good.clone() },
            NewKey { scopes: vec!["a".to_owned(); 65], ..good.clone() },
            NewKey { expires_at: Some(past), ..good.clone() },
        ] {
            assert!(matches!(keys.issue(bad.clone()).await, Err(KeyError::Invalid(_))), "{bad:?}");
        }
        let reserved = NewKey { owner: "anonymous".to_owned(), ..good };
        assert_eq!(keys.issue(reserved).await.unwrap_err(), KeyError::Owner(ReservedOwner));
        assert_eq!(keys.list().await.unwrap(), []);
    }
}
