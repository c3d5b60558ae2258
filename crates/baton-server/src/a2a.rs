//! The protocol types that agents and cards use: messages, tasks, cards. They are the same whatever generation of the
//! protocol a client speaks.

pub use baton_protocol::domain::ids::BadId;
pub use baton_protocol::domain::json::{JsonKind, JsonRefused, JsonShape, Members};
pub use baton_protocol::domain::security::{
    ApiKeyLocation, OAuthFlow, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme,
};
pub use baton_protocol::domain::{
    ActiveExtension, AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    Artifact, ArtifactId, ArtifactUpdate, CardSignature, ContextId, JsonObject, JsonText, Message, MessageId,
    Part, PartContent, PushConfigId, Role, SendDetails, Status, StatusUpdate, Task, TaskId, TaskState,
    Timestamp, TraceContext, Transition,
};
pub use baton_protocol::error::FieldViolation;
pub use baton_protocol::generation::Generations;
pub use baton_protocol::operation::Operation;
pub use baton_protocol::wire::StreamItem;
pub use baton_protocol::wire::dialect::Dialect;
pub use baton_protocol::{Error, ErrorKind, Generation};
