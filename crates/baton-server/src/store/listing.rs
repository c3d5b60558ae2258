//! Lists of tasks, page by page.

use baton_protocol::domain::{TaskId, Timestamp};

use super::{Head, ListFilter, Loaded, StoredEvent};

/// Where a listing continues: with tasks strictly after this position. Lists are sorted by time of status, then by id,
/// both descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition {
    /// Status time of the previous page's last task.
    pub status_at: Timestamp,
    /// That task's id.
    pub id: TaskId,
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Which tasks.
    pub filter: ListFilter,
    /// Where the listing continues; `None` for the first page.
    pub after: Option<ListPosition>,
    /// Leaves out tasks with a newer status (inclusive bound). Fixed by the first page, so that later pages do not shift.
    pub not_after: Timestamp,
    /// Most tasks on the page.
    pub limit: u32,
    /// How much of each task is read.
    pub detail: Detail,
    /// Limit for the bytes of the page's tasks: the page ends before the task that would exceed it, but has at least one.
    pub most_bytes: usize,
    /// Is the total wanted?
    pub counted: bool,
}

/// How much of each task a listing reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The head and the status message, without history and artifacts.
    Status,
    /// The whole task.
    Whole,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// Newest status first, then id descending by its bytes.
    pub tasks: Vec<Listed>,
    /// Are there further tasks after the last one?
    pub more: bool,
    /// How many tasks matched the filter when the page was read, ignoring `not_after`; `Some` if it was asked for.
    pub total: Option<u64>,
}

/// A task on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// For [`Detail::Status`].
    Status(Brief),
    /// For [`Detail::Whole`], and for tasks of older versions, which did not store the status message separately.
    Whole(Loaded),
}

impl Listed {
    /// The task's id.
    pub fn id(&self) -> &TaskId {
        match self {
            Self::Status(brief) => &brief.id,
            Self::Whole(loaded) => &loaded.id,
        }
    }

    /// Its head.
    pub fn head(&self) -> &Head {
        match self {
            Self::Status(brief) => &brief.head,
            Self::Whole(loaded) => &loaded.head,
        }
    }

    /// Size of the records that were read for it, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Status(brief) => brief.said.as_ref().map_or(0, |said| said.record().len()),
            Self::Whole(loaded) => loaded.bytes(),
        }
    }
}

/// A task without its history and artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// The task's id.
    pub id: TaskId,
    /// Its head.
    pub head: Head,
    /// The event with the status message or metadata, chosen by [`said::after`](super::said::after). Kept when the log is folded.
    pub said: Option<StoredEvent>,
}
