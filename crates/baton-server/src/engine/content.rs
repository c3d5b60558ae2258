//! The content of messages that agents send: made from text, parts, JSON or a whole message.

use std::borrow::Cow;
use std::sync::Arc;

use baton_protocol::domain::{JsonObject, JsonText, Message, Part};
use serde::Serialize;

/// The content of an agent's message. Methods that send a message take anything that converts into it: text, one or more
/// parts, a [`Message`].
///
/// ```
/// use baton_server::Content;
/// use baton_server::a2a::Part;
///
/// let asked = Content::from("Which of these?").with(Content::json(&["Oslo", "Bergen"])?);
/// assert_eq!(asked.parts.len(), 2);
/// assert_eq!(Content::from(vec![Part::text("one")]), Content::from("one"));
/// # Ok::<(), baton_server::NotJson>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// Text, files and data, in order.
    pub parts: Vec<Part>,
    /// For extensions.
    pub metadata: Option<JsonObject>,
    /// URIs of the extensions that it uses.
    pub extensions: Vec<String>,
}

impl Content {
    /// One data part.
    pub fn json(value: &impl Serialize) -> Result<Self, NotJson> {
        data_part(value).map(Self::from)
    }

    /// Appends more content.
    #[must_use]
    pub fn with(mut self, more: impl Into<Content>) -> Self {
        let more = more.into();
        self.parts.extend(more.parts);
        self.extensions.extend(more.extensions);
        self.metadata = self.metadata.or(more.metadata);
        self
    }
}

/// A value that cannot be written as JSON, or is nested too deeply.
#[derive(Debug, Clone, thiserror::Error)]
#[error("this cannot be written as JSON: {0}")]
pub struct NotJson(#[source] Arc<dyn std::error::Error + Send + Sync>);

pub(super) fn data_part(value: &impl Serialize) -> Result<Part, NotJson> {
    let text = serde_json::to_string(value).map_err(|error| NotJson(Arc::new(error)))?;
    JsonText::parse(&text).map(Part::data).map_err(|refused| NotJson(Arc::new(refused)))
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Part::text(text).into()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Part::text(text).into()
    }
}

impl From<&String> for Content {
    fn from(text: &String) -> Self {
        Part::text(text).into()
    }
}

impl From<Cow<'_, str>> for Content {
    fn from(text: Cow<'_, str>) -> Self {
        Part::text(text).into()
    }
}

impl From<Part> for Content {
    fn from(part: Part) -> Self {
        vec![part].into()
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Content { parts, ..Content::default() }
    }
}

impl<const N: usize> From<[Part; N]> for Content {
    fn from(parts: [Part; N]) -> Self {
        Vec::from(parts).into()
    }
}

/// The message's ids and role are replaced when it is sent.
impl From<Message> for Content {
    fn from(message: Message) -> Self {
        let Message { parts, metadata, extensions, .. } = message;
        Content { parts, metadata, extensions }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn p08_what_json_cannot_say_is_refused_with_the_reason() {
        let keyed_by_lists = HashMap::from([(vec![1], 2)]);
        assert!(Content::json(&keyed_by_lists).unwrap_err().to_string().contains("key must be a string"));
        let deep = (0..200).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        assert!(Content::json(&deep).unwrap_err().to_string().contains("nested deeper"));
    }
}
