//! From domain values to 1.0 JSON. Members stand in the order of the protobuf fields; defaults without presence
//! are dropped, REQUIRED members are always there.

use super::names::{role_name, state_name};
use crate::domain::{
    Artifact, ArtifactUpdate, ContextId, Message, Part, PartContent, PushConfig, Role, Status, StatusUpdate,
    Task, TaskId, TaskPage, TaskState, Timestamp,
};
use crate::domain::{JsonObject, PushAuthentication};
use crate::operation::Reply;
use crate::wire::time::write_timestamp;
use crate::wire::write::{Object, string};

pub fn write_message(out: &mut Vec<u8>, message: &Message) {
    let mut object = Object::begin(out);
    object.string("messageId", message.id.as_str());
    object.optional("contextId", message.context_id.as_ref().map(ContextId::as_str));
    object.optional("taskId", message.task_id.as_ref().map(TaskId::as_str));
    write_role(&mut object, message.role);
    object.list("parts", &message.parts, write_part);
    write_metadata(&mut object, message.metadata.as_ref());
    object.strings_unless_empty("extensions", &message.extensions);
    object.list_unless_empty("referenceTaskIds", &message.reference_task_ids, |out, id| {
        string(out, id.as_str())
    });
    object.end();
}

fn write_role(object: &mut Object<'_>, role: Role) {
    object.string("role", role_name(role));
}

pub(super) fn write_metadata(object: &mut Object<'_>, metadata: Option<&JsonObject>) {
    object.optional_raw("metadata", metadata.map(JsonObject::as_str));
}

fn write_part(out: &mut Vec<u8>, part: &Part) {
    let mut object = Object::begin(out);
    match &part.content {
        PartContent::Text(text) => object.string("text", text),
        PartContent::Raw(bytes) => object.base64("raw", bytes),
        PartContent::Url(url) => object.string("url", url),
        PartContent::Data(data) => object.raw("data", data.as_str()),
    }
    write_metadata(&mut object, part.metadata.as_ref());
    object.optional("filename", part.filename.as_deref());
    object.optional("mediaType", part.media_type.as_deref());
    object.end();
}

fn write_artifact(out: &mut Vec<u8>, artifact: &Artifact) {
    let mut object = Object::begin(out);
    object.string("artifactId", artifact.id.as_str());
    object.optional("name", artifact.name.as_deref());
    object.optional("description", artifact.description.as_deref());
    object.list("parts", &artifact.parts, write_part);
    write_metadata(&mut object, artifact.metadata.as_ref());
    object.strings_unless_empty("extensions", &artifact.extensions);
    object.end();
}

fn write_status(out: &mut Vec<u8>, state: TaskState, message: Option<&Message>, at: Timestamp) {
    let mut object = Object::begin(out);
    object.string("state", state_name(state));
    if let Some(message) = message {
        write_message(object.member("message"), message);
    }
    write_time(object.member("timestamp"), at);
    object.end();
}

pub(super) fn write_time(out: &mut Vec<u8>, at: Timestamp) {
    out.push(b'"');
    write_timestamp(out, at);
    out.push(b'"');
}

/// Whether a task shows its artifacts.
enum Artifacts {
    IfAny,
    Always,
    Never,
}

pub fn write_task(out: &mut Vec<u8>, task: &Task) {
    write_task_with(out, task, Artifacts::IfAny);
}

fn write_task_with(out: &mut Vec<u8>, task: &Task, artifacts: Artifacts) {
    let Status { state, message, timestamp } = &task.status;
    let mut object = Object::begin(out);
    object.string("id", task.id.as_str());
    object.string("contextId", task.context_id.as_str());
    write_status(object.member("status"), *state, message.as_ref(), *timestamp);
    match artifacts {
        Artifacts::IfAny => object.list_unless_empty("artifacts", &task.artifacts, write_artifact),
        Artifacts::Always => object.list("artifacts", &task.artifacts, write_artifact),
        Artifacts::Never => {}
    }
    object.list_unless_empty("history", &task.history, write_message);
    write_metadata(&mut object, task.metadata.as_ref());
    object.end();
}

