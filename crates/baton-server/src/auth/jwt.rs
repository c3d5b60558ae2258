//! Bearer tokens that another server issues: JWTs by JWKS, OpenID Connect, and OAuth 2.0 with JWTs. For tokens that only
//! their issuer can read, see [`introspection`](super::introspection).
//!
//! ```
//! # fn main() -> Result<(), baton_server::auth::jwt::BadTokenOption> {
//! use baton_server::auth::Chain;
//! use baton_server::auth::jwt::{FetchOptions, Fetcher, Jwt, JwtOptions};
//!
//! let fetcher = Fetcher::new(&FetchOptions::default())?;
//! let options = JwtOptions::oidc("https://login.example.com", "https://agent.example.com");
//! let chain = Chain::new().scheme("oidc", Jwt::new(options, fetcher)?);
//! # drop(chain);
//! # Ok(())
//! # }
//! ```
//!
//! # What is checked
//!
//! The header may only choose among the allowed algorithms and the issuer's keys; the key must be meant for signatures and
//! for that algorithm. `iss` is the configured one, `aud` has one of the configured ones, `exp` is there and not over, `nbf`
//! and `iat` are not in the future. Tokens with critical extensions, with a member that is there twice, of another type, or
//! bound to a key of their holder (`cnf`) are refused.
//!
//! ECDSA signatures have a second valid form, with another `s` (RFC 7518 does not forbid it, and issuers make both). Both are
//! accepted: nothing here takes a token's bytes for its identity.
//!
//! # When a key is taken back
//!
//! The issuer's keys are fetched again after 5 to 60 minutes, as the `max-age` of the response says, when a request needs
//! them. Tokens that were verified before are remembered for at most 60 s, and are verified again when the keys change. So a
//! token whose key the issuer removes is refused after at most its `max-age` (60 min) and 60 s more; both are options.

mod algorithm;
mod bearer_challenge;
mod claims;
mod fetch;
mod key_cache;
mod options;
mod provider;
mod public_keys;
mod token;
mod token_cache;

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use http::HeaderValue;

pub use algorithm::Algorithm;
pub use claims::ClaimRules;
pub use fetch::{FetchOptions, Fetcher};
pub use key_cache::KeyCacheOptions;
pub use options::{BadTokenOption, ChallengeOptions, JwtOptions, KeysFrom};
pub use provider::{Grant, Provider};
pub use token_cache::TokenCacheOptions;

pub(super) use bearer_challenge::BearerChallenge;
pub(super) use claims::Validity;
pub(super) use fetch::checked_url;
pub(super) use token_cache::{TokenCache, TokenDigest, token_digest};

use super::authorization::{Credentials, Found, find};
use super::{AuthRequest, Identity, Refusal, Scheme, Verdict};
use crate::engine::clock::{Clock, SystemClock};
use claims::EXPIRED;
use key_cache::{KeyCache, NoKey};
use token::Token;

/// Accepts the JWTs of one issuer in `Authorization: Bearer`.
#[derive(Debug)]
pub struct Jwt {
    options: JwtOptions,
    keys: KeyCache,
    verified: TokenCache<Identity>,
    challenge: BearerChallenge,
    declared: SecurityScheme,
    clock: Arc<dyn Clock>,
}

impl Jwt {
    /// Fails if an option cannot be used. Nothing is fetched yet.
    pub fn new(options: JwtOptions, fetcher: Fetcher) -> Result<Self, BadTokenOption> {
        if options.issuer.is_empty() {
            return Err(BadTokenOption::new("issuer", "must not be empty"));
        }
        if options.audiences.is_empty() || options.audiences.iter().any(String::is_empty) {
            return Err(BadTokenOption::new("audiences", "must have at least one, and none that is empty"));
        }
        if options.algorithms.is_empty() {
            return Err(BadTokenOption::new("algorithms", "must have at least one"));
        }
        let keys = KeyCache::new(&options.issuer, &options.keys, options.key_cache.clone(), fetcher)?;
        let declared = match (&options.declared, &options.keys) {
            (Some(declared), _) => declared.clone(),
            (None, KeysFrom::Discovery) => {
                let url = provider::openid_url(&options.issuer)?.to_string();
                SecurityScheme { description: None, kind: SchemeKind::OpenIdConnect { url } }
            }
            (None, _) => bearer_scheme(Some("JWT")),
        };
        Ok(Jwt {
            keys,
            verified: TokenCache::new(options.verified),
            challenge: BearerChallenge::new(&options.challenge)?,
            declared,
            clock: Arc::new(SystemClock),
            options,
        })
    }

