//! Times as ISO 8601 in UTC with milliseconds, each later than the one before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

static LAST: AtomicU64 = AtomicU64::new(0);

pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let wanted = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let last = LAST
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(wanted.max(last + 1)))
        .unwrap_or_default();
    spelled(wanted.max(last + 1))
}

fn spelled(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    // Days to a date, by the usual shift to years that begin in March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}.{:03}Z",
        rest / 1000 % 60,
        rest % 1000
    )
}

#[test]
fn dates_are_right() {
    assert_eq!(spelled(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(spelled(951_782_399_999), "2000-02-28T23:59:59.999Z");
    assert_eq!(spelled(951_782_400_000), "2000-02-29T00:00:00.000Z");
    assert_eq!(spelled(1_798_761_600_001), "2027-01-01T00:00:00.001Z");
    assert!(now() < now());
}
