//! Results as the agent sent them, for programs that show more than this library understands.

use std::sync::atomic::Ordering;

use baton_protocol::operation::Call;

use crate::client::{Client, with_fact};
use crate::error::{Error, TransportKind};
use crate::retry::Attempts;
use crate::transport::result_of;

impl Client {
    /// Makes a call that does not stream and returns its result as the agent sent it: JSON in the words of the version in
    /// use, which is not looked at. Errors, credentials and retries are those of the other calls.
    pub async fn call_raw(&self, call: &Call) -> Result<String, Error> {
        let mut attempts = Attempts::new(&self.0.retries, call.operation());
        loop {
            let at = self.0.current.load(Ordering::Relaxed);
            match self.call_raw_once(at, call).await {
                Ok(result) => return Ok(result),
                Err(error) if self.moved_on(at, &error) => {}
                Err(error) => attempts.again(error).await?,
            }
        }
    }

    async fn call_raw_once(&self, at: usize, call: &Call) -> Result<String, Error> {
        let interface = &self.0.interfaces[at];
        let (id, mut answer, sent) = self.exchange(interface, call, None).await?;
        let body = answer.bytes(self.0.limits.reply).await?;
        let result = result_of(interface, &id, &answer, &body).map_err(|error| with_fact(error, sent))?;
        match serde_json::from_str::<serde::de::IgnoredAny>(result) {
            Ok(_) => Ok(result.to_owned()),
            Err(error) => Err(answer.fail(TransportKind::Malformed, error.to_string())),
        }
    }
}
