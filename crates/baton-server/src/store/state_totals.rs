//! Tasks counted by state, and the states a filter asks for.

use baton_protocol::domain::{ListFilter, TaskState};

/// How many tasks stand in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StateTotals([u64; SLOTS]);

/// By state number: they start at 1.
const SLOTS: usize = TaskState::ALL.len() + 1;

impl StateTotals {
    pub(super) fn of(&self, state: TaskState) -> u64 {
        self.0[usize::from(state.number())]
    }

    /// The total of a state, by its number; `None` if no state has it.
    pub(super) fn by_number(&mut self, number: u8) -> Option<&mut u64> {
        self.0.get_mut(usize::from(number))
    }

    /// Of all states that the filter lets through.
    pub(super) fn sum(&self, filter: &ListFilter) -> u64 {
        states(filter).map(|state| self.of(state)).sum()
    }
}

/// The states a filter lets through, each once: every state if it names none.
pub(super) fn states(filter: &ListFilter) -> impl Iterator<Item = TaskState> {
    TaskState::ALL.into_iter().filter(|state| filter.states.is_empty() || filter.states.contains(state))
}
