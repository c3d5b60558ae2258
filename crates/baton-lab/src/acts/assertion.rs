//! Evaluates expectations. "Missing" is a value of its own, different from null.

use regex::Regex;
use serde_json::{Map, Value};

use super::document::{Named, Nodes};
use super::path;

/// A difference between the expected and the actual value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path from the assertion's root; empty for the root itself.
    pub path: String,
    pub expected: String,
    pub actual: String,
}

pub type Checked = Result<(), Mismatch>;

const TYPES: &[&str] = &["string", "number", "boolean", "array", "object", "null"];
const OPERATORS: &[&str] = &[
    "type",
    "exists",
    "absent",
    "contains",
    "matches",
    "starts_with",
    "ends_with",
    "gte",
    "lte",
    "gt",
    "lt",
    "count",
    "count_gte",
    "count_lte",
    "one_of",
    "all_of",
    "any_of",
    "not",
    "items",
];

/// Longest text of a value in a report.
const MOST_SHOWN: usize = 400;

/// Checks `actual` against the expectation. `None` is a missing member.
pub fn check(expected: &Value, actual: Option<&Value>) -> Checked {
    at("", expected, actual)
}

fn at(path: &str, expected: &Value, actual: Option<&Value>) -> Checked {
    let differs = || Err(mismatch(path, show(expected), actual));
    match expected {
        Value::Object(map) => {
            let (operators, members): (Vec<_>, Vec<_>) =
                map.iter().partition(|(name, operand)| is_operator(name, operand, map));
            for (name, operand) in operators {
                operator(path, name, operand, actual)?;
            }
            if members.is_empty() && !map.is_empty() {
                return Ok(());
            }
            let Some(object) = actual.and_then(Value::as_object) else {
                return Err(mismatch(path, "an object".to_owned(), actual));
            };
            members
                .into_iter()
                .try_for_each(|(name, expected)| at(&join(path, name), expected, object.get(name)))
        }
        Value::Array(items) => {
            let Some(array) = actual.and_then(Value::as_array) else {
                return Err(mismatch(path, "an array".to_owned(), actual));
            };
            let (least, there) = (items.len(), array.len());
            if there < least {
                let actual = format!("{there}: {}", show_opt(actual));
                return Err(Mismatch {
                    path: path.to_owned(),
                    expected: format!("at least {least} elements"),
                    actual,
                });
            }
            (0..).zip(items.iter().zip(array)).try_for_each(|(index, (expected, actual)): (usize, _)| {
                at(&format!("{path}[{index}]"), expected, Some(actual))
            })
        }
        scalar => match actual {
            Some(actual) if equal(scalar, actual) => Ok(()),
            _ => differs(),
        },
    }
}

/// Keys such as `type` can also be members: a `type` whose value is not a type name is a member.
fn is_operator(name: &str, operand: &Value, map: &Map<String, Value>) -> bool {
    if !OPERATORS.contains(&name) {
        return false;
    }
    match name {
        "type" => operand.as_str().is_some_and(|word| TYPES.contains(&word)),
        "exists" | "absent" => operand.is_boolean(),
        "contains" | "matches" | "starts_with" | "ends_with" => operand.is_string(),
        "gte" | "lte" | "gt" | "lt" => operand.is_number(),
        "count" | "count_gte" | "count_lte" => operand.is_u64(),
        "one_of" | "all_of" | "any_of" => operand.is_array(),
        // Their operands may have any form; next to other members they are taken for members.
        _ => map.keys().all(|key| OPERATORS.contains(&key.as_str())),
    }
}

