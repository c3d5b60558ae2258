//! Tokens of authorization servers: OAuth 2.0 and OpenID Connect.
//!
//! The card says where tokens come from. A card is not trusted with secrets, though: the client secret goes to origins that
//! the user named, a refresh token to the origin it came from, the code of a login to the server that issued it, and
//! everything by https unless the server is on this machine.

mod browser;
mod device;
mod endpoints;
mod store;
mod token_request;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use self::endpoints::{Endpoints, Purpose};
pub use self::store::TokenStore;
use self::token_request::Grant;
use crate::error::Error;
use crate::http::Http;
use crate::options::{SizeLimits, Timeouts};
use crate::origin::Origin;

/// How this program is registered with an authorization server.
#[derive(Clone)]
pub struct OAuthClient {
    id: String,
    secret: Option<SecretString>,
    scopes: Option<Vec<String>>,
    trusted: Vec<Origin>,
    only_to: Option<Vec<Origin>>,
    token: Option<Box<Token>>,
    store: Option<Arc<dyn TokenStore>>,
    on_token: Option<Arc<Keep>>,
}

/// Keeps a token for later.
type Keep = dyn Fn(&Token) + Send + Sync;

impl OAuthClient {
    /// With the id that the authorization server gave it.
    pub fn new(id: impl Into<String>) -> Self {
        OAuthClient {
            id: id.into(),
            secret: None,
            scopes: None,
            trusted: Vec::new(),
            only_to: None,
            token: None,
            store: None,
            on_token: None,
        }
    }

    /// The client's secret. It is sent to the origin of the agent and to those of [`trust`](Self::trust).
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(secret.into().into());
        self
    }

    /// Asks for these scopes instead of those that the card requires.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// An authorization server that may have the client's secret. A login that begins at one server and ends at another
    /// needs both of them named, or the one whose description (OpenID Connect, RFC 8414) names the endpoints.
    pub fn trust(mut self, origin: Origin) -> Self {
        self.trusted.push(origin);
        self
    }

    /// Sends tokens to agents at these origins and to no other, whatever else is trusted. For a token of an earlier login: a
    /// card file may have been changed since.
    pub fn only_to(mut self, origins: impl IntoIterator<Item = Origin>) -> Self {
        self.only_to = Some(origins.into_iter().collect());
        self
    }

    /// A token from an earlier login.
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(Box::new(token));
        self
    }

    /// Keeps the token for other clients and processes: only one of them renews it, and the others take the new one. The
    /// token of the store is used, unless [`token`](Self::token) gives another.
    pub fn token_store(mut self, store: impl TokenStore + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Called with each new token, so that it can be kept. If several processes use the same token, give a
    /// [`token_store`](Self::token_store) instead: a server may accept a refresh token only once.
    pub fn on_token(mut self, keep: impl Fn(&Token) + Send + Sync + 'static) -> Self {
        self.on_token = Some(Arc::new(keep));
        self
    }
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthClient")
            .field("id", &self.id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A token, and how to get the next one.
#[derive(Clone)]
pub struct Token {
    /// Sent to the agent.
    pub access: SecretString,
    /// Gets the next one, if the server gave it.
    pub refresh: Option<SecretString>,
    /// When it becomes useless, if the server said so.
    pub expires_at: Option<SystemTime>,
    /// The origin of the server that issued it: the refresh token goes nowhere else.
    pub issued_by: Origin,
}

/// A token that is about to expire might do so on its way.
const MARGIN: Duration = Duration::from_secs(30);

impl Token {
    fn is_usable(&self) -> bool {
        self.expires_at.is_none_or(|at| SystemTime::now() + MARGIN < at)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("expires_at", &self.expires_at)
            .field("issued_by", &self.issued_by)
            .finish_non_exhaustive()
    }
}

/// How a token is obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flow {
    /// For the program itself; needs a secret.
    ClientCredentials,
    /// A user agrees on another device.
    DeviceCode,
    /// A user agrees in a browser on this machine.
    AuthorizationCode,
}

/// What the user has to do during a login.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prompt {
    /// Open this address in a browser on this machine.
    Browser {
        /// The address.
        url: String,
    },
    /// Open this address on any device and enter the code.
    Device {
        /// The address.
        url: String,
        /// The code.
        code: String,
        /// The address with the code in it, if there is one.
        complete_url: Option<String>,
    },
}

/// What requests to an authorization server need.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) http: Arc<Http>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: SizeLimits,
}

/// The tokens of one scheme of the card.
#[derive(Debug)]
pub(crate) struct TokenSource {
    client: OAuthClient,
    scheme: SecurityScheme,
    scopes: Vec<String>,
    /// Origins that the user named.
    trusted: Vec<Origin>,
    token: RwLock<Option<Token>>,
    /// Held while a token is requested: one request for all calls that wait.
    requesting: tokio::sync::Mutex<()>,
}

impl TokenSource {
    pub(crate) fn new(
        client: &OAuthClient,
        scheme: &SecurityScheme,
        required: &[String],
        trusted: &[Origin],
    ) -> Self {
        TokenSource {
            scopes: client.scopes.clone().unwrap_or_else(|| required.to_vec()),
            trusted: trusted.iter().chain(&client.trusted).cloned().collect(),
            token: RwLock::new(client.token.as_deref().cloned().or_else(|| client.store.as_ref()?.load())),
            requesting: tokio::sync::Mutex::default(),
            client: client.clone(),
            scheme: scheme.clone(),
        }
    }

