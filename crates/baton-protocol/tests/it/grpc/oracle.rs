//! `prost-reflect` reads our JSON by protobuf's own rules, and our messages, from the same descriptors: both must be the
//! same message, and our JSON must be spelled as it writes that message. What it writes, we must read as the same value.

use std::sync::LazyLock;

use baton_protocol::operation::{Call, Operation, Reply};
use baton_protocol::wire::StreamItem;
use baton_protocol::wire::dialect::AnswerFacts;
use baton_protocol::wire::pb::{DESCRIPTORS, Package};
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions,
};
use serde_json::Value;

use super::losses::{same_call_json, same_item_json, same_json};
use super::roundtrip::{callable, sayable, stored_config, with_required};
use crate::codecs::written;
use crate::strategies;

pub(super) fn pool() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).unwrap());
    &POOL
}

fn method(package: Package, operation: Operation) -> MethodDescriptor {
    let service = pool().get_service_by_name(package.service()).unwrap();
    service.methods().find(|method| Some(method.name()) == package.method(operation)).unwrap()
}

/// Both encodings of a message, made anew.
struct Rewritten {
    json: String,
    message: Vec<u8>,
}

/// Fails unless the JSON and the bytes are the same message.
fn same(descriptor: MessageDescriptor, json: &[u8], message: &[u8]) -> Rewritten {
    let is_card = descriptor.name() == "AgentCard";
    let mut text = serde_json::Deserializer::from_slice(json);
    let strict = DeserializeOptions::new().deny_unknown_fields(true);
    let of_json = DynamicMessage::deserialize_with_options(descriptor.clone(), &mut text, &strict);
    let of_json = of_json.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(json)));
    let of_bytes = DynamicMessage::decode(descriptor.clone(), message).unwrap();
    let spelled = SerializeOptions::new().stringify_64_bit_integers(false);
    let spelled = of_bytes.serialize_with_options(serde_json::value::Serializer, &spelled).unwrap();
    if let Some(difference) = difference("", &serde_json::from_slice(json).unwrap(), &spelled) {
        panic!("{}: {difference}", descriptor.full_name());
    }
    let from_json = of_json.encode_to_vec();
    // Empty lists that the JSON names are absent again.
    assert_eq!(DynamicMessage::decode(descriptor, &from_json[..]).unwrap(), of_bytes);
    let mut json = serde_json::Serializer::new(Vec::new());
    // A card's strings may be empty, and have to be there.
    let options = SerializeOptions::new().skip_default_fields(!is_card);
    of_bytes.serialize_with_options(&mut json, &options).unwrap();
    Rewritten { json: String::from_utf8(json.into_inner()).unwrap(), message: from_json }
}

/// The first place where our JSON is not spelled like theirs. Readers of JSON accept more than one spelling, of names and of
/// enums for instance, so that both are the same message does not show it. What the specification leaves open is no difference:
/// - whether a member with its default value is there,
/// - how a number is written (`1.0`, `1e0`),
/// - whether a time without milliseconds says so (`00.000Z`).
fn difference(place: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let of_theirs = theirs.iter().find_map(|(name, theirs)| match ours.get(name) {
                Some(ours) => difference(&format!("{place}/{name}"), ours, theirs),
                None => Some(format!("{place}/{name} is missing")),
            });
            of_theirs.or_else(|| {
                let more =
                    ours.iter().find(|(name, ours)| !theirs.contains_key(*name) && !is_default(name, ours));
                more.map(|(name, ours)| format!("{place}/{name} is {ours}, and has no default value"))
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.find_map(|(at, (ours, theirs))| difference(&format!("{place}/{at}"), ours, theirs))
        }
        (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => None,
        (Value::String(left), Value::String(right)) if left.replace(".000Z", "Z") == *right => None,
        _ => (ours != theirs).then(|| format!("{place} is {ours} instead of {theirs}")),
    }
}

fn is_default(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // A message has presence: it is there even if it is empty. A map has none.
        Value::Object(members) => {
            members.is_empty() && ["scopes", "schemes", "securitySchemes"].contains(&name)
        }
    }
}

#[test]
fn another_spelling_is_a_difference() {
    use serde_json::json;
    let theirs = json!({"taskId": "t", "at": "2026-01-02T03:04:05Z", "n": 1.0, "list": [{"b": true}]});
    let ours = json!({"taskId": "t", "at": "2026-01-02T03:04:05.000Z", "n": 1, "list": [{"b": true}], "x": "", "y": []});
    assert_eq!(difference("", &ours, &theirs), None);
    for (ours, found) in [
        (json!({"task_id": "t"}), "/taskId is missing"),
        (json!({"taskId": "t", "role": 1}), "/role is 1, and has no default value"),
        (json!({"taskId": "t", "status": {}}), "/status is {}, and has no default value"),
    ] {
        let found_now = difference("", &ours, &json!({"taskId": "t"}));
        assert_eq!(found_now.as_deref(), Some(found));
    }
    for (ours, theirs) in
        [(json!(1), json!("ROLE_USER")), (json!([1]), json!([1, 2])), (json!("a_"), json!("a/"))]
    {
        assert!(difference("", &ours, &theirs).is_some(), "{ours}");
    }
}

