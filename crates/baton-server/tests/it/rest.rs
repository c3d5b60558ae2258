//! The HTTP+JSON binding: every route of 1.0 and of 0.3, methods, media types, queries and error bodies.

use http::Method;
use serde_json::json;

use crate::agents::obedient;
use crate::harness::{Answer, TestServer, message, serve_agent};
use crate::speakers::{Events, read, request, task};

const V1: (&str, &str) = ("a2a-version", "1.0");
const JSON: (&str, &str) = ("content-type", "application/json");

/// `ask` is a method and a path. No answer may be a redirect.
async fn ask(server: &TestServer, ask: &str, headers: &[(&str, &str)], body: &str) -> reqwest::Response {
    let (method, path) = ask.split_once(' ').expect("a method and a path");
    let response = request(server, method.parse().unwrap(), path, headers, body.to_owned()).await;
    let asked = reqwest::Url::parse(&format!("{}{path}", server.url)).unwrap();
    assert_eq!(*response.url(), asked, "a redirect was followed");
    assert!(!response.status().is_redirection(), "{ask}: {}", response.status());
    response
}

async fn answer(server: &TestServer, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    read(ask(server, line, headers, body).await).await
}

/// The reason in an error body; checks that the body has the form of its generation.
#[track_caller]
fn reason(answer: &Answer, v1: bool) -> String {
    let Answer { status, body, .. } = answer;
    let error = &body["error"];
    assert_eq!(error["code"], *status, "{body}");
    assert!(
        error["status"].as_str().is_some_and(|it| it.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
    );
    assert!(error["message"].as_str().is_some_and(|it| !it.is_empty()), "{body}");
    let info = &error["details"][0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{body}");
    assert_eq!(info["domain"], "a2a-protocol.org", "{body}");
    for value in info["metadata"].as_object().into_iter().flat_map(|it| it.values()) {
        assert!(value.is_string(), "{body}");
    }
    // Python clients of 0.3 look for the message at the top.
    assert_eq!(body.get("message").is_some(), !v1, "{body}");
    info["reason"].as_str().expect("a reason").to_owned()
}

/// Starts a task with an unusual id, which clients can choose in 0.1 only.
async fn start(server: &TestServer, id: &str) {
    let sent = crate::speakers::legacy(server, "tasks/send", task(id, "hold")).await;
    assert_eq!(sent.result()["id"], id);
}

#[tokio::test]
async fn p03_every_route_answers_with_and_without_a_slash_at_its_end() {
    for prefix in ["", "/acme", "/v1"] {
        let v1 = prefix != "/v1";
        let server = serve_agent(obedient).await;
        let headers: &[_] = if v1 { &[V1, JSON] } else { &[JSON] };
        let body = |text: &str, wait: bool| {
            let mut params = message(text);
            params["configuration"] = json!({"returnImmediately": !wait, "blocking": wait});
            params.to_string()
        };
        for slash in ["", "/"] {
            let line = |method: &str, path: &str| format!("{method} {prefix}{path}{slash}");
            let sent = answer(&server, &line("POST", "/message:send"), headers, &body("hold", false)).await;
            assert_eq!(sent.status, 200, "{}", sent.body);
            let id = sent.body["task"]["id"].as_str().expect("a task").to_owned();
            let got = answer(&server, &line("GET", &format!("/tasks/{id}")), headers, "").await;
            assert_eq!((got.status, &got.body["id"]), (200, &json!(id)));
            let list = answer(&server, &line("GET", "/tasks"), headers, "").await;
            assert_eq!(list.body["tasks"][0]["id"], id);
            for method in ["GET", "POST"] {
                let line = line(method, &format!("/tasks/{id}:subscribe"));
                let mut events = Events::open(ask(&server, &line, headers, "").await).await.ok().unwrap();
                assert_eq!(events.next().await.unwrap().data["task"]["id"], id);
            }
            let line_of_stream = line("POST", "/message:stream");
            let streamed = ask(&server, &line_of_stream, headers, &body("go", true)).await;
            let events = Events::open(streamed).await.ok().unwrap().rest().await;
            assert!(events[0].data.get("task").is_some() && events.len() > 2);
            let canceled = answer(&server, &line("POST", &format!("/tasks/{id}:cancel")), headers, "").await;
            let state = if v1 { "TASK_STATE_CANCELED" } else { "TASK_STATE_CANCELLED" };
            assert_eq!(canceled.body["status"]["state"], state);
            let configs = format!("/tasks/{id}/pushNotificationConfigs");
            let push = if v1 { 400 } else { 501 };
            for (method, path, body) in [
                (
                    "POST",
                    configs.clone(),
                    r#"{"url":"https://example.com","config":{"pushNotificationConfig":{"url":"https://example.com"}}}"#,
                ),
                ("GET", configs.clone(), ""),
                ("GET", format!("{configs}/c"), ""),
                ("DELETE", format!("{configs}/c"), ""),
            ] {
                let refused = answer(&server, &line(method, &path), headers, body).await;
                assert_eq!(reason(&refused, v1), "PUSH_NOTIFICATION_NOT_SUPPORTED", "{method} {path}");
                assert_eq!(refused.status, push);
            }
            let (card, status, expected_reason) = if v1 {
                ("/extendedAgentCard", 400, "UNSUPPORTED_OPERATION")
            } else {
                ("/card", 404, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
            };
            let refused = answer(&server, &line("GET", card), headers, "").await;
            assert_eq!((refused.status, reason(&refused, v1).as_str()), (status, expected_reason));
        }
    }
}

#[tokio::test]
async fn p03_the_last_colon_splits_and_ids_are_decoded_once() {
    let server = serve_agent(obedient).await;
    for (id, written) in [
        ("a:b", "a:b"),
        ("a:cancel", "a%3Acancel"),
        ("a:subscribe:x", "a:subscribe:x"),
        ("a/b", "a%2Fb"),
        ("a b+c", "a%20b+c"),
        ("100%", "100%25"),
        ("a%20b", "a%2520b"),
        ("ünï-👩‍🚀", "%C3%BCn%C3%AF-%F0%9F%91%A9%E2%80%8D%F0%9F%9A%80"),
        ("tasks", "tasks"),
        ("pushNotificationConfigs", "pushNotificationConfigs"),
        ("a?b#c", "a%3Fb%23c"),
    ] {
        start(&server, id).await;
        for (prefix, headers) in [("", &[V1, JSON][..]), ("/v1", &[JSON])] {
            let got = answer(&server, &format!("GET {prefix}/tasks/{written}"), headers, "").await;
            assert_eq!((got.status, &got.body["id"]), (200, &json!(id)), "{written}: {}", got.body);
        }
        let line = format!("POST /tasks/{written}:cancel");
        let canceled = answer(&server, &line, &[V1, JSON], "").await;
        assert_eq!(canceled.body["status"]["state"], "TASK_STATE_CANCELED", "{line}: {}", canceled.body);
    }
    // Not a known verb after the colon: it is part of the id.
    let missing = answer(&server, "GET /tasks/a:b:pause", &[V1], "").await;
    assert_eq!((missing.status, reason(&missing, true).as_str()), (404, "TASK_NOT_FOUND"));
}

/// RFC 9110: the answer of GET without the body. `http2_readers` tests the same in HTTP/2.
#[tokio::test]
async fn p03_head_is_answered_wherever_get_is() {
    let server = serve_agent(obedient).await;
    let task = server.send("say hi").await["id"].as_str().unwrap().to_owned();
    let held = server.start("hold").await["id"].as_str().unwrap().to_owned();
    for (prefix, version, card) in [("", "1.0", "/extendedAgentCard"), ("/v1", "0.3", "/card")] {
        for path in [
            "/tasks".to_owned(),
            format!("/tasks/{task}"),
            "/tasks/missing".to_owned(),
            format!("/tasks/{held}:subscribe"),
            format!("/tasks/{task}/pushNotificationConfigs"),
            format!("/tasks/{task}/pushNotificationConfigs/c"),
            card.to_owned(),
        ] {
            let mut answers = Vec::new();
            for method in [Method::GET, Method::HEAD] {
                let path = format!("{prefix}{path}");
                let answer = request(&server, method.clone(), &path, &[("a2a-version", version)], "").await;
                let header = |name: &str| answer.headers().get(name).cloned();
                answers.push((answer.status(), header("content-type"), header("content-length")));
                if method == Method::HEAD {
                    assert_eq!(answer.bytes().await.unwrap(), "", "{path}");
                }
            }
            assert_eq!(answers[0], answers[1], "{prefix}{path}");
            assert_ne!(answers[1].0, 405, "{prefix}{path}");
        }
    }
}

#[tokio::test]
async fn p03_the_wrong_method_is_told_the_right_one() {
    let server = serve_agent(obedient).await;
    for (path, allow) in [
        ("/message:send", "POST"),
        ("/message:stream", "POST"),
        ("/tasks", "GET, HEAD"),
        ("/tasks/a", "GET, HEAD"),
        ("/tasks/a:cancel", "POST"),
        ("/tasks/a:subscribe", "GET, HEAD, POST"),
        ("/tasks/a/pushNotificationConfigs", "GET, HEAD, POST"),
        ("/tasks/a/pushNotificationConfigs/c", "GET, HEAD, DELETE"),
    ] {
        for (prefix, version) in [("", "1.0"), ("/acme", "1.0"), ("/v1", "0.3")] {
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
                if allow.contains(method) {
                    continue;
                }
                let line = format!("{method} {prefix}{path}");
                let refused = answer(&server, &line, &[("a2a-version", version)], "").await;
                assert_eq!((refused.status, refused.header("allow")), (405, Some(allow)), "{line}");
                reason(&refused, prefix != "/v1");
            }
        }
    }
    for path in ["/extendedAgentCard", "/acme/extendedAgentCard", "/v1/card"] {
        let refused = answer(&server, &format!("POST {path}"), &[], "{}").await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")), "{path}");
    }
    for path in ["/nothing", "/v1", "/v1/nothing", "/acme/nothing", "/tasks/a/b", "/a/b/tasks", "//tasks"] {
        let refused = answer(&server, &format!("GET {path}"), &[V1], "").await;
        assert_eq!(refused.status, 404, "{path}");
        assert_eq!(reason(&refused, !path.starts_with("/v1")), "METHOD_NOT_FOUND", "{path}");
    }
}

#[tokio::test]
async fn p07_the_kind_of_json_that_came_goes_out() {
    let server = serve_agent(obedient).await;
    let (plain, own) = ("application/json", "application/a2a+json");
    for (content_type, accept, expected) in [
        (Some(plain), None, plain),
        (Some(own), None, own),
        (Some("Application/A2A+JSON; charset=utf-8"), None, own),
        (Some("application/json; charset=utf-8"), None, plain),
        (Some(plain), Some(own), plain),
        (Some(own), Some(plain), own),
        (None, None, own),
    ] {
        let mut headers = vec![V1];
        headers.extend(content_type.map(|it| ("content-type", it)));
        headers.extend(accept.map(|it| ("accept", it)));
        let sent = answer(&server, "POST /message:send", &headers, &message("go").to_string()).await;
        assert_eq!((sent.status, sent.header("content-type")), (200, Some(expected)), "{headers:?}");
    }
    for (accept, expected) in [
        (None, own),
        (Some("*/*"), own),
        (Some(plain), plain),
        (Some(own), own),
        (Some("application/a2a+json, application/json"), own),
        (Some("text/html"), own),
    ] {
        let mut headers = vec![V1];
        headers.extend(accept.map(|it| ("accept", it)));
        for line in ["GET /tasks", "GET /tasks/nobody", "GET /nowhere"] {
            let got = answer(&server, line, &headers, "").await;
            assert_eq!(got.header("content-type"), Some(expected), "{line} {accept:?}");
        }
        let older = answer(&server, "GET /v1/tasks", &headers[1..], "").await;
        assert_eq!(older.header("content-type"), Some(plain), "0.3 knows one kind");
    }
    for wrong in
        ["text/plain", "application/xml", "application/x-www-form-urlencoded", "application/jsonl", "\u{ff}"]
    {
        for (line, v1) in [("POST /message:send", true), ("POST /v1/message:send", false)] {
            let version = if v1 { V1 } else { ("a2a-version", "") };
            let refused =
                answer(&server, line, &[version, ("content-type", wrong)], &message("go").to_string()).await;
            assert_eq!(refused.status, 415, "{wrong}");
            assert_eq!(refused.body["error"]["details"], json!([]), "not an A2A error, so no reason");
        }
    }
}

#[tokio::test]
async fn p07_the_version_must_fit_the_path() {
    let server = serve_agent(obedient).await;
    for (line, version, fits) in [
        ("GET /tasks", Some("1.0"), true),
        ("GET /tasks", Some("1.0.1"), true),
        ("GET /tasks?A2A-Version=1.0", None, true),
        ("GET /tasks?a2a-version=1.0", Some(""), true),
        ("GET /tasks", None, false),
        ("GET /tasks", Some("0.3"), false),
        ("GET /tasks?A2A-Version=1.0", Some("0.3"), false),
        ("GET /tasks", Some("2.0"), false),
        ("GET /acme/tasks", None, false),
        ("GET /v1/tasks", None, true),
        ("GET /v1/tasks", Some(""), true),
        ("GET /v1/tasks", Some("0.3"), true),
        ("GET /v1/tasks", Some("0.2.5"), true),
        ("GET /v1/tasks", Some("1.0"), false),
        ("GET /v1/tasks", Some("0.1"), false),
        ("GET /v1/tasks", Some("9"), false),
    ] {
        let headers: Vec<_> = version.map(|it| ("a2a-version", it)).into_iter().collect();
        let got = answer(&server, line, &headers, "").await;
        assert_eq!(got.status, if fits { 200 } else { 400 }, "{line} {version:?}: {}", got.body);
        if !fits {
            assert_eq!(reason(&got, !line.contains("/v1")), "VERSION_NOT_SUPPORTED", "{line} {version:?}");
        }
    }
}

#[tokio::test]
async fn p03_a_cancel_needs_no_body() {
    let server = serve_agent(obedient).await;
    let bodies =
        ["", "{}", "null", " \n", r#"{"metadata":{"why":"bored"}}"#, r#"{"id":"another","name":"tasks/x"}"#];
    for prefix in ["", "/v1"] {
        let headers: &[_] = if prefix.is_empty() { &[V1, JSON] } else { &[JSON] };
        for (number, body) in bodies.iter().enumerate() {
            let id = format!("t{prefix}{number}").replace('/', "-");
            start(&server, &id).await;
            let canceled = answer(&server, &format!("POST {prefix}/tasks/{id}:cancel"), headers, body).await;
            assert_eq!(
                (canceled.status, &canceled.body["id"]),
                (200, &json!(id)),
                "{body}: {}",
                canceled.body
            );
        }
        for (body, status) in
            [("[]", 400), ("\"x\"", 400), ("{", 400), ("{}{}", 400), (r#"{"metadata":1}"#, 400)]
        {
            start(&server, "kept").await;
            let refused = answer(&server, &format!("POST {prefix}/tasks/kept:cancel"), headers, body).await;
            assert_eq!(refused.status, status, "{prefix} {body}: {}", refused.body);
        }
    }
}
