//! Which connection gets which faults: a function of the seed and the connection's number.

use super::draw::Draw;
use super::kind::{Action, Fault, Recipe, Side};

/// Faults without a position happen within this many bytes: within the head of most requests and replies, or soon
/// after.
const USUAL_PLACES: u64 = 512;

/// The faults of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// One of these is drawn for each connection that gets any.
    pub recipes: Vec<Recipe>,
    /// Every `every`-th connection gets one, beginning with the first; 1 means all.
    pub every: u64,
    pub seed: u64,
}

/// The faults of one connection, with their positions; only the sizes of pieces are still random.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    pub faults: Vec<Fault>,
    /// For the sizes of pieces.
    pub seed: u64,
}

impl Plan {
    /// Connections are counted from 1.
    pub fn of(&self, connection: u64) -> Injected {
        let mut draw = Draw::of(self.seed, connection);
        let hit = self.every <= 1 || connection % self.every == 1;
        if !hit || self.recipes.is_empty() {
            return Injected { faults: Vec::new(), seed: 0 };
        }
        let Recipe(faults) = &self.recipes[draw.index(self.recipes.len())];
        let faults = faults.iter().map(|fault| placed(*fault, &mut draw)).collect();
        Injected { faults, seed: draw.number() }
    }
}

/// The fault with its position.
fn placed(fault: Fault, draw: &mut Draw) -> Fault {
    let mut here = |at: Option<u64>| Some(at.unwrap_or_else(|| draw.up_to(USUAL_PLACES)));
    let action = match fault.action {
        Action::Split { .. } | Action::Delay { .. } | Action::Slow { .. } => fault.action,
        Action::Stall { time, at } => Action::Stall { time, at: here(at) },
        Action::Cut { at } => Action::Cut { at: here(at) },
        Action::Reset { at } => Action::Reset { at: here(at) },
        Action::HalfClose { at } => Action::HalfClose { at: here(at) },
    };
    Fault { action, ..fault }
}

impl Injected {
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// The faults of one direction.
    pub(super) fn on(&self, side: Side) -> Vec<Fault> {
        self.faults.iter().copied().filter(|fault| fault.hits(side)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(recipes: &[&str], every: u64, seed: u64) -> Plan {
        let recipes = recipes.iter().map(|text| text.parse().unwrap()).collect();
        Plan { recipes, every, seed }
    }

    #[test]
    fn a_plan_replays() {
        let all = |seed| {
            let plan = plan(&["split", "cut", "stall=1s", "half-close+delay=3ms"], 1, seed);
            (1..=50).map(|number| plan.of(number)).collect::<Vec<_>>()
        };
        assert_eq!(all(5), all(5));
        assert_ne!(all(5), all(6));
        let names: std::collections::BTreeSet<_> =
            all(5).iter().map(|one| one.faults[0].action.name()).collect();
        assert_eq!(names.len(), 4, "each is drawn sooner or later");
        let places: std::collections::BTreeSet<_> =
            all(5).iter().filter_map(|one| one.faults[0].action.at()).collect();
        assert!(places.len() > 10 && places.iter().all(|at| (1..=512).contains(at)), "{places:?}");
    }

    #[test]
    fn every_nth_connection_is_hit() {
        let hit = |every| {
            let plan = plan(&["cut@7"], every, 1);
            (1..=7).filter(|number| !plan.of(*number).is_empty()).collect::<Vec<u64>>()
        };
        assert_eq!(hit(1), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(hit(0), hit(1));
        assert_eq!(hit(3), [1, 4, 7]);
        assert!(plan(&[], 1, 1).of(1).is_empty());
        assert_eq!(plan(&["cut@7"], 1, 1).of(1).faults[0].to_string(), "cut@7", "what is said is kept");
    }
}
