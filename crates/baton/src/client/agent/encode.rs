//! What the library returns, as JSON of protocol 1.0.

use baton_protocol::domain::{PushConfig, Task, TaskPage};
use baton_protocol::operation::Reply;
use baton_protocol::wire::{StreamItem, v1};

use super::Received;
use crate::client::error::CallError;
use crate::client::wait::Read;
use crate::output::view;

pub(super) fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn reply(reply: Reply) -> String {
    written(|out| v1::write_reply(out, &reply))
}

/// A page as 1.0 spells it.
pub(crate) fn page_json(page: TaskPage) -> String {
    reply(Reply::Tasks(page))
}

/// Webhooks as 1.0 spells them.
pub(crate) fn push_configs_json(configs: Vec<PushConfig>) -> String {
    reply(Reply::PushConfigs { configs, next_page_token: String::new() })
}

pub(crate) fn push_config_json(config: PushConfig) -> String {
    reply(Reply::PushConfig(config))
}

pub(crate) fn read(task: &Task) -> Result<Read, CallError> {
    read_json(written(|out| v1::write_task(out, task)))
}

/// A task as the agent sent it.
pub(super) fn read_json(json: String) -> Result<Read, CallError> {
    let task = view::read(&json)?;
    Ok(Read { json, task })
}

pub(super) fn received(item: StreamItem) -> Result<Received, CallError> {
    let json = written(|out| match &item {
        StreamItem::Task(task) => v1::write_stream_task(out, task),
        StreamItem::Message(message) => v1::write_stream_message(out, message),
        StreamItem::Status { task_id, context_id, at, update } => {
            v1::write_stream_status(out, task_id, context_id, *at, update);
        }
        StreamItem::Artifact { task_id, context_id, update } => {
            v1::write_stream_artifact(out, task_id, context_id, update);
        }
    });
    received_json(json)
}

/// An event, or the reply to a send, as the agent sent it.
pub(super) fn received_json(json: String) -> Result<Received, CallError> {
    let event = view::read(&json)?;
    Ok(Received { json, event })
}
