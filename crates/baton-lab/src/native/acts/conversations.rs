//! Contexts, histories, and what an agent takes.

use serde_json::{Value, json};

use crate::acts::stream::state_of;
use crate::case::Verdict;
use crate::native::{Done, differs};
use crate::run::Bench;
use crate::speak::send_params;
use crate::wire::Answer;
use crate::wire::request::Operation;

const UNKNOWN_TYPE: &str = "application/x-unsupported-type-12345";

/// CORE-SEND-004: an agent that limits what it takes refuses a part of another type.
pub(super) async fn unsupported_type(bench: &Bench) -> Done {
    let card = &bench.target().card;
    let skills = bench.target().skills().iter().map(|skill| &skill["inputModes"]);
    let modes = skills.chain([&card["defaultInputModes"]]).filter_map(Value::as_array).flatten();
    if let Some(mode) = modes.filter_map(Value::as_str).find(|mode| takes(mode, UNKNOWN_TYPE)) {
        return Err(Verdict::Skip(format!(
            "the card says that the agent takes {mode}, so {UNKNOWN_TYPE}, too"
        )));
    }
    let mut params = send_params(bench.generation(), "tck-complete-task", json!({}));
    params["message"]["parts"] = json!([{"data": {"value": "unsupported"}, "mediaType": UNKNOWN_TYPE}]);
    let error = bench.refusal(Operation::SendMessage, &params).await?;
    match error.name.as_deref() {
        Some("ContentTypeNotSupportedError") => Ok(()),
        None if matches!(error.status, 400 | 415) => {
            bench.note(format!("only the HTTP status {} tells the error", error.status));
            Ok(())
        }
        _ => Err(differs("ContentTypeNotSupportedError", error.summary())),
    }
}

/// Does a mode of a card take a media type?
fn takes(mode: &str, media_type: &str) -> bool {
    let family = |text: &str| text.split('/').next().map(str::to_owned);
    mode == "*"
        || mode == "*/*"
        || mode == media_type
        || (mode.ends_with("/*") && family(mode) == family(media_type))
}

/// CORE-CTX-001: a contextId made by the client is kept or refused, never replaced.
pub(super) async fn client_context(bench: &Bench) -> Done {
    let context = format!("client-made-{}", uuid::Uuid::new_v4());
    let more = json!({ "contextId": context });
    let params = send_params(bench.generation(), "tck-complete-task client context", more);
    let root = match bench.call(Operation::SendMessage, &params).await? {
        Answer::Error(error) => {
            bench.note(format!("the agent refuses contextIds of clients: {}", error.summary()));
            return Ok(());
        }
        Answer::Reply { root: Some(root), .. } => root,
        other => return Err(differs("a task, or an error", other.summary())),
    };
    let reply = root.get("task").or_else(|| root.get("message")).unwrap_or(&root);
    match reply["contextId"].as_str() {
        Some(kept) if kept == context => {
            bench.note("the agent takes contextIds of clients");
            Ok(())
        }
        other => {
            Err(differs(format!("an error, or the contextId `{context}`"), other.unwrap_or("no contextId")))
        }
    }
}

/// CORE-HIST-005: the user's messages that are kept are in the order they were sent.
pub(super) async fn history_order(bench: &Bench) -> Done {
    let said = ["tck-multi-turn chronological first", "tck-multi-turn chronological second", "done"];
    let mut more = json!({});
    let mut task = Value::Null;
    for (turn, text) in (1..).zip(said) {
        task = bench.send(text, more).await?;
        let wanted = if turn == said.len() { "COMPLETED" } else { "INPUT_REQUIRED" };
        let state = state_of(&task).unwrap_or_else(|| "no state".to_owned());
        if state != wanted {
            return Err(differs(format!("{wanted} after turn {turn}"), state));
        }
        more = json!({"taskId": task["id"], "contextId": task["contextId"]});
    }
    let kept = bench.reply(Operation::GetTask, &json!({"id": task["id"]})).await?;
    let Some(history) = kept["history"].as_array().filter(|history| !history.is_empty()) else {
        bench.note("the agent keeps no history, which is allowed");
        return Ok(());
    };
    in_order(history, &said)
}

fn in_order(history: &[Value], said: &[&str]) -> Done {
    let user = history.iter().filter(|message| message["role"] == "ROLE_USER");
    let texts: Vec<String> = user.map(text_of).collect();
    let places: Vec<usize> =
        texts.iter().filter_map(|text| said.iter().position(|said| text == said)).collect();
    if places.is_sorted() {
        return Ok(());
    }
    Err(differs(format!("the user's messages in the order {said:?}"), format!("{texts:?}")))
}

fn text_of(message: &Value) -> String {
    let parts = message["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_judged_by_the_users_messages_alone() {
        let message = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
        let (user, agent) = (|text| message("ROLE_USER", text), |text| message("ROLE_AGENT", text));
        let said = ["one", "two", "three"];
        let kept = [user("one"), agent("?"), user("two"), agent("?"), user("three")];
        in_order(&kept, &said).unwrap();
        in_order(&[user("one"), user("three")], &said).unwrap();
        in_order(&[user("two"), user("one")], &said).unwrap_err();
    }

    #[test]
    fn modes_take_types() {
        for (mode, taken) in
            [("*/*", true), ("application/*", true), ("text/plain", false), ("text/*", false)]
        {
            assert_eq!(takes(mode, UNKNOWN_TYPE), taken, "{mode}");
        }
    }
}
