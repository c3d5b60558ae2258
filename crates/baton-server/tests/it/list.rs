//! P-06. Spec 3.1.4: filters, order, and the content of listed tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use baton_protocol::domain::Timestamp;
use baton_server::Clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::callers::{call_as, serve_owners};
use crate::harness::{TestServer, id, message, serve, serve_agent, with_agent};
use crate::speakers::{read, request};

const V1: (&str, &str) = ("a2a-version", "1.0");

/// 2026-03-12T08:00:00Z.
const START: i64 = 1_773_302_400_000;

/// A clock that advances by one second at every call.
#[derive(Debug)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1000, Ordering::SeqCst))
    }
}

async fn serve_ticking() -> TestServer {
    serve(with_agent(obedient).clock(Arc::new(Ticking(AtomicI64::new(START))))).await
}

fn ids(page: &Value) -> Vec<&str> {
    page["tasks"].as_array().unwrap().iter().map(id).collect()
}

async fn list(server: &TestServer, params: Value) -> Value {
    server.call("ListTasks", params).await.result().clone()
}

#[track_caller]
fn same_members(page: &Value, expected: &[&str], case: &Value) {
    let (mut listed, mut expected) = (ids(page), expected.to_vec());
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected, "{case}");
    assert_eq!(page["totalSize"], expected.len(), "{case}");
}

#[tokio::test]
async fn p06_an_empty_list_has_all_its_members() {
    let server = serve_agent(obedient).await;
    let empty = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
    for params in [json!({}), Value::Null, json!({"contextId": "none"}), json!({"pageToken": ""})] {
        assert_eq!(list(&server, params).await, empty);
    }
    server.send("a").await;
    assert_eq!(list(&server, json!({"contextId": "none"})).await, empty);
    let params = json!({"status": "TASK_STATE_FAILED", "pageSize": 7});
    assert_eq!(list(&server, params).await["pageSize"], 7);
}

#[tokio::test]
async fn p06_the_newest_status_comes_first() {
    let server = serve_ticking().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.insert(0, server.send("ask").await);
    }
    // A new turn moves a task to the front.
    let mut params = message("ask");
    params["message"]["taskId"] = made[3]["id"].clone();
    let moved = server.call("SendMessage", params).await.result()["task"].clone();
    made.remove(3);
    made.insert(0, moved);

    let page = list(&server, json!({})).await;
    assert_eq!(ids(&page), made.iter().map(id).collect::<Vec<_>>());
    let times: Vec<&str> = page["tasks"].as_array().unwrap().iter().map(time).collect();
    assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{times:?}");
}

fn time(task: &Value) -> &str {
    task["status"]["timestamp"].as_str().unwrap()
}

