//! Rules for the messages that a client sends.

use serde_json::{Map, Value};

use super::{Finding, INTEROP, Rule, Trial, each};
use crate::acts::document::Level;
use crate::case::{Category, Failure};
use crate::generation::{Binding, Generation};
use crate::judge::heard::Heard;
use crate::judge::variant::Variant;

const SEND: Rule = Rule { category: Category::Lifecycle, ..INTEROP };

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "SEND-001",
        name: "Messages have an id",
        requirement: "A message has a `messageId`, made by the client.",
        remedy: "Put a new UUID into `messageId` of every message.",
        sections: ["4.1.4", "6.4", ""],
        check: message_id,
        ..SEND
    },
    Rule {
        id: "SEND-002",
        name: "Messages have the role of the user",
        requirement: "A message from the client has the role of the user: `ROLE_USER` (in JSON of 0.3 and 0.1: `user`).",
        remedy: "Set `role`, spelled as the generation spells it.",
        sections: ["4.1.4", "6.4", "6.4"],
        check: role,
        ..SEND
    },
    Rule {
        id: "SEND-003",
        name: "Messages have a part",
        requirement: "A message has at least one part.",
        remedy: "Send at least one part in `parts` (HTTP+JSON of 0.3: `content`).",
        sections: ["4.1.4", "6.4", "6.4"],
        check: has_parts,
        ..SEND
    },
    Rule {
        id: "SEND-004",
        name: "Parts have one content",
        requirement: "A part has exactly one content: `text`, `raw`, `url` or `data` (0.3 and 0.1: `text`, `file` or `data`, and the tag that says which).",
        remedy: "Spell parts as the generation does: `{\"text\": …}` in 1.0, `{\"kind\": \"text\", \"text\": …}` in 0.3.",
        sections: ["4.1.6", "6.5", "6.5"],
        check: parts,
        ..SEND
    },
    Rule {
        id: "SEND-005",
        name: "Names in camelCase",
        requirement: "JSON members are named in camelCase.",
        remedy: "Write `messageId`, not `message_id`; a serializer for protocol buffers has an option for that.",
        sections: ["5.5", "6", "6"],
        check: camel_case,
        ..SEND
    },
    Rule {
        id: "SEND-006",
        name: "Members of the generation only",
        level: Level::Should,
        requirement: "Requests hold the members that the generation defines; everything else goes into `metadata`.",
        remedy: "Leave out members of other generations (`kind` in 1.0) and your own; strict agents refuse them.",
        sections: ["4.1", "6", "6"],
        check: known_members,
        ..SEND
    },
    Rule {
        id: "SEND-007",
        name: "No task ids of its own",
        requirement: "A `taskId` in a message names a task that the agent has made.",
        remedy: "Leave `taskId` out of the first message; the agent names the task.",
        sections: ["3.4.2", "7.1", ""],
        check: no_own_task,
        ..SEND
    },
    Rule {
        id: "SEND-008",
        name: "No contexts of its own",
        level: Level::Should,
        requirement: "A client does not make up a `contextId` without knowing that the agent accepts it.",
        remedy: "Leave `contextId` out of the first message, and use the agent's from then on.",
        sections: ["3.4.1", "", ""],
        check: no_own_context,
        ..SEND
    },
    Rule {
        id: "SEND-009",
        name: "A message id is used once",
        requirement: "Two different messages do not have the same `messageId`.",
        remedy: "Make a new id for every message; keep it only when the same message is sent again.",
        sections: ["4.1.4", "6.4", ""],
        check: unique,
        ..SEND
    },
    Rule {
        id: "SEND-010",
        name: "Configuration of the right types",
        requirement: "What is in `configuration` has the types of the specification: booleans, whole numbers of 0 or more, lists of text.",
        remedy: "Send `returnImmediately` (0.3: `blocking`) as a boolean, `historyLength` as a number, `acceptedOutputModes` as a list.",
        sections: ["3.2.2", "7.1.1", "7.1.1"],
        check: configuration,
        ..SEND
    },
    Rule {
        id: "SEND-011",
        name: "Messages have a kind",
        level: Level::Should,
        requirement: "A message has `kind: \"message\"`.",
        remedy: "Set `kind` on messages; some agents distinguish objects by it.",
        sections: ["", "6.4", ""],
        bindings: &[Binding::Jsonrpc],
        check: kind,
        ..SEND
    },
    Rule {
        id: "SEND-012",
        name: "The client names the task",
        requirement: "`tasks/send` and `tasks/sendSubscribe` have an `id`: the task's, made by the client.",
        remedy: "Put a new UUID into `params.id` for every new task.",
        sections: ["", "", "7.1.1"],
        check: task_id,
        ..SEND
    },
];

fn message(heard: &Heard) -> &Value {
    &heard.params()["message"]
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value[name].as_str().filter(|text| !text.is_empty())
}

