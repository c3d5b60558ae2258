//! Many clients at once: each must get its own answer.

use futures_util::future::join_all;
use serde_json::Value;

use super::shape::{fault, judge};
use super::streams::envelope_faults;
use super::talk::{COMPLETE, Say};
use crate::acts::assertion::Mismatch;
use crate::generation::Binding;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::target::Behaviours;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.many.sends" => sends,
};

const CLIENTS: usize = 20;
/// Fewer, since the answers of a model may cost money.
const FEW_CLIENTS: usize = 5;

/// One client's message and its answer.
struct Talk {
    message_id: Value,
    request_id: Value,
    envelope: Value,
    said: Value,
}

pub(in crate::native) async fn sends(bench: &Bench) -> Done {
    let clients = if bench.target().behaviours == Behaviours::Prefixes { CLIENTS } else { FEW_CLIENTS };
    let all = join_all((0..clients).map(|number| one(bench, number))).await;
    let talks = all.into_iter().collect::<Done<Vec<_>>>()?;
    let mut found = Vec::new();
    if bench.binding() == Binding::Jsonrpc {
        found.extend(talks.iter().enumerate().flat_map(|(index, talk)| {
            envelope_faults(&talk.envelope, &talk.request_id, &format!("answers[{index}]"))
        }));
    }
    found.extend(crossed(&talks));
    judge(found)
}

async fn one(bench: &Bench, number: usize) -> Done<Talk> {
    let say = Say::text(&format!("{COMPLETE} number {number}"));
    let request = bench.request(Operation::SendMessage, &say.params(bench));
    let request = request.map_err(|none| super::talk::skip(none.0))?;
    let sent: Value =
        request.body.as_deref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
    let asked = bench.ask(Operation::SendMessage, &request).await;
    let answer = asked.map_err(|error| fail(format!("client {number} got no answer: {error}")))?;
    let Answer::Reply { root: Some(root), body, .. } = answer else {
        return Err(differs("an answer for each client", answer.summary()));
    };
    let said = root.get("task").or_else(|| root.get("message")).cloned().unwrap_or(root);
    Ok(Talk {
        message_id: say.id().clone(),
        request_id: sent["id"].clone(),
        envelope: body.unwrap_or_default(),
        said,
    })
}

/// Finds answers with the same id, or with the history of another client.
fn crossed(talks: &[Talk]) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for (index, talk) in talks.iter().enumerate() {
        let own = |talk: &Talk| talk.said.get("id").or_else(|| talk.said.get("messageId")).cloned();
        if talks[..index].iter().any(|earlier| own(earlier) == own(talk)) {
            found.push(fault(&format!("answers[{index}].id"), "an id of its own", own(talk).as_ref()));
        }
        let history =
            talk.said["history"].as_array().into_iter().flatten().map(|message| &message["messageId"]);
        for id in history {
            if *id != talk.message_id && talks.iter().any(|other| other.message_id == *id) {
                let place = format!("answers[{index}].history");
                found.push(fault(&place, "only this client's messages", Some(id)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn crossed_answers_are_found() {
        let talk = |id: &str, task: &str, history: &[&str]| Talk {
            message_id: json!(id),
            request_id: Value::Null,
            envelope: Value::Null,
            said: json!({"id": task, "history": history.iter().map(|id| json!({"messageId": id})).collect::<Vec<_>>()}),
        };
        assert_eq!(crossed(&[talk("a", "1", &["a"]), talk("b", "2", &["b", "agents"])]), []);
        assert_eq!(crossed(&[talk("a", "1", &["a"]), talk("b", "1", &["b"])])[0].path, "answers[1].id");
        assert_eq!(crossed(&[talk("a", "1", &["b"]), talk("b", "2", &["b"])])[0].path, "answers[0].history");
    }
}
