//! One table: expectation, actual (or missing), met or not.

use serde_json::json;

use super::*;

#[test]
fn expectations_mean_what_the_format_says() {
    let m = None::<Value>;
    for (expected, actual, met) in [
        (json!("a"), Some(json!("a")), true),
        (json!("a"), Some(json!("A")), false),
        (json!("1"), Some(json!(1)), false),
        (json!(1), Some(json!(1.0)), true),
        (json!(null), Some(json!(null)), true),
        (json!(null), m.clone(), false),
        (json!([1]), Some(json!([1, 2])), true),
        (json!([1, 2]), Some(json!([1])), false),
        (json!({"a": 1}), Some(json!({"a": 1, "b": 2})), true),
        (json!({"a": 1}), Some(json!([])), false),
        (json!({}), Some(json!({"a": 1})), true),
        (json!({}), m.clone(), false),
        (json!({"type": "string"}), Some(json!("x")), true),
        (json!({"type": "number"}), Some(json!("x")), false),
        (json!({"type": "null"}), Some(json!(null)), true),
        (json!({"type": "string"}), m.clone(), false),
        // A member called `type`.
        (json!({"type": {"contains": "x"}, "title": "t"}), Some(json!({"type": "axb", "title": "t"})), true),
        (json!({"type": "about:blank"}), Some(json!({"type": "about:blank"})), true),
        (json!({"exists": true}), Some(json!(null)), true),
        (json!({"exists": true}), m.clone(), false),
        (json!({"exists": false}), m.clone(), true),
        (json!({"absent": true}), m.clone(), true),
        (json!({"absent": true}), Some(json!(null)), false),
        (json!({"a": {"absent": true}}), Some(json!({})), true),
        (json!({"contains": "b"}), Some(json!("abc")), true),
        (json!({"contains": "b"}), Some(json!(["b"])), false),
        (json!({"starts_with": "a"}), Some(json!("abc")), true),
        (json!({"ends_with": "a"}), Some(json!("abc")), false),
        (json!({"matches": "^\\d{4}-"}), Some(json!("2026-11")), true),
        (json!({"matches": "^\\d{4}-"}), Some(json!("٢٠٢٦-11")), false),
        (json!({"matches": "("}), Some(json!("(")), false),
        (json!({"gte": 1, "lt": 3}), Some(json!(2)), true),
        (json!({"gte": 1, "lt": 3}), Some(json!(3)), false),
        (json!({"gt": 1}), Some(json!("2")), false),
        (json!({"count": 2}), Some(json!([1, 2])), true),
        (json!({"count_gte": 1}), Some(json!([])), false),
        (json!({"count_lte": 1}), Some(json!([1])), true),
        (json!({"count": 1}), Some(json!("x")), false),
        (json!({"one_of": ["a", "b"]}), Some(json!("b")), true),
        (json!({"one_of": [{"a": 1}, {"b": {"exists": true}}]}), Some(json!({"b": 0})), true),
        (json!({"one_of": ["a"]}), m.clone(), false),
        (json!({"any_of": [{"absent": true}, {"count": 0}]}), m.clone(), true),
        (json!({"any_of": [{"absent": true}, {"count": 0}]}), Some(json!([])), true),
        (json!({"any_of": [{"absent": true}, {"count": 0}]}), Some(json!([1])), false),
        (json!({"all_of": [{"type": "string"}, {"contains": "x"}]}), Some(json!("x")), true),
        (json!({"all_of": [{"type": "string"}, {"contains": "x"}]}), Some(json!("y")), false),
        (json!({"not": "a"}), Some(json!("b")), true),
        (json!({"not": {"exists": true}}), m.clone(), true),
        (json!({"items": {"type": "string"}}), Some(json!([])), true),
        (json!({"items": {"type": "string"}}), Some(json!(["a", 1])), false),
        (json!({"items": ["a"]}), Some(json!(["a", 1])), true),
        (json!({"type": "array", "count_gte": 1}), Some(json!([1])), true),
        (json!({"type": "array", "count_gte": 2}), Some(json!([1])), false),
    ] {
        assert_eq!(check(&expected, actual.as_ref()).is_ok(), met, "{expected} against {actual:?}");
    }
}

#[test]
fn a_mismatch_says_where_what_and_what_instead() {
    let expected = json!({"task": {"status": {"state": "DONE"}, "artifacts": {"count_gte": 1}}});
    let actual = json!({"task": {"status": {"state": "OPEN"}, "artifacts": []}});
    let found = check(&expected, Some(&actual)).unwrap_err();
    assert_eq!(found.path, "task.artifacts");
    assert_eq!((found.expected.as_str(), found.actual.as_str()), ("at least 1 elements", "[]"));
    let found = check(&json!([{"a": 1}]), Some(&json!([{"b": 1}]))).unwrap_err();
    assert_eq!((found.path.as_str(), found.actual.as_str()), ("[0].a", "missing"));
}

#[test]
fn collections_count_their_nodes() {
    let source = json!({"tasks": [{"id": 1}, {"id": 2}]});
    let named = |json: Value| -> Named { serde_json::from_value(json).unwrap() };
    for (assertion, met) in [
        (json!({"any": {"path": "tasks[*].id", "match": 2}}), true),
        (json!({"any": {"path": "tasks[*].id", "match": 3}}), false),
        (json!({"any": {"path": "none[*]", "match": 3}}), false),
        (json!({"all": {"path": "tasks[*]", "match": {"id": {"gte": 1}}}}), true),
        (json!({"all": {"path": "tasks[*].id", "match": 1}}), false),
        (json!({"all": {"path": "none[*]", "match": 1}}), true),
        (json!({"none": {"path": "tasks[*].id", "match": 3}}), true),
        (json!({"none": {"path": "tasks[*].id", "match": 1}}), false),
        (json!({"path": "tasks[0].id", "match": 1}), true),
        (json!({"path": "tasks[9].id", "match": {"absent": true}}), true),
    ] {
        assert_eq!(super::named(&named(assertion.clone()), &source).is_ok(), met, "{assertion}");
    }
}
