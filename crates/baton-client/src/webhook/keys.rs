//! The public keys with which an agent signs its calls: given, or fetched from an address that the receiver knows.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_protocol::signature::jws::Algorithm;
use reqwest::Url;
use tokio::time::Instant;

use super::jwt::Jwt;
use crate::credentials::oauth::Caller;
use crate::error::Error;
use crate::http::Request;
use crate::origin::Origin;
use crate::signature::{Key, read_key_set};

/// Fetched keys are fetched again after this time, so that one which the agent has withdrawn is soon refused.
const FRESH: Duration = Duration::from_secs(5 * 60);

/// If they cannot be fetched again, they are used for so long after they were fetched.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// At least this long between two fetches: anybody can make calls that name keys which do not exist.
const PAUSE: Duration = Duration::from_secs(10);

/// The public keys with which an agent signs its calls to webhooks. Only those for ES256 and EdDSA are used.
///
/// A cheap handle; clones share what was fetched.
#[derive(Clone)]
pub struct WebhookKeys(Arc<Shared>);

struct Shared {
    /// Where they are fetched from.
    source: Option<(Url, Caller)>,
    state: Mutex<State>,
    /// Held while they are fetched.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    keys: Arc<[Key]>,
    fetched: Option<Instant>,
    /// The last try, and why it failed if it did.
    tried: Option<(Instant, Option<String>)>,
}

impl WebhookKeys {
    /// The keys of a JSON Web Key Set (RFC 7517).
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let keys = read(json).map_err(Error::Invalid)?;
        Ok(Self::new(None, State { keys, ..State::default() }))
    }

    pub(crate) fn at(url: &str, caller: Caller) -> Result<Self, Error> {
        let origin = Origin::parse(url)?;
        if !origin.is_secure() && !origin.is_loopback() {
            return Err(Error::Invalid(format!(
                "keys from {origin} would not be encrypted: give an https address"
            )));
        }
        let url = Url::parse(url).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self::new(Some((url, caller)), State::default()))
    }

    fn new(source: Option<(Url, Caller)>, state: State) -> Self {
        let (state, fetching) = (Mutex::new(state), tokio::sync::Mutex::default());
        WebhookKeys(Arc::new(Shared { source, state, fetching }))
    }

    /// Fetches the keys now. [`WebhookVerifier::fetch_and_verify`](crate::WebhookVerifier::fetch_and_verify) does so when they
    /// are needed.
    pub async fn fetch(&self) -> Result<(), Error> {
        let _one_at_a_time = self.0.fetching.lock().await;
        self.0.fetch().await
    }

    /// The keys that are known now.
    pub(super) fn known(&self) -> Arc<[Key]> {
        Arc::clone(&self.0.state().keys)
    }

    /// Fetches the keys if they are old, or if there is none for this JWT. An error if there are no keys at all.
    pub(super) async fn fetch_for(&self, jwt: &Jwt<'_>) -> Result<(), String> {
        if self.0.source.is_none() || !self.0.is_due(&jwt.key_id, jwt.algorithm) {
            return self.0.usable();
        }
        let _one_at_a_time = self.0.fetching.lock().await;
        // Whoever held the lock has fetched them.
        if self.0.is_due(&jwt.key_id, jwt.algorithm) {
            // The error is remembered, and matters if there are no keys.
            let _ = self.0.fetch().await;
        }
        self.0.usable()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_due(&self, id: &str, algorithm: Algorithm) -> bool {
        let state = self.state();
        let is_fresh = state.fetched.is_some_and(|at| at.elapsed() < FRESH);
        let is_known = || state.keys.iter().any(|key| key.is(id, algorithm));
        let may_try = state.tried.as_ref().is_none_or(|(at, _)| at.elapsed() >= PAUSE);
        may_try && !(is_fresh && is_known())
    }

    fn usable(&self) -> Result<(), String> {
        let state = self.state();
        match &state.tried {
            Some((_, Some(error))) if state.keys.is_empty() => Err(error.clone()),
            _ => Ok(()),
        }
    }

    async fn fetch(&self) -> Result<(), Error> {
        let Some((url, caller)) = &self.source else { return Ok(()) };
        let fetched = fetch(url, caller).await;
        let (mut state, now) = (self.state(), Instant::now());
        state.tried = Some((now, fetched.as_ref().err().map(ToString::to_string)));
        match fetched {
            Ok(keys) => {
                (state.keys, state.fetched) = (keys, Some(now));
                Ok(())
            }
            Err(error) => {
                if state.fetched.is_some_and(|at| at.elapsed() >= KEPT) {
                    state.keys = Arc::default();
                }
                Err(error)
            }
        }
    }
}

