//! The shared objects as serde reads them. Members are already domain values; rules that need more than one member are
//! in `to_domain`.
//!
//! Every member is also accepted under its proto name, as ProtoJSON requires of readers.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::Spelling;
use super::to_domain::ListedTask;
use crate::domain::{
    Artifact, ArtifactId, ContextId, JsonObject, Message, MessageId, Part, Role, Status, Task, TaskId,
    TaskState, Timestamp,
};
use crate::wire::read::{one, optional, or_default, text};
use crate::wire::scalars::maybe_id;
use crate::wire::stream_item::{ArtifactEvent, StatusEvent};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct MessageTwin<G> {
    #[serde(alias = "message_id", deserialize_with = "one::<G, _, _>")]
    pub(super) message_id: MessageId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(default, alias = "task_id", deserialize_with = "maybe_id")]
    pub(super) task_id: Option<TaskId>,
    #[serde(deserialize_with = "one::<G, _, _>")]
    pub(super) role: Role,
    #[serde(default, deserialize_with = "at_least_one::<G, _>")]
    pub(super) parts: Option<Vec<Part>>,
    #[serde(default, deserialize_with = "G::read_content")]
    pub(super) content: Option<Vec<Part>>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    pub(super) extensions: Vec<String>,
    #[serde(default, alias = "reference_task_ids", deserialize_with = "or_default::<G, _, _>")]
    pub(super) reference_task_ids: Vec<TaskId>,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}

pub(crate) const NO_PART: &str = "must hold at least one part";

/// Reads the parts of a message, which must not be empty.
pub(crate) fn at_least_one<'de, G: Spelling, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Part>>, D::Error> {
    match or_default::<G, Vec<Part>, D>(deserializer)? {
        parts if parts.is_empty() => Err(D::Error::custom(NO_PART)),
        parts => Ok(Some(parts)),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct ArtifactTwin<G> {
    #[serde(alias = "artifact_id", deserialize_with = "one::<G, _, _>")]
    pub(super) artifact_id: ArtifactId,
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) description: Option<String>,
    /// May be missing: some agents close an artifact with an empty last chunk.
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    pub(super) parts: Vec<Part>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    pub(super) extensions: Vec<String>,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct StatusTwin<G> {
    #[serde(deserialize_with = "one::<G, _, _>")]
    pub(super) state: TaskState,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) message: Option<Message>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct TaskTwin<G> {
    #[serde(deserialize_with = "one::<G, _, _>")]
    pub(super) id: TaskId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<G, _, _>")]
    pub(super) status: Status,
    /// `None` differs from empty: in a list it shows whether artifacts were requested.
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) artifacts: Option<Vec<Artifact>>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    pub(super) history: Vec<Message>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct StatusUpdateTwin<G> {
    #[serde(alias = "task_id", deserialize_with = "one::<G, _, _>")]
    pub(super) task_id: TaskId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<G, _, _>")]
    pub(super) status: Status,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct ArtifactUpdateTwin<G> {
    #[serde(alias = "task_id", deserialize_with = "one::<G, _, _>")]
    pub(super) task_id: TaskId,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    pub(super) context_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<G, _, _>")]
    pub(super) artifact: Artifact,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    pub(super) append: bool,
    #[serde(default, alias = "last_chunk", deserialize_with = "or_default::<G, _, _>")]
    pub(super) last_chunk: bool,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) metadata: Option<JsonObject>,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}

/// `StreamResponse`, and `SendMessageResponse`, which is its first half.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct StreamTwin<G> {
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) task: Option<Task>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) message: Option<Message>,
    #[serde(default, alias = "status_update", deserialize_with = "optional::<G, _, _>")]
    pub(super) status_update: Option<StatusEvent>,
    #[serde(default, alias = "artifact_update", deserialize_with = "optional::<G, _, _>")]
    pub(super) artifact_update: Option<ArtifactEvent>,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
pub(super) struct PageTwin<G> {
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    pub(super) tasks: Vec<ListedTask>,
    #[serde(default, alias = "next_page_token", deserialize_with = "or_default::<G, _, _>")]
    pub(super) next_page_token: String,
    #[serde(default, alias = "page_size", deserialize_with = "or_default::<G, _, _>")]
    pub(super) page_size: u32,
    #[serde(default, alias = "total_size", deserialize_with = "or_default::<G, _, _>")]
    pub(super) total_size: u64,
    #[serde(skip)]
    pub(super) spelling: PhantomData<G>,
}
