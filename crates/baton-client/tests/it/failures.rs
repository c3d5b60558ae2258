//! P-09: what is sent again and what is not, and answers that are too large, too slow or wrong.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use baton_client::protocol::ErrorKind;
use baton_client::protocol::domain::{TaskId, TaskState};
use baton_client::{Client, Retries, SizeLimits, Timeouts, TransportKind};
use tokio::net::TcpListener;

use crate::harness::{obedient, quick, scripted_client, serve, serve_bytes, serve_router, with_agent};

/// The bodies that came, and how many are refused first.
#[derive(Clone, Default)]
struct Refusals {
    bodies: Arc<Mutex<Vec<String>>>,
    first: usize,
    status: StatusCode,
    retry_after: Option<&'static str>,
}

fn member<'a>(body: &'a str, name: &str) -> &'a str {
    body.split(&format!("\"{name}\":")).nth(1).and_then(|rest| rest.split([',', '}']).next()).unwrap()
}

async fn refuse_first(State(refusals): State<Refusals>, body: String) -> Response {
    let count = {
        let mut bodies = refusals.bodies.lock().unwrap();
        bodies.push(body.clone());
        bodies.len()
    };
    if count <= refusals.first {
        let mut answer = (refusals.status, "busy").into_response();
        if let Some(after) = refusals.retry_after {
            answer.headers_mut().insert(header::RETRY_AFTER, after.parse().unwrap());
        }
        return answer;
    }
    let task = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
    let id = member(&body, "id");
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{task}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

#[tokio::test]
async fn p09_a_busy_agent_is_asked_again_with_the_same_message() {
    for (status, retry_after, first, expected) in [
        (StatusCode::SERVICE_UNAVAILABLE, Some("0"), 2, Ok(3)),
        (StatusCode::TOO_MANY_REQUESTS, Some("0"), 1, Ok(2)),
        // More often than the options allow.
        (StatusCode::SERVICE_UNAVAILABLE, Some("0"), 9, Err(4)),
        // It did not say when, or too late.
        (StatusCode::SERVICE_UNAVAILABLE, None, 1, Err(1)),
        (StatusCode::SERVICE_UNAVAILABLE, Some("86400"), 1, Err(1)),
        (StatusCode::INTERNAL_SERVER_ERROR, Some("0"), 1, Err(1)),
    ] {
        let refusals = Refusals { first, status, retry_after, ..Refusals::default() };
        let router = Router::new().route("/", post(refuse_first)).with_state(refusals.clone());
        let client = scripted_client(quick(), &serve_router(router).await);
        let sent = client.send("hello").await;
        let bodies = refusals.bodies.lock().unwrap().clone();
        match expected {
            Ok(count) => {
                assert_eq!(sent.unwrap().task().unwrap().status.state, TaskState::Completed);
                assert_eq!(bodies.len(), count);
            }
            Err(count) => {
                let error = sent.unwrap_err();
                assert_eq!(error.agent().unwrap().http_status(), Some(status.as_u16()));
                assert_eq!(bodies.len(), count, "{error}");
            }
        }
        let ids: Vec<_> = bodies.iter().map(|body| member(body, "messageId")).collect();
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
    }
}

/// The agent may have got the message: it is sent once, unless the user says otherwise. Reads are repeated.
#[tokio::test]
async fn p09_a_send_of_unknown_fate_is_not_repeated() {
    let partial = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"json";
    for (uncertain, connections) in [(false, 1), (true, 4)] {
        let (url, counted) = serve_bytes(partial).await;
        let wait = Duration::from_millis(1);
        let retries = Retries { uncertain, first_wait: wait, ..Retries::default() };
        let client = scripted_client(quick().retries(retries), &url);
        let error = client.send("hello").await.unwrap_err();
        assert_eq!(error.transport().unwrap().kind(), TransportKind::Cut, "{error}");
        assert_eq!(*counted.borrow(), connections);
    }
    let (url, counted) = serve_bytes(partial).await;
    let client = scripted_client(quick(), &url);
    client.get(&TaskId::parse("t").unwrap()).await.unwrap_err();
    assert_eq!(*counted.borrow(), 4);
}

#[tokio::test]
async fn p09_nobody_there_is_tried_again_and_told() {
    let client = scripted_client(quick(), "http://127.0.0.1:1");
    let error = client.send("hello").await.unwrap_err();
    let transport = error.transport().unwrap();
    assert_eq!(transport.kind(), TransportKind::Connect, "{error}");
    assert!(!transport.may_have_reached());
}

/// The agent comes up between two tries.
#[tokio::test]
async fn p09_an_agent_that_starts_late_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}");
    let retries = Retries {
        most: 200,
        first_wait: Duration::from_millis(20),
        longest_wait: Duration::from_millis(50),
        ..Retries::default()
    };
    let client = scripted_client(Client::builder().retries(retries), &url);
    let sending = tokio::spawn(async move { client.send("hello").await });
    let listener = TcpListener::bind(address).await.unwrap();
    let server = crate::harness::serve_on(with_agent(obedient), listener).await;
    let answered = sending.await.unwrap().unwrap();
    assert_eq!(answered.task().unwrap().status.state, TaskState::Completed);
    server.stop().await;
}

