//! The objects that differ in 0.3, as serde reads them, with the members of both dialects. Rules that need more than
//! one member are in `to_domain`.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Dialect;
use super::to_domain::{File, PartKind, Resource, Settings};
use crate::domain::{JsonObject, PushAuthentication, PushConfig, PushConfigId, TaskId};
use crate::wire::read::{one, optional, or_default, text};
use crate::wire::scalars::{Bytes, maybe_id};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartTwin {
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    pub(super) kind: Option<PartKind>,
    /// The name of `kind` before 0.2. Some clients send both.
    #[serde(default, rename = "type", deserialize_with = "optional::<(), _, _>")]
    pub(super) old_kind: Option<PartKind>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    pub(super) file: Option<File>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    pub(super) data: Option<JsonObject>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    pub(super) metadata: Option<JsonObject>,
    // Members of a file that were not put into `file`.
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    pub(super) bytes: Option<Bytes>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    pub(super) uri: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) mime_type: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileTwin {
    /// An example in the specification uses `data`.
    #[serde(
        default,
        alias = "data",
        alias = "fileWithBytes",
        alias = "file_with_bytes",
        deserialize_with = "optional::<(), _, _>"
    )]
    pub(super) bytes: Option<Bytes>,
    #[serde(
        default,
        alias = "fileWithUri",
        alias = "file_with_uri",
        deserialize_with = "optional::<(), _, _>"
    )]
    pub(super) uri: Option<String>,
    #[serde(default, alias = "mime_type", deserialize_with = "text")]
    pub(super) mime_type: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
}

/// Which members an object has, to find out what it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemTwin {
    #[serde(default, deserialize_with = "text")]
    pub(super) kind: Option<String>,
    // Wrappers.
    pub(super) task: Option<IgnoredAny>,
    pub(super) message: Option<IgnoredAny>,
    #[serde(alias = "status_update")]
    pub(super) status_update: Option<IgnoredAny>,
    #[serde(alias = "artifact_update")]
    pub(super) artifact_update: Option<IgnoredAny>,
    // Members of the wrapped objects.
    pub(super) artifact: Option<IgnoredAny>,
    pub(super) status: Option<IgnoredAny>,
    pub(super) task_id: Option<IgnoredAny>,
    pub(super) role: Option<IgnoredAny>,
}

/// A task's webhook: on its own in JSON-RPC, inside the create request in the proto.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Dialect"))]
pub(super) struct TaskPushConfigTwin<G> {
    #[serde(default, alias = "task_id", deserialize_with = "maybe_id")]
    pub(super) task_id: Option<TaskId>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) name: Option<Resource>,
    #[serde(default, alias = "push_notification_config", deserialize_with = "optional::<G, _, _>")]
    pub(super) push_notification_config: Option<Settings>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) parent: Option<Resource>,
    #[serde(default, alias = "config_id", deserialize_with = "maybe_id")]
    pub(super) config_id: Option<PushConfigId>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    pub(super) config: Option<PushConfig>,
    #[serde(skip)]
    pub(super) dialect: PhantomData<G>,
}

#[derive(Deserialize)]
pub(super) struct SettingsTwin {
    #[serde(default, deserialize_with = "maybe_id")]
    pub(super) id: Option<PushConfigId>,
    #[serde(deserialize_with = "one::<(), _, _>")]
    pub(super) url: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) token: Option<String>,
    #[serde(default, deserialize_with = "optional::<super::Kind, _, _>")]
    pub(super) authentication: Option<PushAuthentication>,
}

/// The protocol guide calls a scheme and its credentials `type` and `token`.
#[derive(Deserialize)]
pub(super) struct AuthenticationTwin {
    #[serde(default, deserialize_with = "or_default::<(), _, _>")]
    pub(super) schemes: Vec<String>,
    #[serde(default, alias = "scheme", deserialize_with = "text")]
    pub(super) r#type: Option<String>,
    #[serde(default, alias = "token", deserialize_with = "text")]
    pub(super) credentials: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Dialect"))]
pub(super) struct PushConfigsTwin<G> {
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    pub(super) configs: Vec<PushConfig>,
    #[serde(default, alias = "next_page_token", deserialize_with = "or_default::<G, _, _>")]
    pub(super) next_page_token: String,
    #[serde(skip)]
    pub(super) dialect: PhantomData<G>,
}
