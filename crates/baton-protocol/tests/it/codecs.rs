//! The dialects side by side: they have the same functions, so the same tests run on each.

use baton_protocol::Error;
use baton_protocol::domain::{
    AgentCard, ArtifactUpdate, ContextId, Message, MessageId, Role, StatusUpdate, Task, TaskId, Timestamp,
};
use baton_protocol::operation::{Call, Operation, Reply};
use baton_protocol::wire::{Decoded, StreamItem, v0_3, v1};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    V1,
    V0_3,
    V0_3Rest,
}

type Write<T> = fn(&mut Vec<u8>, &T);
type Read<T> = fn(&str) -> Result<T, Error>;
type WriteStatus = fn(&mut Vec<u8>, &TaskId, &ContextId, Timestamp, &StatusUpdate);

pub(crate) struct Codec {
    pub(crate) dialect: Dialect,
    /// Under `fixtures/wire`.
    pub(crate) folder: &'static str,
    pub(crate) decode_call: fn(Operation, Option<&str>) -> Result<Decoded, Error>,
    pub(crate) write_call: fn(&mut Vec<u8>, Option<&str>, &Call),
    pub(crate) read_reply: fn(Operation, &str) -> Result<Reply, Error>,
    pub(crate) write_reply: Write<Reply>,
    pub(crate) read_task: Read<Task>,
    pub(crate) write_task: Write<Task>,
    pub(crate) read_message: Read<Message>,
    pub(crate) write_message: Write<Message>,
    pub(crate) read_card: Read<AgentCard>,
    pub(crate) write_card: Write<AgentCard>,
    pub(crate) read_stream_item: Read<StreamItem>,
    pub(crate) write_stream_task: Write<Task>,
    pub(crate) write_stream_message: Write<Message>,
    pub(crate) write_stream_status: WriteStatus,
    pub(crate) write_stream_artifact: fn(&mut Vec<u8>, &TaskId, &ContextId, &ArtifactUpdate),
}

macro_rules! codec {
    ($dialect:ident $folder:literal $($module:ident)::+) => {
        Codec {
            dialect: Dialect::$dialect,
            folder: $folder,
            decode_call: $($module)::+::decode_call,
            write_call: $($module)::+::write_call,
            read_reply: $($module)::+::read_reply,
            write_reply: $($module)::+::write_reply,
            read_task: $($module)::+::read_task,
            write_task: $($module)::+::write_task,
            read_message: $($module)::+::read_message,
            write_message: $($module)::+::write_message,
            read_card: $($module)::+::read_card,
            write_card: $($module)::+::write_card,
            read_stream_item: $($module)::+::read_stream_item,
            write_stream_task: $($module)::+::write_stream_task,
            write_stream_message: $($module)::+::write_stream_message,
            write_stream_status: $($module)::+::write_stream_status,
            write_stream_artifact: $($module)::+::write_stream_artifact,
        }
    };
}

pub(crate) const CODECS: [Codec; 3] =
    [codec!(V1 "v1" v1), codec!(V0_3 "v0_3" v0_3), codec!(V0_3Rest "v0_3_rest" v0_3::proto_json)];

impl Codec {
    pub(crate) fn write_item(&self, item: &StreamItem) -> Vec<u8> {
        written(|out| match item {
            StreamItem::Task(task) => (self.write_stream_task)(out, task),
            StreamItem::Message(message) => (self.write_stream_message)(out, message),
            StreamItem::Status { task_id, context_id, at, update } => {
                (self.write_stream_status)(out, task_id, context_id, *at, update)
            }
            StreamItem::Artifact { task_id, context_id, update } => {
                (self.write_stream_artifact)(out, task_id, context_id, update)
            }
        })
    }

    /// What stands before the parts of a message with nothing else in it. After them stands `]}`.
    pub(crate) fn before_parts(&self) -> String {
        let empty = Message::new(MessageId::parse("m").unwrap(), Role::User, Vec::new());
        let text = String::from_utf8(written(|out| (self.write_message)(out, &empty))).unwrap();
        text.strip_suffix("]}").unwrap().to_owned()
    }
}

pub(crate) fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    assert!(!out.contains(&b'\n') && !out.contains(&b'\r'), "a raw line break would end an SSE event");
    out
}
