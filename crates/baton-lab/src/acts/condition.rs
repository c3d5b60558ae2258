//! `until` of a repeated step: `path == value`, `path != value`, `path in [a, b]`.

use serde_json::Value;

use super::path;

#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    path: String,
    is: Is,
}

#[derive(Debug, Clone, PartialEq)]
enum Is {
    Equal(Value),
    Unequal(Value),
    In(Vec<Value>),
}

impl Condition {
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("`{text}` is no condition; write `path == value`, `path != value` or `path in [a, b]`")
        };
        let split = |operator: &str| {
            let (path, value) = text.split_once(operator)?;
            Some((path.trim().to_owned(), value.trim()))
        };
        if let Some((path, value)) = split("==") {
            return Ok(Condition { path, is: Is::Equal(literal(value)) });
        }
        if let Some((path, value)) = split("!=") {
            return Ok(Condition { path, is: Is::Unequal(literal(value)) });
        }
        let (path, list) = split(" in ").ok_or_else(bad)?;
        let list = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).ok_or_else(bad)?;
        Ok(Condition { path, is: Is::In(list.split(',').map(|item| literal(item.trim())).collect()) })
    }

    /// A path without a value is unequal to everything.
    pub fn is_met(&self, root: &Value) -> Result<bool, String> {
        let actual = path::one(root, &self.path)?;
        Ok(match &self.is {
            Is::Equal(value) => actual == Some(value),
            Is::Unequal(value) => actual != Some(value),
            Is::In(values) => actual.is_some_and(|actual| values.contains(actual)),
        })
    }
}

/// Unquoted words are text; numbers, true, false and null are JSON values.
fn literal(text: &str) -> Value {
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    match quoted('"').or_else(|| quoted('\'')) {
        Some(inner) => Value::String(inner.to_owned()),
        None => match serde_json::from_str(text) {
            Ok(value @ (Value::Bool(_) | Value::Null | Value::Number(_))) => value,
            _ => Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_are_met_or_not() {
        let root = json!({"status": {"state": "DONE"}, "n": 3, "ok": true});
        for (text, met) in [
            ("status.state == DONE", true),
            ("status.state == \"DONE\"", true),
            ("status.state != DONE", false),
            ("status.state in [OPEN, DONE]", true),
            ("status.state in [OPEN]", false),
            ("n == 3", true),
            ("n == \"3\"", false),
            ("ok == true", true),
            ("none == x", false),
            ("none != x", true),
            ("none in [x]", false),
        ] {
            assert_eq!(Condition::parse(text).unwrap().is_met(&root), Ok(met), "{text}");
        }
        for bad in ["status.state", "a in b", ""] {
            Condition::parse(bad).unwrap_err();
        }
    }
}
