//! Reads a client's message for an agent: typed data, and files.

use baton_protocol::domain::{Message, PartContent};
use serde::de::DeserializeOwned;

/// A message does not hold the data that the agent needs. The error's text tells the client what to send instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// No part of the message is data.
    #[error("the message has no data part; send one with a JSON value")]
    NoData,
    /// The data does not fit the agent's type.
    #[error("message.parts[{part}].data{}{path}: {reason}", if path.is_empty() || path.starts_with('[') { "" } else { "." })]
    Unfit {
        /// Index of the message's part.
        part: usize,
        /// Path within the data; empty for the data itself.
        path: String,
        /// What is wrong there.
        reason: String,
    },
}

/// A file in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct File<'a> {
    /// Its name, if the client gave one. Do not use it as a path without checking it.
    pub name: Option<&'a str>,
    /// Its media type, if the client gave one.
    pub media_type: Option<&'a str>,
    /// The bytes, or where they are.
    pub content: FileContent<'a>,
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContent<'a> {
    /// Its bytes, sent with the message.
    Bytes(&'a [u8]),
    /// Its address. The server never fetches it by itself.
    Url(&'a str),
}

impl<'a> File<'a> {
    /// The bytes, if they came with the message.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.content {
            FileContent::Bytes(bytes) => Some(bytes),
            FileContent::Url(_) => None,
        }
    }
}

/// Reads typed data and files from a [`Message`]: the one that started the turn, or the answer to a question.
pub trait ReadMessage {
    /// The first data part as a value of the agent's own type.
    fn data<T: DeserializeOwned>(&self) -> Result<T, InputError>;

    /// The files, in order.
    fn files(&self) -> impl Iterator<Item = File<'_>>;
}

impl ReadMessage for Message {
    fn data<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        let first = self.parts.iter().enumerate().find_map(|(at, part)| match &part.content {
            PartContent::Data(json) => Some((at, json)),
            PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
        });
        let (part, json) = first.ok_or(InputError::NoData)?;
        let mut reader = serde_json::Deserializer::from_str(json.as_str());
        serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let told = error.inner().to_string();
            // Line numbers in the data would not match those of the client's request.
            let reason = told.rfind(" at line ").map_or(told.as_str(), |end| &told[..end]).to_owned();
            InputError::Unfit { part, path: if path == "." { String::new() } else { path }, reason }
        })
    }

    fn files(&self) -> impl Iterator<Item = File<'_>> {
        self.parts.iter().filter_map(|part| {
            let content = match &part.content {
                PartContent::Raw(bytes) => FileContent::Bytes(bytes),
                PartContent::Url(url) => FileContent::Url(url),
                PartContent::Text(_) | PartContent::Data(_) => return None,
            };
            Some(File { name: part.filename.as_deref(), media_type: part.media_type.as_deref(), content })
        })
    }
}

#[cfg(test)]
mod tests {
    use baton_protocol::domain::{JsonText, MessageId, Part, Role};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Trip {
        city: String,
        stops: Vec<u8>,
    }

    fn message(parts: Vec<Part>) -> Message {
        Message::new(MessageId::parse("m").unwrap(), Role::User, parts)
    }

    fn data(json: &str) -> Message {
        message(vec![Part::text("a trip"), Part::data(JsonText::parse(json).unwrap())])
    }

    #[test]
    fn p08_data_is_read_into_the_authors_own_type() {
        let trip: Trip = data(r#"{"city": "Oslo", "stops": [1, 2]}"#).data().unwrap();
        assert_eq!(trip, Trip { city: "Oslo".to_owned(), stops: vec![1, 2] });
    }

    #[test]
    fn p08_what_does_not_fit_is_named_by_its_path() {
        for (json, told) in [
            (
                r#"{"city": 5, "stops": []}"#,
                "message.parts[1].data.city: invalid type: integer `5`, expected a string",
            ),
            (
                r#"{"city": "x", "stops": [1, 300]}"#,
                "message.parts[1].data.stops[1]: invalid value: integer `300`, expected u8",
            ),
            (r#"{"stops": []}"#, "message.parts[1].data: missing field `city`"),
            (r#"[7, []]"#, "message.parts[1].data[0]: invalid type: integer `7`, expected a string"),
            ("null", "message.parts[1].data: invalid type: null, expected struct Trip"),
        ] {
            assert_eq!(data(json).data::<Trip>().unwrap_err().to_string(), told);
        }
        assert_eq!(message(vec![Part::text("x")]).data::<Trip>(), Err(InputError::NoData));
    }

    #[test]
    fn p08_files_are_told_from_the_rest() {
        let message = message(vec![
            Part::text("two files"),
            Part::raw(vec![1], "image/png", "a.png"),
            Part::url("https://a.example/b", "text/csv", "b.csv"),
        ]);
        let files: Vec<File<'_>> = message.files().collect();
        assert_eq!(files.len(), 2);
        assert_eq!((files[0].name, files[0].media_type), (Some("a.png"), Some("image/png")));
        assert_eq!((files[0].bytes(), files[1].bytes()), (Some(&[1][..]), None));
        assert_eq!(files[1].content, FileContent::Url("https://a.example/b"));
    }
}
