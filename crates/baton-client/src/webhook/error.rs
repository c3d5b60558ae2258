//! Why a call is refused.

use baton_protocol::signature::webhook::BadWebhook;

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
    /// The JWT is missing, or does not fit the call.
    #[error("the webhook's JWT does not fit: {0}")]
    Jwt(#[from] BadJwt),
    /// The agent's keys could not be fetched.
    #[error("the keys of the agent could not be fetched: {0}")]
    Keys(String),
    /// The task is none that the receiver [expects](super::WebhookVerifier::tasks).
    #[error("the webhook is about a task that is not expected: {0}")]
    Task(String),
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
            Self::Token | Self::Unsigned | Self::Signature(_) | Self::Jwt(_) => 401,
            Self::Task(_) => 404,
            Self::InProgress => 409,
            Self::Body(_) => 400,
            // Not the agent's mistake: it tries again.
            Self::Keys(_) => 503,
        }
    }
}

/// What is wrong with a JWT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadJwt {
    /// The call has none.
    #[error("there is none in Authorization: Bearer")]
    Missing,
    /// It cannot be read, or has a member twice.
    #[error("it is not a signed JWT")]
    Malformed,
    /// It is signed with something else than ES256 or EdDSA.
    #[error("its algorithm is neither ES256 nor EdDSA")]
    Algorithm,
    /// It is a JWT for another purpose, by its `typ`.
    #[error("it is of another type")]
    Type,
    /// It demands an extension of JWS.
    #[error("it demands an extension of JWS")]
    Critical,
    /// It brings a key along, or says where one is. Anybody can do that.
    #[error("it brings its own key")]
    OwnKey,
    /// It names a key that the agent does not have, or none.
    #[error("its key is none of the agent's")]
    UnknownKey,
    /// The named key has not signed it.
    #[error("its signature is wrong")]
    Signature,
    /// A claim is missing, or is of another type.
    #[error("a claim is missing, or is not what it should be")]
    Claims,
    /// It was made too long ago.
    #[error("it is expired")]
    Expired,
    /// It is not valid yet.
    #[error("it is of the future")]
    TooNew,
    /// It is for another event than the call.
    #[error("it is for another event")]
    Event,
    /// It is for another body.
    #[error("it is for another body")]
    Body,
    /// It is for another receiver.
    #[error("it is for another receiver")]
    Audience,
}
