//! What an operator decides about tokens of one issuer.

use std::fmt;
use std::time::Duration;

use baton_protocol::domain::security::SecurityScheme;

use super::algorithm::Algorithm;
use super::claims::ClaimRules;
use super::key_cache::KeyCacheOptions;
use super::token_cache::TokenCacheOptions;

/// Which tokens of one issuer are accepted. Every token must have this issuer, one of the audiences, and a time at which it
/// expires.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JwtOptions {
    /// The value of `iss`, compared letter by letter.
    pub issuer: String,
    /// `aud` must have one of them. Without this check, a token that the issuer made for another service would be accepted.
    pub audiences: Vec<String>,
    /// Where the issuer's public keys are.
    pub keys: KeysFrom,
    /// Default: [`Algorithm::DEFAULT`].
    pub algorithms: Vec<Algorithm>,
    /// Allowed values of `typ`, in any case and with or without `application/`; a token without `typ` is always allowed.
    /// Default: `JWT` and `at+jwt`.
    pub types: Vec<String>,
    /// How far the clocks of issuer and server may differ. Default: 60 s.
    pub leeway: Duration,
    /// Longest time since `iat`, which is then required. Default: none.
    pub max_age: Option<Duration>,
    /// Largest token. Default: 8 KiB.
    pub max_token_bytes: usize,
    /// Whom a token names.
    pub claims: ClaimRules,
    /// How the issuer's keys are fetched and kept.
    pub key_cache: KeyCacheOptions,
    /// Tokens whose signature was checked. Default: 10,000 tokens for 60 s. A key that the issuer takes back is refused from
    /// the next fetch of the keys on, for these tokens too.
    pub verified: TokenCacheOptions,
    /// What the response to a request without a valid token says.
    pub challenge: ChallengeOptions,
    /// The entry on the card. Default: OpenID Connect if the keys are found by discovery, else an HTTP bearer token.
    pub declared: Option<SecurityScheme>,
}

/// Where the public keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeysFrom {
    /// The `jwks_uri` of the issuer's OpenID configuration, at `<issuer>/.well-known/openid-configuration`.
    Discovery,
    /// A key set at this URL.
    Url(String),
    /// This key set, as JSON. It is never fetched.
    Set(String),
}

impl JwtOptions {
    /// Tokens of an OpenID provider: its keys are found by discovery.
    pub fn oidc(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self::new(issuer.into(), audience.into(), KeysFrom::Discovery, "oidc:")
    }

    /// Tokens of any issuer with a key set at this URL.
    pub fn jwks(issuer: impl Into<String>, audience: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(issuer.into(), audience.into(), KeysFrom::Url(url.into()), "jwt:")
    }

    fn new(issuer: String, audience: String, keys: KeysFrom, prefix: &str) -> Self {
        JwtOptions {
            issuer,
            audiences: vec![audience],
            keys,
            algorithms: Algorithm::DEFAULT.to_vec(),
            types: vec!["JWT".to_owned(), "at+jwt".to_owned()],
            leeway: Duration::from_secs(60),
            max_age: None,
            max_token_bytes: 8 * 1024,
            claims: ClaimRules::with_prefix(prefix),
            key_cache: KeyCacheOptions::default(),
            verified: TokenCacheOptions::new(10_000, Duration::from_secs(60)),
            challenge: ChallengeOptions::default(),
            declared: None,
        }
    }
}

/// What `WWW-Authenticate` says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChallengeOptions {
    /// A name of what is protected. Default: `baton`.
    pub realm: String,
    /// Where this server describes which tokens it accepts (RFC 9728).
    pub resource_metadata: Option<String>,
}

impl Default for ChallengeOptions {
    fn default() -> Self {
        ChallengeOptions { realm: "baton".to_owned(), resource_metadata: None }
    }
}

/// An option that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadTokenOption {
    option: &'static str,
    why: String,
}

impl BadTokenOption {
    pub(crate) fn new(option: &'static str, why: impl Into<String>) -> Self {
        BadTokenOption { option, why: why.into() }
    }

    /// The name of the option.
    pub fn option(&self) -> &str {
        self.option
    }

    /// What is wrong with it.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for BadTokenOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.option, self.why)
    }
}

impl std::error::Error for BadTokenOption {}
