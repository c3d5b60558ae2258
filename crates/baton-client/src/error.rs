//! What can go wrong: the agent said no, or the request did not get there, or the card does not fit.

use std::fmt;
use std::time::Duration;

use baton_protocol::domain::JsonText;
use baton_protocol::error::FieldViolation;
use baton_protocol::operation::Operation;
use baton_protocol::wire::peer_error::PeerError;
use baton_protocol::{ErrorKind, Generation};

use crate::choose::NoInterface;

/// An error of this library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent answered with an error.
    #[error(transparent)]
    Agent(Box<AgentError>),
    /// The request did not get there, or its answer did not come back whole.
    #[error(transparent)]
    Transport(Box<TransportError>),
    /// There is no card, or it cannot be read.
    #[error(transparent)]
    Card(Box<CardError>),
    /// The card has no interface that fits.
    #[error(transparent)]
    NoInterface(Box<NoInterface>),
    /// Credentials could not be obtained: an authorization server refused, or a flow needs something that was not given.
    #[error("{0}")]
    Credentials(String),
    /// The protocol version that is spoken has no such operation, or cannot express this call.
    #[error("protocol {} cannot say this: {what}", version.version())]
    NotInVersion {
        /// The operation.
        operation: Operation,
        /// The version in use.
        version: Generation,
        /// What is missing.
        what: String,
    },
    /// An argument or option is wrong.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// The agent's error, if it is one.
    pub fn agent(&self) -> Option<&AgentError> {
        match self {
            Self::Agent(error) => Some(error),
            _ => None,
        }
    }

    /// The transport error, if it is one.
    pub fn transport(&self) -> Option<&TransportError> {
        match self {
            Self::Transport(error) => Some(error),
            _ => None,
        }
    }

    /// The kind of an agent's error.
    pub fn kind(&self) -> Option<ErrorKind> {
        self.agent().and_then(AgentError::kind)
    }
}

macro_rules! boxed {
    ($($kind:ident $variant:ident;)*) => {$(
        impl From<$kind> for Error {
            fn from(error: $kind) -> Self {
                Error::$variant(Box::new(error))
            }
        }
    )*};
}

boxed! {
    AgentError Agent;
    TransportError Transport;
    CardError Card;
    NoInterface NoInterface;
}

/// An error that the agent answered with. It is the same whatever the binding; only codes and status tell which it was.
#[derive(Debug, Clone)]
pub struct AgentError {
    pub(crate) peer: PeerError,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) challenges: Vec<String>,
    pub(crate) credentials_sent: bool,
}

impl AgentError {
    /// What went wrong; `None` if the answer does not tell.
    pub fn kind(&self) -> Option<ErrorKind> {
        self.peer.kind
    }

    /// The name in the specification, such as `TaskNotFoundError`.
    pub fn name(&self) -> Option<&'static str> {
        self.peer.a2a_name()
    }

    /// The JSON-RPC code.
    pub fn code(&self) -> Option<i32> {
        self.peer.code
    }

    /// The status of the HTTP answer.
    pub fn http_status(&self) -> Option<u16> {
        self.peer.http_status
    }

    /// The number of the gRPC code.
    pub fn grpc_code(&self) -> Option<i32> {
        self.peer.grpc_code
    }

    /// The agent's own words. They are not to be trusted: they may contain control characters.
    pub fn message(&self) -> &str {
        &self.peer.message
    }

    /// `ErrorInfo.reason`.
    pub fn reason(&self) -> Option<&str> {
        self.peer.reason.as_deref()
    }

    /// JSON-RPC `data` or HTTP+JSON `details`.
    pub fn details(&self) -> Option<&JsonText> {
        self.peer.details.as_ref()
    }

    /// Members of the request that the agent did not accept.
    pub fn violations(&self) -> &[FieldViolation] {
        &self.peer.violations
    }

    /// When the agent wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// `WWW-Authenticate`, one item per header.
    pub fn challenges(&self) -> &[String] {
        &self.challenges
    }

    /// Whether the refused request carried credentials: tells wrong ones from missing ones.
    pub fn credentials_sent(&self) -> bool {
        self.credentials_sent
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PeerError { message, code, http_status, grpc_code, .. } = &self.peer;
        match (self.name(), message.is_empty()) {
            (Some(name), false) => write!(f, "{name}: {message}")?,
            (Some(name), true) => f.write_str(name)?,
            (None, false) => f.write_str(message)?,
            (None, true) => f.write_str("the agent answered with an error")?,
        }
        match (code, http_status, grpc_code) {
            (Some(code), _, _) => write!(f, " ({code})"),
            (None, Some(status), _) => write!(f, " (HTTP {status})"),
            (None, None, Some(code)) => write!(f, " (gRPC {code})"),
            (None, None, None) => Ok(()),
        }
    }
}

impl std::error::Error for AgentError {}

/// Why a request did not get there, or its answer did not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportKind {
    /// No connection: unknown host, refused, unreachable, no proxy.
    Connect,
    /// No secure connection: the certificate is not trusted, or the versions don't fit.
    Tls,
    /// A timeout of the options ran out.
    Timeout,
    /// The connection broke before the answer was whole.
    Cut,
    /// The answer is larger than the options allow.
    TooLarge,
    /// The answer is not of the protocol.
    Malformed,
    /// The agent sent the request to another address, which is not followed.
    Redirected,
}

/// An error between client and agent.
#[derive(Debug, Clone)]
pub struct TransportError {
    pub(crate) kind: TransportKind,
    /// Without query, which may hold an API key.
    pub(crate) url: String,
    pub(crate) message: String,
    pub(crate) reached: bool,
}

impl TransportError {
    /// What happened.
    pub fn kind(&self) -> TransportKind {
        self.kind
    }

    /// The address, without its query.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The cause in words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the agent may have received the request. If not, sending it again is always safe.
    pub fn may_have_reached(&self) -> bool {
        self.reached
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TransportKind::Connect => "cannot connect to",
            TransportKind::Tls => "no secure connection to",
            TransportKind::Timeout => "no answer in time from",
            TransportKind::Cut => "lost the connection to",
            TransportKind::TooLarge => "too large an answer from",
            TransportKind::Malformed => "cannot read the answer of",
            TransportKind::Redirected => "redirected by",
        };
        write!(f, "{what} {}: {}", self.url, self.message)
    }
}

impl std::error::Error for TransportError {}

/// Why there is no card.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// No address or file has one.
    #[error("no agent card found: {tried}")]
    NotFound {
        /// Each address or file with what was there.
        tried: String,
        /// The HTTP status of the last answer.
        status: Option<u16>,
    },
    /// It is not a card.
    #[error("the agent card at {at} cannot be read: {problem}")]
    Invalid {
        /// Address or file.
        at: String,
        /// The first wrong member.
        problem: String,
    },
}
