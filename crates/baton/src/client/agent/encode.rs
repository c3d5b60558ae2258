//! What the library returns, as JSON of protocol 1.0.

use baton_protocol::Generation;
use baton_protocol::operation::Operation;
use baton_protocol::wire::StreamItem;
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::peer_state::{FromPeer, put_back};

use super::Received;
use crate::client::error::{CallError, Code};
use crate::client::wait::Read;
use crate::output::view;

pub(super) fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The result of a call to an agent of an older version, as JSON of 1.0. States that nobody knows are shown as they came.
pub(super) fn translated(dialect: Dialect, operation: Operation, json: &str) -> Result<String, CallError> {
    let FromPeer { value, unknown_states } = dialect.read_reply(operation, json).map_err(|error| {
        CallError::new(Code::Protocol("InvalidAgentResponseError".to_owned()), error.to_string())
    })?;
    let json = written(|out| Dialect::V1.write_reply(out, &value, &AnswerFacts::default()));
    Ok(put_back(&json, &unknown_states))
}

/// A task as the agent sent it.
pub(super) fn read_json(json: String) -> Result<Read, CallError> {
    let task = view::read(&json)?;
    Ok(Read { json, task })
}

pub(super) fn item_json(item: &StreamItem) -> String {
    written(|out| Dialect::V1.write_stream_update(out, item))
}

/// An event of an older version. A state that nobody knows is shown as it came, and a context that was not said is left out.
pub(crate) fn event_json(version: Generation, item: &StreamItem, unknown_state: Option<&str>) -> String {
    let mut json = item_json(item);
    if let StreamItem::Status { task_id, context_id, .. } | StreamItem::Artifact { task_id, context_id, .. } =
        item
        && version == Generation::V0_1
        && task_id.as_str() == context_id.as_str()
    {
        // Both come first, so that nothing which an agent can fill as it likes is before them.
        json =
            json.replacen(&format!(",\"contextId\":{}", serde_json::Value::from(context_id.as_str())), "", 1);
    }
    put_back(&json, &[unknown_state.map(str::to_owned)])
}

/// An event, or the reply to a send, as the agent sent it.
pub(super) fn received_json(json: String) -> Result<Received, CallError> {
    let event = view::read(&json)?;
    Ok(Received { json, event })
}
