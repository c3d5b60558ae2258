//! S-16 and ruling 4: authentication uses headers only and comes before everything else; owners and tenants see nothing of
//! each other's tasks.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::body::Body;
use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_protocol::operation::Operation;
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{Access, AuthRequest, Authenticator, Challenge, Principal, TlsPeer};
use baton_server::{Mount, Server};
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Request};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tower::Service as _;

use crate::agents::obedient;
use crate::callers::{call_as, serve_owners};
use crate::harness::{TestServer, id, message, serve, state, with_agent};
use crate::socket;

const GOOD: &str = r#"{"jsonrpc":"2.0","id":5,"method":"ListTasks"}"#;

#[tokio::test]
async fn s16_who_is_nobody_is_refused_before_anything_is_read() {
    let server = serve_owners().await;
    let json = ("content-type", "application/json");
    let large = " ".repeat(5 * 1024);
    for (headers, body) in [
        (vec![json, ("a2a-version", "1.0")], GOOD),
        (vec![json, ("a2a-version", "1.0"), ("authorization", "Bearer x")], GOOD),
        // Authentication fails first, whatever else is wrong with the request.
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
async fn s16_a_refusal_before_the_body_says_that_the_connection_ends() {
    let server = serve_owners().await;
    let whole = socket::request(b"", GOOD.as_bytes());
    let head = &whole[..whole.len() - GOOD.len()];
    let mut stream = socket::connect(&server).await;
    stream.write_all(head).await.unwrap();
    let reply = socket::one_reply(&mut stream).await;
    assert_eq!((reply.status, reply.header("connection")), (401, Some("close")), "{}", reply.head);
    // Without a body it stays open for the next attempt.
    let mut stream = socket::connect(&server).await;
    for _ in 0..3 {
        stream.write_all(b"GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let reply = socket::one_reply(&mut stream).await;
        assert_eq!((reply.status, reply.header("connection")), (401, None), "{}", reply.head);
    }
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
        // The same messageId for every owner: it is only compared with the owner's own messages.
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
        assert_eq!(state(got.result()), "WORKING", "the task was not changed");
    }
}

/// Records its calls, and denies cancellation to everybody.
#[derive(Debug, Default)]
struct Recorder {
    callers: Mutex<Vec<String>>,
    calls: Mutex<Vec<String>>,
}

#[async_trait]
impl Authenticator for Recorder {
    async fn authenticate(&self, request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        let AuthRequest { agents, tenant, method, uri, peer, tls_peer, .. } = request;
        let certificates = tls_peer.map_or(0, |peer| peer.certificates.len());
        let peer = peer.map(|peer| peer.is_loopback());
        let seen = format!("{agents:?} {tenant:?} {method} {uri} {peer:?} {certificates}");
        self.callers.lock().unwrap().push(seen);
        if request.headers.contains_key("authorization") {
            return Ok(Principal::new("ann")?);
        }
        let error = Error::of(ErrorKind::Unauthenticated);
        let challenge = HeaderValue::from_static("Bearer realm=\"here\"");
        Err(Challenge::new(error).with_header(WWW_AUTHENTICATE, challenge))
    }

    fn authorize(&self, principal: &Principal, access: &Access<'_>) -> Result<(), Challenge> {
        let Access { agent, tenant, operation, .. } = access;
        let asked = format!("{} {agent} {tenant:?} {operation:?}", principal.owner());
        self.calls.lock().unwrap().push(asked);
        if *operation == Operation::CancelTask {
            let scope = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
            return Err(Challenge::new(Error::of(ErrorKind::Forbidden)).with_header(WWW_AUTHENTICATE, scope));
        }
        Ok(())
    }
}

const KNOWN: (&str, &str) = ("authorization", "Bearer x");

#[tokio::test]
async fn s16_who_calls_is_asked_once_with_all_that_is_known_before_the_body() {
    let recorder = Arc::new(Recorder::default());
    let server = serve(with_agent(obedient).authenticator(recorder.clone())).await;
    server.call_with("ListTasks", json!({"tenant": "t"}), &[KNOWN]).await.result();
    let listed = server.http.get(format!("{}/t/tasks?pageSize=3", server.url)).header("a2a-version", "1.0");
    assert_eq!(listed.header(KNOWN.0, KNOWN.1).send().await.unwrap().status(), 200);
    let seen = std::mem::take(&mut *recorder.callers.lock().unwrap());
    assert_eq!(
        seen,
        [
            "[\"default\"] None POST / Some(true) 0",
            "[\"default\"] Some(\"t\") GET /t/tasks?pageSize=3 Some(true) 0"
        ]
    );

    // Behind another listener: no peer address, but a certificate, and the path as it was sent.
    let mut app = axum::Router::new().nest("/agents/x", server.server.router());
    let mut request = Request::get("/agents/x/tasks").header("a2a-version", "1.0");
    let tls = request.extensions_mut().unwrap();
    tls.insert(TlsPeer::new(vec![bytes::Bytes::from_static(b"certificate")]));
    let response = app.call(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(*recorder.callers.lock().unwrap(), ["[\"default\"] None GET /agents/x/tasks None 1"]);
}

#[tokio::test]
async fn s16_a_challenge_says_in_every_binding_how_to_come_back() {
    let server = serve(with_agent(obedient).authenticator(Arc::new(Recorder::default()))).await;
    let answer = server.call("ListTasks", json!({})).await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer realm=\"here\"")));
    for path in ["/tasks", "/v1/tasks", "/no/such/path", "/tasks/t:cancel"] {
        let answer = server.http.get(format!("{}{path}", server.url)).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{path}");
        assert_eq!(answer.headers()["www-authenticate"], "Bearer realm=\"here\"", "{path}");
    }
}

