//! Pseudo-random numbers that are the same for the same seed, on every machine and in every version, so that a run can
//! be repeated with the seed in its report.

/// SplitMix64: small, and every seed is a good one.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    /// An independent sequence for one of many things that share a seed: a connection, a group of cases.
    pub fn of(seed: u64, number: u64) -> Self {
        let mut draw = Draw(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        draw.number();
        draw
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 1 to `most`; 1 when `most` is 0.
    pub fn up_to(&mut self, most: u64) -> u64 {
        1 + self.number() % most.max(1)
    }

    /// An index into a list of this length; 0 if it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        let length = u64::try_from(length.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.number() % length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        let drawn = |seed, number| {
            let mut draw = Draw::of(seed, number);
            [draw.up_to(512), draw.up_to(512), draw.up_to(512)]
        };
        assert_eq!(drawn(7, 1), drawn(7, 1));
        assert_ne!(drawn(7, 1), drawn(7, 2));
        assert_ne!(drawn(7, 1), drawn(8, 1));
        // Other versions must produce the same numbers.
        assert_eq!(Draw::new(42).number(), 13_679_457_532_755_275_413);
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut draw = Draw::new(1);
        for most in 1..200 {
            assert!((1..=most).contains(&draw.up_to(most)));
            assert!(draw.index(3) < 3 && draw.index(0) == 0);
        }
        assert_eq!(draw.up_to(0), 1);
    }
}
