//! The stored form of a webhook: `1 W` and, on the next line, its JSON. Token and credentials are in one member of their
//! own, which is encrypted if the server has a master key.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_protocol::Generation;
use baton_protocol::domain::{PushEvents, Timestamp, TraceContext};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{FORMAT, StoreError, first_line};

/// The kind of record: a webhook.
const WEBHOOK: &str = "W";

/// What is stored of a webhook beside its id and how far it has got.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRecord {
    /// Where notifications are sent.
    pub url: String,
    /// The generation in which it was created; its notifications have the form of that generation.
    pub generation: Generation,
    /// The kinds of events that it gets.
    pub events: PushEvents,
    /// When it was created.
    pub created_at: Timestamp,
    /// The trace of its task, which calls belong to.
    pub trace: Option<TraceContext>,
    /// Token and credentials, as the server stores its secrets.
    pub secrets: Vec<u8>,
}

/// Addresses may have secrets in their query.
impl fmt::Debug for WebhookRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WebhookRecord { url: _, generation, events, created_at, trace: _, secrets: _ } = self;
        f.debug_struct("WebhookRecord")
            .field("generation", generation)
            .field("events", events)
            .field("created_at", created_at)
            .finish_non_exhaustive()
    }
}

/// The second line.
#[derive(Serialize, Deserialize)]
struct Json {
    url: String,
    generation: u8,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    status: bool,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    artifact: bool,
    /// Milliseconds, like the other times of records.
    created: i64,
    /// The values of `traceparent` and `tracestate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_state: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    secrets: String,
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

impl WebhookRecord {
    /// Encodes it for a store.
    pub fn to_stored(&self) -> Bytes {
        let json = Json {
            url: self.url.clone(),
            generation: self.generation.number(),
            status: self.events.status,
            artifact: self.events.artifact,
            created: self.created_at.as_millis(),
            trace: self.trace.as_ref().map(|trace| trace.parent().to_owned()),
            trace_state: self.trace.as_ref().and_then(|trace| trace.state().map(str::to_owned)),
            secrets: STANDARD.encode(&self.secrets),
        };
        let mut record = format!("{FORMAT} {WEBHOOK}\n").into_bytes();
        super::push_json(&mut record, json);
        Bytes::from(record)
    }

    /// Decodes a stored webhook.
    pub fn from_stored(record: &[u8]) -> Result<Self, StoreError> {
        let damaged = |what: &str| StoreError::damaged(format!("webhook: {what}"));
        let (header, at) = first_line(record).ok_or_else(|| damaged("no header"))?;
        if header.split_once(' ') != Some((FORMAT, WEBHOOK)) {
            return Err(damaged("a format this version does not know; was it written by a newer Baton?"));
        }
        // The text of serde's error could quote the record.
        let json: Json =
            serde_json::from_slice(&record[at..]).map_err(|_| damaged("not the JSON of a webhook"))?;
        Ok(WebhookRecord {
            url: json.url,
            generation: Generation::from_number(json.generation)
                .ok_or_else(|| damaged("unknown generation"))?,
            events: PushEvents { status: json.status, artifact: json.artifact },
            created_at: Timestamp::from_millis(json.created),
            trace: json.trace.and_then(|parent| TraceContext::parse(&parent, json.trace_state.as_deref())),
            secrets: STANDARD.decode(&json.secrets).map_err(|_| damaged("bad secrets"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> WebhookRecord {
        WebhookRecord {
            url: "https://example.org/hook?key=s3cret".to_owned(),
            generation: Generation::V0_1,
            events: PushEvents { status: true, artifact: false },
            created_at: Timestamp::from_millis(1_763_200_000_000),
            trace: None,
            secrets: b"s3cret".to_vec(),
        }
    }

    /// Never changes: stores hold records of this form.
    #[test]
    fn s14_the_first_form_of_a_record() {
        let stored = "1 W\n{\"url\":\"https://example.org/hook?key=s3cret\",\"generation\":1,\"artifact\":false,\
                      \"created\":1763200000000,\"secrets\":\"czNjcmV0\"}";
        assert_eq!(record().to_stored(), stored);
        assert_eq!(WebhookRecord::from_stored(stored.as_bytes()).unwrap(), record());
        let plain = "1 W\n{\"url\":\"https://example.org\",\"generation\":10,\"created\":0}";
        let read = WebhookRecord::from_stored(plain.as_bytes()).unwrap();
        assert_eq!((read.events, &read.secrets[..]), (PushEvents::default(), &b""[..]));
        for damaged in ["", "1 W", "2 W\n{}", "1 K\n{}", "1 W\n{}", "1 W\n{\"url\":1}"] {
            assert!(WebhookRecord::from_stored(damaged.as_bytes()).is_err(), "{damaged}");
        }
    }

    /// The same, with the trace of its task.
    #[test]
    fn s14_the_form_of_a_record_with_a_trace() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let record = WebhookRecord { trace: TraceContext::parse(parent, Some("vendor=1")), ..record() };
        let stored = format!(
            "1 W\n{{\"url\":\"https://example.org/hook?key=s3cret\",\"generation\":1,\"artifact\":false,\
             \"created\":1763200000000,\"trace\":\"{parent}\",\"trace_state\":\"vendor=1\",\"secrets\":\"czNjcmV0\"}}"
        );
        assert_eq!(record.to_stored(), stored);
        assert_eq!(WebhookRecord::from_stored(stored.as_bytes()).unwrap(), record);
        let damaged = stored.replace("00-0af", "99-xyz");
        assert_eq!(WebhookRecord::from_stored(damaged.as_bytes()).unwrap().trace, None);
    }

    #[test]
    fn s14_nothing_prints_its_secrets() {
        assert!(!format!("{:?}", record()).contains("cret"));
    }
}