fn operator(path: &str, name: &str, operand: &Value, actual: Option<&Value>) -> Checked {
    let number = || actual.and_then(Value::as_f64).zip(operand.as_f64());
    let text = || actual.and_then(Value::as_str).zip(operand.as_str());
    let length = || actual.and_then(Value::as_array).map(Vec::len).zip(operand.as_u64());
    let met = match name {
        "type" => actual.is_some_and(|actual| Some(type_of(actual)) == operand.as_str()),
        "exists" => actual.is_some() == (operand == &Value::Bool(true)),
        "absent" => actual.is_none() == (operand == &Value::Bool(true)),
        "contains" => text().is_some_and(|(actual, part)| actual.contains(part)),
        "starts_with" => text().is_some_and(|(actual, part)| actual.starts_with(part)),
        "ends_with" => text().is_some_and(|(actual, part)| actual.ends_with(part)),
        "matches" => {
            let Some((actual, pattern)) = text() else {
                return Err(mismatch(path, format!("a string that matches /{}/", show(operand)), actual));
            };
            // In the regex dialect of the files, `\d` means ASCII digits.
            let pattern = pattern.replace("\\d", "[0-9]");
            match Regex::new(&pattern) {
                Ok(regex) => regex.is_match(actual),
                Err(error) => {
                    return Err(mismatch(path, format!("a readable pattern ({error})"), None));
                }
            }
        }
        "gte" => number().is_some_and(|(actual, bound)| actual >= bound),
        "lte" => number().is_some_and(|(actual, bound)| actual <= bound),
        "gt" => number().is_some_and(|(actual, bound)| actual > bound),
        "lt" => number().is_some_and(|(actual, bound)| actual < bound),
        "count" => length().is_some_and(|(length, wanted)| length as u64 == wanted),
        "count_gte" => length().is_some_and(|(length, wanted)| length as u64 >= wanted),
        "count_lte" => length().is_some_and(|(length, wanted)| length as u64 <= wanted),
        "one_of" => alternatives(operand).iter().any(|option| at(path, option, actual).is_ok()),
        "any_of" => alternatives(operand).iter().any(|option| at(path, option, actual).is_ok()),
        "all_of" => return alternatives(operand).iter().try_for_each(|each| at(path, each, actual)),
        "not" => at(path, operand, actual).is_err(),
        "items" => return items(path, operand, actual),
        _ => false,
    };
    if met { Ok(()) } else { Err(mismatch(path, wanted(name, operand), actual)) }
}

fn alternatives(operand: &Value) -> &[Value] {
    operand.as_array().map_or(&[], Vec::as_slice)
}

/// A list is compared by position; a map applies to every element.
fn items(path: &str, operand: &Value, actual: Option<&Value>) -> Checked {
    if operand.is_array() {
        return at(path, operand, actual);
    }
    let Some(array) = actual.and_then(Value::as_array) else {
        return Err(mismatch(path, "an array".to_owned(), actual));
    };
    (0..)
        .zip(array)
        .try_for_each(|(index, actual): (usize, _)| at(&format!("{path}[{index}]"), operand, Some(actual)))
}

/// An assertion on the result of an earlier step, `source`.
pub fn named(assertion: &Named, source: &Value) -> Checked {
    let broken = |reason: String| mismatch("", reason, None);
    if let Some(expected) = &assertion.matches {
        let path = assertion.path.as_deref().unwrap_or_default();
        let node = path::one(source, path).map_err(broken)?;
        return at(path, expected, node);
    }
    let nodes = |nodes: &Nodes| {
        let found = path::every(source, &nodes.path).map_err(broken)?;
        let met = found.iter().filter(|node| at("", &nodes.matches, Some(node)).is_ok()).count();
        Ok::<_, Mismatch>((found.len(), met))
    };
    let failed = |nodes: &Nodes, which: &str, (found, met): (usize, usize)| Mismatch {
        path: nodes.path.clone(),
        expected: format!("{which} node to be {}", show(&nodes.matches)),
        actual: format!("{met} of {found} are"),
    };
    if let Some(any) = &assertion.any {
        let counts = nodes(any)?;
        if counts.1 == 0 {
            return Err(failed(any, "at least one", counts));
        }
    }
    if let Some(all) = &assertion.all {
        let counts = nodes(all)?;
        if counts.0 != counts.1 {
            return Err(failed(all, "every", counts));
        }
    }
    if let Some(none) = &assertion.none {
        let counts = nodes(none)?;
        if counts.1 != 0 {
            return Err(failed(none, "no", counts));
        }
    }
    Ok(())
}

/// 1 equals 1.0; nothing else is converted.
fn equal(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Number(one), Value::Number(two)) => one == two || one.as_f64() == two.as_f64(),
        _ => expected == actual,
    }
}

pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn wanted(name: &str, operand: &Value) -> String {
    match (name, operand) {
        ("exists", Value::Bool(true)) | ("absent", Value::Bool(false)) => "to be there".to_owned(),
        ("exists" | "absent", _) => "not to be there".to_owned(),
        ("type", Value::String(kind)) => format!("a value of type {kind}"),
        ("count", _) => format!("exactly {operand} elements"),
        ("count_gte", _) => format!("at least {operand} elements"),
        ("count_lte", _) => format!("at most {operand} elements"),
        ("one_of" | "any_of", _) => format!("one of {}", show(operand)),
        ("not", _) => format!("anything but {}", show(operand)),
        _ => format!("{} {}", name.replace('_', " "), show(operand)),
    }
}

fn mismatch(path: &str, expected: String, actual: Option<&Value>) -> Mismatch {
    Mismatch { path: path.to_owned(), expected, actual: show_opt(actual) }
}

fn show_opt(value: Option<&Value>) -> String {
    value.map_or_else(|| "missing".to_owned(), show)
}

/// JSON, shortened if it is long.
pub fn show(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > MOST_SHOWN {
        let cut = (0..=MOST_SHOWN).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests;
