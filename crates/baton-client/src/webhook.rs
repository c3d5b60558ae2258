//! Verifies the calls that an agent makes to a webhook.

mod error;
mod jwt;
mod keys;
mod notification;
mod seen;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use baton_protocol::domain::TaskId;
use baton_protocol::signature::webhook::{
    ID_HEADER, SIGNATURE_HEADER, SignedHeaders, TIMESTAMP_HEADER, WebhookSecret, is_webhook_id, verify,
};
use http::HeaderMap;
use http::header::AUTHORIZATION;

pub use self::error::{BadJwt, WebhookError};
use self::jwt::{Jwt, SignedCall};
pub use self::keys::WebhookKeys;
pub use self::notification::Notification;
use self::seen::{Held, Seen};

/// The names of the header with the token: that of most senders, and that of some.
const TOKEN_HEADERS: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];

const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Checks that a call of a webhook comes from the agent, is new, and says something.
///
/// What is checked depends on what the webhook was created with: a token that the agent sends back with every call, a secret
/// that the agent signs with ([Standard Webhooks](https://www.standardwebhooks.com)), or both. A signature is the better
/// one: a token is sent with every call, and says nothing about the body. An agent may also sign with a key of its own
/// ([`with_keys`](Self::with_keys)), so that there is no secret to keep.
///
/// ```
/// use baton_client::protocol::signature::webhook::{WebhookSecret, sign};
/// use baton_client::protocol::wire::StreamItem;
/// use baton_client::{WebhookError, WebhookVerifier};
/// # use std::time::{SystemTime, UNIX_EPOCH};
/// # fn now() -> u64 { SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() }
///
/// let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let verifier = WebhookVerifier::with_secret(secret.clone());
///
/// // What the agent sends.
/// let body = br#"{"statusUpdate":{"taskId":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
/// let mut headers = http::HeaderMap::new();
/// headers.insert("webhook-id", "wh_1".parse()?);
/// headers.insert("webhook-timestamp", now().into());
/// headers.insert("webhook-signature", sign([&secret], "wh_1", now(), body).parse()?);
///
/// // What the receiver does with it.
/// let webhook = verifier.verify(&headers, body)?;
/// if let StreamItem::Status { task_id, update, .. } = &webhook.notification().event {
///     println!("{task_id} is {:?} now", update.state);
/// }
/// webhook.done(); // and answer with status 200
///
/// // The agent did not get that answer, and sends the event once more: there is nothing left to do.
/// let again = verifier.verify(&headers, body).unwrap_err();
/// assert_eq!((&again, again.http_status()), (&WebhookError::Duplicate, 200));
///
/// // Somebody else changes the body.
/// let forged = verifier.verify(&headers, b"{}").unwrap_err();
/// assert_eq!(forged.http_status(), 401);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The body has to be given as it came: if it is parsed and written again, its signature is wrong. A cheap handle; clones
/// share the list of events that were seen.
#[derive(Clone)]
pub struct WebhookVerifier {
    secrets: Vec<WebhookSecret>,
    tokens: Vec<String>,
    keys: Option<WebhookKeys>,
    audiences: Vec<String>,
    expected: Option<Expected>,
    tolerance: Duration,
    seen: Arc<Seen>,
}

/// Whether a task is one of those that calls may be about.
type Expected = Arc<dyn Fn(&TaskId) -> bool + Send + Sync>;

/// A call that was verified. Its event counts as seen after [`done`](Self::done). If it is dropped before that, because it
/// could not be handled, the agent's next attempt is accepted again.
#[derive(Debug)]
#[must_use = "call `done` when the event was handled"]
pub struct Webhook {
    notification: Notification,
    held: Option<Held>,
}

impl Webhook {
    /// What the agent says.
    pub fn notification(&self) -> &Notification {
        &self.notification
    }

    /// The event was handled: further attempts are duplicates.
    pub fn done(self) -> Notification {
        if let Some(held) = self.held {
            held.done();
        }
        self.notification
    }
}

impl WebhookVerifier {
    /// Calls have to be signed with this secret.
    pub fn with_secret(secret: WebhookSecret) -> Self {
        Self::new().secret(secret)
    }

    /// Calls have to hold this token.
    pub fn with_token(token: impl Into<String>) -> Self {
        Self::new().token(token)
    }

    /// Calls have to carry a JWT (`Authorization: Bearer`) that one of these keys has signed, for this event, this body and this
    /// moment. Baton sends one if it is told to, and if the webhook was created without other credentials.
    pub fn with_keys(keys: WebhookKeys) -> Self {
        Self::new().keys(keys)
    }

    fn new() -> Self {
        WebhookVerifier {
            secrets: Vec::new(),
            tokens: Vec::new(),
            keys: None,
            audiences: Vec::new(),
            expected: None,
            tolerance: TOLERANCE,
            seen: Arc::default(),
        }
    }

    /// Calls have to be signed with one of several secrets, such as the next one and the one before.
    pub fn secret(mut self, secret: WebhookSecret) -> Self {
        self.secrets.push(secret);
        self
    }

