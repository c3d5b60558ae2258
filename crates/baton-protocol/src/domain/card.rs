//! The agent card: who an agent is, what it can do, where it listens.

use super::JsonObject;
use super::security::{SecurityRequirement, SecurityScheme};

/// Who an agent is and what it can do: the document clients read first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCard {
    /// For people.
    pub name: String,
    /// What it is good for, for people and models.
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// In order of preference.
    pub interfaces: Vec<AgentInterface>,
    /// Who runs it.
    pub provider: Option<AgentProvider>,
    /// Where people read more.
    pub documentation_url: Option<String>,
    /// A picture for it.
    pub icon_url: Option<String>,
    /// What of the protocol it offers.
    pub capabilities: AgentCapabilities,
    /// Ways to authenticate, by the names requirements use.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// Any one of these lets a caller in; none asks for nothing.
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types its skills take, unless they say otherwise.
    pub default_input_modes: Vec<String>,
    /// Media types its skills answer with, unless they say otherwise.
    pub default_output_modes: Vec<String>,
    /// What it can do.
    pub skills: Vec<AgentSkill>,
    /// Of the card itself.
    pub signatures: Vec<CardSignature>,
}

/// A place where the agent is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInterface {
    /// Where.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or a URI of a custom binding.
    pub protocol_binding: String,
    /// `Major.Minor`.
    pub protocol_version: String,
    /// To be named with each request, if there is one.
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

/// `None` is "not said", which readers take as false; an explicit `false` must survive signing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// Streams of events.
    pub streaming: Option<bool>,
    /// Webhooks.
    pub push_notifications: Option<bool>,
    /// A card with more in it for those it knows.
    pub extended_agent_card: Option<bool>,
    /// Generations before 1.0 only.
    pub state_transition_history: Option<bool>,
    /// Of the protocol.
    pub extensions: Vec<AgentExtension>,
}

/// An extension an agent speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentExtension {
    /// Its name.
    pub uri: String,
    /// How the agent uses it.
    pub description: Option<String>,
    /// Must clients speak it, too?
    pub required: bool,
    /// Settings, as the extension has them.
    pub params: Option<JsonObject>,
}

/// One thing an agent can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSkill {
    /// Unique on the card; a message may name it.
    pub id: String,
    /// For people.
    pub name: String,
    /// What it does, for people and models.
    pub description: String,
    /// Words it is found by.
    pub tags: Vec<String>,
    /// What somebody might say to it.
    pub examples: Vec<String>,
    /// Media types it takes; empty: those of the card.
    pub input_modes: Vec<String>,
    /// Media types it answers with; empty: those of the card.
    pub output_modes: Vec<String>,
    /// Beyond those of the card.
    pub security_requirements: Vec<SecurityRequirement>,
}

/// A signature of the card, as JSON Web Signature has it.
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
