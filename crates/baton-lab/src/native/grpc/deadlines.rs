//! Deadlines: a call ends, the task goes on.

use std::time::Duration;

use super::{expect_code, prepared, sent};
use crate::native::talk::{Say, has_ended, state};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::grpc::decode;
use crate::wire::grpc::frames::framed;
use crate::wire::grpc::methods::Method;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "grpc.deadline" => deadline,
    "grpc.stream-deadline" => stream_deadline,
};

const DEADLINE_EXCEEDED: i64 = 4;

/// Clients end a call at its deadline by themselves; this one waits for what the server says.
async fn deadline(bench: &Bench) -> Done {
    let mut judged = Ok(());
    // An agent on a busy machine may notice its deadline only when the work is done, but hardly twice.
    for _ in 0..2 {
        // Work that ends by itself, since nothing else ends it: the task's id is not known.
        let say = Say::text("tck-long-running");
        let (mut request, _, message) = prepared(bench, Operation::SendMessage, &say.params(bench))?;
        request.headers.push(("grpc-timeout".to_owned(), "20m".to_owned()));
        let heard = sent(bench, &request, framed(0, &message)).await?;
        judged = expect_code(&heard, "a call whose deadline has passed", DEADLINE_EXCEEDED);
        if heard.code() != Some(0) {
            break;
        }
    }
    judged
}

async fn stream_deadline(bench: &Bench) -> Done {
    let (mut request, method, message) =
        prepared(bench, Operation::SendStreamingMessage, &Say::text("tck-cancel").params(bench))?;
    // Long enough for the task to be made. A server that knows no deadlines keeps the stream open.
    request.headers.push(("grpc-timeout".to_owned(), "700m".to_owned()));
    let waits = bench.with(bench.probe().within(Duration::from_secs(5)));
    let heard = sent(&waits, &request, framed(0, &message)).await?;
    let first = heard.messages.first().map(|frame| task_of(method, &frame.message)).transpose()?.flatten();
    let Some(id) = first else { return Err(differs("the task before the deadline", heard.summary())) };
    let task = bench.get(&id).await?;
    bench.clean_up(&task).await;
    expect_code(&heard, "a stream whose deadline has passed", DEADLINE_EXCEEDED)?;
    if has_ended(&task) {
        return Err(differs("the task to go on after the deadline of a call", state(&task)));
    }
    Ok(())
}

/// The id of the task that an event is about.
fn task_of(method: Method, message: &[u8]) -> Done<Option<serde_json::Value>> {
    let read = decode::message(method.schema(), method.answers, message);
    let event = read.map_err(|malformed| fail(malformed.to_string()))?.value;
    let id = event.pointer("/task/id").or_else(|| event.pointer("/statusUpdate/taskId"));
    Ok(id.cloned())
}
