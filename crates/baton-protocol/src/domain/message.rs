//! Messages and their parts.

use super::{ContextId, JsonObject, JsonText, MessageId, TaskId};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The client.
    User,
    /// The agent.
    Agent,
}

/// A message between a user and an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Chosen by the author of the message.
    pub id: MessageId,
    /// The author.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
    /// The task it is about.
    pub task_id: Option<TaskId>,
    /// The conversation it belongs to.
    pub context_id: Option<ContextId>,
    /// For extensions; `skillId` in it chooses a skill.
    pub metadata: Option<JsonObject>,
    /// URIs of the extensions that it uses.
    pub extensions: Vec<String>,
    /// Tasks it refers to.
    pub reference_task_ids: Vec<TaskId>,
}

/// One piece of content. `filename` and `media_type` are allowed on every kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The content itself.
    pub content: PartContent,
    /// A file's name.
    pub filename: Option<String>,
    /// The media type; absent for plain text and JSON.
    pub media_type: Option<String>,
    /// For extensions.
    pub metadata: Option<JsonObject>,
}

/// What a part holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartContent {
    /// Plain text.
    Text(String),
    /// Inline file bytes.
    Raw(Vec<u8>),
    /// A file by reference. Never fetched by the server.
    Url(String),
    /// Any JSON value, `null` included.
    Data(JsonText),
}

impl Message {
    /// A message with only its parts; the sender fills in the rest.
    pub fn new(id: MessageId, role: Role, parts: Vec<Part>) -> Self {
        Message {
            id,
            role,
            parts,
            task_id: None,
            context_id: None,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// The text parts, joined with newlines, for agents that read plain text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            if let PartContent::Text(text) = &part.content {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(text);
            }
        }
        out
    }
}

impl Part {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Part::of(PartContent::Text(text.into()))
    }

    /// Structured data.
    pub fn data(data: JsonText) -> Self {
        Part::of(PartContent::Data(data))
    }

    /// A file with its bytes.
    pub fn raw(bytes: Vec<u8>, media_type: &str, filename: &str) -> Self {
        Part {
            filename: Some(filename.to_owned()),
            media_type: Some(media_type.to_owned()),
            ..Part::of(PartContent::Raw(bytes))
        }
    }

    /// A file by its address.
    pub fn url(url: &str, media_type: &str, filename: &str) -> Self {
        Part {
            filename: Some(filename.to_owned()),
            media_type: Some(media_type.to_owned()),
            ..Part::of(PartContent::Url(url.to_owned()))
        }
    }

    fn of(content: PartContent) -> Self {
        Part { content, filename: None, media_type: None, metadata: None }
    }

    /// The media type to check against an agent's input modes: the stated one, or what the kind
    /// implies. A file without a stated type could be anything, so nothing is claimed for it.
    pub fn effective_media_type(&self) -> Option<&str> {
        self.media_type.as_deref().or(match self.content {
            PartContent::Text(_) => Some("text/plain"),
            PartContent::Data(_) => Some("application/json"),
            PartContent::Raw(_) | PartContent::Url(_) => None,
        })
    }
}
