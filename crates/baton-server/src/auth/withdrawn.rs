//! A scheme that is no longer used.

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::security::SecurityScheme;
use http::HeaderValue;

use super::request::AuthRequest;
use super::scheme::{Refusal, Scheme, Verdict};

/// Stands in a chain for a scheme that nobody is let in by any more. Cards declare the schemes of a chain, so that a scheme
/// cannot leave a chain that serves; without it, those whom only this scheme keeps out would get in.
#[derive(Debug, Clone)]
pub struct Withdrawn(Arc<dyn Scheme>);

impl Withdrawn {
    /// Is declared as `scheme` is, and accepts nothing.
    pub fn new(scheme: Arc<dyn Scheme>) -> Self {
        Withdrawn(scheme)
    }
}

#[async_trait]
impl Scheme for Withdrawn {
    fn declared(&self) -> SecurityScheme {
        self.0.declared()
    }

    async fn verify(&self, _: &AuthRequest<'_>) -> Verdict {
        Verdict::Absent
    }

    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        self.0.challenge(refused)
    }
}
