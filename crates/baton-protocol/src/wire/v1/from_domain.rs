//! Writes domain values as 1.0 JSON. Members are in the order of the protobuf fields; default values without presence
//! are left out, REQUIRED members are always written.

use super::V1;
use crate::domain::{
    ArtifactUpdate, ContextId, Message, Part, PartContent, PushAuthentication, PushConfig, StatusUpdate,
    Task, TaskId, Timestamp,
};
use crate::operation::Reply;
use crate::wire::objects::{
    self, wrapped, write_artifact_event, write_metadata, write_page, write_status_event,
};
use crate::wire::write::Object;

pub fn write_message(out: &mut Vec<u8>, message: &Message) {
    objects::write_message::<V1>(out, message);
}

pub(super) fn write_part(out: &mut Vec<u8>, part: &Part) {
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

pub fn write_task(out: &mut Vec<u8>, task: &Task) {
    objects::write_task::<V1>(out, task);
}

pub fn write_stream_task(out: &mut Vec<u8>, task: &Task) {
    wrapped(out, "task", |out| write_task(out, task));
}

pub fn write_stream_message(out: &mut Vec<u8>, message: &Message) {
    wrapped(out, "message", |out| write_message(out, message));
}

pub fn write_stream_status(
    out: &mut Vec<u8>,
    task_id: &TaskId,
    context_id: &ContextId,
    at: Timestamp,
    update: &StatusUpdate,
) {
    wrapped(out, "statusUpdate", |out| write_status_event::<V1>(out, task_id, context_id, at, update));
}

pub fn write_stream_artifact(
    out: &mut Vec<u8>,
    task_id: &TaskId,
    context_id: &ContextId,
    update: &ArtifactUpdate,
) {
    wrapped(out, "artifactUpdate", |out| write_artifact_event::<V1>(out, task_id, context_id, update));
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

/// The text before and after the JSON of a task or a page in `result`: nothing, or the wrapper of a reply to a send.
pub fn around_stored_reply(sent: bool) -> (&'static [u8], &'static [u8]) {
    if sent { (b"{\"task\":", b"}") } else { (b"", b"") }
}

/// The `result` of a call that does not stream.
pub fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::SentTask(task) => write_stream_task(out, task),
        Reply::SentMessage(message) => write_stream_message(out, message),
        Reply::Task(task) => write_task(out, task),
        Reply::Tasks(page) => write_page::<V1>(out, page),
        Reply::PushConfig(config) => write_push_config(out, config),
        Reply::PushConfigs { configs, next_page_token } => {
            let mut object = Object::begin(out);
            // Not REQUIRED, but clients without a protobuf library expect the list.
            object.list("configs", configs, write_push_config);
            object.string_unless_empty("nextPageToken", next_page_token);
            object.end();
        }
        Reply::PushConfigDeleted => out.extend_from_slice(b"null"),
        Reply::Card(card) => super::write_card(out, card),
    }
}
