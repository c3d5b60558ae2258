//! The A2A objects, independent of the encoding of any generation.
//!
//! No serde, no clock, no randomness, no async in here: ids and times are arguments.

#![warn(missing_docs)]

pub mod card;
pub mod event;
pub mod ids;
pub mod json;
pub mod message;
pub mod page;
pub mod push;
pub mod scope;
pub mod security;
pub mod send_details;
pub mod task;
pub mod timestamp;
pub mod trace;

pub use card::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, CardSignature,
};
pub use event::{ArtifactUpdate, Event, EventBody, EventKind, StatusUpdate};
pub use ids::{ArtifactId, ContextId, MessageId, PushConfigId, TaskId};
pub use json::{JsonObject, JsonText};
pub use message::{Message, Part, PartContent, Role};
pub use page::{ListFilter, TaskPage};
pub use push::{PushAuthentication, PushConfig, PushEvents};
pub use scope::Scope;
pub use send_details::{ActiveExtension, SendDetails};
pub use task::{Artifact, Status, Task, TaskState, Transition};
pub use timestamp::Timestamp;
pub use trace::TraceContext;
