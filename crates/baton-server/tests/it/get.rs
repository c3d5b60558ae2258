//! S-10. GetTask: `historyLength`, and tasks that do not exist or belong to another caller.

use serde_json::{Value, json};

use crate::agents::obedient;
use crate::callers::{call_as, serve_owners};
use crate::harness::{TestServer, id, message, serve_agent, state};

/// A task that waits for input after three turns.
async fn long_task(server: &TestServer) -> Value {
    let mut task = server.send("ask").await;
    for _ in 0..2 {
        let mut params = message("ask more");
        params["message"]["taskId"] = task["id"].clone();
        task = server.call("SendMessage", params).await.result()["task"].clone();
    }
    assert_eq!(state(&task), "INPUT_REQUIRED");
    assert!(task["history"].as_array().unwrap().len() >= 3, "{task}");
    task
}

#[tokio::test]
async fn s10_history_length_takes_the_most_recent() {
    let server = serve_agent(obedient).await;
    let task = long_task(&server).await;
    let whole = task["history"].as_array().unwrap().clone();
    let last = |count: usize| json!(whole[whole.len() - count..]);
    for (asked, expected) in [
        (json!(1), last(1)),
        (json!(2), last(2)),
        (json!(whole.len()), last(whole.len())),
        (json!(1000), json!(whole)),
        (json!(2147483647), json!(whole)),
        // Protobuf's JSON: a number may be a string, and null is absent.
        (json!("2"), last(2)),
        (json!(2.0), last(2)),
        (Value::Null, json!(whole)),
    ] {
        let answer = server.call("GetTask", json!({"id": id(&task), "historyLength": asked})).await;
        assert_eq!(answer.result()["history"], expected, "{asked}");
        assert_eq!(answer.result()["status"], task["status"], "{asked}");
    }
    assert_eq!(server.get(id(&task)).await, task, "an absent length means the whole history");
    let answer = server.call("GetTask", json!({"id": id(&task), "historyLength": 0})).await;
    assert_eq!(answer.result().get("history"), None, "0 leaves the member out");
    for bad in [json!(-1), json!(1.5), json!("x"), json!(2147483648u64), json!([1]), json!(true)] {
        let answer = server.call("GetTask", json!({"id": id(&task), "historyLength": bad})).await;
        assert_eq!((answer.status, answer.error_code()), (200, -32602), "{bad}");
        assert_eq!(answer.body["error"]["data"][1]["fieldViolations"][0]["field"], "historyLength", "{bad}");
    }
}

/// Spec 3.2.4: the same rule for the answer of a send.
#[tokio::test]
async fn s10_history_length_counts_for_sends_too() {
    let server = serve_agent(obedient).await;
    let task = long_task(&server).await;
    for (length, expected) in [(json!(0), None), (json!(1), Some(1)), (json!(2), Some(2))] {
        let mut params = message("ask again");
        params["message"]["taskId"] = task["id"].clone();
        params["configuration"] = json!({"historyLength": length});
        let sent = server.call("SendMessage", params).await.result()["task"].clone();
        assert_eq!(sent["history"].as_array().map(Vec::len), expected, "{length}");
    }
    let mut params = message("ask again");
    params["configuration"] = json!({"historyLength": -1});
    let answer = server.call("SendMessage", params).await;
    assert_eq!(answer.error_code(), -32602);
    let field = &answer.body["error"]["data"][1]["fieldViolations"][0]["field"];
    assert_eq!(*field, "configuration.historyLength");
}

#[tokio::test]
async fn s10_an_unknown_task_is_not_found() {
    let server = serve_agent(obedient).await;
    for task in ["unknown", "00000000-0000-7000-8000-000000000000", "' OR 1=1 --", "../x", "%00", "ünï"] {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            let answer = server.call(method, json!({"id": task})).await;
            assert_eq!((answer.status, answer.error_code()), (200, -32001), "{method} {task}");
            assert_eq!(answer.body["id"], 1);
            let info = &answer.body["error"]["data"][0];
            assert_eq!(
                (&info["reason"], &info["metadata"]["taskId"]),
                (&json!("TASK_NOT_FOUND"), &json!(task))
            );
        }
    }
}

/// Spec 13.1: for another caller's task the answer is byte for byte that for an unknown task.
#[tokio::test]
async fn s10_a_foreign_task_is_as_unknown_as_any() {
    let server = serve_owners().await;
    let mut foreign = Vec::new();
    for text in ["a", "ask", "hold"] {
        let mut params = message(text);
        params["configuration"] = json!({"returnImmediately": true});
        let answer = call_as(&server, "ann", "SendMessage", params).await;
        foreign.push(answer.result()["task"].clone());
    }
    for task in &foreign {
        let before = call_as(&server, "ann", "GetTask", json!({"id": id(task)})).await.result().clone();
        for method in ["GetTask", "CancelTask", "SubscribeToTask", "SendMessage", "SendStreamingMessage"] {
            for context in [None, Some(&task["contextId"])] {
                let ask = async |task: &str| {
                    let params = match method {
                        "SendMessage" | "SendStreamingMessage" => {
                            let mut params = message("b");
                            params["message"]["taskId"] = json!(task);
                            if let Some(context) = context {
                                params["message"]["contextId"] = context.clone();
                            }
                            params
                        }
                        _ => json!({"id": task}),
                    };
                    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                    let headers =
                        [("content-type", "application/json"), ("a2a-version", "1.0"), ("x-owner", "bob")];
                    let response = server.send_raw(&headers, body.to_string()).await;
                    let mut names: Vec<_> = response.headers().keys().map(|name| name.to_string()).collect();
                    names.sort();
                    let status = response.status();
                    (status, names, response.text().await.unwrap().replace(task, "ID"))
                };
                let unknown = "00000000-0000-7000-8000-000000000000";
                let (as_foreign, as_unknown) = (ask(id(task)).await, ask(unknown).await);
                assert_eq!(as_foreign, as_unknown, "{method}");
                assert!(as_unknown.2.contains("-32001"), "{}", as_unknown.2);
            }
        }
        let after = call_as(&server, "ann", "GetTask", json!({"id": id(task)})).await.result().clone();
        assert_eq!(after["history"], before["history"], "the owner's task is as it was");
    }
}
