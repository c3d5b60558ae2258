//! A client disconnects: the work goes on, and other clients are not affected.

use std::time::Duration;

use serde_json::{Value, json};

use super::talk::{Say, has_ended, state};
use crate::acts::stream::inner;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.disconnect.task-stays" => task_stays,
    "v1.disconnect.work-goes-on" => work_goes_on,
    "v1.disconnect.blocking-send" => blocking_send,
};

/// The task can still be read, and the next ten calls work.
async fn task_stays(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text("tck-cancel")).await?;
    let first = watch.event().await?;
    let task = inner(&first).clone();
    drop(watch);
    for call in 1..=10 {
        let now = match call % 2 {
            0 => bench.get(&task["id"]).await,
            _ => bench.reply(Operation::ListTasks, &json!({"pageSize": 1, "historyLength": 0})).await,
        };
        now.map_err(|_| fail(format!("call {call} after a stream was closed early got no good answer")))?;
    }
    let now = bench.get(&task["id"]).await?;
    bench.clean_up(&task).await;
    if has_ended(&now) { Err(differs("the task still at work", state(&now))) } else { Ok(()) }
}

async fn work_goes_on(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text("tck-stream-basic")).await?;
    let first = watch.event().await?;
    let task = inner(&first).clone();
    drop(watch);
    let now = bench.settled(&task).await?;
    if state(&now) == "COMPLETED" { Ok(()) } else { Err(differs("COMPLETED after all", state(&now))) }
}

/// A blocking send creates its task even if the client does not wait for the answer.
async fn blocking_send(bench: &Bench) -> Done {
    let context = bench.ended().await?["contextId"].clone();
    if !context.is_string() {
        return Err(super::talk::skip("the agent gives tasks no contextId to find this one by"));
    }
    let say = Say::text("tck-stream-basic").within(&context);
    let (params, list) = (say.params(bench), json!({"contextId": context, "pageSize": 10}));
    let listed = async || -> Done<Vec<Value>> {
        let page = bench.reply(Operation::ListTasks, &list).await?;
        Ok(page["tasks"].as_array().cloned().unwrap_or_default())
    };
    // The client disconnects after the task exists: earlier, the request might not have arrived yet.
    let there = async {
        loop {
            let tasks = listed().await?;
            if tasks.len() > 1 {
                return Done::Ok(tasks);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let tasks = tokio::select! {
        tasks = there => tasks?,
        answered = bench.reply(Operation::SendMessage, &params) => {
            answered?;
            bench.note("the agent answered before the client could leave");
            listed().await?
        }
    };
    let Some(task) = tasks.iter().find(|task| state(task) != "COMPLETED").or(tasks.first()) else {
        return Err(differs("the task in the list of its context", "no task"));
    };
    if tasks.len() < 2 {
        return Err(differs("two tasks in the context", format!("{}", tasks.len())));
    }
    let now = bench.settled(task).await?;
    if state(&now) == "COMPLETED" { Ok(()) } else { Err(differs("COMPLETED after all", state(&now))) }
}
