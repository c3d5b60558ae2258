//! One script's state while clients call it: the recorded requests, and its tasks.

use std::time::Duration;

use serde_json::{Value, json};

use super::heard::Heard;
use super::script::{Behaviour, Script};
use super::variant::Variant;
use crate::generation::Generation;

/// Most requests that are recorded per script.
pub(super) const MOST_HEARD: usize = 500;

#[derive(Debug)]
pub(super) struct ScriptState {
    pub(super) variant: Variant,
    pub(super) script: &'static Script,
    /// Random for every run, so that no client can know it beforehand.
    pub(super) nonce: String,
    pub(super) heard: Vec<Heard>,
    pub(super) tasks: Vec<Issued>,
    pub(super) ran: Option<Ran>,
}

/// A task of the scripted agent.
#[derive(Debug, Clone)]
pub(super) struct Issued {
    pub id: String,
    pub context: String,
    pub state: &'static str,
}

/// How the client's command ended.
#[derive(Debug, Clone)]
pub struct Ran {
    /// `None` if it was ended by a signal, or by the lab.
    pub code: Option<i32>,
    /// It did not end in time.
    pub hung: bool,
    pub stdout: String,
    pub stderr: String,
    pub duration: Duration,
}

pub(super) const COMPLETED: &str = "TASK_STATE_COMPLETED";
pub(super) const WORKING: &str = "TASK_STATE_WORKING";
pub(super) const ASKS: &str = "TASK_STATE_INPUT_REQUIRED";
pub(super) const CANCELED: &str = "TASK_STATE_CANCELED";

impl Issued {
    pub(super) fn is_over(&self) -> bool {
        [COMPLETED, CANCELED].contains(&self.state)
    }
}

impl ScriptState {
    pub(super) fn new(variant: Variant, script: &'static Script) -> Self {
        let nonce = uuid::Uuid::new_v4().simple().to_string()[..10].to_owned();
        ScriptState { variant, script, nonce, heard: Vec::new(), tasks: Vec::new(), ran: None }
    }

    /// The beginning of every text of this agent.
    pub(super) fn marker(&self) -> String {
        format!("judged-{}", self.nonce)
    }

    /// The text that must arrive unchanged.
    pub(super) fn text(&self) -> String {
        if self.script.behaviour == Behaviour::Chunks {
            return self.chunks().concat();
        }
        format!("{} größer als 日本 𝄞 end-{}", self.marker(), self.nonce)
    }

    /// The same text in chunks.
    pub(super) fn chunks(&self) -> Vec<String> {
        (1..=5).map(|number| format!("{}.{number};", self.marker())).collect()
    }

    /// The client's credential, if the script requires one.
    pub(super) fn secret(&self) -> String {
        format!("secret-{}", self.nonce)
    }

    pub(super) fn task(&self, id: &str) -> Option<&Issued> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// The task with which a message was answered.
    pub(super) fn task_of_message(&self, heard: &Heard) -> Option<&str> {
        let answer = heard.answer.as_ref()?;
        let shown = |task: &&Issued| answer.body.contains(&format!("\"{}\"", task.id));
        self.tasks.iter().find(shown).map(|task| task.id.as_str())
    }

    /// True if a request is about a task that has ended.
    pub(super) fn is_late(&self, heard: &Heard) -> bool {
        let params = heard.params();
        let named = match (heard.sends(), self.variant.generation) {
            (true, Generation::V1 | Generation::V0_3) => &params["message"]["taskId"],
            _ => &params["id"],
        };
        named.as_str().and_then(|id| self.task(id)).is_some_and(Issued::is_over)
    }

    /// The task of a message: an existing one, or a new one.
    pub(super) fn task_for(&mut self, params: &Value) -> usize {
        let named = match self.variant.generation {
            Generation::V0_1 => &params["id"],
            _ => &params["message"]["taskId"],
        };
        let named = named.as_str().filter(|id| !id.is_empty());
        if let Some(at) = self.tasks.iter().position(|task| Some(task.id.as_str()) == named) {
            return at;
        }
        let number = self.tasks.len() + 1;
        let id = match (self.script.behaviour, self.variant.generation, named) {
            // In 0.1 the client chooses the task's id.
            (_, Generation::V0_1, Some(id)) => id.to_owned(),
            (Behaviour::OddIds, ..) => format!("odd/{} ä?x=1#y%41", self.nonce),
            _ => format!("task-{}-{number}", self.nonce),
        };
        self.tasks.push(Issued { id, context: format!("context-{}-{number}", self.nonce), state: WORKING });
        self.tasks.len() - 1
    }

    /// The task in 1.0 form.
    pub(super) fn shown(&self, task: &Issued) -> Value {
        let mut shown = json!({"id": task.id, "contextId": task.context, "status": status(task.state)});
        if task.state == ASKS {
            shown["status"]["message"] = self.message(task, "Which one?");
        }
        if task.state == COMPLETED {
            shown["artifacts"] = json!([self.artifact(json!([{"text": self.text()}]))]);
        }
        shown
    }

    pub(super) fn artifact(&self, parts: Value) -> Value {
        json!({"artifactId": format!("artifact-{}", self.nonce), "name": "result", "parts": parts})
    }

    pub(super) fn message(&self, task: &Issued, text: &str) -> Value {
        json!({"messageId": uuid::Uuid::new_v4().to_string(), "role": "ROLE_AGENT", "taskId": task.id,
            "contextId": task.context, "parts": [{"text": text}]})
    }
}

pub(super) fn status(state: &str) -> Value {
    json!({"state": state, "timestamp": "2026-11-15T10:31:06.000Z"})
}
