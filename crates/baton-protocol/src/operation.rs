//! The eleven operations: their requests, their replies, and a table of facts about each.

use std::sync::Arc;

use crate::domain::{
    AgentCard, JsonObject, ListFilter, Message, PushConfig, PushConfigId, Task, TaskId, TaskPage,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    GetExtendedCard,
}

/// The capability that the card must declare for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    None,
    Streaming,
    PushNotifications,
    ExtendedCard,
}

/// The facts about one operation. `None` where a generation has no such method.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub operation: Operation,
    /// JSON-RPC and gRPC method of 1.0.
    pub v1: &'static str,
    /// JSON-RPC method of 0.3.
    pub v0_3: Option<&'static str>,
    /// JSON-RPC method of 0.1.
    pub v0_1: Option<&'static str>,
    pub capability: Capability,
    pub streams: bool,
}

#[rustfmt::skip]
pub const FACTS: [Facts; 11] = [
    facts(Operation::SendMessage,          "SendMessage",                      Some("message/send"),                        Some("tasks/send"),                Capability::None, false),
    facts(Operation::SendStreamingMessage, "SendStreamingMessage",             Some("message/stream"),                      Some("tasks/sendSubscribe"),       Capability::Streaming, true),
    facts(Operation::GetTask,              "GetTask",                          Some("tasks/get"),                           Some("tasks/get"),                 Capability::None, false),
    facts(Operation::ListTasks,            "ListTasks",                        Some("tasks/list"),                          None,                              Capability::None, false),
    facts(Operation::CancelTask,           "CancelTask",                       Some("tasks/cancel"),                        Some("tasks/cancel"),              Capability::None, false),
    facts(Operation::SubscribeToTask,      "SubscribeToTask",                  Some("tasks/resubscribe"),                   Some("tasks/resubscribe"),         Capability::Streaming, true),
    facts(Operation::CreatePushConfig,     "CreateTaskPushNotificationConfig", Some("tasks/pushNotificationConfig/set"),    Some("tasks/pushNotification/set"), Capability::PushNotifications, false),
    facts(Operation::GetPushConfig,        "GetTaskPushNotificationConfig",    Some("tasks/pushNotificationConfig/get"),    Some("tasks/pushNotification/get"), Capability::PushNotifications, false),
    facts(Operation::ListPushConfigs,      "ListTaskPushNotificationConfigs",  Some("tasks/pushNotificationConfig/list"),   None,                              Capability::PushNotifications, false),
    facts(Operation::DeletePushConfig,     "DeleteTaskPushNotificationConfig", Some("tasks/pushNotificationConfig/delete"), None,                              Capability::PushNotifications, false),
    facts(Operation::GetExtendedCard,      "GetExtendedAgentCard",             Some("agent/getAuthenticatedExtendedCard"),  None,                              Capability::ExtendedCard, false),
];

const fn facts(
    operation: Operation,
    v1: &'static str,
    v0_3: Option<&'static str>,
    v0_1: Option<&'static str>,
    capability: Capability,
    streams: bool,
) -> Facts {
    Facts { operation, v1, v0_3, v0_1, capability, streams }
}

impl Operation {
    pub fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    /// The operation of a 1.0 method name.
    pub fn of_v1_method(method: &str) -> Option<Self> {
        FACTS.iter().find(|facts| facts.v1 == method).map(|facts| facts.operation)
    }
}

/// A decoded request. The tenant is not part of it: it belongs to the scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    SendMessage(SendMessage),
    SendStreamingMessage(SendMessage),
    GetTask(GetTask),
    ListTasks(ListTasks),
    CancelTask(CancelTask),
    SubscribeToTask(SubscribeToTask),
    CreatePushConfig(PushConfig),
    /// Without an id (before 1.0) it means the task's only or first config.
    GetPushConfig {
        task_id: TaskId,
        id: Option<PushConfigId>,
    },
    ListPushConfigs {
        task_id: TaskId,
        page_size: Option<i32>,
        page_token: Option<String>,
    },
    DeletePushConfig {
        task_id: TaskId,
        id: PushConfigId,
    },
    GetExtendedCard,
}

