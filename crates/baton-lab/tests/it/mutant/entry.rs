//! One task: 1.0's JSON, and the log of its events that every stream and webhook reads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_lab::generation::{Binding, Generation};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::clock;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) id: String,
    pub(super) context: String,
    pub(super) owner: String,
    /// The text that made it.
    pub(super) phrase: String,
    /// How it came into the world.
    pub(super) generation: Generation,
    pub(super) binding: Binding,
    /// The work on it must end.
    pub(super) stop: CancellationToken,
    /// Streams other than the caller's must end.
    pub(super) cut_streams: CancellationToken,
    kept: Mutex<Kept>,
    /// The length of the log.
    bell: watch::Sender<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) status: Value,
    /// Every status it had.
    pub(super) states: Vec<Value>,
    pub(super) artifacts: Vec<Value>,
    pub(super) history: Vec<Value>,
    log: Vec<Value>,
    pub(super) configs: Vec<Config>,
    /// How often it was read after its end.
    pub(super) reads: usize,
    pub(super) subscriptions: usize,
}

/// A webhook.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) value: Value,
    pub(super) stop: CancellationToken,
}

pub(super) fn fresh_id() -> String {
    Uuid::new_v4().to_string()
}

pub(super) fn is_terminal(state: &str) -> bool {
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|end| state == format!("TASK_STATE_{end}"))
}

pub(super) fn is_interrupted(state: &str) -> bool {
    matches!(state, "TASK_STATE_INPUT_REQUIRED" | "TASK_STATE_AUTH_REQUIRED")
}

impl Entry {
    pub(super) fn new(
        (id, context, owner): (String, String, String),
        phrase: &str,
        (generation, binding): (Generation, Binding),
    ) -> Self {
        let status = json!({"state": "TASK_STATE_SUBMITTED", "timestamp": clock::now()});
        let kept = Kept { states: vec![status.clone()], status, ..Kept::default() };
        Entry {
            id,
            context,
            owner,
            phrase: phrase.to_owned(),
            generation,
            binding,
            stop: CancellationToken::new(),
            cut_streams: CancellationToken::new(),
            kept: Mutex::new(kept),
            bell: watch::Sender::new(0),
        }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> String {
        self.kept().status["state"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn has_ended(&self) -> bool {
        is_terminal(&self.state())
    }

    /// The task as it is now, and how much of the log that is.
    pub(super) fn snapshot(&self) -> (Value, usize) {
        let kept = self.kept();
        let mut task = json!({"id": self.id, "contextId": self.context, "status": kept.status});
        if !kept.artifacts.is_empty() {
            task["artifacts"] = json!(kept.artifacts);
        }
        if !kept.history.is_empty() {
            task["history"] = json!(kept.history);
        }
        (task, kept.log.len())
    }

    pub(super) fn event(&self, at: usize) -> Option<Value> {
        self.kept().log.get(at).cloned()
    }

    /// Waits until the log is longer than that.
    pub(super) async fn longer_than(&self, length: usize) {
        let mut bell = self.bell.subscribe();
        bell.wait_for(|now| *now > length).await.map(|_| ()).expect("the bell lives as long as the task");
    }

    /// Waits until the task has ended or waits for somebody.
    pub(super) async fn settled(&self) {
        let settled = || {
            let state = self.state();
            is_terminal(&state) || is_interrupted(&state)
        };
        let mut bell = self.bell.subscribe();
        bell.wait_for(|_| settled()).await.map(|_| ()).expect("the bell lives as long as the task");
    }

    /// A message of the agent's.
    pub(super) fn message(&self, text: &str) -> Value {
        json!({"messageId": fresh_id(), "contextId": self.context, "taskId": self.id, "role": "ROLE_AGENT",
            "parts": [{"text": text}]})
    }

    /// A message of the user's: kept, and with it the question it answers.
    pub(super) fn hear(&self, mut message: Value, times: usize) {
        message["taskId"] = json!(self.id);
        message["contextId"] = json!(self.context);
        let mut kept = self.kept();
        let question = kept.status.get("message").cloned();
        kept.history.extend(question);
        kept.history.extend(std::iter::repeat_n(message, times));
    }

    /// A new state; an ended task keeps the one it has.
    pub(super) fn enter(&self, state: &str, text: Option<&str>) -> bool {
        let mut status = json!({"state": format!("TASK_STATE_{state}"), "timestamp": clock::now()});
        if let Some(text) = text {
            status["message"] = self.message(text);
        }
        let event = json!({"statusUpdate": {"taskId": self.id, "contextId": self.context, "status": status}});
        self.append(event, |kept| {
            kept.states.push(status.clone());
            kept.status = status;
        })
    }

    /// An artifact, or more of one.
    pub(super) fn give(&self, artifact: Value, append: bool, last: bool) -> bool {
        let mut update = json!({"taskId": self.id, "contextId": self.context, "artifact": artifact});
        if append {
            update["append"] = json!(true);
        }
        if last {
            update["lastChunk"] = json!(true);
        }
        self.append(json!({ "artifactUpdate": update }), |kept| {
            let same = |known: &&mut Value| append && known["artifactId"] == artifact["artifactId"];
            match kept.artifacts.iter_mut().find(same) {
                Some(known) => {
                    let more = artifact["parts"].as_array().cloned().unwrap_or_default();
                    if let Some(parts) = known["parts"].as_array_mut() {
                        parts.extend(more);
                    }
                }
                None => kept.artifacts.push(artifact),
            }
        })
    }

    fn append(&self, event: Value, change: impl FnOnce(&mut Kept)) -> bool {
        let length = {
            let mut kept = self.kept();
            if is_terminal(kept.status["state"].as_str().unwrap_or_default()) {
                return false;
            }
            change(&mut kept);
            kept.log.push(event);
            kept.log.len()
        };
        self.bell.send_replace(length);
        true
    }
}
