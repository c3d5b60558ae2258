//! Why a request brought no result, under a name that can be counted.

use baton_client::{AgentError, Error, TransportKind};
use baton_protocol::domain::AgentCard;

use crate::client::agent::refusal;
use crate::client::error::{CallError, Code};

/// A request that failed.
#[derive(Debug)]
pub(super) enum Trouble {
    Call(Error),
    /// `--timeout` ran out before the stream had ended.
    StreamTimeout,
    /// The agent closed the stream although the task was still at work.
    ClosedEarly,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Call(error)
    }
}

impl Trouble {
    /// What it is counted under: the A2A name and the HTTP status of an answer, else what happened on the way.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Call(Error::Agent(error)) => of_answer(error),
            Self::Call(Error::Transport(error)) => match error.kind() {
                TransportKind::Connect => "no connection",
                TransportKind::Tls => "no TLS connection",
                TransportKind::Timeout => "timeout",
                TransportKind::Cut => "connection cut",
                TransportKind::TooLarge => "answer too large",
                TransportKind::Malformed => "answer cannot be read",
                TransportKind::Redirected => "redirected",
                _ => "transport",
            }
            .to_owned(),
            Self::Call(_) => "not sent".to_owned(),
            Self::StreamTimeout => "timeout".to_owned(),
            Self::ClosedEarly => "stream closed before its task ended".to_owned(),
        }
    }

    /// The details of one case, for people. It may hold words of the agent.
    pub(super) fn details(&self) -> String {
        match self {
            Self::Call(Error::Agent(error)) => error.message().to_owned(),
            Self::Call(Error::Transport(error)) => error.message().to_owned(),
            Self::Call(error) => error.to_string(),
            Self::StreamTimeout => "the stream had not ended when --timeout ran out".to_owned(),
            Self::ClosedEarly => String::new(),
        }
    }

    /// As the error of a command that cannot go on.
    pub(super) fn failure(&self, card: &AgentCard) -> CallError {
        match self {
            Self::Call(error) => refusal(card, error),
            Self::StreamTimeout => CallError::new(Code::Timeout, self.details()),
            Self::ClosedEarly => {
                CallError::new(Code::Protocol("InvalidAgentResponseError".to_owned()), self.name())
            }
        }
    }
}

fn of_answer(error: &AgentError) -> String {
    let status = error.http_status().filter(|status| *status >= 300).map(|status| format!("HTTP {status}"));
    let code = || {
        let rpc = error.code().map(|code| format!("JSON-RPC {code}"));
        rpc.or_else(|| error.grpc_code().map(|code| format!("gRPC {code}")))
    };
    let name = error.name().or(error.reason()).map(str::to_owned).or_else(code);
    match (name, status) {
        (Some(name), Some(status)) => format!("{name} ({status})"),
        (Some(name), None) => name,
        (None, Some(status)) => status,
        (None, None) => "error without a name".to_owned(),
    }
}