fn message_id(trial: &Trial<'_>) -> Finding {
    each(trial.sends(), "no message", |heard| match text(message(heard), "messageId") {
        Some(_) => Ok(()),
        None => {
            Err(Failure::expected("`message.messageId`, a text", message(heard)["messageId"].to_string()))
        }
    })
}

fn role(trial: &Trial<'_>) -> Finding {
    let proto = trial.variant().is_rest() || trial.generation() == Generation::V1;
    let wanted = if proto { "ROLE_USER" } else { "user" };
    each(trial.sends(), "no message", |heard| {
        let found = &message(heard)["role"];
        if found == wanted {
            Ok(())
        } else {
            Err(Failure::expected(format!("role {wanted:?}"), found.to_string()))
        }
    })
}

/// The member with the parts.
fn parts_name(variant: Variant) -> &'static str {
    if variant.is_rest() && variant.generation == Generation::V0_3 { "content" } else { "parts" }
}

fn parts_of(variant: Variant, heard: &Heard) -> &[Value] {
    let found = message(heard)[parts_name(variant)].as_array();
    // The text of 0.3 allows both spellings in HTTP+JSON.
    found.or_else(|| message(heard)["parts"].as_array()).map_or(&[], Vec::as_slice)
}

fn has_parts(trial: &Trial<'_>) -> Finding {
    let variant = trial.variant();
    each(trial.sends(), "no message", |heard| {
        if parts_of(variant, heard).is_empty() {
            let actual = message(heard)[parts_name(variant)].to_string();
            return Err(Failure::expected(format!("`message.{}` with a part", parts_name(variant)), actual));
        }
        Ok(())
    })
}

fn parts(trial: &Trial<'_>) -> Finding {
    let variant = trial.variant();
    let contents: &[&str] = match variant.generation {
        Generation::V1 => &["text", "raw", "url", "data"],
        _ => &["text", "file", "data"],
    };
    let tag = match (variant.generation, variant.binding) {
        (Generation::V0_3, Binding::Jsonrpc) => Some("kind"),
        (Generation::V0_1, _) => Some("type"),
        _ => None,
    };
    let sends = trial.sends().filter(|(_, heard)| !parts_of(variant, heard).is_empty());
    each(sends, "no message with parts", |heard| {
        for part in parts_of(variant, heard) {
            let held: Vec<&str> = contents.iter().copied().filter(|name| part.get(*name).is_some()).collect();
            if held.len() != 1 {
                return Err(Failure::expected(format!("one of {}", contents.join(", ")), part.to_string()));
            }
            if let Some(tag) = tag.filter(|tag| part[*tag] != held[0]) {
                return Err(Failure::expected(format!("`{tag}: {:?}`", held[0]), part.to_string()));
            }
        }
        Ok(())
    })
}

/// All member names in a value, except inside members with free content.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                found.push(name.clone());
                if !["metadata", "data", "params"].contains(&name.as_str()) || name == "params" {
                    names(member, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

fn camel_case(trial: &Trial<'_>) -> Finding {
    let bodies = trial.calls().filter(|(_, heard)| heard.json.as_ref().is_some_and(Value::is_object));
    each(bodies, "no JSON body", |heard| {
        let mut found = Vec::new();
        heard.json.iter().for_each(|json| names(json, &mut found));
        match found.into_iter().find(|name| name.contains('_')) {
            Some(name) => Err(Failure::expected("names in camelCase", format!("{name:?}"))),
            None => Ok(()),
        }
    })
}

/// The allowed members of the params, the configuration, the message and its parts.
struct Members {
    params: &'static [&'static str],
    configuration: &'static [&'static str],
    message: &'static [&'static str],
    part: &'static [&'static str],
}

fn members(variant: Variant) -> Members {
    match (variant.generation, variant.binding) {
        (Generation::V1, _) => Members {
            params: &["tenant", "message", "configuration", "metadata", "A2A-Version"],
            configuration: &[
                "acceptedOutputModes",
                "taskPushNotificationConfig",
                "historyLength",
                "returnImmediately",
            ],
            message: &[
                "messageId",
                "contextId",
                "taskId",
                "role",
                "parts",
                "metadata",
                "extensions",
                "referenceTaskIds",
            ],
            part: &["text", "raw", "url", "data", "metadata", "filename", "mediaType"],
        },
        (Generation::V0_3, Binding::Rest) => Members {
            params: &["message", "request", "configuration", "metadata"],
            configuration: &[
                "acceptedOutputModes",
                "pushNotification",
                "pushNotificationConfig",
                "historyLength",
                "blocking",
            ],
            // Either spelling: see `parts_of`.
            message: &[
                "messageId",
                "contextId",
                "taskId",
                "role",
                "content",
                "parts",
                "kind",
                "metadata",
                "extensions",
                "referenceTaskIds",
            ],
            part: &["text", "file", "data", "metadata", "kind"],
        },
        (Generation::V0_3, _) => Members {
            params: &["message", "configuration", "metadata"],
            configuration: &["acceptedOutputModes", "pushNotificationConfig", "historyLength", "blocking"],
            message: &[
                "kind",
                "messageId",
                "contextId",
                "taskId",
                "role",
                "parts",
                "metadata",
                "extensions",
                "referenceTaskIds",
            ],
            part: &["kind", "text", "file", "data", "metadata"],
        },
        (Generation::V0_1, _) => Members {
            params: &[
                "id",
                "sessionId",
                "message",
                "pushNotification",
                "historyLength",
                "metadata",
                "acceptedOutputModes",
            ],
            configuration: &[],
            message: &["role", "parts", "metadata"],
            part: &["type", "text", "file", "data", "metadata"],
        },
    }
}

