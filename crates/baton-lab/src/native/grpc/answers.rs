//! Answers: their heads, their messages, their ends.

use serde_json::json;

use super::{Heard, asked, content_type, expect_code};
use crate::acts::assertion::Mismatch;
use crate::native::shape::{fault, judge};
use crate::native::talk::{COMPLETE, Say, fresh_id};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::errors;
use crate::wire::grpc::call::find;
use crate::wire::grpc::decode::{self, Odd};
use crate::wire::grpc::methods::Method;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "grpc.content-type" => kind,
    "grpc.one-answer" => one_answer,
    "grpc.ends-with-status" => ends_with_status,
    "grpc.http-status" => http_status,
    "grpc.uncompressed" => uncompressed,
    "grpc.fields" => fields,
    "grpc.not-found" => not_found,
    "grpc.details" => details,
    "grpc.stream-end" => stream_end,
    "grpc.stream-refused" => stream_refused,
};

async fn good(bench: &Bench) -> Done<(Heard, Method)> {
    asked(bench, Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await
}

async fn missing(bench: &Bench) -> Done<(Heard, Method)> {
    asked(bench, Operation::GetTask, &json!({ "id": fresh_id() })).await
}

async fn stream(bench: &Bench) -> Done<(Heard, Method)> {
    asked(bench, Operation::SendStreamingMessage, &Say::text(COMPLETE).params(bench)).await
}

async fn kind(bench: &Bench) -> Done {
    for (heard, what) in [(good(bench).await?.0, "an answer"), (missing(bench).await?.0, "an error")] {
        let kind = content_type(&heard);
        if kind != "application/grpc" && kind != "application/grpc+proto" {
            return Err(differs(format!("the content type application/grpc of {what}"), kind));
        }
    }
    Ok(())
}

async fn one_answer(bench: &Bench) -> Done {
    let (heard, _) = good(bench).await?;
    if heard.messages.len() == 1 { Ok(()) } else { Err(differs("one message", heard.summary())) }
}

async fn ends_with_status(bench: &Bench) -> Done {
    let (heard, _) = good(bench).await?;
    if heard.trailers.is_none() {
        return Err(differs("trailers after the message", heard.summary()));
    }
    expect_code(&heard, "an answer", 0)
}

/// What is wrong is said by grpc-status; another HTTP status is that of a proxy or of a web server.
async fn http_status(bench: &Bench) -> Done {
    let (heard, _) = missing(bench).await?;
    if heard.http != 200 {
        return Err(differs("HTTP 200, and the error as grpc-status", format!("HTTP {}", heard.http)));
    }
    if heard.code().is_some() { Ok(()) } else { Err(differs("a grpc-status", heard.summary())) }
}

/// This caller says of no compression that it knows it.
async fn uncompressed(bench: &Bench) -> Done {
    let (heard, _) = good(bench).await?;
    if let Some(encoding) = find(&heard.head, "grpc-encoding").filter(|name| *name != "identity") {
        return Err(differs("messages without compression", format!("grpc-encoding {encoding}")));
    }
    match heard.messages.iter().find(|frame| frame.flag != 0) {
        Some(frame) => Err(differs("messages without compression", format!("the flag {}", frame.flag))),
        None => Ok(()),
    }
}

/// Every field has the number and the type of the `.proto`. A reader of protobuf passes over those that have not.
async fn fields(bench: &Bench) -> Done {
    let mut found = Vec::new();
    let (heard, method) = good(bench).await?;
    judged(bench, &heard, method, &mut found)?;
    if let Some(frame) = heard.messages.first() {
        let read = decode::message(method.schema(), method.answers, &frame.message);
        let reply = read.map_err(|malformed| fail(malformed.to_string()))?.value;
        if let Some(id) = reply.pointer("/task/id") {
            let (heard, method) = asked(bench, Operation::GetTask, &json!({ "id": id })).await?;
            judged(bench, &heard, method, &mut found)?;
        }
    }
    if bench.target().capability_in(bench.generation(), "streaming") == true {
        let (heard, method) = stream(bench).await?;
        judged(bench, &heard, method, &mut found)?;
    }
    judge(found)
}

fn judged(bench: &Bench, heard: &Heard, method: Method, found: &mut Vec<Mismatch>) -> Done {
    if heard.messages.is_empty() {
        return Err(differs(format!("a message for {}", method.name), heard.summary()));
    }
    for (index, frame) in heard.messages.iter().enumerate() {
        let place = format!("{} [{index}]", method.name);
        match decode::message(method.schema(), method.answers, &frame.message) {
            Err(malformed) => found.push(fault(&place, method.answers, Some(&json!(malformed.to_string())))),
            Ok(read) => {
                for odd in read.odd {
                    match odd {
                        // It may be one of a later version.
                        Odd::UnknownField(_) => bench.note(format!("{place}: {odd}")),
                        Odd::WrongType(what) => {
                            found.push(fault(&place, "fields as in the .proto", Some(&json!(what))))
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

async fn not_found(bench: &Bench) -> Done {
    expect_code(&missing(bench).await?.0, "an unknown task", 5)
}

/// `google.rpc.Status` with the code of the call, and an ErrorInfo with reason and domain.
async fn details(bench: &Bench) -> Done {
    let (heard, _) = missing(bench).await?;
    let Some(status) = heard.status() else { return Err(differs("a grpc-status", heard.summary())) };
    if let Some(trouble) = status.trouble {
        return Err(fail(trouble));
    }
    let reason = errors::reason_in(&status.details).and_then(errors::of_reason);
    let list = status.details.as_array().into_iter().flatten();
    let domain = list.map(|detail| &detail["domain"]).any(|domain| domain == "a2a-protocol.org");
    if reason == Some("TaskNotFoundError") && domain {
        return Ok(());
    }
    let wanted = "an ErrorInfo with TASK_NOT_FOUND and a2a-protocol.org in grpc-status-details-bin";
    Err(differs(wanted, crate::acts::assertion::show(&status.details)))
}

async fn stream_end(bench: &Bench) -> Done {
    let (heard, _) = stream(bench).await?;
    if heard.messages.is_empty() || heard.trailers.is_none() {
        return Err(differs("messages, and then trailers", heard.summary()));
    }
    expect_code(&heard, "a stream that has ended", 0)
}

/// An error before the first event is a status, and not an event.
async fn stream_refused(bench: &Bench) -> Done {
    let (heard, _) = asked(bench, Operation::SubscribeToTask, &json!({ "id": fresh_id() })).await?;
    if !heard.messages.is_empty() {
        return Err(differs("no message before the error", heard.summary()));
    }
    expect_code(&heard, "a subscription to an unknown task", 5)
}
