//! HTTP+JSON.

use std::sync::Arc;

use baton_lab::generation::{Binding, Generation};
use baton_lab::wire::request::Operation;
use serde_json::{Value, json};

use super::agent::Agent;
use super::door::{Arrived, HangUp, Leaving, decoded};
use super::fault::{Place, Quirk, Rule};
use super::handle::{Framed, handle, leave};
use super::refusal::Refusal;
use super::spell;

pub(super) async fn answer(
    agent: &Arc<Agent>,
    generation: Generation,
    path: &str,
    arrived: &Arrived,
) -> Result<Leaving, HangUp> {
    let mut place = Place::new(generation, Binding::Rest);
    let outcome = match call(agent, path, arrived, &mut place) {
        Ok(Some(call)) => handle(agent, arrived, call, &mut place).await,
        // A path nobody has, of an agent that does not mind.
        Ok(None) => return Ok(Leaving::json(200, "application/a2a+json", &json!({}))),
        Err(refusal) if agent.has(Quirk::ParsesFirst, &place) => Err(refusal),
        Err(refusal) => Err(agent.owner(arrived, &place).err().unwrap_or(refusal)),
    };
    leave(agent, outcome, &place, |_, place, framed| match framed {
        Framed::Object(object) => object,
        Framed::Error(error) => spell::rest_error(place, error),
    })
}

fn call(
    agent: &Agent,
    path: &str,
    arrived: &Arrived,
    place: &mut Place,
) -> Result<Option<(Operation, Value)>, Refusal> {
    use Operation as O;
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let v1 = place.generation == Generation::V1;
    // The verb comes after the last colon that is not part of an encoded id.
    type Found<'a> = (&'a [(&'a str, O)], Vec<(&'a str, &'a str)>);
    let (found, ids): Found<'_> = match segments.as_slice() {
        ["message:send"] => (&[("POST", O::SendMessage)], vec![]),
        ["message:stream"] => (&[("POST", O::SendStreamingMessage)], vec![]),
        ["tasks"] => (&[("GET", O::ListTasks)], vec![]),
        ["extendedAgentCard"] if v1 => (&[("GET", O::GetExtendedAgentCard)], vec![]),
        ["card"] if !v1 => (&[("GET", O::GetExtendedAgentCard)], vec![]),
        ["tasks", task] => match task.rsplit_once(':') {
            Some((id, "cancel")) => (&[("POST", O::CancelTask)], vec![("id", id)]),
            Some((id, "subscribe")) => {
                (&[("GET", O::SubscribeToTask), ("POST", O::SubscribeToTask)], vec![("id", id)])
            }
            Some(_) => (&[], vec![]),
            None => (&[("GET", O::GetTask)], vec![("id", task)]),
        },
        ["tasks", task, "pushNotificationConfigs"] => {
            (&[("GET", O::ListPushConfigs), ("POST", O::CreatePushConfig)], vec![("taskId", task)])
        }
        ["tasks", task, "pushNotificationConfigs", id] => (
            &[("GET", O::GetPushConfig), ("DELETE", O::DeletePushConfig)],
            vec![("taskId", task), ("id", id)],
        ),
        _ => (&[], vec![]),
    };
    if found.is_empty() {
        agent.check(Rule::UnknownPath, place, "there is no such path")?;
        return Ok(None);
    }
    let Some(&(verb, operation)) = found.iter().find(|(verb, _)| *verb == arrived.method) else {
        agent.check(Rule::WrongVerb, place, "this path is not asked with this verb")?;
        return Ok(None);
    };
    place.operation = Some(operation);
    let mut params = match verb {
        "POST" if !arrived.body.is_empty() || operation == O::SendMessage => agent.read(arrived, place)?,
        _ => from_query(agent, arrived, place),
    };
    if params.is_null() {
        params = json!({});
    }
    params = spell::params(place, operation, params);
    for (name, id) in ids {
        params[name] = json!(decoded(id));
    }
    Ok(Some((operation, params)))
}

fn from_query(agent: &Agent, arrived: &Arrived, place: &Place) -> Value {
    let mut params = serde_json::Map::new();
    for (name, value) in &arrived.query {
        let value = match name.as_str() {
            "pageSize" | "historyLength" => {
                value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number))
            }
            "includeArtifacts" => json!(value == "true"),
            _ => json!(value),
        };
        if !name.eq_ignore_ascii_case("a2a-version") && !agent.has(Quirk::SnakeQuery, place) {
            params.insert(name.clone(), value);
        }
    }
    Value::Object(params)
}
