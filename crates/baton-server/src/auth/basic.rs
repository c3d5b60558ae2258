//! HTTP basic authentication (RFC 7617): user and password with every request, stored as argon2id.

mod hash_queue;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use hmac::{Hmac, Mac as _};
use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use super::authorization::{self, Found};
use super::passwords::{HashCost, PasswordError, StoredPassword};
use super::principal::Scopes;
use super::record::CredentialRecord;
use super::request::AuthRequest;
use super::scheme::{Identity, Refusal, Scheme, Verdict};
use super::users::{self, BadUser, Realm, StoredUser};
use crate::net::one_customer;
use hash_queue::{HashQueue, Job, Outcome, Tag};

/// What the caller is told of an unknown user and of a wrong password.
const WRONG: &str = "wrong user or password";

/// Limits of [`Basic`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BasicOptions {
    /// Shown to people who are asked for the password.
    pub realm: String,
    /// How long a verified header passes without another hash.
    pub remember: Duration,
    /// Passwords that are hashed at the same time. Each takes the memory of its stored hash.
    pub hashes_at_once: usize,
    /// Passwords that wait to be hashed; beyond it 503.
    pub max_waiting: usize,
    /// Longest user name, in bytes.
    pub max_user: usize,
    /// Longest password, in bytes.
    pub max_password: usize,
    /// Most memory that a stored hash may need, in KiB.
    pub max_hash_memory_kib: u32,
    /// Most passes that a stored hash may need.
    pub max_hash_passes: u32,
}

impl Default for BasicOptions {
    fn default() -> Self {
        BasicOptions {
            realm: "baton".to_owned(),
            remember: Duration::from_secs(60),
            hashes_at_once: 2,
            max_waiting: 256,
            max_user: 128,
            max_password: 1024,
            max_hash_memory_kib: 64 * 1024,
            max_hash_passes: 10,
        }
    }
}

/// Why the users cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BasicError {
    /// A name, an owner or the realm cannot be used.
    #[error(transparent)]
    User(#[from] BadUser),
    /// A stored password cannot be used.
    #[error("the password of user `{user}` {error}")]
    Password {
        /// Whose password.
        user: String,
        /// Why.
        error: PasswordError,
    },
}

/// HTTP basic authentication. Clones share users and limits.
#[derive(Debug, Clone)]
pub struct Basic {
    options: Arc<BasicOptions>,
    realm: Realm,
    users: Arc<ArcSwap<Users>>,
    queue: HashQueue,
}

impl Basic {
    /// Fails if a user is there twice or a stored password is not argon2id or costs more than the limits.
    pub fn new(users: Vec<StoredUser>, options: BasicOptions) -> Result<Self, BasicError> {
        Ok(Basic {
            realm: Realm::new(&options.realm)?,
            users: Arc::new(ArcSwap::from_pointee(Users::new(users, &options)?)),
            queue: HashQueue::new(options.hashes_at_once, options.max_waiting),
            options: Arc::new(options),
        })
    }

    /// Replaces all users. What is open of users with the same password, owner and scopes as before goes on; what is open of
    /// the others is ended at once. An error changes nothing.
    pub fn set_users(&self, users: Vec<StoredUser>) -> Result<(), BasicError> {
        let new = Users::new(users, &self.options)?;
        let before = self.users.rcu(|known| new.with_known(known));
        // Not left to the last reference: a password that is just being hashed holds the old users.
        before.end_unless_in(&self.users.load());
        Ok(())
    }

    async fn check(&self, request: &AuthRequest<'_>, header: Header) -> Verdict {
        let users = &self.users.load_full();
        let known = users.by_name.get(&header.user).map(|at| &users.all[*at]);
        let tag = tag(known.map_or(&users.key, |user| &user.key), &header.value);
        let verified = known.and_then(|user| user.verified_since(&tag));
        if let (Some(user), Some(since)) = (known, verified)
            && since.elapsed() < self.options.remember
        {
            return Verdict::Verified(user.identity.clone());
        }
        let refused = |user| {
            let refusal = Refusal::new(WRONG).of(user);
            Verdict::Refused(if known.is_some() { refusal } else { refusal.unnamed() })
        };
        let Some(hashed) = users.hashed_for(&header.user) else { return refused(header.user) };
        let job = Job {
            tag,
            address: request.client.map(one_customer),
            user: header.user.as_str().into(),
            verified_before: verified.is_some(),
            work: {
                let (users, password) = (Arc::clone(users), header.password);
                Box::new(move || match users.all[hashed].password.matches(&password) {
                    Ok(true) => Outcome::Right,
                    Ok(false) => Outcome::Wrong,
                    Err(_) => Outcome::Failed,
                })
            },
        };
        match (self.queue.check(job).await, known) {
            (Outcome::Right, Some(user)) => {
                user.remember(tag);
                Verdict::Verified(user.identity.clone())
            }
            (Outcome::Right | Outcome::Wrong, _) => refused(header.user),
            (Outcome::Busy, _) => Verdict::Unavailable("too many passwords wait to be hashed".to_owned()),
            (Outcome::Failed, _) => Verdict::Unavailable("a password could not be hashed".to_owned()),
        }
    }
}

