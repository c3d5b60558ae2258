//! HTTP+JSON: query parameters, error texts, body limits.

use std::sync::Arc;
use std::time::Duration;

use baton_server::Limits;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::fixtures::TestClock;
use crate::harness::{Answer, TestServer, message, serve, serve_agent, with_agent};
use crate::speakers::{read, request};

const V1: (&str, &str) = ("a2a-version", "1.0");

async fn get(server: &TestServer, path: &str) -> Answer {
    let headers: &[_] = if path.starts_with("/v1/") { &[] } else { &[V1] };
    read(request(server, http::Method::GET, path, headers, "").await).await
}

/// Five tasks, a minute apart, the newest first: e, d, c, b, a.
async fn five_tasks() -> TestServer {
    let clock = TestClock::new();
    let server = serve(with_agent(obedient).clock(Arc::clone(&clock) as _)).await;
    for (context, text) in [("c1", "a"), ("c1", "ask"), ("c2", "fail"), ("c2", "ask"), ("c 3", "e")] {
        clock.advance(Duration::from_secs(60));
        let mut params = message(text);
        params["message"]["contextId"] = json!(context);
        server.call("SendMessage", params).await.result();
    }
    server
}

fn contexts(page: &Value) -> Vec<&str> {
    page["tasks"].as_array().expect("tasks").iter().map(|task| task["contextId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn p06_filters_come_by_query() {
    let server = five_tasks().await;
    let third = server.call("ListTasks", json!({})).await.result()["tasks"][2]["status"]["timestamp"].clone();
    let third = third.as_str().unwrap().to_owned();
    let since = format!("statusTimestampAfter={third}");
    let escaped = format!("statusTimestampAfter={}", third.replace(':', "%3A"));
    for (query, expected) in [
        ("", &["c 3", "c2", "c2", "c1", "c1"][..]),
        ("contextId=c1", &["c1", "c1"]),
        ("context_id=c1", &["c1", "c1"]),
        ("contextId=c+3", &["c 3"]),
        ("contextId=c%203", &["c 3"]),
        ("contextId=nobody", &[]),
        ("contextId=", &["c 3", "c2", "c2", "c1", "c1"]),
        ("status=TASK_STATE_FAILED", &["c2"]),
        ("status=TASK_STATE_UNSPECIFIED", &["c 3", "c2", "c2", "c1", "c1"]),
        ("status=TASK_STATE_FAILED&status=TASK_STATE_COMPLETED", &["c 3", "c2", "c1"]),
        ("status=TASK_STATE_FAILED,TASK_STATE_COMPLETED", &["c 3", "c2", "c1"]),
        ("status=TASK_STATE_INPUT_REQUIRED&contextId=c1", &["c1"]),
        ("pageSize=2", &["c 3", "c2"]),
        ("page_size=2&unknown=x&&=", &["c 3", "c2"]),
        (since.as_str(), &["c 3", "c2", "c2"]),
        (escaped.as_str(), &["c 3", "c2", "c2"]),
        ("statusTimestampAfter=2999-01-01T00:00:00Z", &[]),
    ] {
        for prefix in ["", "/v1"] {
            let page = get(&server, &format!("{prefix}/tasks?{query}")).await;
            assert_eq!(page.status, 200, "{prefix} {query}: {}", page.body);
            assert_eq!(contexts(&page.body), expected, "{prefix} {query}");
        }
    }
    for (query, artifacts, history) in [
        ("", 0, 5),
        ("includeArtifacts=true", 5, 5),
        ("includeArtifacts=false&historyLength=0", 0, 0),
        ("includeArtifacts=true&historyLength=1", 5, 5),
    ] {
        let page = get(&server, &format!("/tasks?{query}")).await.body;
        let with =
            |name: &str| page["tasks"].as_array().unwrap().iter().filter(|it| it.get(name).is_some()).count();
        assert_eq!((with("artifacts"), with("history")), (artifacts, history), "{query}");
    }
}

#[tokio::test]
async fn p06_pages_follow_each_other_by_query() {
    let server = five_tasks().await;
    for prefix in ["", "/v1"] {
        let (mut token, mut seen) = (String::new(), Vec::new());
        loop {
            let page = get(&server, &format!("{prefix}/tasks?pageSize=2&pageToken={token}")).await.body;
            assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(5), &json!(2)));
            seen.extend(contexts(&page).into_iter().map(str::to_owned));
            token = page["nextPageToken"].as_str().expect("always there").to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, ["c 3", "c2", "c2", "c1", "c1"]);
    }
    // A token is valid for its own filter only, but in every generation.
    let token = get(&server, "/tasks?pageSize=2").await.body["nextPageToken"].as_str().unwrap().to_owned();
    let page = get(&server, &format!("/v1/tasks?pageSize=2&pageToken={token}")).await;
    assert_eq!(contexts(&page.body), ["c2", "c1"]);
    let refused = get(&server, &format!("/tasks?contextId=c1&pageToken={token}")).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn p06_a_query_that_makes_no_sense_names_the_parameter() {
    let server = serve_agent(obedient).await;
    for (query, field) in [
        ("pageSize=0", "pageSize"),
        ("pageSize=101", "pageSize"),
        ("pageSize=-1", "pageSize"),
        ("pageSize=x", "pageSize"),
        ("pageSize=1.5", "pageSize"),
        ("pageSize=99999999999", "pageSize"),
        ("pageSize=1&pageSize=2", "pageSize"),
        ("pageSize=1&page_size=1", "pageSize"),
        ("pageToken=x", "pageToken"),
        ("pageToken=%2e%2e", "pageToken"),
        ("historyLength=-1", "historyLength"),
        ("historyLength=many", "historyLength"),
        ("status=DONE", "status"),
        ("status=TASK_STATE_WORKING&status=DONE", "status[1]"),
        ("status=TASK_STATE_WORKING,", "status[1]"),
        ("statusTimestampAfter=now", "statusTimestampAfter"),
        ("statusTimestampAfter=2026-02-30T00:00:00Z", "statusTimestampAfter"),
        ("statusTimestampAfter=2026-01-01", "statusTimestampAfter"),
        ("statusTimestampAfter=2026-01-01T00:00:00", "statusTimestampAfter"),
        ("includeArtifacts=yes", "includeArtifacts"),
        ("contextId=a%0Ab", "contextId"),
        ("contextId=%ff", "query"),
        ("contextId=%zz", "query"),
        ("a%=b", "query"),
    ] {
        for prefix in ["", "/v1"] {
            let refused = get(&server, &format!("{prefix}/tasks?{query}")).await;
            assert_eq!(refused.status, 400, "{prefix} {query}: {}", refused.body);
            let error = &refused.body["error"];
            assert_eq!((&error["code"], &error["status"]), (&json!(400), &json!("INVALID_ARGUMENT")));
            let details = error["details"].as_array().unwrap();
            assert_eq!(details[0]["reason"], "INVALID_PARAMS", "{query}");
            assert_eq!(details[1]["@type"], "type.googleapis.com/google.rpc.BadRequest", "{query}");
            let violation = &details[1]["fieldViolations"][0];
            assert_eq!(violation["field"], field, "{query}: {error}");
            assert!(violation["description"].as_str().is_some_and(|text| !text.is_empty()));
        }
    }
    for (query, status) in
        [("historyLength=-1", 400), ("historyLength=a", 400), ("historyLength=", 404), ("", 404)]
    {
        for prefix in ["", "/acme", "/v1"] {
            let got = get(&server, &format!("{prefix}/tasks/nobody?{query}")).await;
            assert_eq!(got.status, status, "{prefix} {query}");
        }
    }
}

#[tokio::test]
async fn p02_an_error_names_the_member_and_the_task() {
    let server = serve_agent(obedient).await;
    let missing = get(&server, "/tasks/no%20body").await;
    let error = &missing.body["error"];
    assert_eq!((missing.status, &error["status"]), (404, &json!("NOT_FOUND")));
    assert_eq!(error["details"][0]["metadata"]["taskId"], "no body");
    for (path, body, field) in [
        ("/message:send", r#"{"message":{"messageId":"m","role":"ROLE_USER"}}"#, "message.parts"),
        (
            "/message:send",
            r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":1}]}}"#,
            "message.parts[0].text",
        ),
        ("/message:send", "{}", "message"),
        ("/v1/message:send", r#"{"message":{"messageId":"m","role":"ROLE_USER"}}"#, "message.content"),
        (
            "/v1/message:stream",
            r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":1}]}}"#,
            "message.content[0].text",
        ),
        ("/v1/message:stream", "", "message"),
    ] {
        let version = if path.starts_with("/v1") { "0.3" } else { "1.0" };
        let headers = [("content-type", "application/json"), ("a2a-version", version)];
        let refused = read(request(&server, http::Method::POST, path, &headers, body).await).await;
        let details = &refused.body["error"]["details"];
        assert_eq!((refused.status, &details[0]["reason"]), (400, &json!("INVALID_PARAMS")), "{path} {body}");
        assert_eq!(details[1]["fieldViolations"][0]["field"], field, "{path} {body}: {details}");
    }
    for path in ["/message:send", "/v1/message:send"] {
        let version = if path.starts_with("/v1") { "0.3" } else { "1.0" };
        let headers = [("content-type", "application/json"), ("a2a-version", version)];
        let refused = read(request(&server, http::Method::POST, path, &headers, "{").await).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["details"][0]["reason"]),
            (400, &json!("PARSE_ERROR"))
        );
    }
}

#[tokio::test]
async fn p03_a_body_that_is_too_large_is_refused() {
    let limits = {
        let mut limits = Limits::default();
        limits.max_body_bytes = 1000;
        limits
    };
    let server = serve(with_agent(obedient).limits(limits)).await;
    for (path, version) in
        [("/message:send", "1.0"), ("/acme/message:send", "1.0"), ("/v1/message:stream", "0.3")]
    {
        let headers = [("content-type", "application/json"), ("a2a-version", version)];
        let long = message(&"x".repeat(1000)).to_string();
        let refused = read(request(&server, http::Method::POST, path, &headers, long).await).await;
        assert_eq!(refused.status, 413, "{path}");
        assert_eq!(refused.body["error"]["details"][0]["reason"], "PAYLOAD_TOO_LARGE");
        assert_eq!(refused.body["error"]["code"], 413);
    }
    assert_eq!(server.task_count().await, 0);
}
