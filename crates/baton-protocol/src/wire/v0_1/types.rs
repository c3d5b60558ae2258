//! The objects of 0.1 as serde reads them. Rules that need more than one member are in `to_domain`.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::V0_1;
use super::to_domain::{EventName, File, Happened, Placed, Said, SaidStatus};
use crate::domain::{
    ContextId, JsonObject, JsonText, Part, PushAuthentication, PushConfig, PushEvents, Role, TaskId,
    TaskState, Timestamp,
};
use crate::wire::read::{one, optional, or_default, text};
use crate::wire::scalars::{Bytes, maybe_id};

/// A message. 0.1 messages have no id.
#[derive(Deserialize)]
pub(super) struct MessageTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) role: Role,
    #[serde(deserialize_with = "at_least_one")]
    pub(super) parts: Vec<Part>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    match or_default::<V0_1, Vec<Part>, D>(deserializer)? {
        parts if parts.is_empty() => Err(D::Error::custom("must hold at least one part")),
        parts => Ok(parts),
    }
}

/// `type` was optional in early versions, so it may be missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartTwin {
    #[serde(default, rename = "type", deserialize_with = "text")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) file: Option<File>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) data: Option<JsonText>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileTwin {
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) mime_type: Option<String>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) bytes: Option<Bytes>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) uri: Option<String>,
}

/// In 0.1 the chunk flags are inside the artifact; in a task they are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactTwin {
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) description: Option<String>,
    /// May be missing: some agents close an artifact with an empty last chunk.
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    pub(super) parts: Vec<Part>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) index: Option<u32>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    pub(super) append: bool,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    pub(super) last_chunk: bool,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

#[derive(Deserialize)]
pub(super) struct StatusTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) state: TaskState,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) message: Option<Said>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) timestamp: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) id: TaskId,
    #[serde(default, deserialize_with = "maybe_id")]
    pub(super) session_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) status: SaidStatus,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    pub(super) artifacts: Vec<Placed>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    pub(super) history: Vec<Happened>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

/// An entry of `history`: a message if it has a role, a status if it has a state.
#[derive(Deserialize)]
pub(super) struct HappenedTwin {
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) state: Option<TaskState>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) role: Option<Role>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    pub(super) parts: Vec<Part>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

/// `TaskStatusUpdateEvent` and `TaskArtifactUpdateEvent`, distinguished by their members.
#[derive(Deserialize)]
pub(super) struct StreamTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) id: TaskId,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) status: Option<SaidStatus>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) artifact: Option<Placed>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

/// The body of a webhook call: what happened, and the task's status as of then.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotificationTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) task_id: TaskId,
    /// Not needed, but checked: the two kinds of events are told apart by the artifact.
    #[serde(rename = "eventType", deserialize_with = "one::<V0_1, _, _>")]
    pub(super) _event_type: EventName,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) status: Option<SaidStatus>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) artifact: Option<Placed>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) timestamp: Option<Timestamp>,
}

#[derive(Deserialize)]
pub(super) struct PushConfigTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) url: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) token: Option<String>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    pub(super) authentication: Option<PushAuthentication>,
    #[serde(default, deserialize_with = "event_names")]
    pub(super) events: PushEvents,
}

/// An empty list is the same as none: all events.
fn event_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PushEvents, D::Error> {
    let names = or_default::<V0_1, Vec<EventName>, D>(deserializer)?;
    if names.is_empty() {
        return Ok(PushEvents::default());
    }
    let has = |name| names.contains(&name);
    Ok(PushEvents { status: has(EventName::Status), artifact: has(EventName::Artifact) })
}

#[derive(Deserialize)]
pub(super) struct AuthenticationTwin {
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    pub(super) schemes: Vec<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) credentials: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskPushConfigTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) id: TaskId,
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    pub(super) push_notification_config: PushConfig,
}
