//! The JSON encoding of 0.3, in its two dialects: objects with a `kind` member for JSON-RPC (this module), and
//! ProtoJSON of `a2a.v1` for HTTP+JSON ([`proto_json`]). Both have the same functions as [`v1`](super::v1).
//!
//! Writers follow the specification exactly. Readers also accept what deployed clients send: see `docs/generations.md`.

pub(in crate::wire) mod card;
pub(in crate::wire) mod from_domain;
mod methods;
pub(in crate::wire) mod names;
mod security;
pub(in crate::wire) mod to_domain;
mod types;

use serde::de::Deserializer;

use super::objects::{AnyState, EnumValue, Spelling};
use super::write::Object;
use crate::domain::{Part, Role, TaskState};

pub use self::methods::operation_of;
pub(super) use self::names::{parse_proto_state as parse_any_state, state_name};

/// The public functions of a dialect, the same for both.
macro_rules! dialect_functions {
    ($dialect:ty) => {
        use crate::domain::{
            AgentCard, ArtifactUpdate, ContextId, Message, StatusUpdate, Task, TaskId, Timestamp,
        };
        use crate::error::Error;
        use crate::operation::{Call, Operation, Reply};
        use crate::wire::objects;
        use crate::wire::read::{Subject, read};
        pub use crate::wire::{Decoded, StreamItem};

        /// Decodes the parameters of a call. There are no tenants in 0.3.
        pub fn decode_call(operation: Operation, params: Option<&str>) -> Result<Decoded, Error> {
            $crate::wire::v0_3::methods::decode_call::<$dialect>(operation, params)
        }

        /// Writes the parameters of a call: the client's side of [`decode_call`]. 0.3 has no tenant.
        pub fn write_call(out: &mut Vec<u8>, _tenant: Option<&str>, call: &Call) {
            $crate::wire::v0_3::methods::write_call::<$dialect>(out, call);
        }

        /// The `result` of a call that does not stream.
        pub fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
            $crate::wire::v0_3::from_domain::write_reply::<$dialect>(out, reply);
        }

        /// Reads the `result` of a call that does not stream.
        pub fn read_reply(operation: Operation, text: &str) -> Result<Reply, Error> {
            $crate::wire::v0_3::to_domain::read_reply::<$dialect>(operation, text)
        }

        pub fn write_task(out: &mut Vec<u8>, task: &Task) {
            objects::write_task::<$dialect>(out, task);
        }

        pub fn read_task(text: &str) -> Result<Task, Error> {
            read::<$dialect, _>(text, Subject::reply("task"))
        }

        pub fn write_message(out: &mut Vec<u8>, message: &Message) {
            objects::write_message::<$dialect>(out, message);
        }

        pub fn read_message(text: &str) -> Result<Message, Error> {
            read::<$dialect, _>(text, Subject::reply("message"))
        }

        pub fn write_stream_task(out: &mut Vec<u8>, task: &Task) {
            <$dialect>::wrapped(out, "task", |out| write_task(out, task));
        }

        pub fn write_stream_message(out: &mut Vec<u8>, message: &Message) {
            <$dialect>::wrapped(out, "message", |out| write_message(out, message));
        }

        /// `final` follows from the state: every stream closes at a terminal state and at input-required.
        pub fn write_stream_status(
            out: &mut Vec<u8>,
            task_id: &TaskId,
            context_id: &ContextId,
            at: Timestamp,
            update: &StatusUpdate,
        ) {
            <$dialect>::wrapped(out, "statusUpdate", |out| {
                objects::write_status_event::<$dialect>(out, task_id, context_id, at, update);
            });
        }

        pub fn write_stream_artifact(
            out: &mut Vec<u8>,
            task_id: &TaskId,
            context_id: &ContextId,
            update: &ArtifactUpdate,
        ) {
            <$dialect>::wrapped(out, "artifactUpdate", |out| {
                objects::write_artifact_event::<$dialect>(out, task_id, context_id, update);
            });
        }

        pub fn read_stream_item(text: &str) -> Result<StreamItem, Error> {
            $crate::wire::v0_3::to_domain::read_item::<$dialect>(text, Subject::reply("stream event"))
        }

        /// Contains only the interfaces of 0.3. Without any it has no `url` and is not a valid card; the server checks
        /// that before it serves one.
        pub fn write_card(out: &mut Vec<u8>, card: &AgentCard) {
            $crate::wire::v0_3::card::write_card::<$dialect>(out, card);
        }

        pub fn read_card(text: &str) -> Result<AgentCard, Error> {
            read::<$dialect, _>(text, Subject::reply("agent card"))
        }
    };
}

pub mod proto_json;

dialect_functions!(Kind);

/// One of the two encodings of 0.3.
trait Dialect: Spelling {
    /// ProtoJSON of `a2a.v1`.
    const PROTO: bool;

    /// Wraps an object in a member that names its kind, if the encoding has no `kind` member.
    fn wrapped(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>));
}

/// The dialect of JSON-RPC.
struct Kind;

impl Dialect for Kind {
    const PROTO: bool = false;

    fn wrapped(out: &mut Vec<u8>, _: &str, write: impl FnOnce(&mut Vec<u8>)) {
        write(out);
    }
}

impl Spelling for Kind {
    const ROLES: &'static str = "user or agent";
    const STATES: &'static str = "a task state, such as working or input-required";

    fn role_name(role: Role) -> &'static str {
        names::role_name(role)
    }

    fn role(value: EnumValue<'_>) -> Option<Role> {
        value.ok().and_then(names::parse_role)
    }

    fn state_name(state: TaskState) -> &'static str {
        names::state_name(state)
    }

    fn state(value: EnumValue<'_>) -> Option<AnyState> {
        value.ok().and_then(names::parse_state)
    }

    fn read_part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        to_domain::part(deserializer, false)
    }

    fn write_part(out: &mut Vec<u8>, part: &Part) {
        from_domain::write_part::<Kind>(out, part);
    }

    fn write_kind(object: &mut Object<'_>, kind: &str) {
        object.string("kind", kind);
    }

    fn write_final(object: &mut Object<'_>, state: TaskState) {
        object.flag("final", names::is_final(state));
    }
}
