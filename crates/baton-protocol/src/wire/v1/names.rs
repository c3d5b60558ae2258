//! The enum names of 1.0.

use crate::domain::{Role, TaskState};

/// For error messages.
pub(in crate::wire) const ROLES: &str = "ROLE_USER or ROLE_AGENT";
pub(in crate::wire) const STATES: &str = "the name of a task state, such as TASK_STATE_WORKING";

pub(in crate::wire) const STATE_UNSPECIFIED: &str = "TASK_STATE_UNSPECIFIED";

pub fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
    }
}

pub fn parse_state(name: &str) -> Option<TaskState> {
    TaskState::ALL.into_iter().find(|state| state_name(*state) == name)
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

pub(super) fn parse_role(name: &str) -> Option<Role> {
    [Role::User, Role::Agent].into_iter().find(|role| role_name(*role) == name)
}
