//! How an attempt ended: for the schedule, for the log, and for the owner of the webhook.

use std::fmt;
use std::io;
use std::time::Duration;

use http::StatusCode;

use crate::push::schedule::Answer;
use crate::push::target::{BadTarget, NoAddress};

#[derive(Debug)]
pub(crate) enum Outcome {
    Answered { status: StatusCode, retry_after: Option<Duration> },
    NoAnswer(NoAnswer),
}

/// Why there was no answer. This is for the log. The owner of the webhook reads the same words for all of them, since the
/// difference between a port that is closed, filtered or open would tell about networks that only the server can see.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The rules have changed since the configuration was created.
    Target(BadTarget),
    Address(NoAddress),
    Connect(io::Error),
    Tls(io::Error),
    /// Not HTTP, or the connection ended before the answer's head did.
    Http(hyper::Error),
    Timeout(Stage),
    /// The URL's host cannot be a header. Cannot happen: the URL was checked.
    Authority,
}

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Resolve,
    Connect,
    Tls,
    Answer,
}

impl Outcome {
    /// For the schedule.
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Self::Answered { status, retry_after } => Answer::of_status(*status, *retry_after),
            Self::NoAnswer(_) => Answer::Failed { retry_after: None },
        }
    }

    /// What the owner of the webhook may know. Times are not part of it, and must not be shown beside it more precisely than
    /// the schedule's: how long an attempt took tells what this text does not.
    pub(crate) fn for_owner(&self) -> String {
        match self {
            Self::Answered { status, .. } if status.is_success() => {
                format!("delivered (status {})", status.as_u16())
            }
            Self::Answered { status, .. } if status.is_redirection() => {
                format!(
                    "the webhook answered with a redirect (status {}), which is not followed",
                    status.as_u16()
                )
            }
            Self::Answered { status, .. } => format!("the webhook answered with status {}", status.as_u16()),
            Self::NoAnswer(_) => "the webhook could not be reached, or did not answer in time".to_owned(),
        }
    }
}

impl NoAnswer {
    /// A name for counters.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Target(_) | Self::Address(NoAddress::Refused(_)) | Self::Authority => "refused_target",
            Self::Address(NoAddress::Lookup(_) | NoAddress::Count(_)) => "dns",
            Self::Connect(_) => "connect",
            Self::Tls(_) => "tls",
            Self::Http(_) => "http",
            Self::Timeout(_) => "timeout",
        }
    }
}

/// For the log.
impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(bad) => bad.fmt(f),
            Self::Address(none) => none.fmt(f),
            Self::Connect(error) => write!(f, "no connection: {error}"),
            Self::Tls(error) => write!(f, "no TLS: {error}"),
            Self::Http(error) => match std::error::Error::source(error) {
                Some(cause) => write!(f, "no answer: {error}: {cause}"),
                None => write!(f, "no answer: {error}"),
            },
            Self::Timeout(Stage::Resolve) => f.write_str("timed out while the host's name was resolved"),
            Self::Timeout(Stage::Connect) => f.write_str("timed out while connecting"),
            Self::Timeout(Stage::Tls) => f.write_str("timed out during the TLS handshake"),
            Self::Timeout(Stage::Answer) => f.write_str("timed out waiting for an answer"),
            Self::Authority => f.write_str("the host of the URL cannot be sent"),
        }
    }
}
