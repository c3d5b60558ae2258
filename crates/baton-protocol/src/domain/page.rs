//! Listing tasks.

use super::{ContextId, Task, TaskState, Timestamp};

/// The filter of a list. An empty filter matches all tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in one of these states; empty means all.
    pub states: Vec<TaskState>,
    /// Only tasks whose status changed at this time or later. Inclusive, although the wire name says "after".
    pub updated_since: Option<Timestamp>,
}

/// One page, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    /// Newest status first.
    pub tasks: Vec<Task>,
    /// Empty on the last page.
    pub next_page_token: String,
    /// The largest number of tasks on a page.
    pub page_size: u32,
    /// The number of matching tasks on all pages, counted with the first page.
    pub total_size: u64,
    /// Whether the tasks include artifacts; otherwise the member is left out.
    pub with_artifacts: bool,
}
