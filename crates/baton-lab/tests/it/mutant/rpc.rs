//! JSON-RPC.

use std::sync::Arc;

use baton_lab::generation::{Binding, Generation};
use baton_lab::wire::request::Operation;
use serde_json::{Value, json};

use super::agent::Agent;
use super::door::{Arrived, HangUp, Leaving};
use super::fault::{Place, Quirk, Rule, What};
use super::handle::{Framed, handle, leave};
use super::refusal::{Kind, Refusal};
use super::spell;

/// The methods of 1.0, 0.3 and 0.1.
const METHODS: &[(Operation, &str, &str, &str)] = &[
    (Operation::SendMessage, "SendMessage", "message/send", "tasks/send"),
    (Operation::SendStreamingMessage, "SendStreamingMessage", "message/stream", "tasks/sendSubscribe"),
    (Operation::GetTask, "GetTask", "tasks/get", "tasks/get"),
    (Operation::ListTasks, "ListTasks", "tasks/list", ""),
    (Operation::CancelTask, "CancelTask", "tasks/cancel", "tasks/cancel"),
    (Operation::SubscribeToTask, "SubscribeToTask", "tasks/resubscribe", "tasks/resubscribe"),
    (Operation::GetExtendedAgentCard, "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", ""),
    (
        Operation::CreatePushConfig,
        "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotification/set",
    ),
    (
        Operation::GetPushConfig,
        "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotification/get",
    ),
    (Operation::ListPushConfigs, "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", ""),
    (
        Operation::DeletePushConfig,
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/delete",
        "",
    ),
];

pub(super) async fn answer(
    agent: &Arc<Agent>,
    generation: Generation,
    arrived: &Arrived,
) -> Result<Leaving, HangUp> {
    through(agent, generation, arrived, false).await
}

/// The door of 0.1 for streams alone: whatever else comes is HTTP 400.
pub(super) async fn answer_stream(agent: &Arc<Agent>, arrived: &Arrived) -> Result<Leaving, HangUp> {
    through(agent, Generation::V0_1, arrived, true).await
}

async fn through(
    agent: &Arc<Agent>,
    generation: Generation,
    arrived: &Arrived,
    streams_only: bool,
) -> Result<Leaving, HangUp> {
    let mut place = Place::new(generation, Binding::Jsonrpc);
    let mut id = Value::Null;
    let call = call(agent, arrived, &mut place, &mut id).and_then(|call| {
        if streams_only && call.0 != Operation::SendStreamingMessage {
            agent.check(Rule::OtherAtDoor, &place, "this door is for tasks/sendSubscribe")?;
        }
        let plain = streams_only && agent.has(Quirk::DoorWithoutStream, &place);
        Ok(if plain { (Operation::SendMessage, call.1) } else { call })
    });
    let refused_at_door = streams_only && call.is_err();
    let outcome = match call {
        Ok(call) => handle(agent, arrived, call, &mut place).await,
        Err(refusal) if agent.has(Quirk::ParsesFirst, &place) => Err(refusal),
        // Whoever may not ask learns nothing else.
        Err(refusal) => Err(agent.owner(arrived, &place).err().unwrap_or(refusal)),
    };
    let mut leaving = leave(agent, outcome, &place, move |agent, place, framed| {
        let mut envelope = match framed {
            Framed::Object(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Framed::Error(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        agent.edit(What::Envelope, place, &mut envelope);
        envelope
    })?;
    if refused_at_door {
        leaving.status = 400;
    }
    Ok(leaving)
}

fn call(
    agent: &Agent,
    arrived: &Arrived,
    place: &mut Place,
    id: &mut Value,
) -> Result<(Operation, Value), Refusal> {
    if arrived.method != "POST" {
        return Err(Refusal::new(Kind::InvalidRequest, "JSON-RPC comes by POST"));
    }
    let body = agent.read(arrived, place)?;
    let given = body.get("id").filter(|id| id.is_string() || id.is_number());
    *id = given.cloned().unwrap_or_default();
    let method = body.get("method").and_then(Value::as_str);
    if body.get("jsonrpc").is_none() && method.is_none() {
        agent.check(Rule::NotARequest, place, "this is no JSON-RPC request")?;
    }
    if body.get("jsonrpc") != Some(&json!("2.0")) {
        agent.check(Rule::RpcVersion, place, "`jsonrpc` has to be 2.0")?;
    }
    if method.is_none() {
        agent.check(Rule::NoMethod, place, "`method` is missing")?;
    }
    let method = method.unwrap_or_default();
    let known = METHODS.iter().find(|row| {
        let spelled = match place.generation {
            Generation::V1 => row.1,
            Generation::V0_3 => row.2,
            Generation::V0_1 => row.3,
        };
        spelled == method && !method.is_empty()
    });
    let Some(&(operation, ..)) = known else {
        agent.check(Rule::UnknownMethod, place, "there is no such method")?;
        return Err(Refusal::new(Kind::MethodNotFound, "there is no such method"));
    };
    place.operation = Some(operation);
    let params = match body.get("params") {
        None => {
            agent.check(Rule::ParamsMissing, place, "`params` is missing")?;
            json!({})
        }
        Some(params) if !params.is_object() => {
            agent.check(Rule::ParamsKind, place, "`params` has to be an object")?;
            json!({})
        }
        Some(params) => params.clone(),
    };
    if params.to_string().contains(":null") {
        agent.check(Rule::Nulls, place, "nothing may be null")?;
    }
    Ok((operation, spell::params(place, operation, params)))
}
