//! The form of replies, and that they contain the right task.

use serde_json::{Value, json};

use super::shapes;
use crate::acts::assertion::show;
use crate::native::older::{self, is_refusal, list};
use crate::native::shape::{fault, faults, judge, kind_faults};
use crate::native::talk::{COMPLETE, Said, Say, filled, has_ended, is_interrupted, skip, state};
use crate::native::v1::{cancel, hostile, lifecycle, many, rpc, send};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.objects.reply" => reply,
    "v0_3.objects.task" => task,
    "v0_3.objects.part" => part,
    "v0_3.objects.message" => message,
    "v0_3.objects.ids" => ids,
    "v0_3.objects.context" => context,
    "v0_3.objects.waits" => waits,
    "v0_3.objects.at-once" => at_once,
    "v0_3.objects.rejected" => rejected,
    "v0_3.objects.sign-in" => sign_in,
    "v0_3.objects.history" => history,
    "v0_3.rpc.content-type" => rpc::content_type,
    "v0_3.rpc.envelope" => rpc::envelope,
    "v0_3.rpc.ids" => rpc::ids,
    "v0_3.hostile.malformed" => hostile::malformed,
    "v0_3.hostile.odd-ids" => hostile::odd_ids,
    "v0_3.many.sends" => many::sends,
    "v0_3.lifecycle.examples" => lifecycle::examples,
    "v0_3.lifecycle.final" => lifecycle::is_final,
    "v0_3.lifecycle.polled" => lifecycle::polled,
    "v0_3.cancel.any-agent" => cancel::any_agent,
    "v0_3.cancel.twice" => cancel_twice,
    "v0_3.send.media-type" => send::media_type,
    "v0_3.send.text-survives" => send::text_survives,
};

