//! One agent, two bindings: both must show the same tasks, lists, errors and streams.

use serde_json::{Value, json};

use super::same::plain;
use super::shape::{fault, judge};
use super::talk::{COMPLETE, Say, fresh_id, has_ended, skip, state};
use super::watchers;
use crate::acts::assertion::{Mismatch, show};
use crate::generation::Binding;
use crate::native::{Checks, Done, Verdict, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.equivalence.task" => task,
    "v1.equivalence.list" => list,
    "v1.equivalence.errors" => errors,
    "v1.equivalence.continued" => continued,
    "v1.equivalence.stream" => stream,
    "v1.equivalence.canceled" => canceled,
    "v1.equivalence.auth" => auth,
};

/// What a binding is compared with: gRPC with either of the others.
pub(in crate::native) fn other(bench: &Bench) -> Done<Bench> {
    let rest = || bench.on(Binding::Rest);
    let found = match bench.binding() {
        Binding::Grpc => bench.on(Binding::Jsonrpc).or_else(rest),
        Binding::Jsonrpc | Binding::Rest => rest(),
    };
    found.ok_or_else(|| skip("the card declares no other interface to compare with"))
}

async fn task(bench: &Bench) -> Done {
    let rest = other(bench)?;
    for (maker, reader) in [(bench, &rest), (&rest, bench)] {
        let made = maker.ended().await?;
        let (one, two) = (maker.get(&made["id"]).await?, reader.get(&made["id"]).await?);
        judge(differences(&plain(&one), &plain(&two), ""))?;
    }
    Ok(())
}

/// The differences between two objects.
pub(in crate::native) fn differences(one: &Value, two: &Value, path: &str) -> Vec<Mismatch> {
    match (one, two) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            names
                .into_iter()
                .flat_map(|name| {
                    let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    match (a.get(name), b.get(name)) {
                        (Some(one), Some(two)) => differences(one, two, &place),
                        (one, two) => {
                            let wanted = one.map_or("nothing".to_owned(), show);
                            vec![fault(&place, &format!("{wanted}, as the other binding has it"), two)]
                        }
                    }
                })
                .collect()
        }
        _ if one == two => Vec::new(),
        _ => vec![fault(path, &format!("{}, as the other binding has it", show(one)), Some(two))],
    }
}

async fn list(bench: &Bench) -> Done {
    let rest = other(bench)?;
    let made = bench.ended().await?;
    let Some(context) = made.get("contextId") else {
        return Err(skip("the task has no contextId to list by"));
    };
    rest.ended_with(&Say::text(COMPLETE).within(context)).await?;
    let params = json!({"contextId": context, "includeArtifacts": true, "pageSize": 10});
    let (mut one, mut two) =
        (bench.reply(Operation::ListTasks, &params).await?, rest.reply(Operation::ListTasks, &params).await?);
    // Tokens are opaque.
    for page in [&mut one, &mut two] {
        page["nextPageToken"] = json!(page["nextPageToken"] != "");
    }
    judge(differences(&plain(&one), &plain(&two), ""))
}

async fn errors(bench: &Bench) -> Done {
    let rest = other(bench)?;
    let ended = bench.ended().await?;
    let (id, none) = (json!({ "id": ended["id"] }), json!({ "id": fresh_id() }));
    let late = Say::text(COMPLETE).to(&ended).params(bench);
    let lost = Say::text(COMPLETE).member("taskId", json!(fresh_id())).params(bench);
    let mut asked = vec![
        ("TaskNotFoundError", Operation::GetTask, &none),
        ("TaskNotFoundError", Operation::CancelTask, &none),
        ("TaskNotFoundError", Operation::SendMessage, &lost),
        ("TaskNotCancelableError", Operation::CancelTask, &id),
        ("UnsupportedOperationError", Operation::SendMessage, &late),
    ];
    if bench.target().capability("streaming") == true {
        asked.push(("TaskNotFoundError", Operation::SubscribeToTask, &none));
        asked.push(("UnsupportedOperationError", Operation::SubscribeToTask, &id));
    }
    let mut found = Vec::new();
    for (name, operation, params) in asked {
        let (one, two) = (bench.refusal(operation, params).await?, rest.refusal(operation, params).await?);
        // Other cases check which error it is; here both must be equal. HTTP+JSON has no names for JSON-RPC's own
        // errors.
        let alike = one.name == two.name || one.name.as_deref().is_some_and(|name| rest.is_named(&two, name));
        if !(alike || bench.is_named(&one, name) && rest.is_named(&two, name)) {
            let (one, two) = (one.summary(), two.summary());
            found.push(Mismatch {
                path: bench.called(operation).to_owned(),
                expected: format!("{one} in both"),
                actual: two,
            });
        }
    }
    judge(found)
}

async fn continued(bench: &Bench) -> Done {
    let rest = other(bench)?;
    let first = bench.task(&Say::text("tck-multi-turn")).await?;
    let second = rest.task(&Say::text("second turn").to(&first)).await?;
    if second["id"] != first["id"] {
        return Err(differs(format!("the task {} to go on", first["id"]), second["id"].to_string()));
    }
    let third = bench.task(&Say::text("done").to(&first)).await?;
    if has_ended(&third) { Ok(()) } else { Err(differs("the task to end at `done`", state(&third))) }
}

async fn stream(bench: &Bench) -> Done {
    let rest = other(bench)?;
    let task = rest.task(&Say::text("tck-stream-basic").at_once()).await?;
    let (one, two) = (bench.subscribe(&task).await, rest.subscribe(&task).await);
    let (mut one, mut two) = match (one, two) {
        (Ok(one), Ok(two)) => (one, two),
        (Err(refused), _) | (_, Err(refused)) => {
            // An ended task may be refused, in either binding.
            let ended = has_ended(&bench.get(&task["id"]).await?);
            let quicker = "the agent had ended the task before both streams were open".to_owned();
            return Err(if ended { Verdict::Inconclusive(quicker) } else { refused });
        }
    };
    let (one, two) = tokio::join!(one.rest(), two.rest());
    watchers::compare(&one?, &two?)
}

async fn canceled(bench: &Bench) -> Done {
    let rest = other(bench)?;
    for (maker, other) in [(bench, &rest), (&rest, bench)] {
        let task = maker.running().await?;
        other.reply(Operation::CancelTask, &json!({ "id": task["id"] })).await?;
        let now = maker.settled(&task).await?;
        if state(&now) != "CANCELED" {
            return Err(differs("CANCELED in both bindings", state(&now)));
        }
    }
    Ok(())
}

async fn auth(bench: &Bench) -> Done {
    let rest = other(bench)?;
    for one in [bench, &rest] {
        crate::native::callers::refuses_strangers(one, Operation::GetTask, &json!({ "id": fresh_id() }))
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let one = json!({"id": "t", "status": {"state": "A"}, "list": [1]});
        assert_eq!(differences(&one, &one, ""), []);
        let two = json!({"id": "t", "status": {"state": "B"}, "more": 1});
        let places: Vec<_> = differences(&one, &two, "").into_iter().map(|fault| fault.path).collect();
        assert_eq!(places, ["list", "more", "status.state"]);
    }
}
