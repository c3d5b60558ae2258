//! Times as text, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// `2026-11-15T10:31:06Z`.
pub fn rfc3339(time: SystemTime) -> String {
    let (year, month, day, seconds) = civil(time);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `20261115T103106Z`, for file names.
pub fn compact(time: SystemTime) -> String {
    rfc3339(time).replace(['-', ':'], "")
}

/// Year, month, day and the second of the day; times before 1970 are 1970.
fn civil(time: SystemTime) -> (u64, u64, u64, u64) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // Years that begin in March have the leap day at their end, so that month and day are plain divisions.
    let days = since / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day, since % 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn seconds_become_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_794_738_666, "2026-11-15T10:31:06Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(compact(UNIX_EPOCH), "19700101T000000Z");
    }
}
