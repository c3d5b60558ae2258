//! Requests as gRPC's libraries never send them, and methods that are not there.

use serde_json::json;

use super::{expect_code, expect_refusal, prepared, sent, works};
use crate::native::talk::{SOON, fresh_id};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Request;
use crate::wire::grpc::frames::framed;
use crate::wire::grpc::methods::service;
use crate::wire::request::{self, Operation};

pub(in crate::native) const CHECKS: Checks = checks! {
    "grpc.unknown-method" => unknown_method,
    "grpc.unknown-service" => unknown_service,
    "grpc.invalid-argument" => invalid_argument,
    "grpc.malformed" => malformed,
    "grpc.no-message" => no_message,
    "grpc.two-messages" => two_messages,
    "grpc.compressed" => compressed,
    "grpc.unknown-field" => unknown_field,
};

/// With a body that is told in words.
fn told(request: &Request, body: &[u8]) -> Request {
    let bytes: Vec<String> = body.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
    let body = format!("{} bytes: {}", body.len(), bytes.join(" "));
    Request { body: Some(body.into_bytes()), ..request.clone() }
}

/// For calls that some servers never answer.
fn impatient(bench: &Bench) -> Bench {
    bench.with(bench.probe().within(SOON / 4))
}

async fn at(bench: &Bench, path: &str, what: &str) -> Done {
    let mut request = request::call(bench.generation(), bench.interface(), path);
    request.headers.extend(bench.extensions());
    let heard = sent(bench, &request, framed(0, &[])).await?;
    expect_code(&heard, what, 12)
}

async fn unknown_method(bench: &Bench) -> Done {
    let service = service(bench.generation()).unwrap_or_default();
    at(bench, &format!("/{service}/MakeTea"), "a method that is not there").await
}

async fn unknown_service(bench: &Bench) -> Done {
    at(bench, "/lab.v1.TeaService/MakeTea", "a service that is not there").await
}

/// Without a message there is nothing to send.
async fn invalid_argument(bench: &Bench) -> Done {
    let (request, _, _) = prepared(bench, Operation::SendMessage, &json!({}))?;
    let heard = sent(bench, &request, framed(0, &[])).await?;
    expect_code(&heard, "a send without a message", 3)
}

/// Bytes that are no message are refused, and hurt nobody.
async fn malformed(bench: &Bench) -> Done {
    let (request, _, _) = prepared(bench, Operation::GetTask, &json!({ "id": fresh_id() }))?;
    let whole = |message: &[u8]| framed(0, message);
    // Some servers reset a call that ends within a message, or wait for the rest of it.
    for (what, body, may_wait) in [
        ("a field that is longer than its message", whole(&[0x12, 0x7f, b'a']), false),
        ("a field of an unknown wire type", whole(&[0x0f]), false),
        ("a text that is not UTF-8", whole(&[0x0a, 2, 0xff, 0xfe, 0x12, 2, 0xff, 0xfe]), false),
        ("a message that is shorter than its frame", vec![0, 0, 0, 1, 0, 0x12], true),
        ("half a frame", vec![0, 0, 0], true),
    ] {
        let heard = sent(&impatient(bench), &told(&request, &body), body).await;
        works(bench, what).await?;
        match heard {
            Err(_) if may_wait => {}
            heard => expect_refusal(&heard?, what)?,
        }
    }
    Ok(())
}

async fn no_message(bench: &Bench) -> Done {
    let (request, _, _) = prepared(bench, Operation::GetTask, &json!({ "id": fresh_id() }))?;
    let heard = sent(&impatient(bench), &told(&request, &[]), Vec::new()).await;
    works(bench, "a call without a message").await?;
    expect_refusal(&heard?, "a call without a message")
}

/// Two messages are refused, or the first of them is the request: libraries do either.
async fn two_messages(bench: &Bench) -> Done {
    let (request, _, message) = prepared(bench, Operation::GetTask, &json!({ "id": fresh_id() }))?;
    let body = [framed(0, &message), framed(0, &message)].concat();
    let heard = sent(bench, &told(&request, &body), body).await?;
    works(bench, "a call with two messages").await?;
    expect_refusal(&heard, "a call with two messages about an unknown task")?;
    if heard.messages.is_empty() {
        return Ok(());
    }
    Err(differs("one answer, which is an error", heard.summary()))
}

/// gRPC's own rule: a compression that the server does not know is UNIMPLEMENTED. Some servers refuse it otherwise.
async fn compressed(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    let (mut request, _, message) = prepared(bench, Operation::GetTask, &json!({ "id": task["id"] }))?;
    request.headers.push(("grpc-encoding".to_owned(), "lab-squeezed".to_owned()));
    let body = framed(1, &message);
    let heard = sent(bench, &told(&request, &body), body).await?;
    works(bench, "a compressed message").await?;
    expect_refusal(&heard, "a message in an unknown compression")?;
    if heard.code() != Some(12) {
        bench.note(format!("an unknown compression is not UNIMPLEMENTED: {}", heard.summary()));
    }
    Ok(())
}

/// A newer client may send a field that this agent does not know.
async fn unknown_field(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    let (request, _, mut message) = prepared(bench, Operation::GetTask, &json!({ "id": task["id"] }))?;
    // Field 1000, with the text `lab`.
    message.extend_from_slice(&[0xc2, 0x3e, 3, b'l', b'a', b'b']);
    let body = framed(0, &message);
    let heard = sent(bench, &told(&request, &body), body).await?;
    if heard.code() == Some(0) && heard.messages.len() == 1 {
        return Ok(());
    }
    Err(differs("the task, whatever the field 1000 is", heard.summary()))
}
