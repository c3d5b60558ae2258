//! A foreign web page cannot make a browser on this machine call the server: `Host`, `Origin` and CORS.

use baton_server::{Cors, StartError};
use http::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{Answer, TestServer, message, serve, serve_agent, with_agent};
use crate::speakers::{read, request};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;

/// Every route, with its status for a valid request.
const ROUTES: &[(&str, &str, &[u16])] = &[
    ("POST", "/", &[200]),
    ("POST", "/subscribe", &[400]),
    ("GET", "/tasks", &[200]),
    ("GET", "/tasks/x", &[404]),
    ("POST", "/tasks/x:cancel", &[404]),
    ("GET", "/tasks/x:subscribe", &[404]),
    ("POST", "/message:send", &[400]),
    ("POST", "/message:stream", &[400]),
    ("POST", "/acme/message:send", &[400]),
    ("POST", "/.well-known/message:send", &[400, 404]),
    ("GET", "/v1/tasks", &[200, 400]),
    ("POST", "/v1/message:send", &[400]),
    ("GET", "/v1/card", &[400, 404]),
    ("GET", "/nothing", &[404]),
    ("OPTIONS", "/", &[405]),
    ("DELETE", "/tasks/x/pushNotificationConfigs/y", &[400, 404]),
];

async fn ask(server: &TestServer, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut all = vec![("content-type", "application/json")];
    let version = if path.starts_with("/v1") { "0.3" } else { "1.0" };
    all.push(("a2a-version", version));
    all.extend_from_slice(headers);
    let body = if method == "POST" && path == "/" { LIST } else { "" };
    read(request(server, Method::from_bytes(method.as_bytes()).unwrap(), path, &all, body).await).await
}

