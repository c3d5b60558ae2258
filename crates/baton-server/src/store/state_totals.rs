//! Counts of tasks by state, and the states a filter includes.

use baton_protocol::domain::{ListFilter, TaskState};

/// How many tasks are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StateTotals([u64; SLOTS]);

/// Indexed by state number; these start at 1.
const SLOTS: usize = TaskState::ALL.len() + 1;

impl StateTotals {
    pub(super) fn of(&self, state: TaskState) -> u64 {
        self.0[usize::from(state.number())]
    }

    /// The count of the state with this number; `None` if the number is too large.
    pub(super) fn by_number(&mut self, number: u8) -> Option<&mut u64> {
        self.0.get_mut(usize::from(number))
    }

    /// The sum over the states that the filter includes.
    pub(super) fn sum(&self, filter: &ListFilter) -> u64 {
        states(filter).map(|state| self.of(state)).sum()
    }
}

/// The states that a filter includes, each once; all states if the filter has none.
pub(super) fn states(filter: &ListFilter) -> impl Iterator<Item = TaskState> {
    TaskState::ALL.into_iter().filter(|state| filter.states.is_empty() || filter.states.contains(state))
}
