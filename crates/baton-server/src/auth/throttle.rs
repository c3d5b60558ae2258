//! Slows down callers who guess credentials.
//!
//! Only failures are counted, and only the answers to failures change: 429 instead of 401. A valid credential is never
//! asked about here, so it always passes, and nobody can lock an owner out by failing in their name. A success changes
//! nothing: whoever has one valid key gets no further guesses at others by using it.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use baton_protocol::{Error, ErrorKind};

use crate::net;
use crate::token_buckets::{Rate, TokenBuckets, retry_after};

/// How many failures are answered before the caller is told to wait.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThrottleOptions {
    /// Failures that one address may make at once with one credential. Zero: nobody is told to wait.
    pub burst: u32,
    /// One more is allowed in each such time.
    pub every: Duration,
    /// An address may make this many times as many failures with all credentials together. It holds against guesses that
    /// name another credential each time. Larger than 1, since many people may share an address.
    pub per_address: u32,
    /// About how many pairs of address and credential are remembered.
    pub max_entries: usize,
}

impl Default for ThrottleOptions {
    fn default() -> Self {
        ThrottleOptions { burst: 20, every: Duration::from_secs(3), per_address: 10, max_entries: 65_536 }
    }
}

/// Counts failed authentication by address and credential.
#[derive(Debug)]
pub struct Throttle {
    /// `None`: switched off.
    rates: Option<Rates>,
    buckets: TokenBuckets,
}

#[derive(Debug)]
struct Rates {
    credential: Rate,
    address: Rate,
}

impl Throttle {
    /// Nobody has failed yet.
    pub fn new(options: &ThrottleOptions) -> Self {
        let rates = (options.burst > 0).then(|| {
            let many = options.per_address.max(1);
            Rates {
                credential: Rate::new(options.every, options.burst),
                address: Rate::new(options.every / many, options.burst.saturating_mul(many)),
            }
        });
        Throttle { rates, buckets: TokenBuckets::new(options.max_entries) }
    }

    /// Counts a failure. `Some`: the caller has failed too often and should be answered with 429; the time is that after
    /// which the next failure is answered as a failure again.
    ///
    /// `address` is the caller's own ([`AuthRequest::client`](super::AuthRequest::client)). `None`, for callers on this
    /// machine and those that a proxy does not name, is never told to wait. `credential` is the public part of what was
    /// tried: a key's prefix, a user's name.
    pub fn failed(
        &self,
        address: Option<IpAddr>,
        credential: Option<&str>,
        now: Instant,
    ) -> Option<Duration> {
        let rates = self.rates.as_ref()?;
        let address = net::one_customer(address?);
        // Guesses at one credential that are refused anyway take nothing from what others at the address may try.
        let pair = self.buckets.take(&(address, Some(credential)), rates.credential, now);
        pair.and_then(|()| self.buckets.take(&(address, None::<Option<&str>>), rates.address, now)).err()
    }

    /// The answer to a caller who has to wait.
    pub fn too_many(wait: Duration) -> Error {
        let text = "Too many failed attempts to authenticate from this address; wait, then try again";
        Error::new(ErrorKind::QuotaExceeded, text).with_retry_after(retry_after(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn guesses_at_one_credential_run_dry_alone() {
        let throttle = Throttle::new(&ThrottleOptions { burst: 3, ..ThrottleOptions::default() });
        let now = Instant::now();
        let (here, there) = (address("192.0.2.1"), address("192.0.2.2"));
        for _ in 0..3 {
            assert_eq!(throttle.failed(here, Some("bk_1"), now), None);
        }
        assert_eq!(throttle.failed(here, Some("bk_1"), now), Some(Duration::from_secs(3)));
        assert_eq!(throttle.failed(here, Some("bk_2"), now), None, "another credential");
        assert_eq!(throttle.failed(there, Some("bk_1"), now), None, "another address");
        assert_eq!(throttle.failed(here, Some("bk_1"), now + Duration::from_secs(3)), None);
        assert_eq!(throttle.failed(None, Some("bk_1"), now), None);
    }

    #[test]
    fn inventing_credentials_does_not_help() {
        let throttle = Throttle::new(&ThrottleOptions { burst: 2, ..ThrottleOptions::default() });
        let (here, now) = (address("192.0.2.1"), Instant::now());
        let answered = |n: u32| throttle.failed(here, Some(&format!("bk_{n}")), now).is_none();
        assert_eq!((0..1000).filter(|n| answered(*n)).count(), 20);
    }

    /// Whoever has an IPv6 address usually has a whole /64 of them.
    #[test]
    fn an_ipv6_network_is_one_address() {
        let throttle = Throttle::new(&ThrottleOptions { burst: 1, ..ThrottleOptions::default() });
        let now = Instant::now();
        assert_eq!(throttle.failed(address("2001:db8::1"), None, now), None);
        assert!(throttle.failed(address("2001:db8::2"), None, now).is_some());
        assert_eq!(throttle.failed(address("2001:db8:0:1::1"), None, now), None);
        assert_eq!(throttle.failed(address("::ffff:192.0.2.1"), None, now), None);
        assert!(throttle.failed(address("192.0.2.1"), None, now).is_some());
    }

    #[test]
    fn a_burst_of_zero_switches_it_off() {
        let throttle = Throttle::new(&ThrottleOptions { burst: 0, ..ThrottleOptions::default() });
        let now = Instant::now();
        assert!((0..1000).all(|_| throttle.failed(address("192.0.2.1"), None, now).is_none()));
    }
}
