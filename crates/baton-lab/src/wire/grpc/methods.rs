//! The methods of both services, and what 0.3 calls the parameters in its messages.

use serde_json::{Map, Value, json};

use super::encode;
use super::schema::Schema;
use crate::generation::Generation;
use crate::wire::proto_json;
use crate::wire::request::Operation;

/// A method, with the names of its messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method {
    pub(crate) generation: Generation,
    pub(crate) operation: Operation,
    pub(crate) name: &'static str,
    asks: &'static str,
    pub(crate) answers: &'static str,
}

type Row = (Operation, &'static str, &'static str, &'static str);

const CONFIG: &str = "TaskPushNotificationConfig";

const V1: &[Row] = &[
    (Operation::SendMessage, "SendMessage", "SendMessageRequest", "SendMessageResponse"),
    (Operation::SendStreamingMessage, "SendStreamingMessage", "SendMessageRequest", "StreamResponse"),
    (Operation::GetTask, "GetTask", "GetTaskRequest", "Task"),
    (Operation::ListTasks, "ListTasks", "ListTasksRequest", "ListTasksResponse"),
    (Operation::CancelTask, "CancelTask", "CancelTaskRequest", "Task"),
    (Operation::SubscribeToTask, "SubscribeToTask", "SubscribeToTaskRequest", "StreamResponse"),
    (Operation::GetExtendedAgentCard, "GetExtendedAgentCard", "GetExtendedAgentCardRequest", "AgentCard"),
    (Operation::CreatePushConfig, "CreateTaskPushNotificationConfig", CONFIG, CONFIG),
    (
        Operation::GetPushConfig,
        "GetTaskPushNotificationConfig",
        "GetTaskPushNotificationConfigRequest",
        CONFIG,
    ),
    (
        Operation::ListPushConfigs,
        "ListTaskPushNotificationConfigs",
        "ListTaskPushNotificationConfigsRequest",
        "ListTaskPushNotificationConfigsResponse",
    ),
    (
        Operation::DeletePushConfig,
        "DeleteTaskPushNotificationConfig",
        "DeleteTaskPushNotificationConfigRequest",
        "Empty",
    ),
];

const V0_3: &[Row] = &[
    (Operation::SendMessage, "SendMessage", "SendMessageRequest", "SendMessageResponse"),
    (Operation::SendStreamingMessage, "SendStreamingMessage", "SendMessageRequest", "StreamResponse"),
    (Operation::GetTask, "GetTask", "GetTaskRequest", "Task"),
    (Operation::CancelTask, "CancelTask", "CancelTaskRequest", "Task"),
    (Operation::SubscribeToTask, "TaskSubscription", "TaskSubscriptionRequest", "StreamResponse"),
    (Operation::GetExtendedAgentCard, "GetAgentCard", "GetAgentCardRequest", "AgentCard"),
    (
        Operation::CreatePushConfig,
        "CreateTaskPushNotificationConfig",
        "CreateTaskPushNotificationConfigRequest",
        CONFIG,
    ),
    (
        Operation::GetPushConfig,
        "GetTaskPushNotificationConfig",
        "GetTaskPushNotificationConfigRequest",
        CONFIG,
    ),
    (
        Operation::ListPushConfigs,
        "ListTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigRequest",
        "ListTaskPushNotificationConfigResponse",
    ),
    (
        Operation::DeletePushConfig,
        "DeleteTaskPushNotificationConfig",
        "DeleteTaskPushNotificationConfigRequest",
        "Empty",
    ),
];

/// The service's name; 0.1 has none.
pub(crate) fn service(generation: Generation) -> Option<&'static str> {
    match generation {
        Generation::V1 => Some("lf.a2a.v1.A2AService"),
        Generation::V0_3 => Some("a2a.v1.A2AService"),
        Generation::V0_1 => None,
    }
}

fn rows(generation: Generation) -> &'static [Row] {
    match generation {
        Generation::V1 => V1,
        Generation::V0_3 => V0_3,
        Generation::V0_1 => &[],
    }
}

impl Method {
    fn of_row(generation: Generation, row: &Row) -> Self {
        Method { generation, operation: row.0, name: row.1, asks: row.2, answers: row.3 }
    }

    /// `None` where the service has no such method.
    pub(crate) fn of(generation: Generation, operation: Operation) -> Option<Self> {
        rows(generation).iter().find(|row| row.0 == operation).map(|row| Self::of_row(generation, row))
    }

