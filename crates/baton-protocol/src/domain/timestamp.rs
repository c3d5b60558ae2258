//! Points in time in the protocol: UTC, milliseconds.

/// Milliseconds since the Unix epoch. Bounded to years 1..=9999, the span RFC 3339 can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// What a peer did not say, since this crate has no clock. Before all others, and never written.
    pub const UNKNOWN: Timestamp = Timestamp(Self::MIN.0 - 1);
    /// The first millisecond of the year 1.
    pub const MIN: Timestamp = Timestamp(-62_135_596_800_000);
    /// The last millisecond of the year 9999.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);

    /// Out-of-range values are clamped, so that a broken clock can't make an unprintable time.
    pub fn from_millis(millis: i64) -> Self {
        Timestamp(millis.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Whether it was said.
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Later (or earlier, if negative) by this many milliseconds, within the bounds.
    pub fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }
}
