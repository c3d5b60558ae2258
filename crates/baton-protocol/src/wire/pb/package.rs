//! A protobuf package with its service: for gRPC what [`Dialect`] is for JSON.

use bytes::Bytes;

use super::status::Status;
use super::{v0_3, v1};
use crate::domain::{Message, Task};
use crate::error::Error;
use crate::generation::Generation;
use crate::operation::{Call, FACTS, Operation, Reply};
use crate::wire::dialect::Dialect;
use crate::wire::peer_state::FromPeer;
use crate::wire::{Decoded, StreamItem};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Package {
    /// `lf.a2a.v1`: 1.0.
    V1,
    /// `a2a.v1`: 0.3.
    V0_3,
}

impl Package {
    pub const ALL: [Self; 2] = [Self::V1, Self::V0_3];

    /// The package of a generation; 0.1 has none.
    pub fn of(generation: Generation) -> Option<Self> {
        Self::ALL.into_iter().find(|package| package.generation() == generation)
    }

    pub fn generation(self) -> Generation {
        match self {
            Self::V1 => Generation::V1,
            Self::V0_3 => Generation::V0_3,
        }
    }

    /// The dialect with the same names of members, for error texts.
    pub fn dialect(self) -> Dialect {
        Dialect::in_http_json(self.generation())
    }

    /// The full name of the service.
    pub fn service(self) -> &'static str {
        match self {
            Self::V1 => "lf.a2a.v1.A2AService",
            Self::V0_3 => "a2a.v1.A2AService",
        }
    }

    /// The method of an operation; `None` if the service has none.
    pub fn method(self, operation: Operation) -> Option<&'static str> {
        match (self, operation) {
            (Self::V0_3, Operation::ListTasks) => None,
            (Self::V0_3, Operation::SubscribeToTask) => Some("TaskSubscription"),
            (Self::V0_3, Operation::ListPushConfigs) => Some("ListTaskPushNotificationConfig"),
            (Self::V0_3, Operation::GetExtendedCard) => Some("GetAgentCard"),
            // The other methods have the same names.
            _ => Some(operation.facts().v1),
        }
    }

    /// What is called at a path such as `/lf.a2a.v1.A2AService/GetTask`.
    pub fn of_path(path: &str) -> Option<(Self, Operation)> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        let package = Self::ALL.into_iter().find(|package| package.service() == service)?;
        let operations = FACTS.iter().map(|facts| facts.operation);
        let operation = operations.into_iter().find(|it| package.method(*it) == Some(method))?;
        Some((package, operation))
    }

    pub fn decode_call(self, operation: Operation, message: Bytes) -> Result<Decoded, Error> {
        match self {
            Self::V1 => v1::decode_call(operation, message),
            Self::V0_3 => v0_3::decode_call(operation, message),
        }
    }

    /// Writes the request of a call: the client's side of [`Package::decode_call`]. Refuses calls that it cannot say.
    pub fn write_call(self, tenant: Option<&str>, call: &Call) -> Result<Vec<u8>, Error> {
        match self {
            Self::V1 => v1::write_call(tenant, call),
            Self::V0_3 => v0_3::write_call(call),
        }
    }

    /// The answer of a call that does not stream. Refuses a list of tasks in 0.3, which has no method for it.
    pub fn write_reply(self, reply: &Reply) -> Result<Vec<u8>, Error> {
        match self {
            Self::V1 => Ok(v1::write_reply(reply)),
            Self::V0_3 => v0_3::write_reply(reply),
        }
    }

    /// Reads the answer of a call that does not stream.
    pub fn read_reply(self, operation: Operation, message: Bytes) -> Result<FromPeer<Reply>, Error> {
        match self {
            Self::V1 => v1::read_reply(operation, message),
            Self::V0_3 => v0_3::read_reply(operation, message),
        }
    }

    pub fn write_stream_task(self, task: &Task) -> Vec<u8> {
        match self {
            Self::V1 => v1::write_stream_task(task),
            Self::V0_3 => v0_3::write_stream_task(task),
        }
    }

    pub fn write_stream_message(self, message: &Message) -> Vec<u8> {
        match self {
            Self::V1 => v1::write_stream_message(message),
            Self::V0_3 => v0_3::write_stream_message(message),
        }
    }

    pub fn write_stream_update(self, item: &StreamItem) -> Vec<u8> {
        match self {
            Self::V1 => v1::write_stream_update(item),
            Self::V0_3 => v0_3::write_stream_update(item),
        }
    }

    /// Reads one item of a stream.
    pub fn read_stream_item(self, message: Bytes) -> Result<FromPeer<StreamItem>, Error> {
        match self {
            Self::V1 => v1::read_stream_item(message),
            Self::V0_3 => v0_3::read_stream_item(message),
        }
    }

    /// How a call ends that ends with an error.
    pub fn status(self, error: &Error) -> Status {
        Status::of(error, self)
    }
}
