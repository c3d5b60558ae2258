//! The secrets that callers may present: keys that Baton issued, and secrets that the operator chose. Neither is kept in
//! clear.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use baton_protocol::domain::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::key_text::{self, KeyId};
use super::principal::{ReservedOwner, Scopes, can_own};
use super::random::{self, NoRandomNumbers};
use super::record::CredentialRecord;
use super::scheme::{Identity, Refusal};
use crate::engine::clock::{Clock as _, SystemClock};
use crate::store::record::IssuedKey;

/// A shorter secret could be guessed.
const SHORTEST: usize = 16;
/// A longer one is refused before it is hashed, so that a long header costs nothing.
const LONGEST: usize = 512;

/// Why a key that is in no set is refused.
pub(super) const UNKNOWN: &str = "unknown key";

/// A set of hashed secrets, shared by the schemes that accept them. A change takes effect at the next request.
pub struct KeySet {
    keys: ArcSwap<Keys>,
    /// Hashes the secrets that the operator chose. They may be guessable, so the hash needs a key of its own, which is
    /// random and never leaves the process.
    chosen_hash: Hmac<Sha256>,
}

#[derive(Clone, Default)]
struct Keys {
    issued: HashMap<KeyId, Issued>,
    /// By the hash of the secret. How long a look-up takes tells nothing, since nobody else can compute the hash.
    chosen: HashMap<[u8; 32], Chosen>,
}

/// A secret that the operator chose. What was verified with it is valid as long as `record` exists.
#[derive(Clone)]
struct Chosen {
    identity: Identity,
    record: CredentialRecord,
}

impl Chosen {
    fn new(owner: &str, scopes: Scopes, name: &str) -> Self {
        let record = CredentialRecord::new();
        Chosen { identity: Identity::new(owner, scopes, name).while_exists(&record), record }
    }
}

#[derive(Clone)]
struct Issued {
    sha256: [u8; 32],
    expires_at: Option<Timestamp>,
    revoked: bool,
    identity: Identity,
    /// What was verified with the key is valid as long as this exists: a changed key has another one.
    record: CredentialRecord,
}

impl Keys {
    /// Ends what was verified with a key or secret that is not in `now`.
    fn end_unless_in(&self, now: &Keys) {
        let stays = |record: &CredentialRecord, now: Option<&CredentialRecord>| {
            now.is_some_and(|now| now.is_same(record))
        };
        for (id, key) in &self.issued {
            if !stays(&key.record, now.issued.get(id).map(|key| &key.record)) {
                key.record.end();
            }
        }
        for (hash, secret) in &self.chosen {
            if !stays(&secret.record, now.chosen.get(hash).map(|secret| &secret.record)) {
                secret.record.end();
            }
        }
    }
}

impl Issued {
    fn is_same(&self, other: &Issued) -> bool {
        let parts = |key: &Issued| (key.sha256, key.expires_at, key.revoked);
        parts(self) == parts(other) && self.identity == other.identity
    }
}

/// A secret that the operator chose, and whom it names.
#[derive(Debug, Clone)]
pub struct ChosenSecret {
    secret: SecretString,
    name: String,
    owner: String,
    scopes: Scopes,
}

impl ChosenSecret {
    /// `name` is public: it names the secret in logs. `owner` is the owner of its bearer's tasks.
    pub fn new(
        secret: impl Into<SecretString>,
        name: impl Into<String>,
        owner: impl Into<String>,
        scopes: Scopes,
    ) -> Self {
        ChosenSecret { secret: secret.into(), name: name.into(), owner: owner.into(), scopes }
    }
}

/// Why a secret that the operator chose cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableSecret {
    /// Too easy to guess.
    #[error("the secret has fewer than 16 characters; `openssl rand -hex 32` makes a good one")]
    TooShort,
    /// It would be refused.
    #[error("the secret has more than 512 characters")]
    TooLong,
    /// It cannot be sent in a header.
    #[error("the secret has a space, or a character that is not ASCII, which cannot be sent in a header")]
    Unsendable,
    /// It would be unclear who its bearer is.
    #[error("the same secret is there twice; each needs its own")]
    Twice,
    /// The owner's name is taken.
    #[error(transparent)]
    Owner(#[from] ReservedOwner),
}

