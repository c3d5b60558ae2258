//! Reads `fixtures/wire/<dialect>`: what is canonical, what is accepted beside it, what is refused and with which
//! words.
//!
//! Canonical files of 1.0 are never rewritten: a stored event of this form must be readable for ever.

use std::path::PathBuf;

use baton_protocol::operation::Operation;
use baton_protocol::wire::{dialect, v1};
use baton_protocol::{Error, ErrorKind};

use crate::codecs::{CODECS, Codec, Dialect, written};
use crate::golden_files::{cases, check, check_folders, check_refused, content, fixtures};

/// Reads a text and writes what was understood.
type Rewrite = fn(&Codec, &str) -> Result<Vec<u8>, Error>;

/// One row per folder of `fixtures/wire/<dialect>`.
const OBJECTS: &[(&str, Rewrite)] = &[
    ("message", |codec, text| {
        (codec.read_message)(text).map(|message| written(|out| (codec.write_message)(out, &message)))
    }),
    ("part", part),
    ("task", |codec, text| (codec.read_task)(text).map(|task| written(|out| (codec.write_task)(out, &task)))),
    ("stream", stream_item),
    ("status-update", stream_item),
    ("artifact-update", stream_item),
    ("card", |codec, text| (codec.read_card)(text).map(|card| written(|out| (codec.write_card)(out, &card)))),
    ("send-response", |codec, text| reply(codec, Operation::SendMessage, text)),
    ("list-response", |codec, text| reply(codec, Operation::ListTasks, text)),
    ("push-config", |codec, text| reply(codec, Operation::CreatePushConfig, text)),
    ("push-config-list", |codec, text| reply(codec, Operation::ListPushConfigs, text)),
    ("request/send-message", |codec, text| call(codec, Operation::SendMessage, text)),
    ("request/send-streaming-message", |codec, text| call(codec, Operation::SendStreamingMessage, text)),
    ("request/get-task", |codec, text| call(codec, Operation::GetTask, text)),
    ("request/list-tasks", |codec, text| call(codec, Operation::ListTasks, text)),
    ("request/cancel-task", |codec, text| call(codec, Operation::CancelTask, text)),
    ("request/subscribe-to-task", |codec, text| call(codec, Operation::SubscribeToTask, text)),
    ("request/create-push-config", |codec, text| call(codec, Operation::CreatePushConfig, text)),
    ("request/get-push-config", |codec, text| call(codec, Operation::GetPushConfig, text)),
    ("request/list-push-configs", |codec, text| call(codec, Operation::ListPushConfigs, text)),
    ("request/delete-push-config", |codec, text| call(codec, Operation::DeletePushConfig, text)),
    ("request/get-extended-card", |codec, text| call(codec, Operation::GetExtendedCard, text)),
];

fn call(codec: &Codec, operation: Operation, text: &str) -> Result<Vec<u8>, Error> {
    let decoded = (codec.decode_call)(operation, Some(text))?;
    assert_eq!(decoded.call.operation(), operation);
    Ok(written(|out| (codec.write_call)(out, decoded.tenant.as_deref(), &decoded.call)))
}

fn reply(codec: &Codec, operation: Operation, text: &str) -> Result<Vec<u8>, Error> {
    (codec.read_reply)(operation, text).map(|reply| written(|out| (codec.write_reply)(out, &reply)))
}

fn stream_item(codec: &Codec, text: &str) -> Result<Vec<u8>, Error> {
    (codec.read_stream_item)(text).map(|item| codec.write_item(&item))
}

/// A part alone has no reader of its own: it is read inside a message.
fn part(codec: &Codec, text: &str) -> Result<Vec<u8>, Error> {
    let before = codec.before_parts();
    let message = (codec.read_message)(&format!("{before}{text}]}}"))?;
    let whole = written(|out| (codec.write_message)(out, &message));
    Ok(whole[before.len()..whole.len() - 2].to_vec())
}

fn root(codec: &Codec) -> PathBuf {
    fixtures().join("wire").join(codec.folder)
}

fn objects() -> Vec<&'static str> {
    OBJECTS.iter().map(|(object, _)| *object).collect()
}

fn rewrite(codec: &Codec, object: &str, text: &str) -> Result<Vec<u8>, Error> {
    let (_, rewrite) = OBJECTS.iter().find(|(known, _)| *known == object).unwrap();
    rewrite(codec, text)
}

