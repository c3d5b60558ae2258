//! Helps checks to talk to an agent: sends, tasks, open streams.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::acts::assertion::show;
use crate::acts::stream::{is_terminal, state_of};
use crate::case::Verdict;
use crate::generation::{Binding, Generation};
use crate::native::{Done, differs, fail};
use crate::run::Bench;
use crate::target::Behaviours;
use crate::wire::answer::read_event;
use crate::wire::request::Operation;
use crate::wire::{Answer, Open, WireError, errors};

/// The test phrase for any agent: one that does not know it is sent an example phrase of its skills instead.
pub(super) const COMPLETE: &str = "tck-complete-task";

/// How long a check waits for something that a correct agent does at once.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// A message to send: built in 1.0 form, and converted to the case's generation when sent.
#[derive(Debug, Clone)]
pub(super) struct Say(Value);

impl Say {
    pub(super) fn text(text: &str) -> Self {
        Self::parts(json!([{ "text": text }]))
    }

    pub(super) fn parts(parts: Value) -> Self {
        Say(json!({"message": {"messageId": fresh_id(), "role": "ROLE_USER", "parts": parts}}))
    }

    /// Addresses an existing task.
    pub(super) fn to(self, task: &Value) -> Self {
        let id = task["id"].clone();
        self.member("taskId", id)
    }

    pub(super) fn within(self, context: &Value) -> Self {
        self.member("contextId", context.clone())
    }

    pub(super) fn member(mut self, name: &str, value: Value) -> Self {
        self.0["message"][name] = value;
        self
    }

    /// Asks for an immediate reply.
    pub(super) fn at_once(self) -> Self {
        self.configured("returnImmediately", json!(true))
    }

    pub(super) fn configured(mut self, name: &str, value: Value) -> Self {
        self.0["configuration"][name] = value;
        self
    }

    pub(super) fn id(&self) -> &Value {
        &self.0["message"]["messageId"]
    }

    /// The params, with a phrase that the agent knows.
    pub(super) fn params(&self, bench: &Bench) -> Value {
        let mut params = crate::speak::spelled(bench.generation(), &self.0);
        if let Behaviours::Examples(examples) = &bench.target().behaviours
            && let (Some(text), Some(example)) =
                (params.pointer_mut("/message/parts/0/text"), examples.first())
            && text.as_str().is_some_and(|text| text.starts_with(COMPLETE))
        {
            *text = json!(example);
        }
        params
    }
}

/// The reply to a send.
#[derive(Debug, Clone)]
pub(super) enum Said {
    Task(Value),
    Message(Value),
}

pub(super) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The state without its prefix; empty if there is none.
pub(super) fn state(task: &Value) -> String {
    state_of(task).unwrap_or_default()
}

pub(super) fn has_ended(task: &Value) -> bool {
    is_terminal(&state(task))
}

pub(super) fn is_interrupted(task: &Value) -> bool {
    matches!(state(task).as_str(), "INPUT_REQUIRED" | "AUTH_REQUIRED")
}

pub(super) fn skip(reason: impl Into<String>) -> Verdict {
    Verdict::Skip(reason.into())
}

/// The last state in the events.
pub(super) fn last_state(events: &[Value]) -> String {
    events.iter().rev().find_map(state_of).unwrap_or_else(|| "no state".to_owned())
}

/// A member that is a non-empty text.
pub(super) fn filled<'a>(object: &'a Value, member: &str) -> Option<&'a str> {
    object.get(member)?.as_str().filter(|text| !text.is_empty())
}