impl KeySet {
    /// An empty set: everybody is refused.
    pub fn new() -> Result<Self, NoRandomNumbers> {
        let chosen_hash =
            Hmac::new_from_slice(&random::bytes::<32>()?).expect("HMAC takes keys of any length");
        Ok(KeySet { keys: ArcSwap::default(), chosen_hash })
    }

    /// Adds a secret that the operator chose, such as that of `--api-key`. `name` is public: it names the secret in logs.
    pub fn add_chosen(
        &self,
        secret: &str,
        name: &str,
        owner: &str,
        scopes: Scopes,
    ) -> Result<(), UnusableSecret> {
        let hash = self.check_chosen(secret, owner)?;
        if self.keys.load().chosen.contains_key(&hash) {
            return Err(UnusableSecret::Twice);
        }
        let chosen = Chosen::new(owner, scopes, name);
        self.change(|keys| {
            keys.chosen.insert(hash, chosen.clone());
        });
        Ok(())
    }

    /// Replaces all secrets that the operator chose; issued keys stay. What is open of callers whose secret has the same name,
    /// owner and scopes as before goes on; what is open of the others is ended at once. An error changes nothing.
    pub fn set_chosen(&self, secrets: &[ChosenSecret]) -> Result<(), UnusableSecret> {
        let mut chosen = HashMap::new();
        for ChosenSecret { secret, name, owner, scopes } in secrets {
            let hash = self.check_chosen(secret.expose_secret(), owner)?;
            if chosen.insert(hash, Chosen::new(owner, scopes.clone(), name)).is_some() {
                return Err(UnusableSecret::Twice);
            }
        }
        self.change(|keys| {
            let known = std::mem::replace(&mut keys.chosen, chosen.clone());
            for (hash, secret) in &mut keys.chosen {
                if let Some(known) = known.get(hash).filter(|known| known.identity == secret.identity) {
                    *secret = known.clone();
                }
            }
        });
        Ok(())
    }

    /// The hash of a secret that can be used.
    fn check_chosen(&self, secret: &str, owner: &str) -> Result<[u8; 32], UnusableSecret> {
        if secret.len() < SHORTEST {
            return Err(UnusableSecret::TooShort);
        }
        if secret.len() > LONGEST {
            return Err(UnusableSecret::TooLong);
        }
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UnusableSecret::Unsendable);
        }
        if !can_own(owner) {
            return Err(ReservedOwner.into());
        }
        Ok(self.hash_chosen(secret.as_bytes()))
    }

    /// Replaces all issued keys. A key that has not changed keeps its record, so that what its callers have open goes on.
    pub(super) fn set_issued(&self, all: &[IssuedKey]) {
        let issued: HashMap<_, _> = all.iter().filter_map(issued).collect();
        self.change(|keys| {
            let known = std::mem::replace(&mut keys.issued, issued.clone());
            for (id, key) in &mut keys.issued {
                if let Some(known) = known.get(id).filter(|known| known.is_same(key)) {
                    *key = known.clone();
                }
            }
        });
    }

    /// Adds an issued key, or replaces the one with the same id.
    pub(super) fn put_issued(&self, key: &IssuedKey) {
        let Some((id, issued)) = issued(key) else { return };
        self.change(|keys| {
            keys.issued.insert(id, issued.clone());
        });
    }

    /// Removes an issued key.
    pub(super) fn remove_issued(&self, id: &str) {
        let Ok(id) = KeyId::try_from(id.as_bytes()) else { return };
        self.change(|keys| {
            keys.issued.remove(&id);
        });
    }

    /// `change` may be called several times, if another thread changes the keys meanwhile.
    fn change(&self, change: impl Fn(&mut Keys)) {
        let before = self.keys.rcu(|keys| {
            let mut keys = Keys::clone(keys);
            change(&mut keys);
            keys
        });
        // Not left to the last reference: a request that is just being verified may hold the old keys.
        before.end_unless_in(&self.keys.load());
    }

    /// Who presents this secret.
    pub(super) fn verify(&self, presented: &[u8]) -> Result<Identity, Refusal> {
        let unknown = Refusal::new(UNKNOWN);
        if presented.len() > LONGEST {
            return Err(unknown);
        }
        let keys = self.keys.load();
        let id = key_text::id_of(presented);
        // In a set without issued keys there is nothing to find out by timing.
        if let Some(id) = id
            && !keys.issued.is_empty()
        {
            // An unknown id costs the same hash and comparison as a wrong secret of a known one.
            let found = keys.issued.get(&id);
            let expected = found.map_or(&[0; 32], |key| &key.sha256);
            let is_equal: bool = key_text::hash(presented).ct_eq(expected).into();
            if let (Some(key), true) = (found, is_equal) {
                return key.identity_now().map_err(|reason| refusal(reason, &id));
            }
        }
        if !keys.chosen.is_empty()
            && let Some(chosen) = keys.chosen.get(&self.hash_chosen(presented))
        {
            return Ok(chosen.identity.clone());
        }
        Err(id.map_or(unknown, |id| refusal(UNKNOWN, &id)))
    }

    fn hash_chosen(&self, secret: &[u8]) -> [u8; 32] {
        let mut mac = self.chosen_hash.clone();
        mac.update(secret);
        mac.finalize().into_bytes().into()
    }
}

