//! P-09: what is sent again and what is not, and answers that are too large, too slow or wrong.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use baton_client::protocol::ErrorKind;
use baton_client::protocol::domain::{PushConfigId, TaskId, TaskState};
use baton_client::protocol::operation::{Call, GetTask, HistoryLength, ListTasks, SendMessage};
use baton_client::{Client, Observed, Retries, SizeLimits, Timeouts, TransportKind};
use tokio::net::TcpListener;

use crate::harness::{
    obedient, options, quick, scripted_client, serve, serve_bytes, serve_router, with_agent,
};

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
        let retries = options(|it: &mut Retries| (it.uncertain, it.first_wait) = (uncertain, wait));
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
    let retries = options(|it: &mut Retries| {
        it.most = 200;
        it.first_wait = Duration::from_millis(20);
        it.longest_wait = Duration::from_millis(50);
    });
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
    let timeouts = options(|it: &mut Timeouts| (it.call, it.send) = (short, Some(short)));
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

/// Without a limit for sends, the beginning of a stream has one nevertheless; and whoever watches is told.
#[tokio::test]
async fn p09_a_stream_that_does_not_begin_runs_into_the_idle_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&told);
    let observe = move |observed: &Observed<'_>| {
        if let Observed::Failed(why) = observed {
            noted.lock().unwrap().push((*why).to_owned());
        }
    };
    let timeouts = options(|it: &mut Timeouts| it.idle = Duration::from_millis(50));
    assert_eq!(timeouts.send, None);
    let client = scripted_client(quick().timeouts(timeouts).observe(observe), &url);
    let opening = tokio::time::timeout(crate::harness::TEST_TIMEOUT, client.stream("hello"));
    let error = opening.await.unwrap().unwrap_err();
    assert_eq!(error.transport().unwrap().kind(), TransportKind::Timeout, "{error}");
    let told = told.lock().unwrap();
    assert!(told.len() == 1 && told[0].contains("timeout"), "{told:?}");
}

/// Its packets go nowhere: the queue for connections is full, and nobody takes one out of it.
#[tokio::test]
async fn p09_the_next_interface_is_used_when_the_first_does_not_answer() {
    let server = serve(with_agent(obedient)).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = socket.listen(1).unwrap();
    let address = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(open)) =
        tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(address)).await
    {
        waiting.push(open);
        assert!(waiting.len() < 100, "the queue has no end");
    }
    let mut found = Client::builder().discover(&server.url).await.unwrap();
    found.card.interfaces[0].url = format!("http://{address}/");
    let timeouts = options(|it: &mut Timeouts| it.connect = Duration::from_millis(100));
    let client = quick().timeouts(timeouts).retries(Retries::none()).with_card(found).unwrap();
    client.send("hello").await.unwrap();
    assert!(client.interface().url().starts_with(&server.url));
    server.stop().await;
}

/// Where no limit is set: neither the head of a stream nor an answer that is not to be waited for takes for ever.
#[tokio::test]
async fn p09_a_silent_agent_is_given_up_without_a_limit_of_the_user_s() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let timeouts = options(|it: &mut Timeouts| it.idle = Duration::from_millis(50));
    let client = scripted_client(quick().timeouts(timeouts).retries(Retries::none()), &url);
    let message = baton_client::message(vec![baton_client::protocol::domain::Part::text("hello")]);
    let at_once = SendMessage { return_immediately: true, ..SendMessage::new(message) };
    for error in [client.stream("hello").await.unwrap_err(), client.send(at_once).await.unwrap_err()] {
        assert_eq!(error.transport().unwrap().kind(), TransportKind::Timeout, "{error}");
    }
}

