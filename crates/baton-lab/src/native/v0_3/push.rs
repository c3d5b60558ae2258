//! Push notifications: configs, and what arrives at a webhook.

use std::time::Duration;

use serde_json::{Value, json};

use super::shapes;
use crate::acts::assertion::show;
use crate::acts::stream::{is_terminal, state_of};
use crate::generation::Binding;
use crate::native::older::is_refusal;
use crate::native::receiver::{Call, Receiver};
use crate::native::shape::{faults, judge};
use crate::native::talk::{SOON, Say, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, WireError, proto_json};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.push.set" => set,
    "v0_3.push.get" => get,
    "v0_3.push.list" => listed,
    "v0_3.push.delete" => deleted,
    "v0_3.push.delete-null" => delete_is_null,
    "v0_3.push.unknown-task" => unknown_task,
    "v0_3.push.not-offered" => not_offered,
    "v0_3.push.delivered" => delivered,
    "v0_3.push.with-send" => with_send,
    "v0_3.push.token" => token,
    "v0_3.push.credentials" => credentials,
    "v0_3.push.silent-after-delete" => silent_after_delete,
};

/// How long a deleted webhook must not be called.
const SILENCE: Duration = Duration::from_millis(2000);

/// A webhook address for cases that only test configs.
fn nowhere() -> String {
    format!("https://example.com/webhook/{}", fresh_id())
}

fn params(task: &Value, config: &Value) -> Value {
    json!({"taskId": task["id"], "pushNotificationConfig": config})
}

/// Specification and SDKs disagree on the body over HTTP+JSON: the whole request, or the config alone.
async fn asked_to_set(bench: &Bench, task: &Value, config: &Value) -> Done<Answer> {
    let params = params(task, config);
    let answer = bench.call(Operation::CreatePushConfig, &params).await?;
    let refused = matches!(&answer, Answer::Error(error) if matches!(error.status, 400 | 422));
    if bench.binding() != Binding::Rest || !refused {
        return Ok(answer);
    }
    let mut request = bench.request(Operation::CreatePushConfig, &params).map_err(|none| skip(none.0))?;
    let whole = proto_json::request(Operation::CreatePushConfig, &params);
    request.body = Some(whole["config"].to_string().into_bytes());
    let again = bench.ask(Operation::CreatePushConfig, &request).await;
    let again = again.map_err(|error| fail(format!("no answer: {error}")))?;
    // Refused for another reason than its form, so this form was understood.
    let understood = match &again {
        Answer::Error(error) => error.name.as_deref().is_some_and(|name| name != "InvalidParamsError"),
        other => matches!(other, Answer::Reply { .. }),
    };
    if understood {
        bench.note("the body of the request is the config alone, as the `.proto` has it");
        return Ok(again);
    }
    Ok(answer)
}

async fn create(bench: &Bench, task: &Value, config: Value) -> Done<Value> {
    match asked_to_set(bench, task, &config).await? {
        Answer::Reply { root: Some(root), .. } => Ok(root),
        other => Err(differs("the config that was set", other.summary())),
    }
}

/// The id of a config; many servers use the task's id for the first one.
fn id_of(made: &Value, task: &Value) -> Value {
    made["pushNotificationConfig"]
        .get("id")
        .filter(|id| id.is_string())
        .cloned()
        .unwrap_or(task["id"].clone())
}

async fn set(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let url = nowhere();
    let made = create(bench, &task, json!({"url": url, "token": "lab"})).await;
    bench.clean_up(&task).await;
    let made = made?;
    judge(faults(&shapes::PUSH_CONFIG, &made, ""))?;
    let same = made["taskId"] == task["id"] && made["pushNotificationConfig"]["url"] == url;
    if same { Ok(()) } else { Err(differs(format!("the config of {} with {url}", task["id"]), show(&made))) }
}

async fn get(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let (id, url) = (fresh_id(), nowhere());
    let made = create(bench, &task, json!({"id": id, "url": url})).await?;
    let id = id_of(&made, &task);
    let named = json!({"id": task["id"], "pushNotificationConfigId": id});
    let got = bench.reply(Operation::GetPushConfig, &named).await;
    bench.clean_up(&task).await;
    let got = got?;
    judge(faults(&shapes::PUSH_CONFIG, &got, ""))?;
    let got = &got["pushNotificationConfig"]["url"];
    if *got == url { Ok(()) } else { Err(differs(url, got.to_string())) }
}

async fn configs(bench: &Bench, task: &Value) -> Done<Vec<Value>> {
    let root = bench.reply(Operation::ListPushConfigs, &json!({"id": task["id"]})).await?;
    match root {
        Value::Array(configs) => Ok(configs),
        // ProtoJSON omits an empty list.
        Value::Object(members) if members.is_empty() && bench.binding() != Binding::Jsonrpc => Ok(Vec::new()),
        other => Err(differs("a list of configs", show(&other))),
    }
}

