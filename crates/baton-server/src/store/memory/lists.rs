//! One scope's tasks in list order, so that a page costs a few B-tree steps however many tasks there are.
//!
//! Rows are sorted by state, then time, then id. A listing reads the ranges of its states from their newest rows on and
//! merges them, so that a filter on a rare state does not scan other tasks.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, btree_set};
use std::iter::{Peekable, Rev};

use baton_protocol::domain::{ListFilter, TaskId, TaskState, Timestamp};

use super::contexts::Contexts;
use super::tasks::Tasks;
use crate::store::state_totals::{StateTotals, states};
use crate::store::{ListPosition, ListQuery, TaskKey};

#[derive(Default)]
pub(super) struct Lists {
    all: Index,
    contexts: Contexts,
}

impl Lists {
    /// Replaces a task's row. `before` is `None` for a new task, `after` for a removed one; the task itself must exist.
    pub(super) fn move_row(
        &mut self,
        tasks: &Tasks,
        key: TaskKey,
        before: Option<&Row>,
        after: Option<&Row>,
    ) {
        self.contexts.move_row(tasks, key, before, after);
        self.all.move_row(before, after);
    }

    /// The ids of the page, and one more if there is one, to know whether a page follows.
    pub(super) fn page(&self, tasks: &Tasks, query: &ListQuery) -> Vec<TaskId> {
        let ListQuery { filter, after, not_after, limit, .. } = query;
        let span = Span { since: filter.updated_since, not_after: *not_after, after: after.as_ref() };
        let Some(index) = self.index(tasks, filter) else { return Vec::new() };
        index.newest_first(filter, &span).take(*limit as usize + 1).cloned().collect()
    }

    /// How many tasks a filter matches. With `updated_since` they are counted by scanning; otherwise counters are read.
    pub(super) fn count(&self, tasks: &Tasks, filter: &ListFilter) -> u64 {
        let Some(index) = self.index(tasks, filter) else { return 0 };
        if filter.updated_since.is_none() {
            return index.totals.sum(filter);
        }
        let span = Span { since: filter.updated_since, not_after: Timestamp::MAX, after: None };
        states(filter).map(|state| index.range(state, &span).count() as u64).sum()
    }

    fn index(&self, tasks: &Tasks, filter: &ListFilter) -> Option<Cow<'_, Index>> {
        match &filter.context_id {
            Some(context) => self.contexts.get(tasks, context),
            None => Some(Cow::Borrowed(&self.all)),
        }
    }
}

/// The wanted range of a list.
struct Span<'a> {
    since: Option<Timestamp>,
    not_after: Timestamp,
    after: Option<&'a ListPosition>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// State number in the top byte, time in the others.
    rank: u64,
    /// `None` only in bounds: it sorts before every id.
    id: Option<TaskId>,
}

const TIME_BITS: u32 = 56;

fn millis(at: Timestamp) -> u64 {
    at.as_millis().abs_diff(Timestamp::MIN.as_millis())
}

impl Row {
    pub(super) fn new(state: TaskState, at: Timestamp, id: Option<TaskId>) -> Self {
        Row { rank: u64::from(state.number()) << TIME_BITS | millis(at), id }
    }

    fn millis(&self) -> u64 {
        self.rank & ((1 << TIME_BITS) - 1)
    }

    fn state_number(&self) -> u8 {
        (self.rank >> TIME_BITS) as u8
    }
}

/// Some tasks in list order.
#[derive(Default, Clone)]
pub(super) struct Index {
    rows: BTreeSet<Row>,
    totals: StateTotals,
}

impl FromIterator<Row> for Index {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Self {
        let mut index = Index::default();
        rows.into_iter().for_each(|row| index.move_row(None, Some(&row)));
        index
    }
}

type Range<'a> = Rev<btree_set::Range<'a, Row>>;

impl Index {
    pub(super) fn move_row(&mut self, before: Option<&Row>, after: Option<&Row>) {
        if let Some(before) = before {
            self.rows.remove(before);
            self.totals.by_number(before.state_number()).into_iter().for_each(|total| *total -= 1);
        }
        if let Some(after) = after {
            self.rows.insert(after.clone());
            self.totals.by_number(after.state_number()).into_iter().for_each(|total| *total += 1);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn range(&self, state: TaskState, span: &Span<'_>) -> Range<'_> {
        let oldest = Row::new(state, span.since.unwrap_or(Timestamp::MIN), None);
        let mut end = Row::new(state, span.not_after, None);
        end.rank += 1;
        if let Some(position) = span.after {
            let position = Row::new(state, position.status_at, Some(position.id.clone()));
            end = end.min(position);
        }
        // `BTreeSet::range` panics if the end is before the start.
        let oldest = if end < oldest { end.clone() } else { oldest };
        self.rows.range(oldest..end).rev()
    }

    fn newest_first(&self, filter: &ListFilter, span: &Span<'_>) -> Merge<'_> {
        Merge { ranges: states(filter).map(|state| self.range(state, span).peekable()).collect() }
    }
}

/// Merges the ranges of the states: newest first, then id descending.
struct Merge<'a> {
    ranges: Vec<Peekable<Range<'a>>>,
}

impl<'a> Iterator for Merge<'a> {
    type Item = &'a TaskId;

    fn next(&mut self) -> Option<&'a TaskId> {
        let sort_key = |row: &&'a Row| (row.millis(), row.id.as_ref());
        let fronts =
            self.ranges.iter_mut().enumerate().filter_map(|(at, range)| Some((at, sort_key(range.peek()?))));
        let (newest, _) = fronts.min_by_key(|(_, sort_key)| Reverse(*sort_key))?;
        self.ranges[newest].next()?.id.as_ref()
    }
}
