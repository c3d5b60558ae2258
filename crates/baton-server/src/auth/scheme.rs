//! One way to authenticate.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use baton_protocol::domain::security::SecurityScheme;
use http::HeaderValue;

use super::principal::Scopes;
use super::record::{CredentialRecord, Watched};
use super::request::AuthRequest;

/// One way to authenticate: finds its own credential in a request and verifies it.
#[async_trait]
pub trait Scheme: Send + Sync + fmt::Debug + 'static {
    /// The entry in a card's `securitySchemes`.
    fn declared(&self) -> SecurityScheme;

    /// Looks for this scheme's credential in the request and verifies it.
    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict;

    /// A value for `WWW-Authenticate`. `refused` is why this scheme's credential was refused, if the request had one.
    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue>;

    /// Whether browsers send the credential by themselves, as they do with cookies, passwords that were typed once and
    /// client certificates. Then a page of another origin could use it, so it is refused in requests of such pages.
    fn is_sent_by_browsers(&self) -> bool {
        false
    }

    /// Whether the credential is a bearer token. A token that one scheme has verified is not shown to the schemes after it:
    /// one of them may send it to another server.
    fn takes_bearer_tokens(&self) -> bool {
        false
    }
}

/// What a scheme found in a request.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// The request has no credential of this scheme.
    Absent,
    /// The credential is valid.
    Verified(Identity),
    /// The credential is not valid.
    Refused(Refusal),
    /// It cannot be decided now, for example because another server does not answer. The text is logged, and never
    /// shown to the caller.
    Unavailable(String),
}

/// Whom a valid credential names, and what it allows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Identity {
    /// The owner of the caller's tasks.
    pub owner: Arc<str>,
    /// What the credential allows.
    pub scopes: Scopes,
    /// A public name of the credential for the log: the id of a key, a user, a certificate's name.
    pub credential: Arc<str>,
    /// When the credential expires.
    until: Option<SystemTime>,
    /// The record of the credential. It ends when the credential is revoked or changed.
    record: Option<Watched>,
    /// Its scheme in the chain. It ends when another one takes the scheme's place.
    scheme: Option<Watched>,
}

/// How long each is valid makes no difference.
impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.owner == other.owner && self.scopes == other.scopes && self.credential == other.credential
    }
}

impl Eq for Identity {}

impl Identity {
    /// `credential` is a public name of the credential for the log.
    pub fn new(owner: impl Into<Arc<str>>, scopes: Scopes, credential: impl Into<Arc<str>>) -> Self {
        Identity {
            owner: owner.into(),
            scopes,
            credential: credential.into(),
            until: None,
            record: None,
            scheme: None,
        }
    }

    /// Valid until then. A stream or call that is open at that time is ended.
    #[must_use]
    pub fn until(mut self, at: SystemTime) -> Self {
        self.until = Some(at);
        self
    }

    /// Valid for so long.
    #[must_use]
    pub fn valid_for(self, time: Duration) -> Self {
        match SystemTime::now().checked_add(time) {
            Some(at) => self.until(at),
            None => self,
        }
    }

    /// Valid as long as `record` exists. A stream or call that is open when it ends is ended, too.
    #[must_use]
    pub fn while_exists(mut self, record: &CredentialRecord) -> Self {
        self.record = Some(record.watch());
        self
    }

    /// Valid as long as the scheme is part of its chain.
    pub(super) fn verified_by(mut self, scheme: &CredentialRecord) -> Self {
        self.scheme = Some(scheme.watch());
        self
    }

    /// Whether the credential has neither expired nor been revoked since it was verified, and its scheme is still used.
    pub fn is_still_valid(&self) -> bool {
        self.records().all(|record| !record.has_ended())
            && self.until.is_none_or(|until| SystemTime::now() < until)
    }

    /// How long until it expires, if it does.
    pub(super) fn expires_in(&self) -> Option<Duration> {
        self.until.map(|until| until.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Waits until it is revoked or changed, or its scheme is no longer used.
    pub(super) async fn until_revoked(&self) {
        tokio::select! {
            biased;
            () = end_of(self.record.as_ref()) => {}
            () = end_of(self.scheme.as_ref()) => {}
        }
    }

    fn records(&self) -> impl Iterator<Item = &Watched> {
        self.record.iter().chain(&self.scheme)
    }
}

async fn end_of(record: Option<&Watched>) {
    match record {
        Some(record) => record.ended().await,
        None => std::future::pending().await,
    }
}

/// Why a credential is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// A few words for the caller, such as `expired`.
    pub reason: &'static str,
    /// The public part of the credential: the id of a key, a user. Failures are counted by it.
    pub credential: Option<String>,
    /// Whether the log may name the credential. Not a user that does not exist: people type passwords there.
    pub is_named: bool,
    /// Whether it counts against the caller. A right password with an outdated nonce does not.
    pub is_failure: bool,
}

impl Refusal {
    /// A refusal of a credential whose public part cannot be read.
    pub fn new(reason: &'static str) -> Self {
        Refusal { reason, credential: None, is_named: true, is_failure: true }
    }

    /// Adds the public part of the credential.
    #[must_use]
    pub fn of(mut self, credential: impl Into<String>) -> Self {
        self.credential = Some(credential.into());
        self
    }

    /// The log does not name the credential.
    #[must_use]
    pub fn unnamed(mut self) -> Self {
        self.is_named = false;
        self
    }

    /// The caller only has to try again, as often as it likes: the refusal is not counted.
    #[must_use]
    pub fn not_a_failure(mut self) -> Self {
        self.is_failure = false;
        self
    }
}
