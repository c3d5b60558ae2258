//! Numbers as ECMAScript writes them (RFC 8785 section 3.2.2.3).

use std::io::Write as _;

use super::Numbers;

/// From 2^53 on, not every whole number is a double.
const LARGE: f64 = 9_007_199_254_740_992.0;

pub(super) fn write(out: &mut Vec<u8>, text: &str, numbers: Numbers) {
    if is_canonical(text) {
        return out.extend_from_slice(text.as_bytes());
    }
    // The text is known to be a number; one that is too large for a double becomes infinite.
    let number: f64 = text.parse().unwrap_or(f64::INFINITY);
    if number.is_infinite() || (numbers == Numbers::LargeAsWritten && number.abs() >= LARGE) {
        return out.extend_from_slice(text.as_bytes());
    }
    write_double(out, number);
}

/// Fast check for most numbers: with 15 digits or less, different numbers are different doubles, so the text is already
/// the shortest for its double.
fn is_canonical(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    if digits.len() > 16 {
        return false;
    }
    let mut parts = digits.split(|byte| *byte == b'.');
    let (whole, fraction) = (parts.next().unwrap_or_default(), parts.next());
    if !digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
        return false;
    }
    match fraction {
        None => whole.len() <= 15 && text != "-0",
        // Numbers below 0.000001 have an exponent.
        Some(fraction) => {
            fraction.last() != Some(&b'0')
                && (whole != b"0" || fraction.iter().position(|byte| *byte != b'0').is_some_and(|at| at < 6))
                && digits.len() <= 16
        }
    }
}

/// `Number.prototype.toString` of ECMAScript.
pub(crate) fn write_double(out: &mut Vec<u8>, number: f64) {
    if number == 0.0 {
        return out.push(b'0');
    }
    if number < 0.0 {
        out.push(b'-');
    }
    let mut room = [0; 32];
    let mut written = exponential(&mut room, number.abs(), None);
    let count = written.iter().take_while(|byte| **byte != b'e').filter(|byte| **byte != b'.').count();
    let mut even = [0; 32];
    if count >= 16 {
        // Two shortest texts may be equally close. The even one is taken, as in rounding.
        let rounded = exponential(&mut even, number.abs(), Some(count - 1));
        let reads_back = std::str::from_utf8(rounded).ok().and_then(|text| text.parse::<f64>().ok());
        if reads_back == Some(number.abs()) {
            written = rounded;
        }
    }
    let e = written.iter().position(|byte| *byte == b'e').unwrap_or(written.len());
    let exponent = std::str::from_utf8(written.get(e + 1..).unwrap_or_default());
    // The position of the decimal point, counted from before the first digit.
    let point = exponent.ok().and_then(|text| text.parse::<i32>().ok()).unwrap_or_default() + 1;
    let mut digits = [0_u8; 17];
    for (place, digit) in digits.iter_mut().zip(written[..e].iter().filter(|byte| **byte != b'.')) {
        *place = *digit;
    }
    let digits = &digits[..count];
    let zeros = |out: &mut Vec<u8>, count: i32| out.extend((0..count).map(|_| b'0'));
    match point {
        _ if count as i32 <= point && point <= 21 => {
            out.extend_from_slice(digits);
            zeros(out, point - count as i32);
        }
        1..=21 => {
            let (whole, fraction) = digits.split_at(point as usize);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        -5..=0 => {
            out.extend_from_slice(b"0.");
            zeros(out, -point);
            out.extend_from_slice(digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            out.extend_from_slice(first);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
            write!(out, "e{:+}", point - 1).expect("memory takes every byte");
        }
    }
}

/// As `d.ddde±x`: with the shortest digits that read as this number, or with a given number of digits after the point.
fn exponential(room: &mut [u8; 32], number: f64, digits: Option<usize>) -> &[u8] {
    let mut rest = &mut room[..];
    let written = match digits {
        Some(digits) => write!(rest, "{number:.digits$e}"),
        None => write!(rest, "{number:e}"),
    };
    written.expect("24 bytes hold any double");
    let left = rest.len();
    &room[..32 - left]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The fast check must agree with the full algorithm.
        #[test]
        fn the_short_way_and_the_long_agree(text in "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,12})?(e-?[0-9])?") {
            if is_canonical(&text) {
                let mut long = Vec::new();
                write_double(&mut long, text.parse().unwrap());
                prop_assert_eq!(String::from_utf8(long).unwrap(), text);
            }
        }
    }

    #[test]
    fn most_numbers_go_the_short_way() {
        for text in ["0", "7", "-12", "123456789012345", "0.5", "-1.25", "0.000001", "12345.6789"] {
            assert!(is_canonical(text), "{text}");
        }
        for text in ["-0", "1.0", "0.0", "1e2", "0.0000001", "1234567890123456", "0.50", "-0.0"] {
            assert!(!is_canonical(text), "{text}");
        }
    }
}