#[tokio::test]
async fn s16_what_a_caller_may_do_is_asked_after_decoding_and_before_anything_is_done() {
    let recorder = Arc::new(Recorder::default());
    let server = serve(with_agent(obedient).authenticator(recorder.clone())).await;
    let mut params = message("hold");
    params["tenant"] = json!("t");
    params["configuration"] = json!({"returnImmediately": true});
    let answer = server.call_with("SendMessage", params, &[KNOWN]).await;
    let task = json!({"id": answer.result()["task"]["id"], "tenant": "t"});
    // A decoding error comes before the permission check.
    assert_eq!(server.call_with("CancelTask", json!({"tenant": "t"}), &[KNOWN]).await.error_code(), -32602);
    let refused = server.call_with("CancelTask", task.clone(), &[KNOWN]).await;
    assert_eq!(refused.body["error"]["data"][0]["reason"], "PERMISSION_DENIED");
    assert_eq!(state(server.call_with("GetTask", task, &[KNOWN]).await.result()), "WORKING");
    let asked = ["SendMessage", "CancelTask", "GetTask"].map(|it| format!("ann default \"t\" {it}"));
    assert_eq!(*recorder.calls.lock().unwrap(), asked);
}

#[tokio::test]
async fn s16_nobody_can_have_the_name_of_the_anonymous() {
    assert!(Principal::new("anonymous").is_err());
    assert!(Principal::anonymous().is_anonymous());
    let server = serve_owners().await;
    let answer = call_as(&server, "anonymous", "ListTasks", json!({})).await;
    assert_eq!((answer.status, answer.error_code()), (401, -32000));
}

/// One agent at the root, one with a tenant.
async fn serve_two(recorder: &Arc<Recorder>) -> TestServer {
    let mount = |id: &str| {
        let card = AgentCard::new(id, "One of two", "1");
        Mount::new(id, card).task_skill(AgentSkill::new("test", "test", "test"), obedient)
    };
    let host = Server::host().mount(mount("root").path("/")).mount(mount("other").tenant("t"));
    serve(host.authenticator(recorder.clone())).await
}

#[tokio::test]
async fn s16_at_an_address_that_agents_share_the_caller_is_found_for_all_and_allowed_for_one() {
    let recorder = Arc::new(Recorder::default());
    let server = serve_two(&recorder).await;
    let rpc = |method: &str, tenant: &str| {
        let params =
            if tenant.is_empty() { json!({"id": "x"}) } else { json!({"id": "x", "tenant": tenant}) };
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let old = |method: &str| rpc(method, "");
    // Path, version, body; the agents that may be meant; the call that is allowed or not; the answer's status.
    for (method, path, version, body, agents, call) in [
        ("POST", "/", "1.0", rpc("CancelTask", ""), "[\"other\", \"root\"] None", "root \"\""),
        ("POST", "/", "1.0", rpc("CancelTask", "t"), "[\"other\", \"root\"] None", "other \"t\""),
        ("POST", "/t", "1.0", rpc("CancelTask", ""), "[\"other\"] Some(\"t\")", "other \"t\""),
        ("POST", "/", "0.3", old("tasks/cancel"), "[\"other\", \"root\"] None", "root \"\""),
        ("POST", "/", "0.1", old("tasks/cancel"), "[\"other\", \"root\"] None", "root \"\""),
        ("POST", "/tasks/x:cancel", "1.0", String::new(), "[\"other\", \"root\"] None", "root \"\""),
        ("POST", "/t/tasks/x:cancel", "1.0", String::new(), "[\"other\"] Some(\"t\")", "other \"t\""),
        ("POST", "/v1/tasks/x:cancel", "0.3", String::new(), "[\"other\", \"root\"] None", "root \"\""),
    ] {
        let request = || {
            let request = server.http.request(method.parse().unwrap(), format!("{}{path}", server.url));
            let request = request.header("a2a-version", version).body(body.clone());
            if body.is_empty() { request } else { request.header("content-type", "application/json") }
        };
        let refused = request().send().await.unwrap();
        assert_eq!(refused.status(), 401, "{path} {body}");
        assert_eq!(refused.headers()["www-authenticate"], "Bearer realm=\"here\"", "{path} {body}");
        let forbidden = request().header(KNOWN.0, KNOWN.1).send().await.unwrap();
        assert_eq!(forbidden.status(), 403, "{path} {body}");
        let challenge = &forbidden.headers()["www-authenticate"];
        assert_eq!(challenge, "Bearer error=\"insufficient_scope\"", "{path} {body}");
        let asked = std::mem::take(&mut *recorder.callers.lock().unwrap());
        assert!(
            asked.len() == 2 && asked.iter().all(|it| it.starts_with(agents)),
            "{path} {body}: {asked:?}"
        );
        let calls = std::mem::take(&mut *recorder.calls.lock().unwrap());
        assert_eq!(calls, [format!("ann {call} CancelTask")], "{path} {body}");
    }
    let subscribe = server.http.post(format!("{}/subscribe", server.url)).body("{}").send().await.unwrap();
    assert_eq!(subscribe.headers()["www-authenticate"], "Bearer realm=\"here\"");
}