#[tokio::test]
async fn foreign_names_and_pages_are_refused_everywhere() {
    let server = serve_agent(obedient).await;
    for (method, path, fine) in ROUTES {
        let answer = ask(&server, method, path, &[]).await;
        assert!(fine.contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
        for (headers, status) in [
            (&[("host", "evil.test")][..], 421),
            (&[("host", "evil.test:3000")], 421),
            (&[("host", "127.0.0.1.evil.test")], 421),
            (&[("host", "localhost.evil.test")], 421),
            (&[("host", "localhost.")], 421),
            (&[("host", "x.localhost")], 421),
            (&[("host", "127.1")], 421),
            (&[("host", "0.0.0.0")], 421),
            (&[("host", "[::]")], 421),
            (&[("host", "[::ffff:127.0.0.1]")], 421),
            (&[("host", "169.254.169.254")], 421),
            (&[("origin", "null")], 403),
            (&[("origin", "http://evil.test")], 403),
            (&[("origin", "https://localhost.evil.test")], 403),
            (&[("origin", "http://localhost@evil.test")], 403),
            (&[("origin", "http://localhost/")], 403),
            (&[("origin", "file://localhost")], 403),
            (&[("origin", "localhost")], 403),
            (&[("origin", "")], 403),
            (&[("sec-fetch-site", "cross-site")], 403),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://evil.test")], 403),
        ] {
            let answer = ask(&server, method, path, headers).await;
            assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.body);
            assert!(answer.body.as_str().is_some_and(|text| text.len() > 30), "it says why: {}", answer.body);
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
}

#[tokio::test]
async fn this_machine_and_pages_of_it_are_served() {
    let server = serve_agent(obedient).await;
    for headers in [
        &[("host", "localhost")][..],
        &[("host", "LOCALHOST:3000")],
        &[("host", "127.0.0.1")],
        &[("host", "127.9.9.9:1")],
        &[("host", "[::1]:3000")],
        &[("origin", "http://localhost:5173")],
        &[("origin", "http://127.0.0.1")],
        &[("origin", "https://[::1]:8443")],
        &[("origin", "http://localhost:5173"), ("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
    ] {
        assert_eq!(ask(&server, "POST", "/", headers).await.status, 200, "{headers:?}");
    }
}

#[tokio::test]
async fn the_card_and_the_health_of_the_server_are_for_everybody() {
    let server = serve_agent(obedient).await;
    let foreign = [("host", "evil.test"), ("origin", "http://evil.test"), ("sec-fetch-site", "cross-site")];
    for path in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
        let answer = ask(&server, "GET", path, &foreign).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")), "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        let status = ask(&server, "GET", path, &foreign).await.status;
        assert!(![403, 421].contains(&status), "{path}: {status}");
    }
}

#[tokio::test]
async fn other_names_can_be_allowed() {
    let names = vec!["agent.example".to_owned(), "other.example:8443".to_owned()];
    let builder = with_agent(obedient).allowed_hosts(names).public_url("https://public.example/base");
    let server = serve(builder).await;
    for (headers, status) in [
        (&[("host", "agent.example")][..], 200),
        (&[("host", "Agent.Example:9")], 200),
        (&[("host", "other.example:8443")], 200),
        (&[("host", "other.example")], 421),
        (&[("host", "public.example")], 200),
        (&[("host", "localhost")], 200),
        (&[("host", "evil.test")], 421),
        (&[("origin", "https://agent.example")], 200),
        (&[("origin", "https://public.example")], 200),
        (&[("origin", "https://evil.test")], 403),
    ] {
        assert_eq!(ask(&server, "POST", "/", headers).await.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn settings_that_make_no_sense_keep_the_server_from_starting() {
    let hosts = |host: &str| with_agent(obedient).allowed_hosts(vec![host.to_owned()]);
    let cors = |origin: &str| with_agent(obedient).cors(Cors::of([origin]));
    for (builder, named) in [
        (hosts("https://agent.example"), "allowed_hosts: `https://agent.example`"),
        (hosts("a b"), "allowed_hosts: `a b`"),
        (cors("app.example"), "cors: `app.example`"),
        (cors("https://app.example/path"), "cors: `https://app.example/path`"),
    ] {
        match builder.build().await {
            Err(StartError::Setting(bad)) => assert!(bad.to_string().starts_with(named), "{bad}"),
            other => panic!("{named}: {other:?}"),
        }
    }
}

const APP: &str = "https://app.example";

async fn preflight(server: &TestServer, path: &str, origin: &str) -> Answer {
    let asked = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,a2a-version"),
        ("sec-fetch-site", "cross-site"),
    ];
    read(request(server, Method::OPTIONS, path, &asked, "").await).await
}

#[tokio::test]
async fn pages_that_are_named_may_call() {
    let server = serve(with_agent(obedient).cors(Cors::of([APP, "http://other.example:8080"]))).await;
    for path in ["/", "/subscribe", "/message:send", "/v1/message:send", "/tasks/x"] {
        for origin in [APP, "http://other.example:8080"] {
            let answer = preflight(&server, path, origin).await;
            assert_eq!(answer.status, 204, "{path}");
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin), "{path}");
            let headers = answer.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
            for name in [
                "content-type",
                "authorization",
                "a2a-version",
                "a2a-extensions",
                "x-a2a-extensions",
                "last-event-id",
                "x-api-key",
            ] {
                assert!(headers.split(", ").any(|header| header == name), "{name} in {headers}");
            }
            let methods = answer.header("access-control-allow-methods").unwrap();
            assert!(["GET", "POST", "DELETE"].iter().all(|method| methods.contains(method)), "{methods}");
            assert_eq!(answer.header("vary"), Some("Origin"));
        }
        assert_eq!(preflight(&server, path, "https://evil.test").await.status, 403, "{path}");
    }
    // The call itself: success, error and stream.
    let send = |method: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": message("hi")}).to_string()
    };
    for (body, status) in
        [(send("SendMessage"), 200), (send("SendStreamingMessage"), 200), ("{".to_owned(), 400)]
    {
        let headers = [("origin", APP), ("content-type", "application/json"), ("a2a-version", "1.0")];
        let answer = read(request(&server, Method::POST, "/", &headers, body).await).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some(APP)));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        for name in ["A2A-Idempotent-Replay", "A2A-Extensions", "X-A2A-Extensions", "Retry-After"] {
            assert!(exposed.contains(name), "{exposed}");
        }
    }
    // Without an Origin there are no CORS headers, but `Vary` for caches.
    let answer = ask(&server, "POST", "/", &[]).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    assert_eq!(answer.header("vary"), Some("Origin"));
    // The card stays open to all.
    let answer = preflight(&server, "/.well-known/agent-card.json", "https://evil.test").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some("*")));
}

#[tokio::test]
async fn all_pages_may_call_where_that_is_wanted() {
    let server = serve(with_agent(obedient).cors(Cors::of(["*"]))).await;
    let answer = preflight(&server, "/", "https://anything.example").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some("*")));
    let answer = ask(&server, "POST", "/", &[("origin", "https://anything.example")]).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
    let asked = [
        ("origin", "https://anything.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-private-network", "true"),
    ];
    let answer = read(request(&server, Method::OPTIONS, "/", &asked, "").await).await;
    assert_eq!(answer.header("access-control-allow-private-network"), Some("true"));
    assert_eq!(answer.body, Value::String(String::new()));
}

/// For a mounted router these checks are left to the application.
#[tokio::test]
async fn a_router_of_ones_own_makes_no_checks_of_ours() {
    use tower::Service as _;
    let server = with_agent(obedient).build().await.unwrap();
    let mut router = server.router();
    let request = http::Request::post("/")
        .header("host", "anything.example")
        .header("origin", "https://anything.example")
        .header("a2a-version", "1.0")
        .header("content-type", "application/json")
        .body(axum::body::Body::from(LIST))
        .unwrap();
    assert_eq!(router.call(request).await.unwrap().status(), 200);
}
