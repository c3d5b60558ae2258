//! Changes to JSON, said as data: where, and what becomes of it.

use serde_json::Value;

/// One change. A path is member names with dots between; `*` is every member or element, a number one element. What is
/// not there is left alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Edit {
    Remove(&'static str),
    /// The second is JSON.
    Set(&'static str, &'static str),
    Rename(&'static str, &'static str),
    Map(&'static str, fn(&mut Value)),
}

impl Edit {
    pub(crate) fn apply(self, value: &mut Value) {
        match self {
            Self::Map(path, change) => visit(value, &steps(path), &mut |found| change(found)),
            Self::Remove(path) => parents(value, path, |parent, name| {
                take(parent, name);
            }),
            Self::Set(path, json) => {
                let new: Value = serde_json::from_str(json).expect("defects are written in JSON");
                parents(value, path, |parent, name| put(parent, name, new.clone()));
            }
            Self::Rename(path, to) => parents(value, path, |parent, name| {
                if let Some(old) = take(parent, name) {
                    put(parent, to, old);
                }
            }),
        }
    }
}

fn steps(path: &str) -> Vec<&str> {
    path.split('.').filter(|step| !step.is_empty()).collect()
}

/// Calls `change` with whatever holds the last step of the path.
fn parents(value: &mut Value, path: &str, mut change: impl FnMut(&mut Value, &str)) {
    let steps = steps(path);
    let Some((last, before)) = steps.split_last() else { return };
    visit(value, before, &mut |parent| change(parent, last));
}

fn visit(value: &mut Value, steps: &[&str], change: &mut dyn FnMut(&mut Value)) {
    let Some((step, rest)) = steps.split_first() else { return change(value) };
    match value {
        Value::Object(members) if *step == "*" => {
            members.values_mut().for_each(|member| visit(member, rest, change));
        }
        Value::Object(members) => {
            if let Some(member) = members.get_mut(*step) {
                visit(member, rest, change);
            }
        }
        Value::Array(items) if *step == "*" => items.iter_mut().for_each(|item| visit(item, rest, change)),
        Value::Array(items) => {
            let found = step.parse().ok().and_then(|index: usize| items.get_mut(index));
            found.into_iter().for_each(|item| visit(item, rest, change));
        }
        _ => {}
    }
}

fn take(parent: &mut Value, name: &str) -> Option<Value> {
    match parent {
        Value::Object(members) => members.remove(name),
        Value::Array(items) => {
            let index = name.parse().ok().filter(|index: &usize| *index < items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

fn put(parent: &mut Value, name: &str, new: Value) {
    match parent {
        Value::Object(members) => {
            members.insert(name.to_owned(), new);
        }
        Value::Array(items) => {
            if let Some(item) = name.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                *item = new;
            }
        }
        _ => {}
    }
}

#[test]
fn edits_find_their_place() {
    use serde_json::json;
    let value = json!({"a": [{"x": 1, "y": 2}, {"x": 3}], "b": {"c": "d"}});
    let edited = |edit: Edit| {
        let mut value = value.clone();
        edit.apply(&mut value);
        value
    };
    assert_eq!(edited(Edit::Remove("a.*.x")), json!({"a": [{"y": 2}, {}], "b": {"c": "d"}}));
    assert_eq!(edited(Edit::Remove("a.0")), json!({"a": [{"x": 3}], "b": {"c": "d"}}));
    assert_eq!(edited(Edit::Set("a.1.y", "[]"))["a"][1], json!({"x": 3, "y": []}));
    assert_eq!(edited(Edit::Set("no.where", "1")), value);
    assert_eq!(edited(Edit::Rename("b.c", "e")), json!({"a": value["a"], "b": {"e": "d"}}));
    assert_eq!(edited(Edit::Map("", |value| *value = json!([value])))[0], value);
    assert_eq!(edited(Edit::Map("*.c", |value| *value = json!(0)))["b"]["c"], 0);
}
