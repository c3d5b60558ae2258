//! Reads `fixtures/wire/v1`: what is canonical, what is accepted beside it, what is refused and with which words.
//!
//! Canonical files are never rewritten: a stored event of this form must be readable for ever.

use std::fs;
use std::path::{Path, PathBuf};

use baton_protocol::operation::Operation;
use baton_protocol::wire::v1;
use baton_protocol::{Error, ErrorKind};

/// Reads a text and writes what was understood.
pub(crate) type Rewrite = fn(&str) -> Result<Vec<u8>, Error>;

/// One row per folder of `fixtures/wire/v1`.
const OBJECTS: &[(&str, Rewrite)] = &[
    ("message", |text| v1::read_message(text).map(|message| written(|out| v1::write_message(out, &message)))),
    ("part", part),
    ("task", |text| v1::read_task(text).map(|task| written(|out| v1::write_task(out, &task)))),
    ("stream", stream_item),
    ("status-update", stream_item),
    ("artifact-update", stream_item),
    ("card", |text| v1::read_card(text).map(|card| written(|out| v1::write_card(out, &card)))),
    ("send-response", |text| reply(Operation::SendMessage, text)),
    ("list-response", |text| reply(Operation::ListTasks, text)),
    ("push-config", |text| reply(Operation::CreatePushConfig, text)),
    ("push-config-list", |text| reply(Operation::ListPushConfigs, text)),
    ("request/send-message", |text| call(Operation::SendMessage, text)),
    ("request/send-streaming-message", |text| call(Operation::SendStreamingMessage, text)),
    ("request/get-task", |text| call(Operation::GetTask, text)),
    ("request/list-tasks", |text| call(Operation::ListTasks, text)),
    ("request/cancel-task", |text| call(Operation::CancelTask, text)),
    ("request/subscribe-to-task", |text| call(Operation::SubscribeToTask, text)),
    ("request/create-push-config", |text| call(Operation::CreatePushConfig, text)),
    ("request/get-push-config", |text| call(Operation::GetPushConfig, text)),
    ("request/list-push-configs", |text| call(Operation::ListPushConfigs, text)),
    ("request/delete-push-config", |text| call(Operation::DeletePushConfig, text)),
    ("request/get-extended-card", |text| call(Operation::GetExtendedCard, text)),
];

fn call(operation: Operation, text: &str) -> Result<Vec<u8>, Error> {
    let decoded = v1::decode_call(operation, Some(text))?;
    assert_eq!(decoded.call.operation(), operation);
    Ok(written(|out| v1::write_call(out, decoded.tenant.as_deref(), &decoded.call)))
}

fn reply(operation: Operation, text: &str) -> Result<Vec<u8>, Error> {
    v1::read_reply(operation, text).map(|reply| written(|out| v1::write_reply(out, &reply)))
}

fn stream_item(text: &str) -> Result<Vec<u8>, Error> {
    use v1::StreamItem::*;
    let item = v1::read_stream_item(text)?;
    Ok(written(|out| match &item {
        Task(task) => v1::write_stream_task(out, task),
        Message(message) => v1::write_stream_message(out, message),
        Status { task_id, context_id, at, update } => {
            v1::write_stream_status(out, task_id, context_id, *at, update)
        }
        Artifact { task_id, context_id, update } => {
            v1::write_stream_artifact(out, task_id, context_id, update)
        }
    }))
}

/// A part alone has no reader of its own: it is read inside a message.
fn part(text: &str) -> Result<Vec<u8>, Error> {
    const BEFORE: &str = r#"{"messageId":"m","role":"ROLE_USER","parts":["#;
    let message = v1::read_message(&format!("{BEFORE}{text}]}}"))?;
    let whole = written(|out| v1::write_message(out, &message));
    Ok(whole[BEFORE.len()..whole.len() - 2].to_vec())
}

pub(crate) fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn root() -> PathBuf {
    fixtures().join("wire/v1")
}

