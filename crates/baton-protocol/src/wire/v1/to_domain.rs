//! Converts 1.0 JSON to domain values: rules that need more than one member.

use serde::de::{Deserializer, Error as _};

use super::V1;
use super::types::*;
use crate::domain::{Part, PartContent, PushAuthentication, PushConfig, PushEvents};
use crate::operation::Reply;
use crate::wire::read::{FromWire, twin};

/// The members of a part that hold its content.
pub(in crate::wire) const CONTENTS: &str = "text, raw, url and data";

pub(super) fn part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
    let PartTwin { text, raw, url, data, metadata, filename, media_type } = twin(deserializer)?;
    let content = match (text, raw, url, data) {
        (Some(text), None, None, None) => PartContent::Text(text),
        (None, Some(raw), None, None) => PartContent::Raw(raw.0),
        (None, None, Some(url), None) => PartContent::Url(url),
        (None, None, None, Some(data)) => PartContent::Data(data),
        _ => return Err(D::Error::custom(format!("must hold exactly one of {CONTENTS}"))),
    };
    Ok(Part { content, filename, media_type, metadata })
}

/// A webhook with the tenant of its wire form.
pub(super) struct TenantPushConfig {
    pub(super) tenant: Option<String>,
    pub(super) config: PushConfig,
}

impl FromWire<V1> for TenantPushConfig {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PushConfigTwin { tenant, id, task_id, url, token, authentication } = twin(deserializer)?;
        let events = PushEvents::default();
        Ok(TenantPushConfig {
            tenant,
            config: PushConfig { id, task_id, url, token, authentication, events },
        })
    }
}

impl FromWire<V1> for PushConfig {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TenantPushConfig::from_wire(deserializer).map(|tenanted| tenanted.config)
    }
}

impl FromWire<V1> for PushAuthentication {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AuthenticationTwin { scheme, credentials } = twin(deserializer)?;
        Ok(PushAuthentication { scheme, credentials })
    }
}

/// All webhooks of a task.
pub(super) struct PushConfigs(pub(super) Reply);

impl FromWire<V1> for PushConfigs {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PushConfigsTwin { configs, next_page_token } = twin(deserializer)?;
        Ok(PushConfigs(Reply::PushConfigs { configs, next_page_token }))
    }
}
