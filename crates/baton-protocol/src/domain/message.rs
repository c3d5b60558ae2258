//! Messages and their parts.

use super::{ContextId, JsonObject, JsonText, MessageId, TaskId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    User,
    Agent,
}

/// One turn of talk between a user and an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub role: Role,
    pub parts: Vec<Part>,
    pub task_id: Option<TaskId>,
    pub context_id: Option<ContextId>,
    pub metadata: Option<JsonObject>,
    pub extensions: Vec<String>,
    pub reference_task_ids: Vec<TaskId>,
}

/// One piece of content. `filename` and `media_type` are allowed on every kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub content: PartContent,
    pub filename: Option<String>,
    pub media_type: Option<String>,
    pub metadata: Option<JsonObject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartContent {
    Text(String),
    /// Inline file bytes.
    Raw(Vec<u8>),
    /// A file by reference. Never fetched by the server.
    Url(String),
    /// Any JSON value, `null` included.
    Data(JsonText),
}

impl Message {
    /// A message with nothing but its parts; the rest is filled in by whoever sends it.
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

    /// The text parts, joined with newlines: what a plain-text agent wants to read.
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
    pub fn text(text: impl Into<String>) -> Self {
        Part::of(PartContent::Text(text.into()))
    }

    pub fn data(data: JsonText) -> Self {
        Part::of(PartContent::Data(data))
    }

    pub fn raw(bytes: Vec<u8>, media_type: &str, filename: &str) -> Self {
        Part {
            filename: Some(filename.to_owned()),
            media_type: Some(media_type.to_owned()),
            ..Part::of(PartContent::Raw(bytes))
        }
    }

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