async fn fetch(url: &Url, caller: &Caller) -> Result<Arc<[Key]>, Error> {
    let request = Request::get(url.clone(), caller.timeouts.call, caller.timeouts.idle);
    let mut answer = caller.http.send(request).await?;
    if answer.status() != 200 {
        return Err(answer.malformed(format!("status {} instead of a key set", answer.status())));
    }
    let text = answer.text(caller.limits.token).await?;
    read(&text).map_err(|error| answer.malformed(error))
}

fn read(json: &str) -> Result<Arc<[Key]>, String> {
    let mut keys = read_key_set(json)?;
    keys.retain(|key| matches!(key.algorithm(), Algorithm::Es256 | Algorithm::EdDsa));
    if keys.is_empty() {
        Err("the key set has no key for ES256 or EdDSA".to_owned())
    } else {
        Ok(keys.into())
    }
}

impl fmt::Debug for WebhookKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookKeys").field("keys", &self.known().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    const SET: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}]}"#;

    /// Keys that were fetched, or not, so long ago.
    fn keys(fetched: Option<Duration>, tried: Option<(Duration, Option<&str>)>) -> WebhookKeys {
        let keys = Client::builder().webhook_keys("https://agent.example/keys").unwrap();
        let ago = |time: Duration| Instant::now().checked_sub(time).unwrap();
        {
            let mut state = keys.0.state();
            state.keys = fetched.map(|_| read(SET).unwrap()).unwrap_or_default();
            state.fetched = fetched.map(ago);
            state.tried = tried.map(|(time, error)| (ago(time), error.map(str::to_owned)));
        }
        keys
    }

    #[test]
    fn s14_keys_are_fetched_when_they_are_old_or_do_not_have_the_one_that_is_named() {
        let seconds = Duration::from_secs;
        for (fetched, tried, known, unknown) in [
            (None, None, true, true),
            (None, Some((seconds(9), Some("away"))), false, false),
            (None, Some((seconds(11), Some("away"))), true, true),
            (Some(seconds(9)), Some((seconds(9), None)), false, false),
            (Some(seconds(11)), Some((seconds(11), None)), false, true),
            (Some(seconds(299)), Some((seconds(299), None)), false, true),
            (Some(seconds(301)), Some((seconds(301), None)), true, true),
            (Some(seconds(301)), Some((seconds(9), Some("away"))), false, false),
        ] {
            let keys = keys(fetched, tried);
            let is_due = |id: &str| keys.0.is_due(id, Algorithm::EdDsa);
            assert_eq!((is_due("a"), is_due("b")), (known, unknown), "{fetched:?} {tried:?}");
            assert_eq!(keys.0.usable().is_ok(), fetched.is_some() || tried.is_none());
        }
    }

    /// Nobody listens at this port: it was just given back.
    #[tokio::test]
    async fn s14_keys_that_cannot_be_fetched_again_are_used_for_an_hour() {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for (minutes, left) in [(59, 1), (61, 0)] {
            let keys = Client::builder().webhook_keys(&format!("http://{address}/keys")).unwrap();
            {
                let mut state = keys.0.state();
                state.keys = read(SET).unwrap();
                state.fetched = Instant::now().checked_sub(Duration::from_secs(minutes * 60));
            }
            keys.fetch().await.unwrap_err();
            assert_eq!(keys.known().len(), left, "{minutes}");
        }
    }
}
