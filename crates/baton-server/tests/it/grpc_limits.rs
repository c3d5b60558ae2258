//! P-03, S-05. gRPC: deadlines, limits on messages, and requests that are framed wrongly.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_protocol::wire::pb::Package;
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal};
use baton_server::{Limits, Server};
use serde_json::{Value, json};
use tonic::Code;

use crate::agents::obedient;
use crate::grpc::{serve_obedient, speaking};
use crate::grpc_client::{Grpc, PACKAGES, message, message_of, told};
use crate::grpc_raw::{RawAnswer, framed, raw, raw_at, raw_in, raw_unended};
use crate::harness::{TestServer, serve, with_agent};
use crate::speakers::with_card;

fn send(text: &str) -> Vec<u8> {
    send_in(Package::V1, text)
}

fn send_in(package: Package, text: &str) -> Vec<u8> {
    framed(0, &message_of(package, "SendMessage", &message(package, text, true)).unwrap())
}

/// The only task, as another binding shows it.
async fn only_task(server: &TestServer) -> Value {
    let page = server.call("ListTasks", json!({})).await;
    assert_eq!(page.result()["totalSize"], 1);
    page.result()["tasks"][0].clone()
}

fn details(answer: &RawAnswer) -> bool {
    let from = answer.trailers.as_ref().unwrap_or(&answer.headers);
    from.contains_key("grpc-status-details-bin")
}

#[tokio::test]
async fn p03_a_call_ends_at_its_deadline_and_its_task_goes_on() {
    for (package, method, timeout) in [
        (Package::V1, "SendMessage", "200m"),
        (Package::V1, "SendStreamingMessage", "200m"),
        (Package::V1, "SendMessage", "200000u"),
        (Package::V0_3, "SendMessage", "200m"),
        (Package::V0_3, "SendStreamingMessage", "200m"),
    ] {
        let server = serve_obedient().await;
        let body = send_in(package, "hold");
        let answer = raw_in(&server, package, method, &[("grpc-timeout", timeout)], body).await;
        assert_eq!((answer.status, answer.code()), (200, 4), "{package:?} {method}: {answer:?}");
        assert!(details(&answer), "{answer:?}");
        // A stream has begun by then.
        assert_eq!(answer.data.is_empty(), method == "SendMessage", "{answer:?}");
        let task = only_task(&server).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{package:?} {method}");
        let id = task["id"].as_str().unwrap();
        let canceled = server.call("CancelTask", json!({"id": id})).await;
        assert_eq!(canceled.result()["status"]["state"], "TASK_STATE_CANCELED");
    }
}

/// Credentials may be verified by another server, which may take long.
#[tokio::test]
async fn p03_the_deadline_counts_while_the_caller_is_authenticated() {
    #[derive(Debug)]
    struct Endless;
    #[async_trait]
    impl Authenticator for Endless {
        async fn authenticate(&self, _request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
            std::future::pending().await
        }
    }
    let agent = speaking(with_agent(obedient)).grpc_reflection().authenticator(Arc::new(Endless));
    let server = serve(agent).await;
    for package in PACKAGES {
        for method in ["SendMessage", "SendStreamingMessage", "Nothing"] {
            let answer = raw_in(&server, package, method, &[("grpc-timeout", "50m")], send("late")).await;
            assert_eq!((answer.status, answer.code()), (200, 4), "{package:?} {method}: {answer:?}");
        }
    }
    let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let answer = raw_at(&server, reflection, &[("grpc-timeout", "50m")], Vec::new()).await;
    assert_eq!((answer.status, answer.code()), (200, 4), "{answer:?}");
    assert_eq!(server.task_count().await, 0);
}

/// Clients take 8 KiB of trailers.
#[tokio::test]
async fn s09_a_refusal_is_short_whatever_it_quotes() {
    let server = serve(speaking(with_card(|_| (), obedient))).await;
    for package in PACKAGES {
        for text in ["x".repeat(100_000), "\u{fc}".repeat(100_000), "\u{f8ff}0".repeat(50_000)] {
            let kind = format!("strange/{text}");
            let part = match package {
                Package::V1 => json!({"raw": "AAAA", "mediaType": kind}),
                Package::V0_3 => json!({"file": {"fileWithBytes": "AAAA", "mimeType": kind}}),
            };
            let mut params = message(package, "x", true);
            let parts = if package == Package::V1 { "parts" } else { "content" };
            params["message"][parts] = json!([part]);
            let body = framed(0, &message_of(package, "SendMessage", &params).unwrap());
            let answer = raw_in(&server, package, "SendMessage", &[], body).await;
            let size =
                |it: &http::HeaderMap| it.iter().map(|(n, v)| n.as_str().len() + v.len() + 32).sum::<usize>();
            assert!(
                details(&answer) && size(&answer.headers) < 8192,
                "{package:?}: {}",
                size(&answer.headers)
            );
            let message = answer.headers["grpc-message"].to_str().unwrap();
            assert!(message.contains("strange"), "{message}");
        }
    }
}

