//! A checksum stored with each row, so that a bit that changed on the disk is reported and not read as data.
//!
//! SQLite detects damage to its own structures, but not within a value. Each step of the checksum is a bijection, so two
//! values that differ in only one eight-byte word always have different checksums. Rows of older formats have none.

use crate::store::{StoreError, StoreResult};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The checksum of one row, built part by part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checksum(u64);

impl Checksum {
    /// Starts with the row's number, so that the same content in another row has another checksum.
    pub(super) fn of(number: u64) -> Self {
        Checksum(STEP).number(number)
    }

    pub(super) fn number(self, number: u64) -> Self {
        let mixed = (self.0 ^ number).wrapping_mul(STEP);
        Checksum(mixed ^ (mixed >> 32))
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(8);
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let sum = words.fold(self, |sum, eight| sum.number(word(eight)));
        sum.number(word(&last)).number(bytes.len() as u64)
    }

    /// The value of the `sum` column.
    pub(super) fn stored(self) -> i64 {
        self.0.cast_signed()
    }

    /// Compares it with the stored one, if there is one.
    pub(super) fn check(self, stored: Option<i64>, what: &dyn Fn() -> String) -> StoreResult<()> {
        match stored {
            Some(sum) if sum != self.stored() => {
                Err(StoreError::damaged(format!("{}: wrong checksum", what())))
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
        let right = Checksum::of(3).bytes(&record).stored();
        for bit in 0..record.len() * 8 {
            let mut changed = record.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Checksum::of(3).bytes(&changed).stored(), right, "{bit}");
        }
        assert_ne!(Checksum::of(4).bytes(&record).stored(), right, "another row");
        let mut longer = record.clone();
        longer.push(0);
        assert_ne!(Checksum::of(3).bytes(&longer).stored(), right);
        assert_ne!(Checksum::of(3).bytes(&record[..76]).stored(), right);
    }

    #[test]
    fn s06_a_row_without_a_sum_is_believed() {
        let sum = Checksum::of(1).bytes(b"old");
        let what = || "event 1".to_owned();
        assert_eq!(sum.check(None, &what), Ok(()));
        assert_eq!(sum.check(Some(sum.stored()), &what), Ok(()));
        assert!(
            matches!(sum.check(Some(0), &what), Err(StoreError::Damaged(cause)) if cause.text().contains("event 1"))
        );
    }

    /// Existing files hold checksums computed this way.
    #[test]
    fn s06_sums_do_not_change() {
        assert_eq!(Checksum::of(1).bytes(b"").stored(), SUM_OF_NOTHING);
        assert_eq!(Checksum::of(7).number(2).bytes(b"1 S2 1763200000000\n{}").stored(), SUM_OF_EVENT);
    }

    const SUM_OF_NOTHING: i64 = -1_461_588_103_267_757_055;
    const SUM_OF_EVENT: i64 = 2_214_843_198_529_779_314;
}