fn known_members(trial: &Trial<'_>) -> Finding {
    let variant = trial.variant();
    let known = members(variant);
    let stray = |value: &Value, known: &[&str]| -> Option<String> {
        let members = value.as_object()?;
        members.keys().find(|name| !known.contains(&name.as_str())).cloned()
    };
    each(trial.sends(), "no message", |heard| {
        let params = heard.params();
        let mut found = stray(params, known.params)
            .or_else(|| stray(&params["configuration"], known.configuration))
            .or_else(|| stray(message(heard), known.message));
        found = found.or_else(|| parts_of(variant, heard).iter().find_map(|part| stray(part, known.part)));
        match found {
            Some(name) => {
                let generation = variant.generation;
                Err(Failure::expected(format!("members of {generation}"), format!("{name:?}")))
            }
            None => Ok(()),
        }
    })
}

fn no_own_task(trial: &Trial<'_>) -> Finding {
    each(trial.sends(), "no message", |heard| match text(message(heard), "taskId") {
        Some(id) if trial.stage.task(id).is_none() => {
            Err(Failure::expected("no `taskId`, or one that the agent made", format!("{id:?}")))
        }
        _ => Ok(()),
    })
}

fn no_own_context(trial: &Trial<'_>) -> Finding {
    let nonce = &trial.stage.nonce;
    each(trial.sends(), "no message", |heard| match text(message(heard), "contextId") {
        Some(id) if !id.contains(nonce.as_str()) => {
            Err(Failure::expected("no `contextId`, or one that the agent gave", format!("{id:?}")))
        }
        _ => Ok(()),
    })
}

fn unique(trial: &Trial<'_>) -> Finding {
    let mut seen: Map<String, Value> = Map::new();
    let mut any = false;
    for (at, heard) in trial.sends() {
        let Some(id) = text(message(heard), "messageId") else { continue };
        any = true;
        let said = seen.entry(id.to_owned()).or_insert_with(|| message(heard).clone());
        if said != message(heard) {
            return Finding::fail(
                Failure::expected("a new `messageId`", format!("{id:?} again, for another message")),
                at,
            );
        }
    }
    if any { Finding::Pass } else { Finding::not_seen("no message with an id") }
}

fn configuration(trial: &Trial<'_>) -> Finding {
    let flat = trial.generation() == Generation::V0_1;
    let place = move |heard: &Heard| {
        if flat { heard.params().clone() } else { heard.params()["configuration"].clone() }
    };
    let names = ["returnImmediately", "blocking", "historyLength", "acceptedOutputModes"];
    let configured =
        trial.sends().filter(|(_, heard)| names.iter().any(|name| place(heard).get(name).is_some()));
    each(configured, "no message with a configuration", |heard| {
        let place = place(heard);
        let said = |name: &str| place.get(name).filter(|value| !value.is_null());
        for name in ["returnImmediately", "blocking"] {
            if let Some(value) = said(name).filter(|value| !value.is_boolean()) {
                return Err(Failure::expected(format!("`{name}` as a boolean"), value.to_string()));
            }
        }
        if let Some(value) = said("historyLength").filter(|value| value.as_u64().is_none()) {
            return Err(Failure::expected(
                "`historyLength` as a whole number of 0 or more",
                value.to_string(),
            ));
        }
        let texts = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        if let Some(value) = said("acceptedOutputModes").filter(|value| !texts(value)) {
            return Err(Failure::expected("`acceptedOutputModes` as a list of text", value.to_string()));
        }
        Ok(())
    })
}

fn kind(trial: &Trial<'_>) -> Finding {
    each(trial.sends(), "no message", |heard| match &message(heard)["kind"] {
        found if found == "message" => Ok(()),
        found => Err(Failure::expected("`kind: \"message\"`", found.to_string())),
    })
}

fn task_id(trial: &Trial<'_>) -> Finding {
    each(trial.sends(), "no message", |heard| match text(heard.params(), "id") {
        Some(_) => Ok(()),
        None => Err(Failure::expected("`params.id`, a text", heard.params()["id"].to_string())),
    })
}