#[test]
fn p01_canonical_files_write_back_byte_for_byte() {
    for codec in &CODECS {
        for (object, rewrite) in OBJECTS {
            let files = cases(&root(codec).join(object));
            assert!(!files.is_empty(), "no golden file for {object} of {}", codec.folder);
            for path in files {
                check(&path, |text| rewrite(codec, text), &content(&path));
            }
        }
    }
}

#[test]
fn p01_lenient_files_are_understood_as_their_canonical_form() {
    for codec in &CODECS {
        let mut seen = 0;
        for (object, rewrite) in OBJECTS {
            for path in cases(&root(codec).join(object).join("lenient")) {
                let expected = content(&path.with_extension("expected"));
                check(&path, |text| rewrite(codec, text), &expected);
                let again = rewrite(codec, &expected).unwrap();
                assert_eq!(
                    String::from_utf8(again).unwrap(),
                    expected,
                    "{} is not canonical",
                    path.display()
                );
                seen += 1;
            }
        }
        assert!(seen > 30, "only {seen} lenient files were found for {}", codec.folder);
    }
}

#[test]
fn p01_refused_files_name_the_member_and_what_to_do() {
    for codec in &CODECS {
        check_refused(&root(codec).join("refused"), &objects(), |object, text| rewrite(codec, object, text));
    }
}

#[test]
fn every_folder_is_checked() {
    for codec in &CODECS {
        check_folders(&root(codec), &objects(), &["error-details"]);
    }
}

#[test]
fn p02_error_details_are_typed_objects() {
    let folder = root(&CODECS[0]).join("error-details");
    let table = [
        ("plain", Error::of(ErrorKind::Internal).with_log("not for the peer")),
        ("retry", Error::of(ErrorKind::QuotaExceeded).with_retry_after(5)),
        ("task-not-found", Error::of(ErrorKind::TaskNotFound).with_info("taskId", "task-9")),
        (
            "violations",
            Error::invalid("message.parts[0]", "must hold exactly one of text, raw, url and data"),
        ),
    ];
    assert_eq!(cases(&folder).len(), table.len());
    for (case, error) in table {
        let got = written(|out| v1::write_error_details(out, &error, dialect::Dialect::V1));
        assert_eq!(
            String::from_utf8(got).unwrap(),
            content(&folder.join(case).with_extension("json")),
            "{case}"
        );
    }
}

#[test]
fn absent_params_are_an_empty_object() {
    for codec in &CODECS {
        let missing = if codec.dialect == Dialect::V0_3Rest { "name" } else { "id" };
        for absent in [None, Some("null"), Some(""), Some(" null\n")] {
            assert!((codec.decode_call)(Operation::ListTasks, absent).is_ok(), "{absent:?}");
            assert!((codec.decode_call)(Operation::GetExtendedCard, absent).is_ok(), "{absent:?}");
            let error = (codec.decode_call)(Operation::GetTask, absent).unwrap_err();
            assert_eq!(error.to_string(), format!("Invalid parameters: {missing} is required"), "{absent:?}");
        }
    }
}

#[test]
fn broken_json_is_a_parse_error_even_behind_a_wrong_member() {
    for codec in &CODECS {
        for text in ["{", r#"{"id":5"#, r#"{"id":"t"} x"#, r#"{"id":"t",}"#, "\"\u{0}\"", "nul"] {
            let error = (codec.decode_call)(Operation::GetTask, Some(text)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ParseError, "{text}");
            let error = (codec.read_stream_item)(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidAgentResponse, "{text}");
        }
    }
}

#[test]
fn p02_deleting_a_webhook_is_answered_in_many_ways() {
    for codec in &CODECS {
        let expected: &[u8] = if codec.dialect == Dialect::V0_3Rest { b"{}" } else { b"null" };
        for text in ["null", "{}", ""] {
            let reply = (codec.read_reply)(Operation::DeletePushConfig, text).unwrap();
            assert_eq!(written(|out| (codec.write_reply)(out, &reply)), expected);
        }
    }
}

/// Depth is counted where JSON is kept, and skipped without a stack where it is not.
#[test]
fn deep_nesting_does_no_harm() {
    for codec in &CODECS {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let ignored = format!(r#"{{"id":"t","x":{deep}}}"#);
        assert!((codec.decode_call)(Operation::GetTask, Some(&ignored)).is_ok());
        let kept = format!(r#"{{"id":"t","metadata":{deep}}}"#);
        let error = (codec.decode_call)(Operation::CancelTask, Some(&kept)).unwrap_err();
        assert_eq!(error.violations(dialect::Dialect::V1)[0].field, "metadata");
    }
}
