//! The answers of the scripted agents.

use serde_json::{Value, json};

use super::card::{self, EXTENSION, INTERFACE, KEY_HEADER, MOVED};
use super::frames;
use super::heard::{Call, Heard, Place};
use super::refusal::{self, Refusal};
use super::script::{Behaviour, CardKind, Framing};
use super::spell;
use super::stage::{ASKS, CANCELED, COMPLETED, ScriptState, WORKING, status};
use crate::generation::Generation;
use crate::wire::request::Operation;

/// An answer.
pub(super) enum Reply {
    Plain {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// `cut`: the connection breaks after the last piece.
    Stream {
        pieces: Vec<Vec<u8>>,
        cut: bool,
    },
    /// The connection is closed.
    Nothing,
}

/// Addresses that are used in answers.
pub(super) struct Addresses<'a> {
    /// The script's own.
    pub(super) base: &'a str,
    /// The script's address at the other origin.
    pub(super) foreign: &'a str,
    /// An address where nothing listens.
    pub(super) down: &'a str,
}

pub(super) fn answer(stage: &mut ScriptState, heard: &Heard, addresses: &Addresses<'_>) -> Reply {
    let Place::Door { name, rest } = &heard.place else {
        return match &heard.place {
            Place::Card(_) => {
                json_reply(200, &card::card(stage.variant, stage.script, addresses.base, addresses.down))
            }
            _ => lost(stage, heard),
        };
    };
    let Some(call) = &heard.call else { return lost(stage, heard) };
    if let Some(reply) = redirect(stage, name, rest, addresses) {
        return reply;
    }
    if !shows_credential(stage, heard) {
        let headers = vec![("www-authenticate", "Bearer".to_owned()), json_type()];
        return Reply::Plain { status: 401, headers, body: b"{\"error\":\"who are you?\"}".to_vec() };
    }
    match call.operation {
        Operation::SendMessage => send(stage, heard, call, false),
        Operation::SendStreamingMessage => send(stage, heard, call, true),
        _ => other(stage, call, addresses),
    }
}

fn json_type() -> (&'static str, String) {
    ("content-type", "application/json".to_owned())
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Reply::Plain { status, headers: vec![json_type()], body: body.to_string().into_bytes() }
}

/// The answer to a request for an unknown path.
fn lost(stage: &ScriptState, heard: &Heard) -> Reply {
    let id = heard.json.as_ref().map_or(Value::Null, |json| json["id"].clone());
    refused(stage, &refusal::UNKNOWN_METHOD, &id)
}

fn refused(stage: &ScriptState, refusal: &Refusal, id: &Value) -> Reply {
    json_reply(refusal.http(stage.variant), &refusal.body(stage.variant, id))
}

fn redirect(stage: &ScriptState, door: &str, rest: &str, addresses: &Addresses<'_>) -> Option<Reply> {
    let base = match stage.script.behaviour {
        Behaviour::Redirect => addresses.base,
        Behaviour::RedirectAway => addresses.foreign,
        _ => return None,
    };
    (door == INTERFACE).then(|| Reply::Plain {
        status: 307,
        headers: vec![("location", format!("{base}/{MOVED}{rest}"))],
        body: Vec::new(),
    })
}

fn shows_credential(stage: &ScriptState, heard: &Heard) -> bool {
    // After a redirect to the other origin, no credential is expected.
    if heard.foreign {
        return true;
    }
    let secret = stage.secret();
    match stage.script.card_kind {
        CardKind::Bearer | CardKind::Extended => heard.header("authorization").is_some_and(|value| {
            value.split_once(' ').is_some_and(|(scheme, token)| {
                scheme.eq_ignore_ascii_case("bearer") && token.trim() == secret
            })
        }),
        CardKind::ApiKey => heard.header(KEY_HEADER) == Some(secret.as_str()),
        _ => true,
    }
}

