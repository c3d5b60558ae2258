//! Compares objects regardless of default values, which JSON may omit or contain.

use serde_json::{Map, Value};

/// Members with free content, in which no value is a default.
const FREE: &[&str] = &["metadata", "data", "params", "header"];

/// The object without members that have a default value.
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| {
                    let free = FREE.contains(&name.as_str());
                    (name.clone(), if free { member.clone() } else { plain(member) })
                })
                .filter(|(name, member)| !says_nothing(member) || name == "data")
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) => false,
    }
}

pub(super) fn same(one: Option<&Value>, two: Option<&Value>) -> bool {
    let plain = |value: Option<&Value>| value.map(plain).filter(|value| !says_nothing(value));
    plain(one) == plain(two)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_say_nothing_except_in_what_is_the_users() {
        let short = json!({"id": "a", "parts": [{"text": "x"}, {"data": null}], "metadata": {"a": ""}});
        let long = json!({"id": "a", "name": "", "extensions": [], "append": false,
            "parts": [{"text": "x", "filename": ""}, {"data": null}], "metadata": {"a": ""}});
        assert!(same(Some(&short), Some(&long)));
        assert!(same(None, Some(&json!([]))) && same(Some(&json!("")), None));
        assert!(!same(Some(&short), Some(&json!({"id": "b"}))) && !same(None, Some(&json!([1]))));
        let other = json!({"id": "a", "parts": [{"text": "x"}, {"data": null}], "metadata": {"a": "1"}});
        assert!(!same(Some(&short), Some(&other)));
    }
}
