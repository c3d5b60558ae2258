//! Everything but messages: reading, listing, canceling, subscribing, push notification configs.

use serde_json::Value;

use super::{Finding, INTEROP, Rule, Trial, each};
use crate::acts::document::Level;
use crate::case::{Category, Failure};
use crate::generation::{Binding, Generation};
use crate::judge::heard::Heard;
use crate::judge::rules::ends_well;
use crate::wire::request::Operation;

const LIFE: Rule = Rule { category: Category::Lifecycle, ..INTEROP };

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "GET-001",
        name: "Reading a task",
        requirement: "To read a task its `id` is sent, a text, and `historyLength`, if at all, as a whole number of 0 or more.",
        remedy: "Send the task's id as `id`.",
        sections: ["3.1.3", "7.3", "7.3"],
        check: |trial| named(trial, &[Operation::GetTask], &["id"]),
        ..LIFE
    },
    Rule {
        id: "CANCEL-001",
        name: "Canceling a task",
        requirement: "To cancel a task its `id` is sent, a text.",
        remedy: "Send the task's id as `id`.",
        sections: ["3.1.5", "7.4", "7.4"],
        check: |trial| named(trial, &[Operation::CancelTask], &["id"]),
        ..LIFE
    },
    Rule {
        id: "SUB-001",
        name: "Subscribing to a task",
        category: Category::Streaming,
        requirement: "To subscribe to a task its `id` is sent, a text.",
        remedy: "Send the task's id as `id`.",
        sections: ["3.1.6", "7.9", "7.7"],
        check: |trial| named(trial, &[Operation::SubscribeToTask], &["id"]),
        ..LIFE
    },
    Rule {
        id: "SUB-002",
        name: "No subscription to an ended task",
        level: Level::Should,
        category: Category::Streaming,
        requirement: "A task in a terminal state cannot be subscribed to.",
        remedy: "When the task's end has been seen, read it; do not subscribe again.",
        sections: ["3.1.6", "7.9", ""],
        check: subscribed_late,
        ..LIFE
    },
    Rule {
        id: "PUSH-001",
        name: "Creating a push notification config",
        requirement: "A new config names its task and has a `url`: flat in 1.0, in `pushNotificationConfig` before.",
        remedy: "Send `taskId` and `url` (0.3: `taskId`, `pushNotificationConfig.url`; 0.1: `id`, `pushNotificationConfig.url`).",
        sections: ["3.1.7", "7.5", "7.5"],
        check: created,
        ..LIFE
    },
    Rule {
        id: "PUSH-002",
        name: "Naming a push notification config",
        requirement: "To read or delete a config its task and its id are sent.",
        remedy: "Send `taskId` and `id` (0.3: `id` and `pushNotificationConfigId`).",
        sections: ["3.1.8", "7.6", ""],
        check: config_named,
        ..LIFE
    },
    Rule {
        id: "LIST-001",
        name: "Filters of the right types",
        requirement: "Tasks are listed with a `pageSize` of 1 to 100, and states by the names of the enumeration.",
        remedy: "Leave out filters that are not set; write states as `TASK_STATE_…`.",
        sections: ["3.1.4", "", ""],
        check: filters,
        ..LIFE
    },
    Rule {
        id: "LIST-002",
        name: "Page tokens are sent back unchanged",
        requirement: "The next page is asked for with the `nextPageToken` of the last one, unchanged.",
        remedy: "Treat the token as opaque text; in a URL, percent-encode it.",
        sections: ["3.1.4", "", ""],
        check: tokens,
        ..LIFE
    },
    Rule {
        id: "ID-001",
        name: "Ids are sent back unchanged",
        requirement: "An agent's id is opaque: it is sent back exactly, percent-encoded if it is in a URL.",
        remedy: "Encode ids before you put them into a path, `/`, `?`, `#` and `%` included.",
        sections: ["11.5", "7.3", ""],
        scripts: &["odd-ids"],
        check: exact,
        ..LIFE
    },
    Rule {
        id: "TOUR-001",
        name: "All operations succeed",
        requirement: "A client reads the answers of a correct agent to every operation.",
        remedy: "See the command's output; the requests of this script show where it stopped.",
        sections: ["3.1", "7", "7"],
        scripts: &["tour", "tenant"],
        needs_command: true,
        check: ends_well,
        ..LIFE
    },
];

fn asking<'a>(trial: &Trial<'a>, wanted: &'a [Operation]) -> impl Iterator<Item = (usize, &'a Heard)> {
    trial.calls().filter(|(_, heard)| heard.operation().is_some_and(|operation| wanted.contains(&operation)))
}

fn missing(params: &Value, names: &[&'static str]) -> Option<Failure> {
    names.iter().find_map(|name| {
        let path = format!("/{}", name.replace('.', "/"));
        let found = params.pointer(&path);
        if found.and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
            return None;
        }
        let actual = found.map_or_else(|| format!("none in {params}"), Value::to_string);
        Some(Failure::expected(format!("`{name}`, a text"), actual))
    })
}

