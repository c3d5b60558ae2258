//! A dialect is the encoding of a request and its answers: a generation and, if the generation has two encodings, which
//! of them. It decodes and encodes, and nothing more.

use super::peer_state::{self, FromPeer};
use super::{Decoded, StreamItem, card, v0_1, v0_3, v1};
use crate::domain::{EventKind, Message, Task, TaskId, TaskState};
use crate::error::Error;
use crate::generation::Generation;
use crate::operation::{Call, HistoryLength, Operation, Reply};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// 1.0: the same JSON in JSON-RPC and HTTP+JSON.
    V1,
    /// 0.3 in JSON-RPC: objects distinguished by `kind`.
    V0_3,
    /// 0.3 in HTTP+JSON: ProtoJSON.
    V0_3Rest,
    /// Legacy 0.1, JSON-RPC only.
    V0_1,
}

/// What the encoding of an answer depends on besides its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerFacts {
    /// In 0.1, `history` is the list of states.
    pub state_history: bool,
    /// Trims the legacy list of states; the list of messages is already trimmed.
    pub history_length: HistoryLength,
    /// The task that the caller named; 0.1 answers need one even if a skill answers with a message alone.
    pub task_id: Option<TaskId>,
    /// The caller named no version. In HTTP+JSON, clients of 0.3 do not, and those of 1.0 that also speak 0.3 do; they read
    /// the card of 0.3 in different forms.
    pub is_unversioned: bool,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V1, Self::V0_3, Self::V0_3Rest, Self::V0_1];

    /// The dialect of a generation in JSON-RPC.
    pub fn in_jsonrpc(generation: Generation) -> Self {
        match generation {
            Generation::V1 => Self::V1,
            Generation::V0_3 => Self::V0_3,
            Generation::V0_1 => Self::V0_1,
        }
    }

    /// The dialect of a generation in HTTP+JSON, which 0.1 does not have.
    pub fn in_http_json(generation: Generation) -> Self {
        match generation {
            Generation::V1 => Self::V1,
            Generation::V0_3 | Generation::V0_1 => Self::V0_3Rest,
        }
    }

    pub fn generation(self) -> Generation {
        match self {
            Self::V1 => Generation::V1,
            Self::V0_3 | Self::V0_3Rest => Generation::V0_3,
            Self::V0_1 => Generation::V0_1,
        }
    }

    pub fn decode_call(self, operation: Operation, params: Option<&str>) -> Result<Decoded, Error> {
        match self {
            Self::V1 => v1::decode_call(operation, params),
            Self::V0_3 => v0_3::decode_call(operation, params),
            Self::V0_3Rest => v0_3::proto_json::decode_call(operation, params),
            Self::V0_1 => v0_1::decode_call(operation, params),
        }
    }

    /// The JSON-RPC method of an operation; `None` if the generation has no such operation.
    pub fn method(self, operation: Operation) -> Option<&'static str> {
        let facts = operation.facts();
        match self {
            Self::V1 => Some(facts.v1),
            Self::V0_3 | Self::V0_3Rest => facts.v0_3,
            Self::V0_1 => facts.v0_1,
        }
    }

    /// Writes the parameters of a call: the client's side of [`Dialect::decode_call`].
    pub fn write_call(self, out: &mut Vec<u8>, tenant: Option<&str>, call: &Call) {
        match self {
            Self::V1 => v1::write_call(out, tenant, call),
            Self::V0_3 => v0_3::write_call(out, tenant, call),
            Self::V0_3Rest => v0_3::proto_json::write_call(out, tenant, call),
            Self::V0_1 => v0_1::write_call(out, call),
        }
    }

    /// Reads the `result` of a call that does not stream: the client's side of [`Dialect::write_reply`].
    pub fn read_reply(self, operation: Operation, text: &str) -> Result<FromPeer<Reply>, Error> {
        peer_state::read(self, text, |text| match self {
            // Servers answer with the card of any generation they have, whatever the request was.
            _ if operation == Operation::GetExtendedCard => {
                card::read_any(text).map(|(_, card)| Reply::Card(Box::new(card)))
            }
            Self::V1 => v1::read_reply(operation, text),
            Self::V0_3 => v0_3::read_reply(operation, text),
            Self::V0_3Rest => v0_3::proto_json::read_reply(operation, text),
            Self::V0_1 => v0_1::read_reply(operation, text),
        })
    }

    /// Reads one item of a stream.
    pub fn read_stream_item(self, text: &str) -> Result<FromPeer<StreamItem>, Error> {
        peer_state::read(self, text, |text| match self {
            Self::V1 => v1::read_stream_item(text),
            Self::V0_3 => v0_3::read_stream_item(text),
            Self::V0_3Rest => v0_3::proto_json::read_stream_item(text),
            Self::V0_1 => v0_1::read_stream_item(text),
        })
    }

    pub fn write_reply(self, out: &mut Vec<u8>, reply: &Reply, facts: &AnswerFacts) {
        match self {
            Self::V1 => v1::write_reply(out, reply),
            Self::V0_3 => v0_3::write_reply(out, reply),
            Self::V0_3Rest => match reply {
                Reply::Card(card) if facts.is_unversioned => card::write_v0_3_rest(out, card),
                _ => v0_3::proto_json::write_reply(out, reply),
            },
            Self::V0_1 => v0_1::write_reply(out, reply, &legacy(facts)),
        }
    }

    pub fn write_stream_task(self, out: &mut Vec<u8>, task: &Task) {
        match self {
            Self::V1 => v1::write_stream_task(out, task),
            Self::V0_3 => v0_3::write_stream_task(out, task),
            Self::V0_3Rest => v0_3::proto_json::write_stream_task(out, task),
            Self::V0_1 => v0_1::write_stream_task(out, task),
        }
    }

    /// True if a stream on which more events follow may begin with a task in this state. The stream of an answer begins
    /// with a task that waits for input; 0.1 clients take that status for the end of the stream, so they must not see
    /// it.
    pub fn opens_with(self, state: TaskState) -> bool {
        self != Self::V0_1 || !state.is_interrupted()
    }

    pub fn write_stream_message(self, out: &mut Vec<u8>, message: &Message, facts: &AnswerFacts) {
        match self {
            Self::V1 => v1::write_stream_message(out, message),
            Self::V0_3 => v0_3::write_stream_message(out, message),
            Self::V0_3Rest => v0_3::proto_json::write_stream_message(out, message),
            Self::V0_1 => v0_1::write_stream_message(out, facts.task_id.as_ref(), message),
        }
    }

    /// Writes an update that was read from its stored 1.0 form. The ordinal is the legacy `index`.
    pub fn write_stream_update(self, out: &mut Vec<u8>, item: &StreamItem) {
        match item {
            StreamItem::Task(task) => self.write_stream_task(out, task),
            StreamItem::Message(message) => self.write_stream_message(out, message, &AnswerFacts::default()),
            StreamItem::Status { task_id, context_id, at, update } => match self {
                Self::V1 => v1::write_stream_status(out, task_id, context_id, *at, update),
                Self::V0_3 => v0_3::write_stream_status(out, task_id, context_id, *at, update),
                Self::V0_3Rest => {
                    v0_3::proto_json::write_stream_status(out, task_id, context_id, *at, update)
                }
                Self::V0_1 => v0_1::write_stream_status(out, task_id, *at, update),
            },
            StreamItem::Artifact { task_id, context_id, update } => match self {
                Self::V1 => v1::write_stream_artifact(out, task_id, context_id, update),
                Self::V0_3 => v0_3::write_stream_artifact(out, task_id, context_id, update),
                Self::V0_3Rest => v0_3::proto_json::write_stream_artifact(out, task_id, context_id, update),
                Self::V0_1 => v0_1::write_stream_artifact(out, task_id, update),
            },
        }
    }

    /// The SSE event name of an update; only 0.1 names its events.
    pub fn event_name(self, kind: EventKind) -> Option<&'static str> {
        match self {
            Self::V0_1 => v0_1::event_name(kind),
            Self::V1 | Self::V0_3 | Self::V0_3Rest => None,
        }
    }

    /// The SSE event name of the task or message that opens a stream.
    pub fn opening_name(self) -> Option<&'static str> {
        (self == Self::V0_1).then_some(v0_1::STATUS_EVENT)
    }
}

fn legacy(facts: &AnswerFacts) -> v0_1::LegacyOptions {
    let AnswerFacts { state_history, history_length, task_id, .. } = facts.clone();
    v0_1::LegacyOptions { state_history, history_length, task_id }
}
