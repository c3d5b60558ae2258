//! The agent card: who an agent is, what it can do, where it listens.

use super::JsonObject;
use super::security::{SecurityRequirement, SecurityScheme};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCard {
    pub name: String,
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// In order of preference.
    pub interfaces: Vec<AgentInterface>,
    pub provider: Option<AgentProvider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    pub capabilities: AgentCapabilities,
    pub security_schemes: Vec<(String, SecurityScheme)>,
    pub security_requirements: Vec<SecurityRequirement>,
    pub default_input_modes: Vec<String>,
    pub default_output_modes: Vec<String>,
    pub skills: Vec<AgentSkill>,
    pub signatures: Vec<CardSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInterface {
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or a URI of a custom binding.
    pub protocol_binding: String,
    /// `Major.Minor`.
    pub protocol_version: String,
    pub tenant: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProvider {
    pub organization: String,
    pub url: String,
}

/// `None` is "not said", which readers take as false; an explicit `false` must survive signing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCapabilities {
    pub streaming: Option<bool>,
    pub push_notifications: Option<bool>,
    pub extended_agent_card: Option<bool>,
    /// Generations before 1.0 only.
    pub state_transition_history: Option<bool>,
    pub extensions: Vec<AgentExtension>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentExtension {
    pub uri: String,
    pub description: Option<String>,
    pub required: bool,
    pub params: Option<JsonObject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub security_requirements: Vec<SecurityRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSignature {
    pub protected: String,
    pub signature: String,
    pub header: Option<JsonObject>,
}

impl AgentCard {
    /// A card with nothing optional in it; modes default to plain text.
    pub fn new(name: &str, description: &str, version: &str) -> Self {
        AgentCard {
            name: name.to_owned(),
            description: description.to_owned(),
            version: version.to_owned(),
            interfaces: Vec::new(),
            provider: None,
            documentation_url: None,
            icon_url: None,
            capabilities: AgentCapabilities::default(),
            security_schemes: Vec::new(),
            security_requirements: Vec::new(),
            default_input_modes: vec!["text/plain".to_owned()],
            default_output_modes: vec!["text/plain".to_owned()],
            skills: Vec::new(),
            signatures: Vec::new(),
        }
    }
}

impl AgentSkill {
    pub fn new(id: &str, name: &str, description: &str) -> Self {
        AgentSkill {
            id: id.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            tags: Vec::new(),
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }
}