async fn listed(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let urls = [nowhere(), nowhere()];
    for url in &urls {
        create(bench, &task, json!({"id": fresh_id(), "url": url})).await?;
    }
    let all = configs(bench, &task).await;
    bench.clean_up(&task).await;
    let all = all?;
    let place = |index: usize| format!("[{index}]");
    let shaped =
        all.iter().enumerate().flat_map(|(index, one)| faults(&shapes::PUSH_CONFIG, one, &place(index)));
    judge(shaped.collect())?;
    let has = |url: &String| all.iter().any(|one| one["pushNotificationConfig"]["url"] == *url);
    match urls.iter().find(|url| !has(url)) {
        Some(url) => Err(differs(format!("both configs, also that of {url}"), show(&json!(all)))),
        None => Ok(()),
    }
}

async fn asked_to_delete(bench: &Bench, task: &Value, id: &Value) -> Done<Answer> {
    bench.call(Operation::DeletePushConfig, &json!({"id": task["id"], "pushNotificationConfigId": id})).await
}

async fn delete(bench: &Bench, task: &Value, id: &Value) -> Done<Answer> {
    match asked_to_delete(bench, task, id).await? {
        gone @ Answer::Reply { .. } => Ok(gone),
        other => Err(differs("the config to be deleted", other.summary())),
    }
}

async fn deleted(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let url = nowhere();
    let made = create(bench, &task, json!({"id": fresh_id(), "url": url})).await?;
    delete(bench, &task, &id_of(&made, &task)).await?;
    let left = configs(bench, &task).await;
    bench.clean_up(&task).await;
    let left = left?;
    if left.iter().any(|one| one["pushNotificationConfig"]["url"] == url) {
        return Err(differs("the deleted config gone from the list", show(&json!(left))));
    }
    Ok(())
}

async fn delete_is_null(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let made = create(bench, &task, json!({"id": fresh_id(), "url": nowhere()})).await?;
    let gone = delete(bench, &task, &id_of(&made, &task)).await;
    bench.clean_up(&task).await;
    match gone? {
        Answer::Reply { body: Some(body), .. } if body.get("result") == Some(&Value::Null) => Ok(()),
        other => Err(differs("`\"result\": null`", other.summary())),
    }
}

const ALL: [Operation; 4] = [
    Operation::CreatePushConfig,
    Operation::GetPushConfig,
    Operation::ListPushConfigs,
    Operation::DeletePushConfig,
];

/// The params of every operation but the first, for a task and a config.
fn about(operation: Operation, task: &str) -> Value {
    match operation {
        Operation::ListPushConfigs => json!({ "id": task }),
        _ => json!({"id": task, "pushNotificationConfigId": fresh_id()}),
    }
}

async fn refused(bench: &Bench, operation: Operation, task: &str) -> Done<WireError> {
    if operation != Operation::CreatePushConfig {
        return bench.refusal(operation, &about(operation, task)).await;
    }
    let config = json!({"id": fresh_id(), "url": nowhere()});
    match asked_to_set(bench, &json!({ "id": task }), &config).await? {
        Answer::Error(error) => Ok(error),
        other => Err(differs(format!("{} to be refused", operation.name()), other.summary())),
    }
}

/// The specification names TaskNotFoundError for reading and deleting; it is expected for setting, too.
async fn unknown_task(bench: &Bench) -> Done {
    for operation in [Operation::CreatePushConfig, Operation::GetPushConfig] {
        let error = refused(bench, operation, &fresh_id()).await?;
        bench.expect_named(&error, "TaskNotFoundError")?;
    }
    Ok(())
}

async fn not_offered(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    for operation in ALL {
        let error = refused(bench, operation, task["id"].as_str().unwrap_or_default()).await?;
        if !bench.is_named(&error, "PushNotificationNotSupportedError")
            && !bench.is_named(&error, "UnsupportedOperationError")
            && !bench.is_named(&error, "MethodNotFoundError")
        {
            let wanted = format!("PushNotificationNotSupportedError for {}", operation.name());
            return Err(differs(wanted, error.summary()));
        }
        if !bench.is_named(&error, "PushNotificationNotSupportedError") {
            bench.note(format!("{} is refused with {}", operation.name(), error.summary()));
        }
    }
    Ok(())
}

/// How long to wait for a call.
fn patience(bench: &Bench) -> Duration {
    SOON.min(bench.probe().timeout() / 2)
}

/// The calls of a webhook that watched a task from its start to its end.
async fn deliveries(bench: &Bench, more: Value) -> Done<(Value, Vec<Call>)> {
    let receiver = Receiver::open(bench).await?;
    let mut config = json!({"id": fresh_id(), "url": receiver.url});
    if let (Some(config), Value::Object(more)) = (config.as_object_mut(), more) {
        config.extend(more);
    }
    // A task that ends by itself: a server need not notify about a cancel to the client that canceled.
    let task = bench.task(&Say::text("tck-stream-basic").at_once()).await?;
    if let Answer::Error(error) = asked_to_set(bench, &task, &config).await? {
        return Err(skip(format!("the agent refuses the webhook {} ({})", receiver.url, error.summary())));
    }
    if receiver.wait(patience(bench), tells_an_end).await.is_none() && receiver.calls().is_empty() {
        let wanted = format!("a call of {} after the task ended", receiver.url);
        return Err(differs(wanted, "none"));
    }
    Ok((task, receiver.calls()))
}

