//! Counts requests by every combination of their labels. One table per agent.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use baton_protocol::Generation;

use super::labels::{Binding, GENERATIONS, Outcome, RequestKind, generation_index, generation_name};

/// A counter for every combination, so that counting is one addition; a scrape shows only those above 0.
#[derive(Debug)]
pub(crate) struct Requests {
    counts: Box<[AtomicU64]>,
}

/// The names of one combination of labels, and its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) binding: &'static str,
    pub(crate) generation: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) count: u64,
}

impl Requests {
    pub(crate) fn new() -> Self {
        let combinations = Binding::ALL.len() * GENERATIONS.len() * RequestKind::COUNT * Outcome::count();
        Requests { counts: (0..combinations).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(crate) fn count(
        &self,
        binding: Binding,
        generation: Option<Generation>,
        kind: RequestKind,
        outcome: Outcome,
    ) {
        let at = index(binding as usize, generation_index(generation), kind.index(), outcome.index());
        self.counts[at].fetch_add(1, Relaxed);
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted> {
        let combinations = Binding::ALL.iter().copied().flat_map(|binding| {
            GENERATIONS.into_iter().flat_map(move |generation| {
                RequestKind::all().flat_map(move |kind| {
                    (0..Outcome::count()).map(move |outcome| (binding, generation, kind, outcome))
                })
            })
        });
        combinations.filter_map(|(binding, generation, kind, outcome)| {
            let at = index(binding as usize, generation_index(generation), kind.index(), outcome);
            let count = self.counts[at].load(Relaxed);
            (count > 0).then(|| Counted {
                binding: binding.name(),
                generation: generation_name(generation),
                operation: kind.name(),
                outcome: Outcome::name_at(outcome),
                count,
            })
        })
    }
}

fn index(binding: usize, generation: usize, kind: usize, outcome: usize) -> usize {
    ((binding * GENERATIONS.len() + generation) * RequestKind::COUNT + kind) * Outcome::count() + outcome
}

#[cfg(test)]
mod tests {
    use baton_protocol::ErrorKind;
    use baton_protocol::operation::Operation;

    use super::*;

    #[test]
    fn combinations_are_counted_apart() {
        let requests = Requests::new();
        let send = RequestKind::Operation(Operation::SendMessage);
        for outcome in [Outcome::Ok, Outcome::Ok, Outcome::Error(ErrorKind::TaskEnded)] {
            requests.count(Binding::JsonRpc, Some(Generation::V1), send, outcome);
        }
        requests.count(Binding::Card, None, RequestKind::Card, Outcome::Ok);
        let counted: Vec<_> =
            requests.counted().map(|c| (c.binding, c.generation, c.outcome, c.count)).collect();
        let expected = [
            ("jsonrpc", "1.0", "ok", 2),
            ("jsonrpc", "1.0", "UNSUPPORTED_OPERATION", 1),
            ("card", "unknown", "ok", 1),
        ];
        assert_eq!(counted, expected);
    }

    /// No two combinations share a counter.
    #[test]
    fn every_combination_has_a_place() {
        let requests = Requests::new();
        for binding in Binding::ALL.iter().copied() {
            for generation in GENERATIONS {
                for kind in RequestKind::all() {
                    for row in baton_protocol::error::TABLE {
                        requests.count(binding, generation, kind, Outcome::Error(row.kind));
                    }
                    requests.count(binding, generation, kind, Outcome::Ok);
                    requests.count(binding, generation, kind, Outcome::ClientGone);
                }
            }
        }
        assert_eq!(requests.counted().count(), requests.counts.len());
    }
}
