//! Conversions of the objects that are nearly the same in both packages. Their messages have other Rust types and a few
//! fields of other names, so these are macros; what else differs is in functions beside them.

/// Functions from messages to domain values. Beside them: `part`, `references`.
macro_rules! objects_to_domain {
    (parts: $parts:ident $parts_name:literal, message: $message:ident $Message:ident) => {
        use std::sync::Arc;

        use crate::domain::{
            Artifact, ArtifactId, ArtifactUpdate, ContextId, Message, MessageId, Status, StatusUpdate, Task,
            TaskId, Timestamp,
        };
        use crate::operation::Reply;
        use crate::wire::StreamItem;
        use crate::wire::objects::to_domain::own_context;
        use crate::wire::pb::fault::{
            Fault, Read, Reader, Within, at_least_one, id, list, maybe_id, maybe_object, present, role, time,
        };

        pub(super) fn message(reader: &Reader, message: pb::Message) -> Read<Message> {
            Ok(Message {
                id: id(&message.message_id, MessageId::parse).within("messageId")?,
                role: role(message.role).within("role")?,
                task_id: maybe_id(&message.task_id, TaskId::parse).within("taskId")?,
                context_id: maybe_id(&message.context_id, ContextId::parse).within("contextId")?,
                reference_task_ids: references(&message).within("referenceTaskIds")?,
                parts: at_least_one(message.$parts, |it| part(reader, it)).within($parts_name)?,
                metadata: maybe_object(message.metadata).within("metadata")?,
                extensions: message.extensions,
            })
        }

        fn artifact(reader: &Reader, artifact: pb::Artifact) -> Read<Artifact> {
            Ok(Artifact {
                id: id(&artifact.artifact_id, ArtifactId::parse).within("artifactId")?,
                name: text(artifact.name),
                description: text(artifact.description),
                parts: list(artifact.parts, |it| part(reader, it)).within("parts")?,
                metadata: maybe_object(artifact.metadata).within("metadata")?,
                extensions: artifact.extensions,
            })
        }

        fn status(reader: &mut Reader, status: Option<pb::TaskStatus>) -> Read<Status> {
            let status = present(status)?;
            let timestamp = status.timestamp.map(time).transpose().within("timestamp")?;
            Ok(Status {
                state: reader.state(status.state),
                message: status.$message.map(|it| message(reader, it)).transpose().within("message")?,
                timestamp: timestamp.unwrap_or(Timestamp::UNKNOWN),
            })
        }

        pub(super) fn task(reader: &mut Reader, task: pb::Task) -> Read<Task> {
            let id = id(&task.id, TaskId::parse).within("id")?;
            let context_id = maybe_id(&task.context_id, ContextId::parse).within("contextId")?;
            let artifacts = list(task.artifacts, |it| artifact(reader, it).map(Arc::new));
            let history = list(task.history, |it| message(reader, it).map(Arc::new));
            Ok(Task {
                context_id: own_context(context_id, &id),
                id,
                artifacts: artifacts.within("artifacts")?,
                history: history.within("history")?,
                status: status(reader, task.status).within("status")?,
                metadata: maybe_object(task.metadata).within("metadata")?,
                transitions: Vec::new(),
            })
        }

        fn status_event(reader: &mut Reader, event: pb::TaskStatusUpdateEvent) -> Read<StreamItem> {
            let task_id = id(&event.task_id, TaskId::parse).within("taskId")?;
            let context_id = maybe_id(&event.context_id, ContextId::parse).within("contextId")?;
            let Status { state, message, timestamp } = status(reader, event.status).within("status")?;
            let metadata = maybe_object(event.metadata).within("metadata")?;
            Ok(StreamItem::Status {
                context_id: own_context(context_id, &task_id),
                task_id,
                at: timestamp,
                update: StatusUpdate { state, message, metadata },
            })
        }

        fn artifact_event(reader: &Reader, event: pb::TaskArtifactUpdateEvent) -> Read<StreamItem> {
            let task_id = id(&event.task_id, TaskId::parse).within("taskId")?;
            let context_id = maybe_id(&event.context_id, ContextId::parse).within("contextId")?;
            let update = ArtifactUpdate {
                artifact: present(event.artifact).and_then(|it| artifact(reader, it)).within("artifact")?,
                append: event.append,
                joins: false,
                last_chunk: event.last_chunk,
                ordinal: 0,
                metadata: maybe_object(event.metadata).within("metadata")?,
            };
            Ok(StreamItem::Artifact { context_id: own_context(context_id, &task_id), task_id, update })
        }

        pub(super) fn stream_item(reader: &mut Reader, response: pb::StreamResponse) -> Read<StreamItem> {
            use pb::stream_response::Payload;
            match response.payload {
                Some(Payload::Task(it)) => task(reader, it).map(StreamItem::Task).within("task"),
                Some(Payload::$Message(it)) => message(reader, it).map(StreamItem::Message).within("message"),
                Some(Payload::StatusUpdate(it)) => status_event(reader, it).within("statusUpdate"),
                Some(Payload::ArtifactUpdate(it)) => artifact_event(reader, it).within("artifactUpdate"),
                None => {
                    Err(Fault::new("must hold exactly one of task, message, statusUpdate and artifactUpdate"))
                }
            }
        }

        pub(super) fn sent(reader: &mut Reader, response: pb::SendMessageResponse) -> Read<Reply> {
            use pb::send_message_response::Payload;
            match response.payload {
                Some(Payload::Task(it)) => task(reader, it).map(Reply::SentTask).within("task"),
                Some(Payload::$Message(it)) => message(reader, it).map(Reply::SentMessage).within("message"),
                None => Err(Fault::new("must hold exactly one of task and message")),
            }
        }
    };
}

