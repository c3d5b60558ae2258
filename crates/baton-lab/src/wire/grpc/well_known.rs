//! Struct, Value and Timestamp of google.protobuf, whose JSON is not that of their fields.

use serde_json::{Map, Number, Value, json};

use super::protobuf::{Malformed, Wire, next, put_bytes, put_double, put_number};

/// Deepest JSON that is read or written.
const DEEPEST: usize = 100;

pub(crate) fn put_struct(out: &mut Vec<u8>, members: &Map<String, Value>) -> Result<(), String> {
    put_members(out, members, 0)
}

fn put_members(out: &mut Vec<u8>, members: &Map<String, Value>, depth: usize) -> Result<(), String> {
    for (name, value) in members {
        let (mut entry, mut inner) = (Vec::new(), Vec::new());
        put_bytes(&mut entry, 1, name.as_bytes());
        put_json(&mut inner, value, depth)?;
        put_bytes(&mut entry, 2, &inner);
        put_bytes(out, 1, &entry);
    }
    Ok(())
}

pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    put_json(out, value, 0)
}

fn put_json(out: &mut Vec<u8>, value: &Value, depth: usize) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("JSON this deep is not sent in a message of protobuf".to_owned());
    }
    match value {
        Value::Null => put_number(out, 1, 0),
        Value::Number(number) => put_double(out, 2, number.as_f64().unwrap_or_default()),
        Value::String(text) => put_bytes(out, 3, text.as_bytes()),
        Value::Bool(flag) => put_number(out, 4, u64::from(*flag)),
        Value::Object(members) => {
            let mut inner = Vec::new();
            put_members(&mut inner, members, depth + 1)?;
            put_bytes(out, 5, &inner);
        }
        Value::Array(items) => {
            let mut list = Vec::new();
            for item in items {
                let mut inner = Vec::new();
                put_json(&mut inner, item, depth + 1)?;
                put_bytes(&mut list, 1, &inner);
            }
            put_bytes(out, 6, &list);
        }
    }
    Ok(())
}

pub(crate) fn read_struct(bytes: &[u8]) -> Result<Value, Malformed> {
    members(bytes, 0)
}

fn members(mut bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
    let mut all = Map::new();
    while let Some((number, wire)) = next(&mut bytes)? {
        let (1, Wire::Bytes(mut entry)) = (number, wire) else { continue };
        let (mut name, mut value) = (String::new(), Value::Null);
        while let Some(field) = next(&mut entry)? {
            match field {
                (1, Wire::Bytes(text)) => name = utf8(text)?,
                (2, Wire::Bytes(inner)) => value = json_at(inner, depth + 1)?,
                _ => {}
            }
        }
        all.insert(name, value);
    }
    Ok(Value::Object(all))
}

pub(crate) fn read_value(bytes: &[u8]) -> Result<Value, Malformed> {
    json_at(bytes, 0)
}

fn json_at(mut bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
    if depth > DEEPEST {
        return Err(Malformed(format!("a Value is deeper than {DEEPEST}")));
    }
    let mut value = Value::Null;
    while let Some(field) = next(&mut bytes)? {
        value = match field {
            (1, Wire::Varint(_)) => Value::Null,
            (2, Wire::Fixed64(bytes)) => number(f64::from_le_bytes(bytes))?,
            (3, Wire::Bytes(text)) => Value::String(utf8(text)?),
            (4, Wire::Varint(flag)) => Value::Bool(flag != 0),
            (5, Wire::Bytes(inner)) => members(inner, depth)?,
            (6, Wire::Bytes(inner)) => list(inner, depth)?,
            _ => continue,
        };
    }
    Ok(value)
}

fn list(mut bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
    let mut items = Vec::new();
    while let Some(field) = next(&mut bytes)? {
        if let (1, Wire::Bytes(inner)) = field {
            items.push(json_at(inner, depth + 1)?);
        }
    }
    Ok(Value::Array(items))
}

/// A whole number without a fraction, as it was before it became a double.
fn number(value: f64) -> Result<Value, Malformed> {
    #[allow(clippy::cast_possible_truncation, reason = "whole and within the range, as the condition says")]
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        return Ok(json!(value as i64));
    }
    let number = Number::from_f64(value);
    number.map(Value::Number).ok_or_else(|| Malformed(format!("{value} is no number of JSON")))
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<String, Malformed> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed("a text is not UTF-8".to_owned()))
}

/// `2026-01-31T12:00:00.5Z` as seconds since 1970 and nanoseconds; `None` if it is no such time.
pub(crate) fn timestamp(text: &str) -> Option<(i64, i32)> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let mut part = || date.next()?.ok();
    let (year, month, day) = (part()?, part()?, part()?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.split(':').map(str::parse::<i64>);
    let mut part = || time.next()?.ok();
    let (hour, minute, second) = (part()?, part()?, part()?);
    let fits = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let fits = fits && (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    let digits = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let nanos = format!("{fraction:0<9}").parse().ok().filter(|_| digits && fits)?;
    Some((days_before(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second, nanos))
}

/// The time as ProtoJSON has it.
pub(crate) fn written(seconds: i64, nanos: i32) -> Option<String> {
    if !(-62_135_596_800..253_402_300_800).contains(&seconds) || !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date_of(days);
    let fraction = match nanos {
        0 => String::new(),
        _ if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        _ if nanos % 1000 == 0 => format!(".{:06}", nanos / 1000),
        _ => format!(".{nanos:09}"),
    };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// Days from 1970 to a date. Years begin in March, so that the day of a leap year is the last one.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let value = json!({"a": [null, true, 1, -2.5, "ä", {"b": []}], "c": {}});
        let mut out = Vec::new();
        put_value(&mut out, &value).unwrap();
        assert_eq!(read_value(&out).unwrap(), value);
        let mut out = Vec::new();
        put_struct(&mut out, value.as_object().unwrap()).unwrap();
        assert_eq!(read_struct(&out).unwrap(), value);
    }

    #[test]
    fn deep_values_are_refused() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        put_value(&mut Vec::new(), &deep).unwrap_err();
        let mut bytes = vec![0x08, 0x00];
        for _ in 0..200 {
            let (mut list, mut value) = (Vec::new(), Vec::new());
            put_bytes(&mut list, 1, &bytes);
            put_bytes(&mut value, 6, &list);
            bytes = value;
        }
        read_value(&bytes).unwrap_err();
    }

    #[test]
    fn times_come_back() {
        for (text, seconds, nanos) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("2000-02-29T23:59:59.500Z", 951_868_799, 500_000_000),
            ("2026-11-19T21:25:17.000000001Z", 1_795_123_517, 1),
            ("1969-12-31T23:59:59Z", -1, 0),
            ("9999-12-31T23:59:59.999999Z", 253_402_300_799, 999_999_000),
        ] {
            assert_eq!(timestamp(text), Some((seconds, nanos)), "{text}");
            assert_eq!(written(seconds, nanos).as_deref(), Some(text));
        }
        for bad in ["yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01"] {
            assert_eq!(timestamp(bad), None, "{bad}");
        }
        assert_eq!(written(i64::MAX, 0), None);
    }
}
