//! P-07 and P-01: media types of request bodies and of parts, and the size of bodies.

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::{Options, Server};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::faces::{Client, FACES, Say};
use crate::harness::{TestServer, message, serve, serve_agent, state};
use crate::socket::{self, HEAD};
use crate::speakers::with_card;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;
const MOST: usize = 4 * 1024 * 1024;

#[tokio::test]
async fn p07_the_body_is_json_by_any_of_its_names() {
    let server = serve_agent(obedient).await;
    for content_type in [
        None,
        Some("application/json"),
        Some("application/json; charset=utf-8"),
        Some("application/json;charset=\"UTF-8\""),
        Some("APPLICATION/JSON"),
        Some(" application/json ; a=b"),
        Some("application/a2a+json"),
        Some("application/a2a+json; charset=utf-8"),
        Some("application/vnd.api+json"),
    ] {
        let mut headers = vec![("a2a-version", "1.0")];
        headers.extend(content_type.map(|value| ("content-type", value)));
        let answer = server.post(&headers, LIST).await;
        assert_eq!(answer.result()["totalSize"], 0, "{content_type:?}");
    }
}

#[tokio::test]
async fn p07_any_other_content_type_is_refused() {
    let server = serve_agent(obedient).await;
    for content_type in [
        "",
        "text/plain",
        "text/json",
        "text/html; charset=utf-8",
        "application/x-www-form-urlencoded",
        "application/jsonl",
        "application/json-seq",
        "application/xml",
        "application/",
        "image/svg+json",
        "json",
        "multipart/form-data; boundary=application/json",
    ] {
        let answer = server.post(&[("a2a-version", "1.0"), ("content-type", content_type)], LIST).await;
        assert_eq!((answer.status, answer.error_code()), (415, -32600), "{content_type}");
        assert_eq!(answer.body["id"], Value::Null);
        assert_eq!(answer.body["error"].get("data"), None, "not an A2A error, so no reason");
    }
    // A header value that is not UTF-8 is not a JSON type either.
    let head = HEAD.replace("content-type: application/json\r\n", "content-type: ");
    let framing = format!("\r\ncontent-length: {}\r\n\r\n{LIST}", LIST.len());
    let bytes = [head.as_bytes(), b"text/\xff", framing.as_bytes()].concat();
    let (status, body) = socket::exchange(&server, &bytes).await;
    assert_eq!((status, &body["error"]["code"]), (415, &json!(-32600)), "{body}");
}

#[tokio::test]
async fn a_body_of_four_mebibytes_is_the_largest() {
    let server = serve_agent(obedient).await;
    // White space after the value is valid JSON.
    let padded = |bytes: usize| format!("{LIST}{}", " ".repeat(bytes - LIST.len()));
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    assert_eq!(server.post(&headers, padded(MOST)).await.result()["totalSize"], 0);

    let check = |(status, body): (u16, Value)| {
        assert_eq!(
            (status, &body["error"]["code"], &body["id"]),
            (413, &json!(-32600), &Value::Null),
            "{body}"
        );
        assert_eq!(body["error"]["data"][0]["reason"], "PAYLOAD_TOO_LARGE");
    };
    // With a Content-Length the body is refused before any of it arrives.
    let told = format!("{HEAD}content-length: {}\r\n\r\n", MOST + 1);
    check(socket::exchange(&server, told.as_bytes()).await);
    // A Content-Length that overflows is invalid.
    let absurd = format!("{HEAD}content-length: 99999999999999999999999\r\n\r\n");
    assert!((400..500).contains(&socket::exchange(&server, absurd.as_bytes()).await.0));
    // Without a Content-Length the body is refused at the first byte beyond the limit.
    let chunked = format!("{HEAD}transfer-encoding: chunked\r\n\r\n{:x}\r\n{}", MOST + 1, padded(MOST + 1));
    check(socket::exchange(&server, chunked.as_bytes()).await);
    // The server still works.
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
}

/// A client that sends the whole body before it reads gets the answer, too, not a reset connection.
#[tokio::test]
async fn a_client_that_sends_too_much_reads_why() {
    let server = serve_agent(obedient).await;
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    for _ in 0..20 {
        let answer = server.post(&headers, " ".repeat(MOST * 4)).await;
        assert_eq!((answer.status, answer.error_code()), (413, -32600));
    }
}

#[tokio::test]
async fn a_long_message_within_the_limit_goes_through() {
    let server = serve_agent(obedient).await;
    let text = "é".repeat(MOST / 2 - 1024);
    let task = server.send(&text).await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(task["history"][0]["parts"][0]["text"], text);
    let parts = task["artifacts"][0]["parts"].as_array().unwrap();
    let echoed: String = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
    assert!(echoed == text, "the echo is cut or changed: {} of {} bytes", echoed.len(), text.len());
}