#[tokio::test]
async fn p03_deadlines_that_are_far_away_or_wrong() {
    let server = serve_obedient().await;
    for package in PACKAGES {
        for (timeout, code) in [
            ("20S", 0),
            ("99999999H", 0),
            ("1", 3),
            ("S", 3),
            ("1x", 3),
            ("123456789S", 3),
            // It has passed before anything was done.
            ("0n", 4),
        ] {
            let (before, body) = (server.task_count().await, send_in(package, "hello"));
            let answer = raw_in(&server, package, "SendMessage", &[("grpc-timeout", timeout)], body).await;
            assert_eq!(answer.code(), code, "{package:?} {timeout}");
            assert_eq!(server.task_count().await > before, code == 0, "{package:?} {timeout}");
        }
    }
}

#[tokio::test]
async fn p03_messages_above_the_limit_are_refused_and_others_are_not() {
    let mut limits = Limits::default();
    limits.max_body_bytes = 20_000;
    let server = serve(speaking(with_agent(obedient)).limits(limits)).await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let number = std::cell::Cell::new(0);
        let fits = |text: usize| {
            let mut params = message(package, &format!("fail {}", "x".repeat(text)), true);
            // Ids of one length.
            number.set(number.get() + 1);
            params["message"]["messageId"] = json!(format!("{package:?}-{:03}", number.get()));
            params
        };
        let length = |text: usize| message_of(package, "SendMessage", &fits(text)).unwrap().len();
        let most = 19_000 + 20_000 - length(19_000);
        assert_eq!(length(most), 20_000);
        client.call("SendMessage", fits(most)).await.unwrap();
        for more in [1, 10, 100_000, 3_000_000] {
            let refused = client.call("SendMessage", fits(most + more)).await.unwrap_err();
            assert_eq!(told(&refused), (Code::ResourceExhausted, "PAYLOAD_TOO_LARGE".to_owned()), "{more}");
        }
        // The connection is as good as before.
        client.call("SendMessage", fits(1)).await.unwrap();
    }
}

#[tokio::test]
async fn s05_compressed_messages_are_refused_unread() {
    let server = serve_obedient().await;
    for encoding in ["gzip", "deflate", "zstd", "br"] {
        let answer = raw(&server, "SendMessage", &[("grpc-encoding", encoding)], framed(1, b"zip")).await;
        assert_eq!(answer.code(), 12, "{encoding}");
        assert_eq!(answer.headers["grpc-accept-encoding"], "identity");
    }
    assert_eq!(raw(&server, "SendMessage", &[], framed(1, b"zip")).await.code(), 12);
    let plain = raw(&server, "SendMessage", &[("grpc-encoding", "identity")], send("hello")).await;
    assert_eq!(plain.code(), 0);
    // Nobody is sent what was not asked for.
    let accepts = [("grpc-accept-encoding", "gzip"), ("accept-encoding", "gzip")];
    let answer = raw(&server, "SendMessage", &accepts, send("hello")).await;
    assert!(!answer.headers.contains_key("grpc-encoding") && answer.data[0] == 0);
}

#[tokio::test]
async fn s05_bodies_that_are_not_one_message() {
    let server = serve_obedient().await;
    let whole = send("hello");
    let cases: &[(&str, Vec<u8>)] = &[
        ("nothing", Vec::new()),
        ("half a prefix", vec![0, 0]),
        ("a prefix alone", whole[..5].to_vec()),
        ("half a message", whole[..whole.len() - 1].to_vec()),
        ("two messages", [&whole[..], &whole].concat()),
        ("a message and a byte", [&whole[..], &[0]].concat()),
        ("an unknown flag", framed(2, &whole[5..])),
    ];
    for (what, body) in cases {
        let answer = raw(&server, "SendMessage", &[], body.clone()).await;
        assert_eq!((answer.status, answer.code()), (200, 3), "{what}");
        let message = answer.headers["grpc-message"].to_str().unwrap();
        assert!(message.contains("essage"), "{what}: {message}");
    }
    // The length that is claimed is not believed.
    let claims = [&[0][..], &u32::MAX.to_be_bytes(), b"x"].concat();
    assert_eq!(raw(&server, "SendMessage", &[], claims).await.code(), 8);
    assert_eq!(server.task_count().await, 0);
}