impl Bench {
    pub(super) async fn say(&self, say: &Say) -> Done<Said> {
        let root = self.reply(Operation::SendMessage, &say.params(self)).await?;
        match self.generation() {
            Generation::V1 => match (root.get("task"), root.get("message")) {
                (Some(task), None) => Ok(Said::Task(task.clone())),
                (None, Some(message)) => Ok(Said::Message(message.clone())),
                _ => Err(differs("a reply with either `task` or `message`", show(&root))),
            },
            Generation::V0_3 => match root["kind"].as_str() {
                Some("task") => Ok(Said::Task(root)),
                Some("message") => Ok(Said::Message(root)),
                _ => Err(differs("a reply of the kind `task` or `message`", show(&root))),
            },
            // 0.1 has only tasks.
            Generation::V0_1 if root["status"]["state"].is_string() => Ok(Said::Task(root)),
            Generation::V0_1 => Err(differs("a task", show(&root))),
        }
    }

    /// The task of a send; skipped if the agent answers with a message.
    pub(super) async fn task(&self, say: &Say) -> Done<Value> {
        match self.say(say).await? {
            Said::Task(task) => Ok(task),
            Said::Message(_) => Err(skip("the agent answers with a message; this case needs a task")),
        }
    }

    /// A task that has ended.
    pub(super) async fn ended(&self) -> Done<Value> {
        self.ended_with(&Say::text(COMPLETE)).await
    }

    pub(super) async fn ended_with(&self, say: &Say) -> Done<Value> {
        let task = self.task(say).await?;
        let task = self.settled(&task).await?;
        if has_ended(&task) {
            return Ok(task);
        }
        let state = state(&task);
        Err(skip(format!("this case needs a task that has ended; the agent's stops at {state}")))
    }

    /// Waits until the task has ended or needs input.
    pub(super) async fn settled(&self, task: &Value) -> Done<Value> {
        let (started, mut pause) = (Instant::now(), Duration::from_millis(20));
        let mut now = task.clone();
        while !has_ended(&now) && !is_interrupted(&now) {
            if started.elapsed() > self.probe().timeout() {
                let seconds = self.probe().timeout().as_secs();
                return Err(differs(format!("the task to end within {seconds} s"), state(&now)));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
            now = self.get(&now["id"]).await?;
        }
        Ok(now)
    }

    pub(super) async fn get(&self, id: &Value) -> Done<Value> {
        self.reply(Operation::GetTask, &json!({ "id": id })).await
    }

    /// A task that works until it is canceled.
    pub(super) async fn running(&self) -> Done<Value> {
        self.task(&Say::text("tck-cancel").at_once()).await
    }

    /// Cancels the task of a check. The result is ignored and not part of the evidence.
    pub(super) async fn clean_up(&self, task: &Value) {
        if let Ok(request) = self.request(Operation::CancelTask, &json!({ "id": task["id"] })) {
            let probe = self.probe().fresh();
            let asked = probe.ask(self.generation(), self.binding(), &request);
            let _ = tokio::time::timeout(SOON / 2, asked).await;
        }
    }

    /// True if the error has this name. HTTP+JSON and gRPC have only a status for JSON-RPC's own errors; an error without a
    /// reason matches every error with its status (another case checks that there is a reason).
    pub(super) fn is_named(&self, error: &WireError, name: &str) -> bool {
        if error.name.as_deref() == Some(name) {
            return true;
        }
        if self.binding() == Binding::Jsonrpc || error.name.is_some() {
            return false;
        }
        if self.binding() == Binding::Grpc {
            return error.code.is_some_and(|code| errors::fits_grpc(self.generation(), name, code));
        }
        // 0.3 defines neither the statuses nor the form of errors.
        if self.generation() == Generation::V0_3 {
            return errors::fits_v0_3(name, error.status);
        }
        if error.body.is_none() {
            return false;
        }
        let invalid = ["InvalidParamsError", "InvalidRequestError", "JSONParseError"].contains(&name);
        match errors::http_status(name) {
            Some(status) => error.status == status || errors::first_http_status(name) == Some(error.status),
            None => invalid && matches!(error.status, 400 | 422),
        }
    }

    pub(super) fn expect_named(&self, error: &WireError, name: &str) -> Done {
        if self.is_named(error, name) { Ok(()) } else { Err(differs(name, error.summary())) }
    }

    /// Opens a stream; an answer of another kind is a failure.
    pub(super) async fn watch(&self, operation: Operation, params: &Value) -> Done<Watch> {
        let mut request = self.request(operation, params).map_err(|none| skip(none.0))?;
        let lost = |error| fail(format!("{}: no answer: {error}", self.called(operation)));
        let mut open = self.probe().open(&request).await.map_err(lost)?;
        if !open.is_stream() && request.method == "GET" && matches!(open.received.status, 404 | 405) {
            "POST".clone_into(&mut request.method);
            open = self.probe().open(&request).await.map_err(lost)?;
        }
        if open.is_stream() {
            return Ok(Watch { open, bench: self.clone() });
        }
        let body = open.rest().await.map_err(lost)?;
        let answer = crate::wire::answer::read(self.generation(), self.binding(), &open.received, &body);
        Err(differs(format!("{} to open a stream of events", self.called(operation)), said(&answer)))
    }

    pub(super) async fn send_stream(&self, say: &Say) -> Done<Watch> {
        self.watch(Operation::SendStreamingMessage, &say.params(self)).await
    }

    pub(super) async fn subscribe(&self, task: &Value) -> Done<Watch> {
        self.watch(Operation::SubscribeToTask, &json!({ "id": task["id"] })).await
    }
}

fn said(answer: &Answer) -> String {
    let kind = answer.header("content-type").unwrap_or("no content type");
    format!("{} ({kind})", answer.summary())
}

/// An open stream.
#[derive(Debug)]
pub(super) struct Watch {
    open: Open,
    bench: Bench,
}

/// What happened on a stream within some time.
#[derive(Debug)]
pub(super) enum Next {
    Event(Value),
    Closed,
    Quiet,
}

impl Watch {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.open.received.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) async fn within(&mut self, time: Duration) -> Done<Next> {
        let frame = match tokio::time::timeout(time.min(self.open.left()), self.open.next_frame()).await {
            Ok(Ok(Some(frame))) => frame,
            Ok(Ok(None)) => return Ok(Next::Closed),
            Ok(Err(broken)) => return Err(fail(format!("the stream broke: {broken}"))),
            Err(_) => return Ok(Next::Quiet),
        };
        match read_event(self.bench.generation(), self.bench.binding(), &frame) {
            Ok(event) => Ok(Next::Event(event)),
            Err(error) => Err(differs("an event", error.summary())),
        }
    }

