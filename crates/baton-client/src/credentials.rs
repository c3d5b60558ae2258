//! Credentials: which of them an agent gets, and how.
//!
//! The card says which schemes the agent accepts; the user gives credentials. They are matched here, once per client. A
//! credential goes to the origin that the user named and to no other, whatever addresses the card lists; redirects never
//! get one.

mod challenge;
mod digest;
pub(crate) mod oauth;
mod plan;
mod provider;

use std::fmt;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_protocol::domain::AgentCard;
use http::{HeaderName, HeaderValue, header};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use self::digest::Session;
use self::oauth::{Caller, OAuthClient, TokenSource};
use self::plan::{Plan, Step};
pub use self::provider::TokenProvider;
use crate::error::Error;
use crate::http::Request;
use crate::origin::Origin;

/// Something that proves who the caller is.
#[derive(Clone)]
#[non_exhaustive]
pub enum Credential {
    /// An API key; the card says where it is sent.
    ApiKey(SecretString),
    /// A bearer token, however it was obtained.
    Bearer(SecretString),
    /// A bearer token that changes.
    BearerFrom(TokenProvider),
    /// User and password, for basic and digest authentication.
    Password {
        /// The user's name.
        user: String,
        /// The password.
        password: SecretString,
    },
    /// Tokens of the authorization server that the card names.
    OAuth(OAuthClient),
}

impl Credential {
    /// An API key.
    pub fn api_key(key: impl Into<String>) -> Self {
        Self::ApiKey(key.into().into())
    }

    /// A bearer token.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self::Bearer(token.into().into())
    }

    /// A bearer token that changes: `provide` is asked before each request, so it should remember the token while it is good.
    /// After a 401 it is asked once more; if it then gives another token, the request is made again.
    pub fn bearer_from<F, E>(provide: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, E>> + Send + 'static,
        E: fmt::Display,
    {
        Self::BearerFrom(TokenProvider::new(provide))
    }

    /// User and password.
    pub fn password(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self::Password { user: user.into(), password: password.into().into() }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey(_) => f.write_str("ApiKey([redacted])"),
            Self::Bearer(_) => f.write_str("Bearer([redacted])"),
            Self::BearerFrom(_) => f.write_str("BearerFrom(…)"),
            Self::Password { user, .. } => write!(f, "Password({user:?}, [redacted])"),
            Self::OAuth(client) => fmt::Debug::fmt(client, f),
        }
    }
}

/// The user's credentials: for a scheme of the card by its name, or for any scheme they fit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) named: Vec<(String, Credential)>,
    pub(crate) any: Vec<Credential>,
}

/// Where an API key is sent if the card does not say.
const DEFAULT_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

impl Credentials {
    /// Whether there is one that can be sent before the card is known.
    pub(crate) fn without_card(&self) -> bool {
        self.any.iter().any(|credential| plan::usual(credential).is_some())
    }

    /// For a card that only some may read: how each credential is sent most often.
    pub(crate) async fn apply_without_card(&self, request: &mut Request) -> Result<(), Error> {
        for step in self.any.iter().filter_map(plan::usual) {
            step.known().await?.apply_plain(request)?;
        }
        Ok(())
    }
}

/// Puts credentials into requests and answers challenges.
#[derive(Debug)]
pub(crate) struct Authorizer {
    plan: Plan,
    trusted: Vec<Origin>,
    has_certificate: bool,
    digest: Mutex<Option<Session>>,
}

impl Authorizer {
    pub(crate) fn new(
        credentials: &Credentials,
        card: &AgentCard,
        trusted: Vec<Origin>,
        has_certificate: bool,
    ) -> Self {
        let plan = Plan::make(credentials, card, has_certificate, &trusted);
        Authorizer { plan, trusted, has_certificate, digest: Mutex::new(None) }
    }

    /// Whether the user's credentials and headers may go there.
    pub(crate) fn trusts(&self, request: &Request) -> bool {
        self.trusts_address(&request.url)
    }

    pub(crate) fn trusted(&self) -> &[Origin] {
        &self.trusted
    }

    fn trusts_address(&self, url: &Url) -> bool {
        Origin::of(url).is_some_and(|origin| self.trusted.iter().any(|trusted| trusted.covers(&origin)))
    }

