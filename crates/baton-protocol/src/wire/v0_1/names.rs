//! The enum names of 0.1.

use crate::domain::{Role, TaskState};

/// For error messages.
pub(super) const STATES: &str = "a task state, such as working";

/// 0.1 has six of the eight states: rejected is written as failed, auth-required as input-required.
pub fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired | TaskState::AuthRequired => "input-required",
        TaskState::Completed => "completed",
        TaskState::Failed | TaskState::Rejected => "failed",
        TaskState::Canceled => "canceled",
    }
}

/// Also accepts the spelling `cancelled`, and the two states of later generations.
pub fn parse_state(name: &str) -> Option<TaskState> {
    match name {
        "submitted" => Some(TaskState::Submitted),
        "working" => Some(TaskState::Working),
        "input-required" => Some(TaskState::InputRequired),
        "auth-required" => Some(TaskState::AuthRequired),
        "completed" => Some(TaskState::Completed),
        "failed" => Some(TaskState::Failed),
        "canceled" | "cancelled" => Some(TaskState::Canceled),
        "rejected" => Some(TaskState::Rejected),
        _ => None,
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

pub(super) fn parse_role(name: &str) -> Option<Role> {
    [Role::User, Role::Agent].into_iter().find(|role| role_name(*role) == name)
}