fn names_extension(heard: &Heard) -> bool {
    ["a2a-extensions", "x-a2a-extensions"].iter().any(|name| heard.listed(name).contains(&EXTENSION))
}

fn send(stage: &mut ScriptState, heard: &Heard, call: &Call, streams: bool) -> Reply {
    let before = stage.heard.iter().filter(|heard| heard.sends()).count();
    match stage.script.behaviour {
        Behaviour::Refuse(refusal) => return refused(stage, refusal, &call.id),
        Behaviour::Dropped if before == 0 => return Reply::Nothing,
        Behaviour::Busy(status) if before == 0 => {
            let body = json!({"error": {"code": status, "message": "too busy, come back later"}});
            let headers = vec![("retry-after", "1".to_owned()), json_type()];
            return Reply::Plain { status, headers, body: body.to_string().into_bytes() };
        }
        Behaviour::Html(status) => {
            let page = "<!doctype html><title>It works!</title><p>This is no agent.";
            let headers = vec![("content-type", "text/html; charset=utf-8".to_owned())];
            return Reply::Plain { status, headers, body: page.as_bytes().to_vec() };
        }
        Behaviour::EmptyReply => return json_reply(200, &json!({})),
        _ => {}
    }
    if stage.script.card_kind == CardKind::Extension && !names_extension(heard) {
        return refused(stage, &refusal::NO_EXTENSION, &call.id);
    }
    let at = stage.task_for(&call.params);
    let asks = matches!(stage.script.behaviour, Behaviour::Talk | Behaviour::Tour)
        && stage.tasks[at].state == WORKING;
    let halts =
        matches!(stage.script.behaviour, Behaviour::Cut | Behaviour::EarlyEnd | Behaviour::StreamError)
            && streams;
    stage.tasks[at].state = if asks {
        ASKS
    } else if halts {
        WORKING
    } else {
        COMPLETED
    };
    if streams { stream(stage, call, at) } else { once(stage, call, at) }
}

/// A reply without a stream.
fn once(stage: &ScriptState, call: &Call, at: usize) -> Reply {
    let task = &stage.tasks[at];
    let mut shown = stage.shown(task);
    match stage.script.behaviour {
        Behaviour::Message => {
            let reply = spell::reply(stage.variant, call.operation, json!({"message": said(stage)}));
            return enveloped(stage, call, &reply);
        }
        Behaviour::UnknownMembers => strange(&mut shown),
        Behaviour::Sparse => sparse(stage, &mut shown),
        Behaviour::AllParts => shown["artifacts"][0]["parts"] = every_part(stage),
        Behaviour::NoArtifacts => shown["artifacts"] = json!([]),
        _ => {}
    }
    let reply = spell::reply(stage.variant, call.operation, json!({ "task": shown }));
    enveloped(stage, call, &reply)
}

/// A message reply without a task.
fn said(stage: &ScriptState) -> Value {
    json!({"messageId": format!("message-{}", stage.nonce), "role": "ROLE_AGENT",
        "contextId": format!("context-{}", stage.nonce), "parts": [{"text": stage.text()}]})
}

fn strange(shown: &mut Value) {
    shown["weather"] = json!("fine");
    shown["status"]["mood"] = json!({"level": 7});
    shown["artifacts"][0]["colour"] = json!(["blue"]);
    shown["artifacts"][0]["parts"][0]["smell"] = json!(null);
}

fn sparse(stage: &ScriptState, shown: &mut Value) {
    if let Some(members) = shown.as_object_mut() {
        // 0.3 needs it.
        if stage.variant.generation != Generation::V0_3 {
            members.remove("contextId");
        }
    }
    shown["status"] = json!({"state": COMPLETED});
    if let Some(artifact) = shown["artifacts"][0].as_object_mut() {
        artifact.remove("name");
    }
}