    /// Another clock than the system's, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Fetches the issuer's keys now. Without it the first token does. An error is for the operator; later tokens try again.
    pub async fn fetch_keys(&self) -> Result<(), String> {
        self.keys.fetch().await
    }

    /// Replaces the keys of [`KeysFrom::Set`]; false if the keys are fetched. What is open of tokens that were signed with a
    /// key that stays goes on; what is open of the others is ended at once.
    pub fn set_keys(&self, text: &str) -> Result<bool, BadTokenOption> {
        self.keys.replace(text)
    }

    async fn check(&self, text: Credentials<'_>, name: TokenDigest) -> Result<Identity, Failure> {
        let options = &self.options;
        let token = Token::parse(text.token68()?, &options.algorithms, &options.types)?;
        let validity = Validity {
            issuer: Some(&options.issuer),
            issuer_required: true,
            audiences: &options.audiences,
            expiry_required: true,
            leeway: options.leeway,
            max_age: options.max_age,
        };
        // Before the signature, although nobody vouches for the claims yet: the token of another issuer must not make us
        // look for its key among ours.
        let valid_for = validity.check(&token.claims, self.clock.now())?;
        let kid = token.kid.as_deref();
        let identity = options.claims.identity(&token.claims, kid.unwrap_or("no kid"))?;
        let identity = match valid_for {
            Some(time) => identity.valid_for(time),
            None => identity,
        };
        let keys = self.keys.find(kid, token.algorithm).await?;
        let signed = keys.verify(kid, token.algorithm, token.message, &token.signature)?;
        let identity = identity.while_exists(signed);
        self.verified.insert(name, identity.clone(), keys.version, valid_for);
        Ok(identity)
    }
}

/// Why a token is not accepted.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    Refused(&'static str),
    Unavailable(String),
}

impl From<&'static str> for Failure {
    fn from(reason: &'static str) -> Self {
        Failure::Refused(reason)
    }
}

impl From<NoKey> for Failure {
    fn from(no_key: NoKey) -> Self {
        match no_key {
            NoKey::Unknown => Failure::Refused("signed with an unknown key"),
            NoKey::Unavailable(why) => Failure::Unavailable(why),
        }
    }
}

impl From<Failure> for Verdict {
    fn from(failure: Failure) -> Self {
        match failure {
            // Not counted, so that the client is told to renew its token, and not to wait.
            Failure::Refused(EXPIRED) => Verdict::Refused(Refusal::new(EXPIRED).not_a_failure()),
            Failure::Refused(reason) => Verdict::Refused(Refusal::new(reason)),
            Failure::Unavailable(why) => Verdict::Unavailable(why),
        }
    }
}

impl From<Result<Identity, Failure>> for Verdict {
    fn from(checked: Result<Identity, Failure>) -> Self {
        checked.map_or_else(Verdict::from, Verdict::Verified)
    }
}

/// The token of a request, if it has one; otherwise the verdict. Its letters are not checked yet, because a token that is
/// known needs no check.
pub(super) fn bearer_token<'a>(
    request: &AuthRequest<'a>,
    max_bytes: usize,
) -> Result<Credentials<'a>, Verdict> {
    let refused = |reason| Err(Verdict::Refused(Refusal::new(reason)));
    match find(request.headers, "bearer") {
        Found::Absent => Err(Verdict::Absent),
        Found::Malformed(reason) => refused(reason),
        Found::Credentials(found) if found.as_bytes().len() > max_bytes => refused("the token is too long"),
        Found::Credentials(found) => Ok(found),
    }
}

pub(super) fn bearer_scheme(format: Option<&str>) -> SecurityScheme {
    let bearer_format = format.map(str::to_owned);
    SecurityScheme {
        description: None,
        kind: SchemeKind::Http { scheme: "bearer".to_owned(), bearer_format },
    }
}

#[async_trait]
impl Scheme for Jwt {
    fn declared(&self) -> SecurityScheme {
        self.declared.clone()
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        let token = match bearer_token(request, self.options.max_token_bytes) {
            Ok(token) => token,
            Err(verdict) => return verdict,
        };
        let name = token_digest(token.as_bytes());
        if let Some(identity) = self.verified.get(&name, self.keys.version()) {
            return Verdict::Verified(identity);
        }
        self.check(token, name).await.into()
    }

    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        self.challenge.header(refused)
    }

    fn takes_bearer_tokens(&self) -> bool {
        true
    }
}
