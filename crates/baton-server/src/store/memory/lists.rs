//! One scope's tasks in list order, so that a page costs a few B-tree steps however many tasks there are.
//!
//! Rows are sorted by state, then time, then id. A listing walks the ranges of the states it wants from
//! their new ends and merges them; so a filter on a rare state skips nothing.

use std::cmp::Reverse;
use std::collections::{BTreeSet, btree_set};
use std::iter::{Peekable, Rev};

use baton_protocol::domain::{ContextId, ListFilter, TaskId, TaskState, Timestamp};

use crate::store::{ListPosition, ListQuery};

#[derive(Default)]
pub(super) struct Lists {
    all: Index<()>,
    by_context: Index<ContextId>,
    /// Tasks per state, by state number.
    totals: [u64; TOTALS],
}

/// State numbers start at 1.
const TOTALS: usize = TaskState::ALL.len() + 1;

impl Lists {
    pub(super) fn insert(&mut self, context: &ContextId, state: TaskState, at: Timestamp, id: &TaskId) {
        self.all.0.insert(Row::new((), state, at, Some(id.clone())));
        self.by_context.0.insert(Row::new(context.clone(), state, at, Some(id.clone())));
        self.totals[usize::from(state.number())] += 1;
    }

    pub(super) fn remove(&mut self, context: &ContextId, state: TaskState, at: Timestamp, id: &TaskId) {
        self.all.0.remove(&Row::new((), state, at, Some(id.clone())));
        self.by_context.0.remove(&Row::new(context.clone(), state, at, Some(id.clone())));
        self.totals[usize::from(state.number())] -= 1;
    }

    pub(super) fn page(&self, query: &ListQuery) -> Vec<TaskId> {
        let ListQuery { filter, after, not_after, limit } = query;
        let span = Span { since: filter.updated_since, not_after: *not_after, after: after.as_ref() };
        let limit = *limit as usize;
        match &filter.context_id {
            Some(context) => {
                self.by_context.newest_first(context, filter, &span).take(limit).cloned().collect()
            }
            None => self.all.newest_first(&(), filter, &span).take(limit).cloned().collect(),
        }
    }

    pub(super) fn count(&self, filter: &ListFilter, not_after: Timestamp) -> u64 {
        let span = Span { since: filter.updated_since, not_after, after: None };
        let newer = Span { since: Some(not_after), not_after: Timestamp::MAX, after: None };
        let one_state = |state: TaskState| match &filter.context_id {
            Some(context) => self.by_context.range(context, state, &span).count() as u64,
            None if filter.updated_since.is_some() => self.all.range(&(), state, &span).count() as u64,
            // The whole list is counted as it changes; what is newer than a listing's bound is little.
            None => {
                let newer = self.all.range(&(), state, &newer);
                let newer = newer.take_while(|row| row.millis() > millis(not_after)).count();
                self.totals[usize::from(state.number())] - newer as u64
            }
        };
        states(filter).map(one_state).sum()
    }
}

/// Which stretch of a list is wanted.
struct Span<'a> {
    since: Option<Timestamp>,
    not_after: Timestamp,
    after: Option<&'a ListPosition>,
}

/// The states a filter lets through, each once.
fn states(filter: &ListFilter) -> impl Iterator<Item = TaskState> {
    TaskState::ALL.into_iter().filter(|state| filter.states.is_empty() || filter.states.contains(state))
}

struct Index<P>(BTreeSet<Row<P>>);

impl<P: Ord> Default for Index<P> {
    fn default() -> Self {
        Index(BTreeSet::new())
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row<P> {
    list: P,
    /// State number in the top byte, time below.
    rank: u64,
    /// `None` only in bounds: it sorts before every id.
    id: Option<TaskId>,
}

const TIME_BITS: u32 = 56;

fn millis(at: Timestamp) -> u64 {
    at.as_millis().abs_diff(Timestamp::MIN.as_millis())
}

impl<P> Row<P> {
    fn new(list: P, state: TaskState, at: Timestamp, id: Option<TaskId>) -> Self {
        Row { list, rank: u64::from(state.number()) << TIME_BITS | millis(at), id }
    }

    fn millis(&self) -> u64 {
        self.rank & ((1 << TIME_BITS) - 1)
    }
}

type Range<'a, P> = Rev<btree_set::Range<'a, Row<P>>>;

impl<P: Ord + Clone> Index<P> {
    fn range(&self, list: &P, state: TaskState, span: &Span<'_>) -> Range<'_, P> {
        let oldest = Row::new(list.clone(), state, span.since.unwrap_or(Timestamp::MIN), None);
        let mut end = Row::new(list.clone(), state, span.not_after, None);
        end.rank += 1;
        if let Some(position) = span.after {
            let position = Row::new(list.clone(), state, position.status_at, Some(position.id.clone()));
            end = end.min(position);
        }
        // A range that ends before it starts is a panic, not an empty range.
        let oldest = if end < oldest { end.clone() } else { oldest };
        self.0.range(oldest..end).rev()
    }

    fn newest_first<'a>(&'a self, list: &P, filter: &ListFilter, span: &Span<'_>) -> Merge<'a, P> {
        Merge { ranges: states(filter).map(|state| self.range(list, state, span).peekable()).collect() }
    }
}

/// Merges the ranges of the states: newest first, then id descending.
struct Merge<'a, P> {
    ranges: Vec<Peekable<Range<'a, P>>>,
}

impl<'a, P: Ord> Iterator for Merge<'a, P> {
    type Item = &'a TaskId;

    fn next(&mut self) -> Option<&'a TaskId> {
        let place = |row: &&'a Row<P>| (row.millis(), row.id.as_ref());
        let fronts =
            self.ranges.iter_mut().enumerate().filter_map(|(at, range)| Some((at, place(range.peek()?))));
        let (newest, _) = fronts.min_by_key(|(_, place)| Reverse(*place))?;
        self.ranges[newest].next()?.id.as_ref()
    }
}