#[tokio::test]
async fn p06_filters_by_context_status_and_time() {
    let server = serve_ticking().await;
    let mut tasks = Vec::new();
    for (text, context) in [("a", "one"), ("fail", "one"), ("ask", "two"), ("hold", "two"), ("b", "two")] {
        let mut params = message(text);
        params["message"]["contextId"] = json!(context);
        params["configuration"] = json!({"returnImmediately": text == "hold"});
        let task = server.call("SendMessage", params).await.result()["task"].clone();
        tasks.push(server.get(id(&task)).await);
    }
    let [done, failed, asked, held, last] = [0, 1, 2, 3, 4].map(|at| id(&tasks[at]));
    let since = time(&tasks[2]);
    let after = since.replace(".000Z", ".001Z");
    let elsewhere = since.replace("T08:", "T10:").replace('Z', "+02:00");
    assert_ne!(after, since);
    for (params, expected) in [
        (json!({}), vec![done, failed, asked, held, last]),
        (json!({"contextId": "one"}), vec![done, failed]),
        (json!({"contextId": "two"}), vec![asked, held, last]),
        (json!({"contextId": "ONE"}), vec![]),
        (json!({"status": "TASK_STATE_COMPLETED"}), vec![done, last]),
        (json!({"status": "TASK_STATE_WORKING"}), vec![held]),
        (json!({"status": "TASK_STATE_INPUT_REQUIRED"}), vec![asked]),
        (json!({"status": "TASK_STATE_CANCELED"}), vec![]),
        (json!({"status": "TASK_STATE_UNSPECIFIED"}), vec![done, failed, asked, held, last]),
        (json!({"status": null}), vec![done, failed, asked, held, last]),
        // Beyond the specification: several states.
        (json!({"status": ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"]}), vec![done, failed, last]),
        (json!({"status": "TASK_STATE_COMPLETED", "contextId": "two"}), vec![last]),
        // Inclusive, whatever its name says.
        (json!({"statusTimestampAfter": since}), vec![asked, held, last]),
        (json!({"statusTimestampAfter": after}), vec![held, last]),
        (json!({"statusTimestampAfter": elsewhere}), vec![asked, held, last]),
        // Fractions of a millisecond are rounded up.
        (json!({"statusTimestampAfter": since.replace(".000Z", ".000000001Z")}), vec![held, last]),
        (json!({"statusTimestampAfter": "2020-01-01T00:00:00Z"}), vec![done, failed, asked, held, last]),
        (json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"}), vec![]),
        (
            json!({"statusTimestampAfter": since, "contextId": "two", "status": "TASK_STATE_WORKING"}),
            vec![held],
        ),
        // Protobuf field names are accepted.
        (json!({"context_id": "one", "page_size": 1}), vec![failed]),
    ] {
        let page = list(&server, params.clone()).await;
        if params.get("page_size").is_some() {
            assert_eq!((ids(&page), &page["totalSize"]), (expected, &json!(2)), "{params}");
        } else {
            same_members(&page, &expected, &params);
        }
    }
}

#[tokio::test]
async fn p06_filters_that_say_nothing_sensible_are_refused() {
    let server = serve_agent(obedient).await;
    for (member, value) in [
        ("status", json!("completed")),
        ("status", json!("TASK_STATE_NONSENSE")),
        ("status", json!(99)),
        ("status", json!({})),
        ("status", json!(["TASK_STATE_WORKING", "x"])),
        ("statusTimestampAfter", json!("yesterday")),
        ("statusTimestampAfter", json!("2026-02-30T00:00:00Z")),
        ("statusTimestampAfter", json!("2026-02-03")),
        ("statusTimestampAfter", json!(5)),
        ("contextId", json!(5)),
        ("includeArtifacts", json!("yes")),
        ("historyLength", json!(-1)),
        ("pageSize", json!(0)),
        ("pageSize", json!(-1)),
        ("pageSize", json!(101)),
        ("pageSize", json!(2147483647)),
        ("pageSize", json!(4294967297u64)),
        ("pageSize", json!(1.5)),
        ("pageSize", json!("many")),
        ("pageToken", json!(1)),
        ("tenant", json!("a/b")),
    ] {
        let answer = server.call("ListTasks", json!({member: value})).await;
        assert_eq!((answer.status, answer.error_code()), (200, -32602), "{member} {value}");
        let field = answer.body["error"]["data"][1]["fieldViolations"][0]["field"].as_str().unwrap();
        assert!(field.starts_with(member), "{member} {value}: {field}");
    }
}

#[tokio::test]
async fn p06_artifacts_come_only_when_asked_for() {
    let server = serve_agent(obedient).await;
    let with = server.send("a").await;
    let without = server.send("fail").await;
    for params in [json!({}), json!({"includeArtifacts": false}), json!({"includeArtifacts": null})] {
        for task in list(&server, params).await["tasks"].as_array().unwrap() {
            assert_eq!(task.get("artifacts"), None, "the member is not there at all");
        }
    }
    for task in list(&server, json!({"includeArtifacts": true})).await["tasks"].as_array().unwrap() {
        if task["id"] == with["id"] {
            assert_eq!(task["artifacts"], with["artifacts"]);
        } else {
            assert_eq!((&task["id"], &task["artifacts"]), (&without["id"], &json!([])));
        }
    }
}

#[tokio::test]
async fn p06_history_is_cut_as_asked() {
    let server = serve_agent(obedient).await;
    let task = server.send("ask").await;
    let mut params = message("ask");
    params["message"]["taskId"] = task["id"].clone();
    let task = server.call("SendMessage", params).await.result()["task"].clone();
    let whole = task["history"].as_array().unwrap();
    for (length, expected) in [
        (Value::Null, Some(whole.len())),
        (json!(0), None),
        (json!(1), Some(1)),
        (json!(99), Some(whole.len())),
    ] {
        let page = list(&server, json!({"historyLength": length})).await;
        let history = page["tasks"][0]["history"].as_array();
        assert_eq!(history.map(Vec::len), expected, "{length}");
        assert_eq!(history.and_then(|history| history.last()), expected.and(whole.last()), "{length}");
    }
}

/// Some tasks are listed from stored JSON and some are folded first: either way the list shows the same as GetTask.
#[tokio::test]
async fn p06_a_listed_task_is_the_task() {
    let server = serve_agent(obedient).await;
    for text in ["a", "\"quoted\" \\ ] }", "fail", "ask", "hold", "reject"] {
        let mut params = message(text);
        params["message"]["metadata"] = json!({"history": [1], "artifacts": [{"]": "}"}]});
        params["configuration"] = json!({"returnImmediately": text == "hold"});
        server.call("SendMessage", params).await.result();
    }
    let page = list(&server, json!({"includeArtifacts": true})).await;
    assert_eq!(ids(&page).len(), 6);
    for task in page["tasks"].as_array().unwrap() {
        let mut expected = server.get(id(task)).await;
        expected["artifacts"] = expected.get("artifacts").cloned().unwrap_or(json!([]));
        assert_eq!(*task, expected);
    }
    let answer = request(&server, Method::GET, "/tasks?includeArtifacts=true", &[V1], String::new()).await;
    assert_eq!(read(answer).await.body, page, "in HTTP+JSON as well");
}

#[tokio::test]
async fn p06_a_list_holds_the_callers_own_tasks_of_one_tenant() {
    let server = serve_owners().await;
    let places = [("ann", ""), ("ann", "t1"), ("ann", "t2"), ("bob", ""), ("bob", "t1")];
    let mut made = Vec::new();
    for (owner, tenant) in places {
        let mut params = message("a");
        // The same context id everywhere: it does not connect owners or tenants.
        params["message"]["contextId"] = json!("shared");
        params["tenant"] = json!(tenant);
        let answer = call_as(&server, owner, "SendMessage", params).await;
        made.push(id(&answer.result()["task"]).to_owned());
    }
    for ((owner, tenant), task) in places.into_iter().zip(&made) {
        for context in ["", "shared"] {
            let params = json!({"tenant": tenant, "contextId": context});
            let answer = call_as(&server, owner, "ListTasks", params.clone()).await;
            same_members(answer.result(), &[task], &params);
        }
    }
    let answer = call_as(&server, "carl", "ListTasks", json!({})).await;
    same_members(answer.result(), &[], &json!("somebody new"));
}
