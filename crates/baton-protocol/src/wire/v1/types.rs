//! The objects only 1.0 spells so, as serde reads them. Members hold domain values already; what needs more than one
//! member to decide is decided in `to_domain`.
//!
//! Every member is accepted under its proto name, too, as ProtoJSON asks of readers.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::V1;
use crate::domain::{
    ContextId, JsonObject, JsonText, MessageId, Part, PushAuthentication, PushConfig, PushConfigId, Role,
    TaskId,
};
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
