//! A sum beside what is stored, so that a bit that changed on the disk is an error and not another text.
//!
//! SQLite notices damage to its own structure, and nothing that happens within a value. Each step of the sum can be
//! undone, so two values that differ in one place of eight bytes never have the same one. Rows that were written before
//! there were sums have none.

use crate::store::{StoreError, StoreResult};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Of one row, part by part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum(u64);

impl Sum {
    /// A row is known by its number: the same content elsewhere has another sum.
    pub(super) fn of(number: u64) -> Self {
        Sum(STEP).number(number)
    }

    pub(super) fn number(self, number: u64) -> Self {
        let mixed = (self.0 ^ number).wrapping_mul(STEP);
        Sum(mixed ^ (mixed >> 32))
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(8);
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let sum = words.fold(self, |sum, eight| sum.number(word(eight)));
        sum.number(word(&last)).number(bytes.len() as u64)
    }

    /// As a column holds it.
    pub(super) fn stored(self) -> i64 {
        self.0.cast_signed()
    }

    /// Is it what the row says?
    pub(super) fn check(self, row: Option<i64>, what: &dyn Fn() -> String) -> StoreResult<()> {
        match row {
            Some(sum) if sum != self.stored() => {
                Err(StoreError::Damaged(format!("{}: it is not what was written", what())))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s06_every_bit_counts() {
        let record: Vec<u8> = (0..77).collect();
        let right = Sum::of(3).bytes(&record).stored();
        for bit in 0..record.len() * 8 {
            let mut changed = record.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Sum::of(3).bytes(&changed).stored(), right, "{bit}");
        }
        assert_ne!(Sum::of(4).bytes(&record).stored(), right, "another row");
        let mut longer = record.clone();
        longer.push(0);
        assert_ne!(Sum::of(3).bytes(&longer).stored(), right);
        assert_ne!(Sum::of(3).bytes(&record[..76]).stored(), right);
    }

    #[test]
    fn s06_a_row_without_a_sum_is_believed() {
        let sum = Sum::of(1).bytes(b"old");
        let what = || "event 1".to_owned();
        assert_eq!(sum.check(None, &what), Ok(()));
        assert_eq!(sum.check(Some(sum.stored()), &what), Ok(()));
        assert!(
            matches!(sum.check(Some(0), &what), Err(StoreError::Damaged(text)) if text.contains("event 1"))
        );
    }

    /// What is stored stays readable: these are in files.
    #[test]
    fn s06_sums_do_not_change() {
        assert_eq!(Sum::of(1).bytes(b"").stored(), SUM_OF_NOTHING);
        assert_eq!(Sum::of(7).number(2).bytes(b"1 S2 1763200000000\n{}").stored(), SUM_OF_EVENT);
    }

    const SUM_OF_NOTHING: i64 = -1_461_588_103_267_757_055;
    const SUM_OF_EVENT: i64 = 2_214_843_198_529_779_314;
}
