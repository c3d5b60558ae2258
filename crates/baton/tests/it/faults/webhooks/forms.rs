//! The calls that senders make, in the words of each generation.

use baton_protocol::Generation;
use serde_json::{Value, json};

/// A call: its method and its parameters.
pub(super) type Form = (&'static str, Value);

/// A webhook as it is put into a call. Without an id, it gets one: in 0.3 and 0.1 that of its task.
pub(super) struct Webhook {
    pub(super) id: Option<String>,
    pub(super) url: String,
    pub(super) token: String,
}

impl Webhook {
    fn json(&self) -> Value {
        let mut json = json!({"url": self.url, "token": self.token});
        if let Some(id) = &self.id {
            json["id"] = json!(id);
        }
        json
    }
}

/// A message; it begins a task or goes to one. In 0.1 messages have no id and the client names the task.
pub(super) struct Said<'a> {
    pub(super) id: &'a str,
    pub(super) text: &'a str,
    pub(super) task: Option<&'a str>,
    pub(super) webhook: Option<&'a Webhook>,
    /// Whether the answer is to wait for the turn's end; in 0.1 it does.
    pub(super) blocking: bool,
}

pub(super) fn send(generation: Generation, said: &Said<'_>) -> Form {
    let Said { id, text, task, webhook, blocking } = said;
    let (mut message, mut configuration) = match generation {
        Generation::V1 => (
            json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}),
            json!({"returnImmediately": !blocking}),
        ),
        Generation::V0_3 => (
            json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]}),
            json!({"blocking": blocking}),
        ),
        Generation::V0_1 => {
            let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
            let mut params = json!({"id": task, "message": message});
            if let Some(webhook) = webhook {
                params["pushNotification"] = webhook.json();
            }
            return ("tasks/send", params);
        }
    };
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    let (method, member) = match generation {
        Generation::V1 => ("SendMessage", "taskPushNotificationConfig"),
        _ => ("message/send", "pushNotificationConfig"),
    };
    if let Some(webhook) = webhook {
        configuration[member] = webhook.json();
    }
    (method, json!({"message": message, "configuration": configuration}))
}

/// The id of the task in an answer to [`send`].
pub(super) fn task_of(answer: &Value) -> Option<&str> {
    answer["result"]["task"]["id"].as_str().or_else(|| answer["result"]["id"].as_str())
}

pub(super) fn create(generation: Generation, task: &str, webhook: &Webhook) -> Form {
    let config = webhook.json();
    match generation {
        Generation::V1 => {
            let mut params = config;
            params["taskId"] = json!(task);
            ("CreateTaskPushNotificationConfig", params)
        }
        Generation::V0_3 => {
            ("tasks/pushNotificationConfig/set", json!({"taskId": task, "pushNotificationConfig": config}))
        }
        Generation::V0_1 => {
            ("tasks/pushNotification/set", json!({"id": task, "pushNotificationConfig": config}))
        }
    }
}

/// Asks for a webhook that [`create`] may have made.
pub(super) fn get(generation: Generation, task: &str, webhook: &Webhook) -> Form {
    match generation {
        Generation::V1 => ("GetTaskPushNotificationConfig", json!({"taskId": task, "id": webhook.id})),
        Generation::V0_3 => {
            ("tasks/pushNotificationConfig/get", json!({"id": task, "pushNotificationConfigId": webhook.id}))
        }
        Generation::V0_1 => ("tasks/pushNotification/get", json!({"id": task})),
    }
}
