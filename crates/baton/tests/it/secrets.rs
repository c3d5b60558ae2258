use std::fmt::Write as _;

use http::{HeaderName, HeaderValue, Request};
use serde_json::{Value, json};

use crate::collector::Collector;
use crate::served::{Served, baton, text, to};

/// Words that must not get out, one for each place a secret can stand in. With characters that need escapes, so that
/// an escaped copy is another text.
pub(crate) fn canary(place: &str) -> String {
    format!("canary/{place}+9f2/")
}

const HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "cookie",
    "proxy-authorization",
    "a2a-extensions",
    "user-agent",
    "referer",
];

/// Everything on, everything said: not one of the words is in the log, the spans or the numbers.
#[tokio::test]
async fn nothing_a_peer_says_is_in_log_traces_or_metrics() {
    for format in ["text", "json"] {
        let collector = Collector::start();
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
        let (url, listen) = (collector.url(), ["--listen", "127.0.0.1:0"]);
        let flags = ["--otlp", &url, "--log-requests", "--log-format", format, "--store", &store];
        let mut command = baton(&[&["serve"], &listen[..], &flags].concat());
        // A level alone is that of our own crates; these are all others by their first letters.
        let others = ('a'..='z').map(|letter| format!(",{letter}=trace")).collect::<String>();
        let everything = format!("trace{others}");
        let server = Served::of(command.env("BATON_LOG", everything).env("OTEL_BSP_SCHEDULE_DELAY", "50"));
        say_everything(&server).await;
        let metrics = reqwest::get(format!("{}/metrics", server.url)).await.unwrap().text().await.unwrap();
        let log = server.stop_and_log();

        let sent = collector.text();
        // Without these the search below would show nothing.
        assert!(log.contains("SendMessage") && log.contains("baton_server::request"), "{log}");
        assert!(log.contains("hyper") || log.contains("h2"), "the log is not as long as asked for");
        assert!(sent.contains("\"SendMessage\"") && sent.contains("\"append\""), "{sent}");
        assert!(metrics.contains("operation=\"SendMessage\",outcome=\"ok\""), "{metrics}");
        for (place, text) in [("the log", &log), ("the spans", &sent), ("the metrics", &metrics)] {
            let found: Vec<String> =
                disguises().into_iter().filter(|word| text.contains(word.as_str())).collect();
            let lines = text.lines().filter(|line| found.iter().any(|word| line.contains(word.as_str())));
            assert!(found.is_empty(), "{place} has {found:?}:\n{}", lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

/// Each generation and binding, calls that work, calls that fail, and calls nobody understands.
async fn say_everything(server: &Served) {
    let url = &server.url;
    let v1 = [("a2a-version", "1.0")];
    // It asks back, is answered in a stream, and then canceled.
    let asking = json!({"message": message("talk until I say done")});
    let task = rpc(server, "SendMessage", asking, &v1).await["result"]["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let answer = json!({"message": to(&task, message(&canary("answer")))});
    rpc(server, "SendStreamingMessage", answer, &v1).await;
    rpc(server, "CancelTask", json!({"id": task["id"], "metadata": {"why": canary("why")}}), &v1).await;
    rpc(server, "SendMessage", json!({"message": to(&task, message(&canary("late")))}), &v1).await;
    // The older generations.
    let older = json!({"message": {"messageId": "m03", "role": "user", "kind": "message",
        "parts": [{"kind": "text", "text": canary("text03")}], "metadata": {"k": canary("meta03")}}});
    rpc(server, "message/send", older, &[]).await;
    let legacy = json!({"id": "t01", "message": {"role": "user", "parts": [{"type": "text", "text": canary("text01")}]}});
    rpc(server, "tasks/send", legacy, &[]).await;
    // A skill that answers without a task.
    rpc(server, "SendMessage", json!({"message": text("answer", "just answer")}), &v1).await;
    // Webhooks are refused, with all they hold.
    let hook = json!({"taskId": task["id"], "id": "c", "url": format!("https://user:{}@h.example/x", canary("userinfo")),
        "token": canary("token"), "authentication": {"scheme": "Bearer", "credentials": canary("credentials")}});
    rpc(server, "CreateTaskPushNotificationConfig", hook, &v1).await;
    // What is wrong with a request is told to its sender alone.
    rpc(server, &canary("method"), json!({}), &v1).await;
    rpc(server, "GetTask", json!({"id": canary("id"), "historyLength": canary("length")}), &v1).await;
    rpc(server, "ListTasks", json!({"pageToken": canary("page")}), &v1).await;
    rpc(server, "SendMessage", json!({"message": {"role": canary("role")}}), &v1).await;
    rpc(server, "SendMessage", json!({"message": message("x")}), &[("a2a-version", &canary("version"))])
        .await;
    for body in [format!("{{\"broken\": \"{}\"", canary("broken")), canary("body")] {
        ask(reqwest::Method::POST, url, Some(body), &v1).await;
    }
    // Paths and queries, known and unknown.
    let query = percent(&canary("query"));
    for path in ["tasks", "tasks/nope", "nowhere", "message:send", ".well-known/agent-card.json", "metrics"] {
        let url = format!("{url}/{path}?key={query}&{query}");
        ask(reqwest::Method::GET, &url, None, &v1).await;
        ask(reqwest::Method::POST, &url, Some(canary("posted")), &v1).await;
    }
    ask(reqwest::Method::GET, &format!("{url}/{}", percent(&canary("path"))), None, &v1).await;
    over_http2(server).await;
}

/// A message with something to keep quiet in every member.
fn message(words: &str) -> Value {
    let data = canary("data");
    json!({"messageId": format!("m-{}", uuid()), "role": "ROLE_USER", "metadata": {"secret": canary("metadata")},
        "extensions": [canary("extension")],
        "parts": [{"text": words}, {"text": canary("text")}, {"data": {"deep": [data]}},
            {"raw": base64(canary("raw").as_bytes()), "filename": canary("filename")},
            {"url": format!("https://h.example/?key={}", canary("fileurl"))}]})
}

/// Numbers do: they need to differ within this process.
fn uuid() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

async fn rpc(server: &Served, method: &str, params: Value, headers: &[(&str, &str)]) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": canary("rpcid"), "method": method, "params": params});
    let answer = ask(reqwest::Method::POST, &server.url, Some(body.to_string()), headers).await;
    serde_json::from_str(&answer).unwrap_or_default()
}

async fn ask(method: reqwest::Method, url: &str, body: Option<String>, headers: &[(&str, &str)]) -> String {
    let mut request = reqwest::Client::new().request(method, url).header("content-type", "application/json");
    for name in HEADERS {
        request = request.header(*name, secret_header(name));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    request.send().await.unwrap().text().await.unwrap()
}

fn secret_header(name: &str) -> String {
    match name {
        "authorization" => format!("Bearer {}", canary(name)),
        "proxy-authorization" => format!("Basic {}", base64(canary(name).as_bytes())),
        "cookie" => format!("session={}", canary(name)),
        _ => canary(name),
    }
}

/// The library under HTTP/2 has much to say about frames.
async fn over_http2(server: &Served) {
    let address = server.url.trim_start_matches("http://");
    let connection = tokio::net::TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::handshake(connection).await.unwrap();
    let driven = tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let uri = format!("{}/?key={}", server.url, percent(&canary("query")));
    let mut request =
        Request::post(uri).header("a2a-version", "1.0").header("content-type", "application/json");
    for name in HEADERS {
        let value = HeaderValue::from_str(&secret_header(name)).unwrap();
        request = request.header(HeaderName::from_static(name), value);
    }
    let (answer, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("hello")}});
    body.send_data(call.to_string().into(), true).unwrap();
    let mut answer = answer.await.unwrap().into_body();
    while let Some(data) = answer.data().await {
        let data = data.unwrap();
        answer.flow_control().release_capacity(data.len()).unwrap();
    }
    drop((client, answer, body));
    driven.abort();
}

/// The words as they are and in the clothes they might wear.
pub(crate) fn disguises() -> Vec<String> {
    let mut all = Vec::new();
    // What all of them share is enough to find any; what is at their ends differs by place.
    let shared = "canary/";
    all.push(shared.to_owned());
    all.push(percent(shared));
    all.push(shared.replace('/', "\\/"));
    let hex = shared.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    all.extend([hex.to_uppercase(), hex]);
    // Three ways to cut bytes into groups of three; the whole groups in the middle do not change with what is around.
    for shift in 0..3 {
        let padded = format!("{}{shared}", "x".repeat(shift));
        let whole = padded.len() / 3 * 3;
        let encoded = base64(&padded.as_bytes()[..whole]);
        let begin = if shift == 0 { 0 } else { 4 };
        all.push(encoded[begin..].to_owned());
        all.push(encoded[begin..].replace('+', "-").replace('/', "_"));
    }
    // As a list of bytes, which is how `Debug` shows them.
    all.push(shared.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", "));
    all
}

fn percent(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escaped).collect()
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number =
            group.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[test]
fn every_disguise_is_seen_through() {
    let word = canary("x");
    for shift in 0..3 {
        let text = base64(format!("{}{word}", "?".repeat(shift)).as_bytes());
        assert!(disguises().iter().any(|disguise| text.contains(disguise.as_str())), "{shift}: {text}");
    }
    assert_eq!(base64(b"canary"), "Y2FuYXJ5");
    assert_eq!(base64(b"ab"), "YWI=");
    let bytes = format!("{:?}", word.as_bytes());
    for text in [percent(&word), bytes, json!({"a": word}).to_string()] {
        assert!(disguises().iter().any(|disguise| text.contains(disguise.as_str())), "{text}");
    }
}
