//! S-16 and ruling 4: authentication looks at headers only, comes before everything else, and what one owner
//! or tenant has does not exist for another.

use serde_json::{Value, json};

use crate::callers::{call_as, serve_owners};
use crate::harness::{id, message, state};

const GOOD: &str = r#"{"jsonrpc":"2.0","id":5,"method":"ListTasks"}"#;

#[tokio::test]
async fn s16_who_is_nobody_is_refused_before_anything_is_read() {
    let server = serve_owners().await;
    let json = ("content-type", "application/json");
    let large = " ".repeat(5 * 1024);
    for (headers, body) in [
        (vec![json, ("a2a-version", "1.0")], GOOD),
        (vec![json, ("a2a-version", "1.0"), ("authorization", "Bearer x")], GOOD),
        // Whatever else is wrong with it.
        (vec![json], GOOD),
        (vec![json, ("a2a-version", "9.9")], GOOD),
        (vec![("content-type", "text/plain")], GOOD),
        (vec![json], "{"),
        (vec![json], "[]"),
        (vec![json], ""),
        (vec![json], &large),
        (vec![json], r#"{"jsonrpc":"2.0","id":5,"method":"NoSuchMethod"}"#),
        (vec![json], r#"{"jsonrpc":"2.0","id":5,"method":"SendStreamingMessage"}"#),
    ] {
        let answer = server.post(&headers, body.to_owned()).await;
        assert_eq!((answer.status, answer.error_code()), (401, -32000), "{headers:?} {body}");
        assert_eq!(answer.body["jsonrpc"], "2.0");
        assert_eq!(answer.body.get("id"), Some(&Value::Null), "the body is not looked at");
        assert_eq!(answer.body["error"]["data"][0]["reason"], "UNAUTHENTICATED");
    }
    assert_eq!(call_as(&server, "ann", "ListTasks", json!({})).await.result()["totalSize"], 0);
}

#[tokio::test]
async fn s16_every_operation_wants_to_know_who_asks() {
    let server = serve_owners().await;
    for method in [
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard",
    ] {
        let answer = server.call(method, message("a")).await;
        assert_eq!((answer.status, answer.error_code()), (401, -32000), "{method}");
    }
}

#[tokio::test]
async fn s16_owners_and_tenants_do_not_see_each_other() {
    let server = serve_owners().await;
    let callers = [("ann", ""), ("ann", "t"), ("bob", ""), ("bob", "t"), ("ann\tt", ""), ("", "")];
    let mut tasks = Vec::new();
    for (owner, tenant) in callers {
        // The same messageId everywhere: it is nobody's business but its owner's.
        let mut params = message("hold");
        params["message"]["messageId"] = json!("same");
        params["tenant"] = json!(tenant);
        params["configuration"] = json!({"returnImmediately": true});
        let answer = call_as(&server, owner, "SendMessage", params).await;
        assert_eq!(answer.header("a2a-idempotent-replay"), None, "{owner:?} {tenant:?}");
        tasks.push(answer.result()["task"].clone());
    }
    for (caller, (owner, tenant)) in callers.into_iter().enumerate() {
        for (owned, task) in tasks.iter().enumerate() {
            let params = json!({"id": id(task), "tenant": tenant});
            let got = call_as(&server, owner, "GetTask", params.clone()).await;
            if caller == owned {
                assert_eq!(got.result()["id"], task["id"], "{owner:?} {tenant:?}");
                continue;
            }
            assert_eq!(got.error_code(), -32001, "{owner:?} {tenant:?} reads {owned}");
            let canceled = call_as(&server, owner, "CancelTask", params.clone()).await;
            assert_eq!(canceled.error_code(), -32001, "{owner:?} {tenant:?} cancels {owned}");
            let followed = call_as(&server, owner, "SubscribeToTask", params).await;
            assert_eq!(followed.error_code(), -32001, "{owner:?} {tenant:?} follows {owned}");
            let mut params = message("more");
            params["message"]["taskId"] = task["id"].clone();
            params["tenant"] = json!(tenant);
            let sent = call_as(&server, owner, "SendMessage", params).await;
            assert_eq!(sent.error_code(), -32001, "{owner:?} {tenant:?} writes to {owned}");
        }
    }
    for ((owner, tenant), task) in callers.into_iter().zip(&tasks) {
        let got = call_as(&server, owner, "GetTask", json!({"id": id(task), "tenant": tenant})).await;
        assert_eq!(state(got.result()), "WORKING", "nobody touched it");
    }
}
