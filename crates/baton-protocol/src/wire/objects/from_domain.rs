//! Writes domain values as the shared objects. Members are in the order of the protobuf fields; default values without
//! presence are left out, REQUIRED members are always written.

use std::sync::Arc;

use super::Spelling;
use crate::domain::{
    Artifact, ArtifactUpdate, ContextId, JsonObject, Message, Status, StatusUpdate, Task, TaskId, TaskPage,
    TaskState, Timestamp,
};
use crate::wire::time::write_timestamp;
use crate::wire::write::{Object, string};

pub(crate) fn write_metadata(object: &mut Object<'_>, metadata: Option<&JsonObject>) {
    object.optional_raw("metadata", metadata.map(JsonObject::as_str));
}

pub(crate) fn write_time(out: &mut Vec<u8>, at: Timestamp) {
    out.push(b'"');
    write_timestamp(out, at);
    out.push(b'"');
}

pub(crate) fn write_message<G: Spelling>(out: &mut Vec<u8>, message: &Message) {
    let mut object = Object::begin(out);
    G::write_kind(&mut object, "message");
    object.string("messageId", message.id.as_str());
    object.optional("contextId", message.context_id.as_ref().map(ContextId::as_str));
    object.optional("taskId", message.task_id.as_ref().map(TaskId::as_str));
    object.string("role", G::role_name(message.role));
    object.list(G::PARTS, &message.parts, G::write_part);
    write_metadata(&mut object, message.metadata.as_ref());
    object.strings_unless_empty("extensions", &message.extensions);
    if G::REFERENCES {
        object.list_unless_empty("referenceTaskIds", &message.reference_task_ids, |out, id| {
            string(out, id.as_str());
        });
    }
    object.end();
}

fn write_artifact<G: Spelling>(out: &mut Vec<u8>, artifact: &Artifact) {
    let mut object = Object::begin(out);
    object.string("artifactId", artifact.id.as_str());
    object.optional("name", artifact.name.as_deref());
    object.optional("description", artifact.description.as_deref());
    object.list("parts", &artifact.parts, G::write_part);
    write_metadata(&mut object, artifact.metadata.as_ref());
    object.strings_unless_empty("extensions", &artifact.extensions);
    object.end();
}

fn write_status<G: Spelling>(out: &mut Vec<u8>, state: TaskState, message: Option<&Message>, at: Timestamp) {
    let mut object = Object::begin(out);
    object.string("state", G::state_name(state));
    if let Some(message) = message {
        write_message::<G>(object.member("message"), message);
    }
    if at.is_known() {
        write_time(object.member("timestamp"), at);
    }
    object.end();
}

/// Whether a task is written with its artifacts.
pub(crate) enum Artifacts {
    IfAny,
    Always,
    Never,
}

pub(crate) fn write_task<G: Spelling>(out: &mut Vec<u8>, task: &Task) {
    write_task_with::<G>(out, task, Artifacts::IfAny);
}

fn write_task_with<G: Spelling>(out: &mut Vec<u8>, task: &Task, artifacts: Artifacts) {
    let Status { state, message, timestamp } = &task.status;
    let mut object = Object::begin(out);
    G::write_kind(&mut object, "task");
    object.string("id", task.id.as_str());
    object.string("contextId", task.context_id.as_str());
    write_status::<G>(object.member("status"), *state, message.as_ref(), *timestamp);
    let write = |out: &mut Vec<u8>, artifact: &Arc<Artifact>| write_artifact::<G>(out, artifact);
    match artifacts {
        Artifacts::IfAny => object.list_unless_empty("artifacts", &task.artifacts, write),
        Artifacts::Always => object.list("artifacts", &task.artifacts, write),
        Artifacts::Never => {}
    }
    object.list_unless_empty("history", &task.history, |out, message| write_message::<G>(out, message));
    write_metadata(&mut object, task.metadata.as_ref());
    object.end();
}

pub(crate) fn write_status_event<G: Spelling>(
    out: &mut Vec<u8>,
    task_id: &TaskId,
    context_id: &ContextId,
    at: Timestamp,
    update: &StatusUpdate,
) {
    let mut object = Object::begin(out);
    G::write_kind(&mut object, "status-update");
    object.string("taskId", task_id.as_str());
    object.string("contextId", context_id.as_str());
    write_status::<G>(object.member("status"), update.state, update.message.as_ref(), at);
    G::write_final(&mut object, update.state);
    write_metadata(&mut object, update.metadata.as_ref());
    object.end();
}

pub(crate) fn write_artifact_event<G: Spelling>(
    out: &mut Vec<u8>,
    task_id: &TaskId,
    context_id: &ContextId,
    update: &ArtifactUpdate,
) {
    let mut object = Object::begin(out);
    G::write_kind(&mut object, "artifact-update");
    object.string("taskId", task_id.as_str());
    object.string("contextId", context_id.as_str());
    write_artifact::<G>(object.member("artifact"), &update.artifact);
    object.flag_if_set("append", update.append);
    object.flag_if_set("lastChunk", update.last_chunk);
    write_metadata(&mut object, update.metadata.as_ref());
    object.end();
}

/// An object with one member, whose name says what it contains.
pub(crate) fn wrapped(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    let mut object = Object::begin(out);
    write(object.member(name));
    object.end();
}

pub(crate) fn write_page<G: Spelling>(out: &mut Vec<u8>, page: &TaskPage) {
    let mut object = Object::begin(out);
    object.list("tasks", &page.tasks, |out, task| write_listed_task::<G>(out, task, page.with_artifacts));
    write_page_end(&mut object, &page.next_page_token, page.page_size, page.total_size);
    object.end();
}

/// A task on a page.
pub(crate) fn write_listed_task<G: Spelling>(out: &mut Vec<u8>, task: &Task, with_artifacts: bool) {
    let artifacts = if with_artifacts { Artifacts::Always } else { Artifacts::Never };
    write_task_with::<G>(out, task, artifacts);
}

/// The members of a page after its tasks.
pub(crate) fn write_page_end(
    object: &mut Object<'_>,
    next_page_token: &str,
    page_size: u32,
    total_size: u64,
) {
    object.string("nextPageToken", next_page_token);
    // Both are int32 on the wire.
    object.number("pageSize", page_size.min(i32::MAX as u32));
    object.number("totalSize", total_size.min(i32::MAX as u64) as i64);
}