pub(super) fn check_call(package: Package, tenant: Option<&str>, call: &Call) {
    let operation = call.operation();
    let tenant = tenant.filter(|_| package == Package::V1);
    let json = written(|out| package.dialect().write_call(out, tenant, call));
    let message = package.write_call(tenant, call).unwrap();
    let theirs = same(method(package, operation).input(), &json, &message);
    let of_json = package.dialect().decode_call(operation, Some(&theirs.json)).unwrap();
    let of_bytes = package.decode_call(operation, theirs.message.into()).unwrap();
    assert_eq!(of_json.tenant, of_bytes.tenant);
    let of_json = match of_json.call {
        // 0 has no presence.
        Call::ListPushConfigs { task_id, page_size, page_token } => {
            Call::ListPushConfigs { task_id, page_size: page_size.filter(|it| *it != 0), page_token }
        }
        call => call,
    };
    assert_eq!(same_call_json(of_json), same_call_json(of_bytes.call));
}

pub(super) fn check_reply(package: Package, operation: Operation, reply: &Reply) {
    let json = written(|out| package.dialect().write_reply(out, reply, &AnswerFacts::default()));
    let message = package.write_reply(reply).unwrap();
    let theirs = same(method(package, operation).output(), &json, &message);
    let of_json = package.dialect().read_reply(operation, &theirs.json).unwrap().value;
    let of_bytes = package.read_reply(operation, theirs.message.into()).unwrap().value;
    assert_eq!(same_json(without_presence(package, of_json)), same_json(of_bytes));
}

pub(super) fn check_item(package: Package, item: &StreamItem) {
    let json = written(|out| package.dialect().write_stream_update(out, item));
    let message = package.write_stream_update(item);
    let theirs = same(method(package, Operation::SendStreamingMessage).output(), &json, &message);
    let of_json = package.dialect().read_stream_item(&theirs.json).unwrap().value;
    let of_bytes = package.read_stream_item(theirs.message.into()).unwrap().value;
    assert_eq!(same_item_json(of_json), same_item_json(of_bytes));
}

/// Defaults are printed, and our JSON readers see a difference between them and nothing.
fn without_presence(package: Package, reply: Reply) -> Reply {
    match reply {
        Reply::Card(_) => super::losses::after_reply(package, reply),
        Reply::Tasks(mut page) => {
            page.with_artifacts = page.tasks.iter().any(|task| !task.artifacts.is_empty());
            Reply::Tasks(page)
        }
        reply => reply,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn p01_calls_are_the_same_in_json_and_protobuf(
        tenant in strategies::tenant(),
        call in strategies::call(),
    ) {
        let call = sayable(call);
        for package in Package::ALL.into_iter().filter(|it| it.method(call.operation()).is_some()) {
            check_call(package, tenant.as_deref(), &call);
        }
    }

    #[test]
    fn p01_replies_are_the_same_in_json_and_protobuf(
        task in strategies::task(),
        message in strategies::message(),
        config in stored_config(),
        next_page_token in strategies::text(),
        card in strategies::card(),
        page in strategies::task_page(),
    ) {
        let card = Box::new(callable(card));
        let config = with_required(config);
        check_reply(Package::V1, Operation::ListTasks, &Reply::Tasks(page));
        for package in Package::ALL {
            check_reply(package, Operation::SendMessage, &Reply::SentTask(task.clone()));
            check_reply(package, Operation::SendMessage, &Reply::SentMessage(message.clone()));
            check_reply(package, Operation::GetTask, &Reply::Task(task.clone()));
            check_reply(package, Operation::CancelTask, &Reply::Task(task.clone()));
            check_reply(package, Operation::CreatePushConfig, &Reply::PushConfig(config.clone()));
            check_reply(package, Operation::GetPushConfig, &Reply::PushConfig(config.clone()));
            let configs = vec![config.clone()];
            let configs = Reply::PushConfigs { configs, next_page_token: next_page_token.clone() };
            check_reply(package, Operation::ListPushConfigs, &configs);
            check_reply(package, Operation::GetExtendedCard, &Reply::Card(card.clone()));
        }
    }

    #[test]
    fn p04_events_are_the_same_in_json_and_protobuf(
        task in strategies::task(),
        message in strategies::message(),
        at in strategies::timestamp(),
        status in strategies::status_update(),
        artifact in strategies::artifact_update(),
    ) {
        let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
        let (id, context) = (task_id.clone(), context_id.clone());
        let items = [
            StreamItem::Task(task),
            StreamItem::Message(message),
            StreamItem::Status { task_id: id, context_id: context, at, update: status },
            StreamItem::Artifact { task_id, context_id, update: artifact },
        ];
        for package in Package::ALL {
            items.iter().for_each(|item| check_item(package, item));
        }
    }
}
