//! The JSON of each face, read and written without the codecs under test: `spec/a2a.md` 2.5 as code.

use serde_json::{Value, json};

use crate::faces::{Face, Say};

/// Reason, JSON-RPC code, HTTP statuses of 1.0 and of 0.3. `spec/a2a.md` 3.2 to 3.4.
const ERRORS: &[(&str, i64, &[u16], &[u16])] = &[
    ("TASK_NOT_FOUND", -32001, &[404], &[404]),
    ("TASK_NOT_CANCELABLE", -32002, &[400], &[409]),
    ("PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, &[400], &[501]),
    ("UNSUPPORTED_OPERATION", -32004, &[400], &[501, 400]),
    ("CONTENT_TYPE_NOT_SUPPORTED", -32005, &[400], &[415]),
    ("METHOD_NOT_FOUND", -32601, &[404], &[404]),
    ("INVALID_PARAMS", -32602, &[400], &[400]),
];

/// The kind of an error, from its code alone, as legacy clients see it.
pub(crate) fn rpc_error(face: Face, error: &Value) -> Value {
    let code = error["code"].as_i64().expect("a code");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    // An unknown task has no generation: for method names that 0.1 and 0.3 share, the answer is that of 0.3.
    let legacy = face == Face::V01Rpc && error["data"]["reason"].is_string();
    let later = (face != Face::V01Rpc || code == -32001) && error["data"][0]["reason"].is_string();
    assert!(legacy || later, "{face:?}: no reason in {error}");
    let (reason, ..) = ERRORS.iter().find(|row| row.1 == code).unwrap_or_else(|| panic!("{error}"));
    json!({"error": reason})
}

pub(crate) fn http_error(face: Face, status: u16, error: &Value) -> Value {
    let info = &error["details"][0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{error}");
    assert_eq!(info["domain"], "a2a-protocol.org", "{error}");
    assert_eq!(error["code"], status, "{error}");
    let reason = info["reason"].as_str().expect("a reason");
    let (_, _, v1, v0_3) = ERRORS.iter().find(|row| row.0 == reason).unwrap_or_else(|| panic!("{error}"));
    assert!(if face.is_v1() { v1 } else { v0_3 }.contains(&status), "{face:?} {status}: {error}");
    json!({"error": reason})
}

/// Reason, gRPC codes of 1.0 and of 0.3. `spec/a2a.md` 3.2 and 3.3.
const GRPC_ERRORS: &[(&str, i64, &[i64])] = &[
    ("TASK_NOT_FOUND", 5, &[5]),
    ("TASK_NOT_CANCELABLE", 9, &[12]),
    ("PUSH_NOTIFICATION_NOT_SUPPORTED", 9, &[12]),
    ("UNSUPPORTED_OPERATION", 9, &[12, 9]),
    ("CONTENT_TYPE_NOT_SUPPORTED", 3, &[12]),
    ("METHOD_NOT_FOUND", 12, &[12]),
    ("INVALID_PARAMS", 3, &[3]),
];

pub(crate) fn grpc_error(face: Face, error: &Value) -> Value {
    if error["unsayable"].is_string() {
        return json!({"error": "unsayable"});
    }
    let info = &error["details"][0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{error}");
    assert_eq!(info["domain"], "a2a-protocol.org", "{error}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    let (reason, code) =
        (info["reason"].as_str().expect("a reason"), error["grpc"].as_i64().expect("a code"));
    let (_, v1, v0_3) = GRPC_ERRORS.iter().find(|row| row.0 == reason).unwrap_or_else(|| panic!("{error}"));
    let fits = if face.is_v1() { *v1 == code } else { v0_3.contains(&code) };
    assert!(fits, "{face:?}: {error}");
    json!({"error": reason})
}

pub(crate) fn send_params(face: Face, say: &Say) -> Value {
    let parts: Vec<Value> =
        say.parts.as_array().unwrap().iter().map(|part| part_from_v1(face, part)).collect();
    let mut message = match face {
        Face::V1Rpc | Face::V1Http | Face::V1Tenant => {
            json!({"messageId": say.id, "role": "ROLE_USER", "parts": parts})
        }
        Face::V03Rpc => json!({"kind": "message", "messageId": say.id, "role": "user", "parts": parts}),
        Face::V03Http => json!({"messageId": say.id, "role": "ROLE_USER", "content": parts}),
        Face::V01Rpc => json!({"role": "user", "parts": parts}),
        #[cfg(feature = "grpc")]
        Face::V1Grpc | Face::V03Grpc => unreachable!("it has the JSON of another"),
    };
    message["metadata"] = say.metadata.clone().unwrap_or(json!({}));
    if face == Face::V01Rpc {
        let id = say.to.clone().unwrap_or_else(|| format!("task-of-{}", say.id));
        return json!({"id": id, "message": message, "historyLength": say.history, "metadata": null});
    }
    if let Some(task) = &say.to {
        message["taskId"] = json!(task);
    }
    let mut configuration =
        if face.is_v1() { json!({"returnImmediately": !say.wait}) } else { json!({"blocking": say.wait}) };
    if let Some(history) = say.history {
        configuration["historyLength"] = json!(history);
    }
    json!({"message": message, "configuration": configuration})
}

/// Converts a part of 1.0 to the JSON of this face.
fn part_from_v1(face: Face, part: &Value) -> Value {
    if face.is_v1() {
        return part.clone();
    }
    let has = |name: &str| part.get(name).filter(|value| !value.is_null());
    let mut out = json!({});
    let (kind, bytes, uri) = match face {
        Face::V03Http => ("", "fileWithBytes", "fileWithUri"),
        Face::V01Rpc => ("type", "bytes", "uri"),
        _ => ("kind", "bytes", "uri"),
    };
    let name = if let Some(text) = has("text") {
        out["text"] = text.clone();
        "text"
    } else if let Some(data) = has("data") {
        out["data"] = if face == Face::V03Http { json!({"data": data}) } else { data.clone() };
        "data"
    } else {
        let mut file = json!({});
        for (ours, theirs) in [("raw", bytes), ("url", uri), ("mediaType", "mimeType"), ("filename", "name")]
        {
            if let Some(value) = has(ours) {
                file[theirs] = value.clone();
            }
        }
        out["file"] = file;
        "file"
    };
    if !kind.is_empty() {
        out[kind] = json!(name);
    }
    if let Some(metadata) = has("metadata") {
        out["metadata"] = metadata.clone();
    }
    out
}

/// Converts a part to the JSON of 1.0.
pub(crate) fn part(face: Face, part: &Value) -> Value {
    if face.is_v1() {
        return part.clone();
    }
    let (kind, bytes, uri) = match face {
        Face::V03Http => (None, "fileWithBytes", "fileWithUri"),
        Face::V01Rpc => (Some("type"), "bytes", "uri"),
        _ => (Some("kind"), "bytes", "uri"),
    };
    let found: Vec<_> =
        ["text", "data", "file"].into_iter().filter(|name| part.get(name).is_some()).collect();
    let [name] = found[..] else { panic!("{face:?}: not one content: {part}") };
    match kind {
        Some(kind) => assert_eq!(part[kind], name, "{face:?}"),
        None => assert!(part.get("kind").is_none() && part.get("type").is_none(), "{part}"),
    }
    let mut out = json!({});
    match name {
        "file" => {
            let file = &part["file"];
            for (ours, theirs) in
                [("raw", bytes), ("url", uri), ("mediaType", "mimeType"), ("filename", "name")]
            {
                if let Some(value) = file.get(theirs) {
                    out[ours] = value.clone();
                }
            }
        }
        "data" if face == Face::V03Http => out["data"] = part["data"]["data"].clone(),
        name => out[name] = part[name].clone(),
    }
    if let Some(metadata) = part.get("metadata") {
        out["metadata"] = metadata.clone();
    }
    out
}

fn parts(face: Face, holder: &Value, name: &str) -> Value {
    holder[name]
        .as_array()
        .unwrap_or_else(|| panic!("{face:?}: no {name} in {holder}"))
        .iter()
        .map(|it| part(face, it))
        .collect()
}

/// `{role, parts}` and metadata that is not empty.
pub(crate) fn message(face: Face, message: &Value) -> Value {
    let role = message["role"].as_str().expect("a role");
    let role = match face {
        Face::V03Rpc | Face::V01Rpc => role.to_owned(),
        _ => role.strip_prefix("ROLE_").expect("a proto name").to_lowercase(),
    };
    assert!(["user", "agent"].contains(&role.as_str()), "{face:?}: {message}");
    assert_eq!(message.get("kind").is_some(), face == Face::V03Rpc, "{message}");
    assert_eq!(message.get("messageId").is_some(), face != Face::V01Rpc, "{face:?}: {message}");
    let name = if face == Face::V03Http { "content" } else { "parts" };
    let mut shape = json!({"role": role, "parts": parts(face, message, name)});
    if message.get("metadata").is_some_and(|metadata| *metadata != json!({})) {
        shape["metadata"] = message["metadata"].clone();
    }
    shape
}

fn state(face: Face, state: &Value) -> String {
    let state = state.as_str().expect("a state");
    match face {
        Face::V03Rpc | Face::V01Rpc => state.to_owned(),
        Face::V03Http if state == "TASK_STATE_CANCELLED" => "canceled".to_owned(),
        Face::V03Http if state == "TASK_STATE_CANCELED" => panic!("0.3 spells it with two L"),
        _ => state.strip_prefix("TASK_STATE_").expect("a proto name").to_lowercase().replace('_', "-"),
    }
}

fn says(face: Face, status: &Value) -> Value {
    assert!(status["timestamp"].as_str().is_some_and(|at| at.ends_with('Z')), "{face:?}: {status}");
    status.get("message").map_or(Value::Null, |said| message(face, said)["parts"].clone())
}

fn artifact(face: Face, artifact: &Value) -> Value {
    assert_eq!(artifact.get("artifactId").is_some(), face != Face::V01Rpc, "{artifact}");
    assert_eq!(artifact.get("index").is_some(), face == Face::V01Rpc, "{artifact}");
    let mut shape = json!({"parts": parts(face, artifact, "parts")});
    for name in ["name", "description", "metadata"] {
        if let Some(value) = artifact.get(name) {
            shape[name] = value.clone();
        }
    }
    shape
}

pub(crate) fn task(face: Face, task: &Value) -> Value {
    let context = if face == Face::V01Rpc { "sessionId" } else { "contextId" };
    assert!(task["id"].is_string() && task[context].is_string(), "{face:?}: {task}");
    assert_eq!(task.get("kind").is_some(), face == Face::V03Rpc, "{task}");
    let list = |name: &str| task.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let artifacts: Vec<Value> = list("artifacts").iter().map(|it| artifact(face, it)).collect();
    let history: Vec<Value> = list("history").iter().map(|it| message(face, it)).collect();
    json!({
        "state": state(face, &task["status"]["state"]), "says": says(face, &task["status"]),
        "artifacts": artifacts, "history": history,
    })
}

/// The id of the task, and the answer to a send.
pub(crate) fn sent(face: Face, sent: &Value) -> (String, Value) {
    let bare = |it: &Value| match it["kind"].as_str() {
        Some("message") => json!({"message": it}),
        _ => json!({"task": it}),
    };
    let wrapped = if matches!(face, Face::V03Rpc | Face::V01Rpc) { bare(sent) } else { sent.clone() };
    let id = wrapped["task"]["id"].as_str().unwrap_or_default().to_owned();
    match (wrapped.get("task"), wrapped.get("message")) {
        // A task that stands for a message reply has no time.
        (Some(it), None) if it["status"].get("timestamp").is_none() => (
            id,
            json!({"task": {"state": it["status"]["state"], "says": message(face, &it["status"]["message"])["parts"]}}),
        ),
        (Some(it), None) => (id, json!({"task": task(face, it)})),
        (None, Some(it)) => (id, json!({"message": message(face, it)["parts"]})),
        _ => panic!("{face:?}: neither task nor message: {sent}"),
    }
}

/// A page of tasks: their states, and the counts.
pub(crate) fn page(face: Face, page: &Value) -> Value {
    let tasks: Vec<Value> =
        page["tasks"].as_array().expect("tasks").iter().map(|it| task(face, it)).collect();
    assert!(page["nextPageToken"].is_string(), "{page}");
    json!({
        "tasks": tasks, "pageSize": page["pageSize"], "totalSize": page["totalSize"],
        "next": page["nextPageToken"],
    })
}

/// An event in the common form, and whether it is marked as the last.
pub(crate) fn event(face: Face, event: &Value, name: Option<&str>, opening: bool) -> (Value, bool) {
    let kind = match face {
        Face::V03Rpc => event["kind"].as_str().expect("a kind"),
        Face::V01Rpc if event.get("artifact").is_some() => "artifact-update",
        Face::V01Rpc if opening => "task",
        Face::V01Rpc => "status-update",
        _ => event.as_object().and_then(|members| members.keys().next()).expect("a member"),
    };
    let inner = if matches!(face, Face::V03Rpc | Face::V01Rpc) { event } else { &event[kind] };
    let expected = match (face, kind) {
        (Face::V01Rpc, "artifact-update") => Some("artifact"),
        (Face::V01Rpc, _) => Some("status"),
        _ => None,
    };
    assert_eq!(name, expected, "{face:?}: only 0.1 names its events: {event}");
    let last = inner.get("final").cloned().unwrap_or(json!(false));
    if face == Face::V03Rpc && kind == "status-update" || face == Face::V01Rpc && expected == Some("status") {
        assert!(inner.get("final").is_some(), "{event}");
    } else if face.is_v1() {
        assert_eq!(inner.get("final"), None);
    }
    let shape = match kind {
        // A message reply shown as a task: the only event.
        "task" if face == Face::V01Rpc && last == json!(true) => {
            let said = message(face, &inner["status"]["message"]);
            json!({"opens": state(face, &inner["status"]["state"]), "says": said["parts"]})
        }
        "task" => json!({"opens": state(face, &inner["status"]["state"])}),
        "message" => json!({"message": message(face, inner)["parts"]}),
        "status-update" | "statusUpdate" => {
            json!({"state": state(face, &inner["status"]["state"]), "says": says(face, &inner["status"])})
        }
        "artifact-update" | "artifactUpdate" => {
            let flags = if face == Face::V01Rpc { &inner["artifact"] } else { inner };
            let flag = |name: &str| flags.get(name).is_some_and(|value| *value == json!(true));
            let append = flag("append");
            json!({"artifact": artifact(face, &inner["artifact"]), "append": append, "last": flag("lastChunk")})
        }
        other => panic!("{face:?}: {other}"),
    };
    (shape, last == json!(true))
}
