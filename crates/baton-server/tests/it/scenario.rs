//! A table of scenarios, run in every generation and binding: the results are equal, except for the differences in
//! [`ALLOWED`].

use serde_json::{Value, json};

use crate::actors::actors;
use crate::allowed::ALLOWED;
use crate::faces::{Client, FACES, Face, Say, shown};
use crate::fixtures::Gate;

macro_rules! scenarios {
    ($($test:ident: $play:ident;)*) => {
        $(#[tokio::test]
        async fn $test() {
            same_everywhere(stringify!($play), async |client, gate| $play(client, gate).await).await;
        })*
    };
}

scenarios! {
    p03_send_and_wait: send_and_wait;
    p03_send_and_poll: send_and_poll;
    p04_stream_to_the_end: stream_to_the_end;
    p03_get_with_history_lengths: get_with_history_lengths;
    p03_a_conversation: a_conversation;
    s08_an_answer_sets_the_task_to_work: an_answer_sets_the_task_to_work;
    p03_cancel_a_working_task: cancel_a_working_task;
    p03_cancel_an_ended_task: cancel_an_ended_task;
    p03_unknown_tasks: unknown_tasks;
    p03_a_message_to_an_ended_task: a_message_to_an_ended_task;
    p04_subscribe_to_a_live_task: subscribe_to_a_live_task;
    p04_resume_a_stream: resume_a_stream;
    p03_the_same_message_again: the_same_message_again;
    p03_a_message_for_an_answer: a_message_for_an_answer;
    p03_parts_of_every_kind: parts_of_every_kind;
    p03_parts_only_one_generation_has: parts_only_one_generation_has;
    p03_failed_tasks: failed_tasks;
    p03_rejected_tasks: rejected_tasks;
    p03_authorisation_required: authorisation_required;
    p06_lists_with_pages: lists_with_pages;
}

async fn send_and_wait(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    vec![client.send(&Say::text("m", "work")).await.shape]
}

async fn send_and_poll(client: &Client<'_>, gate: &Gate) -> Vec<Value> {
    let started = client.send(&Say::text("m", "gated").at_once()).await;
    let state = started.shape["task"]["state"].as_str().unwrap_or("none");
    assert!(["submitted", "working"].contains(&state), "{}", started.shape);
    gate.let_pass(1);
    vec![client.until(&started.id, |state| state == "completed").await.shape]
}

async fn stream_to_the_end(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    shown(&client.stream(&Say::text("m", "work"), None).await.unwrap().rest().await)
}

async fn get_with_history_lengths(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let task = client.send(&Say::text("m", "ask one")).await.id;
    let mut again = Say::text("n", "ask two").to(&task);
    again.history = Some(1);
    let mut seen = vec![client.send(&again).await.shape];
    for length in [0, 1, 2, 100] {
        seen.push(client.get(&task, Some(length)).await.shape);
    }
    seen.push(client.get(&task, None).await.shape);
    seen
}

async fn a_conversation(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let asked = client.send(&Say::text("m", "ask")).await;
    let again = client.stream(&Say::text("n", "ask").to(&asked.id), None).await.unwrap().rest().await;
    let told = client.send(&Say::text("o", "work").to(&asked.id)).await;
    vec![asked.shape, json!(shown(&again)), told.shape]
}

async fn an_answer_sets_the_task_to_work(client: &Client<'_>, gate: &Gate) -> Vec<Value> {
    let asked = client.send(&Say::text("m", "ask")).await;
    let at_once = client.send(&Say::text("n", "gated").to(&asked.id).at_once()).await;
    gate.let_pass(1);
    client.until(&asked.id, |state| state == "completed").await;
    vec![at_once.shape]
}

async fn cancel_a_working_task(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let started = client.send(&Say::text("m", "hold").at_once()).await;
    let canceled = client.cancel(&started.id).await;
    vec![canceled.shape, client.get(&started.id, None).await.shape, client.cancel(&started.id).await.shape]
}

