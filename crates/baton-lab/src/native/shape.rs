//! Describes objects: their members, types and which are required. A small table language instead of JSON Schema: the
//! specification is a `.proto`, and its rules (one-of, REQUIRED, times, bytes) are few.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::Value;

use crate::acts::assertion::{Mismatch, show};
use crate::case::{Failure, Verdict};
use crate::native::Done;

/// An object of the specification.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) members: &'static [(&'static str, Need, Kind)],
    /// Exactly one of these members must be present.
    pub(super) one_of: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// REQUIRED; texts and lists must not be empty.
    Filled,
    /// REQUIRED, but may be empty.
    There,
    May,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text,
    Flag,
    Number,
    /// ISO 8601 in UTC, ending in `Z`.
    Time,
    /// ISO 8601 with any zone, or none: the older generations require no more.
    Iso,
    /// Standard base64.
    Bytes,
    /// An object with free content.
    Free,
    /// An object or a list with free content.
    Structured,
    Word(&'static [&'static str]),
    Object(&'static Shape),
    List(&'static Kind),
    /// An object with free names and values of one kind.
    Map(&'static Kind),
    /// The member of this name selects the shape.
    Tagged(&'static str, &'static [(&'static str, &'static Shape)]),
}

/// Defines objects as a table: members that must not be empty, that must be present, that are optional.
///
/// ```text
/// PART = text | raw { May text Text, raw Bytes; }         exactly one of `text` and `raw`
/// TASK {
///     Filled id Text, parts [(PART)];                     a text; a list of that object
///     There state (= STATES), meta {Text};                one of some words; an object with texts of any name
///     May more (as OTHER);                                a kind that has a name
/// }
/// ```
macro_rules! shapes {
    ($($(#[$doc:meta])* $vis:vis $name:ident $(= $($one:ident)|+)? {
        $($need:ident $($member:ident $kind:tt),+;)+
    })+) => { $(
        $(#[$doc])*
        $vis static $name: $crate::native::shape::Shape = $crate::native::shape::Shape {
            members: &[$($((
                stringify!($member),
                $crate::native::shape::Need::$need,
                $crate::native::shape::kind!($kind),
            )),+),+],
            one_of: &[$($(stringify!($one)),+)?],
        };
    )+ };
}

macro_rules! kind {
    ([$inner:tt]) => {
        $crate::native::shape::Kind::List(&$crate::native::shape::kind!($inner))
    };
    ({$inner:tt}) => {
        $crate::native::shape::Kind::Map(&$crate::native::shape::kind!($inner))
    };
    ((= $words:expr)) => {
        $crate::native::shape::Kind::Word($words)
    };
    ((as $named:expr)) => {
        $named
    };
    (($shape:ident)) => {
        $crate::native::shape::Kind::Object(&$shape)
    };
    ($simple:ident) => {
        $crate::native::shape::Kind::$simple
    };
}

pub(super) use {kind, shapes};

/// Most faults in one message.
const MOST_FAULTS: usize = 8;

/// All differences between `value` and the shape.
pub(super) fn faults(shape: &Shape, value: &Value, path: &str) -> Vec<Mismatch> {
    let mut found = Vec::new();
    object(shape, value, path, &mut found);
    found
}

/// Members that the shape does not have, which strict readers refuse.
pub(super) fn strangers(shape: &Shape, value: &Value, path: &str) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for (name, member) in value.as_object().into_iter().flatten() {
        let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match shape.members.iter().find(|(known, ..)| known == name) {
            Some((_, _, kind)) => found.extend(strangers_in(kind, member, &place)),
            None if shape.one_of.contains(&name.as_str()) => {}
            None => found.push(fault(&place, "no member of this name", Some(member))),
        }
    }
    found
}

fn strangers_in(kind: &Kind, value: &Value, path: &str) -> Vec<Mismatch> {
    match kind {
        Kind::Object(shape) => strangers(shape, value, path),
        Kind::List(kind) => {
            let items = value.as_array().into_iter().flatten().enumerate();
            items.flat_map(|(index, item)| strangers_in(kind, item, &format!("{path}[{index}]"))).collect()
        }
        _ => Vec::new(),
    }
}

/// All faults of a value of a kind.
pub(super) fn kind_faults(kind: &Kind, value: &Value, path: &str) -> Vec<Mismatch> {
    let mut found = Vec::new();
    value_of(kind, value, path, &mut found);
    found
}

/// Passes without faults; otherwise the failure lists them.
pub(super) fn judge(found: Vec<Mismatch>) -> Done {
    let count = found.len();
    let lines: Vec<String> = found
        .iter()
        .take(MOST_FAULTS)
        .map(|fault| format!("`{}`: expected {}, got {}", fault.path, fault.expected, fault.actual))
        .collect();
    let Some(first) = found.into_iter().next() else { return Ok(()) };
    let mut failure = Failure::of(first);
    failure.message = lines.join("; ");
    if count > MOST_FAULTS {
        failure.message += &format!("; and {} more", count - MOST_FAULTS);
    }
    Err(Verdict::Fail(failure))
}

pub(super) fn fault(path: &str, expected: &str, actual: Option<&Value>) -> Mismatch {
    let actual = actual.map_or_else(|| "missing".to_owned(), show);
    Mismatch { path: path.to_owned(), expected: expected.to_owned(), actual }
}

fn object(shape: &Shape, value: &Value, path: &str, found: &mut Vec<Mismatch>) {
    let Some(members) = value.as_object() else {
        found.push(fault(path, "an object", Some(value)));
        return;
    };
    for (name, need, kind) in shape.members {
        let place = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
        match (members.get(*name), need) {
            // ProtoJSON treats null as "not set".
            (None | Some(Value::Null), Need::May) => {}
            (None, _) => found.push(fault(&place, "to be there", None)),
            (Some(Value::String(text)), Need::Filled) if text.is_empty() => {
                found.push(fault(&place, "a text that is not empty", members.get(*name)));
            }
            (Some(Value::Array(list)), Need::Filled) if list.is_empty() => {
                found.push(fault(&place, "at least one element", members.get(*name)));
            }
            (Some(member), _) => value_of(kind, member, &place, found),
        }
    }
    let there: Vec<&str> = shape.one_of.iter().copied().filter(|name| members.contains_key(*name)).collect();
    if !shape.one_of.is_empty() && there.len() != 1 {
        found.push(Mismatch {
            path: path.to_owned(),
            expected: format!("exactly one of {}", shape.one_of.join(", ")),
            actual: if there.is_empty() { show(value) } else { there.join(" and ") },
        });
    }
}

fn value_of(kind: &Kind, value: &Value, path: &str, found: &mut Vec<Mismatch>) {
    let mut wrong = |expected: &str| found.push(fault(path, expected, Some(value)));
    match kind {
        Kind::Text if !value.is_string() => wrong("a text"),
        Kind::Flag if !value.is_boolean() => wrong("true or false"),
        Kind::Number if !value.is_number() => wrong("a number"),
        Kind::Free if !value.is_object() => wrong("an object"),
        Kind::Structured if !(value.is_object() || value.is_array()) => wrong("an object or a list"),
        Kind::Text | Kind::Flag | Kind::Number | Kind::Free | Kind::Structured => {}
        Kind::Time => {
            if !value.as_str().is_some_and(is_time) {
                wrong("a time such as 2026-01-31T12:00:00.000Z, in UTC");
            }
        }
        Kind::Iso => {
            if !value.as_str().is_some_and(is_iso) {
                wrong("a time in ISO 8601, such as 2025-07-31T12:00:00Z");
            }
        }
        Kind::Bytes => {
            if value.as_str().is_none_or(|text| STANDARD.decode(text).is_err()) {
                wrong("standard base64 with padding");
            }
        }
        Kind::Word(words) => {
            if value.as_str().is_none_or(|word| !words.contains(&word)) {
                wrong(&format!("one of {}", words.join(", ")));
            }
        }
        Kind::Object(shape) => object(shape, value, path, found),
        Kind::Tagged(tag, shapes) => {
            match shapes.iter().find(|(name, _)| value.get(*tag).and_then(Value::as_str) == Some(*name)) {
                Some((_, shape)) => object(shape, value, path, found),
                None => {
                    let names: Vec<&str> = shapes.iter().map(|(name, _)| *name).collect();
                    let place = if path.is_empty() { (*tag).to_owned() } else { format!("{path}.{tag}") };
                    found.push(fault(&place, &format!("one of {}", names.join(", ")), value.get(*tag)));
                }
            }
        }
        Kind::List(kind) => match value.as_array() {
            Some(list) => {
                for (index, element) in list.iter().enumerate() {
                    value_of(kind, element, &format!("{path}[{index}]"), found);
                }
            }
            None => wrong("a list"),
        },
        Kind::Map(kind) => match value.as_object() {
            Some(members) => {
                for (name, member) in members {
                    value_of(kind, member, &format!("{path}.{name}"), found);
                }
            }
            None => wrong("an object"),
        },
    }
}

pub(super) fn is_time(text: &str) -> bool {
    let pattern = Regex::new("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z$");
    pattern.is_ok_and(|pattern| pattern.is_match(text))
}

pub(super) fn is_iso(text: &str) -> bool {
    let pattern = Regex::new(
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$",
    );
    pattern.is_ok_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    shapes! {
        INNER {
            There n Number;
        }

        OUTER = x | y {
            Filled id Text, list [(INNER)];
            May at Time, raw Bytes, word (= &["A", "B"]), map {Flag}, free Free;
        }
    }

    #[test]
    fn every_fault_is_found_at_its_place() {
        let good = json!({"id": "a", "list": [{"n": 1}], "x": null, "at": "2026-01-31T12:00:00.123Z",
            "raw": "YQ==", "word": "B", "map": {"a_b": true}, "free": {}, "more": 1});
        assert_eq!(faults(&OUTER, &good, ""), []);
        for (member, value, places) in [
            ("id", json!(""), vec!["id"]),
            ("id", json!(1), vec!["id"]),
            ("id", json!(null), vec!["id"]),
            ("list", json!([]), vec!["list"]),
            ("list", json!({}), vec!["list"]),
            ("list", json!([{"n": 1}, {"n": "1"}, {}]), vec!["list[1].n", "list[2].n"]),
            ("at", json!("2026-01-31T12:00:00+01:00"), vec!["at"]),
            ("at", json!("2026-01-31 12:00:00Z"), vec!["at"]),
            ("at", json!(null), vec![]),
            ("raw", json!("YQ"), vec!["raw"]),
            ("word", json!("C"), vec!["word"]),
            ("map", json!({"a": 1}), vec!["map.a"]),
            ("free", json!([]), vec!["free"]),
            ("y", json!(1), vec![""]),
        ] {
            let mut bad = good.clone();
            bad[member] = value;
            let found: Vec<String> = faults(&OUTER, &bad, "").into_iter().map(|fault| fault.path).collect();
            assert_eq!(found, places, "{bad}");
        }
        assert_eq!(faults(&OUTER, &json!([]), "here")[0].path, "here");
        assert_eq!(faults(&OUTER, &json!({}), "").len(), 3);
    }

    #[test]
    fn a_tag_chooses_the_shape() {
        const TAGGED: Kind = Kind::Tagged("kind", &[("one", &ONE), ("two", &TWO)]);
        shapes! {
            ONE { There n Number; }
            TWO { There at Iso; }
            OUTER { There list [(as TAGGED)]; }
        }
        let found = |list: serde_json::Value| -> Vec<String> {
            faults(&OUTER, &json!({ "list": list }), "").into_iter().map(|fault| fault.path).collect()
        };
        let none: Vec<String> = Vec::new();
        for at in ["2025-07-31T12:00:00Z", "2025-07-31T12:00:00.123456+00:00", "2025-07-31T12:00:00"] {
            assert_eq!(found(json!([{"kind": "one", "n": 1}, {"kind": "two", "at": at}])), none);
        }
        assert_eq!(found(json!([{"kind": "two", "at": "today"}])), ["list[0].at"]);
        assert_eq!(
            found(json!([{"kind": "one"}, {"kind": "three"}, {"n": 1}])),
            ["list[0].n", "list[1].kind", "list[2].kind"]
        );
    }

    #[test]
    fn a_report_names_all_faults_up_to_a_bound() {
        judge(Vec::new()).unwrap();
        let many = (0..20).map(|n| fault(&format!("f{n}"), "to be there", None)).collect();
        let Err(Verdict::Fail(failure)) = judge(many) else { panic!("it passed") };
        assert!(failure.message.starts_with("`f0`: expected to be there, got missing; `f1`"));
        assert!(failure.message.ends_with("; and 12 more"), "{}", failure.message);
    }
}