/// Functions from domain values to messages. Beside them: `part`. Only 1.0 has references, only 0.3 says what is final.
macro_rules! objects_from_domain {
    (
        parts: $parts:ident, message: $message:ident $Message:ident
        $(, references: $references:ident)? $(, final: $is_final:ident)?
    ) => {
        use crate::domain::{
            Artifact, ArtifactUpdate, ContextId, JsonObject, Message, Status, StatusUpdate, Task, TaskId,
            Timestamp,
        };
        use crate::wire::StreamItem;
        use crate::wire::pb::{json, timestamp};

        fn metadata(metadata: Option<&JsonObject>) -> Option<bytes::Bytes> {
            metadata.map(json::object)
        }

        pub(super) fn message(message: &Message) -> pb::Message {
            pb::Message {
                message_id: message.id.as_str().to_owned(),
                context_id: message.context_id.as_ref().map(ToString::to_string).unwrap_or_default(),
                task_id: message.task_id.as_ref().map(ToString::to_string).unwrap_or_default(),
                role: role(message.role),
                $parts: message.parts.iter().map(part).collect(),
                metadata: metadata(message.metadata.as_ref()),
                extensions: message.extensions.clone(),
                $($references: message.reference_task_ids.iter().map(ToString::to_string).collect(),)?
            }
        }

        fn artifact(artifact: &Artifact) -> pb::Artifact {
            pb::Artifact {
                artifact_id: artifact.id.as_str().to_owned(),
                name: artifact.name.clone().unwrap_or_default(),
                description: artifact.description.clone().unwrap_or_default(),
                parts: artifact.parts.iter().map(part).collect(),
                metadata: metadata(artifact.metadata.as_ref()),
                extensions: artifact.extensions.clone(),
            }
        }

        fn status(state: TaskState, said: Option<&Message>, at: Timestamp) -> pb::TaskStatus {
            pb::TaskStatus {
                state: state.number().into(),
                $message: said.map(message),
                timestamp: timestamp(at),
            }
        }

        pub(super) fn task(task: &Task) -> pb::Task {
            let Status { state, message: said, timestamp } = &task.status;
            pb::Task {
                id: task.id.as_str().to_owned(),
                context_id: task.context_id.as_str().to_owned(),
                status: Some(status(*state, said.as_ref(), *timestamp)),
                artifacts: task.artifacts.iter().map(|it| artifact(it)).collect(),
                history: task.history.iter().map(|it| message(it)).collect(),
                metadata: metadata(task.metadata.as_ref()),
            }
        }

        fn status_event(
            task_id: &TaskId,
            context_id: &ContextId,
            at: Timestamp,
            update: &StatusUpdate,
        ) -> pb::TaskStatusUpdateEvent {
            pb::TaskStatusUpdateEvent {
                task_id: task_id.as_str().to_owned(),
                context_id: context_id.as_str().to_owned(),
                status: Some(status(update.state, update.message.as_ref(), at)),
                metadata: metadata(update.metadata.as_ref()),
                $($is_final: is_final(update.state),)?
            }
        }

        fn artifact_event(
            task_id: &TaskId,
            context_id: &ContextId,
            update: &ArtifactUpdate,
        ) -> pb::TaskArtifactUpdateEvent {
            pb::TaskArtifactUpdateEvent {
                task_id: task_id.as_str().to_owned(),
                context_id: context_id.as_str().to_owned(),
                artifact: Some(artifact(&update.artifact)),
                append: update.append,
                last_chunk: update.last_chunk,
                metadata: metadata(update.metadata.as_ref()),
            }
        }

        pub(super) fn stream_task(it: &Task) -> pb::StreamResponse {
            pb::StreamResponse { payload: Some(pb::stream_response::Payload::Task(task(it))) }
        }

        pub(super) fn stream_message(it: &Message) -> pb::StreamResponse {
            pb::StreamResponse { payload: Some(pb::stream_response::Payload::$Message(message(it))) }
        }

        pub(super) fn stream_item(item: &StreamItem) -> pb::StreamResponse {
            use pb::stream_response::Payload;
            let payload = match item {
                StreamItem::Task(it) => return stream_task(it),
                StreamItem::Message(it) => return stream_message(it),
                StreamItem::Status { task_id, context_id, at, update } => {
                    Payload::StatusUpdate(status_event(task_id, context_id, *at, update))
                }
                StreamItem::Artifact { task_id, context_id, update } => {
                    Payload::ArtifactUpdate(artifact_event(task_id, context_id, update))
                }
            };
            pb::StreamResponse { payload: Some(payload) }
        }

        pub(super) fn sent_task(it: &Task) -> pb::SendMessageResponse {
            pb::SendMessageResponse { payload: Some(pb::send_message_response::Payload::Task(task(it))) }
        }

        pub(super) fn sent_message(it: &Message) -> pb::SendMessageResponse {
            let payload = pb::send_message_response::Payload::$Message(message(it));
            pb::SendMessageResponse { payload: Some(payload) }
        }
    };
}

pub(super) use {objects_from_domain, objects_to_domain};