pub fn write_stream_task(out: &mut Vec<u8>, task: &Task) {
    let mut object = Object::begin(out);
    write_task(object.member("task"), task);
    object.end();
}

pub fn write_stream_message(out: &mut Vec<u8>, message: &Message) {
    let mut object = Object::begin(out);
    write_message(object.member("message"), message);
    object.end();
}

pub fn write_stream_status(
    out: &mut Vec<u8>,
    task_id: &TaskId,
    context_id: &ContextId,
    at: Timestamp,
    update: &StatusUpdate,
) {
    let mut outer = Object::begin(out);
    let mut object = Object::begin(outer.member("statusUpdate"));
    object.string("taskId", task_id.as_str());
    object.string("contextId", context_id.as_str());
    write_status(object.member("status"), update.state, update.message.as_ref(), at);
    write_metadata(&mut object, update.metadata.as_ref());
    object.end();
    outer.end();
}

pub fn write_stream_artifact(
    out: &mut Vec<u8>,
    task_id: &TaskId,
    context_id: &ContextId,
    update: &ArtifactUpdate,
) {
    let mut outer = Object::begin(out);
    let mut object = Object::begin(outer.member("artifactUpdate"));
    object.string("taskId", task_id.as_str());
    object.string("contextId", context_id.as_str());
    write_artifact(object.member("artifact"), &update.artifact);
    object.flag_if_set("append", update.append);
    object.flag_if_set("lastChunk", update.last_chunk);
    write_metadata(&mut object, update.metadata.as_ref());
    object.end();
    outer.end();
}

pub(super) fn write_push_config(out: &mut Vec<u8>, config: &PushConfig) {
    write_tenant_push_config(out, None, config);
}

pub(super) fn write_tenant_push_config(out: &mut Vec<u8>, tenant: Option<&str>, config: &PushConfig) {
    let mut object = Object::begin(out);
    object.optional("tenant", tenant);
    object.optional("id", config.id.as_ref().map(|id| id.as_str()));
    object.optional("taskId", config.task_id.as_ref().map(TaskId::as_str));
    object.string("url", &config.url);
    object.optional("token", config.token.as_deref());
    if let Some(PushAuthentication { scheme, credentials }) = &config.authentication {
        let mut inner = Object::begin(object.member("authentication"));
        inner.string("scheme", scheme);
        inner.optional("credentials", credentials.as_deref());
        inner.end();
    }
    object.end();
}

fn write_page(out: &mut Vec<u8>, page: &TaskPage) {
    let mut object = Object::begin(out);
    object.list("tasks", &page.tasks, |out, task| {
        write_task_with(out, task, if page.with_artifacts { Artifacts::Always } else { Artifacts::Never });
    });
    object.string("nextPageToken", &page.next_page_token);
    // Both are int32 on the wire.
    object.number("pageSize", page.page_size.min(i32::MAX as u32));
    object.number("totalSize", page.total_size.min(i32::MAX as u64) as i64);
    object.end();
}

/// The `result` of a call that does not stream.
pub fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::SentTask(task) => write_stream_task(out, task),
        Reply::SentMessage(message) => write_stream_message(out, message),
        Reply::Task(task) => write_task(out, task),
        Reply::Tasks(page) => write_page(out, page),
        Reply::PushConfig(config) => write_push_config(out, config),
        Reply::PushConfigs { configs, next_page_token } => {
            let mut object = Object::begin(out);
            // Not REQUIRED, but clients without a protobuf library loop over it unasked.
            object.list("configs", configs, write_push_config);
            object.string_unless_empty("nextPageToken", next_page_token);
            object.end();
        }
        Reply::PushConfigDeleted => out.extend_from_slice(b"null"),
        Reply::Card(card) => super::write_card(out, card),
    }
}
