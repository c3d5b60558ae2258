//! What is shown of the protocol's objects, read from their JSON as leniently as possible: a member that is missing, or a
//! state that nobody knows, must not keep the rest from being shown.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::client::error::{CallError, Code};

/// Reads a view from JSON that the client library has accepted.
pub(crate) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, CallError> {
    serde_json::from_str(json).map_err(|error| {
        let name = Code::Protocol("InvalidAgentResponseError".to_owned());
        CallError::new(name, format!("the agent's answer cannot be shown: {error}"))
    })
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Task {
    #[serde(deserialize_with = "or_default")]
    pub(crate) id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    pub(crate) context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: Status,
    #[serde(deserialize_with = "or_default")]
    pub(crate) artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) history: Vec<Message>,
    pub(crate) metadata: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) state: State,
    pub(crate) message: Option<Message>,
    pub(crate) timestamp: Option<String>,
}

/// A state as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State(String);

/// What a state means for somebody who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Also if the state is unspecified or unknown.
    Going,
    /// The agent waits for input or for an authorization.
    Paused,
    Ended,
}

impl State {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.as_str() {
            "TASK_STATE_INPUT_REQUIRED" | "TASK_STATE_AUTH_REQUIRED" => Phase::Paused,
            "TASK_STATE_COMPLETED" | "TASK_STATE_FAILED" | "TASK_STATE_CANCELED" | "TASK_STATE_REJECTED" => {
                Phase::Ended
            }
            _ => Phase::Going,
        }
    }

    /// For people, in the middle of a conversation. `None` while the task is at work.
    pub(crate) fn words(&self) -> Option<&'static str> {
        Some(match self.as_str() {
            "TASK_STATE_COMPLETED" => "completed",
            "TASK_STATE_FAILED" => "failed",
            "TASK_STATE_REJECTED" => "rejected",
            "TASK_STATE_CANCELED" => "canceled",
            "TASK_STATE_INPUT_REQUIRED" => "waits for your answer",
            "TASK_STATE_AUTH_REQUIRED" => {
                "waits for an authorization; give it as the agent says, then press Enter"
            }
            _ => return None,
        })
    }

    /// For stderr, if the outcome is not plain success.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        Some(match self.as_str() {
            "TASK_STATE_FAILED" => "the task has failed",
            "TASK_STATE_REJECTED" => "the agent has rejected the task",
            "TASK_STATE_CANCELED" => "the task was canceled",
            "TASK_STATE_INPUT_REQUIRED" => "the task is waiting for input",
            "TASK_STATE_AUTH_REQUIRED" => {
                "the task is waiting for an authorization: give it as the agent says, then go on"
            }
            _ => return None,
        })
    }
}

impl Default for State {
    fn default() -> Self {
        State("TASK_STATE_UNSPECIFIED".to_owned())
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// In protobuf's order.
        const NAMES: [&str; 9] = [
            "TASK_STATE_UNSPECIFIED",
            "TASK_STATE_SUBMITTED",
            "TASK_STATE_WORKING",
            "TASK_STATE_COMPLETED",
            "TASK_STATE_FAILED",
            "TASK_STATE_CANCELED",
            "TASK_STATE_INPUT_REQUIRED",
            "TASK_STATE_REJECTED",
            "TASK_STATE_AUTH_REQUIRED",
        ];
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Spelled {
            Name(String),
            Number(usize),
            Other(serde::de::IgnoredAny),
        }
        Ok(match Spelled::deserialize(deserializer)? {
            Spelled::Name(name) => State(name),
            Spelled::Number(number) => {
                State(NAMES.get(number).map_or_else(|| number.to_string(), |name| (*name).to_owned()))
            }
            Spelled::Other(_) => State::default(),
        })
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Artifact {
    #[serde(alias = "artifact_id", deserialize_with = "or_default")]
    pub(crate) artifact_id: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) parts: Vec<Part>,
    pub(crate) metadata: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Message {
    #[serde(alias = "message_id", deserialize_with = "or_default")]
    pub(crate) message_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) role: String,
    #[serde(alias = "context_id")]
    pub(crate) context_id: Option<String>,
    #[serde(alias = "task_id")]
    pub(crate) task_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) parts: Vec<Part>,
    pub(crate) metadata: Option<Box<RawValue>>,
}

