//! Differences between two JSON documents by what they mean: the order of members does not count, items with an `id` are
//! compared with those of the same id, and lists of texts are sets.

use std::collections::BTreeSet;

use serde_json::Value;

/// A place where two documents differ. What is missing on one side is `None`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

pub(super) fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(inner, one.get(name), other.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => lists(&path, one, other, found),
        _ => found.push(Difference { path, before: before.cloned(), after: after.cloned() }),
    }
}

fn lists(path: &str, one: &[Value], other: &[Value], found: &mut Vec<Difference>) {
    let all = || one.iter().chain(other);
    if all().all(Value::is_string) {
        for item in one.iter().filter(|item| !other.contains(item)) {
            found.push(Difference { path: path.to_owned(), before: Some(item.clone()), after: None });
        }
        for item in other.iter().filter(|item| !one.contains(item)) {
            found.push(Difference { path: path.to_owned(), before: None, after: Some(item.clone()) });
        }
        return;
    }
    if all().all(|item| id_of(item).is_some()) {
        let ids: Vec<&str> = all().filter_map(id_of).collect();
        let mut seen = BTreeSet::new();
        for id in ids.into_iter().filter(|id| seen.insert(*id)) {
            let with_id = |list: &[Value]| list.iter().find(|item| id_of(item) == Some(id)).cloned();
            compare(format!("{path}[{id}]"), with_id(one).as_ref(), with_id(other).as_ref(), found);
        }
        return;
    }
    for at in 0..one.len().max(other.len()) {
        compare(format!("{path}[{at}]"), one.get(at), other.get(at), found);
    }
}

/// The name of an item: a skill's id, an extension's URI.
fn id_of(item: &Value) -> Option<&str> {
    item.get("id").or_else(|| item.get("uri"))?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_and_position_make_no_difference_where_they_mean_nothing() {
        let one = json!({"name": "a", "skills": [{"id": "x", "tags": ["1", "2"]}, {"id": "y"}]});
        let other = json!({"skills": [{"id": "y"}, {"id": "x", "tags": ["2", "1"]}], "name": "a"});
        assert_eq!(differences(&one, &other), []);
    }

    #[test]
    fn every_difference_has_its_place() {
        let one = json!({"name": "a", "skills": [{"id": "x", "tags": ["1", "2"]}, {"id": "y"}],
            "supportedInterfaces": [{"url": "1"}, {"url": "2"}], "version": "1"});
        let other = json!({"name": "b", "skills": [{"id": "x", "tags": ["2", "3"]}, {"id": "z"}],
            "supportedInterfaces": [{"url": "2"}, {"url": "1"}], "iconUrl": ""});
        let found: Vec<_> = differences(&one, &other)
            .into_iter()
            .map(|it| {
                let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
                format!("{} {} {}", it.path, text(it.before), text(it.after))
            })
            .collect();
        assert_eq!(
            found,
            [
                r#"iconUrl - """#,
                r#"name "a" "b""#,
                r#"skills[x].tags "1" -"#,
                r#"skills[x].tags - "3""#,
                r#"skills[y] {"id":"y"} -"#,
                r#"skills[z] - {"id":"z"}"#,
                r#"supportedInterfaces[0].url "1" "2""#,
                r#"supportedInterfaces[1].url "2" "1""#,
                r#"version "1" -"#,
            ]
        );
    }
}
