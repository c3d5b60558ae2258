//! Converts 0.3 JSON to domain values: rules that need more than one member.

use std::marker::PhantomData;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor, value};

use super::Dialect;
use super::types::*;
use crate::domain::{
    JsonObject, JsonText, Message, Part, PartContent, PushAuthentication, PushConfig, PushConfigId,
    PushEvents, Task, TaskId,
};
use crate::error::{Error, ErrorKind};
use crate::operation::{Operation, Reply};
use crate::wire::StreamItem;
use crate::wire::read::{FromWire, Subject, Twin, from_str, read, twin};
use crate::wire::scalars::Bytes;
use crate::wire::stream_item::{ArtifactEvent, StatusEvent};
use crate::wire::write::Object;

#[derive(Clone, Copy)]
pub(super) enum PartKind {
    Text,
    File,
    Data,
}

impl<G> FromWire<G> for PartKind {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, "text, file or data", |text| match text {
            "text" => Ok(PartKind::Text),
            "file" => Ok(PartKind::File),
            "data" => Ok(PartKind::Data),
            _ => Err("must be text, file or data".to_owned()),
        })
    }
}

/// The content of a file part.
pub(super) struct File {
    content: PartContent,
    media_type: Option<String>,
    name: Option<String>,
}

impl<G> FromWire<G> for File {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FileTwin { bytes, uri, mime_type, name } = twin(deserializer)?;
        let content = file_content(bytes, uri)?.ok_or_else(|| D::Error::custom(ONE_CONTENT))?;
        Ok(File { content, media_type: mime_type, name })
    }
}

const ONE_CONTENT: &str = "must hold exactly one of bytes and uri";

fn file_content<E: serde::de::Error>(
    bytes: Option<Bytes>,
    uri: Option<String>,
) -> Result<Option<PartContent>, E> {
    match (bytes, uri) {
        (Some(bytes), None) => Ok(Some(PartContent::Raw(bytes.0))),
        (None, Some(uri)) => Ok(Some(PartContent::Url(uri))),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(E::custom(ONE_CONTENT)),
    }
}

/// Reads a part by its kind, or, without a kind, by its only content member.
pub(super) fn part<'de, D: Deserializer<'de>>(deserializer: D, proto: bool) -> Result<Part, D::Error> {
    let twin: PartTwin = twin(deserializer)?;
    let kind = twin.kind.or(twin.old_kind);
    let flat = file_content(twin.bytes, twin.uri)?.map(|content| File {
        content,
        media_type: twin.mime_type,
        name: twin.name,
    });
    let metadata = twin.metadata;
    match (kind, twin.text, twin.file.or(flat), twin.data) {
        (None | Some(PartKind::Text), Some(text), None, None) => {
            Ok(Part { content: PartContent::Text(text), filename: None, media_type: None, metadata })
        }
        (None | Some(PartKind::File), None, Some(File { content, media_type, name }), None) => {
            Ok(Part { content, filename: name, media_type, metadata })
        }
        (None | Some(PartKind::Data), None, None, Some(data)) => {
            let data = if proto && kind.is_none() { unwrap_message(data) } else { data };
            let (data, metadata) = undo_compat(data, metadata);
            Ok(Part { content: PartContent::Data(data), filename: None, media_type: None, metadata })
        }
        (Some(PartKind::Text), None, None, None) => Err(D::Error::missing_field("text")),
        (Some(PartKind::File), None, None, None) => Err(D::Error::missing_field("file")),
        (Some(PartKind::Data), None, None, None) => Err(D::Error::missing_field("data")),
        _ => Err(D::Error::custom("must hold exactly one of text, file and data, the one its kind says")),
    }
}

/// In the proto, `DataPart` is a message with the value in a member that is also called `data`. Anything else is a part
/// of the `kind` dialect without its kind.
fn unwrap_message(data: JsonObject) -> JsonObject {
    only_member(&data, "data").and_then(|inner| JsonObject::parse(inner).ok()).unwrap_or(data)
}

fn only_member<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    let mut members = object.members();
    match (members.next(), members.next()) {
        (Some((key, value)), None) if key == name => Some(value),
        _ => None,
    }
}

/// The marker, in a part's metadata, of data that was wrapped because it was not an object.
pub(super) const COMPAT: &str = "data_part_compat";

pub(in crate::wire) fn undo_compat(
    data: JsonObject,
    metadata: Option<JsonObject>,
) -> (JsonText, Option<JsonObject>) {
    let marked = metadata.as_ref().filter(|metadata| metadata.get(COMPAT) == Some("true"));
    let value = only_member(&data, "value").and_then(|value| JsonText::parse(value).ok());
    match (marked, value) {
        (Some(marked), Some(value)) => (value, without_mark(marked)),
        _ => (data.into(), metadata),
    }
}

fn without_mark(metadata: &JsonObject) -> Option<JsonObject> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    for (key, value) in metadata.members().filter(|(key, _)| key != COMPAT) {
        object.entry(&key).extend_from_slice(value.as_bytes());
    }
    object.end();
    let rest = std::str::from_utf8(&out).ok().and_then(|text| JsonObject::parse(text).ok());
    rest.filter(|rest| !rest.is_empty())
}

/// A resource name of the proto: `tasks/{id}`, or `tasks/{id}/pushNotificationConfigs/{id}`.
pub(in crate::wire) struct Resource {
    pub(in crate::wire) task_id: TaskId,
    pub(in crate::wire) config_id: Option<PushConfigId>,
}

impl Resource {
    pub(in crate::wire) fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("tasks/")?;
        let (task, config) = rest.rsplit_once("/pushNotificationConfigs").unwrap_or((rest, ""));
        let config = config.strip_prefix('/').unwrap_or(config);
        let config_id = if config.is_empty() { None } else { Some(PushConfigId::parse(config).ok()?) };
        Some(Resource { task_id: TaskId::parse(task).ok()?, config_id })
    }
}

