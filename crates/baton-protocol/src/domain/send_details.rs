//! Members of a send request other than the message.

use super::JsonObject;

/// Members of a send request other than the message, for the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendDetails {
    /// The media types that the caller accepts; empty if it named none.
    pub accepted_output_modes: Vec<String>,
    /// The metadata of the request, as opposed to the message's own.
    pub metadata: Option<JsonObject>,
}

impl SendDetails {
    /// True if the request had none of these members.
    pub fn is_empty(&self) -> bool {
        self.accepted_output_modes.is_empty() && self.metadata.is_none()
    }
}
