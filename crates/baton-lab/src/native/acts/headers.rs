//! Headers: the version a request names, the type an answer has.

use serde_json::json;

use crate::generation::Binding;
use crate::native::{Done, differs};
use crate::run::Bench;
use crate::speak::send_params;
use crate::wire::Answer;
use crate::wire::request::Operation;

/// VER-NEG-002: a request without `A2A-Version` is one of 0.3, which has no SendMessage; some agents are kinder.
pub(super) async fn no_version(bench: &Bench) -> Done {
    let params = send_params(bench.generation(), "tck-complete-task version default", json!({}));
    let request = bench.request(Operation::SendMessage, &params);
    let mut request = request.map_err(|none| crate::case::Verdict::Skip(none.0))?;
    request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("a2a-version"));
    let answer = bench.probe().ask(bench.generation(), bench.binding(), &request).await;
    let answer = answer.map_err(|error| crate::native::fail(format!("no answer: {error}")))?;
    let said = match &answer {
        Answer::Reply { root: Some(_), .. } => "taken as the newest generation",
        Answer::Error(error) => match error.name.as_deref() {
            Some("VersionNotSupportedError") => "refused with VersionNotSupportedError",
            Some("MethodNotFoundError") => "taken as 0.3, which has no such method",
            _ => "",
        },
        _ => "",
    };
    if said.is_empty() {
        let wanted = "an answer, VersionNotSupportedError or MethodNotFoundError";
        return Err(differs(wanted, answer.summary()));
    }
    bench.note(format!("a request without A2A-Version is {said}"));
    Ok(())
}

/// REST-CT-001: answers of the HTTP+JSON binding are `application/a2a+json`.
pub(super) async fn rest_content_type(bench: &Bench) -> Done {
    debug_assert_eq!(bench.binding(), Binding::Rest, "the file limits it");
    let params = send_params(bench.generation(), "tck-complete-task content type", json!({}));
    let answer = bench.call(Operation::SendMessage, &params).await?;
    let Answer::Reply { .. } = &answer else { return Err(differs("a task", answer.summary())) };
    let kind = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let is = |name: &str| kind.split(';').next().is_some_and(|first| first.trim() == name);
    if is("application/a2a+json") {
        return Ok(());
    }
    if is("application/json") {
        bench.note("answers are application/json; application/a2a+json is recommended");
        return Ok(());
    }
    Err(differs("content-type application/a2a+json", if kind.is_empty() { "none" } else { &kind }))
}
