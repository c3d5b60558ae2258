use baton_protocol::domain::{JsonText, Message, MessageId, Part, PartContent, Role};
use baton_protocol::operation::{Operation, Reply};
use baton_protocol::wire::pb::Package;
use proptest::prelude::*;

/// The data of a part after it was in a message.
fn after(package: Package, data: JsonText) -> Result<JsonText, String> {
    let id = MessageId::parse("m").unwrap();
    let reply = Reply::SentMessage(Message::new(id, Role::Agent, vec![Part::data(data)]));
    let message = package.write_reply(&reply).unwrap();
    match package.read_reply(Operation::SendMessage, message.into()).map(|read| read.value) {
        Ok(Reply::SentMessage(message)) => match &message.parts[0].content {
            PartContent::Data(data) => Ok(data.clone()),
            other => panic!("{other:?}"),
        },
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text).unwrap()
}

#[test]
fn p01_numbers_become_doubles_and_members_keep_their_order() {
    for (text, expected) in [
        ("null", "null"),
        ("[true,false,null]", "[true,false,null]"),
        ("{}", "{}"),
        ("[]", "[]"),
        ("[[],{},[[]],{\"a\":{}},[]]", "[[],{},[[]],{\"a\":{}},[]]"),
        (
            r#"{"b":1,"a":{"d":[1,2,{"e":"x"}],"c":""},"":0}"#,
            r#"{"b":1,"a":{"d":[1,2,{"e":"x"}],"c":""},"":0}"#,
        ),
        ("7", "7"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("-0", "0"),
        ("0.1", "0.1"),
        ("-1.5e-7", "-1.5e-7"),
        ("1E400", "1.7976931348623157e+308"),
        ("-1E400", "-1.7976931348623157e+308"),
        ("9007199254740993", "9007199254740992"),
        ("12345678901234567890", "12345678901234567000"),
        (r#""\u0041\/\n\ud83d\ude00""#, "\"A/\\n😀\""),
        (r#"{"\u0061\"b":"]},"}"#, r#"{"a\"b":"]},"}"#),
    ] {
        for package in Package::ALL {
            assert_eq!(after(package, json(text)).unwrap().as_str(), expected, "{text} in {package:?}");
        }
    }
}

/// The limit is that of the other bindings; in 0.3 a value that is not an object is wrapped in one.
#[test]
fn p01_nesting_has_the_limit_of_json() {
    let nested = |depth: usize, open: &str, close: &str| {
        json(&format!("{}0{}", open.repeat(depth), close.repeat(depth)))
    };
    let most = JsonText::MAX_DEPTH;
    for (package, data, survives) in [
        (Package::V1, nested(most, "[", "]"), true),
        (Package::V1, nested(most, "{\"a\":", "}"), true),
        (Package::V0_3, nested(most, "{\"a\":", "}"), true),
        (Package::V0_3, nested(most - 1, "[", "]"), true),
        (Package::V0_3, nested(most, "[", "]"), false),
    ] {
        let after = after(package, data.clone());
        match survives {
            true => assert_eq!(after.unwrap(), data),
            false => assert!(after.unwrap_err().contains("must not be nested deeper than 100 levels")),
        }
    }
}

/// Time and memory are in proportion to the text, however it is nested.
#[test]
fn p09_large_json_is_written_in_one_pass() {
    let wide = format!("[{}0]", "0,".repeat(200_000));
    let text = format!("\"{}\"", "x".repeat(1_000_000));
    let deep = format!("{}{text}{}", "[".repeat(100), "]".repeat(100));
    for large in [wide, deep] {
        assert_eq!(after(Package::V1, json(&large)).unwrap().as_str(), large);
    }
}

proptest! {
    /// What was a double before stays as it is.
    #[test]
    fn p01_json_settles_at_once(data in crate::strategies::json_text()) {
        for package in Package::ALL {
            let once = after(package, data.clone()).unwrap();
            prop_assert_eq!(after(package, once.clone()).unwrap(), once);
        }
    }
}
