//! A webhook as it is used: its record, with its secrets unwrapped, and the headers of its calls.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::Generation;
use baton_protocol::domain::{PushAuthentication, PushConfig, PushConfigId, Scope, TaskId};
use baton_protocol::signature::webhook::{
    ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookSecret, sign,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::credentials::{self, BadCredentials};
use super::notification::{self, Notification};
use super::schedule::Policy;
use crate::secrets::{SecretsError, Wrapping};
use crate::store::record::WebhookRecord;
use crate::store::{StoreError, StoredWebhook};

/// Both spellings that clients of different makers read.
const TOKEN_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-a2a-notification-token"), HeaderName::from_static("a2a-notification-token")];
const VERSION_HEADER: HeaderName = HeaderName::from_static("a2a-version");
/// What answers show in place of credentials.
const MASK: &str = "********";

/// A webhook, ready to be called.
pub(super) struct Webhook {
    pub(super) record: WebhookRecord,
    secrets: WebhookSecrets,
}

/// What is stored wrapped.
#[derive(Default, Serialize, Deserialize)]
struct WebhookSecrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

/// The name under which the secrets of a webhook are wrapped: they cannot be moved to another.
fn secrets_name(task: &TaskId, id: &PushConfigId) -> String {
    // With its length, so that no other ids give the same name.
    format!("webhook:{}:{task}:{id}", task.as_str().len())
}

/// Why a webhook cannot be read from the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error(transparent)]
    Record(#[from] StoreError),
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    #[error("the secrets of the webhook are damaged")]
    Damaged,
}

/// Checks what a caller gives as headers.
pub(super) fn check_headers(config: &PushConfig) -> Result<(), BadCredentials> {
    if let Some(token) = &config.token {
        credentials::check_token(token)?;
    }
    if let Some(PushAuthentication { scheme, credentials }) = &config.authentication {
        credentials::authorization(scheme, credentials.as_deref())?;
    }
    Ok(())
}

/// The secrets of a webhook in the form in which they are stored.
pub(super) fn wrap_secrets(
    wrapping: &Wrapping,
    task: &TaskId,
    id: &PushConfigId,
    config: &PushConfig,
) -> Result<Vec<u8>, crate::auth::NoRandomNumbers> {
    let authentication = config.authentication.as_ref();
    let secrets = WebhookSecrets {
        token: config.token.clone(),
        scheme: authentication.map(|authentication| authentication.scheme.clone()),
        credentials: authentication.and_then(|authentication| authentication.credentials.clone()),
    };
    let json = serde_json::to_vec(&secrets).expect("strings into memory cannot fail");
    wrapping.wrap(&secrets_name(task, id), &json)
}

impl Webhook {
    pub(super) fn read(
        wrapping: &Wrapping,
        task: &TaskId,
        stored: &StoredWebhook,
    ) -> Result<Self, Unreadable> {
        let record = WebhookRecord::from_stored(&stored.record)?;
        let unwrapped = wrapping.unwrap(&secrets_name(task, &stored.id), &record.secrets)?;
        let secrets = match &unwrapped.value[..] {
            [] => WebhookSecrets::default(),
            json => serde_json::from_slice(json).map_err(|_| Unreadable::Damaged)?,
        };
        Ok(Webhook { record, secrets })
    }

    /// As answers show it: without its credentials.
    pub(super) fn to_config(&self, task: &TaskId, id: &PushConfigId) -> PushConfig {
        let masked = |scheme: &String| PushAuthentication {
            scheme: scheme.clone(),
            credentials: self.secrets.credentials.as_ref().map(|_| MASK.to_owned()),
        };
        PushConfig {
            id: Some(id.clone()),
            task_id: Some(task.clone()),
            token: self.secrets.token.clone(),
            authentication: self.secrets.scheme.as_ref().map(masked),
            events: self.record.events,
            ..PushConfig::new(self.record.url.clone())
        }
    }

    pub(super) fn policy(&self) -> Policy {
        match self.record.generation {
            Generation::V0_1 => Policy::Legacy,
            Generation::V0_3 | Generation::V1 => Policy::Standard,
        }
    }

    /// The headers of a call. `id` is that of the event, `now` in seconds since 1970.
    pub(super) fn headers(&self, notification: &Notification, id: &str, now: u64) -> HeaderMap {
        let generation = self.record.generation;
        let mut headers = HeaderMap::with_capacity(8);
        let text = |text: &str| HeaderValue::from_str(text).expect("ASCII without control characters");
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(notification::content_type(generation)));
        headers.insert(VERSION_HEADER, HeaderValue::from_static(generation.version()));
        headers.insert(ID_HEADER, text(id));
        headers.insert(TIMESTAMP_HEADER, HeaderValue::from(now));
        let secrets = &self.secrets;
        if let Some(token) = &secrets.token {
            let secret = signing_secret(token);
            headers.insert(SIGNATURE_HEADER, text(&sign([&secret], id, now, &notification.body)));
            if let Ok(value) = credentials::token(token) {
                for name in TOKEN_HEADERS {
                    headers.insert(name, value.clone());
                }
                // The legacy protocol has no other place for the token.
                if generation == Generation::V0_1
                    && secrets.scheme.is_none()
                    && let Ok(bearer) = credentials::authorization("Bearer", Some(token))
                {
                    headers.insert(AUTHORIZATION, bearer);
                }
            }
        }
        if let Some(scheme) = &secrets.scheme
            && let Ok(value) = credentials::authorization(scheme, secrets.credentials.as_deref())
        {
            headers.insert(AUTHORIZATION, value);
        }
        headers
    }
}

