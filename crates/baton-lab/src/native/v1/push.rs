//! Push notifications: configs, and what arrives at a webhook.

use std::time::Duration;

use serde_json::{Value, json};

use super::receiver::{Call, Receiver};
use super::shape::{faults, judge};
use super::shapes;
use super::talk::{SOON, Say, fresh_id, skip};
use crate::acts::assertion::show;
use crate::acts::stream::{inner, is_terminal, kind_of, state_of};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, WireError};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.push.created" => created,
    "v1.push.read" => read,
    "v1.push.listed" => listed,
    "v1.push.deleted" => deleted,
    "v1.push.deleted-twice" => deleted_twice,
    "v1.push.unknown-config" => unknown_config,
    "v1.push.unknown-task" => unknown_task,
    "v1.push.not-offered" => not_offered,
    "v1.push.delivered" => delivered,
    "v1.push.tells-the-end" => tells_the_end,
    "v1.push.with-send" => with_send,
    "v1.push.credentials" => credentials,
    "v1.push.token" => token,
    "v1.push.silent-after-delete" => silent_after_delete,
};

const ALL: [Operation; 4] = [
    Operation::CreatePushConfig,
    Operation::GetPushConfig,
    Operation::ListPushConfigs,
    Operation::DeletePushConfig,
];

/// How long a deleted webhook must not be called.
const SILENCE: Duration = Duration::from_millis(1500);

/// A webhook address for cases that only test configs.
fn nowhere() -> String {
    format!("https://example.com/webhook/{}", fresh_id())
}

async fn create(bench: &Bench, task: &Value, more: Value) -> Done<Value> {
    let mut params = json!({"taskId": task["id"], "url": nowhere()});
    if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more);
    }
    bench.reply(Operation::CreatePushConfig, &params).await
}

async fn created(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let url = nowhere();
    let config = create(bench, &task, json!({ "url": url })).await;
    bench.clean_up(&task).await;
    let config = config?;
    judge(faults(&shapes::PUSH_CONFIG, &config, ""))?;
    if config["url"] == url { Ok(()) } else { Err(differs(url, config["url"].to_string())) }
}

async fn read(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let made = create(bench, &task, json!({})).await?;
    let got = bench.reply(Operation::GetPushConfig, &json!({"taskId": task["id"], "id": made["id"]})).await?;
    bench.clean_up(&task).await;
    let same = ["id", "url"].iter().all(|member| got[member] == made[member]);
    if same { Ok(()) } else { Err(differs(show(&made), show(&got))) }
}

async fn configs(bench: &Bench, task: &Value) -> Done<Vec<Value>> {
    let list = bench.reply(Operation::ListPushConfigs, &json!({"taskId": task["id"]})).await?;
    Ok(list["configs"].as_array().cloned().unwrap_or_default())
}

async fn listed(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let one = create(bench, &task, json!({"id": fresh_id()})).await?;
    let two = create(bench, &task, json!({"id": fresh_id()})).await?;
    let all = configs(bench, &task).await?;
    bench.clean_up(&task).await;
    match [one, two].iter().find(|made| !all.iter().any(|listed| listed["id"] == made["id"])) {
        Some(missing) => {
            Err(differs(format!("both configs in the list, also {}", missing["id"]), show(&json!(all))))
        }
        None => Ok(()),
    }
}

async fn deleted(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let made = create(bench, &task, json!({})).await?;
    let id = json!({"taskId": task["id"], "id": made["id"]});
    delete(bench, &id).await?;
    let error = bench.refusal(Operation::GetPushConfig, &id).await?;
    let left = configs(bench, &task).await?;
    bench.clean_up(&task).await;
    refused(&error)?;
    match left.iter().any(|listed| listed["id"] == made["id"]) {
        true => Err(differs("the deleted config gone from the list", show(&json!(left)))),
        false => Ok(()),
    }
}

/// Accepts any 2xx and any result: null, an empty object, or nothing.
async fn delete(bench: &Bench, id: &Value) -> Done {
    match bench.call(Operation::DeletePushConfig, id).await? {
        Answer::Reply { .. } => Ok(()),
        other => Err(differs("the config to be deleted", other.summary())),
    }
}

async fn deleted_twice(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let made = create(bench, &task, json!({})).await?;
    let id = json!({"taskId": task["id"], "id": made["id"]});
    delete(bench, &id).await?;
    let again = delete(bench, &id).await;
    bench.clean_up(&task).await;
    again
}

/// The specification names TaskNotFoundError; only the refusal is checked.
fn refused(error: &WireError) -> Done {
    if error.status >= 500 || error.name.as_deref() == Some("InternalError") {
        return Err(differs("an error that says the config is not there", error.summary()));
    }
    Ok(())
}

async fn unknown_config(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let id = json!({"taskId": task["id"], "id": fresh_id()});
    let error = bench.refusal(Operation::GetPushConfig, &id).await;
    bench.clean_up(&task).await;
    refused(&error?)
}

async fn unknown_task(bench: &Bench) -> Done {
    for operation in ALL {
        let params = json!({"taskId": fresh_id(), "id": fresh_id(), "url": nowhere()});
        let error = bench.refusal(operation, &only(operation, params)).await?;
        bench.expect_named(&error, "TaskNotFoundError")?;
    }
    Ok(())
}

/// The members of an operation; others would end up in the query.
fn only(operation: Operation, mut params: Value) -> Value {
    if let Some(members) = params.as_object_mut() {
        if operation != Operation::CreatePushConfig {
            members.remove("url");
        }
        if operation == Operation::ListPushConfigs {
            members.remove("id");
        }
    }
    params
}