impl Call {
    pub fn operation(&self) -> Operation {
        match self {
            Self::SendMessage(_) => Operation::SendMessage,
            Self::SendStreamingMessage(_) => Operation::SendStreamingMessage,
            Self::GetTask(_) => Operation::GetTask,
            Self::ListTasks(_) => Operation::ListTasks,
            Self::CancelTask(_) => Operation::CancelTask,
            Self::SubscribeToTask(_) => Operation::SubscribeToTask,
            Self::CreatePushConfig(_) => Operation::CreatePushConfig,
            Self::GetPushConfig { .. } => Operation::GetPushConfig,
            Self::ListPushConfigs { .. } => Operation::ListPushConfigs,
            Self::DeletePushConfig { .. } => Operation::DeletePushConfig,
            Self::GetExtendedCard => Operation::GetExtendedCard,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendMessage {
    /// Its `task_id` and `context_id` name the target.
    pub message: Message,
    /// In 0.1: the task that the client named, which is created if it does not exist.
    pub client_task_id: Option<TaskId>,
    pub accepted_output_modes: Vec<String>,
    pub push_config: Option<PushConfig>,
    pub history_length: HistoryLength,
    pub return_immediately: bool,
    pub metadata: Option<JsonObject>,
}

impl SendMessage {
    /// A blocking send with nothing optional.
    pub fn new(message: Message) -> Self {
        SendMessage {
            message,
            client_task_id: None,
            accepted_output_modes: Vec::new(),
            push_config: None,
            history_length: HistoryLength::All,
            return_immediately: false,
            metadata: None,
        }
    }
}

/// How much history a reply includes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistoryLength {
    #[default]
    All,
    /// At most this many of the most recent messages; 0 leaves the member out.
    Last(u32),
}

impl HistoryLength {
    pub fn trim(self, history: &mut Vec<Arc<Message>>) {
        if let Self::Last(most) = self {
            let excess = history.len().saturating_sub(most as usize);
            history.drain(..excess);
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetTask {
    pub id: TaskId,
    pub history_length: HistoryLength,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListTasks {
    pub filter: ListFilter,
    /// As sent; the service checks the range.
    pub page_size: Option<i32>,
    /// Empty is the same as absent.
    pub page_token: Option<String>,
    pub history_length: HistoryLength,
    pub include_artifacts: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelTask {
    pub id: TaskId,
    pub metadata: Option<JsonObject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeToTask {
    pub id: TaskId,
}

/// The reply of a call that does not stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A send answered with a task.
    SentTask(Task),
    /// A send answered with a message, and no task.
    SentMessage(Message),
    Task(Task),
    Tasks(TaskPage),
    PushConfig(PushConfig),
    PushConfigs {
        configs: Vec<PushConfig>,
        next_page_token: String,
    },
    PushConfigDeleted,
    Card(Box<AgentCard>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{MessageId, Role};

    #[test]
    fn facts_stand_in_the_order_of_the_enum() {
        for facts in &FACTS {
            assert_eq!(facts.operation.facts().operation, facts.operation);
            assert_eq!(Operation::of_v1_method(facts.v1), Some(facts.operation));
        }
    }

    #[test]
    fn s10_history_length_keeps_the_most_recent() {
        let id = |n: u8| MessageId::parse(&n.to_string()).unwrap();
        let message = |n: u8| Arc::new(Message::new(id(n), Role::User, Vec::new()));
        for (length, expected) in [
            (HistoryLength::All, vec![1, 2, 3]),
            (HistoryLength::Last(0), vec![]),
            (HistoryLength::Last(2), vec![2, 3]),
            (HistoryLength::Last(9), vec![1, 2, 3]),
        ] {
            let mut history = vec![message(1), message(2), message(3)];
            length.trim(&mut history);
            assert_eq!(history, expected.into_iter().map(message).collect::<Vec<_>>(), "{length:?}");
        }
    }
}
