//! A task with every kind of event, and the golden files with its stored form.

use std::fs;
use std::path::PathBuf;

use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, Event, EventBody, JsonObject, JsonText, Message,
    MessageId, Part, Role, StatusUpdate, TaskId, TaskState, Timestamp,
};
use baton_protocol::lifecycle::Snapshot;

use crate::store::record::IssuedKey;

pub(crate) fn task_id() -> TaskId {
    TaskId::parse("task-1").unwrap()
}

pub(crate) fn context_id() -> ContextId {
    ContextId::parse("context-1").unwrap()
}

/// The time of event `number`: as many seconds after the task was created.
pub(crate) fn at(number: u64) -> Timestamp {
    Timestamp::from_millis(1_763_200_000_000 + 1000 * number as i64)
}

/// The task's events, each with the name of its golden file.
pub(crate) fn story() -> Vec<(&'static str, Event)> {
    let metadata = || Some(JsonObject::parse(r#"{"trace":"a b","n":1.50}"#).unwrap());
    let status = |state, message, metadata| EventBody::Status(StatusUpdate { state, message, metadata });
    let artifact = |artifact, append, metadata| {
        EventBody::Artifact(ArtifactUpdate {
            artifact,
            append,
            joins: false,
            last_chunk: append,
            ordinal: 0,
            metadata,
        })
    };
    let report = ArtifactId::parse("report").unwrap();
    let bodies = [
        ("user-message", EventBody::said(question())),
        ("attempt-started", EventBody::AttemptStarted { attempt: 1, skill: None }),
        ("status", status(TaskState::Working, None, None)),
        (
            "artifact",
            artifact(
                Artifact {
                    name: Some("Report".to_owned()),
                    description: Some("What was found".to_owned()),
                    metadata: metadata(),
                    extensions: vec!["https://example.org/ext".to_owned()],
                    ..Artifact::new(report.clone(), vec![Part::text("one\ntwo"), data()])
                },
                false,
                metadata(),
            ),
        ),
        ("artifact-append", artifact(Artifact::new(report, vec![Part::text(" three")]), true, None)),
        (
            "status-message",
            status(TaskState::InputRequired, Some(message("m-2", Role::Agent, "go on?")), metadata()),
        ),
        ("user-message-short", EventBody::said(message("m-3", Role::User, "no"))),
        ("cancel-requested", EventBody::CancelRequested { metadata: None }),
        ("cancel-requested-metadata", EventBody::CancelRequested { metadata: metadata() }),
        ("status-last", status(TaskState::Canceled, Some(message("m-4", Role::Agent, "stopped")), None)),
    ];
    (1..).zip(bodies).map(|(number, (name, body))| (name, Event { number, at: at(number), body })).collect()
}

/// A key with everything that a key can have.
pub(crate) fn key() -> IssuedKey {
    IssuedKey {
        id: "4f9k2m7q".to_owned(),
        name: "CI of \"Alice\"".to_owned(),
        owner: "alice".to_owned(),
        scopes: vec!["tasks:read".to_owned(), "tasks:write".to_owned()],
        created_at: at(0),
        expires_at: Some(at(90)),
        revoked_at: Some(at(5)),
        sha256: [7; 32],
    }
}

/// The task after its first `version` events.
pub(crate) fn snapshot(version: usize) -> Snapshot {
    let mut snapshot = Snapshot::begin(task_id(), context_id(), at(0));
    for (_, event) in &story()[..version] {
        snapshot.apply(event.clone()).unwrap();
    }
    snapshot
}

pub(crate) fn message(id: &str, role: Role, text: &str) -> Message {
    let ids = (Some(task_id()), Some(context_id()));
    let message = Message::new(MessageId::parse(id).unwrap(), role, vec![Part::text(text)]);
    Message { task_id: ids.0, context_id: ids.1, ..message }
}

/// A message with every kind of part and every field.
fn question() -> Message {
    let metadata = JsonObject::parse(r#"{"k":[null,true]}"#).unwrap();
    let text = Part {
        media_type: Some("text/markdown".to_owned()),
        ..Part::text("ä \"quoted\" \u{1f600}\u{2028}")
    };
    Message {
        parts: vec![
            Part { metadata: Some(metadata.clone()), ..text },
            Part::raw(vec![0, 1, 254, 255], "application/octet-stream", "four.bin"),
            Part::url("https://example.org/a.png", "image/png", "a.png"),
            data(),
        ],
        metadata: Some(metadata),
        extensions: vec!["https://example.org/ext".to_owned()],
        reference_task_ids: vec![TaskId::parse("task-0").unwrap()],
        ..message("m-1", Role::User, "")
    }
}

fn data() -> Part {
    Part::data(JsonText::parse(r#"{"b":1e2,"a":[1.0,null]}"#).unwrap())
}

/// A file of `fixtures/store`.
pub(crate) fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../fixtures/store", name].iter().collect()
}

/// Whether to write a missing golden file. An existing one is never replaced: a changed format gets a new version and new
/// files, and the old files stay.
pub(crate) fn must_write(name: &str) -> bool {
    let write = std::env::var_os("BATON_WRITE_GOLDEN").is_some() && !path(name).exists();
    if write {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
    }
    write
}