async fn cancel_an_ended_task(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let task = client.send(&Say::text("m", "work")).await.id;
    vec![client.cancel(&task).await.shape]
}

async fn unknown_tasks(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    vec![
        client.get("nobody", None).await.shape,
        client.cancel("nobody").await.shape,
        client.subscribe("nobody", None).await.err().expect("no stream of nothing"),
        client.subscribe("nobody", Some(3)).await.err().expect("no stream of nothing"),
        client.send(&Say::text("m", "ask").to("nobody")).await.shape,
    ]
}

async fn a_message_to_an_ended_task(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let task = client.send(&Say::text("m", "work")).await.id;
    let more = Say::text("n", "more").to(&task);
    vec![
        client.send(&more).await.shape,
        client.stream(&more, None).await.err().expect("nothing to stream"),
        client.subscribe(&task, None).await.err().expect("nothing to stream"),
        client.get(&task, None).await.shape,
    ]
}

async fn subscribe_to_a_live_task(client: &Client<'_>, gate: &Gate) -> Vec<Value> {
    let task = client.send(&Say::text("m", "gated").at_once()).await.id;
    let mut watch = client.subscribe(&task, None).await.unwrap();
    let first = watch.next().await.unwrap();
    gate.let_pass(1);
    let mut seen = vec![first.shape];
    seen.extend(shown(&watch.rest().await));
    seen
}

async fn resume_a_stream(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let say = Say::text("m", "work");
    let all = client.stream(&say, None).await.unwrap().rest().await;
    let task = client.send(&say).await.id;
    let mut seen = vec![json!(all.iter().map(|event| event.number).collect::<Vec<_>>())];
    for event in &all[..all.len() - 1] {
        let resumed = client.subscribe(&task, event.number).await.unwrap().rest().await;
        let resent = client.stream(&say, event.number).await.unwrap().rest().await;
        assert_eq!(resumed, resent, "{:?}", client.face);
        assert!(all.ends_with(&resumed), "{:?}: {resumed:?}", client.face);
        seen.push(json!(shown(&resumed)));
    }
    let last = all.last().and_then(|event| event.number);
    seen.push(client.subscribe(&task, last).await.err().expect("nothing is left"));
    seen.push(client.subscribe(&task, Some(1000)).await.err().expect("a number of the future"));
    seen.push(client.stream(&Say::text("new", "work"), Some(1)).await.err().expect("nothing to resume"));
    seen
}

async fn the_same_message_again(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let say = Say::text("m", "work");
    let first = client.send(&say).await;
    let again = client.send(&say).await;
    assert_eq!(first.id, again.id, "{:?}", client.face);
    let mut replay = client.stream(&say, None).await.unwrap();
    let flags = json!([first.replayed, again.replayed, replay.replayed]);
    let seen = vec![flags, again.shape, json!(shown(&replay.rest().await))];
    assert_eq!(client.server.task_count().await, 1, "{:?}", client.face);
    seen
}

async fn a_message_for_an_answer(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let mut say = Say::text("m", "hello");
    say.metadata = Some(json!({"skillId": "talk"}));
    let mut seen = vec![client.send(&say).await.shape];
    say.id = "n".to_owned();
    seen.extend(shown(&client.stream(&say, None).await.unwrap().rest().await));
    seen
}

async fn parts_of_every_kind(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let mut say = Say::text("m", "");
    say.parts = json!([
        {"text": "parts"},
        {"text": "more", "metadata": {"a": [1, null, {"b": 2.5}]}},
        {"raw": "AAEC/w==", "mediaType": "image/png", "filename": "dot.png"},
        {"url": "https://example.com/a?b=c#d", "mediaType": "text/html", "filename": "a.html"},
        {"url": "https://example.com/bare"},
        {"data": {"deep": {"list": [1, "two", null, true]}, "": 0}, "metadata": {"unit": "m"}},
    ]);
    let mut seen = vec![client.send(&say).await.shape];
    say.id = "n".to_owned();
    seen.extend(shown(&client.stream(&say, None).await.unwrap().rest().await));
    seen
}

