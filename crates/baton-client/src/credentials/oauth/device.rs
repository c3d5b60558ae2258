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
/// What a server may ask for, in seconds: nobody types a code a day later, and a server that is asked without a pause
/// answers everybody else more slowly.
const LONGEST_LIFETIME: u64 = 24 * 60 * 60;
const SHORTEST_INTERVAL: u64 = 1;
const LONGEST_INTERVAL: u64 = 60;

impl Started {
    fn lifetime(&self) -> Duration {
        Duration::from_secs(self.expires_in.unwrap_or(USUAL_LIFETIME).min(LONGEST_LIFETIME))
    }

    fn interval(&self) -> u64 {
        self.interval.unwrap_or(USUAL_INTERVAL).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
    }
}

pub(super) async fn log_in(
    source: &TokenSource,
    caller: &Caller,
    endpoints: &Endpoints,
    prompt: &(dyn Fn(Prompt) + Send + Sync),
) -> Result<Token, Error> {
    let scopes = source.scopes.join(" ");
    let form: &[(&str, &str)] = if scopes.is_empty() { &[] } else { &[("scope", &scopes)] };
    let started: Result<Started, Refusal> = source.post(caller, endpoints.start()?, form).await?;
    let started = started.map_err(Error::from)?;
    let give_up = Instant::now() + started.lifetime();
    let mut interval = started.interval();
    prompt(Prompt::Device {
        url: started.verification_uri,
        code: started.user_code,
        complete_url: started.verification_uri_complete,
    });
    while Instant::now() < give_up {
        sleep(Duration::from_secs(interval)).await;
        let grant = Grant::DeviceCode(&started.device_code);
        let refusal = match source.try_request(caller, &endpoints.token, grant).await {
            Ok(Ok(token)) => return Ok(token),
            Ok(Err(refusal)) => refusal,
            // The user is on their way, and the network may be back before they are. RFC 8628, section 3.5, asks for longer
            // waits then.
            Err(Error::Transport(_)) => {
                interval = (interval * 2).min(LONGEST_INTERVAL);
                continue;
            }
            Err(error) => return Err(error),
        };
        match refusal.error.as_str() {
            "authorization_pending" | Refusal::SERVER_ERROR | "temporarily_unavailable" => {}
            "slow_down" => interval = (interval + 5).min(LONGEST_INTERVAL),
            _ => return Err(refusal.into()),
        }
    }
    Err(Error::Credentials("nobody entered the code in time".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_what_a_server_says_about_time_is_bounded() {
        for (said, lifetime, interval) in [
            ("", 900, 5),
            (r#","expires_in":60,"interval":2"#, 60, 2),
            (r#","expires_in":18446744073709551615,"interval":18446744073709551615"#, 86400, 60),
            (r#","expires_in":0,"interval":0"#, 0, 1),
        ] {
            let text = format!(r#"{{"device_code":"d","user_code":"u","verification_uri":"v"{said}}}"#);
            let started: Started = serde_json::from_str(&text).unwrap();
            assert_eq!((started.lifetime().as_secs(), started.interval()), (lifetime, interval), "{said}");
        }
    }
}
