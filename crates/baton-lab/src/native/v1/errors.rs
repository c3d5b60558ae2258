//! Errors: their codes, their details, their messages.

use serde_json::{Value, json};

use super::shape::{fault, judge};
use super::talk::{COMPLETE, Say, filled, fresh_id, skip};
use super::versions;
use crate::acts::assertion::{Mismatch, show};
use crate::case::Verdict;
use crate::generation::{Binding, Generation};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::grpc::status;
use crate::wire::request::Operation;
use crate::wire::{Answer, WireError, errors};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.errors.task-not-found" => task_not_found,
    "v1.errors.task-not-cancelable" => task_not_cancelable,
    "v1.errors.unsupported-operation" => unsupported_operation,
    "v1.errors.push-not-supported" => push_not_supported,
    "v1.errors.version-not-supported" => version_not_supported,
    "v1.errors.details-have-types" => details_have_types,
    "v1.errors.info" => info,
    "v1.errors.said" => said,
    "v1.errors.rest-body" => rest_body,
    "v1.errors.names-the-field" => names_the_field,
    "v1.errors.bad-request" => bad_request,
};

async fn not_found(bench: &Bench) -> Done<WireError> {
    bench.refusal(Operation::GetTask, &json!({ "id": fresh_id() })).await
}

async fn not_cancelable(bench: &Bench) -> Done<WireError> {
    let task = bench.ended().await?;
    bench.refusal(Operation::CancelTask, &json!({ "id": task["id"] })).await
}

async fn unsupported(bench: &Bench) -> Done<WireError> {
    let task = bench.ended().await?;
    bench.refusal(Operation::SendMessage, &Say::text(COMPLETE).to(&task).params(bench)).await
}

/// The error for a wrong `pageSize`; `None` if the agent accepts it, which another case checks.
async fn invalid(bench: &Bench) -> Done<WireError> {
    match bench.call(Operation::ListTasks, &json!({"pageSize": 1000})).await? {
        Answer::Error(error) => Ok(error),
        other => Err(skip(format!(
            "nothing was refused: the agent takes a `pageSize` of 1000 ({}), see V1-LIST-008",
            other.status()
        ))),
    }
}

async fn task_not_found(bench: &Bench) -> Done {
    row(bench, "TaskNotFoundError", &not_found(bench).await?)
}

async fn task_not_cancelable(bench: &Bench) -> Done {
    row(bench, "TaskNotCancelableError", &not_cancelable(bench).await?)
}

async fn unsupported_operation(bench: &Bench) -> Done {
    row(bench, "UnsupportedOperationError", &unsupported(bench).await?)
}

async fn push_not_supported(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    let params = json!({"taskId": task["id"], "url": "https://example.com/webhook"});
    row(
        bench,
        "PushNotificationNotSupportedError",
        &bench.refusal(Operation::CreatePushConfig, &params).await?,
    )
}

async fn version_not_supported(bench: &Bench) -> Done {
    let params = json!({ "id": fresh_id() });
    let answer = versions::asked(bench, Operation::GetTask, &params, Some("99.0")).await?;
    match answer {
        Answer::Error(error) => row(bench, "VersionNotSupportedError", &error),
        other => Err(differs("VersionNotSupportedError", other.summary())),
    }
}

/// Checks the code or status of an error against the specification's table.
fn row(bench: &Bench, name: &str, error: &WireError) -> Done {
    match bench.binding() {
        Binding::Jsonrpc => {
            let code = errors::code_of(Generation::V1, name);
            if error.code == code {
                return Ok(());
            }
            Err(differs(format!("{name}, code {}", code.unwrap_or_default()), error.summary()))
        }
        Binding::Grpc => {
            let (code, first) = (errors::grpc_code(name), errors::first_grpc_code(name));
            if first.is_some() && error.code == first {
                bench.note(format!(
                    "UNIMPLEMENTED was right in 1.0.0 for {name}; since 1.0.1 it is FAILED_PRECONDITION"
                ));
            } else if error.code != code {
                let wanted = status::name(code.unwrap_or_default());
                return Err(differs(format!("{name}, gRPC {wanted}"), error.summary()));
            }
            bench.expect_named_or_bare(error, name)
        }
        Binding::Rest => {
            let status = errors::http_status(name);
            if Some(error.status) == status {
                return bench.expect_named_or_bare(error, name);
            }
            if errors::first_http_status(name) == Some(error.status) {
                bench.note(format!("HTTP {} was right in 1.0.0; since 1.0.1 it is {status:?}", error.status));
                return bench.expect_named_or_bare(error, name);
            }
            Err(differs(format!("{name}, HTTP {}", status.unwrap_or_default()), error.summary()))
        }
    }
}

