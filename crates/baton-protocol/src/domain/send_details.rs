//! What a send says beside its message.

use super::JsonObject;

/// What a send says beside its message, for the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendDetails {
    /// The media types the caller takes; empty when it did not say.
    pub accepted_output_modes: Vec<String>,
    /// The metadata of the request, as opposed to the message's own.
    pub metadata: Option<JsonObject>,
}

impl SendDetails {
    /// Was nothing said?
    pub fn is_empty(&self) -> bool {
        self.accepted_output_modes.is_empty() && self.metadata.is_none()
    }
}
