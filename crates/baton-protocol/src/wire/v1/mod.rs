//! The JSON encoding of 1.0: ProtoJSON of `lf.a2a.v1`, shared by JSON-RPC and HTTP+JSON.
//!
//! Writers encode borrowed domain values and cannot fail. Readers ignore unknown members, accept camelCase and proto
//! names, and their errors name the wrong member and what it must be.

mod card;
mod cut;
mod details;
mod from_domain;
mod methods;
mod names;
pub(in crate::wire) mod security;
pub(in crate::wire) mod to_domain;
mod types;

use serde::de::Deserializer;

use super::objects::{AnyState, EnumValue, Sent, Spelling};
use super::read::{Subject, read};
use crate::domain::{AgentCard, Message, Part, Role, Task, TaskState};
use crate::error::{Error, ErrorKind};
use crate::operation::{Operation, Reply};

pub use self::card::write_card;
pub use self::cut::{PageWriter, cut_history, status_says_nothing};
pub(crate) use self::details::has_error_details;
pub use self::details::write_error_details;
pub use self::from_domain::{
    around_stored_reply, write_message, write_reply, write_stream_artifact, write_stream_message,
    write_stream_status, write_stream_task, write_task,
};
pub use self::methods::{decode_call, write_call};
pub(in crate::wire) use self::names::{ROLES, STATE_UNSPECIFIED, STATES};
pub use self::names::{parse_state, state_name};
pub use super::Decoded;
pub use super::stream_item::StreamItem;
pub use super::time::{parse_timestamp, write_timestamp};

/// Reads the `result` of a call that does not stream.
pub fn read_reply(operation: Operation, text: &str) -> Result<Reply, Error> {
    match operation {
        Operation::SendMessage => read::<V1, Sent>(text, Subject::reply("reply")).map(|sent| sent.0),
        Operation::GetTask | Operation::CancelTask => read_task(text).map(Reply::Task),
        Operation::ListTasks => read::<V1, _>(text, Subject::reply("task list")).map(Reply::Tasks),
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            read::<V1, _>(text, Subject::reply("push config")).map(Reply::PushConfig)
        }
        Operation::ListPushConfigs => {
            read::<V1, to_domain::PushConfigs>(text, Subject::reply("push config list"))
                .map(|configs| configs.0)
        }
        // Servers answer `null`, `{}` or nothing at all.
        Operation::DeletePushConfig => Ok(Reply::PushConfigDeleted),
        Operation::GetExtendedCard => read_card(text).map(|card| Reply::Card(Box::new(card))),
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            Err(Error::of(ErrorKind::Internal).with_log("a streaming operation has no single reply"))
        }
    }
}

pub fn read_task(text: &str) -> Result<Task, Error> {
    read::<V1, _>(text, Subject::reply("task"))
}

pub fn read_message(text: &str) -> Result<Message, Error> {
    read::<V1, _>(text, Subject::reply("message"))
}

pub fn read_stream_item(text: &str) -> Result<StreamItem, Error> {
    read::<V1, _>(text, Subject::reply("stream event"))
}

pub fn read_card(text: &str) -> Result<AgentCard, Error> {
    read::<V1, _>(text, Subject::reply("agent card"))
}

/// The marker type of this generation.
struct V1;

impl Spelling for V1 {
    const ROLES: &'static str = ROLES;
    const STATES: &'static str = STATES;

    fn role_name(role: Role) -> &'static str {
        names::role_name(role)
    }

    fn role(value: EnumValue<'_>) -> Option<Role> {
        match value {
            Ok(name) => names::parse_role(name),
            Err(1) => Some(Role::User),
            Err(2) => Some(Role::Agent),
            Err(_) => None,
        }
    }

    fn state_name(state: TaskState) -> &'static str {
        names::state_name(state)
    }

    fn state(value: EnumValue<'_>) -> Option<AnyState> {
        match value {
            Ok(STATE_UNSPECIFIED) => Some(AnyState(None)),
            Ok(name) => names::parse_state(name).map(|state| AnyState(Some(state))),
            Err(number) => AnyState::from_number(number),
        }
    }

    fn read_part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        to_domain::part(deserializer)
    }

    fn write_part(out: &mut Vec<u8>, part: &Part) {
        from_domain::write_part(out, part);
    }
}
