//! SendMessage, beyond what a document can express.

use serde_json::{Value, json};

use super::same::same;
use super::talk::{COMPLETE, Said, Say, fresh_id, has_ended, is_interrupted, skip, state};
use crate::acts::assertion::show;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.send.task-or-message" => task_or_message,
    "v1.send.blocks" => blocks,
    "v1.send.reply-is-latest" => reply_is_latest,
    "v1.send.part-kinds" => part_kinds,
    "v1.send.media-type" => media_type,
    "v1.send.output-modes" => output_modes,
    "v1.send.text-survives" => text_survives,
    "v1.send.repeated" => repeated,
};

async fn task_or_message(bench: &Bench) -> Done {
    bench.say(&Say::text(COMPLETE)).await.map(|_| ())
}

/// Without `returnImmediately`, the reply has a task that has ended or waits for input.
async fn blocks(bench: &Bench) -> Done {
    match bench.say(&Say::text(COMPLETE)).await? {
        Said::Message(_) => Ok(()),
        Said::Task(task) if has_ended(&task) || is_interrupted(&task) => Ok(()),
        Said::Task(task) => Err(differs("a task that has ended or waits for input", state(&task))),
    }
}

async fn reply_is_latest(bench: &Bench) -> Done {
    let reply = bench.task(&Say::text(COMPLETE)).await?;
    if !has_ended(&reply) {
        return Err(skip(format!("the reply's task has not ended ({}); nothing to compare", state(&reply))));
    }
    let now = bench.get(&reply["id"]).await?;
    for member in ["status", "artifacts"] {
        if !same(reply.get(member), now.get(member)) {
            let shown = |task: &Value| task.get(member).map_or("nothing".to_owned(), show);
            return Err(differs(
                format!("`{member}` of the reply as GetTask has it: {}", shown(&now)),
                shown(&reply),
            ));
        }
    }
    Ok(())
}

/// Each kind of part must be accepted, or refused because of its type; any other result is a failure.
async fn part_kinds(bench: &Bench) -> Done {
    let kinds = [
        ("raw", json!({"raw": "aGVsbG8=", "mediaType": "text/plain", "filename": "hello.txt"})),
        ("url", json!({"url": "https://example.com/hello.txt", "mediaType": "text/plain"})),
        ("data: an object", json!({"data": {"a": [1, 2.5, "x", true, null]}})),
        ("data: a list", json!({"data": [1, 2, 3]})),
        ("data: a text", json!({"data": "plain"})),
        ("data: a number", json!({"data": 7})),
        ("data: null", json!({"data": null})),
    ];
    for (name, part) in kinds {
        let params = Say::parts(json!([{ "text": COMPLETE }, part])).params(bench);
        match bench.call(Operation::SendMessage, &params).await? {
            Answer::Reply { root: Some(_), .. } => {}
            Answer::Error(error) if bench.is_named(&error, "ContentTypeNotSupportedError") => {
                bench.note(format!("a part with {name} is refused for its type, which is allowed"));
            }
            other => return Err(differs(format!("a part with {name} to be taken"), other.summary())),
        }
    }
    Ok(())
}

/// A media type that no agent supports.
const UNKNOWN_TYPE: &str = "application/x-baton-lab-unknown";

/// True if the card accepts every media type.
fn takes_everything(card: &Value) -> bool {
    let skills = card["skills"].as_array().into_iter().flatten().map(|skill| &skill["inputModes"]);
    let modes = skills.chain([&card["defaultInputModes"]]).filter_map(Value::as_array).flatten();
    let mut modes = modes.filter_map(Value::as_str);
    modes.any(|mode| mode.contains('*') || mode == "application/octet-stream" || mode == "file")
}

pub(in crate::native) async fn media_type(bench: &Bench) -> Done {
    if takes_everything(&bench.target().card) {
        return Err(skip("the card takes every media type"));
    }
    let part = json!({"raw": "aGVsbG8=", "mediaType": UNKNOWN_TYPE});
    let params = Say::parts(json!([part])).params(bench);
    match bench.call(Operation::SendMessage, &params).await? {
        Answer::Error(error) => bench.expect_named(&error, "ContentTypeNotSupportedError"),
        Answer::Reply { root: Some(root), .. } => {
            let task = root.get("task").unwrap_or(&Value::Null);
            if matches!(state(task).as_str(), "REJECTED" | "FAILED") {
                bench.note("the type is refused by the task's state, not by an error");
                return Ok(());
            }
            Err(skip("the agent takes a type that its card does not list; nothing to refuse"))
        }
        other => Err(differs("ContentTypeNotSupportedError", other.summary())),
    }
}

async fn output_modes(bench: &Bench) -> Done {
    let modes = bench.target().card["defaultOutputModes"].clone();
    let say = Say::text(COMPLETE).configured("acceptedOutputModes", modes.clone());
    match bench.call(Operation::SendMessage, &say.params(bench)).await? {
        Answer::Reply { root: Some(_), .. } => Ok(()),
        other => Err(differs(format!("an answer, since the card offers {}", show(&modes)), other.summary())),
    }
}

/// The history must contain the message's text unchanged.
pub(in crate::native) async fn text_survives(bench: &Bench) -> Done {
    let text = "äöü ŽŇ 漢字 🏃‍♀️ \"quoted\" back\\slash\ttab\nline\r\nline\u{2028}end";
    let say = Say::parts(json!([{ "text": COMPLETE }, { "text": text }]));
    let task = bench.task(&say).await?;
    let now = bench.get(&task["id"]).await?;
    let history = now["history"].as_array().into_iter().flatten();
    let Some(kept) = history.into_iter().find(|message| message["messageId"] == *say.id()) else {
        return Err(skip("the agent does not keep the user's message in the history"));
    };
    match kept["parts"][1]["text"].as_str() {
        Some(kept) if kept == text => Ok(()),
        _ => Err(differs(show(&json!(text)), show(&kept["parts"][1]))),
    }
}

/// An agent may or may not recognise a repeated message; only an internal error is a failure.
async fn repeated(bench: &Bench) -> Done {
    let say = Say::text(COMPLETE).member("messageId", json!(fresh_id()));
    let id = |said: Said| match said {
        Said::Task(task) => task["id"].clone(),
        Said::Message(message) => message["messageId"].clone(),
    };
    let first = id(bench.say(&say).await?);
    match bench.call(Operation::SendMessage, &say.params(bench)).await? {
        Answer::Reply { root: Some(root), .. } => {
            let second = root.get("task").map_or(&root["message"]["messageId"], |task| &task["id"]);
            let same = if *second == first { "the same answer" } else { "a second task or message" };
            bench.note(format!("the same messageId again gave {same}"));
            Ok(())
        }
        Answer::Error(error) if error.name.as_deref() != Some("InternalError") && error.status < 500 => {
            bench.note(format!("the same messageId again was refused: {}", error.summary()));
            Ok(())
        }
        other => Err(differs("an answer or a refusal for the same messageId", other.summary())),
    }
}
