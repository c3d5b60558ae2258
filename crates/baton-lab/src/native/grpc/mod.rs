//! What gRPC alone has: heads and trailers, framed messages, statuses, deadlines. The checks read the answers frame by
//! frame, and are the same for 1.0 and 0.3. Everything that is not about the binding is checked by the other cases,
//! which run over gRPC as they are.

pub(super) mod answers;
pub(super) mod deadlines;
pub(super) mod requests;

use std::time::Instant;

use serde_json::{Value, json};

use super::talk::{fresh_id, skip};
use super::{Done, differs, fail};
use crate::run::Bench;
use crate::wire::Request;
use crate::wire::grpc::call::{Call, find};
use crate::wire::grpc::frames::{Frame, framed};
use crate::wire::grpc::methods::Method;
use crate::wire::grpc::status::{self, Status};
use crate::wire::request::Operation;

type Headers = Vec<(String, String)>;

/// An answer as it came.
#[derive(Debug)]
struct Heard {
    http: u16,
    head: Headers,
    messages: Vec<Frame>,
    /// `None` if nothing came after the messages, or if the head was all.
    trailers: Option<Headers>,
    /// Why the answer has no end.
    broke: Option<String>,
}

impl Heard {
    fn status(&self) -> Option<Status> {
        Status::read(self.trailers.as_ref().unwrap_or(&self.head))
    }

    fn code(&self) -> Option<i64> {
        self.status().map(|status| status.code)
    }

    fn summary(&self) -> String {
        if let Some(broke) = &self.broke {
            return format!("an answer that breaks off: {broke}");
        }
        let messages = self.messages.len();
        match self.status() {
            Some(status) => {
                let name = status::name(status.code);
                format!("{name} ({}) after {messages} messages: {}", status.code, status.message)
            }
            None => format!("HTTP {} without a grpc-status, after {messages} messages", self.http),
        }
    }
}

/// The request with its method and its message.
fn prepared(bench: &Bench, operation: Operation, params: &Value) -> Done<(Request, Method, Vec<u8>)> {
    let request = bench.request(operation, params).map_err(|none| skip(none.0))?;
    let method = request.grpc().ok_or_else(|| fail("this case is one of gRPC"))?;
    let params = request.body.as_deref().and_then(crate::wire::json::read).unwrap_or_default();
    let message = method.encoded(&params).map_err(skip)?;
    Ok((request, method, message))
}

/// Calls an operation, and reads the answer to its end.
async fn asked(bench: &Bench, operation: Operation, params: &Value) -> Done<(Heard, Method)> {
    let (request, method, message) = prepared(bench, operation, params)?;
    Ok((sent(bench, &request, framed(0, &message)).await?, method))
}

/// Sends any bytes, and reads the answer to its end.
async fn sent(bench: &Bench, request: &Request, body: Vec<u8>) -> Done<Heard> {
    let started = Instant::now();
    match bench.probe().call_raw(request, body).await {
        Ok(call) => Ok(read(bench, call, started).await),
        Err(error) => Err(fail(format!("no answer: {error}"))),
    }
}

async fn read(bench: &Bench, mut call: Call, started: Instant) -> Heard {
    let (mut messages, mut broke) = (Vec::new(), None);
    loop {
        let left = bench.probe().timeout().saturating_sub(started.elapsed());
        match tokio::time::timeout(left, call.next()).await {
            Ok(Ok(Some(frame))) => messages.push(frame),
            Ok(Ok(None)) => break,
            Ok(Err(error)) => broke = Some(error.why),
            Err(_) => broke = Some("it did not end in time".to_owned()),
        }
        if broke.is_some() {
            break;
        }
    }
    Heard { http: call.status, head: call.head.clone(), messages, trailers: call.trailers.clone(), broke }
}

/// The agent must still answer.
async fn works(bench: &Bench, after: &str) -> Done {
    let error = bench.refusal(Operation::GetTask, &json!({ "id": fresh_id() })).await;
    let error = error.map_err(|_| fail(format!("after {after} the agent does not answer any more")))?;
    bench.expect_named(&error, "TaskNotFoundError")
}

/// Anything but OK, said in gRPC's way.
fn expect_refusal(heard: &Heard, what: &str) -> Done {
    match heard.code() {
        Some(code) if code != 0 && heard.broke.is_none() => Ok(()),
        _ => Err(differs(format!("{what} to be refused"), heard.summary())),
    }
}

fn expect_code(heard: &Heard, what: &str, code: i64) -> Done {
    if heard.code() == Some(code) && heard.broke.is_none() {
        return Ok(());
    }
    Err(differs(format!("{} for {what}", status::name(code)), heard.summary()))
}

fn content_type(heard: &Heard) -> String {
    find(&heard.head, "content-type").unwrap_or("no content type").to_owned()
}
