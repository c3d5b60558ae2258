//! The agent card: who an agent is, what it can do, where it listens.

use super::JsonObject;
use super::security::{SecurityRequirement, SecurityScheme};

/// Describes an agent: the document that clients read first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCard {
    /// For people.
    pub name: String,
    /// What the agent does, for people and models.
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// In order of preference.
    pub interfaces: Vec<AgentInterface>,
    /// Who runs the agent.
    pub provider: Option<AgentProvider>,
    /// Documentation for people.
    pub documentation_url: Option<String>,
    /// An icon.
    pub icon_url: Option<String>,
    /// The optional parts of the protocol that it supports.
    pub capabilities: AgentCapabilities,
    /// Ways to authenticate, by the names that the requirements use.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// A caller must meet any one of these; an empty list requires nothing.
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types that its skills accept, unless a skill has its own list.
    pub default_input_modes: Vec<String>,
    /// Media types that its skills answer with, unless a skill has its own list.
    pub default_output_modes: Vec<String>,
    /// What it can do.
    pub skills: Vec<AgentSkill>,
    /// Signatures of the card.
    pub signatures: Vec<CardSignature>,
}

/// An address where the agent is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInterface {
    /// The address.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or a URI of a custom binding.
    pub protocol_binding: String,
    /// `Major.Minor`.
    pub protocol_version: String,
    /// Clients must send it with each request.
    pub tenant: Option<String>,
}

/// Who runs an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProvider {
    /// Its name.
    pub organization: String,
    /// Its site.
    pub url: String,
}

/// Optional parts of the protocol. `None` means the member is absent, which readers treat as false; an explicit `false`
/// is kept, since signatures cover it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// Streams of events.
    pub streaming: Option<bool>,
    /// Webhooks.
    pub push_notifications: Option<bool>,
    /// An extended card for authenticated callers.
    pub extended_agent_card: Option<bool>,
    /// Generations before 1.0 only.
    pub state_transition_history: Option<bool>,
    /// Extensions of the protocol.
    pub extensions: Vec<AgentExtension>,
}

/// An extension that an agent supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentExtension {
    /// Its name.
    pub uri: String,
    /// How the agent uses it.
    pub description: Option<String>,
    /// Whether clients must support it, too.
    pub required: bool,
    /// Parameters that the extension defines.
    pub params: Option<JsonObject>,
}

/// One ability of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSkill {
    /// Unique on the card; a message may name it.
    pub id: String,
    /// For people.
    pub name: String,
    /// What it does, for people and models.
    pub description: String,
    /// Keywords.
    pub tags: Vec<String>,
    /// Example messages.
    pub examples: Vec<String>,
    /// Accepted media types; empty: those of the card.
    pub input_modes: Vec<String>,
    /// Media types it answers with; empty: those of the card.
    pub output_modes: Vec<String>,
    /// Requirements in addition to those of the card.
    pub security_requirements: Vec<SecurityRequirement>,
}

/// A signature of the card: a JSON Web Signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSignature {
    /// The protected header, encoded.
    pub protected: String,
    /// The signature, encoded.
    pub signature: String,
    /// The header that is not protected.
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
    /// A skill with nothing optional in it.
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