fn whole(value: &Value) -> Option<u64> {
    // In a query all values are text.
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn named(trial: &Trial<'_>, wanted: &[Operation], names: &[&'static str]) -> Finding {
    let wanted = wanted.to_vec();
    let asked =
        trial.calls().filter(|(_, heard)| heard.operation().is_some_and(|found| wanted.contains(&found)));
    each(asked, "no such call", |heard| {
        if let Some(failure) = missing(heard.params(), names) {
            return Err(failure);
        }
        match heard.params().get("historyLength").filter(|value| !value.is_null()) {
            Some(value) if whole(value).is_none() => {
                Err(Failure::expected("`historyLength` as a whole number of 0 or more", value.to_string()))
            }
            _ => Ok(()),
        }
    })
}

fn subscribed_late(trial: &Trial<'_>) -> Finding {
    each(asking(trial, &[Operation::SubscribeToTask]), "no subscription", |heard| {
        if heard.late {
            return Err(Failure::expected(
                "no subscription",
                "one to a task whose end the client had been shown",
            ));
        }
        Ok(())
    })
}

fn created(trial: &Trial<'_>) -> Finding {
    let variant = trial.variant();
    each(asking(trial, &[Operation::CreatePushConfig]), "no config was created", |heard| {
        let params = heard.params();
        let nested: &[&[&str]] = match (variant.generation, variant.binding) {
            (Generation::V1, _) => &[&["taskId", "url"]],
            // The specification can be read in two ways here.
            (Generation::V0_3, Binding::Rest) => &[
                &["taskId", "config.pushNotificationConfig.url"],
                &["taskId", "pushNotificationConfig.url"],
                &["taskId", "url"],
            ],
            (Generation::V0_3, _) => &[&["taskId", "pushNotificationConfig.url"]],
            (Generation::V0_1, _) => &[&["id", "pushNotificationConfig.url"]],
        };
        let failures: Vec<Failure> = nested.iter().filter_map(|names| missing(params, names)).collect();
        if failures.len() < nested.len() { Ok(()) } else { failures.into_iter().next().map_or(Ok(()), Err) }
    })
}

fn config_named(trial: &Trial<'_>) -> Finding {
    let variant = trial.variant();
    let flat = variant.generation == Generation::V1 || variant.is_rest();
    let wanted = &[Operation::GetPushConfig, Operation::DeletePushConfig];
    each(asking(trial, wanted), "no config was read or deleted", |heard| {
        let names: &[&'static str] = match (flat, heard.operation()) {
            (true, _) => &["taskId", "id"],
            // In 0.3 the id may be left out if there is only one config.
            (false, Some(Operation::GetPushConfig)) => &["id"],
            (false, _) => &["id", "pushNotificationConfigId"],
        };
        missing(heard.params(), names).map_or(Ok(()), Err)
    })
}

fn filters(trial: &Trial<'_>) -> Finding {
    const STATES: &[&str] = &[
        "UNSPECIFIED",
        "SUBMITTED",
        "WORKING",
        "COMPLETED",
        "FAILED",
        "CANCELED",
        "INPUT_REQUIRED",
        "REJECTED",
        "AUTH_REQUIRED",
    ];
    each(asking(trial, &[Operation::ListTasks]), "tasks were not listed", |heard| {
        let said = |name: &str| heard.params().get(name).filter(|value| !value.is_null());
        if let Some(size) =
            said("pageSize").filter(|value| !whole(value).is_some_and(|size| (1..=100).contains(&size)))
        {
            return Err(Failure::expected("`pageSize` from 1 to 100", size.to_string()));
        }
        let known = |value: &Value| {
            let name = value.as_str().and_then(|name| name.strip_prefix("TASK_STATE_"));
            name.is_some_and(|name| STATES.contains(&name))
        };
        match said("status").filter(|value| *value != "" && !known(value)) {
            Some(state) => Err(Failure::expected("a state such as TASK_STATE_WORKING", state.to_string())),
            None => Ok(()),
        }
    })
}

fn tokens(trial: &Trial<'_>) -> Finding {
    let given = format!("page-{}/2", trial.stage.nonce);
    let token = |heard: &Heard| heard.params()["pageToken"].as_str().unwrap_or_default().to_owned();
    let paged = asking(trial, &[Operation::ListTasks]).filter(|(_, heard)| !token(heard).is_empty());
    each(paged, "no second page was asked for", |heard| {
        if token(heard) == given {
            Ok(())
        } else {
            Err(Failure::expected(format!("{given:?}"), format!("{:?}", token(heard))))
        }
    })
}

fn exact(trial: &Trial<'_>) -> Finding {
    let Some(task) = trial.stage.tasks.first() else { return Finding::not_seen("no message") };
    let wanted = &[Operation::GetTask, Operation::CancelTask, Operation::SubscribeToTask];
    each(asking(trial, wanted), "the task was not asked for", |heard| {
        let found = heard.params()["id"].as_str().unwrap_or_default();
        if found == task.id {
            return Ok(());
        }
        Err(Failure::expected(format!("the id {:?}", task.id), format!("{found:?}, from {}", heard.line())))
    })
}