fn every_part(stage: &ScriptState) -> Value {
    json!([
        {"text": stage.text()},
        {"raw": "aGVsbG8=", "mediaType": "application/octet-stream", "filename": "hello.bin"},
        {"url": "https://example.com/picture.png", "mediaType": "image/png"},
        {"data": {"a": [1, 2.5, null, {"b": "c"}]}, "mediaType": "application/json"},
        {"data": [1, "two", false]},
        {"data": null},
        {"text": ""},
    ])
}

fn enveloped(stage: &ScriptState, call: &Call, result: &Value) -> Reply {
    let variant = stage.variant;
    let body = if variant.is_rest() {
        result.clone()
    } else {
        let id = if stage.script.behaviour == Behaviour::WrongId {
            json!("somebody-else")
        } else {
            call.id.clone()
        };
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    };
    let kind = match (stage.script.behaviour, variant.is_rest() && variant.generation == Generation::V1) {
        (Behaviour::WrongType, _) => "text/plain",
        (_, true) => "application/a2a+json",
        (_, false) => "application/json",
    };
    let headers = vec![("content-type", kind.to_owned())];
    Reply::Plain { status: 200, headers, body: body.to_string().into_bytes() }
}

/// The events of this script's stream, in 1.0 form.
fn events(stage: &ScriptState, at: usize) -> Vec<Value> {
    let task = &stage.tasks[at];
    let about = |mut update: Value| {
        update["taskId"] = json!(task.id);
        update["contextId"] = json!(task.context);
        update
    };
    let state = |state: &str| json!({"statusUpdate": about(json!({"status": status(state)}))});
    let artifact = |parts: Value, append: bool, last: bool| {
        let update = json!({"artifact": stage.artifact(parts), "append": append, "lastChunk": last});
        json!({"artifactUpdate": about(update)})
    };
    let mut first = task.clone();
    first.state = WORKING;
    let mut first = stage.shown(&first);
    first["status"] = status("TASK_STATE_SUBMITTED");
    let mut events = vec![json!({ "task": first }), state(WORKING)];
    match stage.script.behaviour {
        Behaviour::Message => return vec![json!({"message": said(stage)})],
        Behaviour::Cut | Behaviour::EarlyEnd | Behaviour::StreamError => return events,
        Behaviour::Talk | Behaviour::Tour if task.state == ASKS => {
            let mut asks = state(ASKS);
            asks["statusUpdate"]["status"]["message"] = stage.message(task, "Which one?");
            events.push(asks);
            return events;
        }
        Behaviour::UnknownState => events.push(state("TASK_STATE_DAYDREAMING")),
        Behaviour::Chunks => {
            let chunks = stage.chunks();
            for (number, text) in (1..).zip(&chunks) {
                events.push(artifact(json!([{"text": text}]), number > 1, number == chunks.len()));
            }
        }
        Behaviour::Frames(framing @ Framing::Large) => {
            events.push(artifact(
                json!([{"text": stage.text()}, {"text": frames::padding(framing)}]),
                false,
                true,
            ));
        }
        _ => {}
    }
    if !matches!(stage.script.behaviour, Behaviour::Chunks | Behaviour::Frames(Framing::Large)) {
        events.push(artifact(json!([{"text": stage.text()}]), false, true));
    }
    events.push(state(COMPLETED));
    events
}

fn stream(stage: &ScriptState, call: &Call, at: usize) -> Reply {
    let events = events(stage, at);
    let last =
        !matches!(stage.script.behaviour, Behaviour::Cut | Behaviour::EarlyEnd | Behaviour::StreamError);
    let framing = match stage.script.behaviour {
        Behaviour::Frames(framing) => framing,
        _ => Framing::Plain,
    };
    let mut pieces = framed(stage, call, events, framing, last);
    match stage.script.behaviour {
        Behaviour::StreamError => {
            let body = refusal::INTERNAL.body(stage.variant, &call.id);
            let name = if stage.variant.is_rest() { "event: error\n" } else { "" };
            pieces.push(format!("{name}data: {body}\n\n").into_bytes());
        }
        Behaviour::Cut => {
            let half = br#"data: {"jsonrpc":"2.0","result":{"artifactUpd"#;
            pieces.push(half.to_vec());
            return Reply::Stream { pieces, cut: true };
        }
        _ => {}
    }
    Reply::Stream { pieces, cut: false }
}

