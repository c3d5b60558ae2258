//! The protocol's own words, for agents and cards: what a message, a task or a card *is*, whatever generation a client
//! speaks.

pub use baton_protocol::domain::json::{JsonKind, JsonRefused};
pub use baton_protocol::domain::security::{
    ApiKeyLocation, OAuthFlow, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme,
};
pub use baton_protocol::domain::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, Artifact,
    ArtifactId, ArtifactUpdate, CardSignature, ContextId, JsonObject, JsonText, Message, MessageId, Part,
    PartContent, Role, SendDetails, Status, StatusUpdate, Task, TaskId, TaskState, Timestamp, Transition,
};
pub use baton_protocol::wire::StreamItem;
pub use baton_protocol::{Error, ErrorKind, Generation};
