//! Authentication and authorization. The caller is authenticated once for each request, before its body is read. What
//! the caller may do is checked after the call is decoded, because the body may name the agent, the tenant, the skill and
//! the operation.
//!
//! Most servers use a [`Chain`] of ready-made [`Scheme`]s, given to [`Builder::auth`](crate::Builder::auth): the chain
//! writes the security section of the cards, and enforces what they declare. An [`Authenticator`] of your own does both
//! itself.

mod api_key;
mod audit;
mod authenticator;
mod authorization;
mod basic;
mod bearer;
mod chain;
mod challenge;
mod digest;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(feature = "jwt")]
pub mod introspection;
mod issued_keys;
#[cfg(feature = "jwt")]
pub mod jwt;
mod key_set;
mod key_text;
#[cfg(feature = "tls")]
mod mutual_tls;
mod passwords;
mod permission;
mod principal;
mod proxy_user;
mod random;
mod record;
mod request;
mod requirement;
mod scheme;
mod throttle;
mod users;
mod withdrawn;

pub use api_key::ApiKeys;
pub use authenticator::{Anonymous, Authenticator};
pub use basic::{Basic, BasicError, BasicOptions};
pub use bearer::BearerTokens;
pub use chain::{Chain, OtherSchemes};
pub use challenge::Challenge;
pub use digest::{Digest, DigestError, DigestOptions, digest_password};
pub use issued_keys::{IssuedKeys, KeyError, MAX_KEYS, NewKey};
pub use key_set::{ChosenSecret, KeySet, UnusableSecret};
#[cfg(feature = "tls")]
pub use mutual_tls::{CertificateName, MutualTls, MutualTlsOptions};
pub use passwords::{PasswordError, hash_password};
pub use principal::{Principal, ReservedOwner, Scopes};
pub use proxy_user::{ProxyUser, ProxyUserError, ProxyUserOptions};
pub use random::NoRandomNumbers;
pub use record::CredentialRecord;
pub use request::{Access, AuthRequest, TlsPeer};
pub use scheme::{Identity, Refusal, Scheme, Verdict};
pub use throttle::{Throttle, ThrottleOptions};
pub use users::{BadUser, StoredUser};
pub use withdrawn::Withdrawn;

pub(crate) use permission::SkillPermission;
pub(crate) use principal::is_anonymous;
pub(crate) use random::bytes as random_bytes;
