//! What a caller sends: a text, parts, a message, or a message with everything that can go with it.

use baton_protocol::domain::{Message, MessageId, Part, Role};
use baton_protocol::operation::SendMessage;
use uuid::Uuid;

/// A message to send. Made from a text, from parts, from a [`Message`] or from a [`SendMessage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing(pub(crate) SendMessage);

/// A message of the user with a fresh id. The same message sent again is the same turn: its id says so.
pub fn message(parts: Vec<Part>) -> Message {
    let id = MessageId::parse(&Uuid::now_v7().to_string()).expect("a UUID is an id");
    Message::new(id, Role::User, parts)
}

impl From<&str> for Outgoing {
    fn from(text: &str) -> Self {
        message(vec![Part::text(text)]).into()
    }
}

impl From<String> for Outgoing {
    fn from(text: String) -> Self {
        message(vec![Part::text(text)]).into()
    }
}

impl From<Vec<Part>> for Outgoing {
    fn from(parts: Vec<Part>) -> Self {
        message(parts).into()
    }
}

impl From<Message> for Outgoing {
    fn from(message: Message) -> Self {
        Outgoing(SendMessage::new(message))
    }
}

impl From<SendMessage> for Outgoing {
    fn from(send: SendMessage) -> Self {
        Outgoing(send)
    }
}