/// The `.json` files right inside a folder, sorted; empty when there is no such folder.
pub(crate) fn cases(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

pub(crate) fn content(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.strip_suffix('\n').unwrap_or_else(|| panic!("{} must end with a newline", path.display())).to_owned()
}

pub(crate) fn check(path: &Path, rewrite: Rewrite, expected: &str) {
    let text = content(path);
    let got = rewrite(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!got.contains(&b'\n') && !got.contains(&b'\r'), "{} would break an SSE line", path.display());
    assert_eq!(String::from_utf8(got).unwrap(), expected, "{}", path.display());
}

#[test]
fn p01_canonical_files_write_back_byte_for_byte() {
    for (object, rewrite) in OBJECTS {
        let files = cases(&root().join(object));
        assert!(!files.is_empty(), "no golden file for {object}");
        for path in files {
            check(&path, *rewrite, &content(&path));
        }
    }
}

#[test]
fn p01_lenient_files_are_understood_as_their_canonical_form() {
    let mut seen = 0;
    for (object, rewrite) in OBJECTS {
        for path in cases(&root().join(object).join("lenient")) {
            let expected = content(&path.with_extension("expected"));
            check(&path, *rewrite, &expected);
            let again = rewrite(&expected).unwrap();
            assert_eq!(String::from_utf8(again).unwrap(), expected, "{} is not canonical", path.display());
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} lenient files were found");
}

#[test]
fn p01_refused_files_name_the_member_and_what_to_do() {
    check_refused(&root().join("refused"), OBJECTS);
}

/// File names are `<object>.<case>.json`, with `-` for the `/` of requests.
pub(crate) fn check_refused(folder: &Path, objects: &[(&str, Rewrite)]) {
    let files = cases(folder);
    assert!(!files.is_empty());
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let object = name.split('.').next().unwrap();
        let (found, rewrite) = objects.iter().find(|(folder, _)| folder.replace('/', "-") == object).unwrap();
        let error = rewrite(&content(&path)).expect_err(name);
        let told: Vec<_> =
            error.violations().iter().map(|v| format!("{}: {}", v.field, v.description)).collect();
        assert_eq!(told, [content(&path.with_extension("expected"))], "{name}");
        let kind = if found.starts_with("request/") {
            ErrorKind::InvalidParams
        } else {
            ErrorKind::InvalidAgentResponse
        };
        assert_eq!(error.kind(), kind, "{name}");
        assert!(!error.message().contains("secret"), "{name} repeats the payload: {}", error.message());
    }
}

#[test]
fn every_folder_is_checked() {
    check_folders(&root(), OBJECTS, &["error-details"]);
}

/// A folder without a row in the table would be a folder nobody checks.
pub(crate) fn check_folders(root: &Path, objects: &[(&str, Rewrite)], elsewhere: &[&str]) {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root).unwrap().chain(fs::read_dir(root.join("request")).unwrap()) {
        let path = entry.unwrap().path();
        folders.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
    }
    folders.retain(|folder| !["request", "refused"].contains(&folder.as_str()));
    folders.retain(|folder| !elsewhere.contains(&folder.as_str()));
    for folder in folders {
        assert!(objects.iter().any(|(object, _)| *object == folder), "{folder} is not in the table");
    }
}

#[test]
fn p02_error_details_are_typed_objects() {
    let folder = root().join("error-details");
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
        let got = written(|out| v1::write_error_details(out, &error));
        assert_eq!(
            String::from_utf8(got).unwrap(),
            content(&folder.join(case).with_extension("json")),
            "{case}"
        );
    }
}

#[test]
fn absent_params_are_an_empty_object() {
    for absent in [None, Some("null"), Some(""), Some(" null\n")] {
        assert!(v1::decode_call(Operation::ListTasks, absent).is_ok(), "{absent:?}");
        let error = v1::decode_call(Operation::GetTask, absent).unwrap_err();
        assert_eq!(error.message(), "Invalid parameters: id is required", "{absent:?}");
    }
}

#[test]
fn broken_json_is_a_parse_error_even_behind_a_wrong_member() {
    for text in ["{", r#"{"id":5"#, r#"{"id":"t"} x"#, r#"{"id":"t",}"#, "\"\u{0}\"", "nul"] {
        let error = v1::decode_call(Operation::GetTask, Some(text)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ParseError, "{text}");
        assert_eq!(v1::read_task(text).unwrap_err().kind(), ErrorKind::InvalidAgentResponse, "{text}");
    }
}

#[test]
fn deleting_a_webhook_is_answered_in_many_ways() {
    for text in ["null", "{}", ""] {
        let reply = v1::read_reply(Operation::DeletePushConfig, text).unwrap();
        assert_eq!(written(|out| v1::write_reply(out, &reply)), b"null");
    }
}

/// Depth is counted where JSON is kept, and skipped without a stack where it is not.
#[test]
fn deep_nesting_does_no_harm() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let ignored = format!(r#"{{"id":"t","x":{deep}}}"#);
    assert!(v1::decode_call(Operation::GetTask, Some(&ignored)).is_ok());
    let kept = format!(r#"{{"id":"t","metadata":{deep}}}"#);
    let error = v1::decode_call(Operation::CancelTask, Some(&kept)).unwrap_err();
    assert_eq!(error.violations()[0].field, "metadata");
}