    /// The next event, which must come.
    pub(super) async fn event(&mut self) -> Done<Value> {
        match self.within(SOON.min(self.bench.probe().timeout())).await? {
            Next::Event(event) => Ok(event),
            Next::Closed => Err(differs("an event", "the stream closed")),
            Next::Quiet => Err(differs("an event within 10 s", "none, while the stream is open")),
        }
    }

    /// All events up to the end of the stream, which must come.
    pub(super) async fn rest(&mut self) -> Done<Vec<Value>> {
        let (mut events, started) = (Vec::new(), Instant::now());
        let patience = self.bench.probe().timeout();
        loop {
            match self.within(patience.saturating_sub(started.elapsed())).await? {
                Next::Event(event) => events.push(event),
                Next::Closed => return Ok(events),
                Next::Quiet => {
                    let (seconds, count) = (patience.as_secs(), events.len());
                    let open = format!("still open after {seconds} s and {count} more events");
                    return Err(differs("the stream to close", open));
                }
            }
        }
    }

    /// Events up to the first that matches.
    pub(super) async fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Done<Vec<Value>> {
        let mut events = Vec::new();
        let started = Instant::now();
        loop {
            let left = SOON.saturating_sub(started.elapsed());
            match self.within(left).await? {
                Next::Event(event) => {
                    let found = fits(&event);
                    events.push(event);
                    if found {
                        return Ok(events);
                    }
                }
                Next::Closed => {
                    return Err(differs(what, format!("the stream closed after {} events", events.len())));
                }
                Next::Quiet => return Err(differs(format!("{what} within 10 s"), "nothing more came")),
            }
        }
    }
}
