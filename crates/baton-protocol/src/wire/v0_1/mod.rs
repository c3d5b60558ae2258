//! The JSON encoding of 0.1, the legacy generation. JSON-RPC only.
//!
//! Messages have no ids, artifacts are identified by their position, events have no context, and clients choose the
//! task's id. `null` means an absent member everywhere. `docs/generations.md` lists what 0.1 cannot express.

mod card;
mod from_domain;
mod methods;
mod names;
mod to_domain;
mod types;

use super::StreamItem;
use super::read::{Subject, read};
use crate::domain::{AgentCard, EventKind, Task, TaskId};
use crate::error::{Error, ErrorKind};
use crate::operation::{HistoryLength, Operation, Reply};

pub(in crate::wire) use self::card::{JSONRPC, legacy_url};
pub use self::card::{LegacyCardFacts, write_card};
pub use self::from_domain::{
    write_notification, write_push_config, write_reply, write_stream_artifact, write_stream_message,
    write_stream_status, write_stream_task, write_task,
};
pub use self::methods::{decode_call, method_of, operation_of, write_call};
pub use self::names::{parse_state, state_name};

/// What the encoding of a reply depends on besides its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LegacyOptions {
    /// `history` is the list of the task's states; otherwise the list of messages.
    pub state_history: bool,
    /// Trims the list that is written.
    pub history_length: HistoryLength,
    /// The task that the caller named: a reply with only a message has no task of its own.
    pub task_id: Option<TaskId>,
}

/// The SSE event name of an event, if it has a frame. A task's first frame is a `status`.
pub fn event_name(kind: EventKind) -> Option<&'static str> {
    match kind {
        EventKind::Status(_) => Some(STATUS_EVENT),
        EventKind::Artifact => Some(ARTIFACT_EVENT),
        EventKind::UserMessage | EventKind::AttemptStarted | EventKind::CancelRequested => None,
    }
}

/// SSE name of task, message and status frames.
pub const STATUS_EVENT: &str = "status";
/// SSE name of artifact frames.
pub const ARTIFACT_EVENT: &str = "artifact";

/// Reads the `result` of a call that does not stream.
pub fn read_reply(operation: Operation, text: &str) -> Result<Reply, Error> {
    match operation {
        Operation::SendMessage => read_task(text).map(Reply::SentTask),
        Operation::GetTask | Operation::CancelTask => read_task(text).map(Reply::Task),
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            read::<V0_1, to_domain::TaskPushConfig>(text, Subject::reply("push config"))
                .map(|config| Reply::PushConfig(config.0))
        }
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            Err(Error::of(ErrorKind::Internal).with_log("a streaming operation has no single reply"))
        }
        Operation::ListTasks
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig
        | Operation::GetExtendedCard => {
            Err(Error::of(ErrorKind::UnsupportedOperation).with_log("0.1 has no such operation"))
        }
    }
}

pub fn read_task(text: &str) -> Result<Task, Error> {
    read::<V0_1, _>(text, Subject::reply("task"))
}

/// A status or an artifact event. Their context is the task's id, since 0.1 has none.
pub fn read_stream_item(text: &str) -> Result<StreamItem, Error> {
    read::<V0_1, _>(text, Subject::reply("stream event"))
}

/// The body of a webhook call: `{taskId, eventType, status, timestamp}`, with the artifact if it is about one.
pub fn read_notification(text: &str) -> Result<StreamItem, Error> {
    read::<V0_1, to_domain::Notified>(text, Subject::reply("notification")).map(|notified| notified.0)
}

pub fn read_card(text: &str) -> Result<AgentCard, Error> {
    read::<V0_1, _>(text, Subject::reply("agent card"))
}

/// The marker type of this generation.
struct V0_1;
