//! Timestamps as text: RFC 3339, milliseconds, always `Z` when written.
//!
//! Hand-written, because it runs for every event and because no time library has exactly the range of years 1 to 9999
//! that the domain type has.

use crate::domain::Timestamp;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Writes the 24 characters, without quotes.
pub fn write_timestamp(out: &mut Vec<u8>, at: Timestamp) {
    let (days, millis) =
        (at.as_millis().div_euclid(MILLIS_PER_DAY), at.as_millis().rem_euclid(MILLIS_PER_DAY));
    let (year, month, day) = date_of(days);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    digits(&mut text[..4], year);
    digits(&mut text[5..7], month);
    digits(&mut text[8..10], day);
    digits(&mut text[11..13], millis / 3_600_000);
    digits(&mut text[14..16], millis / 60_000 % 60);
    digits(&mut text[17..19], millis / 1000 % 60);
    digits(&mut text[20..23], millis % 1000);
    out.extend_from_slice(&text);
}

/// Reads any RFC 3339 time; fractions of a millisecond are cut off.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (date_time, rest) = text.as_bytes().split_at_checked(19)?;
    let [y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2, b'T' | b't', h1, h2, b':', mi1, mi2, b':', s1, s2] =
        date_time
    else {
        return None;
    };
    let (year, month, day) = (number(&[*y1, *y2, *y3, *y4])?, number(&[*mo1, *mo2])?, number(&[*d1, *d2])?);
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*mi1, *mi2])?, number(&[*s1, *s2])?);
    let days = days_to(year, month, day);
    // Converting back detects dates such as the 30th of February. A leap second counts as the following second, as in
    // Unix time.
    if date_of(days) != (year, month, day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, zone) = split_fraction(rest)?;
    let seconds = (hour * 60 + minute - offset_minutes(zone)?) * 60 + second;
    let millis = days * MILLIS_PER_DAY + seconds * 1000 + fraction;
    let read = Timestamp::from_millis(millis);
    // `Timestamp` clamps values of broken clocks; a peer's year 0 is refused instead.
    (read.as_millis() == millis).then_some(read)
}

/// Rounds up to the next millisecond, for the lower bound of a filter: rounding down would let earlier times through.
pub(crate) fn parse_not_before(text: &str) -> Option<Timestamp> {
    let read = parse_timestamp(text)?;
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let finer = fraction.bytes().take_while(u8::is_ascii_digit).skip(3).any(|digit| digit != b'0');
    Some(if finer { read.plus_millis(1) } else { read })
}

/// The milliseconds of `.123456`, and the rest of the text. Protobuf writers send up to nine digits.
fn split_fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.', rest @ ..] = rest else { return Some((0, rest)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, zone) = rest.split_at(count);
    let mut millis = [b'0'; 3];
    for (to, from) in millis.iter_mut().zip(fraction) {
        *to = *from;
    }
    if (1..=9).contains(&count) { Some((number(&millis)?, zone)) } else { None }
}

fn offset_minutes(zone: &[u8]) -> Option<i64> {
    match zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            let ahead = hours * 60 + minutes;
            (hours < 24 && minutes < 60).then_some(if *sign == b'+' { ahead } else { -ahead })
        }
        _ => None,
    }
}

fn number(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

fn digits(places: &mut [u8], mut value: i64) {
    for place in places.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years begin in March here, so that the leap day is the last
/// day of its year; an era is 400 years, after which the calendar repeats.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of [`date_of`].
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(at: Timestamp) -> String {
        let mut out = Vec::new();
        write_timestamp(&mut out, at);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_read_leniently_and_written_one_way() {
        for (text, expected) in [
            ("2026-03-12T08:09:10.123Z", "2026-03-12T08:09:10.123Z"),
            ("2026-03-12T08:09:10Z", "2026-03-12T08:09:10.000Z"),
            ("2026-03-12t08:09:10z", "2026-03-12T08:09:10.000Z"),
            ("2026-03-12T08:09:10.1Z", "2026-03-12T08:09:10.100Z"),
            ("2026-03-12T08:09:10.123999999Z", "2026-03-12T08:09:10.123Z"),
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
            ("2026-03-12T10:09:10.5+02:00", "2026-03-12T08:09:10.500Z"),
            ("2026-03-11T22:39:10-09:30", "2026-03-12T08:09:10.000Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(parse_timestamp(text).map(written).as_deref(), Some(expected), "{text}");
        }
        for at in [Timestamp::MIN, Timestamp::MAX, Timestamp::from_millis(0)] {
            assert_eq!(parse_timestamp(&written(at)), Some(at));
        }
    }

    #[test]
    fn the_lower_end_of_a_filter_is_rounded_up() {
        for (text, expected) in [
            ("2026-03-12T08:09:10Z", "2026-03-12T08:09:10.000Z"),
            ("2026-03-12T08:09:10.123Z", "2026-03-12T08:09:10.123Z"),
            ("2026-03-12T08:09:10.123000Z", "2026-03-12T08:09:10.123Z"),
            ("2026-03-12T08:09:10.0005Z", "2026-03-12T08:09:10.001Z"),
            ("2026-03-12T10:09:10.999000001+02:00", "2026-03-12T08:09:11.000Z"),
            ("9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(parse_not_before(text).map(written).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(parse_not_before("2026-03-12T08:09:10.0005"), None);
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused() {
        for text in [
            "",
            "2026-03-12",
            "2026-03-12T08:09:10",
            "2026-03-12 08:09:10Z",
            "2026-03-12T08:09Z",
            "2026-13-12T08:09:10Z",
            "2026-02-30T08:09:10Z",
            "2026-02-29T08:09:10Z",
            "2026-00-01T08:09:10Z",
            "2026-01-00T08:09:10Z",
            "2026-03-12T24:00:00Z",
            "2026-03-12T08:60:00Z",
            "2026-03-12T08:09:61Z",
            "2026-03-12T08:09:10+24:00",
            "9999-12-31T23:59:60Z",
            "2026-03-12T08:09:10.Z",
            "2026-03-12T08:09:10.0000000001Z",
            "2026-03-12T08:09:10+0200",
            "2026-03-12T08:09:10Z[UTC]",
            "0000-12-31T23:59:59Z",
            "0001-01-01T00:00:00+01:00",
            "٢٠٢٦-03-12T08:09:10Z",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_the_calendar_reads_back() {
        for days in
            (Timestamp::MIN.as_millis() / MILLIS_PER_DAY)..=(Timestamp::MAX.as_millis() / MILLIS_PER_DAY)
        {
            let (year, month, day) = date_of(days);
            assert_eq!(days_to(year, month, day), days);
        }
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(20_524), (2026, 3, 12));
    }
}
