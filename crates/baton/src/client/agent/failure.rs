//! Errors of the client library as errors of the command.

use crate::client::error::{CallError, Code};

/// What a failure of the library means to the user.
pub(crate) fn failure(error: &baton_client::Error) -> CallError {
    use baton_client::{CardError, Error, TransportKind};
    match error {
        Error::Agent(agent) => agent_failure(agent),
        Error::Transport(transport) => {
            let code = match transport.kind() {
                TransportKind::TooLarge | TransportKind::Malformed => {
                    Code::Protocol("InvalidAgentResponseError".to_owned())
                }
                _ => Code::Unreachable,
            };
            CallError::new(code, transport.to_string())
        }
        Error::Card(card) => match &**card {
            CardError::NotFound { status: Some(401 | 403), .. } => {
                // Which scheme the agent wants is written on the card, so no credential is sent for it.
                let hint = "save the card with another program and name the file: -a ./card.json";
                CallError::new(Code::CredentialsMissing, card.to_string()).with_hint(hint)
            }
            CardError::NotFound { .. } => CallError::new(Code::CardNotFound, card.to_string()),
            _ => CallError::new(Code::CardInvalid, card.to_string()),
        },
        Error::NoInterface(none) => {
            let name = Code::Protocol("UnsupportedOperationError".to_owned());
            CallError::new(name, none.to_string()).with_command("card get", "")
        }
        Error::Credentials(text) => {
            CallError::new(Code::AuthFailed, text).with_command("auth login", "--client-id ID")
        }
        Error::NotInVersion { .. } => {
            CallError::new(Code::Protocol("UnsupportedOperationError".to_owned()), error.to_string())
        }
        Error::Invalid(text) => CallError::usage(text),
        other => CallError::internal(other.to_string()),
    }
}

fn agent_failure(error: &baton_client::AgentError) -> CallError {
    let status = error.http_status();
    let answered = || match error.grpc_code() {
        Some(code) => format!("the agent answered with gRPC status {code}"),
        None => format!("the agent answered with HTTP {}", status.unwrap_or_default()),
    };
    let message = match error.message() {
        "" => answered(),
        message if error.code().is_none() && error.reason().is_none() => {
            format!("{}: {message}", answered())
        }
        message => message.to_owned(),
    };
    let is = |wanted: baton_protocol::ErrorKind| error.kind() == Some(wanted);
    let code = if is(baton_protocol::ErrorKind::Unauthenticated) || status == Some(401) {
        match error.credentials_sent() {
            true => Code::AuthFailed,
            false => Code::CredentialsMissing,
        }
    } else if is(baton_protocol::ErrorKind::Forbidden) || status == Some(403) {
        Code::AuthFailed
    } else if status.is_some_and(|status| status >= 500) && error.code().is_none() && error.reason().is_none()
    {
        // Not an answer of the protocol, so it has no name there.
        Code::Internal
    } else {
        error.name().map_or(Code::Internal, |name| Code::Protocol(name.to_owned()))
    };
    let binding_code = error.code().or(error.grpc_code()).map(i64::from).or_else(|| status.map(i64::from));
    CallError { binding_code, is_answer: true, ..CallError::new(code, message) }
}
