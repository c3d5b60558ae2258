use proptest::prelude::*;

use super::*;

fn canonical(json: &str, numbers: Numbers) -> String {
    let mut out = Vec::new();
    write_canonical(&mut out, &JsonText::parse(json).unwrap(), numbers);
    String::from_utf8(out).unwrap()
}

/// RFC 8785 sections 3.2.2 and 3.2.3, and what their sentences say.
#[test]
fn examples_of_the_rfc() {
    for (given, expected) in [
        (
            r#"{
                "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
                "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
                "literals": [null, true, false]
            }"#,
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
        ),
        (
            r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
                "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
                "\u00f6": "Latin Small Letter O With Diaeresis"}"#,
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
             \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\
             \"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
        ),
        ("{}", "{}"),
        ("[ ]", "[]"),
        (r#"{"b":{"d":[{"f":1,"e":2}],"c":[]},"a":""}"#, r#"{"a":"","b":{"c":[],"d":[{"e":2,"f":1}]}}"#),
        (r#"{"aa":1,"a":2,"":3,"B":4}"#, r#"{"":3,"B":4,"a":2,"aa":1}"#),
        ("[[[],[]],{\"x\":{}}]", "[[[],[]],{\"x\":{}}]"),
        ("\"\\u007f\\b\\f\\t\\u001f\"", "\"\u{7f}\\b\\f\\t\\u001f\""),
        ("true", "true"),
    ] {
        assert_eq!(canonical(given, Numbers::Doubles), expected);
    }
}

/// What two SDKs do with the card before they sign it: all the way up.
#[test]
fn p09_what_is_empty_is_left_out() {
    for (given, expected) in [
        (r#"{"a":"","b":[],"c":{},"d":null,"e":false,"f":0}"#, r#"{"e":false,"f":0}"#),
        (r#"{"b":{"c":[{"d":""},[[]],null]},"a":1}"#, r#"{"a":1}"#),
        (r#"[1,"",{"b":2,"a":[]},{},"x",null]"#, r#"[1,{"b":2},"x"]"#),
        (r#"{"b":"x","a":" ","":"y"}"#, r#"{"":"y","a":" ","b":"x"}"#),
        (r#"{"a":{"b":""}}"#, "{}"),
        (r#"{"a":"null","b":"[]"}"#, r#"{"a":"null","b":"[]"}"#),
    ] {
        let mut out = Vec::new();
        write_without_empty(&mut out, &JsonText::parse(given).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

/// RFC 8785 appendix B.
#[test]
fn numbers_of_the_rfc() {
    for (bits, expected) in [
        (0x0000000000000000_u64, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ] {
        let number = f64::from_bits(bits);
        let mut written = Vec::new();
        number::write_double(&mut written, number);
        assert_eq!(String::from_utf8(written).unwrap(), expected);
        assert_eq!(canonical(&format!("{number:e}"), Numbers::Doubles), expected);
    }
}

#[test]
fn numbers_beyond_2_to_the_53_keep_their_spelling_if_asked_to() {
    for (given, doubles, as_written) in [
        ("9007199254740993", "9007199254740992", "9007199254740993"),
        ("-9007199254740993.0", "-9007199254740992", "-9007199254740993.0"),
        ("9007199254740991.0", "9007199254740991", "9007199254740991"),
        ("1e30", "1e+30", "1e30"),
        ("1e999", "1e999", "1e999"),
        ("123456789012345678", "123456789012345680", "123456789012345678"),
        ("1E2", "100", "100"),
        ("1.0", "1", "1"),
        ("-0", "0", "0"),
        ("-0.0", "0", "0"),
        ("0.10", "0.1", "0.1"),
        ("1e-999", "0", "0"),
    ] {
        assert_eq!(canonical(given, Numbers::Doubles), doubles, "{given}");
        assert_eq!(canonical(given, Numbers::LargeAsWritten), as_written, "{given}");
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_filter("a JSON number", |it| it.is_finite()).prop_map(Into::into),
        "\\PC{0,6}|[\\x00-\\x20\"\\\\/]{0,4}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec(("\\PC{0,3}", inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    /// The canonical form is a fixed point, means the same, and does not depend on white space or on how strings are
    /// escaped.
    #[test]
    fn the_canonical_form_is_one(json in any_json()) {
        let once = canonical(&json.to_string(), Numbers::LargeAsWritten);
        prop_assert_eq!(canonical(&once, Numbers::LargeAsWritten), once.clone());
        let spaced = serde_json::to_string_pretty(&json).unwrap();
        prop_assert_eq!(canonical(&spaced, Numbers::LargeAsWritten), once.clone());
        let escaped: String = json.to_string().chars().map(|it| match it {
            ' '..='~' => it.to_string(),
            _ => it.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
        }).collect();
        prop_assert_eq!(canonical(&escaped, Numbers::LargeAsWritten), once.clone());
        let strict = canonical(&once, Numbers::Doubles);
        prop_assert_eq!(canonical(&strict, Numbers::Doubles), strict);
    }
}
