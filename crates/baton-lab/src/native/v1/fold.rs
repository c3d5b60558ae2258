//! The events of a stream must add up to the task that GetTask shows.

use serde_json::{Value, json};

use super::talk::{Say, state};
use crate::acts::assertion::show;
use crate::acts::stream::{inner, kind_of, state_of};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.fold.chunks" => chunks,
    "v1.fold.basic" => basic,
};

async fn chunks(bench: &Bench) -> Done {
    let events = same(bench, "tck-stream-chunked").await?;
    let appended = events.iter().any(|event| inner(event)["append"] == true);
    if appended { Ok(()) } else { Err(fail("no artifact update has `append`, so nothing came in chunks")) }
}

async fn basic(bench: &Bench) -> Done {
    same(bench, "tck-stream-basic").await.map(|_| ())
}

async fn same(bench: &Bench, prefix: &str) -> Done<Vec<Value>> {
    let params = Say::text(prefix).params(bench);
    let events = bench.events(Operation::SendStreamingMessage, &params).await?;
    let id = events.first().map(|event| inner(event)["id"].clone()).unwrap_or_default();
    let task = bench.get(&id).await?;
    let folded = fold(&events).map_err(fail)?;
    let kept = parts_by_id(task["artifacts"].as_array().map_or(&[][..], Vec::as_slice));
    if folded != kept {
        return Err(differs(
            format!("GetTask with what the stream adds up to: {}", show(&folded)),
            show(&kept),
        ));
    }
    let last = events.iter().rev().find_map(state_of).unwrap_or_default();
    if last != state(&task) {
        return Err(differs(format!("GetTask in the stream's last state, {last}"), state(&task)));
    }
    Ok(events)
}

/// The parts of each artifact after all events. Adjacent texts are joined, since an agent may join chunks in its store.
pub(super) fn fold(events: &[Value]) -> Result<Value, String> {
    let mut artifacts: Vec<Value> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let told = inner(event);
        match kind_of(event).as_str() {
            "task" => artifacts = told["artifacts"].as_array().cloned().unwrap_or_default(),
            "artifactUpdate" => {
                let artifact = &told["artifact"];
                let known = artifacts.iter_mut().find(|known| known["artifactId"] == artifact["artifactId"]);
                match (known, told["append"] == true) {
                    (Some(known), true) => {
                        let more = artifact["parts"].as_array().cloned().unwrap_or_default();
                        if let Some(parts) = known["parts"].as_array_mut() {
                            parts.extend(more);
                        }
                    }
                    (Some(known), false) => *known = artifact.clone(),
                    (None, false) => artifacts.push(artifact.clone()),
                    (None, true) => {
                        let id = &artifact["artifactId"];
                        return Err(format!(
                            "events[{index}] appends to {id}, which no event before it has made"
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(parts_by_id(&artifacts))
}

fn parts_by_id(artifacts: &[Value]) -> Value {
    let one = |artifact: &Value| {
        let mut parts: Vec<Value> = Vec::new();
        for part in artifact["parts"].as_array().into_iter().flatten() {
            match (parts.last_mut().map(|last| &mut last["text"]), part["text"].as_str()) {
                (Some(Value::String(last)), Some(text)) => last.push_str(text),
                _ => parts.push(part.clone()),
            }
        }
        // Only content is compared; names, metadata and types may come with the first chunk or with each.
        let content = |part: &Value| {
            let known = ["text", "raw", "url", "data"];
            known
                .iter()
                .find_map(|name| part.get(*name).map(|value| json!({ *name: value })))
                .unwrap_or_default()
        };
        let id = artifact["artifactId"].as_str().unwrap_or_default().to_owned();
        (id, Value::Array(parts.iter().map(content).collect()))
    };
    Value::Object(artifacts.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(id: &str, text: &str, append: bool) -> Value {
        json!({"artifactUpdate": {"append": append, "artifact": {"artifactId": id, "parts": [{"text": text}]}}})
    }

    #[test]
    fn chunks_add_up() {
        let task = json!({"task": {"id": "t"}});
        let events = [task.clone(), update("a", "1", false), update("b", "x", false), update("a", "2", true)];
        assert_eq!(fold(&events).unwrap(), json!({"a": [{"text": "12"}], "b": [{"text": "x"}]}));
        let replaced = [task.clone(), update("a", "1", false), update("a", "2", false)];
        assert_eq!(fold(&replaced).unwrap(), json!({"a": [{"text": "2"}]}));
        fold(&[task, update("a", "1", true)]).unwrap_err();
        let kept =
            [json!({"artifactId": "a", "name": "n", "parts": [{"text": "1"}, {"text": "2"}, {"data": 1}]})];
        assert_eq!(parts_by_id(&kept), json!({"a": [{"text": "12"}, {"data": 1}]}));
    }
}
