//! When a failed call is made again. [`Retries`] has the rules.

use std::time::Duration;

use baton_protocol::operation::Operation;

use crate::error::{AgentError, Error, TransportKind};
use crate::options::{Retries, backoff};

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    retries: &'a Retries,
    operation: Operation,
    made: u32,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(retries: &'a Retries, operation: Operation) -> Self {
        Attempts { retries, operation, made: 0 }
    }

    /// Waits until it is time for another attempt, or returns the error if there is none.
    pub(crate) async fn again(&mut self, error: Error) -> Result<(), Error> {
        match self.wait_after(&error) {
            Some(wait) if self.made < self.retries.most => {
                self.made += 1;
                tokio::time::sleep(wait).await;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// `None` if the call must not be made again.
    fn wait_after(&self, error: &Error) -> Option<Duration> {
        let Retries { first_wait, longest_wait, uncertain, .. } = *self.retries;
        let wait = backoff(first_wait, longest_wait, self.made);
        match error {
            Error::Transport(error) => match error.kind() {
                // A certificate does not get better by waiting.
                TransportKind::Tls => None,
                TransportKind::Connect => Some(wait),
                TransportKind::Timeout | TransportKind::Cut => {
                    let safe = !error.may_have_reached() || is_repeatable(self.operation) || uncertain;
                    safe.then_some(wait)
                }
                TransportKind::TooLarge | TransportKind::Malformed | TransportKind::Redirected => None,
            },
            Error::Agent(error) if is_busy(error) => {
                error.retry_after().filter(|asked| *asked <= longest_wait)
            }
            _ => None,
        }
    }
}

/// Too many requests, or unavailable.
fn is_busy(error: &AgentError) -> bool {
    matches!(error.http_status(), Some(429 | 503)) || matches!(error.grpc_code(), Some(8 | 14))
}

/// Doing it twice has the effect of doing it once.
fn is_repeatable(operation: Operation) -> bool {
    !matches!(
        operation,
        Operation::SendMessage | Operation::SendStreamingMessage | Operation::CreatePushConfig
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TransportError;
    use baton_protocol::Generation;
    use baton_protocol::wire::peer_error::PeerError;

    fn transport(kind: TransportKind, reached: bool) -> Error {
        TransportError { kind, url: String::new(), message: String::new(), reached }.into()
    }

    fn agent(status: u16, retry_after: Option<u64>) -> Error {
        AgentError {
            peer: PeerError::of_http(Generation::V1, Some(status), ""),
            retry_after: retry_after.map(Duration::from_secs),
            challenges: Vec::new(),
            credentials_sent: false,
        }
        .into()
    }

    #[test]
    fn p09_only_what_is_safe_is_sent_again() {
        use TransportKind::*;
        for (error, send, send_uncertain, get) in [
            (transport(Connect, false), true, true, true),
            (transport(Timeout, false), true, true, true),
            (transport(Timeout, true), false, true, true),
            (transport(Cut, true), false, true, true),
            (transport(Tls, false), false, false, false),
            (transport(TooLarge, true), false, false, false),
            (transport(Malformed, true), false, false, false),
            (agent(503, Some(1)), true, true, true),
            (agent(429, Some(1)), true, true, true),
            (agent(503, None), false, false, false),
            (agent(429, Some(3600)), false, false, false),
            (agent(500, Some(1)), false, false, false),
            (agent(404, None), false, false, false),
        ] {
            let again = |operation, uncertain| {
                let retries = Retries { uncertain, ..Retries::default() };
                Attempts::new(&retries, operation).wait_after(&error).is_some()
            };
            assert_eq!(again(Operation::SendMessage, false), send, "{error:?}");
            assert_eq!(again(Operation::CreatePushConfig, false), send, "{error:?}");
            assert_eq!(again(Operation::SendMessage, true), send_uncertain, "{error:?}");
            assert_eq!(again(Operation::GetTask, false), get, "{error:?}");
        }
    }
}
