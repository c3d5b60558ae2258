//! HTTP digest authentication (RFC 7616), with SHA-256 and `qop=auth` only. The password never crosses the network, but
//! what is stored is as good as the password for this realm: basic over TLS is safer where both are possible.

mod nonces;
mod response;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::authorization::{self, Found};
use super::principal::Scopes;
use super::record::CredentialRecord;
use super::request::AuthRequest;
use super::scheme::{Identity, Refusal, Scheme, Verdict};
use super::users::{self, BadUser, Realm, StoredUser};
use nonces::{Nonces, UsedNonces};
pub(super) use response::Response;

/// What the caller is told of an unknown user and of a wrong password.
const WRONG: &str = "wrong user or password";
/// The password is right, but the nonce is expired or was used: the client may try again without asking anybody.
const STALE: &str = "stale nonce";

/// The stored form of a password: SHA-256 of `user:realm:password`, in hexadecimal. It is as secret as the password.
pub fn digest_password(user: &str, realm: &str, password: &SecretString) -> SecretString {
    let mut hash = Sha256::new();
    for part in [user, ":", realm, ":", password.expose_secret()] {
        hash.update(part.as_bytes());
    }
    response::hexadecimal(&hash.finalize().into()).into()
}

/// Realm and limits of [`Digest`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DigestOptions {
    /// Part of every stored password: after a change, all of them have to be made again.
    pub realm: String,
    /// How long a nonce can be used. A client then gets a new one and tries again by itself.
    pub nonce_lifetime: Duration,
    /// Nonces of one user that are in use at the same time; one more makes the oldest stale.
    pub max_nonces: usize,
    /// Longest user name, in bytes.
    pub max_user: usize,
}

impl Default for DigestOptions {
    fn default() -> Self {
        DigestOptions {
            realm: "baton".to_owned(),
            nonce_lifetime: Duration::from_secs(300),
            max_nonces: 256,
            max_user: 128,
        }
    }
}

/// Why the users cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DigestError {
    /// A name, an owner or the realm cannot be used.
    #[error(transparent)]
    User(#[from] BadUser),
    /// The stored password is not 64 hexadecimal digits.
    #[error("the password of user `{0}` is not the SHA-256 of user:realm:password, in 64 hexadecimal digits")]
    Password(String),
}

/// HTTP digest authentication. Clones share users and nonces.
///
/// Nonces are only valid in the process that made them: several servers behind one address need a balancer that sends a
/// client to the same one, or another scheme.
#[derive(Debug, Clone)]
pub struct Digest {
    options: Arc<DigestOptions>,
    realm: Realm,
    users: Arc<ArcSwap<Users>>,
    nonces: Arc<Nonces>,
}

impl Digest {
    /// Fails if a user is there twice or a stored password is not one.
    pub fn new(users: Vec<StoredUser>, options: DigestOptions) -> Result<Self, DigestError> {
        let nonces = Nonces::new(options.nonce_lifetime);
        Ok(Digest {
            realm: Realm::new(&options.realm)?,
            users: Arc::new(ArcSwap::from_pointee(Users::new(users, &options, &nonces)?)),
            options: Arc::new(options),
            nonces: Arc::new(nonces),
        })
    }

    /// Replaces all users. What is open of users with the same password, owner and scopes as before goes on; what is open of
    /// the others is ended at once. An error changes nothing.
    pub fn set_users(&self, users: Vec<StoredUser>) -> Result<(), DigestError> {
        let new = Users::new(users, &self.options, &self.nonces)?;
        let before = self.users.rcu(|known| new.with_known(known));
        before.end_unless_in(&self.users.load());
        Ok(())
    }

    fn check(&self, request: &AuthRequest<'_>, response: &Response<'_>) -> Verdict {
        let users = self.users.load();
        let known = users.by_name.get(response.user.as_ref());
        let refused = |reason| {
            let refusal = Refusal::new(reason).of(response.user.as_ref());
            Verdict::Refused(if known.is_some() { refusal } else { refusal.unnamed() })
        };
        if response.realm != self.realm.as_str() {
            return refused("another realm");
        }
        if !response.is_for(request.uri, request.headers, request.public_path()) {
            return refused("the uri is not that of the request");
        }
        // The same work for an unknown user as for a wrong password.
        let stored = known.map_or(&users.nobody, |user| &user.stored);
        let expected = response.expected(stored.expose_secret(), request.method.as_str());
        let is_right: bool = expected.as_bytes().ct_eq(response.response.as_bytes()).into();
        let Some(user) = known.filter(|_| is_right) else { return refused(WRONG) };
        // Last, so that only who knows the password takes room in the list of used nonces.
        match self.nonces.open(response.nonce) {
            Some(nonce) if user.used.take(nonce, response.count) => Verdict::Verified(user.identity.clone()),
            _ => Verdict::Refused(Refusal::new(STALE).of(response.user.as_ref()).not_a_failure()),
        }
    }
}

