//! The generations one agent serves.

use super::Generation;
use crate::error::{Error, ErrorKind};

/// Newest first, as in messages for people.
const ALL: [Generation; 3] = [Generation::V1, Generation::V0_3, Generation::V0_1];

/// Which generations an agent serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generations([bool; 3]);

impl Generations {
    pub const ALL: Self = Generations([true; 3]);

    pub fn of(these: impl IntoIterator<Item = Generation>) -> Self {
        let mut served = Generations([false; 3]);
        for generation in these {
            served.0[place(generation)] = true;
        }
        served
    }

    pub fn has(self, generation: Generation) -> bool {
        self.0[place(generation)]
    }

    /// The generations that are not served.
    pub fn others(self) -> Self {
        Generations(self.0.map(|served| !served))
    }

    pub fn is_empty(self) -> bool {
        self.0 == [false; 3]
    }

    /// An error if the generation is not served.
    pub fn check(self, generation: Generation) -> Result<(), Error> {
        if self.has(generation) {
            return Ok(());
        }
        let message = format!(
            "Protocol {} is switched off here: this agent speaks {}",
            generation.version(),
            self.versions()
        );
        Err(Error::new(ErrorKind::VersionNotSupported, message))
    }

    /// For messages: `1.0, 0.3 and 0.1`.
    pub fn versions(self) -> String {
        let served: Vec<_> = ALL.into_iter().filter(|it| self.has(*it)).map(Generation::version).collect();
        match served.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => "nothing".to_owned(),
        }
    }
}

fn place(generation: Generation) -> usize {
    match generation {
        Generation::V1 => 0,
        Generation::V0_3 => 1,
        Generation::V0_1 => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_listed_newest_first() {
        for (these, listed, others) in [
            (&[Generation::V1][..], "1.0", "0.3 and 0.1"),
            (&[Generation::V0_1, Generation::V1], "1.0 and 0.1", "0.3"),
            (&ALL, "1.0, 0.3 and 0.1", "nothing"),
        ] {
            let served = Generations::of(these.iter().copied());
            assert_eq!((served.versions().as_str(), served.others().versions().as_str()), (listed, others));
            assert!(ALL.into_iter().all(|it| served.check(it).is_ok() == these.contains(&it)));
        }
    }
}
