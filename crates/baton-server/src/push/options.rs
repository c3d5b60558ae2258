//! What an operator decides about webhooks.

use std::time::Duration;

use super::target::allow::AllowedTarget;

/// Whether and how webhooks are called. Each bound is for the whole server, unless it says otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PushOptions {
    /// For development: webhooks may be on this machine, and have `http` URLs there and at what `allow` names. Off by default.
    pub development: bool,
    /// Receivers in the operator's own network: a host (`hooks.corp.internal`), all hosts of a domain (`*.corp.internal`), an
    /// address or a range (`10.1.0.0/16`). They still need `https`.
    pub allow: Vec<String>,
    /// Certificates as PEM that are trusted beside those of the system.
    pub extra_roots: Vec<Vec<u8>>,
    /// Longest time for one call.
    pub timeout: Duration,
    /// Most calls at the same time. One owner has at most three quarters of them.
    pub at_once: usize,
    /// Most calls at the same time to one host.
    pub per_host: usize,
    /// Most webhooks of one task.
    pub max_per_task: u32,
    /// Most webhooks of one owner that are not finished.
    pub max_per_owner: usize,
    /// Most webhooks that are not finished.
    pub max_open: usize,
    /// Calls of webhooks that were given no credentials carry a JWT, and the server publishes the keys with which receivers
    /// verify it, at `/.well-known/jwks.json`. Off by default.
    #[cfg(feature = "jwt")]
    pub jwt: bool,
    /// A start makes another key for these JWTs once the newest one has been signing for so long. 90 days by default.
    #[cfg(feature = "jwt")]
    pub jwt_key_age: Duration,
    /// Multiplies the waits between attempts. For tests.
    #[doc(hidden)]
    pub pace: f64,
    /// Most failed webhooks that are kept for replay; beyond it the oldest go.
    pub max_failed: u32,
}

impl PushOptions {
    /// Whether a text can be in [`allow`](Self::allow). A server whose options have another does not start.
    pub fn is_allowable(text: &str) -> bool {
        text.parse::<AllowedTarget>().is_ok()
    }
}

impl Default for PushOptions {
    fn default() -> Self {
        PushOptions {
            development: false,
            allow: Vec::new(),
            extra_roots: Vec::new(),
            timeout: Duration::from_secs(15),
            at_once: 64,
            per_host: 4,
            max_per_task: 16,
            max_per_owner: 1000,
            max_open: 100_000,
            #[cfg(feature = "jwt")]
            jwt: false,
            #[cfg(feature = "jwt")]
            jwt_key_age: Duration::from_secs(90 * 24 * 60 * 60),
            pace: 1.0,
            max_failed: 10_000,
        }
    }
}
