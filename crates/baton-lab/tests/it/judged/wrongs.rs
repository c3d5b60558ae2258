//! Clients that are wrong in one way each, as a table: at least one for every rule.

use baton_lab::generation::{Binding, Generation};
use baton_lab::judge::Ran;
use baton_lab::wire::request::{Operation, Request};
use serde_json::{Value, json};

use super::client::{Habit, Scene, envelope, header, params};

/// A client that breaks a rule, in one script.
pub(crate) struct Wrong {
    pub(crate) rule: &'static str,
    pub(crate) script: &'static str,
    pub(crate) how: How,
    /// Rules that the same fault breaks, too.
    pub(crate) also: &'static [&'static str],
}

pub(crate) enum How {
    /// Does what it should, then sends one more, changed message, so many times.
    Sends(usize, fn(&mut Request, &Scene)),
    /// Does what it should, then asks for something else with these params; then that request is changed.
    Asks(Operation, fn(&Scene) -> Value, fn(&mut Request, &Scene)),
    /// Changes every request.
    Always(fn(&mut Request, &Scene)),
    Habit(Habit),
    /// Comes out of it in another way.
    Ends(fn(&mut Ran)),
}

use How::{Always, Asks, Ends, Sends};

const fn wrong(rule: &'static str, script: &'static str, how: How) -> Wrong {
    Wrong { rule, script, how, also: &[] }
}

impl Wrong {
    const fn also(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }
}

fn badly(ran: &mut Ran) {
    ran.code = Some(1);
    ran.stderr = "ValueError: I do not like this".to_owned();
}

fn well(ran: &mut Ran) {
    ran.code = Some(0);
}

fn nothing(_: &mut Request, _: &Scene) {}

fn none(_: &Scene) -> Value {
    json!({})
}

/// Changes the message of a send.
fn message(request: &mut Request, scene: &Scene, change: impl FnOnce(&mut Value)) {
    params(request, scene.binding, |params| change(&mut params["message"]));
}

fn parts_name(scene: &Scene) -> &'static str {
    let proto = scene.binding == Binding::Rest && scene.generation == Generation::V0_3;
    if proto { "content" } else { "parts" }
}

fn remove(value: &mut Value, name: &str) {
    value.as_object_mut().unwrap().remove(name);
}

/// Another interface of the same agent.
fn door(request: &mut Request, name: &str) {
    request.url = request.url.replacen("/a2a", &format!("/{name}"), 1);
}

fn in_task(request: &mut Request, scene: &Scene) {
    let task = json!(scene.task);
    match scene.generation {
        Generation::V0_1 => params(request, scene.binding, |params| params["id"] = task),
        _ => message(request, scene, |message| message["taskId"] = task),
    }
}

