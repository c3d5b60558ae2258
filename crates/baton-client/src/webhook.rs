//! Verifies the calls that an agent makes to a webhook.

mod seen;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use baton_protocol::Generation;
use baton_protocol::signature::webhook::{
    BadWebhook, ID_HEADER, SIGNATURE_HEADER, SignedHeaders, TIMESTAMP_HEADER, WebhookSecret, is_webhook_id,
    verify,
};
use baton_protocol::wire::{ReadNotification, StreamItem, read_notification};
use http::HeaderMap;
use http::header::AUTHORIZATION;

use self::seen::{Held, Seen};

/// The names of the header with the token: that of most senders, and that of some.
const TOKEN_HEADERS: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];

const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Checks that a call of a webhook comes from the agent, is new, and says something.
///
/// What is checked depends on what the webhook was created with: a token that the agent sends back with every call, a secret
/// that the agent signs with ([Standard Webhooks](https://www.standardwebhooks.com)), or both. A signature is the better
/// one: a token is sent with every call, and says nothing about the body.
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
    tolerance: Duration,
    seen: Arc<Seen>,
}

/// What an agent says about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification {
    /// The id of the event, if the agent sends one: the same at every attempt.
    pub id: Option<String>,
    /// When this attempt was sent, if it is signed.
    pub sent: Option<SystemTime>,
    /// The generation of the protocol that the body is written in.
    pub generation: Generation,
    /// What happened. The task of a notification in 0.3 is the whole task.
    pub event: StreamItem,
    /// The name of the task's state if it is none that this library knows; [`event`](Self::event) then says working.
    pub unknown_state: Option<String>,
}

impl Notification {
    /// Reads the body of a call without checking who sent it.
    pub fn read_unverified(body: &[u8]) -> Result<Self, WebhookError> {
        let text = std::str::from_utf8(body).map_err(|_| WebhookError::Body("it is not UTF-8".to_owned()))?;
        let read = read_notification(text).map_err(|error| WebhookError::Body(error.to_string()))?;
        let ReadNotification { generation, item } = read;
        let unknown_state = item.unknown_state().map(str::to_owned);
        Ok(Notification { id: None, sent: None, generation, event: item.value, unknown_state })
    }
}

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

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The token is missing, or is another one.
    #[error("the notification token is missing or wrong")]
    Token,
    /// A header of the signature is missing, or is there twice.
    #[error("the webhook is not signed")]
    Unsigned,
    /// The signature does not fit the call.
    #[error("the webhook's signature does not fit: {0}")]
    Signature(BadWebhook),
    /// The event was handled already.
    #[error("the event was received before")]
    Duplicate,
    /// Another attempt at the same event is being handled.
    #[error("the event is being handled")]
    InProgress,
    /// The body is not a notification of any generation.
    #[error("the body is not a notification: {0}")]
    Body(String),
}

impl WebhookError {
    /// What to answer. A duplicate was handled, so the agent is told to stop sending it.
    pub fn http_status(&self) -> u16 {
        match self {
            Self::Duplicate => 200,
            Self::Token | Self::Unsigned | Self::Signature(_) => 401,
            Self::InProgress => 409,
            Self::Body(_) => 400,
        }
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

    fn new() -> Self {
        WebhookVerifier {
            secrets: Vec::new(),
            tokens: Vec::new(),
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

    /// How far the clocks of agent and receiver may be apart, and how long a call may take to arrive; 5 minutes by default.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Verifies a call.
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
        let mut notification = Notification::read_unverified(body)?;
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

    /// A call is valid from the tolerance before its time until the tolerance after it, so its id has to be known for that
    /// long: 10 minutes by default.
    fn remembered(&self) -> Duration {
        self.tolerance.saturating_mul(2)
    }
}

impl fmt::Debug for WebhookVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookVerifier")
            .field("secrets", &self.secrets.len())
            .field("tokens", &self.tokens.len())
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
