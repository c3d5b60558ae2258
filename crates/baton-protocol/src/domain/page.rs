//! Listing tasks.

use super::{ContextId, Task, TaskState, Timestamp};

/// What a list is narrowed to. Empty filters narrow nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Of this conversation.
    pub context_id: Option<ContextId>,
    /// Any of these; empty means all.
    pub states: Vec<TaskState>,
    /// Inclusive, despite the name the wire gives it.
    pub updated_since: Option<Timestamp>,
}

/// One page, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    /// Newest status first.
    pub tasks: Vec<Task>,
    /// Empty on the last page.
    pub next_page_token: String,
    /// Most tasks a page could have.
    pub page_size: u32,
    /// Matches before paging, counted once per listing.
    pub total_size: u64,
    /// Artifacts were asked for; otherwise the member is left out of every task.
    pub with_artifacts: bool,
}
