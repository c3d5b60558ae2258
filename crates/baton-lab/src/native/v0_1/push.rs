//! Push notifications: one webhook per task.

use serde_json::{Value, json};

use super::shapes::{self, without_nulls};
use crate::acts::assertion::show;
use crate::native::older::is_refusal;
use crate::native::receiver::Receiver;
use crate::native::shape::{faults, judge};
use crate::native::talk::{SOON, Say, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_1.push.set" => set,
    "v0_1.push.unknown-task" => unknown_task,
    "v0_1.push.not-offered" => not_offered,
    "v0_1.push.https" => https,
    "v0_1.push.delivered" => delivered,
};

fn params(task: &Value, url: &str) -> Value {
    json!({"id": task["id"], "pushNotificationConfig": {"url": url, "token": "lab"}})
}

fn nowhere() -> String {
    format!("https://example.com/webhook/{}", fresh_id())
}

async fn set(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let url = nowhere();
    let made = bench.reply(Operation::CreatePushConfig, &params(&task, &url)).await;
    let got = bench.reply(Operation::GetPushConfig, &json!({ "id": task["id"] })).await;
    bench.clean_up(&task).await;
    for config in [made?, got?] {
        let config = without_nulls(&config);
        judge(faults(&shapes::PUSH_CONFIG, &config, ""))?;
        if config["id"] != task["id"] || config["pushNotificationConfig"]["url"] != url {
            return Err(differs(format!("the config of {} with {url}", task["id"]), show(&config)));
        }
    }
    Ok(())
}

async fn unknown_task(bench: &Bench) -> Done {
    let nobody = json!({ "id": fresh_id() });
    for (operation, params) in [
        (Operation::CreatePushConfig, params(&nobody, &nowhere())),
        (Operation::GetPushConfig, nobody.clone()),
    ] {
        let error = bench.refusal(operation, &params).await?;
        bench.expect_named(&error, "TaskNotFoundError")?;
    }
    Ok(())
}

/// All documents have -32003; some servers do not know the methods at all.
async fn not_offered(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    for (operation, params) in [
        (Operation::CreatePushConfig, params(&task, &nowhere())),
        (Operation::GetPushConfig, json!({ "id": task["id"] })),
    ] {
        let error = bench.refusal(operation, &params).await?;
        if !matches!(error.code, Some(-32003 | -32004 | -32601)) {
            return Err(differs(format!("-32003 for {}", operation.name()), error.summary()));
        }
        if error.code != Some(-32003) {
            bench.note(format!(
                "{} is refused with {}; the text has -32003",
                operation.name(),
                error.summary()
            ));
        }
    }
    Ok(())
}

async fn https(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let params = params(&task, "http://example.com/webhook");
    let answer = bench.call(Operation::CreatePushConfig, &params).await;
    bench.clean_up(&task).await;
    match answer? {
        Answer::Error(error) if is_refusal(&error) => Ok(()),
        other => Err(differs("a webhook without TLS to be refused", other.summary())),
    }
}

/// The body is the server's choice; it should contain the task's id and state.
async fn delivered(bench: &Bench) -> Done {
    let receiver = Receiver::open(bench).await?;
    // A task that ends by itself: a server need not notify about a cancel to the client that canceled.
    let task = bench.task(&Say::text("tck-stream-basic")).await?;
    let answer = bench.call(Operation::CreatePushConfig, &params(&task, &receiver.url)).await?;
    if let Answer::Error(error) = answer {
        let why = error.summary();
        return Err(skip(format!("the agent refuses the webhook {} ({why})", receiver.url)));
    }
    let named = |body: &str| task["id"].as_str().is_some_and(|id| body.contains(id));
    let patience = SOON.min(bench.probe().timeout() / 2);
    let fits = receiver.wait(patience, |call| {
        let body = String::from_utf8_lossy(&call.body);
        call.method == "POST" && named(&body) && shapes::STATES.iter().any(|state| body.contains(state))
    });
    match fits.await {
        Some(_) => Ok(()),
        None => Err(differs(
            format!("a call of {} that tells the task {} and its state", receiver.url, task["id"]),
            format!("{} other calls", receiver.calls().len()),
        )),
    }
}
