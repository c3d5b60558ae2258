use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn check(cases: &[(&str, Result<&str, JsonRefused>)]) {
    for (text, expected) in cases {
        let actual = JsonText::parse(text);
        assert_eq!(actual.as_ref().map(JsonText::as_str), expected.as_ref().copied(), "{text}");
    }
}

fn syntax(at: usize) -> Result<&'static str, JsonRefused> {
    Err(JsonRefused::Syntax { at })
}

fn duplicate(key: &str, at: usize) -> Result<&'static str, JsonRefused> {
    Err(JsonRefused::DuplicateKey { key: key.to_owned(), at })
}

#[test]
fn only_whitespace_outside_strings_is_dropped() {
    check(&[
        (" \t\r\n null\n", Ok("null")),
        ("{ }", Ok("{}")),
        ("[ ]", Ok("[]")),
        ("{\n  \"b\" : [ 1 , 2 ] ,\n\n  \"a\" : { }\n}", Ok(r#"{"b":[1,2],"a":{}}"#)),
        (r#"[1,2, "x  y" ]"#, Ok(r#"[1,2,"x  y"]"#)),
        (" \"é \u{2028} \u{1F600}\" ", Ok("\"é \u{2028} \u{1F600}\"")),
    ]);
}

#[test]
fn spelling_survives() {
    for text in [
        "0",
        "-0",
        "1.0",
        "1e2",
        "1E+02",
        "-0.10e-3",
        "1e999",
        "123456789012345678901234567890",
        "true",
        "false",
        r#""""#,
        r#""\u0000\u2028\r\n\/\"\\\b\f\t""#,
        r#""\ud83D\uDe00 \u00e9""#,
        r#"{"z":1,"a":2,"":3}"#,
        r#"[{"a":1},{"a":1},[{"a":{"a":1}}]]"#,
        "\"\u{7f}\u{80}\"",
    ] {
        check(&[(text, Ok(text))]);
    }
}

#[test]
fn what_is_not_json_is_refused() {
    check(&[
        ("", syntax(0)),
        (" ", syntax(1)),
        ("nul", syntax(0)),
        ("nulll", syntax(4)),
        ("True", syntax(0)),
        ("NaN", syntax(0)),
        ("\u{feff}1", syntax(0)),
        ("\u{a0}1", syntax(0)),
        ("1 2", syntax(2)),
        ("1\u{c}", syntax(1)),
        ("01", syntax(1)),
        ("+1", syntax(0)),
        ("-", syntax(1)),
        (".5", syntax(0)),
        ("1.", syntax(2)),
        ("1.e1", syntax(2)),
        ("1e", syntax(2)),
        ("1e+", syntax(3)),
        ("1e+-1", syntax(3)),
        ("'a'", syntax(0)),
        (r#""a"#, syntax(2)),
        (r#""a\"#, syntax(2)),
        (r#""\x""#, syntax(1)),
        (r#""\u12""#, syntax(1)),
        (r#""\u+123""#, syntax(1)),
        ("\"a\nb\"", syntax(2)),
        ("\"12345678\u{0}\"", syntax(9)),
        (r#""\ud800""#, syntax(1)),
        (r#""\udc00""#, syntax(1)),
        (r#""\ud800\ud800""#, syntax(1)),
        (r#""\ud800x\udc00""#, syntax(1)),
        ("[", syntax(1)),
        ("[1", syntax(2)),
        ("[1,]", syntax(3)),
        ("[,1]", syntax(1)),
        ("[1}", syntax(2)),
        ("{", syntax(1)),
        ("{1:2}", syntax(1)),
        (r#"{"a"}"#, syntax(4)),
        (r#"{"a":}"#, syntax(5)),
        (r#"{"a":1,}"#, syntax(7)),
        (r#"{"a":1 "b":2}"#, syntax(7)),
        ("/* */ 1", syntax(0)),
    ]);
}

#[test]
fn duplicate_keys_are_refused_after_unescaping() {
    check(&[
        (r#"{"a":1,"a":2}"#, duplicate("a", 7)),
        (r#"{"a":1, "\u0061":2}"#, duplicate("a", 8)),
        (r#"{"\n":1,"\u000A":2}"#, duplicate("\n", 8)),
        (r#"[{"x":{"":1,"":2}}]"#, duplicate("", 12)),
        (r#"{"\u0061":1,"b":2,"a":3}"#, duplicate("a", 18)),
        (r#"{"b":1,"\u0061":2,"b":3}"#, duplicate("b", 18)),
        (r#"{"A":1,"a":2}"#, Ok(r#"{"A":1,"a":2}"#)),
    ]);
    let long = "k".repeat(500);
    check(&[(&format!(r#"{{"{long}":1,"{long}":2}}"#), duplicate(&long[..JsonRefused::KEY_CHARS], 506))]);
}

#[test]
fn duplicate_keys_are_found_in_objects_of_any_size() {
    for size in [1, 2, 11, 12, 13, 14, 40] {
        let members: Vec<_> = (0..size).map(|n| format!("\"k{n}\":{n}")).collect();
        let unique = format!("{{{}}}", members.join(","));
        check(&[(&unique, Ok(&unique))]);
        for again in 0..size {
            let twice = format!("{{{},\"k{again}\":0}}", members.join(","));
            check(&[(&twice, duplicate(&format!("k{again}"), unique.len()))]);
        }
    }
}

#[test]
fn many_keys_take_linear_time() {
    // Quadratic comparison of these would take minutes.
    let members: Vec<_> = (0..200_000).map(|n| format!("\"k{n}\":0")).collect();
    let object = JsonObject::parse(&format!("{{{}}}", members.join(","))).unwrap();
    assert_eq!(object.members().count(), 200_000);
}

#[test]
fn depth_is_bounded() {
    let nest = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let too_deep = || Err(JsonRefused::TooDeep { limit: JsonText::MAX_DEPTH });
    let deepest = nest(JsonText::MAX_DEPTH);
    check(&[
        (&deepest, Ok(&deepest)),
        (&nest(JsonText::MAX_DEPTH + 1), too_deep()),
        (&"[".repeat(1_000_000), too_deep()),
        (&"{\"a\":".repeat(1_000_000), too_deep()),
    ]);
}

#[test]
fn kinds_and_constructors() {
    use JsonKind::*;
    for (text, kind) in [
        ("{}", Object),
        ("[]", Array),
        ("\"\"", String),
        ("-1", Number),
        ("1", Number),
        ("true", Bool),
        ("false", Bool),
        ("null", Null),
    ] {
        assert_eq!(JsonText::parse(text).unwrap().kind(), kind, "{text}");
        assert_eq!(JsonObject::parse(text).is_ok(), kind == Object, "{text}");
    }
    assert_eq!(JsonObject::parse("[]"), Err(JsonRefused::NotAnObject));
    assert_eq!(JsonText::null(), JsonText::parse("null").unwrap());
    assert_eq!(JsonText::from_string_value("a\n\"\u{0}").as_str(), r#""a\n\"\u0000""#);
    assert_eq!(JsonObject::empty(), JsonObject::parse(" { } ").unwrap());
    assert!(JsonObject::empty().is_empty());
}

#[test]
fn members_are_unescaped_key_and_raw_value() {
    let text =
        r#"{ "a" : 1.0, "b\"}": {"x":[1,{"a":"]}\\"}],"y":{}}, "\u0063": "\u0063,", "": [ ], "e": null }"#;
    let object = JsonObject::parse(text).unwrap();
    let members: Vec<_> = object.members().map(|(key, value)| (key.into_owned(), value)).collect();
    let expected = [
        ("a", "1.0"),
        ("b\"}", r#"{"x":[1,{"a":"]}\\"}],"y":{}}"#),
        ("c", r#""\u0063,""#),
        ("", "[]"),
        ("e", "null"),
    ];
    assert_eq!(members, expected.map(|(key, value)| (key.to_owned(), value)));
    for (key, value) in expected {
        assert_eq!(object.get(key), Some(value));
    }
    assert_eq!(object.get("x"), None);
    assert_eq!(JsonObject::empty().members().next(), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 24, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..24).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A byte to put at a relative place, over (`true`) or before what is there; `None` deletes.
fn any_edit() -> impl Strategy<Value = (f64, bool, Option<u8>)> {
    let byte =
        prop_oneof![prop::sample::select(&b"{}[]\",:\\/ \n\t01289.eE+-utrfnldDc\0\x7f"[..]), any::<u8>()];
    (0.0..1.0, any::<bool>(), prop::option::weighted(0.8, byte))
}

fn agrees_with_serde_json(text: &str) -> Result<(), TestCaseError> {
    let ours = JsonText::parse(text);
    let theirs = serde_json::from_str::<Value>(text);
    match (&ours, &theirs) {
        (Err(JsonRefused::DuplicateKey { .. }), _) => {}
        // A limit of `f64`, not of JSON.
        (_, Err(error)) if error.to_string().starts_with("number out of range") => {}
        (Ok(json), Ok(value)) => {
            prop_assert_eq!(&serde_json::from_str::<Value>(json.as_str()).unwrap(), value);
            prop_assert_eq!(&JsonText::parse(json.as_str()), &ours);
        }
        _ => prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} / {:?}", ours, theirs),
    }
    Ok(())
}

proptest! {
    #[test]
    fn printed_values_become_their_compact_text(value in any_json()) {
        let compact = serde_json::to_string(&value).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for text in [&compact, &pretty] {
            let parsed = JsonText::parse(text).unwrap();
            prop_assert_eq!(parsed.as_str(), &compact);
            prop_assert_eq!(JsonText::parse(parsed.as_str()), Ok(parsed));
        }
        if let Value::Object(map) = &value {
            let object = JsonObject::parse(&pretty).unwrap();
            let members: Vec<_> = object.members().map(|(key, raw)| (key.into_owned(), raw.to_owned())).collect();
            let expected: Vec<_> = map.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
            prop_assert_eq!(members, expected);
        }
    }

    #[test]
    fn mutated_texts_are_judged_as_serde_json_does(
        value in any_json(),
        pretty in any::<bool>(),
        edits in vec(any_edit(), 1..4),
    ) {
        let mut bytes =
            if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        for (place, over, byte) in edits {
            let at = (place * bytes.len() as f64) as usize;
            if (over || byte.is_none()) && at < bytes.len() {
                bytes.remove(at);
            }
            if let Some(byte) = byte {
                bytes.insert(at, byte);
            }
        }
        if let Ok(text) = std::str::from_utf8(&bytes) {
            agrees_with_serde_json(text)?;
        }
    }

    #[test]
    fn small_texts_are_judged_as_serde_json_does(
        text in r#"[-+]?[01]{0,2}\.?[05]{0,2}[eE]?[-+]?[0-9]{0,2}"#,
        escapes in r#"(\\u[dD][89abcdefABCDEF][0-9a-f]{2}|\\u00[0-9a-gA-F]{2}|\\[a-z"\\/]|a){0,4}"#,
    ) {
        agrees_with_serde_json(&text)?;
        agrees_with_serde_json(&format!("\"{escapes}\""))?;
    }

    #[test]
    fn strings_are_escaped_and_unescaped_as_serde_json_does(text in any::<String>(), pretty in any::<bool>()) {
        let ours = super::scan::escape(&text);
        prop_assert_eq!(&ours, &serde_json::to_string(&text).unwrap());
        // Every character as \u escapes, surrogate pairs included.
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let quoted = if pretty { ours } else { format!("\"{units}\"") };
        let value = super::scan::unescape(&quoted).map(std::borrow::Cow::into_owned);
        prop_assert_eq!(value, Some(text));
    }
}

#[test]
fn s09_the_widest_object_and_the_depth_are_counted() {
    for (text, keys, depth) in [
        ("1", 0, 0),
        (r#""a:b{[""#, 0, 0),
        ("[]", 0, 1),
        ("{}", 0, 1),
        (r#"{"a":{"b":1,"c":":\\\":"},"d":[{"e":1,"f":2,"g":3}]}"#, 3, 3),
        (r#"[[[1]],{"a":[[[[]]]]}]"#, 1, 6),
    ] {
        assert_eq!(JsonText::parse(text).unwrap().shape(), JsonShape { keys, depth }, "{text}");
    }
}

#[test]
fn p09_the_depth_of_any_text_is_found_without_reading_it() {
    for (text, depth) in [
        ("", 0),
        ("1", 0),
        (r#"{"a":"]}\\\"[{","b":[[1],{}]}"#, 3),
        // Not JSON: a string without an end, ends without a beginning, half an escape.
        (r#"["[[["#, 1),
        ("]]]][", 1),
        (r#"["\"#, 1),
    ] {
        assert_eq!(super::scan::depth(text.as_bytes()), depth, "{text}");
    }
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(JsonText::check_answer_depth(&nested(JsonText::MAX_ANSWER_DEPTH)), Ok(()));
    let refused = JsonText::check_answer_depth(&nested(JsonText::MAX_ANSWER_DEPTH + 1));
    assert_eq!(refused, Err(JsonRefused::TooDeep { limit: JsonText::MAX_ANSWER_DEPTH }));
}