/// A part, with its own JSON for the case that its content is of a kind that nobody knows.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) content: Content,
    pub(crate) filename: Option<String>,
    pub(crate) media_type: Option<String>,
    pub(crate) metadata: Option<Box<RawValue>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Text(String),
    /// Base64.
    Raw(String),
    Url(String),
    /// JSON.
    Data(String),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartMembers {
    text: Option<String>,
    raw: Option<String>,
    url: Option<String>,
    #[serde(deserialize_with = "present")]
    data: Option<Box<RawValue>>,
    filename: Option<String>,
    #[serde(alias = "media_type")]
    media_type: Option<String>,
    metadata: Option<Box<RawValue>>,
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = Box::<RawValue>::deserialize(deserializer)?;
        let PartMembers { text, raw, url, data, filename, media_type, metadata } =
            serde_json::from_str(whole.get()).unwrap_or_default();
        let content = match (text, raw, url, data) {
            (Some(text), None, None, None) => Content::Text(text),
            (None, Some(raw), None, None) => Content::Raw(raw),
            (None, None, Some(url), None) => Content::Url(url),
            (None, None, None, Some(data)) => Content::Data(data.get().to_owned()),
            _ => Content::Data(whole.get().to_owned()),
        };
        Ok(Part { content, filename, media_type, metadata })
    }
}

/// One event of a stream, or the reply to a send.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Task(Task),
    Message(Message),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
}

/// Others may be there, too.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventMembers {
    task: Option<Task>,
    message: Option<Message>,
    #[serde(alias = "status_update")]
    status_update: Option<StatusUpdate>,
    #[serde(alias = "artifact_update")]
    artifact_update: Option<ArtifactUpdate>,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let EventMembers { task, message, status_update, artifact_update } =
            EventMembers::deserialize(deserializer)?;
        match (task, message, status_update, artifact_update) {
            (Some(task), None, None, None) => Ok(Event::Task(task)),
            (None, Some(message), None, None) => Ok(Event::Message(message)),
            (None, None, Some(update), None) => Ok(Event::StatusUpdate(update)),
            (None, None, None, Some(update)) => Ok(Event::ArtifactUpdate(update)),
            _ => Err(D::Error::custom("neither a task nor a message nor an update")),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatusUpdate {
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    pub(crate) task_id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    pub(crate) context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ArtifactUpdate {
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    pub(crate) task_id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    pub(crate) context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) artifact: Artifact,
    #[serde(deserialize_with = "or_default")]
    pub(crate) append: bool,
    #[serde(alias = "last_chunk", deserialize_with = "or_default")]
    pub(crate) last_chunk: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PushConfig {
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) url: String,
}

/// `null` is the same as absent.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// `null` is a value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_task_poll_003_unknown_states_are_neither_paused_nor_ended() {
        for (json, name, phase) in [
            (r#"{"status":{"state":"TASK_STATE_UNSPECIFIED"}}"#, "TASK_STATE_UNSPECIFIED", Phase::Going),
            (r#"{"status":{"state":"TASK_STATE_DREAMING"}}"#, "TASK_STATE_DREAMING", Phase::Going),
            (r#"{"status":{"state":3}}"#, "TASK_STATE_COMPLETED", Phase::Ended),
            (r#"{"status":{}}"#, "TASK_STATE_UNSPECIFIED", Phase::Going),
            (r#"{"status":null,"artifacts":null}"#, "TASK_STATE_UNSPECIFIED", Phase::Going),
            (r#"{"status":{"state":"TASK_STATE_AUTH_REQUIRED"}}"#, "TASK_STATE_AUTH_REQUIRED", Phase::Paused),
        ] {
            let task: Task = read(json).unwrap();
            assert_eq!((task.status.state.as_str(), task.status.state.phase()), (name, phase), "{json}");
        }
    }

    #[test]
    fn cli_send_004_a_part_of_an_unknown_kind_is_still_a_part() {
        let task: Artifact =
            read(r#"{"parts":[{"data":null},{"hologram":[1.0]},{"text":"a","url":"b"},{"text":7}]}"#)
                .unwrap();
        let shown: Vec<&str> = task
            .parts
            .iter()
            .map(|part| match &part.content {
                Content::Data(json) => json.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(shown, ["null", r#"{"hologram":[1.0]}"#, r#"{"text":"a","url":"b"}"#, r#"{"text":7}"#]);
    }
}
