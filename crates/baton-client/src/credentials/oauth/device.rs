//! The device flow, RFC 8628: the user agrees on another device while this one waits.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::endpoints::Endpoints;
use super::token_request::{Grant, Refusal};
use super::{Caller, Prompt, Token, TokenSource};
use crate::error::Error;

#[derive(Deserialize)]
struct Started {
    device_code: String,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    #[serde(default)]
    verification_uri_complete: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
    #[serde(default)]
    interval: Option<u64>,
}

/// If the server does not say.
const USUAL_LIFETIME: u64 = 15 * 60;
const USUAL_INTERVAL: u64 = 5;
const LONGEST_INTERVAL: u64 = 60;

pub(super) async fn log_in(
    source: &TokenSource,
    caller: Caller<'_>,
    endpoints: &Endpoints,
    prompt: &(dyn Fn(Prompt) + Send + Sync),
) -> Result<Token, Error> {
    let scopes = source.scopes.join(" ");
    let form: &[(&str, &str)] = &[("client_id", &source.client.id), ("scope", &scopes)];
    let started: Result<Started, Refusal> = source.post(caller, &endpoints.device()?, form).await?;
    let started = started.map_err(Error::from)?;
    prompt(Prompt::Device {
        url: started.verification_uri,
        code: started.user_code,
        complete_url: started.verification_uri_complete,
    });
    let lifetime = Duration::from_secs(started.expires_in.unwrap_or(USUAL_LIFETIME));
    let give_up = Instant::now() + lifetime;
    let mut interval = started.interval.unwrap_or(USUAL_INTERVAL).min(LONGEST_INTERVAL);
    while Instant::now() < give_up {
        sleep(Duration::from_secs(interval)).await;
        let grant = Grant::DeviceCode(&started.device_code);
        let refusal = match source.try_request(caller, endpoints.token()?, grant).await? {
            Ok(token) => return Ok(token),
            Err(refusal) => refusal,
        };
        match refusal.error.as_str() {
            "authorization_pending" => {}
            "slow_down" => interval = (interval + 5).min(LONGEST_INTERVAL),
            _ => return Err(refusal.into()),
        }
    }
    Err(Error::Credentials("nobody entered the code in time".to_owned()))
}
