//! Durations and sizes, as people write them.

use std::time::Duration;

use toml::de::DeValue;

use super::plain::whole;
use super::{Refused, Shown, Value, found, quoted};

const MILLISECONDS: &[(&str, u64)] =
    &[("d", 24 * 60 * 60 * 1000), ("h", 60 * 60 * 1000), ("m", 60 * 1000), ("s", 1000), ("ms", 1)];

/// Longer than any useful value; prevents overflow when durations are added.
const LONGEST: u64 = 100 * 366 * 24 * 60 * 60 * 1000;

impl Value for Duration {
    fn expected() -> String {
        "a duration such as \"30s\", \"5m\" or \"1h30m\" (ms, s, m, h, d)".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let milliseconds = milliseconds(text).filter(|total| *total <= LONGEST);
        milliseconds.map(Duration::from_millis).ok_or_else(|| Self::refused(&quoted(text)))
    }

    fn show(&self) -> Shown {
        let total = u64::try_from(self.as_millis()).unwrap_or(u64::MAX);
        let unit = MILLISECONDS.iter().find(|(_, size)| total > 0 && total.is_multiple_of(*size));
        Shown::text(unit.map_or_else(|| "0s".to_owned(), |(name, size)| format!("{}{name}", total / size)))
    }
}

/// Parses a duration as the configuration does, for flags that are not keys.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    Duration::from_text(text).ok()
}

/// One or more numbers with their units, largest first.
fn milliseconds(text: &str) -> Option<u64> {
    let (mut rest, mut total, mut last) = (text.trim(), 0u64, u64::MAX);
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let unit = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, size) = MILLISECONDS.iter().find(|(name, _)| *name == &rest[..unit])?;
        if *size >= last {
            return None;
        }
        total = total.checked_add(number.checked_mul(*size)?)?;
        last = *size;
        rest = rest[unit..].trim_start();
        if rest.is_empty() {
            return Some(total);
        }
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Size(pub(crate) u64);

const UNITS: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
];

impl Size {
    pub(crate) fn of(bytes: usize) -> Self {
        Size(bytes as u64)
    }

    pub(crate) fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Value for Size {
    fn expected() -> String {
        "a size such as \"4MiB\", \"64KiB\" or a number of bytes".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = text[digits..].trim_start();
        let size = if unit.is_empty() {
            Some(1)
        } else {
            UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size)
        };
        let bytes = text[..digits].parse::<u64>().ok().zip(size).and_then(|(n, size)| n.checked_mul(size));
        bytes.map(Size).ok_or_else(|| Self::refused(&quoted(text)))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        match value {
            DeValue::String(text) => Self::from_text(text),
            DeValue::Integer(number) => whole(number).map(Size).ok_or_else(|| Self::refused(&found(value))),
            other => Err(Self::refused(&found(other))),
        }
    }

    fn show(&self) -> Shown {
        let binary = UNITS.iter().take(3).find(|(_, size)| self.0 > 0 && self.0.is_multiple_of(*size));
        match binary {
            Some((name, size)) => Shown::text(format!("{}{name}", self.0 / size)),
            None => Shown::Whole(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_in_the_largest_unit_that_fits() {
        for (text, millis, shown) in [
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "90s"),
            ("1h30m", 5_400_000, "90m"),
            ("2d 12h", 216_000_000, "60h"),
            ("25ms", 25, "25ms"),
            ("0s", 0, "0s"),
            ("1500 ms", 1500, "1500ms"),
            ("60s", 60_000, "1m"),
        ] {
            let read = Duration::from_text(text).unwrap();
            assert_eq!((read.as_millis(), read.show()), (millis, Shown::text(shown)), "{text}");
        }
        for bad in
            ["", "30", "s", "30 seconds", "1m1h", "1s1s", "-1s", "1.5s", "99999999999999999999s", "40000d"]
        {
            assert!(Duration::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_read_and_written_in_binary_units() {
        for (text, bytes, shown) in [
            ("4MiB", 4 << 20, "\"4MiB\""),
            ("4 MiB", 4 << 20, "\"4MiB\""),
            ("64KiB", 65536, "\"64KiB\""),
            ("1MB", 1_000_000, "1000000"),
            ("1000", 1000, "1000"),
            ("0", 0, "0"),
            ("2GiB", 2 << 30, "\"2GiB\""),
        ] {
            let read = Size::from_text(text).unwrap();
            assert_eq!((read.0, read.show().toml().as_str()), (bytes, shown), "{text}");
        }
        for bad in ["", "MiB", "4Mib", "4.5MiB", "-1", "4 M", "99999999999GiB"] {
            assert!(Size::from_text(bad).is_err(), "{bad}");
        }
    }
}