#[rustfmt::skip] // A table.
pub(crate) const WRONGS: &[Wrong] = &[
    wrong("CARD-001", "send", How::Habit(Habit::OldCard)),
    wrong("CARD-002", "sparse", Sends(1, |request, _| request.url = request.url.replacen("/a2a", "", 1))).also(&["REST-001"]),
    wrong("CARD-003", "interfaces", Sends(1, |request, _| door(request, "second"))),
    wrong("CARD-004", "interfaces", Sends(1, |request, _| door(request, "pigeon"))),
    wrong("CARD-005", "interfaces", Ends(badly)),
    wrong("CARD-006", "interface-down", How::Habit(Habit::GivesUp)),
    wrong("CARD-007", "huge-card", Ends(badly)),

    wrong("RPC-001", "send", Sends(1, |request, _| envelope(request, |body| body["jsonrpc"] = json!("1.0")))),
    wrong("RPC-001", "send", Sends(1, |request, _| envelope(request, |body| *body = json!([body.clone()])))),
    wrong("RPC-002", "send", Sends(1, |request, _| header(request, "Content-Type", Some("text/plain")))),
    wrong("RPC-003", "send", Sends(1, |request, _| envelope(request, |body| remove(body, "id")))).also(&["RPC-004"]),
    wrong("RPC-004", "send", Sends(1, |request, _| envelope(request, |body| body["id"] = Value::Null))),
    wrong("RPC-004", "send", Sends(1, |request, _| envelope(request, |body| body["id"] = json!(1.5)))),
    wrong("RPC-005", "send", Sends(1, |request, _| envelope(request, |body| body["method"] = json!("sendMessage")))),
    wrong("REST-001", "send", Sends(1, |request, _| request.url = request.url.replace("/message:send", "/messages/send"))),
    wrong("REST-001", "send", Sends(1, |request, _| request.method = "PUT".to_owned())),
    wrong("REST-002", "send", Sends(1, |request, _| header(request, "Content-Type", Some("application/json")))),
    wrong("REST-003", "send", Sends(1, |request, _| header(request, "Content-Type", None))).also(&["REST-002"]),
    wrong("REST-004", "odd-ids", Asks(Operation::GetTask, |scene| json!({"id": scene.task}), |request, _| request.url += "?history_length=2")),
    wrong("REST-005", "odd-ids", Asks(Operation::GetTask, |scene| json!({"id": scene.task}), |request, _| request.body = Some(b"{}".to_vec())))
        .also(&["REST-002", "REST-003"]),
    wrong("VER-001", "send", Sends(1, |request, _| header(request, "A2A-Version", None))),
    wrong("VER-002", "send", Sends(1, |request, _| header(request, "A2A-Version", Some("2.0")))),
    wrong("VER-003", "send", Sends(1, |request, _| header(request, "A2A-Version", Some("1.0.1")))),
    wrong("TENANT-001", "tenant", Sends(1, |request, scene| match scene.binding {
        Binding::Rest => request.url = request.url.replace("/acme-7", ""),
        _ => params(request, scene.binding, |params| remove(params, "tenant")),
    })),
    wrong("TENANT-002", "send", Sends(1, |request, scene| params(request, scene.binding, |params| params["tenant"] = json!("mine")))),
    wrong("EXT-001", "required-extension", Always(|request, _| {
        header(request, "A2A-Extensions", None);
        header(request, "X-A2A-Extensions", None);
    })),

    wrong("SEND-001", "send", Sends(1, |request, scene| message(request, scene, |message| remove(message, "messageId")))),
    wrong("SEND-002", "send", Sends(1, |request, scene| message(request, scene, |message| message["role"] = json!("agent")))),
    wrong("SEND-003", "send", Sends(1, |request, scene| message(request, scene, |message| message[parts_name(scene)] = json!([])))),
    wrong("SEND-004", "send", Sends(1, |request, scene| message(request, scene, |message| message[parts_name(scene)][0]["data"] = json!({})))),
    wrong("SEND-004", "send", Sends(1, |request, scene| message(request, scene, |message| remove(&mut message[parts_name(scene)][0], "text")))),
    wrong("SEND-005", "send", Sends(1, |request, scene| message(request, scene, |message| message["context_id"] = json!("")))).also(&["SEND-006"]),
    wrong("SEND-006", "send", Sends(1, |request, scene| message(request, scene, |message| message["mood"] = json!("good")))),
    wrong("SEND-007", "send", Sends(1, |request, scene| message(request, scene, |message| message["taskId"] = json!("mine")))),
    wrong("SEND-008", "send", Sends(1, |request, scene| message(request, scene, |message| message["contextId"] = json!("mine")))),
    wrong("SEND-009", "send", Sends(2, |request, scene| message(request, scene, |message| {
        message["messageId"] = json!("the-same");
        message[parts_name(scene)][0]["text"] = json!(format!("number {}", scene.number));
    }))),
    wrong("SEND-010", "send", Sends(1, |request, scene| params(request, scene.binding, |params| match scene.generation {
        Generation::V0_1 => params["historyLength"] = json!(-1),
        _ => params["configuration"] = json!({"historyLength": -1}),
    }))),
    wrong("SEND-010", "talk", Sends(1, |request, scene| params(request, scene.binding, |params| match scene.generation {
        Generation::V0_1 => params["historyLength"] = json!("3"),
        _ => params["configuration"] = json!({"blocking": "yes", "returnImmediately": 1}),
    }))).also(&["SEND-006", "TALK-001"]),
    wrong("SEND-011", "send", Sends(1, |request, scene| message(request, scene, |message| remove(message, "kind")))),
    wrong("SEND-012", "send", Sends(1, |request, scene| params(request, scene.binding, |params| remove(params, "id")))),

    wrong("TALK-001", "talk", Sends(1, |_, _| {})),
    wrong("TALK-002", "talk", Sends(1, |request, scene| {
        in_task(request, scene);
        message(request, scene, |message| message["contextId"] = json!(format!("{}-other", scene.task)));
    })).also(&["TALK-004"]),
    wrong("TALK-003", "talk", Sends(1, |request, scene| {
        in_task(request, scene);
        message(request, scene, |message| message["messageId"] = json!(scene.message_id));
    })).also(&["TALK-004", "SEND-009"]),
    wrong("TALK-004", "send", Sends(1, in_task)),
    wrong("TALK-005", "talk", Ends(badly)),

    wrong("GET-001", "tour", Asks(Operation::GetTask, none, nothing)),
    wrong("CANCEL-001", "tour", Asks(Operation::CancelTask, none, nothing)),
    wrong("SUB-001", "tour", Asks(Operation::SubscribeToTask, none, nothing)),
    wrong("SUB-002", "stream", Asks(Operation::SubscribeToTask, |scene| json!({"id": scene.task}), nothing)),
    wrong("PUSH-001", "tour", Asks(Operation::CreatePushConfig, |scene| match scene.generation {
        Generation::V1 => json!({"taskId": scene.task}),
        _ => json!({"taskId": scene.task, "id": scene.task, "pushNotificationConfig": {}}),
    }, nothing)),
    wrong("PUSH-002", "tour", Asks(Operation::DeletePushConfig, |scene| match scene.generation {
        Generation::V1 => json!({"taskId": scene.task}),
        _ => json!({"id": scene.task}),
    }, nothing)),
    wrong("LIST-001", "tour", Asks(Operation::ListTasks, |_| json!({"pageSize": 500}), nothing)),
    wrong("LIST-001", "tour", Asks(Operation::ListTasks, |_| json!({"status": "working"}), nothing)),
    wrong("LIST-002", "tour", Asks(Operation::ListTasks, |_| json!({"pageToken": "2"}), nothing)),
    wrong("ID-001", "odd-ids", Asks(Operation::GetTask, |_| json!({"id": "odd"}), nothing)),
    wrong("TOUR-001", "tour", Ends(badly)),

    wrong("STREAM-001", "stream", Ends(badly)),
    wrong("STREAM-002", "sse-comments", Ends(badly)),
    wrong("STREAM-003", "sse-crlf", Ends(badly)),
    wrong("STREAM-004", "sse-multi-line", Ends(badly)),
    wrong("STREAM-005", "sse-fields", Ends(badly)),
    wrong("STREAM-006", "sse-split", Ends(|ran| ran.stdout = ran.stdout.replace('ö', "\u{fffd}\u{fffd}"))),
    wrong("STREAM-007", "sse-large", Ends(badly)),
    wrong("STREAM-008", "chunks", Ends(|ran| ran.stdout = ran.stdout.split_inclusive(';').rev().collect())),
    wrong("STREAM-009", "stream-cut", How::Habit(Habit::Trusts)),
    wrong("STREAM-010", "stream-early-end", How::Habit(Habit::Trusts)),
    wrong("STREAM-011", "stream-error", Ends(well)),
    wrong("STREAM-012", "message-stream", Ends(badly)),
    wrong("STREAM-013", "stream", Always(|request, _| header(request, "Accept", Some("application/json")))),
    wrong("STREAM-014", "unknown-state", Ends(badly)),
    wrong("CAP-001", "no-streaming", Asks(Operation::SendStreamingMessage, |scene| {
        baton_lab::speak::send_params(scene.generation, "hello", json!({}))
    }, nothing)),

    wrong("READ-001", "send", Ends(badly)),
    wrong("READ-002", "message", Ends(badly)),
    wrong("READ-003", "unknown-members", Ends(badly)),
    wrong("READ-004", "sparse", Ends(badly)),
    wrong("READ-005", "all-parts", Ends(badly)),
    wrong("READ-006", "no-artifacts", Ends(badly)),
    wrong("ERR-001", "error-task-not-found", Ends(well)),
    wrong("ERR-001", "error-content-type", Ends(well)),
    wrong("ERR-002", "error-unsupported-operation", Ends(|ran| ran.stderr = "it did not work".to_owned())),
    wrong("ERR-004", "error-unsupported-operation", Ends(|ran| ran.stderr = "status 400".to_owned())),
    wrong("ERR-003", "error-task-not-found", Sends(6, nothing)),
    wrong("BAD-001", "html", Ends(well)),
    wrong("BAD-002", "bad-gateway", Ends(well)),
    wrong("BAD-003", "empty-reply", Ends(well)),
    wrong("BAD-004", "wrong-id", Ends(well)),
    wrong("RUN-001", "stream-cut", Ends(|ran| ran.hung = true)),

    wrong("RETRY-001", "busy-429", Sends(1, nothing)),
    wrong("RETRY-001", "dropped", Sends(1, nothing)),
    wrong("RETRY-002", "busy-503", How::Habit(Habit::Impatient)),
    wrong("RETRY-003", "busy-429", How::Habit(Habit::Careless)),
    wrong("RETRY-003", "dropped", How::Habit(Habit::Careless)),
    wrong("REDIR-001", "redirect", How::Habit(Habit::FollowsWithGet)).also(&["RPC-001", "REST-001"]),

    wrong("AUTH-001", "bearer", Always(|request, _| header(request, "Authorization", None))),
    wrong("AUTH-001", "api-key", Always(|request, _| header(request, "X-Judge-Key", Some("guessed")))),
    wrong("AUTH-002", "bearer", Sends(1, |request, scene| message(request, scene, |message| {
        message[parts_name(scene)][0]["text"] = json!(format!("my token is {}", scene.secret));
    }))),
    wrong("AUTH-003", "redirect-away", How::Habit(Habit::Carries)),
    wrong("AUTH-003", "redirect-away-key", How::Habit(Habit::Carries)),
];
