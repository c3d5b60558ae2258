//! The objects that differ in 1.0, as serde reads them. Members are already domain values; rules that need more than
//! one member are in `to_domain`.
//!
//! Every member is also accepted under its proto name, as ProtoJSON requires of readers.

use serde::Deserialize;
use serde::de::Deserializer;

use super::V1;
use crate::domain::{JsonObject, JsonText, PushAuthentication, PushConfig, PushConfigId, TaskId};
use crate::wire::read::{one, optional, or_default, text};
use crate::wire::scalars::{Bytes, maybe_id};

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

/// `data: null` is a value; only a missing member is `None`.
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
