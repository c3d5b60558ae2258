//! Ruling 1, spec 11.6. Three method names exist in 0.1 and 0.3: the version header decides which is meant, else the task's
//! generation. Other names belong to one generation, and a contradicting version is refused.

use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{TestServer, message, serve_agent};
use crate::speakers::{Events, legacy, message_03, rpc, task};

/// The generation whose JSON form a task or an event has.
fn spelling(object: &Value) -> &'static str {
    let has = |name: &str| object.get(name).is_some();
    match (has("kind"), has("contextId") || has("taskId"), has("statusUpdate") || has("task")) {
        (true, true, false) => "0.3",
        (false, false, false) => "0.1",
        (false, _, _) => "1.0",
        _ => panic!("a mixture: {object}"),
    }
}

fn version_header(version: &str) -> Vec<(&str, &str)> {
    if version.is_empty() { Vec::new() } else { vec![("a2a-version", version)] }
}

/// Creates a task in that generation; it runs until it is canceled.
async fn born(server: &TestServer, generation: &str, id: &str) -> String {
    match generation {
        "0.1" => legacy(server, "tasks/send", task(id, "hold")).await.result()["id"].clone(),
        "0.3" => {
            let mut params = message_03("hold");
            params["configuration"] = json!({"blocking": false});
            rpc(server, &[], "message/send", params).await.result()["id"].clone()
        }
        _ => {
            let mut params = message("hold");
            params["configuration"] = json!({"returnImmediately": true});
            server.call("SendMessage", params).await.result()["task"]["id"].clone()
        }
    }
    .as_str()
    .expect("a task has an id")
    .to_owned()
}

/// Version in the request, generation of the task, generation of the answer's form.
const RULE: [(&str, &str, &str); 12] = [
    ("", "0.1", "0.1"),
    ("", "0.3", "0.3"),
    ("", "1.0", "0.3"),
    ("0.1", "0.1", "0.1"),
    ("0.1", "0.3", "0.3"),
    ("0.1", "1.0", "0.3"),
    ("0.3", "0.1", "0.3"),
    ("0.3", "0.3", "0.3"),
    ("0.3", "1.0", "0.3"),
    ("0.3.0", "0.1", "0.3"),
    ("0.2", "0.1", "0.3"),
    ("0.2.5", "0.3", "0.3"),
];

#[tokio::test]
async fn s10_a_task_is_shown_as_the_header_says_or_as_it_was_born() {
    let server = serve_agent(obedient).await;
    for (n, (version, birth, expected)) in RULE.into_iter().enumerate() {
        let id = born(&server, birth, &format!("t{n}")).await;
        let shown = rpc(&server, &version_header(version), "tasks/get", json!({"id": id})).await;
        assert_eq!(spelling(shown.result()), expected, "get with {version:?}, born in {birth}");
        assert_eq!(shown.result()["id"], id);

        let params = json!({"id": id});
        let mut stream = Events::of(&server, "/", &version_header(version), "tasks/resubscribe", params)
            .await
            .ok()
            .unwrap();
        let first = stream.next().await.unwrap();
        assert_eq!(spelling(first.result()), expected, "resubscribe with {version:?}, born in {birth}");
        assert_eq!(first.name.is_some(), expected == "0.1", "only 0.1 names its events");

        let canceled = rpc(&server, &version_header(version), "tasks/cancel", json!({"id": id})).await;
        assert_eq!(spelling(canceled.result()), expected, "cancel with {version:?}, born in {birth}");
        let last = stream.rest().await.pop().unwrap();
        assert_eq!((spelling(last.result()), &last.result()["final"]), (expected, &json!(true)));

        // Ruling 5: a second cancel is an error in both.
        let again = rpc(&server, &version_header(version), "tasks/cancel", json!({"id": id})).await;
        assert_eq!(again.error_code(), -32002);
    }
}

#[tokio::test]
async fn s10_an_unknown_task_is_not_found_in_both() {
    let server = serve_agent(obedient).await;
    for version in ["", "0.1", "0.3"] {
        for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
            let answer = rpc(&server, &version_header(version), method, json!({"id": "nobody's"})).await;
            assert_eq!((answer.status, answer.error_code()), (200, -32001), "{method} {version:?}");
        }
    }
}

/// A message of one generation to a task of another is accepted, and each answer has the form of its caller's generation.
#[tokio::test]
async fn s08_a_task_may_be_continued_in_another_generation() {
    let server = serve_agent(obedient).await;
    legacy(&server, "tasks/send", task("t", "ask")).await.result();
    crate::speakers::wait_for_state(&server, "t", "input-required").await;
    let mut params = message_03("ask");
    params["message"]["taskId"] = json!("t");
    let newer = rpc(&server, &[], "message/send", params).await;
    assert_eq!((spelling(newer.result()), &newer.result()["contextId"]), ("0.3", &json!("session-1")));
    let mut params = message("hello");
    params["message"]["taskId"] = json!("t");
    let newest = server.call("SendMessage", params).await;
    assert_eq!(newest.result()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    // The task's generation does not change.
    let shown = legacy(&server, "tasks/get", json!({"id": "t"})).await;
    assert_eq!((spelling(shown.result()), &shown.result()["status"]["state"]), ("0.1", &json!("completed")));
}

/// Method names of one generation with the version of another.
#[tokio::test]
async fn p07_a_name_and_a_version_that_contradict_each_other_are_refused() {
    let server = serve_agent(obedient).await;
    for (method, versions, told) in [
        ("SendMessage", &["", "0.3", "0.1"][..], "`A2A-Version: 1.0`"),
        ("SendStreamingMessage", &["", "0.3"], "`A2A-Version: 1.0`"),
        ("GetTask", &["", "0.3"], "`A2A-Version: 1.0`"),
        ("ListTasks", &[""], "`A2A-Version: 1.0`"),
        ("GetExtendedAgentCard", &[""], "`A2A-Version: 1.0`"),
        ("tasks/send", &["1.0"], "`A2A-Version: 0.1`"),
        ("tasks/sendSubscribe", &["1.0", "1.0.1"], "`A2A-Version: 0.1`"),
        ("tasks/pushNotification/set", &["1.0"], "`A2A-Version: 0.1`"),
        ("message/send", &["1.0"], "`A2A-Version: 0.3`"),
        ("message/stream", &["1.0"], "`A2A-Version: 0.3`"),
        ("tasks/get", &["1.0"], "`A2A-Version: 0.3`"),
        ("tasks/cancel", &["1.0"], "`A2A-Version: 0.3`"),
        ("tasks/resubscribe", &["1.0"], "`A2A-Version: 0.3`"),
        ("tasks/list", &["1.0"], "`A2A-Version: 0.3`"),
    ] {
        for version in versions {
            let answer = rpc(&server, &version_header(version), method, task("t", "hello")).await;
            assert_eq!((answer.status, answer.error_code()), (200, -32009), "{method} {version:?}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(told), "{message}");
            assert_eq!(answer.body["id"], "r");
        }
    }
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
}
