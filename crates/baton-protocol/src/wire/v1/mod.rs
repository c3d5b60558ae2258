//! The JSON of 1.0: ProtoJSON of `lf.a2a.v1`, shared by JSON-RPC and HTTP+JSON.
//!
//! Writers encode borrowed domain values and cannot fail. Readers ignore unknown members, take camelCase and
//! proto names, and say in their errors which member is wrong and what it must be.

mod card;
mod details;
mod from_domain;
mod methods;
mod names;
mod security;
mod to_domain;
mod types;

use super::read::{Subject, read};
use crate::domain::{AgentCard, ArtifactUpdate, ContextId, Message, StatusUpdate, Task, TaskId, Timestamp};
use crate::error::{Error, ErrorKind};
use crate::operation::{Call, Operation, Reply};

pub use self::card::write_card;
pub use self::details::write_error_details;
pub use self::from_domain::{
    write_message, write_reply, write_stream_artifact, write_stream_message, write_stream_status,
    write_stream_task, write_task,
};
pub use self::methods::{decode_call, write_call};
pub use self::names::{parse_state, state_name};
pub use super::time::{parse_timestamp, write_timestamp};

/// A call with the tenant its parameters named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    pub tenant: Option<String>,
    pub call: Call,
}

/// One `StreamResponse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamItem {
    Task(Task),
    Message(Message),
    Status {
        task_id: TaskId,
        context_id: ContextId,
        at: Timestamp,
        update: StatusUpdate,
    },
    /// The ordinal is not on the wire: it is 0 here, and `lifecycle` knows the right one.
    Artifact {
        task_id: TaskId,
        context_id: ContextId,
        update: ArtifactUpdate,
    },
}

/// Reads the `result` of a call that does not stream.
pub fn read_reply(operation: Operation, text: &str) -> Result<Reply, Error> {
    match operation {
        Operation::SendMessage => read::<V1, to_domain::Sent>(text, reply("reply")).map(|sent| sent.0),
        Operation::GetTask | Operation::CancelTask => read_task(text).map(Reply::Task),
        Operation::ListTasks => read::<V1, _>(text, reply("task list")).map(Reply::Tasks),
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            read::<V1, _>(text, reply("push config")).map(Reply::PushConfig)
        }
        Operation::ListPushConfigs => {
            read::<V1, to_domain::PushConfigs>(text, reply("push config list")).map(|configs| configs.0)
        }
        // Servers answer `null`, `{}` or nothing at all.
        Operation::DeletePushConfig => Ok(Reply::PushConfigDeleted),
        Operation::GetExtendedCard => read_card(text).map(|card| Reply::Card(Box::new(card))),
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            Err(Error::of(ErrorKind::Internal).with_log("a streaming operation has no single reply"))
        }
    }
}

pub fn read_task(text: &str) -> Result<Task, Error> {
    read::<V1, _>(text, reply("task"))
}

pub fn read_message(text: &str) -> Result<Message, Error> {
    read::<V1, _>(text, reply("message"))
}

pub fn read_stream_item(text: &str) -> Result<StreamItem, Error> {
    read::<V1, _>(text, reply("stream event"))
}

pub fn read_card(text: &str) -> Result<AgentCard, Error> {
    read::<V1, _>(text, reply("agent card"))
}

/// Marks this generation's spelling among the readers.
struct V1;

const PARAMS: Subject =
    Subject { kind: ErrorKind::InvalidParams, title: "Invalid parameters", root: "params" };

/// Something an agent sent. What is wrong with it is the agent's fault, not the caller's.
const fn reply(root: &'static str) -> Subject {
    Subject { kind: ErrorKind::InvalidAgentResponse, title: "Invalid response", root }
}

struct StatusEvent {
    task_id: TaskId,
    context_id: ContextId,
    at: Timestamp,
    update: StatusUpdate,
}

impl From<StatusEvent> for StreamItem {
    fn from(StatusEvent { task_id, context_id, at, update }: StatusEvent) -> Self {
        StreamItem::Status { task_id, context_id, at, update }
    }
}

struct ArtifactEvent {
    task_id: TaskId,
    context_id: ContextId,
    update: ArtifactUpdate,
}

impl From<ArtifactEvent> for StreamItem {
    fn from(ArtifactEvent { task_id, context_id, update }: ArtifactEvent) -> Self {
        StreamItem::Artifact { task_id, context_id, update }
    }
}
