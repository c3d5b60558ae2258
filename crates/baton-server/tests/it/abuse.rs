//! Hostile bodies: deeply nested, with many members, long, compressed. Each gets an error, memory stays bounded, and other
//! clients are served.

use serde_json::{Value, json};

use crate::agents::obedient;
use crate::fixtures::resident_mib;
use crate::harness::{TEST_TIMEOUT, TestServer, serve_agent};
use crate::socket;

const MIB: usize = 1024 * 1024;

fn params(open: &str, fill: &str, close: &str, size: usize) -> Vec<u8> {
    let head = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":"#;
    let count = (size - head.len() - open.len() - close.len() - 1) / fill.len();
    [head, open, &fill.repeat(count), close, "}"].concat().into_bytes()
}

fn keys(count: usize) -> Vec<u8> {
    let members: Vec<String> = (0..count).map(|n| format!("\"{n}\":0")).collect();
    let metadata = members.join(",");
    let text = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"metadata":{"#;
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{text}{metadata}}}}}}}}}"#)
        .into_bytes()
}

async fn post(server: &TestServer, headers: &str, body: &[u8]) -> (u16, Value) {
    socket::exchange(server, &socket::request(headers.as_bytes(), body)).await
}

/// A body of 4 MiB must not take six times as much memory, and none of it may stay allocated.
#[tokio::test]
async fn bodies_made_to_hurt_are_refused_while_others_are_served() {
    let server = serve_agent(obedient).await;
    server.send("warm").await;
    let before = resident_mib();
    let string = format!(r#""{}""#, "x".repeat(10 * MIB)).into_bytes();
    let cases: Vec<(&str, Vec<u8>, &[u16])> = vec![
        ("a bracket and no end", vec![b'['; 4 * MIB], &[400]),
        ("a brace and no end", br#"{"a":"#.repeat(MIB / 5), &[400]),
        ("deep params", params("", "[", "", MIB), &[400]),
        ("deep and closed", [vec![b'['; MIB], vec![b']'; MIB]].concat(), &[400, 200]),
        ("a million keys", keys(1_000_000), &[413]),
        ("many keys", keys(80_000), &[200]),
        ("as many keys as may be", keys(1_000), &[200]),
        ("a large string", string, &[413]),
        ("a string to the brim", params("\"", "x", "\"", 4 * MIB), &[200]),
        ("numbers", params("[", "1e400,", "1]", MIB), &[400, 200]),
        ("a long number", params("", "1", "", MIB), &[400, 200]),
        ("escapes", params("\"", "\\u0000", "\"", MIB), &[200]),
        ("broken escapes", params("\"", "\\ud800", "\"", MIB), &[400, 200]),
        ("a batch", [b"[".to_vec(), b"{},".repeat(MIB / 3), b"{}]".to_vec()].concat(), &[200]),
        ("blanks", vec![b' '; 4 * MIB], &[400]),
        ("no text", vec![0xff; 4 * MIB], &[400]),
    ];
    let honest = async {
        loop {
            server.send("hello").await;
        }
    };
    let hostile = async {
        for (name, body, statuses) in &cases {
            let (status, answer) = post(&server, "", body).await;
            assert!(statuses.contains(&status), "{name}: {status} {answer}");
            assert!(status == 200 || answer["error"]["code"].is_i64(), "{name}: in words: {answer}");
            if status == 200 {
                let taken = name.starts_with("as many keys");
                assert_eq!(answer.get("error").is_none(), taken, "{name}: {answer:.300}");
            }
            let now = resident_mib();
            assert!(now < before + 24 * 6, "{name}: {before} MiB before, {now} now");
        }
    };
    tokio::select! {
        done = tokio::time::timeout(TEST_TIMEOUT * 3, hostile) => done.expect("all were answered"),
        () = honest => {}
    }
    server.send("hello").await;
}

/// Compressed bodies are not decompressed: a few bytes could become gigabytes.
#[tokio::test]
async fn packed_bodies_are_refused() {
    let server = serve_agent(obedient).await;
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"] {
        let headers = format!("content-encoding: {encoding}\r\n");
        let (status, answer) = post(&server, &headers, b"\x1f\x8b\x08\0\0\0\0\0").await;
        assert_eq!((status, &answer["error"]["code"]), (415, &json!(-32600)), "{encoding}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("Content-Encoding"), "{answer}");
    }
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;
    assert_eq!(post(&server, "content-encoding: identity\r\n", list).await.0, 200);
}

/// A body whose Content-Length is too large is refused before it arrives; the client can read the answer while it sends.
#[tokio::test]
async fn a_body_too_large_is_refused_by_its_length() {
    let server = serve_agent(obedient).await;
    let body = vec![b' '; 12 * MIB];
    let (status, answer) = post(&server, "", &body).await;
    assert_eq!((status, &answer["error"]["code"]), (413, &json!(-32600)), "{answer}");
    // A client that sends `Expect: 100-continue` need not send the body.
    let head = format!("{}content-length: {}\r\nexpect: 100-continue\r\n\r\n", socket::HEAD, 12 * MIB);
    let answer = socket::replies(&socket::talk(&server, head.as_bytes()).await);
    assert_eq!(answer.iter().map(|reply| reply.status).collect::<Vec<_>>(), [413]);
}
