//! Path, query and body together are one call.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::path::Route;
use super::query::write_members;
use crate::domain::TaskId;
use crate::error::Error;
use crate::generation::Generation;
use crate::operation::{Call, Operation};
use crate::wire::objects::present;
use crate::wire::write::Object;
use crate::wire::{Decoded, v1};

/// Decodes the call behind a route. What the path says wins over the query and the body.
///
/// `decode_v0_3` reads the ProtoJSON body of a send or of a new push config in 0.3; for other operations and for
/// 1.0 it is not called.
pub fn call_of(
    route: &Route,
    query: Option<&str>,
    body: Option<&str>,
    decode_v0_3: impl FnOnce(Operation, &str) -> Result<Decoded, Error>,
) -> Result<Decoded, Error> {
    let operation = route.operation;
    let body = present(body);
    let mut decoded = match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => match route.generation {
            Generation::V1 => v1::decode_call(operation, Some(body))?,
            Generation::V0_3 | Generation::V0_1 => decode_v0_3(operation, body)?,
        },
        Operation::CreatePushConfig => match route.generation {
            Generation::V1 => v1::decode_call(operation, Some(&merge(route, body)))?,
            Generation::V0_3 | Generation::V0_1 => {
                let mut decoded = decode_v0_3(operation, body)?;
                if let Call::CreatePushConfig(config) = &mut decoded.call {
                    config.task_id.clone_from(&route.task_id);
                }
                decoded
            }
        },
        Operation::CancelTask | Operation::SubscribeToTask => {
            v1::decode_call(operation, Some(&merge(route, body)))?
        }
        Operation::GetTask
        | Operation::ListTasks
        | Operation::GetPushConfig
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig
        | Operation::GetExtendedCard => {
            let mut params = Vec::new();
            let mut object = Object::begin(&mut params);
            write_ids(&mut object, route);
            write_members(&mut object, route.generation, operation, query.unwrap_or_default())?;
            object.end();
            v1::decode_call(operation, Some(&String::from_utf8_lossy(&params)))?
        }
    };
    decoded.tenant = match route.generation {
        Generation::V1 => route.tenant.clone().or(decoded.tenant),
        Generation::V0_3 | Generation::V0_1 => None,
    };
    Ok(decoded)
}

/// The ids of the path under the names the operation's request gives them.
fn write_ids(object: &mut Object<'_>, route: &Route) {
    let (task, config) = id_names(route.operation);
    object.optional(task, route.task_id.as_ref().map(TaskId::as_str));
    object.optional(config, route.config_id.as_ref().map(|id| id.as_str()));
}

/// Of the task and of the config. A webhook has its own id where a task would have its.
fn id_names(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::CreatePushConfig
        | Operation::GetPushConfig
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig => ("taskId", "id"),
        _ => ("id", ""),
    }
}

/// The body's members with the path's ids in place of its own. A body that is no object is left alone: its
/// reader says what is wrong with it.
fn merge<'a>(route: &Route, body: &'a str) -> Cow<'a, str> {
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(body) else { return Cow::Borrowed(body) };
    let mut merged = Vec::with_capacity(body.len() + 64);
    let mut object = Object::begin(&mut merged);
    write_ids(&mut object, route);
    let (task, _) = id_names(route.operation);
    for (name, value) in members {
        if name != task && !(task == "taskId" && name == "task_id") {
            object.entry(&name).extend_from_slice(value.get().as_bytes());
        }
    }
    object.end();
    Cow::Owned(String::from_utf8_lossy(&merged).into_owned())
}

/// The members of an object in order, those given twice included.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}
