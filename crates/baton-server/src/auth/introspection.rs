//! Bearer tokens that only their issuer can read: each is shown to the issuer's introspection endpoint (RFC 7662), and the
//! answer is remembered for a short time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_protocol::domain::JsonObject;
use baton_protocol::domain::security::SecurityScheme;
use baton_protocol::wire::http_json::encode_form;
use http::{HeaderValue, StatusCode};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, watch};

use super::jwt::{
    BadTokenOption, BearerChallenge, ChallengeOptions, ClaimRules, Failure, Fetcher, TokenCache,
    TokenCacheOptions, TokenDigest, Validity, bearer_scheme, bearer_token, checked_url, token_digest,
};
use super::{AuthRequest, Identity, Refusal, Scheme, Verdict};
use crate::engine::clock::{Clock, SystemClock};

/// How tokens are shown to their issuer, and which are accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IntrospectionOptions {
    /// The introspection endpoint.
    pub url: String,
    /// How this server authenticates itself there.
    pub client: ClientAuth,
    /// If given, an `iss` in the answer must be this.
    pub issuer: Option<String>,
    /// If given, `aud` in the answer must have one of them. Leave it empty only if the issuer answers each of its clients
    /// for that client's tokens alone: otherwise a token that was made for another service is accepted here.
    pub audiences: Vec<String>,
    /// How far the clocks of issuer and server may differ. Default: 60 s.
    pub leeway: Duration,
    /// Largest token. Default: 8 KiB.
    pub max_token_bytes: usize,
    /// Whom a token names.
    pub claims: ClaimRules,
    /// Tokens that are active. Default: 10,000 for 60 s. A token that the issuer revokes is accepted for at most this long.
    pub active: TokenCacheOptions,
    /// Tokens that are not, apart from the others, so that made-up tokens cannot displace these. Default: 10,000 for 10 s.
    pub inactive: TokenCacheOptions,
    /// Most requests to the issuer at the same time. Default: 32.
    pub max_requests: usize,
    /// Most tokens that wait for an answer; with more, requests are told to come back. Default: 1,024.
    pub max_waiting: usize,
    /// What the response to a request without a valid token says.
    pub challenge: ChallengeOptions,
    /// The entry on the card. Default: an HTTP bearer token; see [`Provider::oauth2`](super::jwt::Provider::oauth2).
    pub declared: Option<SecurityScheme>,
}

/// How this server authenticates itself at the introspection endpoint.
#[derive(Clone)]
#[non_exhaustive]
pub enum ClientAuth {
    /// `client_secret_basic`: in the `Authorization` header.
    Basic {
        /// The client's id.
        id: String,
        /// The client's secret.
        secret: SecretString,
    },
    /// `client_secret_post`: in the form.
    Post {
        /// The client's id.
        id: String,
        /// The client's secret.
        secret: SecretString,
    },
}

impl fmt::Debug for ClientAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientAuth::Basic { id, .. } => f.debug_tuple("Basic").field(id).finish(),
            ClientAuth::Post { id, .. } => f.debug_tuple("Post").field(id).finish(),
        }
    }
}

impl IntrospectionOptions {
    /// For tokens of the issuer with this introspection endpoint.
    pub fn new(url: impl Into<String>, client: ClientAuth) -> Self {
        IntrospectionOptions {
            url: url.into(),
            client,
            issuer: None,
            audiences: Vec::new(),
            leeway: Duration::from_secs(60),
            max_token_bytes: 8 * 1024,
            claims: ClaimRules::with_prefix("oauth2:"),
            active: TokenCacheOptions::new(10_000, Duration::from_secs(60)),
            inactive: TokenCacheOptions::new(10_000, Duration::from_secs(10)),
            max_requests: 32,
            max_waiting: 1024,
            challenge: ChallengeOptions::default(),
            declared: None,
        }
    }
}

/// Accepts the tokens of one issuer in `Authorization: Bearer`, as its introspection endpoint says. In a chain it belongs
/// after the other schemes for bearer tokens: every token that none of them has verified is sent to the issuer.
#[derive(Debug)]
pub struct Introspection {
    shared: Arc<Shared>,
    challenge: BearerChallenge,
    declared: SecurityScheme,
}

/// What the tasks that ask the issuer share.
struct Shared {
    options: IntrospectionOptions,
    url: Url,
    authorization: Option<HeaderValue>,
    /// Follows `token=…` in the form.
    form_end: SecretString,
    fetcher: Fetcher,
    clock: Arc<dyn Clock>,
    active: TokenCache<Identity>,
    inactive: TokenCache<&'static str>,
    /// Tokens that the issuer is being asked about. The sender is dropped without a value if the task fails.
    asked: Mutex<HashMap<TokenDigest, watch::Receiver<Option<Answer>>>>,
    requests: Semaphore,
}

