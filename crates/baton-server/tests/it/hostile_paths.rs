//! Paths with `..`, escapes, excessive length or invalid text: each gets an error answer.

use http::Method;

use crate::agents::obedient;
use crate::harness::serve_agent;
use crate::socket;

/// Written to the socket, since client libraries would not send them.
#[tokio::test]
async fn p03_hostile_paths_lead_nowhere() {
    let server = serve_agent(obedient).await;
    let long = "x".repeat(10_000);
    let segments = [
        "..",
        ".",
        "..%2f",
        "..%2F..%2Fetc",
        "%2e%2e",
        "%2E",
        "%252e",
        "%252e%252e%252f",
        "%25252e",
        "a%2f..%2fb",
        "..;x",
        "%00",
        "a%00b",
        "a%0ab",
        "a%0d%0ab",
        "%7f",
        "%5c",
        "a%5c..",
        "a\\b",
        "%",
        "a%",
        "%4",
        "%zz",
        "%ff",
        "%c0%ae",
        "%ed%a0%80",
        "%e2%82",
        "a b",
        "\0",
        "a\tb",
        "\u{7f}",
        &long,
        &long[..300],
    ];
    let templates = [
        "/tasks/{}",
        "/tasks/{}:cancel",
        "/tasks/{}:subscribe",
        "/tasks/{}/pushNotificationConfigs",
        "/tasks/a/pushNotificationConfigs/{}",
        "/{}/message:send",
        "/{}/nothing",
    ];
    let mut count = 0;
    for (prefix, version) in [("", "1.0"), ("/acme", "1.0"), ("/v1", "0.3")] {
        for template in templates {
            for segment in segments {
                let path = format!("{prefix}{}", template.replace("{}", segment));
                let method = if path.ends_with(":cancel") || path.ends_with(":send") {
                    Method::POST
                } else {
                    Method::GET
                };
                let head = format!(
                    "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\na2a-version: {version}\r\n"
                );
                let sent = format!("{head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}");
                let (status, body) = socket::exchange(&server, sent.as_bytes()).await;
                let shown: String = path.chars().take(80).collect();
                assert!([400, 404, 414].contains(&status), "{method} {shown:?}: {status} {body}");
                // Either the HTTP layer refused it, or the binding did, with an error body.
                assert!(body.is_null() || body["error"]["code"] == status, "{shown:?}: {body}");
                count += 1;
            }
        }
    }
    assert!(count >= 600, "{count}");
    assert_eq!(server.task_count().await, 0);
}