impl Issued {
    /// Only who has the whole key learns that it was revoked or has expired.
    fn identity_now(&self) -> Result<Identity, &'static str> {
        if self.revoked {
            return Err("revoked");
        }
        if self.expires_at.is_some_and(|at| at <= SystemClock.now()) {
            return Err("expired");
        }
        Ok(self.identity.clone())
    }
}

fn refusal(reason: &'static str, id: &KeyId) -> Refusal {
    Refusal::new(reason).of(key_text::id_text(id))
}

/// `None` if the id is not one that Baton issues: nobody could present such a key.
fn issued(key: &IssuedKey) -> Option<(KeyId, Issued)> {
    let id = KeyId::try_from(key.id.as_bytes()).ok()?;
    let record = CredentialRecord::new();
    let identity = Identity::new(&*key.owner, Scopes::of(key.scopes.iter().map(String::as_str)), &*key.id);
    let mut identity = identity.while_exists(&record);
    if let Some(at) = key.expires_at {
        let since = Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or_default());
        identity = identity.until(SystemTime::UNIX_EPOCH + since);
    }
    let (sha256, expires_at, revoked) = (key.sha256, key.expires_at, key.revoked_at.is_some());
    Some((id, Issued { sha256, expires_at, revoked, identity, record }))
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.load();
        f.debug_struct("KeySet")
            .field("issued", &keys.issued.len())
            .field("chosen", &keys.chosen.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn key(expires_at: Option<Timestamp>) -> (IssuedKey, String) {
        let scopes = vec!["tasks:read".to_owned()];
        let (key, text) = key_text::make("ci", "alice", scopes, SystemClock.now(), expires_at).unwrap();
        (key, text.expose_secret().to_owned())
    }

    #[test]
    fn s16_an_issued_key_names_its_owner_and_scopes() {
        let set = KeySet::new().unwrap();
        let (issued, text) = key(None);
        assert_eq!(set.verify(text.as_bytes()), Err(Refusal::new("unknown key").of(&*issued.id)));
        set.put_issued(&issued);
        let identity = set.verify(text.as_bytes()).unwrap();
        assert_eq!(identity, Identity::new("alice", Scopes::of(["tasks:read"]), &*issued.id));
        for at in [3, 12, 54] {
            let mut wrong = text.clone().into_bytes();
            wrong[at] = if wrong[at] == b'a' { b'b' } else { b'a' };
            let refused = set.verify(&wrong).unwrap_err();
            assert_eq!(refused.reason, "unknown key", "{at}");
            assert_eq!(
                refused.credential.as_deref(),
                Some(key_text::id_text(&key_text::id_of(&wrong).unwrap()))
            );
        }
    }

    #[test]
    fn s16_a_revoked_or_expired_key_is_refused_by_the_next_call() {
        let set = KeySet::new().unwrap();
        let (mut issued, text) = key(Some(SystemClock.now().plus_millis(3_600_000)));
        set.put_issued(&issued);
        assert!(set.verify(text.as_bytes()).is_ok());
        issued.expires_at = Some(SystemClock.now());
        set.put_issued(&issued);
        assert_eq!(set.verify(text.as_bytes()).unwrap_err().reason, "expired");
        issued.revoked_at = Some(SystemClock.now());
        set.put_issued(&issued);
        assert_eq!(set.verify(text.as_bytes()).unwrap_err().reason, "revoked");
        // Who has only the id learns nothing.
        let guess = format!("{}{}", &text[..12], "x".repeat(43));
        assert_eq!(set.verify(guess.as_bytes()).unwrap_err().reason, "unknown key");
        set.set_issued(&[]);
        assert_eq!(set.verify(text.as_bytes()).unwrap_err().reason, "unknown key");
    }

    #[test]
    fn s16_a_chosen_secret_is_found_even_if_it_looks_like_an_issued_key() {
        let set = KeySet::new().unwrap();
        let looks_issued = key(None).1;
        for secret in ["sixteen-or-more!", &looks_issued, &"x".repeat(512)] {
            set.add_chosen(secret, "api-key", "default", Scopes::default()).unwrap();
            let identity = set.verify(secret.as_bytes()).unwrap();
            assert_eq!((&*identity.owner, &*identity.credential), ("default", "api-key"));
            let longer = format!("{secret}x");
            assert_eq!(set.verify(longer.as_bytes()), Err(Refusal::new("unknown key")));
            assert_eq!(set.verify(&secret.as_bytes()[1..]), Err(Refusal::new("unknown key")));
        }
        let twice = set.add_chosen("sixteen-or-more!", "other", "other", Scopes::default());
        assert_eq!(twice, Err(UnusableSecret::Twice));
        assert_eq!(&*set.verify(b"sixteen-or-more!").unwrap().owner, "default");
        assert!(!format!("{set:?}").contains("sixteen"), "{set:?}");
    }

    #[test]
    fn s16_secrets_that_stay_the_same_stay_valid_and_the_others_do_not() {
        let set = KeySet::new().unwrap();
        let (issued, text) = key(None);
        set.put_issued(&issued);
        let secret = |letter: &str, owner: &str, scope: &str| {
            ChosenSecret::new(letter.repeat(16), letter, owner, Scopes::of([scope]))
        };
        set.set_chosen(&[
            secret("a", "team", "read"),
            secret("b", "team", "read"),
            secret("c", "team", "read"),
        ])
        .unwrap();
        let verify = |letter: &str| set.verify(letter.repeat(16).as_bytes());
        let mut before: Vec<_> = ["a", "b", "c"].map(|letter| verify(letter).unwrap()).into();
        before.push(set.verify(text.as_bytes()).unwrap());
        set.set_chosen(&[
            secret("c", "team", "read"),
            secret("a", "other", "read"),
            secret("b", "team", "write"),
        ])
        .unwrap();
        let valid: Vec<_> = before.iter().map(Identity::is_still_valid).collect();
        assert_eq!(valid, [false, false, true, true]);
        assert_eq!(&*verify("a").unwrap().owner, "other");
        set.set_chosen(&[]).unwrap();
        assert_eq!((before[2].is_still_valid(), before[3].is_still_valid()), (false, true));
        assert!(verify("c").is_err() && set.verify(text.as_bytes()).is_ok());
    }

    #[test]
    fn s16_secrets_that_can_be_guessed_or_not_be_sent_are_refused() {
        let set = KeySet::new().unwrap();
        let add = |secret: &str, owner| set.add_chosen(secret, "n", owner, Scopes::default());
        assert_eq!(add("fifteen-letters", "o"), Err(UnusableSecret::TooShort));
        assert_eq!(add("", "o"), Err(UnusableSecret::TooShort));
        assert_eq!(add(&"x".repeat(513), "o"), Err(UnusableSecret::TooLong));
        for secret in ["with a space inside", "sixteen letters\n", "sechzehn-größere"] {
            assert_eq!(add(secret, "o"), Err(UnusableSecret::Unsendable), "{secret}");
        }
        assert_eq!(add("sixteen-or-more!", "anonymous"), Err(UnusableSecret::Owner(ReservedOwner)));
        assert_eq!(set.verify(b"sixteen-or-more!"), Err(Refusal::new("unknown key")));
        assert_eq!(set.verify(b""), Err(Refusal::new("unknown key")));
    }
}
