//! How a request is wrapped: JSON-RPC envelope, verbs and paths, media types.

use serde_json::Value;

use super::{Finding, INTEROP, Rule, Trial, each, posts};
use crate::acts::document::Level;
use crate::case::Failure;
use crate::generation::{Binding, Generation};
use crate::judge::heard::{Heard, Place};
use crate::wire::request::Operation;

const RPC: &[Binding] = &[Binding::Jsonrpc];
const REST: &[Binding] = &[Binding::Rest];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "RPC-001",
        name: "A JSON-RPC 2.0 request",
        level: Level::Must,
        requirement: "A call is one JSON-RPC request: `jsonrpc` is exactly \"2.0\", `method` a string, `params` an object where there are any.",
        remedy: "Send one object with these members by POST; batches and positional params are not part of A2A.",
        sections: ["9.1", "6.11.1", "6.11.1"],
        bindings: RPC,
        check: envelope,
        ..INTEROP
    },
    Rule {
        id: "RPC-002",
        name: "Content-Type: application/json",
        level: Level::Must,
        requirement: "JSON-RPC requests are sent as `application/json`.",
        remedy: "Set the Content-Type header of every call.",
        sections: ["9.1", "3.2.1", "3.2"],
        bindings: RPC,
        check: json_type,
        ..INTEROP
    },
    Rule {
        id: "RPC-003",
        name: "Requests have an id",
        level: Level::Must,
        requirement: "A request that wants an answer has an `id`: a string or a number. Without one it is a notification.",
        remedy: "Give every request an id of its own, and match the answer by it.",
        sections: ["9.1", "6.11.1", "6.11.1"],
        bindings: RPC,
        check: has_id,
        ..INTEROP
    },
    Rule {
        id: "RPC-004",
        name: "Ids are neither null nor fractional",
        level: Level::Should,
        requirement: "The `id` of a request is neither `null` nor a number with a fraction.",
        remedy: "Use a string or a whole number as id.",
        sections: ["9.1", "6.11.1", "6.11.1"],
        bindings: RPC,
        check: plain_id,
        ..INTEROP
    },
    Rule {
        id: "RPC-005",
        name: "Methods of the interface's generation",
        level: Level::Must,
        requirement: "The method is one of the generation of the chosen interface, spelled exactly.",
        remedy: "Choose the method names by the interface's version: `SendMessage` in 1.0, `message/send` in 0.3, `tasks/send` in 0.1.",
        sections: ["5.3", "3.5.6", "7"],
        bindings: RPC,
        check: method,
        ..INTEROP
    },
    Rule {
        id: "REST-001",
        name: "Verbs and paths of the binding",
        level: Level::Must,
        requirement: "Each operation has its verb and path below the interface's URL, such as `POST /message:send` (0.3: below `/v1`).",
        remedy: "Build paths from the table of the binding's section, with the interface's tenant in front where it has one.",
        sections: ["11.3", "3.5.3", ""],
        bindings: REST,
        check: path,
        ..INTEROP
    },
    Rule {
        id: "REST-002",
        name: "Bodies are application/a2a+json",
        level: Level::Should,
        requirement: "Request bodies of HTTP+JSON are sent as `application/a2a+json`.",
        remedy: "Set Content-Type to application/a2a+json.",
        sections: ["11.1", "", ""],
        bindings: REST,
        check: a2a_type,
        ..INTEROP
    },
    Rule {
        id: "REST-003",
        name: "Bodies have a JSON media type",
        level: Level::Must,
        requirement: "Request bodies have a JSON media type (0.3: `application/json`).",
        remedy: "Set the Content-Type header of every request with a body.",
        sections: ["11.1", "3.2.3", ""],
        bindings: REST,
        check: json_type,
        ..INTEROP
    },
    Rule {
        id: "REST-004",
        name: "Query parameters in camelCase",
        level: Level::Must,
        requirement: "Parameters of GET and DELETE requests are in the query, under the names of the operation's members in camelCase.",
        remedy: "Write `historyLength`, not `history_length`; leave out what the operation does not have.",
        sections: ["11.5", "", ""],
        bindings: REST,
        check: query,
        ..INTEROP
    },
    Rule {
        id: "REST-005",
        name: "GET and DELETE have no body",
        level: Level::Must,
        requirement: "GET and DELETE requests carry their parameters in path and query, not in a body.",
        remedy: "Send GET and DELETE without a body.",
        sections: ["11.5", "", ""],
        bindings: REST,
        check: no_body,
        ..INTEROP
    },
];