    /// Calls have to hold one of several tokens.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.tokens.push(token.into());
        self
    }

    /// As [`with_keys`](Self::with_keys), beside a token or a secret.
    pub fn keys(mut self, keys: WebhookKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// JWTs have to be for this receiver, or for one of several: scheme and host of the webhook's address, such as
    /// `https://hooks.example`. Without it, another receiver of the same agent's calls can pass them on to this one.
    pub fn audience(mut self, origin: impl Into<String>) -> Self {
        self.audiences.push(origin.into());
        self
    }

    /// Calls have to be about a task for which this is true, such as one that the receiver has started and that is not done.
    /// The specification wants receivers to check that; without it a call may be about any task of the agent's.
    ///
    /// ```
    /// # use baton_client::protocol::domain::TaskId;
    /// # use std::collections::HashSet;
    /// # use std::sync::{Arc, Mutex};
    /// let started: Arc<Mutex<HashSet<TaskId>>> = Arc::default();
    /// let tasks = Arc::clone(&started);
    /// let verifier = baton_client::WebhookVerifier::with_token("a long secret")
    ///     .tasks(move |task| tasks.lock().unwrap().contains(task));
    /// ```
    pub fn tasks(mut self, expected: impl Fn(&TaskId) -> bool + Send + Sync + 'static) -> Self {
        self.expected = Some(Arc::new(expected));
        self
    }

    /// How far the clocks of agent and receiver may be apart, and how long a call may take to arrive; 5 minutes by default.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Verifies a call, and fetches the agent's keys before that if they are old or do not have the one that the call names.
    ///
    /// ```no_run
    /// # async fn receive(headers: http::HeaderMap, body: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
    /// use baton_client::{Client, WebhookVerifier};
    ///
    /// let keys = Client::builder().webhook_keys("https://agent.example/.well-known/jwks.json")?;
    /// let verifier = WebhookVerifier::with_keys(keys).audience("https://hooks.example");
    /// let webhook = verifier.fetch_and_verify(&headers, &body).await?;
    /// println!("{:?}", webhook.done().event);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fetch_and_verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Webhook, WebhookError> {
        if let Some(keys) = &self.keys {
            // Whoever has no token and no JWT makes us fetch nothing.
            self.check_token(headers)?;
            keys.fetch_for(&Jwt::read(headers)?).await.map_err(WebhookError::Keys)?;
        }
        self.verify(headers, body)
    }

    /// Verifies a call. The agent's keys are not fetched: see [`fetch_and_verify`](Self::fetch_and_verify).
    pub fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Webhook, WebhookError> {
        self.verify_at(headers, body, SystemTime::now())
    }

    /// Verifies a call as if it came at another time, for tests.
    pub fn verify_at(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Webhook, WebhookError> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.check_token(headers)?;
        let sent = self.check_signature(headers, body, now)?;
        let sent = self.check_jwt(headers, body, now)?.or(sent);
        let mut notification = Notification::read_unverified(body)?;
        self.check_task(&notification)?;
        // An id of a call that is not signed is as good as the token: whoever has it can make up others.
        notification.id = one(headers, ID_HEADER).filter(|id| is_webhook_id(id)).map(str::to_owned);
        notification.sent = sent.map(|sent| UNIX_EPOCH + Duration::from_secs(sent));
        let held = match &notification.id {
            Some(id) => Some(self.seen.hold(id, now, self.remembered())?),
            None => None,
        };
        Ok(Webhook { notification, held })
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), WebhookError> {
        if self.tokens.is_empty() {
            return Ok(());
        }
        let mut sent: Vec<&[u8]> = Vec::new();
        for name in TOKEN_HEADERS {
            sent.extend(headers.get_all(name).into_iter().map(|value| value.as_bytes()));
        }
        if sent.is_empty() {
            // Agents of 0.1 send it in this way.
            let bearer =
                headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
            sent.extend(bearer);
        }
        // All of them, so that the result depends on no order.
        let is_known = |sent: &&[u8]| {
            self.tokens
                .iter()
                .fold(false, |known, token| known | verify_slices_are_equal(sent, token.as_bytes()).is_ok())
        };
        if sent.is_empty() || !sent.iter().all(is_known) { Err(WebhookError::Token) } else { Ok(()) }
    }

    /// The time at which the call was sent, if calls have to be signed.
    fn check_signature(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: u64,
    ) -> Result<Option<u64>, WebhookError> {
        if self.secrets.is_empty() {
            return Ok(None);
        }
        let header = |name| one(headers, name).ok_or(WebhookError::Unsigned);
        let signed = SignedHeaders {
            id: header(ID_HEADER)?,
            timestamp: header(TIMESTAMP_HEADER)?,
            signature: header(SIGNATURE_HEADER)?,
        };
        verify(&self.secrets, &signed, body, now, self.tolerance).map(Some).map_err(WebhookError::Signature)
    }

    /// The time at which the call was sent, if calls have to carry a JWT.
    fn check_jwt(&self, headers: &HeaderMap, body: &[u8], now: u64) -> Result<Option<u64>, WebhookError> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let jwt = Jwt::read(headers)?;
        let call = SignedCall { id: one(headers, ID_HEADER), body, audiences: &self.audiences };
        Ok(Some(jwt.verify(&keys.known(), &call, now, self.tolerance)?))
    }

    fn check_task(&self, notification: &Notification) -> Result<(), WebhookError> {
        let Some(is_expected) = &self.expected else { return Ok(()) };
        match notification.task_id() {
            Some(task) if is_expected(task) => Ok(()),
            Some(task) => Err(WebhookError::Task(task.to_string())),
            None => Err(WebhookError::Task("it names none".to_owned())),
        }
    }

    /// A call is valid from the tolerance before its time until the tolerance after it, so its id has to be known for that
    /// long: 10 minutes by default.
    fn remembered(&self) -> Duration {
        let of_jwt = self.tolerance.saturating_add(jwt::LEEWAY * 2);
        self.tolerance.saturating_mul(2).max(of_jwt)
    }
}

impl fmt::Debug for WebhookVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookVerifier")
            .field("secrets", &self.secrets.len())
            .field("tokens", &self.tokens.len())
            .field("keys", &self.keys)
            .field("audiences", &self.audiences)
            .field("tolerance", &self.tolerance)
            .finish_non_exhaustive()
    }
}

/// The value of a header that must not be there twice: readers disagree about which of them counts.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

#[cfg(test)]
mod tests;
