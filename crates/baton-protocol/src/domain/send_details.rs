//! What a send request says beside the message.

use super::JsonObject;

/// What a send request says beside the message, for the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendDetails {
    /// The media types that the caller accepts; empty if it named none.
    pub accepted_output_modes: Vec<String>,
    /// The metadata of the request, as opposed to the message's own.
    pub metadata: Option<JsonObject>,
    /// The extensions that the request activated: those that it named and that the agent's card declares.
    pub extensions: Vec<ActiveExtension>,
}

/// An extension that a request activated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveExtension {
    /// Its URI.
    pub uri: String,
    /// The parameters on the card when the request came.
    pub params: Option<JsonObject>,
}

impl SendDetails {
    /// True if the request said nothing beside the message.
    pub fn is_empty(&self) -> bool {
        self.accepted_output_modes.is_empty() && self.metadata.is_none() && self.extensions.is_empty()
    }
}