fn envelope(trial: &Trial<'_>) -> Finding {
    each(posts(trial), "no call", |heard| {
        if heard.method != "POST" {
            return Err(Failure::expected("POST", heard.line()));
        }
        let Some(json) = &heard.json else {
            return Err(Failure::expected("a JSON body", format!("{:?}", short(&heard.text()))));
        };
        if !json.is_object() {
            return Err(Failure::expected("one JSON-RPC request", short(&json.to_string())));
        }
        if json["jsonrpc"] != "2.0" {
            return Err(Failure::expected("`jsonrpc` \"2.0\"", json["jsonrpc"].to_string()));
        }
        if !json["method"].is_string() {
            return Err(Failure::expected("a method", json["method"].to_string()));
        }
        match &json["params"] {
            Value::Object(_) | Value::Null => Ok(()),
            other => Err(Failure::expected("`params` as an object", short(&other.to_string()))),
        }
    })
}

fn json_type(trial: &Trial<'_>) -> Finding {
    let proto = trial.variant().is_rest() && trial.generation() == Generation::V1;
    let bodies = posts(trial).filter(|(_, heard)| !heard.body.is_empty());
    each(bodies, "no request with a body", |heard| {
        let found = media(heard);
        let fits = found == "application/json" || proto && found == "application/a2a+json";
        if fits { Ok(()) } else { Err(Failure::expected("Content-Type: application/json", shown(&found))) }
    })
}

fn a2a_type(trial: &Trial<'_>) -> Finding {
    let bodies = posts(trial).filter(|(_, heard)| !heard.body.is_empty());
    each(bodies, "no request with a body", |heard| {
        let found = media(heard);
        let fits = found == "application/a2a+json";
        if fits {
            Ok(())
        } else {
            Err(Failure::expected("Content-Type: application/a2a+json", shown(&found)))
        }
    })
}

fn media(heard: &Heard) -> String {
    let value = heard.header("content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn shown(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

fn envelopes<'a>(trial: &Trial<'a>) -> impl Iterator<Item = (usize, &'a Heard)> {
    posts(trial).filter(|(_, heard)| heard.json.as_ref().is_some_and(Value::is_object))
}

fn has_id(trial: &Trial<'_>) -> Finding {
    each(envelopes(trial), "no JSON-RPC request", |heard| {
        match heard.json.as_ref().and_then(|json| json.get("id")) {
            Some(Value::String(_) | Value::Number(_) | Value::Null) => Ok(()),
            Some(other) => Err(Failure::expected("an id that is a string or a number", other.to_string())),
            None => Err(Failure::expected("an id", "none: a notification, which has no answer")),
        }
    })
}

fn plain_id(trial: &Trial<'_>) -> Finding {
    each(envelopes(trial), "no JSON-RPC request", |heard| {
        let id = heard.json.as_ref().map_or(&Value::Null, |json| &json["id"]);
        let fraction = id.as_f64().is_some_and(|number| number.fract() != 0.0);
        if fraction || id.is_null() {
            return Err(Failure::expected("a string or a whole number as id", id.to_string()));
        }
        Ok(())
    })
}

fn method(trial: &Trial<'_>) -> Finding {
    let generation = trial.generation();
    each(envelopes(trial), "no JSON-RPC request", |heard| {
        let method = heard.json.as_ref().and_then(|json| json["method"].as_str()).unwrap_or_default();
        if Operation::all().any(|operation| operation.method(generation) == Some(method)) {
            return Ok(());
        }
        Err(Failure::expected(format!("a method of {generation}"), format!("{method:?}")))
    })
}

fn path(trial: &Trial<'_>) -> Finding {
    let calls = trial.calls().filter(|(_, heard)| matches!(heard.place, Place::Door { .. }));
    each(calls, "no call", |heard| match heard.call {
        Some(_) => Ok(()),
        None => Err(Failure::expected(
            format!("an operation's verb and path, such as POST {}/message:send", trial.variant().prefix()),
            heard.line(),
        )),
    })
}

fn query(trial: &Trial<'_>) -> Finding {
    const KNOWN: &[&str] = &[
        "contextId",
        "status",
        "pageSize",
        "pageToken",
        "historyLength",
        "statusTimestampAfter",
        "includeArtifacts",
        "tenant",
        "A2A-Version",
        "id",
        "taskId",
    ];
    let gets = trial.calls().filter(|(_, heard)| heard.call.is_some() && !heard.query().is_empty());
    each(gets, "no request with a query", |heard| {
        let named = heard.query().into_iter().map(|(name, _)| name);
        match named.into_iter().find(|name| !KNOWN.contains(&name.as_str())) {
            Some(name) => {
                Err(Failure::expected("names of the operation's members in camelCase", format!("{name:?}")))
            }
            None => Ok(()),
        }
    })
}

fn no_body(trial: &Trial<'_>) -> Finding {
    let gets = trial.calls().filter(|(_, heard)| ["GET", "DELETE"].contains(&heard.method.as_str()));
    each(gets, "no GET or DELETE request", |heard| {
        if heard.body.is_empty() { Ok(()) } else { Err(Failure::expected("no body", short(&heard.text()))) }
    })
}
