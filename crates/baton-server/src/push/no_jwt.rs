//! In place of JWTs in a build without the feature `jwt`: there are none.

use baton_protocol::domain::TaskId;
use http::HeaderValue;

use super::target::Target;

#[derive(Debug, Clone)]
pub(crate) enum Jwt {}

#[allow(dead_code, reason = "the same as with the feature")]
pub(super) struct SignedCall<'a> {
    pub(super) id: &'a str,
    pub(super) task: &'a TaskId,
    pub(super) receiver: &'a Target,
    pub(super) body: &'a [u8],
}

impl Jwt {
    #[allow(clippy::unused_async, reason = "the same as with the feature")]
    pub(super) async fn authorization(&self, _: &SignedCall<'_>) -> Option<HeaderValue> {
        match *self {}
    }

    #[allow(clippy::unused_async, reason = "the same as with the feature")]
    pub(crate) async fn public_keys(&self) -> Vec<String> {
        match *self {}
    }
}