/// What the issuer said of a token.
type Answer = Result<Identity, Failure>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Introspection {
    /// Fails if an option cannot be used. Nothing is asked yet.
    pub fn new(options: IntrospectionOptions, fetcher: Fetcher) -> Result<Self, BadTokenOption> {
        let url = checked_url("url", &options.url)?;
        let (authorization, form_end) = match &options.client {
            ClientAuth::Basic { id, secret } => {
                // RFC 6749, section 2.3.1: both are form-encoded first.
                let pair = format!("{}:{}", encode_form(id), encode_form(secret.expose_secret()));
                (Some(header(&format!("Basic {}", STANDARD.encode(pair)))?), String::new())
            }
            ClientAuth::Post { id, secret } => {
                let (id, secret) = (encode_form(id), encode_form(secret.expose_secret()));
                (None, format!("&client_id={id}&client_secret={secret}"))
            }
        };
        if options.max_requests == 0 {
            return Err(BadTokenOption::new("max_requests", "must be at least 1"));
        }
        let declared = options.declared.clone().unwrap_or_else(|| bearer_scheme(None));
        let challenge = BearerChallenge::new(&options.challenge)?;
        let shared = Shared {
            url,
            authorization,
            form_end: form_end.into(),
            fetcher,
            clock: Arc::new(SystemClock),
            active: TokenCache::new(options.active),
            inactive: TokenCache::new(options.inactive),
            asked: Mutex::default(),
            requests: Semaphore::new(options.max_requests),
            options,
        };
        Ok(Introspection { shared: Arc::new(shared), challenge, declared })
    }

    /// Another clock than the system's, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        // Nothing else has this yet: the scheme is not part of a chain.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.clock = clock;
        }
        self
    }
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, HashMap<TokenDigest, watch::Receiver<Option<Answer>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests with the same token wait for the same answer.
    async fn ask(self: &Arc<Self>, token: &str, name: TokenDigest) -> Answer {
        let mut receiver = {
            let mut asked = self.asked();
            match asked.get(&name) {
                Some(receiver) => receiver.clone(),
                None if asked.len() >= self.options.max_waiting => {
                    return Err(Failure::Unavailable("too many tokens wait for introspection".to_owned()));
                }
                None => {
                    let (sender, receiver) = watch::channel(None);
                    asked.insert(name, receiver.clone());
                    let task = Asking { shared: Arc::clone(self), name };
                    let token = SecretString::from(token);
                    // A task of its own: the caller who started it may go away while others wait.
                    tokio::spawn(async move {
                        let answer = task.shared.introspect(&token, name).await;
                        sender.send_replace(Some(answer));
                        drop(task);
                    });
                    receiver
                }
            }
        };
        let answer = receiver.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        answer.unwrap_or_else(|| Err(Failure::Unavailable("the introspection was given up".to_owned())))
    }

    async fn introspect(&self, token: &SecretString, name: TokenDigest) -> Answer {
        // Closed never.
        let _permit = self.requests.acquire().await;
        let form = format!(
            "token={}&token_type_hint=access_token{}",
            encode_form(token.expose_secret()),
            self.form_end.expose_secret()
        );
        let answer = self.fetcher.post(&self.url, form, self.authorization.as_ref()).await;
        let answer = answer.map_err(Failure::Unavailable)?;
        let claims = object(&answer.body);
        let checked = match (answer.status, &claims) {
            (StatusCode::OK, Some(claims)) => self.check(claims),
            // Some issuers answer so about tokens that can be read without them, such as JWTs.
            (StatusCode::BAD_REQUEST, Some(claims)) if claims.get("error").is_some_and(is_unsupported) => {
                Err("not a token that its issuer looks up")
            }
            (StatusCode::OK, None) => {
                return Err(Failure::Unavailable(format!("{} sent no JSON object", self.url)));
            }
            _ => return Err(Failure::Unavailable(answer.unexpected(&self.url))),
        };
        match checked {
            Ok((identity, valid_for)) => {
                self.active.insert(name, identity.clone(), 0, valid_for);
                Ok(identity)
            }
            Err(reason) => {
                self.inactive.insert(name, reason, 0, None);
                Err(Failure::Refused(reason))
            }
        }
    }

    fn check(&self, claims: &Map<String, Value>) -> Result<(Identity, Option<Duration>), &'static str> {
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err("not active");
        }
        // A token for another way of presenting it, such as `DPoP`, must not work as a plain one.
        let kind = claims.get("token_type").map(|kind| kind.as_str().unwrap_or_default());
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err("not a bearer token");
        }
        let validity = Validity {
            issuer: self.options.issuer.as_deref(),
            issuer_required: false,
            audiences: &self.options.audiences,
            expiry_required: false,
            leeway: self.options.leeway,
            max_age: None,
        };
        let valid_for = validity.check(claims, self.clock.now())?;
        let client = claims.get("client_id").and_then(Value::as_str).unwrap_or("no client_id");
        let identity = self.options.claims.identity(claims, client)?;
        let identity = match valid_for {
            Some(time) => identity.valid_for(time),
            None => identity,
        };
        Ok((identity, valid_for))
    }
}

/// A token that the issuer is being asked about, until this is dropped.
struct Asking {
    shared: Arc<Shared>,
    name: TokenDigest,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.shared.asked().remove(&self.name);
    }
}

fn object(body: &[u8]) -> Option<Map<String, Value>> {
    let object = JsonObject::parse(std::str::from_utf8(body).ok()?).ok()?;
    serde_json::from_str(object.as_str()).ok()
}

/// RFC 7009, section 2.2.1.
fn is_unsupported(error: &Value) -> bool {
    error == "unsupported_token_type"
}

fn header(text: &str) -> Result<HeaderValue, BadTokenOption> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| BadTokenOption::new("client", "has characters that a header cannot have"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[async_trait]
impl Scheme for Introspection {
    fn declared(&self) -> SecurityScheme {
        self.declared.clone()
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        let token = match bearer_token(request, self.shared.options.max_token_bytes) {
            Ok(token) => token,
            Err(verdict) => return verdict,
        };
        let name = token_digest(token.as_bytes());
        if let Some(identity) = self.shared.active.get(&name, 0) {
            return Verdict::Verified(identity);
        }
        if let Some(reason) = self.shared.inactive.get(&name, 0) {
            // As when it was asked about: a token that has expired does not count against the caller.
            return Failure::Refused(reason).into();
        }
        let token = match token.token68() {
            Ok(token) => token,
            Err(reason) => return Verdict::Refused(Refusal::new(reason)),
        };
        self.shared.ask(token, name).await.into()
    }

    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        self.challenge.header(refused)
    }

    fn takes_bearer_tokens(&self) -> bool {
        true
    }
}
