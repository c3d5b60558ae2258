//! The objects of 1.0 as serde reads them. Members hold domain values already; what needs more than one
//! member to decide is decided in `to_domain`.
//!
//! Every member is accepted under its proto name, too, as ProtoJSON asks of readers.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::V1;
use crate::domain::{
    Artifact, ArtifactId, ContextId, JsonObject, JsonText, Message, MessageId, Part, PushConfigId, Role,
    Status, Task, TaskId, TaskState, Timestamp,
};
use crate::domain::{PushAuthentication, PushConfig};
use crate::wire::read::{one, optional, or_default, text};
use crate::wire::scalars::{Bytes, maybe_id};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageTwin {
    #[serde(alias = "message_id", deserialize_with = "one::<V1, _, _>")]
    pub(super) message_id: MessageId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(default, alias = "task_id", deserialize_with = "maybe_id")]
    pub(super) task_id: Option<TaskId>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) role: Role,
    #[serde(deserialize_with = "at_least_one")]
    pub(super) parts: Vec<Part>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    pub(super) extensions: Vec<String>,
    #[serde(default, alias = "reference_task_ids", deserialize_with = "or_default::<V1, _, _>")]
    pub(super) reference_task_ids: Vec<TaskId>,
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    match or_default::<V1, Vec<Part>, D>(deserializer)? {
        parts if parts.is_empty() => Err(D::Error::custom("must hold at least one part")),
        parts => Ok(parts),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartTwin {
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) raw: Option<Bytes>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) url: Option<String>,
    #[serde(default, deserialize_with = "set")]
    pub(super) data: Option<JsonText>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(default, deserialize_with = "text")]
    pub(super) filename: Option<String>,
    #[serde(default, alias = "media_type", deserialize_with = "text")]
    pub(super) media_type: Option<String>,
}

/// `data: null` is a value; only the member's absence is none.
fn set<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    one::<V1, JsonText, D>(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactTwin {
    #[serde(alias = "artifact_id", deserialize_with = "one::<V1, _, _>")]
    pub(super) artifact_id: ArtifactId,
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) description: Option<String>,
    /// May be missing: some agents close an artifact with an empty last chunk.
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    pub(super) parts: Vec<Part>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    pub(super) extensions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) state: TaskState,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) message: Option<Message>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) timestamp: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) id: TaskId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) status: Status,
    /// Kept apart from empty: in a list it tells whether artifacts were asked for.
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) artifacts: Option<Vec<Artifact>>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    pub(super) history: Vec<Message>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdateTwin {
    #[serde(alias = "task_id", deserialize_with = "one::<V1, _, _>")]
    pub(super) task_id: TaskId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) status: Status,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdateTwin {
    #[serde(alias = "task_id", deserialize_with = "one::<V1, _, _>")]
    pub(super) task_id: TaskId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) artifact: Artifact,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    pub(super) append: bool,
    #[serde(default, alias = "last_chunk", deserialize_with = "or_default::<V1, _, _>")]
    pub(super) last_chunk: bool,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) metadata: Option<JsonObject>,
}

/// `StreamResponse`, and `SendMessageResponse`, which is its first half.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StreamTwin {
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) task: Option<Task>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) message: Option<Message>,
    #[serde(default, alias = "status_update", deserialize_with = "optional::<V1, _, _>")]
    pub(super) status_update: Option<super::StatusEvent>,
    #[serde(default, alias = "artifact_update", deserialize_with = "optional::<V1, _, _>")]
    pub(super) artifact_update: Option<super::ArtifactEvent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageTwin {
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    pub(super) tasks: Vec<super::to_domain::ListedTask>,
    #[serde(default, alias = "next_page_token", deserialize_with = "or_default::<V1, _, _>")]
    pub(super) next_page_token: String,
    #[serde(default, alias = "page_size", deserialize_with = "or_default::<V1, _, _>")]
    pub(super) page_size: u32,
    #[serde(default, alias = "total_size", deserialize_with = "or_default::<V1, _, _>")]
    pub(super) total_size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushConfigTwin {
    #[serde(default, deserialize_with = "text")]
    pub(super) tenant: Option<String>,
    #[serde(default, deserialize_with = "maybe_id")]
    pub(super) id: Option<PushConfigId>,
    #[serde(default, alias = "task_id", deserialize_with = "maybe_id")]
    pub(super) task_id: Option<TaskId>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) url: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) token: Option<String>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    pub(super) authentication: Option<PushAuthentication>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthenticationTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    pub(super) scheme: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) credentials: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushConfigsTwin {
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    pub(super) configs: Vec<PushConfig>,
    #[serde(default, alias = "next_page_token", deserialize_with = "or_default::<V1, _, _>")]
    pub(super) next_page_token: String,
}