#[async_trait]
impl Scheme for Basic {
    fn declared(&self) -> SecurityScheme {
        let kind = SchemeKind::Http { scheme: "basic".to_owned(), bearer_format: None };
        SecurityScheme { description: None, kind }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        let credentials = match authorization::find(request.headers, "basic") {
            Found::Absent => return Verdict::Absent,
            Found::Malformed(reason) => return Verdict::Refused(Refusal::new(reason)),
            Found::Credentials(credentials) => credentials,
        };
        match credentials.token68().and_then(|token| Header::read(token, &self.options)) {
            Ok(header) => self.check(request, header).await,
            Err(reason) => Verdict::Refused(Refusal::new(reason)),
        }
    }

    fn is_sent_by_browsers(&self) -> bool {
        true
    }

    fn challenge(&self, _refused: Option<&Refusal>) -> Option<HeaderValue> {
        HeaderValue::try_from(format!(r#"Basic realm="{}", charset="UTF-8""#, self.realm)).ok()
    }
}

/// User and password of a header. It has no `Debug`.
pub(super) struct Header {
    pub(super) user: String,
    pub(super) password: SecretString,
    /// As the client sent it. There is only one way to write a user and a password in strict base64.
    value: SecretString,
}

impl Header {
    pub(super) fn read(token: &str, options: &BasicOptions) -> Result<Self, &'static str> {
        let longest = options.max_user + 1 + options.max_password;
        if token.len() > longest.div_ceil(3) * 4 {
            return Err("user or password is too long");
        }
        let bytes = STANDARD.decode(token).map_err(|_| "the credentials are not base64 with padding")?;
        let text = SecretString::from(String::from_utf8(bytes).map_err(|_| "the credentials are not UTF-8")?);
        if text.expose_secret().contains(char::is_control) {
            return Err("a control character in user or password");
        }
        let (user, password) =
            text.expose_secret().split_once(':').ok_or("no colon between user and password")?;
        if user.is_empty() {
            return Err("no user");
        }
        if user.len() > options.max_user || password.len() > options.max_password {
            return Err("user or password is too long");
        }
        Ok(Header { user: user.to_owned(), password: password.into(), value: token.into() })
    }
}

#[derive(Clone)]
struct Users {
    by_name: HashMap<String, usize>,
    all: Vec<Arc<User>>,
    /// For what unknown users send.
    key: Hmac<Sha256>,
}

struct User {
    identity: Identity,
    /// What was verified is valid until this ends: when the user is removed or changed.
    record: CredentialRecord,
    password: StoredPassword,
    /// For the user's headers. A user whose password is changed has another one: a header that is just being verified for the
    /// old password must not pass for the new one.
    key: Hmac<Sha256>,
    /// The header that was last verified. A user has one password, so it is the only one that can be.
    verified: Mutex<Option<(Tag, Instant)>>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.all.len())
    }
}

impl Users {
    fn new(users: Vec<StoredUser>, options: &BasicOptions) -> Result<Self, BasicError> {
        let cost =
            HashCost { max_memory_kib: options.max_hash_memory_kib, max_passes: options.max_hash_passes };
        let (mut by_name, mut all) = (HashMap::new(), Vec::new());
        for StoredUser { user, owner, scopes, password } in users {
            users::check(&user, &owner, options.max_user)?;
            let password = StoredPassword::parse(password.expose_secret(), cost)
                .map_err(|error| BasicError::Password { user: user.clone(), error })?;
            let record = CredentialRecord::new();
            let identity = Identity::new(owner, Scopes::of(scopes), user.as_str()).while_exists(&record);
            if by_name.insert(user.clone(), all.len()).is_some() {
                return Err(BadUser::Twice(user).into());
            }
            let (key, verified) = (users::random_key(), Mutex::default());
            all.push(Arc::new(User { identity, record, password, key, verified }));
        }
        Ok(Users { by_name, all, key: users::random_key() })
    }

    /// These users, with what is known of those who have not changed.
    fn with_known(&self, known: &Users) -> Self {
        let mut users = self.clone();
        for (name, at) in &users.by_name {
            if let Some(before) = known.by_name.get(name).map(|at| &known.all[*at])
                && before.identity == users.all[*at].identity
                && before.password == users.all[*at].password
            {
                users.all[*at] = Arc::clone(before);
            }
        }
        users
    }

    /// Ends what was verified of users who are not in `now`.
    fn end_unless_in(&self, now: &Users) {
        for user in self.all.iter().filter(|user| !now.all.iter().any(|stays| Arc::ptr_eq(stays, user))) {
            user.record.end();
        }
    }

    /// Whose stored password is hashed for this user. An unknown one costs what one of the known ones does, always the
    /// same, so that the time does not tell who exists. `None` if there are no users.
    fn hashed_for(&self, user: &str) -> Option<usize> {
        if let Some(known) = self.by_name.get(user) {
            return Some(*known);
        }
        let mut mac = self.key.clone();
        mac.update(b"unknown user ");
        mac.update(user.as_bytes());
        let chosen = u64::from_be_bytes(*mac.finalize().into_bytes().first_chunk()?);
        usize::try_from(chosen.checked_rem(self.all.len() as u64)?).ok()
    }
}

fn tag(key: &Hmac<Sha256>, header: &SecretString) -> Tag {
    let mut mac = key.clone();
    mac.update(header.expose_secret().as_bytes());
    mac.finalize().into_bytes().into()
}

impl User {
    /// When this header was last verified.
    fn verified_since(&self, tag: &Tag) -> Option<Instant> {
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        verified.as_ref().filter(|(known, _)| known.ct_eq(tag).into()).map(|(_, since)| *since)
    }

    fn remember(&self, tag: Tag) {
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner) = Some((tag, Instant::now()));
    }
}

#[cfg(test)]
mod tests;
