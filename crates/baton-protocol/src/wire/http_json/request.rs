//! The client's side: writes a call as method, path, query and body.

use super::path::path_template;
use super::percent::{decode_id, encode};
use crate::domain::{ContextId, JsonObject, ListFilter};
use crate::generation::Generation;
use crate::operation::{Call, CancelTask, GetTask, HistoryLength, ListTasks, Operation, SubscribeToTask};
use crate::wire::v0_3::proto_json;
use crate::wire::v1;
use crate::wire::write::Object;

/// A request, relative to the URL of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: &'static str,
    pub path_and_query: String,
    pub body: Option<Vec<u8>>,
}

/// Builds the request of a call. `None` if the call has no path: in 0.1, for a push config without a task, and for ids
/// that a proxy might take for a path traversal (`..`).
pub fn path_of(generation: Generation, tenant: Option<&str>, call: &Call) -> Option<HttpRequest> {
    let prefix = match (generation, tenant) {
        (Generation::V0_1, _) => return None,
        (Generation::V0_3, _) => "/v1".to_owned(),
        (Generation::V1, None) => String::new(),
        (Generation::V1, Some(tenant)) => {
            let mut prefix = "/".to_owned();
            encode(&mut prefix, tenant);
            prefix
        }
    };
    let template = match call.operation() {
        Operation::GetExtendedCard if generation == Generation::V0_3 => "/card",
        operation => path_template(operation),
    };
    let at = |ids: &[&str]| Path(prefix).filled(template, ids);
    let with_body = |path: Path| {
        let mut body = Vec::new();
        match generation {
            // The tenant is in the path.
            Generation::V1 => v1::write_call(&mut body, None, call),
            Generation::V0_3 | Generation::V0_1 => proto_json::write_call(&mut body, None, call),
        }
        HttpRequest { method: "POST", path_and_query: path.0, body: Some(body) }
    };
    let bare = |method, path: Path| HttpRequest { method, path_and_query: path.0, body: None };
    Some(match call {
        Call::SendMessage(_) | Call::SendStreamingMessage(_) => with_body(at(&[])?),
        Call::GetTask(GetTask { id, history_length }) => {
            let mut path = at(&[id.as_str()])?;
            path.history_length(*history_length);
            bare("GET", path)
        }
        Call::ListTasks(list) => {
            let mut path = at(&[])?;
            path.list(list);
            bare("GET", path)
        }
        Call::CancelTask(CancelTask { id, metadata }) => {
            let mut body = Vec::new();
            let mut object = Object::begin(&mut body);
            object.optional_raw("metadata", metadata.as_ref().map(JsonObject::as_str));
            object.end();
            HttpRequest { method: "POST", path_and_query: at(&[id.as_str()])?.0, body: Some(body) }
        }
        Call::SubscribeToTask(SubscribeToTask { id }) => bare("GET", at(&[id.as_str()])?),
        Call::CreatePushConfig(config) => with_body(at(&[config.task_id.as_ref()?.as_str()])?),
        Call::GetPushConfig { task_id, id } => {
            // A config that was created without an id has the task's id.
            let id = id.as_ref().map_or(task_id.as_str(), |id| id.as_str());
            bare("GET", at(&[task_id.as_str(), id])?)
        }
        Call::ListPushConfigs { task_id, page_size, page_token } => {
            let mut path = at(&[task_id.as_str()])?;
            path.page(*page_size, page_token.as_deref());
            bare("GET", path)
        }
        Call::DeletePushConfig { task_id, id } => bare("DELETE", at(&[task_id.as_str(), id.as_str()])?),
        Call::GetExtendedCard => bare("GET", at(&[])?),
    })
}

/// Whether the path of a call can hold this id. It cannot if a proxy might take it for a path traversal, or decode it twice.
pub fn fits_in_path(id: &str) -> bool {
    Path(String::new()).filled("{id}", &[id]).is_some()
}

/// Writes a path, then its query.
struct Path(String);

impl Path {
    /// With the template behind it, an id for each name in braces. Whether an id reads back is asked of the reader itself.
    fn filled(mut self, template: &str, ids: &[&str]) -> Option<Self> {
        let mut pieces = template.split(['{', '}']);
        self.0.push_str(pieces.next()?);
        for id in ids {
            let (_name, behind) = (pieces.next()?, pieces.next()?);
            let start = self.0.len();
            encode(&mut self.0, id);
            decode_id(&self.0[start..])?;
            self.0.push_str(behind);
        }
        pieces.next().is_none().then_some(self)
    }

    fn parameter(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        encode(&mut self.0, value);
    }

    fn history_length(&mut self, length: HistoryLength) {
        if let HistoryLength::Last(most) = length {
            self.parameter("historyLength", &most.min(i32::MAX as u32).to_string());
        }
    }

    fn page(&mut self, size: Option<i32>, token: Option<&str>) {
        if let Some(size) = size {
            self.parameter("pageSize", &size.to_string());
        }
        if let Some(token) = token.filter(|token| !token.is_empty()) {
            self.parameter("pageToken", token);
        }
    }

    fn list(&mut self, list: &ListTasks) {
        let ListFilter { context_id, states, updated_since } = &list.filter;
        if let Some(id) = context_id.as_ref().map(ContextId::as_str) {
            self.parameter("contextId", id);
        }
        for state in states {
            self.parameter("status", v1::state_name(*state));
        }
        self.page(list.page_size, list.page_token.as_deref());
        self.history_length(list.history_length);
        if let Some(since) = updated_since {
            let mut time = Vec::new();
            v1::write_timestamp(&mut time, *since);
            self.parameter("statusTimestampAfter", &String::from_utf8_lossy(&time));
        }
        if list.include_artifacts {
            self.parameter("includeArtifacts", "true");
        }
    }
}