fn framed(
    stage: &ScriptState,
    call: &Call,
    events: Vec<Value>,
    framing: Framing,
    last: bool,
) -> Vec<Vec<u8>> {
    let count = events.len();
    let events: Vec<Value> = (1..)
        .zip(events)
        .map(|(number, event)| {
            let event = spell::event(stage.variant, event, last && number == count);
            if stage.variant.is_rest() {
                event
            } else {
                json!({"jsonrpc": "2.0", "id": call.id, "result": event})
            }
        })
        .collect();
    frames::pieces(framing, &events)
}

/// Answers all operations except sends.
fn other(stage: &mut ScriptState, call: &Call, addresses: &Addresses<'_>) -> Reply {
    use Operation as O;
    let text = |name: &str| call.params[name].as_str().unwrap_or_default().to_owned();
    let result = match call.operation {
        O::GetTask | O::CancelTask | O::SubscribeToTask => {
            let Some(at) = stage.tasks.iter().position(|task| task.id == text("id")) else {
                return refused(stage, &refusal::NOT_FOUND, &call.id);
            };
            if call.operation == O::CancelTask {
                stage.tasks[at].state = CANCELED;
            } else if stage.tasks[at].state == WORKING {
                // A client that asks again finds it completed.
                stage.tasks[at].state = COMPLETED;
            }
            if call.operation == O::SubscribeToTask {
                return subscribed(stage, call, at);
            }
            stage.shown(&stage.tasks[at])
        }
        O::ListTasks => {
            let first = text("pageToken").is_empty();
            let token = if first { format!("page-{}/2", stage.nonce) } else { String::new() };
            let tasks: Vec<Value> = stage.tasks.iter().take(1).map(|task| stage.shown(task)).collect();
            json!({"tasks": tasks, "nextPageToken": token, "pageSize": 1, "totalSize": 2})
        }
        O::CreatePushConfig | O::GetPushConfig | O::ListPushConfigs => {
            let named = [text("taskId"), text("id")];
            let task = named.into_iter().find(|id| stage.task(id).is_some()).unwrap_or_default();
            let config = json!({"id": format!("config-{}", stage.nonce), "taskId": task, "url": "https://example.com/hook"});
            if call.operation == O::ListPushConfigs { json!({"configs": [config]}) } else { config }
        }
        O::DeletePushConfig => return deleted(stage, call),
        O::GetExtendedAgentCard => {
            let mut card = card::card(stage.variant, stage.script, addresses.base, addresses.down);
            card["description"] = json!(stage.text());
            card
        }
        _ => return refused(stage, &refusal::UNKNOWN_METHOD, &call.id),
    };
    let result = spell::reply(stage.variant, call.operation, result);
    enveloped(stage, call, &result)
}

fn deleted(stage: &ScriptState, call: &Call) -> Reply {
    if stage.variant.is_rest() { json_reply(200, &json!({})) } else { enveloped(stage, call, &Value::Null) }
}

/// A subscription: the current task, and its end.
fn subscribed(stage: &ScriptState, call: &Call, at: usize) -> Reply {
    let task = &stage.tasks[at];
    let mut working = task.clone();
    working.state = WORKING;
    let update = |mut update: Value| {
        update["taskId"] = json!(task.id);
        update["contextId"] = json!(task.context);
        update
    };
    let artifact = json!({"artifact": stage.artifact(json!([{"text": stage.text()}])), "lastChunk": true});
    let events = vec![
        json!({"task": stage.shown(&working)}),
        json!({"artifactUpdate": update(artifact)}),
        json!({"statusUpdate": update(json!({"status": status(COMPLETED)}))}),
    ];
    Reply::Stream { pieces: framed(stage, call, events, Framing::Plain, true), cut: false }
}
