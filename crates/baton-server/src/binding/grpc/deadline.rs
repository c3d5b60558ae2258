//! `grpc-timeout`: how long the caller waits.

use std::time::Duration;

use baton_protocol::Error;
use http::{HeaderMap, HeaderName};
use tokio::time::Instant;

use super::in_time;
use crate::auth::{Challenge, Principal};
use crate::binding::incoming;

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Longer ones mean none: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// When a call has to be over, if the caller says so. It counts from the call's headers on, so it is read first of all.
#[derive(Debug)]
pub(in crate::binding) struct Deadline(Result<Option<Instant>, Error>);

impl Deadline {
    pub(in crate::binding) fn of(headers: &HeaderMap) -> Self {
        Deadline(read(headers))
    }

    /// Refuses what is no time.
    pub(super) fn checked(self) -> Result<Option<Instant>, Error> {
        self.0
    }

    /// Authenticates the caller in this time. What is wrong with the time itself is told only to a caller who is known.
    pub(in crate::binding) async fn authenticate(
        &self,
        caller: impl Future<Output = Result<Principal, Challenge>>,
    ) -> Result<Principal, Challenge> {
        in_time(self.0.as_ref().map_or(None, |at| *at), caller).await
    }
}

fn read(headers: &HeaderMap) -> Result<Option<Instant>, Error> {
    let Some(said) = incoming::header(headers, &TIMEOUT) else { return Ok(None) };
    let patience = parse(&said)
        .ok_or_else(|| Error::invalid("grpc-timeout", "must be at most 8 digits and one of H M S m u n"))?;
    Ok(Some(patience).filter(|patience| *patience < LONGEST).and_then(|it| Instant::now().checked_add(it)))
}

fn parse(said: &str) -> Option<Duration> {
    let unit = said.chars().next_back().filter(char::is_ascii)?;
    let digits = &said[..said.len() - 1];
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(number * 3600),
        'M' => Duration::from_secs(number * 60),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p03_timeouts_have_a_number_and_a_unit() {
        for (said, meant) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("10S", Some(Duration::from_secs(10))),
            ("250m", Some(Duration::from_millis(250))),
            ("99999999u", Some(Duration::from_micros(99_999_999))),
            ("0n", Some(Duration::ZERO)),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("", None),
            ("S", None),
            ("10", None),
            ("10s", None),
            ("-1S", None),
            ("+1S", None),
            ("1.5S", None),
            ("123456789S", None),
            ("1 S", None),
            ("1ü", None),
        ] {
            assert_eq!(parse(said), meant, "{said}");
        }
    }
}
