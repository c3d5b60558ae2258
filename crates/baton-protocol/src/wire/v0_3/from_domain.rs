//! Writes domain values as 0.3 JSON.

use super::Dialect;
use super::to_domain::COMPAT;
use crate::domain::json::JsonKind;
use crate::domain::{JsonObject, JsonText, Part, PartContent, PushAuthentication, PushConfig};
use crate::operation::Reply;
use crate::wire::objects::{self, wrapped, write_metadata};
use crate::wire::write::{Object, list};

/// The media type and name of text and data parts are left out, since 0.3 has no members for them.
pub(super) fn write_part<G: Dialect>(out: &mut Vec<u8>, part: &Part) {
    let mut object = Object::begin(out);
    match &part.content {
        PartContent::Text(text) => {
            G::write_kind(&mut object, "text");
            object.string("text", text);
        }
        PartContent::Raw(_) | PartContent::Url(_) => {
            G::write_kind(&mut object, "file");
            write_file::<G>(object.member("file"), part);
        }
        PartContent::Data(data) => {
            G::write_kind(&mut object, "data");
            write_data::<G>(object.member("data"), data);
            if data.kind() != JsonKind::Object {
                write_marked(object.member("metadata"), part.metadata.as_ref());
                return object.end();
            }
        }
    }
    write_metadata(&mut object, part.metadata.as_ref());
    object.end();
}

fn write_file<G: Dialect>(out: &mut Vec<u8>, part: &Part) {
    let mut object = Object::begin(out);
    match &part.content {
        PartContent::Raw(bytes) => object.base64(if G::PROTO { "fileWithBytes" } else { "bytes" }, bytes),
        PartContent::Url(url) => object.string(if G::PROTO { "fileWithUri" } else { "uri" }, url),
        PartContent::Text(_) | PartContent::Data(_) => {}
    }
    object.optional("mimeType", part.media_type.as_deref());
    object.optional("name", part.filename.as_deref());
    object.end();
}

/// Data is an object in 0.3; other values are wrapped as `{"value": …}`.
fn write_data<G: Dialect>(out: &mut Vec<u8>, data: &JsonText) {
    let write = |out: &mut Vec<u8>| match data.kind() {
        JsonKind::Object => out.extend_from_slice(data.as_str().as_bytes()),
        _ => wrapped(out, "value", |out| out.extend_from_slice(data.as_str().as_bytes())),
    };
    if G::PROTO { wrapped(out, "data", write) } else { write(out) }
}

/// Metadata with the marker that the data was wrapped.
pub(in crate::wire) fn write_marked(out: &mut Vec<u8>, metadata: Option<&JsonObject>) {
    let mut object = Object::begin(out);
    for (key, value) in metadata.into_iter().flat_map(JsonObject::members).filter(|(key, _)| key != COMPAT) {
        object.entry(&key).extend_from_slice(value.as_bytes());
    }
    object.flag(COMPAT, true);
    object.end();
}

/// A webhook with the task it belongs to.
pub(super) fn write_push_config<G: Dialect>(out: &mut Vec<u8>, config: &PushConfig) {
    let mut object = Object::begin(out);
    if let Some(task_id) = &config.task_id {
        if G::PROTO {
            object.string("name", &resource_name(task_id.as_str(), config.id.as_ref().map(|id| id.as_str())));
        } else {
            object.string("taskId", task_id.as_str());
        }
    }
    write_settings(object.member("pushNotificationConfig"), config);
    object.end();
}

pub(in crate::wire) fn resource_name(task_id: &str, config_id: Option<&str>) -> String {
    match config_id {
        Some(config_id) => format!("tasks/{task_id}/pushNotificationConfigs/{config_id}"),
        None => format!("tasks/{task_id}"),
    }
}

/// A webhook alone.
pub(super) fn write_settings(out: &mut Vec<u8>, config: &PushConfig) {
    let mut object = Object::begin(out);
    object.optional("id", config.id.as_ref().map(|id| id.as_str()));
    object.string("url", &config.url);
    object.optional("token", config.token.as_deref());
    if let Some(PushAuthentication { scheme, credentials }) = &config.authentication {
        let mut inner = Object::begin(object.member("authentication"));
        inner.strings("schemes", std::slice::from_ref(scheme));
        inner.optional("credentials", credentials.as_deref());
        inner.end();
    }
    object.end();
}

pub(super) fn write_reply<G: Dialect>(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::SentTask(task) => G::wrapped(out, "task", |out| objects::write_task::<G>(out, task)),
        Reply::SentMessage(message) => {
            G::wrapped(out, "message", |out| objects::write_message::<G>(out, message));
        }
        Reply::Task(task) => objects::write_task::<G>(out, task),
        Reply::Tasks(page) => objects::write_page::<G>(out, page),
        Reply::PushConfig(config) => write_push_config::<G>(out, config),
        Reply::PushConfigs { configs, next_page_token } if G::PROTO => {
            let mut object = Object::begin(out);
            object.list("configs", configs, write_push_config::<G>);
            object.string_unless_empty("nextPageToken", next_page_token);
            object.end();
        }
        Reply::PushConfigs { configs, .. } => list(out, configs, write_push_config::<G>),
        Reply::PushConfigDeleted => out.extend_from_slice(if G::PROTO { b"{}" } else { b"null" }),
        Reply::Card(card) => super::card::write_card::<G>(out, card),
    }
}
