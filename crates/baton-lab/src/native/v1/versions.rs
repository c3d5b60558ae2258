//! The version of a request, and how the agent handles it.

use serde_json::{Value, json};

use super::talk::{fresh_id, skip};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, Request};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.versions.unsupported" => unsupported,
    "v1.versions.nonsense" => nonsense,
    "v1.versions.patch" => patch,
    "v1.versions.absent" => absent,
    "v1.versions.query" => query,
};

const HEADER: &str = "A2A-Version";

/// The request with another version header, or none.
fn with_version(mut request: Request, version: Option<&str>) -> Request {
    request.headers.retain(|(name, _)| name != HEADER);
    request.headers.extend(version.map(|version| (HEADER.to_owned(), version.to_owned())));
    request
}

pub(super) async fn asked(
    bench: &Bench,
    operation: Operation,
    params: &Value,
    version: Option<&str>,
) -> Done<Answer> {
    let request = bench.request(operation, params).map_err(|none| skip(none.0))?;
    let asked = bench.ask(operation, &with_version(request, version)).await;
    asked.map_err(|error| fail(format!("no answer: {error}")))
}

/// Requests an unknown task: an agent that reports it as missing has understood the request.
async fn with(bench: &Bench, version: Option<&str>) -> Done<Answer> {
    asked(bench, Operation::GetTask, &json!({ "id": fresh_id() }), version).await
}

fn is_understood(bench: &Bench, answer: &Answer) -> bool {
    matches!(answer, Answer::Error(error) if bench.is_named(error, "TaskNotFoundError"))
}

async fn unsupported(bench: &Bench) -> Done {
    let send = super::talk::Say::text(super::talk::COMPLETE).params(bench);
    for (operation, params) in
        [(Operation::GetTask, json!({ "id": fresh_id() })), (Operation::SendMessage, send)]
    {
        match asked(bench, operation, &params, Some("99.0")).await? {
            Answer::Error(error) => bench.expect_named(&error, "VersionNotSupportedError")?,
            other => {
                return Err(differs(
                    format!("VersionNotSupportedError for {}", bench.called(operation)),
                    other.summary(),
                ));
            }
        }
    }
    Ok(())
}

async fn nonsense(bench: &Bench) -> Done {
    match with(bench, Some("banana")).await? {
        Answer::Error(error) if bench.is_named(&error, "VersionNotSupportedError") => Ok(()),
        Answer::Error(error)
            if bench.is_named(&error, "InvalidRequestError")
                || bench.is_named(&error, "InvalidParamsError") =>
        {
            bench.note("a version that is none is refused as an invalid request");
            Ok(())
        }
        other => Err(differs("VersionNotSupportedError for the version `banana`", other.summary())),
    }
}

/// 1.0.7 must be treated as 1.0: patch numbers are ignored.
async fn patch(bench: &Bench) -> Done {
    let answer = with(bench, Some("1.0.7")).await?;
    if is_understood(bench, &answer) {
        return Ok(());
    }
    Err(differs("version 1.0.7 to be taken for 1.0", answer.summary()))
}

/// No version means 0.3. An agent may accept it as 1.0, or not support 0.3; only an internal error is a failure.
async fn absent(bench: &Bench) -> Done {
    let answer = with(bench, None).await?;
    if is_understood(bench, &answer) {
        bench.note("a request without a version is taken for 1.0; the specification says 0.3");
        return Ok(());
    }
    match &answer {
        Answer::Error(error) if error.status < 500 && error.name.as_deref() != Some("InternalError") => {
            bench.note(format!("a request without a version is refused: {}", error.summary()));
            Ok(())
        }
        other => Err(differs("an answer, or a refusal", other.summary())),
    }
}

async fn query(bench: &Bench) -> Done {
    let params = json!({ "id": fresh_id() });
    let request = bench.request(Operation::GetTask, &params).map_err(|none| skip(none.0))?;
    let mut request = with_version(request, None);
    request.url += if request.url.contains('?') { "&A2A-Version=1.0" } else { "?A2A-Version=1.0" };
    let answer = bench.ask(Operation::GetTask, &request).await;
    let answer = answer.map_err(|error| fail(format!("no answer: {error}")))?;
    if is_understood(bench, &answer) {
        return Ok(());
    }
    Err(differs("`?A2A-Version=1.0` to do what the header does", answer.summary()))
}