    /// By its path, such as `/a2a.v1.A2AService/GetTask`.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let (service_name, method) = path.strip_prefix('/')?.split_once('/')?;
        let generation = Generation::ALL.into_iter().find(|one| service(*one) == Some(service_name))?;
        rows(generation).iter().find(|row| row.1 == method).map(|row| Self::of_row(generation, row))
    }

    pub(crate) fn path(self) -> String {
        format!("/{}/{}", service(self.generation).unwrap_or_default(), self.name)
    }

    pub(crate) fn schema(self) -> &'static Schema {
        Schema::of(self.generation).expect("a generation with methods has messages")
    }

    /// The message for params in ProtoJSON.
    pub(crate) fn encoded(self, params: &Value) -> Result<Vec<u8>, String> {
        encode::message(self.schema(), self.asks, params)
    }

    /// The operation's params, as cases write them, in ProtoJSON of the request message.
    pub(crate) fn params(self, params: &Value) -> Result<Value, String> {
        if self.generation == Generation::V1 { Ok(params.clone()) } else { older(self.operation, params) }
    }
}

/// 0.3 has resource names in place of ids.
fn older(operation: Operation, params: &Value) -> Result<Value, String> {
    let all_is_zero = "protobuf cannot say this: a `historyLength` of 0 means all in the `.proto` of 0.3";
    let lengths = [&params["historyLength"], &params["configuration"]["historyLength"]];
    if lengths.into_iter().any(|length| *length == json!(0)) {
        return Err(all_is_zero.to_owned());
    }
    let mut members = match proto_json::request(operation, params) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let mut take = |name: &str| match members.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("protobuf cannot say this: a `{name}` that is no text")),
    };
    let named = match operation {
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            take("id")?.map(|id| ("name", format!("tasks/{id}")))
        }
        Operation::GetPushConfig | Operation::DeletePushConfig => {
            let (task, id) = (take("taskId")?.unwrap_or_default(), take("id")?.unwrap_or_default());
            if id.is_empty() {
                return Err(
                    "protobuf cannot say this: a config is asked for by the name that it has".to_owned()
                );
            }
            Some(("name", format!("tasks/{task}/pushNotificationConfigs/{id}")))
        }
        Operation::ListPushConfigs => take("taskId")?.map(|id| ("parent", format!("tasks/{id}"))),
        Operation::CreatePushConfig => {
            take("taskId")?;
            None
        }
        _ => None,
    };
    members.extend(named.map(|(name, text)| (name.to_owned(), json!(text))));
    Ok(Value::Object(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_its_messages_and_its_path() {
        for generation in [Generation::V1, Generation::V0_3] {
            let schema = Schema::of(generation).unwrap();
            for row in rows(generation) {
                assert!(schema.has(row.2) && schema.has(row.3), "{generation} {}", row.1);
                let method = Method::at(&Method::of(generation, row.0).unwrap().path()).unwrap();
                assert_eq!((method.generation, method.operation), (generation, row.0));
            }
        }
        assert!(Method::at("/a2a.v1.A2AService/ListTasks").is_none());
        assert!(Method::of(Generation::V0_1, Operation::GetTask).is_none());
    }

    #[test]
    fn the_params_of_0_3_become_names() {
        let method = |operation| Method::of(Generation::V0_3, operation).unwrap();
        let told = |operation, params: Value| method(operation).params(&params);
        assert_eq!(
            told(Operation::GetTask, json!({"id": "t", "historyLength": 2})),
            Ok(json!({"name": "tasks/t", "historyLength": 2}))
        );
        assert_eq!(told(Operation::ListPushConfigs, json!({"id": "t"})), Ok(json!({"parent": "tasks/t"})));
        let config = json!({"id": "t", "pushNotificationConfigId": "c"});
        assert_eq!(
            told(Operation::DeletePushConfig, config),
            Ok(json!({"name": "tasks/t/pushNotificationConfigs/c"}))
        );
        let push = json!({"taskId": "t", "pushNotificationConfig": {"id": "c", "url": "http://h"}});
        let params = told(Operation::CreatePushConfig, push).unwrap();
        assert_eq!((&params["parent"], &params["configId"]), (&json!("tasks/t"), &json!("c")));
        method(Operation::CreatePushConfig).encoded(&params).unwrap();
        told(Operation::GetTask, json!({"id": "t", "historyLength": 0})).unwrap_err();
        told(Operation::GetTask, json!({"id": 7})).unwrap_err();
        told(Operation::GetPushConfig, json!({"id": "t"})).unwrap_err();
    }
}