async fn serve_modes(default: &[&str], of_skill: &[&str]) -> TestServer {
    let owned = |modes: &[&str]| modes.iter().map(|mode| (*mode).to_owned()).collect::<Vec<_>>();
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    card.default_input_modes = owned(default);
    let mut skill = AgentSkill::new("test", "test", "test");
    skill.input_modes = owned(of_skill);
    serve(Server::builder(card).task_skill(skill, obedient)).await
}

/// Spec 3.1.1: a part of a media type that the agent does not accept is ContentTypeNotSupported.
#[tokio::test]
async fn p01_part_types_are_checked_against_the_input_modes() {
    let text = json!({"text": "a"});
    let html = json!({"text": "a", "mediaType": "text/html"});
    let charset = json!({"text": "a", "mediaType": "Text/Plain; charset=utf-8"});
    let data = json!({"data": {"a": 1}});
    let png = json!({"raw": "AAAA", "mediaType": "image/png"});
    let url = json!({"url": "https://example.com/a.pdf", "mediaType": "application/pdf"});
    let untyped = json!({"raw": "AAAA"});
    let untyped_url = json!({"url": "https://example.com/a"});

    for (default, of_skill, takes, refuses) in [
        (
            &["text/plain"][..],
            &[][..],
            vec![&text, &charset, &untyped, &untyped_url],
            vec![&html, &data, &png, &url],
        ),
        (&["text/*"], &[], vec![&text, &html], vec![&data, &png]),
        (&["*/*"], &[], vec![&text, &html, &data, &png, &url], vec![]),
        (&["application/json"], &[], vec![&data], vec![&text, &png]),
        (&["text/plain"], &["image/*"], vec![&text, &png], vec![&html, &data]),
        // Mode names of older cards.
        (&["text"], &[], vec![&text, &html], vec![&data, &png]),
        (&["data"], &[], vec![&data], vec![&text, &png]),
        (&["file"], &[], vec![&png, &url], vec![]),
        (&["text", "data"], &[], vec![&text, &data], vec![&png, &url]),
        (&["IMAGE/PNG"], &[], vec![&png], vec![&url, &text]),
    ] {
        let server = serve_modes(default, of_skill).await;
        for part in takes {
            let mut params = message("");
            params["message"]["parts"] = json!([part]);
            let answer = server.call("SendMessage", params).await;
            assert_eq!(state(&answer.result()["task"]), "COMPLETED", "{default:?} {of_skill:?} {part}");
        }
        let kept = server.call("ListTasks", json!({})).await.result()["totalSize"].clone();
        for part in refuses {
            let mut params = message("");
            // The first part is valid if possible, to show that each part is checked.
            params["message"]["parts"] = json!([untyped, part]);
            for method in ["SendMessage", "SendStreamingMessage"] {
                let answer = server.call(method, params.clone()).await;
                assert_eq!(
                    (answer.status, answer.error_code()),
                    (200, -32005),
                    "{default:?} {of_skill:?} {part}"
                );
                assert_eq!(answer.body["id"], 1);
                let told = answer.body["error"]["message"].as_str().unwrap();
                assert!(told.contains("message.parts[1]"), "{told}");
                assert_eq!(answer.body["error"]["data"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
            }
        }
        assert_eq!(
            server.call("ListTasks", json!({})).await.result()["totalSize"],
            kept,
            "nothing is stored"
        );
    }
}

/// Spec 13.4: addresses of files are checked, so that nobody reads through an agent what only the agent can reach.
#[tokio::test]
async fn s14_addresses_of_files_do_not_lead_into_the_agents_network() {
    let mut open = Options::default();
    open.internal_file_urls = true;
    let agent = || {
        let change = |card: &mut AgentCard| {
            card.default_input_modes = vec!["*/*".to_owned()];
            card.capabilities.state_transition_history = Some(false);
        };
        with_card(change, obedient)
    };
    let (closed, open) = (serve(agent()).await, serve(agent().options(open)).await);
    for face in FACES {
        let send = async |server: &TestServer, url: &str| {
            let mut say = Say::text(message("")["message"]["messageId"].as_str().unwrap(), "see this");
            say.parts = json!([{"text": "hello"}, {"url": url, "mediaType": "image/png"}]);
            Client::new(server, face).send(&say).await.shape
        };
        for url in ["http://169.254.169.254/latest/meta-data", "http://localhost/a", "file:///etc/passwd"] {
            assert_eq!(send(&closed, url).await, json!({"error": "INVALID_PARAMS"}), "{face:?} {url}");
            assert_eq!(send(&open, url).await["task"]["state"], "completed", "{face:?} {url}");
        }
        let shown = send(&closed, "https://files.example/a.png").await;
        assert_eq!(shown["task"]["state"], "completed", "{face:?}");
    }
    let mut params = message("");
    params["message"]["parts"] = json!([{"text": "a"}, {"url": "http://10.0.0.1/"}]);
    let refused = closed.call("SendMessage", params).await;
    let told = refused.body["error"]["message"].as_str().unwrap();
    assert!(
        told.contains("message.parts[1] must not give the address of a file on the agent's own machine"),
        "{told}"
    );
}
