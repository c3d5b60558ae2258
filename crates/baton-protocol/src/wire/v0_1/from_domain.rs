//! Writes domain values as 0.1 JSON. Members are in the order of the schema; optional empty members are left out.

use super::names::{role_name, state_name};
use super::{ARTIFACT_EVENT, LegacyOptions, STATUS_EVENT};
use crate::domain::json::JsonKind;
use crate::domain::{
    Artifact, ArtifactUpdate, ContextId, JsonObject, JsonText, Message, Part, PartContent,
    PushAuthentication, PushConfig, PushEvents, Status, StatusUpdate, Task, TaskId, TaskState, Timestamp,
};
use crate::operation::{HistoryLength, Reply};
use crate::wire::objects::write_metadata;
use crate::wire::time::write_timestamp;
use crate::wire::write::{Object, list, string};

pub(super) fn write_message(out: &mut Vec<u8>, message: &Message) {
    let mut object = Object::begin(out);
    object.string("role", role_name(message.role));
    object.list("parts", &message.parts, write_part);
    write_metadata(&mut object, message.metadata.as_ref());
    object.end();
}

fn write_part(out: &mut Vec<u8>, part: &Part) {
    let mut object = Object::begin(out);
    match &part.content {
        PartContent::Text(text) => {
            object.string("type", "text");
            object.string("text", text);
        }
        PartContent::Raw(bytes) => write_file(&mut object, part, |file| file.base64("bytes", bytes)),
        PartContent::Url(url) => write_file(&mut object, part, |file| file.string("uri", url)),
        PartContent::Data(data) => {
            object.string("type", "data");
            write_data(object.member("data"), data);
        }
    }
    write_metadata(&mut object, part.metadata.as_ref());
    object.end();
}

fn write_file(object: &mut Object<'_>, part: &Part, write_content: impl FnOnce(&mut Object<'_>)) {
    object.string("type", "file");
    let mut file = Object::begin(object.member("file"));
    file.optional("name", part.filename.as_deref());
    file.optional("mimeType", part.media_type.as_deref());
    write_content(&mut file);
    file.end();
}

/// 0.1 has objects, and according to its text arrays. Any other value is wrapped in an object, as later SDKs do for
/// 0.3.
fn write_data(out: &mut Vec<u8>, data: &JsonText) {
    match data.kind() {
        JsonKind::Object | JsonKind::Array => out.extend_from_slice(data.as_str().as_bytes()),
        JsonKind::String | JsonKind::Number | JsonKind::Bool | JsonKind::Null => {
            let mut object = Object::begin(out);
            object.raw("value", data.as_str());
            object.end();
        }
    }
}

/// Where an artifact is written.
enum Chunk {
    InTask,
    /// Flags are always written: clients take a missing `lastChunk` for true.
    InEvent {
        append: bool,
        last_chunk: bool,
    },
}

fn write_artifact(out: &mut Vec<u8>, artifact: &Artifact, index: u32, chunk: Chunk) {
    let mut object = Object::begin(out);
    object.optional("name", artifact.name.as_deref());
    object.optional("description", artifact.description.as_deref());
    object.list("parts", &artifact.parts, write_part);
    object.number("index", index);
    if let Chunk::InEvent { append, last_chunk } = chunk {
        object.flag("append", append);
        object.flag("lastChunk", last_chunk);
    }
    write_metadata(&mut object, artifact.metadata.as_ref());
    object.end();
}

/// `at` is `None` for a task that is made from a message.
fn write_status(out: &mut Vec<u8>, state: TaskState, message: Option<&Message>, at: Option<Timestamp>) {
    let mut object = Object::begin(out);
    object.string("state", state_name(state));
    if let Some(message) = message {
        write_message(object.member("message"), message);
    }
    if let Some(at) = at.filter(|at| at.is_known()) {
        let out = object.member("timestamp");
        out.push(b'"');
        write_timestamp(out, at);
        out.push(b'"');
    }
    object.end();
}

pub fn write_task(out: &mut Vec<u8>, task: &Task, options: &LegacyOptions) {
    let mut object = Object::begin(out);
    object.string("id", task.id.as_str());
    object.string("sessionId", task.context_id.as_str());
    let status = &task.status;
    write_status(object.member("status"), status.state, status.message.as_ref(), Some(status.timestamp));
    if !task.artifacts.is_empty() {
        let mut index = 0;
        list(object.member("artifacts"), &task.artifacts, |out, artifact| {
            write_artifact(out, artifact, index, Chunk::InTask);
            index += 1;
        });
    }
    if options.state_history {
        let shown = last(&task.transitions, options.history_length);
        object.list_unless_empty("history", shown, |out, change| {
            write_status(out, change.state, None, Some(change.at));
        });
    } else {
        object.list_unless_empty("history", last(&task.history, options.history_length), |out, message| {
            write_message(out, message)
        });
    }
    write_metadata(&mut object, task.metadata.as_ref());
    object.end();
}

fn last<T>(items: &[T], length: HistoryLength) -> &[T] {
    match length {
        HistoryLength::All => items,
        HistoryLength::Last(most) => &items[items.len().saturating_sub(most as usize)..],
    }
}

