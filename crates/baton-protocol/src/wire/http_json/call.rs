//! Decodes a call from path, query and body.

use std::borrow::Cow;

use super::path::Route;
use super::query::write_members;
use crate::domain::TaskId;
use crate::error::Error;
use crate::generation::Generation;
use crate::operation::{Call, Operation};
use crate::wire::members::Members;
use crate::wire::objects::present;
use crate::wire::v0_3::proto_json;
use crate::wire::write::Object;
use crate::wire::{Decoded, v1};

/// Decodes the call of a route. Values in the path override the query and the body.
pub fn call_of(route: &Route, query: Option<&str>, body: Option<&str>) -> Result<Decoded, Error> {
    let body = present(body);
    let mut decoded = match (route.operation, route.generation) {
        (Operation::SendMessage | Operation::SendStreamingMessage, _) => decode(route, body)?,
        // The body of 0.3 wraps the config, and names the task in more than one place.
        (Operation::CreatePushConfig, Generation::V0_3 | Generation::V0_1) => decode(route, body)?,
        (Operation::CreatePushConfig | Operation::CancelTask | Operation::SubscribeToTask, _) => {
            decode(route, &merge(route, body))?
        }
        (
            Operation::GetTask
            | Operation::ListTasks
            | Operation::GetPushConfig
            | Operation::ListPushConfigs
            | Operation::DeletePushConfig
            | Operation::GetExtendedCard,
            _,
        ) => {
            let mut params = Vec::new();
            let mut object = Object::begin(&mut params);
            write_ids(&mut object, route);
            write_members(&mut object, route.operation, query.unwrap_or_default())?;
            object.end();
            decode(route, &String::from_utf8_lossy(&params))?
        }
    };
    if let Call::CreatePushConfig(config) = &mut decoded.call {
        config.task_id.clone_from(&route.task_id);
    }
    decoded.tenant = match route.generation {
        Generation::V1 => route.tenant.clone().or(decoded.tenant),
        Generation::V0_3 | Generation::V0_1 => None,
    };
    Ok(decoded)
}

fn decode(route: &Route, params: &str) -> Result<Decoded, Error> {
    match route.generation {
        Generation::V1 => v1::decode_call(route.operation, Some(params)),
        Generation::V0_3 | Generation::V0_1 => proto_json::decode_call(route.operation, Some(params)),
    }
}

/// The member names for the ids in the path: the task's id with its aliases, and the config's id.
struct IdNames {
    task: &'static str,
    aliases: &'static [&'static str],
    config: &'static str,
}

fn id_names(route: &Route) -> IdNames {
    match (route.generation, route.operation) {
        (
            Generation::V1,
            Operation::CreatePushConfig
            | Operation::GetPushConfig
            | Operation::ListPushConfigs
            | Operation::DeletePushConfig,
        ) => IdNames { task: "taskId", aliases: &["taskId", "task_id"], config: "id" },
        (Generation::V1, _) => IdNames { task: "id", aliases: &["id"], config: "" },
        (Generation::V0_3 | Generation::V0_1, _) => {
            IdNames { task: "id", aliases: &["id", "name"], config: "pushNotificationConfigId" }
        }
    }
}

fn write_ids(object: &mut Object<'_>, route: &Route) {
    let names = id_names(route);
    object.optional(names.task, route.task_id.as_ref().map(TaskId::as_str));
    object.optional(names.config, route.config_id.as_ref().map(|id| id.as_str()));
}

/// The body's members, with the ids replaced by those of the path. A body that is not an object is not changed: its
/// reader reports the error.
fn merge<'a>(route: &Route, body: &'a str) -> Cow<'a, str> {
    let Some(Members(members)) = Members::of(body) else { return Cow::Borrowed(body) };
    let mut merged = Vec::with_capacity(body.len() + 64);
    let mut object = Object::begin(&mut merged);
    write_ids(&mut object, route);
    let IdNames { aliases, .. } = id_names(route);
    for (name, value) in members {
        if !aliases.contains(&name.as_ref()) {
            object.entry(&name).extend_from_slice(value.get().as_bytes());
        }
    }
    object.end();
    Cow::Owned(String::from_utf8_lossy(&merged).into_owned())
}