/// The task in a call: the specification shows the whole task; some servers send events.
fn told(call: &Call) -> Value {
    let body = call.json().unwrap_or_default();
    body.get("result").cloned().unwrap_or(body)
}

fn tells_an_end(call: &Call) -> bool {
    state_of(&proto_json::reply(&told(call))).is_some_and(|state| is_terminal(&state))
}

/// The payload is not strictly defined: it should hold at least the task's id and state.
async fn delivered(bench: &Bench) -> Done {
    let (task, calls) = deliveries(bench, json!({})).await?;
    for call in &calls {
        if call.method != "POST" && !(call.method == "GET" && call.path.contains("validationToken")) {
            return Err(differs("POST", call.method.clone()));
        }
    }
    let told: Vec<Value> = calls.iter().filter(|call| call.method == "POST").map(told).collect();
    let names = |body: &Value| {
        let text = body.to_string();
        task["id"].as_str().is_some_and(|id| text.contains(id)) && text.contains("\"state\"")
    };
    if told.iter().any(names) {
        return Ok(());
    }
    Err(differs(format!("a call that names the task {} and its state", task["id"]), show(&json!(told))))
}

async fn with_send(bench: &Bench) -> Done {
    let receiver = Receiver::open(bench).await?;
    let config = json!({"id": fresh_id(), "url": receiver.url});
    let say = Say::text("tck-stream-basic").configured("pushNotificationConfig", config);
    match bench.call(Operation::SendMessage, &say.params(bench)).await? {
        Answer::Reply { .. } => {}
        Answer::Error(error) if is_refusal(&error) => {
            let why = error.summary();
            return Err(skip(format!("the agent refuses the webhook {} ({why})", receiver.url)));
        }
        other => return Err(differs("a task", other.summary())),
    }
    match receiver.wait(patience(bench), |_| true).await {
        Some(_) => Ok(()),
        None => Err(differs(format!("a call of {} after the task ended", receiver.url), "none")),
    }
}

async fn token(bench: &Bench) -> Done {
    let token = format!("lab-{}", fresh_id());
    let (_, calls) = deliveries(bench, json!({ "token": token })).await?;
    let held = |call: &Call| call.headers.iter().any(|(_, value)| value.contains(&token));
    if calls.iter().filter(|call| call.method == "POST").all(held) {
        return Ok(());
    }
    Err(differs(
        "the configured token in a header of every call, as X-A2A-Notification-Token",
        "a call without",
    ))
}

async fn credentials(bench: &Bench) -> Done {
    let secret = format!("lab-{}", fresh_id());
    let more = json!({"authentication": {"schemes": ["Bearer"], "credentials": secret}});
    let (_, calls) = deliveries(bench, more).await?;
    let wanted = format!("Bearer {secret}");
    match calls
        .iter()
        .find(|call| call.method == "POST" && call.header("authorization") != Some(wanted.as_str()))
    {
        Some(call) => {
            let got = call.header("authorization").map_or("no such header", |_| "another value");
            Err(differs("`Authorization: Bearer …` with the configured credentials", got))
        }
        None => Ok(()),
    }
}

async fn silent_after_delete(bench: &Bench) -> Done {
    let receiver = Receiver::open(bench).await?;
    let task = bench.task(&Say::text("tck-stream-basic").at_once()).await?;
    let made = match asked_to_set(bench, &task, &json!({"id": fresh_id(), "url": receiver.url})).await? {
        Answer::Reply { root: Some(made), .. } => made,
        other => {
            return Err(skip(format!(
                "the agent refuses the webhook {} ({})",
                receiver.url,
                other.summary()
            )));
        }
    };
    let gone = asked_to_delete(bench, &task, &id_of(&made, &task)).await?;
    if !matches!(gone, Answer::Reply { .. }) {
        return Err(skip(format!("the config could not be deleted: {}", gone.summary())));
    }
    match receiver.wait(SILENCE, tells_an_end).await {
        Some(_) => Err(differs("no call after the config was deleted", "the task's end was told")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_tells_an_end_in_any_spelling() {
        let call = |body: Value| Call {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: body.to_string().into_bytes(),
        };
        for good in [
            json!({"kind": "task", "id": "t", "status": {"state": "canceled"}}),
            json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_CANCELLED"}}}),
            json!({"result": {"kind": "status-update", "status": {"state": "completed"}}}),
        ] {
            assert!(tells_an_end(&call(good)));
        }
        assert!(!tells_an_end(&call(json!({"kind": "task", "status": {"state": "working"}}))));
        assert!(!tells_an_end(&call(json!([]))));
    }

    #[test]
    fn a_config_without_an_id_has_the_tasks() {
        let task = json!({"id": "t"});
        assert_eq!(id_of(&json!({"pushNotificationConfig": {"id": "c"}}), &task), "c");
        assert_eq!(id_of(&json!({"pushNotificationConfig": {}}), &task), "t");
    }
}