impl Bench {
    /// The name, if the body has one; another case checks that it must.
    fn expect_named_or_bare(&self, error: &WireError, name: &str) -> Done {
        match errors::reason_in(&error.details) {
            Some(_) => self.expect_named(error, name),
            None => Ok(()),
        }
    }
}

/// Errors that can be provoked; for an agent without tasks only the first.
async fn several(bench: &Bench) -> Done<Vec<(&'static str, WireError)>> {
    let mut all = vec![("TaskNotFoundError", not_found(bench).await?)];
    add(bench, &mut all, "TaskNotCancelableError", not_cancelable(bench).await)?;
    add(bench, &mut all, "UnsupportedOperationError", unsupported(bench).await)?;
    Ok(all)
}

fn add(
    bench: &Bench,
    all: &mut Vec<(&'static str, WireError)>,
    name: &'static str,
    provoked: Done<WireError>,
) -> Done {
    match provoked {
        Ok(error) => all.push((name, error)),
        Err(Verdict::Skip(reason)) => bench.note(format!("{name} was not provoked: {reason}")),
        Err(other) => return Err(other),
    }
    Ok(())
}

async fn details_have_types(bench: &Bench) -> Done {
    let mut all = several(bench).await?;
    add(bench, &mut all, "InvalidParamsError", invalid(bench).await)?;
    judge(all.iter().flat_map(|(name, error)| untyped(name, &error.details)).collect())
}

fn untyped(name: &str, details: &Value) -> Vec<Mismatch> {
    let list = match details {
        Value::Null => return Vec::new(),
        Value::Array(list) => list.as_slice(),
        other => return vec![fault(name, "a list of details", Some(other))],
    };
    let missing = list.iter().enumerate().filter(|(_, detail)| filled(detail, "@type").is_none());
    missing
        .map(|(index, detail)| {
            fault(&format!("{name} details[{index}]"), "an object with `@type`", Some(detail))
        })
        .collect()
}

async fn info(bench: &Bench) -> Done {
    let all = several(bench).await?;
    judge(all.iter().flat_map(|(name, error)| info_faults(name, &error.details)).collect())
}

fn info_faults(name: &str, details: &Value) -> Vec<Mismatch> {
    let list = details.as_array().map_or(&[][..], Vec::as_slice);
    let info = list.iter().find(|detail| {
        detail["@type"].as_str().is_some_and(|kind| kind == "type.googleapis.com/google.rpc.ErrorInfo")
    });
    let Some(info) = info else {
        let wanted = "a detail of `@type` type.googleapis.com/google.rpc.ErrorInfo";
        return vec![fault(name, wanted, Some(details))];
    };
    let mut found = Vec::new();
    if errors::of_reason(info["reason"].as_str().unwrap_or_default()) != Some(name) {
        found.push(fault(
            &format!("{name} reason"),
            "the error's name in UPPER_SNAKE_CASE",
            info.get("reason"),
        ));
    }
    if info["domain"] != "a2a-protocol.org" {
        found.push(fault(&format!("{name} domain"), "a2a-protocol.org", info.get("domain")));
    }
    let metadata = info.get("metadata").and_then(Value::as_object).into_iter().flatten();
    for (key, value) in metadata.filter(|(_, value)| !value.is_string()) {
        found.push(fault(&format!("{name} metadata.{key}"), "a text", Some(value)));
    }
    found
}

/// An error must have a message, not only a code.
async fn said(bench: &Bench) -> Done {
    let mut all = several(bench).await?;
    add(bench, &mut all, "InvalidParamsError", invalid(bench).await)?;
    let mute = all.iter().filter(|(_, error)| error.message.as_deref().unwrap_or_default().trim().is_empty());
    judge(
        mute.map(|(name, error)| fault(&format!("{name} message"), "a text", Some(&json!(error.message))))
            .collect(),
    )
}

async fn rest_body(bench: &Bench) -> Done {
    let all = several(bench).await?;
    judge(all.iter().flat_map(|(name, error)| body_faults(name, error)).collect())
}

/// `{"error": {"code": 404, "status": "NOT_FOUND", "message": …}}`
fn body_faults(name: &str, error: &WireError) -> Vec<Mismatch> {
    let Some(inner) =
        error.body.as_ref().and_then(|body| body.get("error")).filter(|inner| inner.is_object())
    else {
        return vec![fault(name, "a body with `error`", error.body.as_ref())];
    };
    let mut found = Vec::new();
    if inner["code"] != error.status {
        found.push(fault(
            &format!("{name} error.code"),
            &format!("the HTTP status, {}", error.status),
            inner.get("code"),
        ));
    }
    const STATUSES: &[&str] = &[
        "NOT_FOUND",
        "FAILED_PRECONDITION",
        "INVALID_ARGUMENT",
        "UNIMPLEMENTED",
        "INTERNAL",
        "ALREADY_EXISTS",
    ];
    if !inner["status"].as_str().is_some_and(|status| STATUSES.contains(&status)) {
        found.push(fault(&format!("{name} error.status"), "the name of a gRPC status", inner.get("status")));
    }
    found
}

async fn names_the_field(bench: &Bench) -> Done {
    let error = invalid(bench).await?;
    let text = format!("{} {}", error.message.clone().unwrap_or_default(), error.details);
    let plain = text.to_ascii_lowercase().replace(['_', ' '], "");
    if plain.contains("pagesize") {
        return Ok(());
    }
    Err(differs("an error that names `pageSize`", error.summary()))
}

async fn bad_request(bench: &Bench) -> Done {
    let error = invalid(bench).await?;
    let list = error.details.as_array().map_or(&[][..], Vec::as_slice);
    let told = list.iter().any(|detail| {
        let kind = detail["@type"].as_str().unwrap_or_default();
        let fields = detail["fieldViolations"].as_array().is_some_and(|fields| !fields.is_empty());
        kind.ends_with("google.rpc.BadRequest") && fields
    });
    if told {
        Ok(())
    } else {
        Err(differs("a google.rpc.BadRequest with `fieldViolations`", show(&error.details)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_judged() {
        let info = |reason: &str, domain: &str, metadata: Value| {
            json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain,
                "metadata": metadata}])
        };
        let name = "TaskNotFoundError";
        let good = info("TASK_NOT_FOUND", "a2a-protocol.org", json!({"taskId": "1"}));
        assert_eq!(info_faults(name, &good), []);
        assert_eq!(info_faults(name, &Value::Null).len(), 1);
        let bad = info("TASK_GONE", "example.com", json!({"taskId": 1}));
        assert_eq!(info_faults(name, &bad).len(), 3);
        assert_eq!(untyped(name, &good), []);
        assert_eq!(untyped(name, &Value::Null), []);
        assert_eq!(untyped(name, &json!([{"reason": "x"}, "text"])).len(), 2);
        assert_eq!(untyped(name, &json!({"@type": "x"})).len(), 1);
    }

    #[test]
    fn bodies_are_judged() {
        let error = |body: Value| WireError {
            status: 404,
            headers: Vec::new(),
            code: None,
            name: None,
            message: None,
            details: Value::Null,
            body: Some(body),
        };
        assert_eq!(body_faults("e", &error(json!({"error": {"code": 404, "status": "NOT_FOUND"}}))), []);
        assert_eq!(body_faults("e", &error(json!({"error": {"code": -32001, "status": "gone"}}))).len(), 2);
        assert_eq!(body_faults("e", &error(json!({"title": "Not Found", "status": 404}))).len(), 1);
    }
}