    /// Whether there are credentials, or headers of the user's own, that this address does not get.
    pub(crate) fn withholds(&self, url: &Url, has_headers: bool) -> bool {
        let is_kept_back = |step: &Step| matches!(step, Step::OAuth(source) if !source.may_go_to(url));
        match self.trusts_address(url) {
            true => self.plan.steps.iter().any(is_kept_back),
            false => self.has_certificate || has_headers || !self.plan.steps.is_empty(),
        }
    }

    /// The schemes that the card requires and that no credential was given for; empty if nothing is missing.
    pub(crate) fn missing(&self) -> &[String] {
        &self.plan.missing
    }

    /// Where tokens come from, if the plan has such a step.
    pub(crate) fn token_source(&self) -> Option<&TokenSource> {
        self.plan.steps.iter().find_map(|step| match step {
            Step::OAuth(source) => Some(&**source),
            _ => None,
        })
    }

    /// Adds the credentials; true if the request now has one.
    pub(crate) async fn apply(&self, caller: &Caller, request: &mut Request) -> Result<bool, Error> {
        if !self.trusts(request) {
            return Ok(false);
        }
        request.with_certificate = self.has_certificate;
        let mut sent = self.has_certificate && request.url.scheme() == "https";
        for step in &self.plan.steps {
            match step {
                Step::Digest { user, password } => {
                    let mut session = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(session) = session.as_mut() {
                        let value = session.answer(user, password, request)?;
                        request.headers.insert(header::AUTHORIZATION, value);
                        sent = true;
                    }
                }
                Step::OAuth(source) if !source.may_go_to(&request.url) => {}
                Step::OAuth(source) => {
                    let token = source.token(caller).await?;
                    Step::Bearer(token).apply_plain(request)?;
                    sent = true;
                }
                plain => {
                    plain.known().await?.apply_plain(request)?;
                    sent = true;
                }
            }
        }
        Ok(sent)
    }

    /// After a 401: true if the same request would now be sent with something else.
    pub(crate) async fn challenged(&self, request: &Request, challenges: &[String]) -> bool {
        if !self.trusts(request) {
            return false;
        }
        let token = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer ")).map(SecretString::from);
        for step in &self.plan.steps {
            let is_renewed = match (step, &token) {
                (Step::OAuth(source), Some(token)) => source.refused(token),
                (Step::BearerFrom(provider), Some(refused)) => {
                    let another = provider.token().await;
                    another.is_ok_and(|another| another.expose_secret() != refused.expose_secret())
                }
                _ => false,
            };
            if is_renewed {
                return true;
            }
        }
        if !self.plan.steps.iter().any(|step| matches!(step, Step::Digest { .. })) {
            return false;
        }
        let Some(fresh) = Session::begin(challenges) else { return false };
        let mut session = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        // A second refusal means a wrong password, unless only the nonce is too old.
        let may_try = session.is_none() || fresh.is_stale();
        *session = Some(fresh);
        may_try || !request.headers.contains_key(header::AUTHORIZATION)
    }
}

impl Step {
    /// With the token of now, if it is one that changes.
    async fn known(&self) -> Result<Step, Error> {
        Ok(match self {
            Self::BearerFrom(provider) => Self::Bearer(provider.token().await?),
            step => step.clone(),
        })
    }

    /// Everything that needs no state.
    fn apply_plain(&self, request: &mut Request) -> Result<(), Error> {
        match self {
            Self::Header(name, value) => {
                request.headers.insert(name.clone(), secret(value.expose_secret())?);
            }
            Self::Query(name, value) => {
                request.url.query_pairs_mut().append_pair(name, value.expose_secret());
                request.secret_query.push(name.clone());
            }
            Self::Cookie(name, value) => {
                let value = secret(&format!("{name}={}", value.expose_secret()))?;
                request.headers.insert(header::COOKIE, value);
            }
            Self::Bearer(token) => {
                let value = secret(&format!("Bearer {}", token.expose_secret()))?;
                request.headers.insert(header::AUTHORIZATION, value);
            }
            Self::Basic { user, password } => {
                let pair = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
                request.headers.insert(header::AUTHORIZATION, secret(&format!("Basic {pair}"))?);
            }
            // These need a challenge or an answer first.
            Self::Digest { .. } | Self::OAuth(_) | Self::BearerFrom(_) => {}
        }
        Ok(())
    }
}

/// A header value that is never shown.
fn secret(text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Error::Invalid("a credential has characters that no header may have".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