async fn reply(bench: &Bench) -> Done {
    let root = bench.reply(Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await?;
    judge(kind_faults(&shapes::REPLY, &root, ""))
}

/// The same task, read again.
async fn task(bench: &Bench) -> Done {
    let made = bench.ended().await?;
    let now = bench.get(&made["id"]).await?;
    let mut found = faults(&shapes::TASK, &now, "");
    for member in ["id", "contextId"] {
        if now.get(member) != made.get(member) {
            found.push(fault(member, &made[member].to_string(), now.get(member)));
        }
    }
    judge(found)
}

/// The case's test phrase determines the kind of part.
async fn part(bench: &Bench) -> Done {
    let prefix = bench.case().test.requires_behaviors.first().map_or(COMPLETE, String::as_str);
    let made = bench.ended_with(&Say::text(prefix)).await?;
    let now = bench.get(&made["id"]).await?;
    judge(faults(&shapes::TASK, &now, ""))?;
    let wanted = match prefix {
        "tck-artifact-file" => ("file", "/file/bytes"),
        "tck-artifact-file-url" => ("file", "/file/uri"),
        "tck-artifact-data" => ("data", "/data"),
        _ => ("text", "/text"),
    };
    let mut parts = list(&now, "artifacts").iter().flat_map(|artifact| list(artifact, "parts"));
    if parts.any(|part| part["kind"] == wanted.0 && part.pointer(wanted.1).is_some()) {
        return Ok(());
    }
    let expected = format!("an artifact with a part of kind {} that has {}", wanted.0, &wanted.1[1..]);
    Err(differs(expected, show(&now["artifacts"])))
}

async fn message(bench: &Bench) -> Done {
    let Said::Message(message) = bench.say(&Say::text("tck-message-response")).await? else {
        return Err(differs("a message", "a task"));
    };
    let mut found = faults(&shapes::MESSAGE, &message, "");
    if message["role"] != "agent" {
        found.push(fault("role", "agent", message.get("role")));
    }
    judge(found)
}

/// The server generates the ids, and never the same twice.
async fn ids(bench: &Bench) -> Done {
    let (one, two) = (bench.task(&Say::text(COMPLETE)).await?, bench.task(&Say::text(COMPLETE)).await?);
    for task in [&one, &two] {
        judge(faults(&shapes::TASK, task, ""))?;
    }
    if one["id"] == two["id"] {
        return Err(differs("another id for another task", one["id"].to_string()));
    }
    Ok(())
}

/// A second message in a context makes a new task in the same context.
async fn context(bench: &Bench) -> Done {
    let one = bench.task(&Say::text(COMPLETE)).await?;
    let Some(context) = filled(&one, "contextId") else {
        return Err(skip("the agent gives its task no contextId"));
    };
    let two = bench.task(&Say::text(COMPLETE).within(&json!(context))).await?;
    if two["contextId"] != context {
        return Err(differs(format!("a task in the context {context}"), two["contextId"].to_string()));
    }
    if two["id"] == one["id"] && has_ended(&one) {
        return Err(differs("a new task in the context", format!("the ended one, {}", one["id"])));
    }
    Ok(())
}

async fn waits(bench: &Bench) -> Done {
    match bench.call(Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await? {
        Answer::Reply { root: Some(root), .. } if root["kind"] == "message" => Ok(()),
        Answer::Reply { root: Some(root), .. } if has_ended(&root) || is_interrupted(&root) => Ok(()),
        Answer::Reply { root: Some(root), .. } => Err(differs(
            "the task when it has ended or asks something, since `blocking` is true",
            state(&root),
        )),
        Answer::Error(error) if is_refusal(&error) => {
            bench.note(format!("the server refuses to wait, which is allowed: {}", error.summary()));
            Ok(())
        }
        other => Err(differs("a task", other.summary())),
    }
}

async fn at_once(bench: &Bench) -> Done {
    let task = bench.running().await?;
    bench.clean_up(&task).await;
    match state(&task).as_str() {
        "SUBMITTED" | "WORKING" => Ok(()),
        other => Err(differs("the task while it is at work, since `blocking` is false", other)),
    }
}

async fn rejected(bench: &Bench) -> Done {
    match bench.call(Operation::SendMessage, &Say::text("tck-reject-task").params(bench)).await? {
        Answer::Reply { root: Some(root), .. } if root["status"]["state"] == "rejected" => Ok(()),
        Answer::Error(error) if is_refusal(&error) => {
            bench.note(format!("the task is rejected by an error: {}", error.summary()));
            Ok(())
        }
        other => Err(differs("a task that is `rejected`, or an error", other.summary())),
    }
}

/// A task in auth-required explains what to do, and continues with the next message.
async fn sign_in(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-auth-required")).await?;
    let task = bench.settled(&task).await?;
    if task["status"]["state"] != "auth-required" {
        return Err(differs("a task in `auth-required`", state(&task)));
    }
    let told = list(&task["status"]["message"], "parts").iter().any(|part| {
        filled(part, "text").is_some()
            || part.get("data").is_some_and(Value::is_object)
            || part.get("file").is_some()
    });
    if !told {
        bench.clean_up(&task).await;
        return Err(differs("a status message that says what to do", show(&task["status"])));
    }
    let after = bench.task(&Say::text("signed in").to(&task)).await?;
    if !has_ended(&after) {
        bench.clean_up(&task).await;
    }
    if after["id"] == task["id"] {
        Ok(())
    } else {
        Err(differs("the same task to go on", after["id"].to_string()))
    }
}

/// The error table of 0.3 names `canceled` among the states that cannot be canceled.
async fn cancel_twice(bench: &Bench) -> Done {
    let task = bench.running().await?;
    older::cancel(bench, &task["id"]).await?;
    match bench.call(Operation::CancelTask, &json!({ "id": task["id"] })).await? {
        Answer::Error(error) => bench.expect_named(&error, "TaskNotCancelableError"),
        other => Err(differs("TaskNotCancelableError", other.summary())),
    }
}

/// Never more messages than requested, and the latest ones.
async fn history(bench: &Bench) -> Done {
    let first = bench.task(&Say::text("tck-multi-turn")).await?;
    for text in ["second turn", "done"] {
        bench.task(&Say::text(text).to(&first)).await?;
    }
    let ask = |length: u32| json!({"id": first["id"], "historyLength": length});
    let whole = bench.reply(Operation::GetTask, &ask(100)).await?;
    let whole = list(&whole, "history").to_vec();
    for length in [1, 2] {
        let short = bench.reply(Operation::GetTask, &ask(length)).await?;
        let short = list(&short, "history");
        if short.len() > length as usize {
            return Err(differs(format!("at most {length} messages"), format!("{}", short.len())));
        }
        if !whole.ends_with(short) {
            let wanted = format!("the latest of {}", show(&json!(whole)));
            return Err(differs(wanted, show(&json!(short))));
        }
    }
    if whole.is_empty() {
        return Err(skip("the agent keeps no history, which is allowed"));
    }
    judge(
        whole
            .iter()
            .enumerate()
            .flat_map(|(index, message)| faults(&shapes::MESSAGE, message, &format!("history[{index}]")))
            .collect(),
    )
}