/// For error messages.
pub(in crate::wire) const RESOURCE: &str = "a resource name such as tasks/{id}";
pub(in crate::wire) const CONFIG_RESOURCE: &str = "tasks/{id}/pushNotificationConfigs/{id}";

impl<G> FromWire<G> for Resource {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, RESOURCE, |text| {
            Resource::parse(text).ok_or_else(|| format!("must be {RESOURCE}"))
        })
    }
}

impl<G: Dialect> FromWire<G> for PushConfig {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let twin: TaskPushConfigTwin<G> = twin(deserializer)?;
        let mut config = match (twin.push_notification_config, twin.config) {
            (Some(Settings(config)), _) | (None, Some(config)) => config,
            (None, None) => return Err(D::Error::missing_field("pushNotificationConfig")),
        };
        let (named_task, named_id) = match twin.name {
            Some(Resource { task_id, config_id }) => (Some(task_id), config_id),
            None => (None, None),
        };
        let parent = twin.parent.map(|parent| parent.task_id);
        config.task_id = twin.task_id.or(parent).or(named_task).or(config.task_id);
        config.id = config.id.or(twin.config_id).or(named_id);
        Ok(config)
    }
}

/// A webhook without its task.
pub(super) struct Settings(pub(super) PushConfig);

impl<G> FromWire<G> for Settings {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SettingsTwin { id, url, token, authentication } = twin(deserializer)?;
        let events = PushEvents::default();
        Ok(Settings(PushConfig { id, task_id: None, url, token, authentication, events }))
    }
}

impl<G: Dialect> FromWire<G> for PushAuthentication {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AuthenticationTwin { schemes, r#type, credentials } = twin(deserializer)?;
        match schemes.into_iter().next().or(r#type) {
            Some(scheme) => Ok(PushAuthentication { scheme, credentials }),
            None => Err(D::Error::missing_field("schemes")),
        }
    }
}

/// All webhooks of a task: a bare list, or in the proto a page.
struct PushConfigs(Reply);

impl<G: Dialect> FromWire<G> for PushConfigs {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrPage<G>(PhantomData<G>);
        impl<'de, G: Dialect> Visitor<'de> for ListOrPage<G> {
            type Value = PushConfigs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(if G::PROTO { "an object" } else { "an array" })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<PushConfigs, A::Error> {
                let configs = FromWire::<G>::from_wire(value::SeqAccessDeserializer::new(items))?;
                Ok(PushConfigs(Reply::PushConfigs { configs, next_page_token: String::new() }))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<PushConfigs, A::Error> {
                let PushConfigsTwin::<G> { configs, next_page_token, .. } =
                    twin(value::MapAccessDeserializer::new(map))?;
                Ok(PushConfigs(Reply::PushConfigs { configs, next_page_token }))
            }
        }
        deserializer.deserialize_any(ListOrPage(PhantomData::<G>))
    }
}

/// Reads an object by its `kind`, by the name of its wrapper, or else by its members.
pub(super) fn read_item<G: Dialect>(text: &str, subject: Subject) -> Result<StreamItem, Error> {
    let task = || read::<G, Task>(text, subject).map(StreamItem::Task);
    let message = || read::<G, Message>(text, subject).map(StreamItem::Message);
    let status = || read::<G, StatusEvent>(text, subject).map(StreamItem::from);
    let artifact = || read::<G, ArtifactEvent>(text, subject).map(StreamItem::from);
    let Twin(item) = read::<G, Twin<ItemTwin>>(text, subject)?;
    let wrapped =
        [item.task, item.message, item.status_update, item.artifact_update].iter().any(Option::is_some);
    match item.kind.as_deref() {
        Some("task") => task(),
        Some("message") => message(),
        Some("status-update") => status(),
        Some("artifact-update") => artifact(),
        Some(_) => Err(subject.refuse("kind", "must be task, message, status-update or artifact-update")),
        None if wrapped => read::<G, StreamItem>(text, subject),
        None if item.artifact.is_some() => artifact(),
        None if item.status.is_some() && item.task_id.is_some() => status(),
        None if item.status.is_some() => task(),
        None if item.role.is_some() => message(),
        None => Err(subject
            .refuse(subject.root, "must be a task, a message or an update of one's status or artifacts")),
    }
}

pub(super) fn read_reply<G: Dialect>(operation: Operation, text: &str) -> Result<Reply, Error> {
    let reply = Subject::reply;
    match operation {
        Operation::SendMessage => match read_item::<G>(text, reply("reply"))? {
            StreamItem::Task(task) => Ok(Reply::SentTask(task)),
            StreamItem::Message(message) => Ok(Reply::SentMessage(message)),
            _ => Err(reply("reply").refuse("reply", "must be a task or a message")),
        },
        Operation::GetTask | Operation::CancelTask => read::<G, _>(text, reply("task")).map(Reply::Task),
        Operation::ListTasks => read::<G, _>(text, reply("task list")).map(Reply::Tasks),
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            read::<G, _>(text, reply("push config")).map(Reply::PushConfig)
        }
        Operation::ListPushConfigs => {
            read::<G, PushConfigs>(text, reply("push config list")).map(|configs| configs.0)
        }
        // Servers answer `null`, `{}` or nothing at all.
        Operation::DeletePushConfig => Ok(Reply::PushConfigDeleted),
        Operation::GetExtendedCard => {
            read::<G, _>(text, reply("agent card")).map(|c| Reply::Card(Box::new(c)))
        }
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            Err(Error::of(ErrorKind::Internal).with_log("a streaming operation has no single reply"))
        }
    }
}