/// Whether a call says nothing about who makes it: no scheme was given, or `Bearer` without a token.
pub(super) fn has_no_credentials(headers: &HeaderMap) -> bool {
    headers.get(AUTHORIZATION).is_none_or(|value| value.as_bytes().eq_ignore_ascii_case(b"bearer"))
}

/// The key of signatures: the token itself if it is a `whsec_` secret, else the SHA-256 of its bytes.
pub(crate) fn signing_secret(token: &str) -> WebhookSecret {
    let given = if token.starts_with("whsec_") { WebhookSecret::parse(token).ok() } else { None };
    given.unwrap_or_else(|| {
        WebhookSecret::new(Sha256::digest(token).to_vec()).expect("a secret may have 32 bytes")
    })
}

/// The id of an event for one webhook: the same at every attempt, and telling nothing of numbers or names. A task in place of
/// an event has another id than the event: a receiver that has the event would drop the task as a repeat. So has the event in
/// another generation, for a webhook that was replaced: its bytes are others.
pub(super) fn event_id(
    key: &[u8],
    scope: &Scope,
    task: &TaskId,
    id: &PushConfigId,
    generation: Generation,
    notification: &Notification,
) -> String {
    let mut mac: Hmac<Sha256> = Hmac::new_from_slice(key).expect("a key may have any length");
    for part in [&*scope.agent, &*scope.tenant, &*scope.owner, task.as_str(), id.as_str()] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.update(&notification.number.to_be_bytes());
    if notification.replaces_event {
        mac.update(b"task");
    }
    // As it was before generations were part of it.
    if generation != Generation::V1 {
        mac.update(generation.version().as_bytes());
    }
    let digest = mac.finalize().into_bytes();
    format!("evt_{}", URL_SAFE_NO_PAD.encode(&digest[..18]))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// One id never stands for other bytes.
    #[test]
    fn s14_an_event_has_another_id_in_each_generation_and_as_a_whole_task() {
        let (scope, task) = (Scope::new("a", "", "o"), TaskId::parse("t").unwrap());
        let webhook = PushConfigId::parse("w").unwrap();
        let mut ids = Vec::new();
        for number in [1, 2] {
            for replaces_event in [false, true] {
                let body = Bytes::new();
                let notification = Notification { number, body, is_last: false, replaces_event };
                for generation in [Generation::V1, Generation::V0_3, Generation::V0_1] {
                    let id = |key| event_id(key, &scope, &task, &webhook, generation, &notification);
                    assert_eq!(id(b"key"), id(b"key"));
                    ids.extend([id(b"key"), id(b"another")]);
                }
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), count), (24, 24));
    }
}