/// Writes a message reply as a completed task: 0.1 has no other reply.
fn write_answered(out: &mut Vec<u8>, message: &Message, options: &LegacyOptions) {
    let mut object = Object::begin(out);
    object.string("id", answered_id(options.task_id.as_ref(), message));
    object.optional("sessionId", message.context_id.as_ref().map(ContextId::as_str));
    write_status(object.member("status"), TaskState::Completed, Some(message), None);
    object.end();
}

fn answered_id<'a>(asked: Option<&'a TaskId>, message: &'a Message) -> &'a str {
    asked.or(message.task_id.as_ref()).map_or(message.id.as_str(), TaskId::as_str)
}

/// The first frame of a stream: the task's current status.
pub fn write_stream_task(out: &mut Vec<u8>, task: &Task) {
    let status = &task.status;
    write_status_event(
        out,
        task.id.as_str(),
        status.state,
        status.message.as_ref(),
        Some(status.timestamp),
        task.metadata.as_ref(),
    );
}

/// A stream that consists of one message. `asked` is the task that the caller named.
pub fn write_stream_message(out: &mut Vec<u8>, asked: Option<&TaskId>, message: &Message) {
    let id = answered_id(asked, message);
    write_status_event(out, id, TaskState::Completed, Some(message), None, None);
}

pub fn write_stream_status(out: &mut Vec<u8>, task_id: &TaskId, at: Timestamp, update: &StatusUpdate) {
    let StatusUpdate { state, message, metadata } = update;
    write_status_event(out, task_id.as_str(), *state, message.as_ref(), Some(at), metadata.as_ref());
}

fn write_status_event(
    out: &mut Vec<u8>,
    task_id: &str,
    state: TaskState,
    message: Option<&Message>,
    at: Option<Timestamp>,
    metadata: Option<&JsonObject>,
) {
    let mut object = Object::begin(out);
    object.string("id", task_id);
    write_status(object.member("status"), state, message, at);
    // In 0.1 a stream ends whenever the task waits for the client, too.
    object.flag("final", state.is_terminal() || state.is_interrupted());
    write_metadata(&mut object, metadata);
    object.end();
}

pub fn write_stream_artifact(out: &mut Vec<u8>, task_id: &TaskId, update: &ArtifactUpdate) {
    let ArtifactUpdate { artifact, append, joins: _, last_chunk, ordinal, metadata } = update;
    let mut object = Object::begin(out);
    object.string("id", task_id.as_str());
    let chunk = Chunk::InEvent { append: *append, last_chunk: *last_chunk };
    write_artifact(object.member("artifact"), artifact, *ordinal, chunk);
    write_metadata(&mut object, metadata.as_ref());
    object.end();
}

/// The body of a webhook call: what happened, and the task's status as of then. `artifact` is `None` if the status changed.
pub fn write_notification(
    out: &mut Vec<u8>,
    task_id: &TaskId,
    at: Timestamp,
    status: &Status,
    artifact: Option<&ArtifactUpdate>,
) {
    let mut object = Object::begin(out);
    object.string("taskId", task_id.as_str());
    object.string("eventType", if artifact.is_some() { ARTIFACT_EVENT } else { STATUS_EVENT });
    write_status(object.member("status"), status.state, status.message.as_ref(), Some(status.timestamp));
    if let Some(ArtifactUpdate { artifact, append, last_chunk, ordinal, .. }) = artifact {
        let chunk = Chunk::InEvent { append: *append, last_chunk: *last_chunk };
        write_artifact(object.member("artifact"), artifact, *ordinal, chunk);
    }
    let out = object.member("timestamp");
    out.push(b'"');
    write_timestamp(out, at);
    out.push(b'"');
    object.end();
}

/// `{id, pushNotificationConfig}`.
pub fn write_push_config(out: &mut Vec<u8>, config: &PushConfig) {
    let mut object = Object::begin(out);
    object.optional("id", config.task_id.as_ref().map(TaskId::as_str));
    write_webhook(object.member("pushNotificationConfig"), config);
    object.end();
}

pub(super) fn write_webhook(out: &mut Vec<u8>, config: &PushConfig) {
    let mut object = Object::begin(out);
    object.string("url", &config.url);
    object.optional("token", config.token.as_deref());
    if let Some(PushAuthentication { scheme, credentials }) = &config.authentication {
        let mut inner = Object::begin(object.member("authentication"));
        inner.list("schemes", std::slice::from_ref(scheme), |out, scheme| string(out, scheme));
        inner.optional("credentials", credentials.as_deref());
        inner.end();
    }
    let PushEvents { status, artifact } = config.events;
    if (status, artifact) != (true, true) {
        let names = [(status, STATUS_EVENT), (artifact, ARTIFACT_EVENT)];
        let names: Vec<&str> = names.into_iter().filter_map(|(on, name)| on.then_some(name)).collect();
        object.list("events", &names, |out, name| string(out, name));
    }
    object.end();
}

/// The `result` of a call that does not stream. Replies of operations that 0.1 lacks are written as `null`: no 0.1
/// request has such a reply.
pub fn write_reply(out: &mut Vec<u8>, reply: &Reply, options: &LegacyOptions) {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => write_task(out, task, options),
        Reply::SentMessage(message) => write_answered(out, message, options),
        Reply::PushConfig(config) => write_push_config(out, config),
        Reply::Card(card) => super::write_card(out, card, &super::LegacyCardFacts::default()),
        Reply::Tasks(_) | Reply::PushConfigs { .. } | Reply::PushConfigDeleted => {
            out.extend_from_slice(b"null");
        }
    }
}
