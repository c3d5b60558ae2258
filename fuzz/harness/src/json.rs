//! Mutations that understand JSON: whole values, members and items are moved, so that most results are still JSON and
//! reach the code behind the parser.

use crate::random::Random;

/// The position of a value, and where its item begins: at the key of a member, else at the value itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) item: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The values and keys of a text. It need not be valid JSON: what cannot be parsed is skipped.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) values: Vec<Value>,
    pub(crate) keys: Vec<(usize, usize)>,
}

pub(crate) fn places(text: &[u8]) -> Places {
    let mut places = Places::default();
    // Values that are not closed yet, as indices.
    let mut open = Vec::new();
    let (mut at, mut item) = (0, None);
    while at < text.len() {
        let start = at;
        match text[at] {
            b'"' => {
                at = string_end(text, at);
                let next = text[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') && !open.is_empty() {
                    places.keys.push((start, at));
                    item = Some(start);
                } else {
                    places.values.push(Value { item: item.take().unwrap_or(start), start, end: at });
                }
            }
            b'{' | b'[' => {
                open.push(places.values.len());
                places.values.push(Value { item: item.take().unwrap_or(start), start, end: text.len() });
                at += 1;
            }
            b'}' | b']' => {
                at += 1;
                if let Some(index) = open.pop() {
                    places.values[index].end = at;
                }
            }
            byte if is_word(byte) => {
                at += text[at..].iter().take_while(|byte| is_word(**byte)).count();
                places.values.push(Value { item: item.take().unwrap_or(start), start, end: at });
            }
            _ => at += 1,
        }
    }
    places
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Values that are hard for parsers.
const ODD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "1.0",
    "1e400",
    "-1e-400",
    "2147483648",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\"\\n\\r\\u2028\"",
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "[{}]",
    "{\"\":null}",
    "{\"a\":1,\"a\":2}",
    "\"9999-12-31T23:59:59.999Z\"",
    "\"0001-01-01T00:00:00Z\"",
    "\"2026-02-30T00:00:00Z\"",
    "\"2016-12-31T23:59:60+23:59\"",
    "\"TASK_STATE_UNSPECIFIED\"",
    "\"unknown\"",
    "\"5\"",
    "\"..\"",
    "\"%2e%2e\"",
    "\"http://[::1]:0/\"",
    "\"AA==\"",
    "\"AA\"",
    "\"-_-_\"",
    "5e0",
    "3",
    "1763200000000",
    "\"*/*\"",
];

/// Inserted into strings.
const ODD_TEXT: &[&str] = &[
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\n",
    "\\\"",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "é",
    "\u{10ffff}",
    "%",
    "/",
    " ",
];

/// Pieces of other inputs.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) values: Vec<Vec<u8>>,
    /// Member or item with its key.
    pub(crate) items: Vec<Vec<u8>>,
}

impl Pool {
    pub(crate) fn add(&mut self, text: &[u8]) {
        const LONGEST: usize = 2048;
        let places = places(text);
        let new = |into: &mut Vec<Vec<u8>>, piece: &[u8]| {
            if piece.len() <= LONGEST && !into.iter().any(|known| known == piece) {
                into.push(piece.to_owned());
            }
        };
        for (start, end) in places.keys {
            new(&mut self.keys, &text[start..end]);
        }
        for Value { item, start, end } in places.values {
            new(&mut self.values, &text[start..end]);
            if item < start {
                new(&mut self.items, &text[item..end]);
            }
        }
    }
}