/// An answer about another task is not the answer.
#[tokio::test]
async fn p09_only_the_task_that_was_asked_for_is_taken() {
    async fn another(body: String) -> Response {
        let task = r#"{"id":"t-9","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#;
        let id = member(&body, "id");
        if body.contains("SubscribeToTask") {
            let event =
                format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"task\":{task}}}}}\n\n");
            return ([(header::CONTENT_TYPE, "text/event-stream")], event).into_response();
        }
        let result =
            if body.contains("SendMessage") { format!(r#"{{"task":{task}}}"#) } else { task.to_owned() };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_response()
    }
    let url = serve_router(Router::new().route("/", post(another))).await;
    let client = scripted_client(quick(), &url);
    let id = TaskId::parse("t-1").unwrap();
    let mut answer = baton_client::message(vec![baton_client::protocol::domain::Part::text("hello")]);
    answer.task_id = Some(id.clone());
    let get = Call::GetTask(GetTask { id: id.clone(), history_length: HistoryLength::All });
    let mut subscribed = client.subscribe(&id).await.unwrap();
    for error in [
        client.get(&id).await.unwrap_err(),
        client.cancel(&id).await.unwrap_err(),
        client.send(answer).await.unwrap_err(),
        client.call_raw(&get).await.unwrap_err(),
        subscribed.next().await.unwrap().unwrap_err(),
    ] {
        assert_eq!(error.transport().unwrap().kind(), TransportKind::Malformed, "{error}");
    }
}

/// Some SDKs answer the removal of a webhook with neither a result nor an error, or with nothing at all.
#[tokio::test]
async fn p09_a_reply_without_a_result_is_enough_where_none_is_needed() {
    async fn nothing(body: String) -> Response {
        format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, member(&body, "id")).into_response()
    }
    let url = serve_router(Router::new().route("/", post(nothing))).await;
    let (task, hook) = (TaskId::parse("t").unwrap(), PushConfigId::parse("h").unwrap());
    scripted_client(quick(), &url).delete_push_config(&task, &hook).await.unwrap();
}

#[tokio::test]
async fn p09_a_list_of_empty_pages_has_an_end() {
    async fn empty(body: String) -> Response {
        let id = member(&body, "id");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tasks":[],"nextPageToken":"{id}"}}}}"#)
            .into_response()
    }
    let url = serve_router(Router::new().route("/", post(empty))).await;
    let mut tasks = scripted_client(quick(), &url).tasks(ListTasks::default());
    let error = tasks.next().await.unwrap().unwrap_err();
    assert_eq!(error.transport().unwrap().kind(), TransportKind::Malformed, "{error}");
    assert!(tasks.next().await.is_none());
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
    let timeouts = options(|it: &mut Timeouts| it.idle = Duration::from_millis(50));
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
        let limits = options(|it: &mut SizeLimits| it.reply = 1000);
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
        let proxies = options(|it: &mut Proxies| it.http = Some(address));
        let client = quick().proxies(proxies).connect("http://agent.invalid").await.unwrap();
        client.send("hello").await.unwrap();
    }
    let except = options(|it: &mut Proxies| {
        (it.all, it.no_proxy) = (Some(url), Some("127.0.0.1".to_owned()));
    });
    let server = serve(with_agent(obedient)).await;
    let client = quick().proxies(except).connect(&server.url).await.unwrap();
    client.send("hello").await.unwrap();
    server.stop().await;
}

/// Speaks as much of SOCKS 5 (RFC 1928) as a client without a password needs.
async fn serve_socks() -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
    use tokio::net::{TcpListener, TcpStream};
    async fn forward(mut client: TcpStream) -> std::io::Result<()> {
        let mut head = [0; 2];
        client.read_exact(&mut head).await?;
        let mut methods = vec![0; head[1].into()];
        client.read_exact(&mut methods).await?;
        client.write_all(&[5, 0]).await?;
        // Version, command, zero, an IPv4 address and a port.
        let mut wanted = [0; 10];
        client.read_exact(&mut wanted).await?;
        assert_eq!(wanted[..4], [5, 1, 0, 1]);
        let address = std::net::Ipv4Addr::new(wanted[4], wanted[5], wanted[6], wanted[7]);
        let mut server = TcpStream::connect((address, u16::from_be_bytes([wanted[8], wanted[9]]))).await?;
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        copy_bidirectional(&mut client, &mut server).await.map(drop)
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(forward(client));
        }
    });
    format!("socks5://{address}")
}

#[tokio::test]
async fn p09_a_socks_proxy_is_used() {
    let server = serve(with_agent(obedient)).await;
    let proxies = |address: &str| options(|it: &mut baton_client::Proxies| it.all = Some(address.to_owned()));
    let client = quick().proxies(proxies(&serve_socks().await)).connect(&server.url).await.unwrap();
    client.send("hello").await.unwrap();
    // Where there is no proxy, nothing goes around it.
    quick().proxies(proxies("socks5://127.0.0.1:1")).connect(&server.url).await.unwrap_err();
    server.stop().await;
}