#[async_trait]
impl Scheme for Digest {
    fn declared(&self) -> SecurityScheme {
        let kind = SchemeKind::Http { scheme: "digest".to_owned(), bearer_format: None };
        SecurityScheme { description: None, kind }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        let credentials = match authorization::find(request.headers, "digest") {
            Found::Absent => return Verdict::Absent,
            Found::Malformed(reason) => return Verdict::Refused(Refusal::new(reason)),
            Found::Credentials(credentials) => credentials,
        };
        let parameters = match credentials.parameters() {
            Ok(parameters) => parameters,
            Err(reason) => return Verdict::Refused(Refusal::new(reason)),
        };
        match Response::read(&parameters, self.options.max_user) {
            Ok(response) => self.check(request, &response),
            Err(reason) => Verdict::Refused(Refusal::new(reason)),
        }
    }

    fn is_sent_by_browsers(&self) -> bool {
        true
    }

    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        let nonce = self.nonces.fresh();
        let stale = if refused.is_some_and(|refused| refused.reason == STALE) { ", stale=true" } else { "" };
        let realm = &self.realm;
        HeaderValue::try_from(format!(
            r#"Digest realm="{realm}", qop="auth", algorithm=SHA-256, nonce="{nonce}", charset=UTF-8{stale}"#
        ))
        .ok()
    }
}

#[derive(Clone)]
struct Users {
    by_name: HashMap<String, Arc<User>>,
    /// Stands for the stored password of unknown users.
    nobody: SecretString,
}

struct User {
    identity: Identity,
    /// What was verified is valid until this ends: when the user is removed or changed.
    record: CredentialRecord,
    stored: SecretString,
    used: UsedNonces,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.by_name.len())
    }
}

impl Users {
    fn new(users: Vec<StoredUser>, options: &DigestOptions, nonces: &Nonces) -> Result<Self, DigestError> {
        let mut by_name = HashMap::new();
        for StoredUser { user, owner, scopes, password } in users {
            users::check(&user, &owner, options.max_user)?;
            // The stored text itself is hashed, so its case matters.
            let stored = SecretString::from(password.expose_secret().to_ascii_lowercase());
            if !response::is_hash(stored.expose_secret()) {
                return Err(DigestError::Password(user));
            }
            let record = CredentialRecord::new();
            let identity = Identity::new(owner, Scopes::of(scopes), user.as_str()).while_exists(&record);
            // Which earlier nonces a user of this name has used is not known any more.
            let used = UsedNonces::after(nonces.last(), options.max_nonces);
            let new = User { identity, record, stored, used };
            if by_name.insert(user.clone(), Arc::new(new)).is_some() {
                return Err(BadUser::Twice(user).into());
            }
        }
        let nobody = [uuid::Uuid::new_v4().simple().to_string(), uuid::Uuid::new_v4().simple().to_string()];
        Ok(Users { by_name, nobody: nobody.concat().into() })
    }

    /// These users, with what is known of those who have not changed.
    fn with_known(&self, known: &Users) -> Self {
        let mut users = self.clone();
        for (name, user) in &mut users.by_name {
            if let Some(before) = known.by_name.get(name).filter(|before| before.is_same(user)) {
                *user = Arc::clone(before);
            }
        }
        users
    }

    /// Ends what was verified of users who are not in `now`.
    fn end_unless_in(&self, now: &Users) {
        for (name, user) in &self.by_name {
            if !now.by_name.get(name).is_some_and(|stays| Arc::ptr_eq(stays, user)) {
                user.record.end();
            }
        }
    }
}

impl User {
    fn is_same(&self, other: &User) -> bool {
        self.identity == other.identity && self.stored.expose_secret() == other.stored.expose_secret()
    }
}

#[cfg(test)]
mod tests;