/// Makes one change; `false` if there is no JSON here.
pub(crate) fn change(random: &mut Random, pool: &Pool, text: &mut Vec<u8>) -> bool {
    let Places { values, keys } = places(text);
    let Some(&Value { item, start, end }) = random.pick(&values) else { return false };
    let value = |random: &mut Random| match random.below(4) {
        0 => text[values[random.below(values.len())].range()].to_vec(),
        1 => random.pick(&pool.values).cloned().unwrap_or_default(),
        _ => random.pick(ODD).map(|odd| odd.as_bytes().to_vec()).unwrap_or_default(),
    };
    match random.below(9) {
        0 | 1 => {
            let other = value(random);
            text.splice(start..end, other);
        }
        2 => remove_item(text, item, end),
        3 => {
            let again = [b",", &text[item..end]].concat();
            text.splice(end..end, again);
        }
        4 => {
            let Some(&(start, end)) = random.pick(&keys) else { return false };
            let own = random.pick(&keys).map(|(start, end)| text[*start..*end].to_vec());
            let other = if random.one_in(3) { own } else { random.pick(&pool.keys).cloned() };
            text.splice(start..end, other.unwrap_or_default());
        }
        5 => {
            let deep = if random.one_in(8) { 1 + random.below(200) } else { 1 };
            let (before, after) = if random.one_in(2) { ("[", "]") } else { ("{\"a\":", "}") };
            let wrapped =
                [before.repeat(deep).as_bytes(), &text[start..end], after.repeat(deep).as_bytes()].concat();
            text.splice(start..end, wrapped);
        }
        6 => {
            let strings: Vec<_> = values.iter().filter(|value| text[value.start] == b'"').collect();
            let Some(value) = random.pick(&strings) else { return false };
            let inside = value.start + 1 + random.below((value.end - value.start).saturating_sub(1).max(1));
            let odd = random.pick(ODD_TEXT).copied().unwrap_or_default();
            let many = if random.one_in(30) { 300 } else { 1 };
            let inside = inside.min(text.len());
            text.splice(inside..inside, odd.repeat(many).into_bytes());
        }
        7 => {
            // Insert a member of another object at the front of this one.
            let objects: Vec<_> = values.iter().filter(|value| text[value.start] == b'{').collect();
            let Some(object) = random.pick(&objects) else { return false };
            let mut member = random.pick(&pool.items).cloned().unwrap_or_default();
            let empty =
                text[object.start + 1..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
            if !empty && !member.is_empty() {
                member.push(b',');
            }
            text.splice(object.start + 1..object.start + 1, member);
        }
        _ => {
            let space = [&b" "[..], b"\n", b"\r\n\t", b"\n\n"][random.below(4)];
            let at = if random.one_in(2) { start } else { end };
            text.splice(at..at, space.iter().copied());
        }
    }
    true
}

/// Removes an item together with one of the commas around it.
fn remove_item(text: &mut Vec<u8>, start: usize, end: usize) {
    let blank = |byte: &&u8| byte.is_ascii_whitespace();
    let behind = end + text[end..].iter().take_while(blank).count();
    let before = start - text[..start].iter().rev().take_while(blank).count();
    if text.get(behind) == Some(&b',') {
        text.drain(start..=behind);
    } else if before > 0 && text[before - 1] == b',' {
        text.drain(before - 1..end);
    } else {
        text.drain(start..end);
    }
}

impl Value {
    fn range(self) -> std::ops::Range<usize> {
        self.start..self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_keys_are_found() {
        let text = br#" {"a": [1, "x"], "b\"": {}} tail"#;
        let found = places(text);
        let shown = |(start, end): (usize, usize)| std::str::from_utf8(&text[start..end]).unwrap();
        assert_eq!(found.keys.iter().copied().map(shown).collect::<Vec<_>>(), [r#""a""#, r#""b\"""#]);
        let values: Vec<_> = found.values.iter().map(|value| shown((value.start, value.end))).collect();
        assert_eq!(values, [r#"{"a": [1, "x"], "b\"": {}}"#, r#"[1, "x"]"#, "1", r#""x""#, "{}", "tail"]);
        assert_eq!(shown((found.values[1].item, found.values[1].end)), r#""a": [1, "x"]"#);
    }

    #[test]
    fn an_item_goes_with_one_comma() {
        for (text, item, left) in [("[1,2]", 1..2, "[2]"), ("[1,2]", 3..4, "[1]"), ("[1]", 1..2, "[]")] {
            let mut text = text.as_bytes().to_vec();
            remove_item(&mut text, item.start, item.end);
            assert_eq!(text, left.as_bytes());
        }
    }

    /// No input may make it fail: cut off, unbalanced, empty.
    #[test]
    fn changes_take_any_text() {
        let (mut random, mut pool) = (Random::new(1), Pool::default());
        pool.add(br#"{"k":{"l":[1]}}"#);
        for text in ["", "\"", "\"\\", "{\"a\"", "]]}", "[[[", "{\"a\":}", "a b", "{\"\":\"", "\u{e9}"] {
            for _ in 0..500 {
                let mut text = text.as_bytes().to_vec();
                for _ in 0..4 {
                    change(&mut random, &pool, &mut text);
                }
            }
        }
    }
}