async fn parts_only_one_generation_has(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let told = client.send(&Say::text("m", "odd")).await.shape;
    vec![told["task"]["artifacts"][0]["parts"].clone()]
}

async fn failed_tasks(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let stream = client.stream(&Say::text("n", "fail"), None).await.unwrap().rest().await;
    let mut nobody = Say::text("o", "work");
    nobody.metadata = Some(json!({"skillId": "nobody"}));
    vec![
        client.send(&Say::text("m", "fail")).await.shape,
        json!(shown(&stream)),
        client.send(&nobody).await.shape,
    ]
}

async fn rejected_tasks(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    let stream = client.stream(&Say::text("n", "reject"), None).await.unwrap().rest().await;
    vec![client.send(&Say::text("m", "reject")).await.shape, json!(shown(&stream))]
}

async fn authorisation_required(client: &Client<'_>, gate: &Gate) -> Vec<Value> {
    let mut watch = client.stream(&Say::text("m", "auth"), None).await.unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|shape: &Value| shape["says"].is_null()) {
        seen.push(watch.next().await.expect("it asks").shape);
    }
    gate.let_pass(1);
    seen.extend(shown(&watch.rest().await));
    vec![json!(seen)]
}

async fn lists_with_pages(client: &Client<'_>, _: &Gate) -> Vec<Value> {
    if !client.face.lists() {
        return Vec::new();
    }
    for (id, text) in [("a", "work"), ("b", "ask"), ("c", "fail"), ("d", "ask"), ("e", "ask")] {
        client.send(&Say::text(id, text)).await;
    }
    let mut seen = vec![];
    let mut token = String::new();
    loop {
        let mut page = client.list(&format!("pageSize=2&historyLength=1&pageToken={token}")).await;
        token = page["next"].take().as_str().unwrap().to_owned();
        seen.push(page);
        if token.is_empty() {
            break;
        }
    }
    let asking = if client.face == Face::V03Rpc { "input-required" } else { "TASK_STATE_INPUT_REQUIRED" };
    seen.push(client.list(&format!("status={asking}&pageSize=100")).await);
    for refused in ["pageSize=0", "pageSize=101", "pageToken=x", "status=nothing", "statusTimestampAfter=now"]
    {
        seen.push(client.list(refused).await);
    }
    seen
}

async fn same_everywhere(scenario: &str, play: impl AsyncFn(&Client<'_>, &Gate) -> Vec<Value>) {
    let mut usual = None;
    for face in FACES {
        let gate = Gate::new();
        let server = actors(&gate).await;
        let seen = json!(play(&Client::new(&server, face), &gate).await);
        let mut expected = usual.get_or_insert_with(|| seen.clone()).clone();
        for (name, faces, place, instead, why) in ALLOWED {
            // What ProtoJSON cannot say, protobuf cannot.
            if *name == scenario && (faces.contains(&face) || faces.contains(&face.in_json())) {
                let at = expected.pointer_mut(place).unwrap_or_else(|| panic!("{why}: no place {place}"));
                let instead: Value = serde_json::from_str(instead).unwrap();
                assert_ne!(*at, instead, "not a difference: {why}");
                *at = instead;
            }
        }
        if let Some(difference) = difference("", &seen, &expected) {
            panic!("{scenario} of {face:?}: {difference}");
        }
    }
}

/// The path of the first difference.
fn difference(place: &str, seen: &Value, expected: &Value) -> Option<String> {
    match (seen, expected) {
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.find_map(|(at, (left, right))| difference(&format!("{place}/{at}"), left, right))
        }
        (Value::Object(left), Value::Object(right)) if left.keys().eq(right.keys()) => {
            left.iter().find_map(|(name, it)| difference(&format!("{place}/{name}"), it, &right[name]))
        }
        _ => (seen != expected).then(|| format!("at {place}: {seen}\ninstead of {expected}")),
    }
}
