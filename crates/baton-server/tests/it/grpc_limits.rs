//! P-03, S-05. gRPC: deadlines, limits on messages, and requests that are framed wrongly.

use std::time::Duration;

use baton_protocol::wire::pb::Package;
use baton_server::{Limits, Server};
use serde_json::{Value, json};
use tonic::Code;

use crate::agents::obedient;
use crate::grpc::{serve_obedient, speaking};
use crate::grpc_client::{Grpc, PACKAGES, message, message_of, told};
use crate::grpc_raw::{RawAnswer, framed, raw};
use crate::harness::{TestServer, serve, with_agent};

fn send(text: &str) -> Vec<u8> {
    framed(0, &encoded("SendMessage", message(Package::V1, text, true)))
}

fn encoded(method: &str, params: Value) -> bytes::Bytes {
    message_of(Package::V1, method, &params).unwrap()
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
    for (method, timeout) in
        [("SendMessage", "200m"), ("SendStreamingMessage", "200m"), ("SendMessage", "200000u")]
    {
        let server = serve_obedient().await;
        let body = send("hold");
        let answer = raw(&server, method, &[("grpc-timeout", timeout)], body).await;
        assert_eq!((answer.status, answer.code()), (200, 4), "{method}: {answer:?}");
        assert!(details(&answer), "{answer:?}");
        // A stream has begun by then.
        assert_eq!(answer.data.is_empty(), method == "SendMessage", "{answer:?}");
        let task = only_task(&server).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{method}");
        let id = task["id"].as_str().unwrap();
        let canceled = server.call("CancelTask", json!({"id": id})).await;
        assert_eq!(canceled.result()["status"]["state"], "TASK_STATE_CANCELED");
    }
}

#[tokio::test]
async fn p03_deadlines_that_are_far_away_or_wrong() {
    let server = serve_obedient().await;
    for (timeout, code) in [("20S", 0), ("99999999H", 0), ("1", 3), ("S", 3), ("1x", 3), ("123456789S", 3)] {
        let answer = raw(&server, "SendMessage", &[("grpc-timeout", timeout)], send("hello")).await;
        assert_eq!(answer.code(), code, "{timeout}");
    }
    // It has passed before anything was done.
    let answer = raw(&server, "SendMessage", &[("grpc-timeout", "0n")], send("late")).await;
    assert_eq!(answer.code(), 4);
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
