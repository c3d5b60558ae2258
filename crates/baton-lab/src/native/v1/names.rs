//! Member names: camelCase at every level, except in members with free content.

use serde_json::{Value, json};

use super::shape::{fault, judge};
use super::talk::{COMPLETE, Say};
use crate::acts::assertion::Mismatch;
use crate::generation::Binding;
use crate::native::{Checks, Done, checks};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.names.answers" => answers,
    "v1.names.card" => card,
    "v1.names.errors" => errors,
};

/// Members with free content at every level.
const FREE: &[&str] = &["metadata", "data", "params", "header"];
/// Members whose direct names are free, but not their content.
const MAPS: &[&str] = &["securitySchemes", "schemes", "scopes"];

/// Members that are not in camelCase.
fn odd_names(value: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    walk(value, "", false, &mut found);
    found
}

fn walk(value: &Value, path: &str, in_map: bool, found: &mut Vec<Mismatch>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if !in_map && !is_camel(name) {
                    found.push(fault(&place, "a member name in camelCase", Some(&json!(name))));
                }
                if in_map || !FREE.contains(&name.as_str()) {
                    walk(member, &place, !in_map && MAPS.contains(&name.as_str()), found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), false, found);
            }
        }
        _ => {}
    }
}

/// `@type` is how ProtoJSON names the type of a detail.
fn is_camel(name: &str) -> bool {
    let starts = name.chars().next().is_some_and(|first| first.is_ascii_lowercase());
    name == "@type" || (starts && name.chars().all(|letter| letter.is_ascii_alphanumeric()))
}

async fn answers(bench: &Bench) -> Done {
    let params = Say::text(COMPLETE).params(bench);
    let sent = bench.reply(Operation::SendMessage, &params).await?;
    let mut found = odd_names(&sent);
    let task = sent.get("task").cloned().unwrap_or_default();
    if let Some(id) = task.get("id") {
        found.extend(odd_names(&bench.get(id).await?));
        let list = json!({"contextId": task["contextId"], "includeArtifacts": true});
        found.extend(odd_names(&bench.reply(Operation::ListTasks, &list).await?));
    }
    judge(found)
}

async fn card(bench: &Bench) -> Done {
    judge(odd_names(&bench.card().await?.1))
}

async fn errors(bench: &Bench) -> Done {
    let id = super::talk::fresh_id();
    let error = bench.refusal(Operation::GetTask, &json!({ "id": id })).await?;
    let body = error.body.unwrap_or_default();
    let inner = match bench.binding() {
        // `data` has free content, except in a JSON-RPC error, where it contains the details.
        Binding::Jsonrpc => {
            let mut error = body.get("error").cloned().unwrap_or_default();
            let details = error.get("data").cloned().unwrap_or_default();
            if let Some(members) = error.as_object_mut() {
                members.remove("data");
            }
            json!({"error": error, "details": details})
        }
        Binding::Rest | Binding::Grpc => body,
    };
    judge(odd_names(&inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_are_left_alone() {
        let good = json!({
            "contextId": 1, "metadata": {"any_name": {"deep_name": 1}}, "oauth2MetadataUrl": "",
            "parts": [{"data": {"snake_case": 1}, "mediaType": ""}],
            "securitySchemes": {"my_key": {"apiKeySecurityScheme": {"location": "header"}}},
            "securityRequirements": [{"schemes": {"my_key": {"list": []}}}],
            "details": [{"@type": "x", "metadata": {"task_id": "1"}}]});
        assert_eq!(odd_names(&good), []);
        for (bad, path) in [
            (json!({"context_id": 1}), "context_id"),
            (json!({"tasks": [{"status": {"State": 1}}]}), "tasks[0].status.State"),
            (json!({"securitySchemes": {"my_key": {"api_key": {}}}}), "securitySchemes.my_key.api_key"),
            (json!({"history": [{"message_id": 1, "metadata": {"a_b": 1}}]}), "history[0].message_id"),
            (json!({"": 1}), ""),
        ] {
            let found = odd_names(&bad);
            assert_eq!(found.iter().map(|fault| fault.path.as_str()).collect::<Vec<_>>(), [path], "{bad}");
        }
    }
}
