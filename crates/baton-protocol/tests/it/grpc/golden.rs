//! `fixtures/wire/grpc/<package>.txt`: every canonical golden file of ProtoJSON as protobuf, in hex. `descriptors.py` of
//! the interop run reads them with the official library.

use std::fs;

use baton_protocol::Error;
use baton_protocol::operation::Operation;
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::pb::Package;

use super::losses::{same_call_json, same_item_json, same_json};
use super::oracle;
use crate::golden_files::{cases, content, fixtures};

/// The folders of each object, and what it is.
const OBJECTS: &[(&str, Read)] = &[
    ("message", |golden| golden.item(format!(r#"{{"message":{}}}"#, golden.text))),
    ("part", part),
    ("task", |golden| golden.reply(Operation::GetTask)),
    ("stream", |golden| golden.item(golden.text.clone())),
    ("status-update", |golden| golden.item(golden.text.clone())),
    ("artifact-update", |golden| golden.item(golden.text.clone())),
    ("card", |golden| golden.reply(Operation::GetExtendedCard)),
    ("send-response", |golden| golden.reply(Operation::SendMessage)),
    ("list-response", |golden| golden.reply(Operation::ListTasks)),
    ("push-config", |golden| golden.reply(Operation::CreatePushConfig)),
    ("push-config-list", |golden| golden.reply(Operation::ListPushConfigs)),
    ("request/send-message", |golden| golden.call(Operation::SendMessage)),
    ("request/send-streaming-message", |golden| golden.call(Operation::SendStreamingMessage)),
    ("request/get-task", |golden| golden.call(Operation::GetTask)),
    ("request/list-tasks", |golden| golden.call(Operation::ListTasks)),
    ("request/cancel-task", |golden| golden.call(Operation::CancelTask)),
    ("request/subscribe-to-task", |golden| golden.call(Operation::SubscribeToTask)),
    ("request/create-push-config", |golden| golden.call(Operation::CreatePushConfig)),
    ("request/get-push-config", |golden| golden.call(Operation::GetPushConfig)),
    ("request/list-push-configs", |golden| golden.call(Operation::ListPushConfigs)),
    ("request/delete-push-config", |golden| golden.call(Operation::DeletePushConfig)),
    ("request/get-extended-card", |golden| golden.call(Operation::GetExtendedCard)),
];

/// The message of a golden file; it was read back, and protobuf's own rules agree with it.
type Read = fn(&Golden) -> Result<Vec<u8>, Error>;

struct Golden {
    package: Package,
    dialect: Dialect,
    text: String,
}

impl Golden {
    fn call(&self, operation: Operation) -> Result<Vec<u8>, Error> {
        let decoded = self.dialect.decode_call(operation, Some(&self.text))?;
        let message = self.package.write_call(decoded.tenant.as_deref(), &decoded.call)?;
        let read = self.package.decode_call(operation, message.clone().into())?;
        assert_eq!(read.tenant, decoded.tenant);
        let call = same_call_json(decoded.call);
        oracle::check_call(self.package, read.tenant.as_deref(), &call);
        assert_eq!(same_call_json(read.call), call, "{}", self.text);
        Ok(message)
    }

    fn reply(&self, operation: Operation) -> Result<Vec<u8>, Error> {
        let reply = self.dialect.read_reply(operation, &self.text)?.value;
        let message = self.package.write_reply(&reply)?;
        oracle::check_reply(self.package, operation, &reply);
        let read = self.package.read_reply(operation, message.clone().into())?.value;
        let rewritten = |reply| {
            let mut out = Vec::new();
            self.dialect.write_reply(&mut out, &same_json(reply), &AnswerFacts::default());
            String::from_utf8(out).unwrap()
        };
        let (read, reply) = (rewritten(read), rewritten(super::losses::after_reply(self.package, reply)));
        assert_eq!(read, reply);
        Ok(message)
    }

    fn item(&self, text: String) -> Result<Vec<u8>, Error> {
        let item = self.dialect.read_stream_item(&text)?.value;
        let message = self.package.write_stream_update(&item);
        oracle::check_item(self.package, &item);
        let read = self.package.read_stream_item(message.clone().into())?.value;
        assert_eq!(same_item_json(read), same_item_json(item), "{text}");
        Ok(message)
    }
}

fn part(golden: &Golden) -> Result<Vec<u8>, Error> {
    let parts = if golden.package == Package::V1 { "parts" } else { "content" };
    let part = &golden.text;
    golden.item(format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","{parts}":[{part}]}}}}"#))
}

/// What protobuf has no words for.
const WITHOUT_WORDS: &[(Package, &str)] = &[
    (Package::V1, "request/list-tasks/several-states"),
    (Package::V0_3, "request/list-tasks/"),
    (Package::V0_3, "list-response/"),
];

#[test]
fn p01_golden_files_are_the_same_messages_byte_for_byte() {
    for (package, folder) in [(Package::V1, "v1"), (Package::V0_3, "v0_3_rest")] {
        let mut found = String::new();
        for (object, read) in OBJECTS {
            for path in cases(&fixtures().join("wire").join(folder).join(object)) {
                let name = format!("{object}/{}", path.file_stem().unwrap().to_str().unwrap());
                let golden = Golden { package, dialect: package.dialect(), text: content(&path) };
                let without_words =
                    WITHOUT_WORDS.iter().any(|(of, prefix)| *of == package && name.starts_with(prefix));
                match read(&golden) {
                    Ok(message) => {
                        found.push_str(&format!("{}\n", format!("{name} {}", hex(&message)).trim_end()))
                    }
                    Err(error) => assert!(without_words, "{name}: {error}"),
                }
            }
        }
        let path = fixtures().join("wire/grpc").join(format!("{folder}.txt"));
        let expected = fs::read_to_string(&path).unwrap_or_default();
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{}", path.display());
        }
        assert_eq!(found.lines().count(), expected.lines().count());
        assert!(expected.lines().count() > 30);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