#[tokio::test]
async fn p09_the_next_interface_is_used_when_the_first_cannot_be_reached() {
    let server = serve(with_agent(obedient)).await;
    let found = Client::builder().discover(&server.url).await.unwrap();
    let mut down = found.clone();
    down.card.interfaces[0].url = "http://127.0.0.1:1/".to_owned();
    let client = quick().with_card(down).unwrap();
    assert_eq!(client.interface().url(), "http://127.0.0.1:1/");
    client.send("hello").await.unwrap();
    assert!(client.interface().url().starts_with(&server.url));
    server.stop().await;
}

#[tokio::test]
async fn p09_a_silent_agent_runs_into_the_timeouts() {
    // Accepted by the system, read by nobody.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let short = Duration::from_millis(50);
    let timeouts = Timeouts { call: short, send: Some(short), ..Timeouts::default() };
    let client = scripted_client(quick().timeouts(timeouts).retries(Retries::none()), &url);
    for error in [
        client.send("hello").await.unwrap_err(),
        client.get(&TaskId::parse("t").unwrap()).await.unwrap_err(),
        client.stream("hello").await.unwrap_err(),
    ] {
        let transport = error.transport().unwrap();
        assert_eq!(transport.kind(), TransportKind::Timeout, "{error}");
        assert!(transport.may_have_reached());
    }
}

/// The head comes, and a part of the body; the rest does not.
#[tokio::test]
async fn p09_a_stalled_answer_runs_into_the_idle_timeout() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stalling = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{").await;
            open.push(socket);
        }
    });
    let timeouts = Timeouts { idle: Duration::from_millis(50), ..Timeouts::default() };
    let client = scripted_client(quick().timeouts(timeouts).retries(Retries::none()), &url);
    let error = client.send("hello").await.unwrap_err();
    assert_eq!(error.transport().unwrap().kind(), TransportKind::Timeout, "{error}");
    stalling.abort();
}

#[tokio::test]
async fn p09_answers_are_bounded_and_checked() {
    let with_length = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let large = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(5000));
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{".to_owned(), TransportKind::TooLarge),
        (with_length(&large), TransportKind::TooLarge),
        (format!("HTTP/1.1 200 OK\r\n\r\n{large}"), TransportKind::TooLarge),
        (with_length("hello"), TransportKind::Malformed),
        (with_length("[]"), TransportKind::Malformed),
        (with_length(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#), TransportKind::Malformed),
        (with_length(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), TransportKind::Malformed),
        (with_length(r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t"}}}"#), TransportKind::Malformed),
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), TransportKind::Cut),
        (String::new(), TransportKind::Cut),
    ] {
        let (url, _) = serve_bytes(answer.clone()).await;
        let limits = SizeLimits { reply: 1000, ..SizeLimits::default() };
        let client = scripted_client(quick().size_limits(limits).retries(Retries::none()), &url);
        let error = client.send("hello").await.unwrap_err();
        let kind = error.transport().unwrap_or_else(|| panic!("{error}")).kind();
        assert_eq!(kind, expected, "{error} {}", &answer[..answer.len().min(120)]);
    }
    // An error page of a proxy is an error of the agent's side, with its status.
    let (url, _) = serve_bytes("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>").await;
    let error = scripted_client(quick(), &url).send("hello").await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Unavailable), "{error}");
}

/// The proxies that are given are used, and none but those: the environment is not read.
#[tokio::test]
async fn p09_a_proxy_is_used_where_it_is_wanted() {
    use baton_client::Proxies;
    async fn proxy(uri: axum::http::Uri, body: String) -> Response {
        // Proxies are sent whole addresses.
        assert_eq!(uri.host(), Some("agent.invalid"));
        if uri.path().contains("well-known") {
            return crate::harness::card_for("http://agent.invalid/").into_response();
        }
        let task = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{task}}}"#, member(&body, "id")).into_response()
    }
    let url = serve_router(Router::new().fallback(proxy)).await;
    // `host:port` is usual, too.
    for address in [url.clone(), url.strip_prefix("http://").unwrap().to_owned()] {
        let proxies = Proxies { http: Some(address), ..Proxies::default() };
        let client = quick().proxies(proxies).connect("http://agent.invalid").await.unwrap();
        client.send("hello").await.unwrap();
    }
    let except = Proxies { all: Some(url), no_proxy: Some("127.0.0.1".to_owned()), ..Proxies::default() };
    let server = serve(with_agent(obedient)).await;
    let client = quick().proxies(except).connect(&server.url).await.unwrap();
    client.send("hello").await.unwrap();
    server.stop().await;
}