/// Who claims much, or sends what is never read, need not send all of it before it is told.
#[tokio::test]
async fn s05_a_wrong_prefix_is_refused_before_the_message_ends() {
    let server = serve_obedient().await;
    let claim = |flag: u8, length: u32| [&[flag][..], &length.to_be_bytes(), b"x"].concat();
    for (what, body, code) in [
        ("a length above the limit", claim(0, 4 * 1024 * 1024 + 1), 8),
        ("the largest length", claim(0, u32::MAX), 8),
        ("a compressed message", claim(1, 100), 12),
        ("an unknown flag", claim(0x80, 100), 3),
        ("more than the message", claim(0, 0), 3),
    ] {
        assert_eq!(raw_unended(&server, "SendMessage", body).await.code(), code, "{what}");
    }
}

/// A proxy may have gone by another of the values than the server.
#[tokio::test]
async fn s05_metadata_that_two_readers_could_read_differently() {
    let server = serve_obedient().await;
    for (name, values, code) in [
        ("a2a-version", ["1.0", "1.0"], 0),
        ("a2a-version", ["1.0", "0.3"], 9),
        ("a2a-version", ["0.3", "1.0"], 9),
        ("grpc-timeout", ["20S", "20S"], 0),
        ("grpc-timeout", ["20S", "0n"], 3),
        ("grpc-encoding", ["identity", "gzip"], 12),
        ("last-event-id", ["1", "2"], 3),
    ] {
        let [one, other] = values.map(|value| (name, value));
        let answer = raw(&server, "SendStreamingMessage", &[one, other], send("hello")).await;
        assert_eq!(answer.code(), code, "{name}: {values:?}");
    }
    let types = [("content-type", "application/grpc"), ("content-type", "application/json")];
    let answer = raw(&server, "SendMessage", &types, send("hello")).await;
    assert!(!answer.headers.contains_key("grpc-status"), "{answer:?}");
    assert_eq!(answer.status, 404);
    let versions = [("a2a-version", "1.0"), ("a2a-version", "0.3")];
    for (method, params) in [("ListTasks", json!({})), ("tasks/get", json!({"id": "t"}))] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let answer = server.post(&versions, body).await;
        assert_eq!(answer.error_code(), -32009, "{method}: {}", answer.body);
    }
}

/// 4 MiB of empty parts would take 60 times as much when they are decoded.
#[tokio::test]
async fn s09_lists_without_end_are_refused_before_they_are_decoded() {
    let server = serve_obedient().await;
    let nested = |field: u8, content: &[u8]| {
        let mut out = vec![field << 3 | 2];
        prost::encoding::encode_varint(content.len() as u64, &mut out);
        [out, content.to_vec()].concat()
    };
    let many = 2_000_000;
    let parts = nested(2, &nested(5, b"").repeat(many));
    let modes = nested(3, &nested(1, b"").repeat(many));
    // A whole message, but for its metadata.
    let metadata = nested(6, &nested(1, b"").repeat(many));
    let members =
        nested(2, &[&nested(1, b"m")[..], &[0x20, 1], &nested(5, &nested(1, b"x")), &metadata].concat());
    for (what, message, says) in
        [("parts", parts, "100000"), ("modes", modes, "100000"), ("members", members, "no kind")]
    {
        let before = crate::fixtures::resident_mib();
        let answer = raw(&server, "SendMessage", &[], framed(0, &message)).await;
        assert_eq!(answer.code(), 3, "{what}");
        let grown = crate::fixtures::resident_mib().saturating_sub(before);
        assert!(grown < 64, "{what}: {grown} MiB");
        let told = answer.headers["grpc-message"].to_str().unwrap();
        assert!(told.contains(says), "{what}: {told}");
    }
    assert_eq!(server.task_count().await, 0);
}

#[tokio::test]
async fn p03_content_types_that_begin_alike_are_not_grpc() {
    let server = serve_obedient().await;
    for kind in ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"] {
        assert_eq!(raw(&server, "SendMessage", &[("content-type", kind)], send("hello")).await.code(), 0);
    }
    for kind in
        ["application/grpc-web", "application/grpc+json", "application/grpc-web+proto", "application/x"]
    {
        let answer = raw(&server, "SendMessage", &[("content-type", kind)], send("hello")).await;
        assert!([404, 415].contains(&answer.status), "{kind}: {answer:?}");
        assert!(!answer.headers.contains_key("grpc-status"), "{kind}");
    }
}

#[tokio::test]
async fn p03_an_application_that_mounts_the_router_has_grpc_too() {
    let server = Server::agent("test", "An agent for tests", obedient);
    let server = crate::harness::serve_in_app(speaking(server)).await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        client.timeout = Some(Duration::from_secs(20));
        let sent = client.call("SendMessage", message(package, "hello", true)).await.unwrap().json;
        assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["text"], "hello");
    }
}
