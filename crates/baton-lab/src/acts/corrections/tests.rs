//! Every correction finds its mistake in a test like the official one, and does not change a fixed one.

use serde_json::json;

use super::*;
use crate::acts::document;

/// One test of a document, as a file would hold it.
fn test(yaml: &str) -> Test {
    let head = "acts_version: \"1.0\"\nspec_version: \"1.0\"\nsuites:\n  - id: s\n    name: S\n    tests:\n";
    let indented: String = yaml.lines().map(|line| format!("      {line}\n")).collect();
    let document = document::parse("test.acts.yaml", &format!("{head}{indented}")).unwrap();
    document.suites.into_iter().next().unwrap().tests.into_iter().next().unwrap()
}

#[test]
fn ids_are_unique_and_every_native_check_is_there() {
    let mut seen = std::collections::HashSet::new();
    for correction in list() {
        assert!(seen.insert(correction.id), "{} is there twice", correction.id);
        assert!(!correction.wrong.is_empty() && !correction.right.is_empty());
        assert_eq!(
            correction.kind == Kind::Note,
            matches!(correction.remedy, Remedy::None),
            "{}",
            correction.id
        );
        // The native check that a correction names must exist.
        if let Remedy::Native(check, _) = correction.remedy {
            assert!(crate::native::find(check).is_some(), "{}: no check is called {check}", correction.id);
        }
    }
}

#[test]
fn ids_beside_the_message_are_moved_into_it() {
    let mut made = test(
        "- id: X-1\n  name: n\n  level: must\n  steps:\n    - id: a\n      operation: send_message\n      params:\n        taskId: t\n        contextId: c\n        message: {role: ROLE_USER, parts: [{text: x}]}",
    );
    assert_eq!(apply(&mut made), ["F15"]);
    let params = made.steps[0].params.clone().unwrap();
    assert_eq!(params["message"]["taskId"], "t");
    assert_eq!(params["message"]["contextId"], "c");
    assert_eq!(params.get("taskId"), None);
    assert!(apply(&mut made).is_empty(), "a mended test is left alone");
}

#[test]
fn raw_messages_get_an_id_and_streams_their_precondition() {
    let mut made = test(
        "- id: X-1\n  name: n\n  level: must\n  transport: [jsonrpc]\n  steps:\n    - id: a\n      raw:\n        method: POST\n        path: /\n        body: {jsonrpc: \"2.0\", id: 1, method: SendStreamingMessage, params: {message: {role: ROLE_USER}}}\n      expect_stream: {min_count: 1}",
    );
    assert_eq!(apply(&mut made), ["F12", "F14"]);
    let body = made.steps[0].raw.as_ref().unwrap().body.clone().unwrap();
    assert_eq!(body["params"]["message"]["messageId"], "{{$uuid}}");
    assert_eq!(made.preconditions.capabilities["streaming"], true);
    assert!(apply(&mut made).is_empty());
}

#[test]
fn levels_are_set_right_or_softened() {
    let level = |id: &str, level: &str| {
        let mut made = test(&format!(
            "- id: {id}\n  name: n\n  level: {level}\n  steps: [{{id: a, operation: list_tasks}}]"
        ));
        apply(&mut made);
        made.level
    };
    assert_eq!(level("CORE-HIST-002", "should"), Level::Must);
    assert_eq!(level("CARD-DISC-004", "should"), Level::Must);
    assert_eq!(level("JSONRPC-ERR-003", "must"), Level::Should);
    assert_eq!(level("PUSH-CFG-001", "may"), Level::Must);
    assert_eq!(level("SOMETHING-ELSE-001", "may"), Level::May);
}

#[test]
fn expectations_are_replaced_where_they_are_wrong() {
    let card = |id: &str, body: &str| {
        test(&format!(
            "- id: {id}\n  name: n\n  level: must\n  steps:\n    - id: step-1\n      operation: get_agent_card\n      expect:\n        body: {body}"
        ))
    };
    let mut made = card(
        "CARD-DISC-002",
        "{supportedInterfaces: {items: {protocolBinding: {one_of: [JSONRPC, GRPC, REST]}}}}",
    );
    assert_eq!(apply(&mut made), ["CARD-DISC-002"]);
    let expect = made.steps[0].expect.clone().unwrap();
    let binding = &expect["body"]["supportedInterfaces"]["items"]["protocolBinding"];
    assert_eq!(*binding, json!({"type": "string", "matches": ".+"}));
    assert!(apply(&mut made).is_empty());

    let mut made =
        card("CARD-DISC-006", "{supportedInterfaces: {items: [{protocolVersion: {starts_with: \"1.\"}}]}}");
    assert_eq!(apply(&mut made), ["CARD-DISC-006"]);
    assert_eq!(made.steps[0].assertions.len(), 1);

    let mut made = card("CARD-DISC-002", "{supportedInterfaces: {count_gte: 1}}");
    assert!(apply(&mut made).is_empty(), "another form of the test is somebody else's");
}

#[test]
fn a_native_check_stands_for_prose_only() {
    let mut made = test(
        "- id: STREAM-MULTI-001\n  name: n\n  level: should\n  tags: [runner-special]\n  steps: [{id: a, operation: list_tasks}]",
    );
    assert_eq!(apply(&mut made), ["STREAM-MULTI-001"]);
    assert_eq!(made.native.as_deref(), Some("v1.watchers.same-events"));
    assert!(apply(&mut made).is_empty());
    let mut made =
        test("- id: STREAM-MULTI-001\n  name: n\n  level: should\n  steps: [{id: a, operation: list_tasks}]");
    assert!(apply(&mut made).is_empty(), "somebody's own test under the same id");
}

#[test]
fn what_no_agent_can_pass_is_off_with_its_reason() {
    let mut made =
        test("- id: SEC-PUSH-002\n  name: n\n  level: must\n  steps: [{id: a, operation: list_tasks}]");
    assert_eq!(apply(&mut made), ["SEC-PUSH-002"]);
    assert!(made.off.is_some());
}
