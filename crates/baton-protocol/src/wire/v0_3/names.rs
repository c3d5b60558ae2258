//! The enum names of both dialects, and which state ends a stream.

use crate::domain::{Role, TaskState};
use crate::wire::objects::{AnyState, EnumValue};
use crate::wire::v1;

pub(in crate::wire) fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input-required",
        TaskState::AuthRequired => "auth-required",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::Rejected => "rejected",
    }
}

/// `unknown` means "unspecified".
pub(super) fn parse_state(name: &str) -> Option<AnyState> {
    match name {
        "unknown" => Some(AnyState(None)),
        "cancelled" => Some(AnyState(Some(TaskState::Canceled))),
        name => {
            TaskState::ALL.into_iter().find(|state| state_name(*state) == name).map(|s| AnyState(Some(s)))
        }
    }
}

const PROTO_CANCELED: &str = "TASK_STATE_CANCELLED";

/// As in 1.0, except that `CANCELLED` has two `L`.
pub(super) fn proto_state_name(state: TaskState) -> &'static str {
    if state == TaskState::Canceled { PROTO_CANCELED } else { v1::state_name(state) }
}

pub(in crate::wire) fn parse_proto_state(value: EnumValue<'_>) -> Option<AnyState> {
    match value {
        Ok("TASK_STATE_UNSPECIFIED") => Some(AnyState(None)),
        Ok(PROTO_CANCELED) => Some(AnyState(Some(TaskState::Canceled))),
        Ok(name) => v1::parse_state(name).map(|state| AnyState(Some(state))).or_else(|| parse_state(name)),
        Err(number) => AnyState::from_number(number),
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

pub(super) fn parse_role(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "agent" => Some(Role::Agent),
        _ => None,
    }
}

pub(super) fn proto_role_name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

pub(super) fn parse_proto_role(value: EnumValue<'_>) -> Option<Role> {
    match value {
        Ok("ROLE_USER") | Err(1) => Some(Role::User),
        Ok("ROLE_AGENT") | Err(2) => Some(Role::Agent),
        Ok(name) => parse_role(name),
        Err(_) => None,
    }
}

/// In 0.3 every stream closes if the task ends or waits for input.
pub(in crate::wire) fn is_final(state: TaskState) -> bool {
    state.is_terminal() || state == TaskState::InputRequired
}