    /// Whether an agent at this address may have the tokens.
    pub(crate) fn may_go_to(&self, url: &Url) -> bool {
        let Some(allowed) = &self.client.only_to else { return true };
        Origin::of(url).is_some_and(|origin| allowed.iter().any(|allowed| allowed.covers(&origin)))
    }

    /// A token that can be used, from the server if need be. Never asks the user.
    pub(crate) async fn token(self: &Arc<Self>, caller: &Caller) -> Result<SecretString, Error> {
        if let Some(token) = self.usable() {
            return Ok(token);
        }
        // In a task of its own: the server may have replaced the refresh token already when a caller gives up waiting, and
        // the new one must not be lost.
        let (source, caller) = (Arc::clone(self), caller.clone());
        let renewed = tokio::spawn(async move { source.renew(&caller).await }).await;
        renewed.unwrap_or_else(|error| Err(Error::Credentials(format!("the token was not renewed: {error}"))))
    }

    async fn renew(&self, caller: &Caller) -> Result<SecretString, Error> {
        let _one = self.requesting.lock().await;
        if let Some(token) = self.usable() {
            return Ok(token);
        }
        let _no_other = self.lock_store(caller.timeouts.call).await;
        self.read_store();
        if let Some(token) = self.usable() {
            return Ok(token);
        }
        let known = self.token.read().unwrap_or_else(PoisonError::into_inner).clone();
        let refresh = known.as_ref().and_then(|token| Some((token.refresh.as_ref()?, &token.issued_by)));
        let token = match refresh {
            Some((refresh, issued_by)) => self.refresh(caller, refresh, issued_by).await?,
            None if self.client.secret.is_some() => self.client_credentials(caller).await?,
            None => {
                return Err(Error::Credentials("there is no token for this agent: log in first".to_owned()));
            }
        };
        let access = token.access.clone();
        self.keep(token);
        Ok(access)
    }

    /// Forgets a token that the agent refused; true if another one can be obtained.
    pub(crate) fn refused(&self, access: &SecretString) -> bool {
        let mut token = self.token.write().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = token.as_mut() else { return self.client.secret.is_some() };
        // Another call has a new one already.
        if known.access.expose_secret() != access.expose_secret() {
            return true;
        }
        known.expires_at = Some(SystemTime::UNIX_EPOCH);
        known.refresh.is_some() || self.client.secret.is_some()
    }

    /// Obtains a token in one of the flows, with the user's help where the flow needs it.
    pub(crate) async fn log_in(
        &self,
        caller: &Caller,
        flow: Flow,
        prompt: &(dyn Fn(Prompt) + Send + Sync),
    ) -> Result<Token, Error> {
        let token = match flow {
            Flow::ClientCredentials => self.client_credentials(caller).await?,
            Flow::DeviceCode => {
                let endpoints = self.endpoints(caller, Purpose::LogIn(flow)).await?;
                device::log_in(self, caller, &endpoints, prompt).await?
            }
            Flow::AuthorizationCode => {
                let endpoints = self.endpoints(caller, Purpose::LogIn(flow)).await?;
                browser::log_in(self, caller, &endpoints, prompt).await?
            }
        };
        self.keep(token.clone());
        Ok(token)
    }

    async fn endpoints(&self, caller: &Caller, purpose: Purpose<'_>) -> Result<Endpoints, Error> {
        Endpoints::find(&self.scheme, purpose, &self.client.trusted, caller).await
    }

    async fn client_credentials(&self, caller: &Caller) -> Result<Token, Error> {
        let endpoints = self.endpoints(caller, Purpose::LogIn(Flow::ClientCredentials)).await?;
        self.request(caller, &endpoints.token, Grant::ClientCredentials).await
    }

    async fn refresh(
        &self,
        caller: &Caller,
        refresh: &SecretString,
        issued_by: &Origin,
    ) -> Result<Token, Error> {
        let endpoints = self.endpoints(caller, Purpose::Renew(issued_by)).await?;
        let origin = Origin::of(&endpoints.token);
        let is_known = |origin: &Origin| origin == issued_by || self.client.trusted.contains(origin);
        if !origin.as_ref().is_some_and(is_known) {
            return Err(Error::Credentials(format!(
                "the token is of {issued_by}, and the card now names another server: log in again"
            )));
        }
        let mut token = self.request(caller, &endpoints.token, Grant::Refresh(refresh)).await?;
        // Servers may leave it out if it does not change.
        token.refresh = token.refresh.or_else(|| Some(refresh.clone()));
        Ok(token)
    }

    fn usable(&self) -> Option<SecretString> {
        let token = self.token.read().unwrap_or_else(PoisonError::into_inner);
        token.as_ref().filter(|token| token.is_usable()).map(|token| token.access.clone())
    }

    fn keep(&self, token: Token) {
        if let Some(store) = &self.client.store {
            store.save(&token);
        }
        if let Some(keep) = &self.client.on_token {
            keep(&token);
        }
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }
}

/// Whether tokens of an authorization server are what the scheme wants.
pub(crate) fn is_for(scheme: &SchemeKind) -> bool {
    matches!(scheme, SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. })
}