async fn not_offered(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    for operation in ALL {
        let params = json!({"taskId": task["id"], "id": fresh_id(), "url": nowhere()});
        let error = bench.refusal(operation, &only(operation, params)).await?;
        bench.expect_named(&error, "PushNotificationNotSupportedError")?;
    }
    Ok(())
}

/// Registers the receiver. An agent may refuse loopback addresses for safety; then the case is skipped.
async fn register(bench: &Bench, task: &Value, receiver: &Receiver, more: Value) -> Done {
    let mut params = json!({"taskId": task["id"], "url": receiver.url});
    if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more);
    }
    match bench.call(Operation::CreatePushConfig, &params).await? {
        Answer::Reply { .. } => Ok(()),
        Answer::Error(error) if bench.is_named(&error, "InvalidParamsError") => {
            bench.clean_up(task).await;
            Err(skip(format!(
                "the agent refuses the webhook {} ({}); it may be right to, outside of tests: give another one with \
                 --var webhookUrl=…",
                receiver.url,
                error.summary()
            )))
        }
        other => Err(differs("the config to be created", other.summary())),
    }
}

/// Cancels a task with a webhook; returns the calls about its end.
async fn deliveries(bench: &Bench, more: Value) -> Done<(Value, Vec<Call>)> {
    let receiver = Receiver::open(bench).await?;
    let task = bench.running().await?;
    register(bench, &task, &receiver, more).await?;
    bench.clean_up(&task).await;
    let Some(_) = receiver.wait(SOON, |_| true).await else {
        return Err(differs(
            format!("a call of {} within 10 s after the task was canceled", receiver.url),
            "none",
        ));
    };
    // Only calls that arrive at the same time; a case about the end waits for it separately.
    receiver.wait(SILENCE, tells_an_end).await;
    Ok((task, receiver.calls()))
}

fn tells_an_end(call: &Call) -> bool {
    call.json().and_then(|event| state_of(&event)).is_some_and(|state| is_terminal(&state))
}

async fn delivered(bench: &Bench) -> Done {
    let (task, calls) = deliveries(bench, json!({})).await?;
    for call in &calls {
        if call.method != "POST" {
            return Err(differs("POST", call.method.clone()));
        }
        let kind = call.header("content-type").unwrap_or_default();
        if !super::card::is_json(kind) {
            return Err(differs("a JSON content type", json!(kind).to_string()));
        }
        let Some(event) = call.json() else {
            return Err(differs("a JSON body", String::from_utf8_lossy(&call.body)));
        };
        judge(faults(&shapes::STREAM_RESPONSE, &event, "body"))?;
        let own = if kind_of(&event) == "task" { "id" } else { "taskId" };
        if inner(&event)[own] != task["id"] {
            return Err(differs(format!("the task {}", task["id"]), show(&event)));
        }
    }
    Ok(())
}

async fn tells_the_end(bench: &Bench) -> Done {
    let (_, calls) = deliveries(bench, json!({})).await?;
    if calls.iter().any(tells_an_end) {
        return Ok(());
    }
    Err(differs("a call that tells the terminal state", format!("{} calls without", calls.len())))
}

/// The config is sent with the message, before there is a task.
async fn with_send(bench: &Bench) -> Done {
    let receiver = Receiver::open(bench).await?;
    let config = json!({ "url": receiver.url });
    let say = Say::text("tck-stream-basic").configured("taskPushNotificationConfig", config);
    match bench.call(Operation::SendMessage, &say.params(bench)).await? {
        Answer::Reply { .. } => {}
        Answer::Error(error) if bench.is_named(&error, "InvalidParamsError") => {
            return Err(skip(format!(
                "the agent refuses the webhook {} ({})",
                receiver.url,
                error.summary()
            )));
        }
        other => return Err(differs("a task", other.summary())),
    }
    match receiver.wait(SOON, |_| true).await {
        Some(_) => Ok(()),
        None => Err(differs(format!("a call of {} within 10 s after the task ended", receiver.url), "none")),
    }
}

async fn credentials(bench: &Bench) -> Done {
    let secret = format!("lab-{}", fresh_id());
    let more = json!({"authentication": {"scheme": "Bearer", "credentials": secret}});
    let (_, calls) = deliveries(bench, more).await?;
    let wanted = format!("Bearer {secret}");
    match calls.iter().find(|call| call.header("authorization") != Some(wanted.as_str())) {
        Some(call) => {
            let got = call.header("authorization").map_or("no such header", |_| "another value");
            Err(differs("`Authorization: Bearer …` with the configured credentials on every call", got))
        }
        None => Ok(()),
    }
}

async fn token(bench: &Bench) -> Done {
    let token = format!("lab-{}", fresh_id());
    let (_, calls) = deliveries(bench, json!({ "token": token })).await?;
    const NAMES: [&str; 2] = ["X-A2A-Notification-Token", "A2A-Notification-Token"];
    let told = |call: &Call| NAMES.iter().any(|name| call.header(name) == Some(token.as_str()));
    if calls.iter().all(told) {
        return Ok(());
    }
    Err(differs("`X-A2A-Notification-Token` with the configured token on every call", "a call without"))
}

async fn silent_after_delete(bench: &Bench) -> Done {
    let receiver = Receiver::open(bench).await?;
    let task = bench.running().await?;
    let id = fresh_id();
    register(bench, &task, &receiver, json!({ "id": id })).await?;
    let listed = configs(bench, &task).await?;
    // The agent may give an id of its own.
    let made = listed.iter().find(|config| config["url"] == receiver.url).map(|config| config["id"].clone());
    delete(bench, &json!({"taskId": task["id"], "id": made.unwrap_or(json!(id))})).await?;
    bench.clean_up(&task).await;
    match receiver.wait(SILENCE, tells_an_end).await {
        Some(_) => {
            Err(differs("no call about what came after the config was deleted", "the task's end was told"))
        }
        None => Ok(()),
    }
}
