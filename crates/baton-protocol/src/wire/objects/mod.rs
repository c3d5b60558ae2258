//! The objects that are nearly the same in 0.3 and 1.0, generic over a [`Spelling`] for the differences.
//!
//! 0.1 is not included: its tasks have no contexts and its artifacts no ids.

mod card;
mod from_domain;
mod methods;
pub(in crate::wire) mod security;
pub(in crate::wire) mod to_domain;
pub(in crate::wire) mod types;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

use self::to_domain::States;
use super::read::FromWire;
use super::write::Object;
use crate::domain::{Part, Role, TaskState};
use crate::operation::HistoryLength;

pub(crate) use self::card::{write_extension, write_provider, write_signature, write_skill};
pub(crate) use self::from_domain::{
    Artifacts, wrapped, write_artifact_event, write_listed_task, write_message, write_metadata, write_page,
    write_page_end, write_status_event, write_task,
};
pub(crate) use self::methods::{list_tasks, present, write_history_length, write_list, write_page_request};
pub(crate) use self::security::{
    ApiKeyTwin, HttpTwin, MutualTlsTwin, NamedSchemes, OAuth2Twin, OpenIdConnectTwin, SchemeStyle,
    WrappedScheme, write_named_requirement, write_schemes,
};
pub(crate) use self::to_domain::{AnyState, Sent};
pub(crate) use self::types::at_least_one;

/// An enum value in JSON: a name, or the protobuf number.
pub(crate) type EnumValue<'a> = Result<&'a str, u64>;

/// What differs between generations and encodings.
pub(crate) trait Spelling: Sized {
    /// For error messages.
    const ROLES: &'static str;
    const STATES: &'static str;
    /// The member of a message that holds its parts.
    const PARTS: &'static str = "parts";
    /// Whether a message can name the tasks it refers to.
    const REFERENCES: bool = true;

    fn role_name(role: Role) -> &'static str;
    fn role(value: EnumValue<'_>) -> Option<Role>;
    fn state_name(state: TaskState) -> &'static str;
    fn state(value: EnumValue<'_>) -> Option<AnyState>;

    fn read_part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error>;
    fn write_part(out: &mut Vec<u8>, part: &Part);

    /// Reads the parts of a message from the member `content`; ignored if the generation has no such member.
    fn read_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Part>>, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| None)
    }

    /// Writes the object's kind, if the encoding has a member for it.
    fn write_kind(_: &mut Object<'_>, _: &str) {}

    /// Writes whether a status is the last of its stream, if the generation has a member for it.
    fn write_final(_: &mut Object<'_>, _: TaskState) {}

    fn history_length(most: u32) -> HistoryLength {
        HistoryLength::Last(most)
    }
}

impl<G: Spelling> FromWire<G> for Part {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        G::read_part(deserializer)
    }
}
