//! ProtoJSON of `a2a.v1`: the dialect of HTTP+JSON under `/v1`. Bodies of the `kind` dialect are read, too.
//!
//! Clients of this dialect parse strictly: a member the proto does not have makes them fail, so none is written.

use serde::de::Deserializer;

use super::{Dialect, names};
use crate::domain::{Part, Role, TaskState};
use crate::operation::HistoryLength;
use crate::wire::objects::{AnyState, EnumValue, Spelling, at_least_one};
use crate::wire::v1;
use crate::wire::write::Object;

dialect_functions!(Proto);

/// The dialect of HTTP+JSON.
struct Proto;

impl Dialect for Proto {
    const PROTO: bool = true;

    fn wrapped(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        objects::wrapped(out, name, write);
    }
}

impl Spelling for Proto {
    const ROLES: &'static str = v1::ROLES;
    const STATES: &'static str = v1::STATES;
    const PARTS: &'static str = "content";
    const REFERENCES: bool = false;

    fn role_name(role: Role) -> &'static str {
        names::proto_role_name(role)
    }

    fn role(value: EnumValue<'_>) -> Option<Role> {
        names::parse_proto_role(value)
    }

    fn state_name(state: TaskState) -> &'static str {
        names::proto_state_name(state)
    }

    fn state(value: EnumValue<'_>) -> Option<AnyState> {
        names::parse_proto_state(value)
    }

    fn read_part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        super::to_domain::part(deserializer, true)
    }

    fn write_part(out: &mut Vec<u8>, part: &Part) {
        super::from_domain::write_part::<Proto>(out, part);
    }

    fn read_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Part>>, D::Error> {
        at_least_one::<Proto, D>(deserializer)
    }

    fn write_final(object: &mut Object<'_>, state: TaskState) {
        object.flag_if_set("final", names::is_final(state));
    }

    /// A proto number without presence: 0 and "not set" are the same.
    fn history_length(most: u32) -> HistoryLength {
        if most == 0 { HistoryLength::All } else { HistoryLength::Last(most) }
    }
}
