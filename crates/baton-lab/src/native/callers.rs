//! Who asks: nobody, somebody with made-up credentials, another user. For the authentication cases of all generations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::talk::{Say, fresh_id, skip};
use super::{Done, differs, fail};
use crate::generation::{Binding, Generation};
use crate::run::Bench;
use crate::wire::no_answer::Kind;
use crate::wire::request::Operation;
use crate::wire::{Answer, Credentials, Probe, WireError};

/// Calls an operation with other credentials.
pub(super) async fn asked(
    bench: &Bench,
    probe: &Probe,
    operation: Operation,
    params: &Value,
) -> Done<Answer> {
    match heard(bench, probe, operation, params).await? {
        Some(answer) => Ok(answer),
        None => Err(fail(format!("{}: the TLS handshake was refused", bench.called(operation)))),
    }
}

/// The answer; `None` if already the TLS handshake was refused, since the caller has no certificate.
async fn heard(bench: &Bench, probe: &Probe, operation: Operation, params: &Value) -> Done<Option<Answer>> {
    let request = bench.request(operation, params).map_err(|none| skip(none.0))?;
    match probe.ask(bench.generation(), bench.binding(), &request).await {
        // An error may also be the only event of a stream.
        Ok(Answer::Stream { error: Some(error), events, .. }) if events.is_empty() => {
            Ok(Some(Answer::Error(error)))
        }
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind == Kind::CallerRefused => Ok(None),
        Err(error) => Err(fail(format!("{}: no answer: {error}", bench.called(operation)))),
    }
}

/// True if the error is about the caller's credentials, not about the task.
pub(super) fn is_about_the_caller(error: &WireError) -> bool {
    const A2A: &[&str] = &[
        "TaskNotFoundError",
        "TaskNotCancelableError",
        "PushNotificationNotSupportedError",
        "UnsupportedOperationError",
        "ContentTypeNotSupportedError",
        "InvalidAgentResponseError",
        "ExtendedAgentCardNotConfiguredError",
        "ExtensionSupportRequiredError",
        "VersionNotSupportedError",
        "JSONParseError",
        "InvalidRequestError",
        "InvalidParamsError",
        "MethodNotFoundError",
        "InternalError",
    ];
    matches!(error.status, 401 | 403 | 429)
        || (error.status < 500
            && error.status != 404
            && error.name.as_deref().is_none_or(|name| !A2A.contains(&name)))
}

/// Every operation that the card offers, with parameters about tasks that do not exist.
pub(super) fn operations(bench: &Bench) -> Vec<(Operation, Value)> {
    let generation = bench.generation();
    let (task, hook) = (fresh_id(), "https://example.com/webhook");
    let (id, send) = (json!({ "id": task }), Say::text("hello").params(bench));
    let mut all = vec![
        (Operation::SendMessage, send.clone()),
        (Operation::GetTask, id.clone()),
        (Operation::CancelTask, id.clone()),
    ];
    if generation == Generation::V1 {
        all.push((Operation::ListTasks, json!({})));
    }
    let offers = |name: &str| bench.target().capability_in(generation, name) == true;
    if offers("streaming") {
        all.extend([(Operation::SendStreamingMessage, send), (Operation::SubscribeToTask, id.clone())]);
    }
    if offers("pushNotifications") {
        all.extend(push_operations(generation, &task, hook));
    }
    all
}

/// The operations on the webhooks of a task.
fn push_operations(generation: Generation, task: &str, hook: &str) -> Vec<(Operation, Value)> {
    let inner = json!({ "url": hook });
    match generation {
        Generation::V1 => {
            let named = json!({"taskId": task, "id": fresh_id()});
            vec![
                (Operation::CreatePushConfig, json!({"taskId": task, "url": hook})),
                (Operation::GetPushConfig, named.clone()),
                (Operation::ListPushConfigs, json!({ "taskId": task })),
                (Operation::DeletePushConfig, named),
            ]
        }
        Generation::V0_3 => {
            let named = json!({"id": task, "pushNotificationConfigId": fresh_id()});
            vec![
                (Operation::CreatePushConfig, json!({"taskId": task, "pushNotificationConfig": inner})),
                (Operation::GetPushConfig, named.clone()),
                (Operation::ListPushConfigs, json!({ "id": task })),
                (Operation::DeletePushConfig, named),
            ]
        }
        Generation::V0_1 => vec![
            (Operation::CreatePushConfig, json!({"id": task, "pushNotificationConfig": inner})),
            (Operation::GetPushConfig, json!({ "id": task })),
        ],
    }
}

pub(super) async fn refuses(
    bench: &Bench,
    probe: &Probe,
    (operation, params): (Operation, &Value),
    whom: &str,
) -> Done {
    match heard(bench, probe, operation, params).await? {
        None => Ok(()),
        Some(Answer::Error(error)) if is_about_the_caller(&error) => Ok(()),
        Some(other) => {
            Err(differs(format!("{} to be refused {whom}", bench.called(operation)), other.summary()))
        }
    }
}

/// Refused without credentials.
pub(super) async fn refuses_strangers(bench: &Bench, operation: Operation, params: &Value) -> Done {
    refuses(bench, &bench.probe().stranger(), (operation, params), "without credentials").await
}

/// Every operation that the card offers must be refused without credentials.
pub(super) async fn strangers(bench: &Bench) -> Done {
    for (operation, params) in operations(bench) {
        refuses_strangers(bench, operation, &params).await?;
    }
    Ok(())
}

/// The errors with which callers are refused. Operations that do not refuse them are left out: another check is about
/// that. But if none does, there is nothing to look at.
async fn refusals(bench: &Bench, probe: &Probe, whom: &str) -> Done<Vec<(Operation, WireError)>> {
    let (mut all, mut open) = (Vec::new(), None);
    for (operation, params) in operations(bench) {
        match heard(bench, probe, operation, &params).await? {
            Some(Answer::Error(error)) if error.status == 429 => {
                return Err(skip(
                    "the agent limits failed authentication (HTTP 429); run this check alone, some time later",
                ));
            }
            Some(Answer::Error(error)) if is_about_the_caller(&error) => all.push((operation, error)),
            Some(other) => open = Some((operation, other)),
            None => {
                return Err(skip("callers without a certificate are refused in the TLS handshake"));
            }
        }
    }
    match (all.is_empty(), open) {
        (true, Some((operation, answer))) => {
            Err(differs(format!("{} to be refused {whom}", bench.called(operation)), answer.summary()))
        }
        _ => Ok(all),
    }
}

const WITHOUT: &str = "without credentials";

pub(super) async fn status(bench: &Bench) -> Done {
    for (operation, error) in refusals(bench, &bench.probe().stranger(), WITHOUT).await? {
        if error.status != 401 {
            let wanted = format!("HTTP 401 for {} without credentials", bench.called(operation));
            return Err(differs(wanted, error.summary()));
        }
    }
    Ok(())
}

pub(super) async fn challenge(bench: &Bench) -> Done {
    for (operation, error) in refusals(bench, &bench.probe().stranger(), WITHOUT).await? {
        if error.status != 401 {
            return Err(skip(format!("the refusal is HTTP {}, not 401", error.status)));
        }
        challenges(bench, operation, &error)?;
    }
    Ok(())
}

fn challenges(bench: &Bench, operation: Operation, error: &WireError) -> Done {
    // A challenge is part of HTTP 401; gRPC has UNAUTHENTICATED alone.
    if bench.binding() == Binding::Grpc {
        return Ok(());
    }
    let is_there = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("www-authenticate") && !value.trim().is_empty()
    };
    if error.headers.iter().any(is_there) {
        return Ok(());
    }
    let wanted = format!("`WWW-Authenticate` with the 401 for {}", bench.called(operation));
    Err(differs(wanted, "no such header"))
}

/// Somebody whose credentials have the declared form, and were never issued.
fn liar(bench: &Bench) -> Done<Probe> {
    let Some(credentials) = made_up(bench.target().card_of(bench.generation())) else {
        return Err(skip("the card declares no scheme whose credentials could be made up"));
    };
    Ok(bench.probe().acting_as(credentials))
}

pub(super) async fn wrong_credentials(bench: &Bench) -> Done {
    let liar = liar(bench)?;
    for (operation, params) in operations(bench) {
        refuses(bench, &liar, (operation, &params), "with made-up credentials").await?;
    }
    Ok(())
}

pub(super) async fn wrong_status(bench: &Bench) -> Done {
    for (operation, error) in refusals(bench, &liar(bench)?, "with made-up credentials").await? {
        if error.status != 401 {
            let wanted = format!("HTTP 401 for {} with made-up credentials", bench.called(operation));
            return Err(differs(wanted, error.summary()));
        }
        challenges(bench, operation, &error)?;
    }
    Ok(())
}

/// A broken body must not tell a stranger more than a whole one does.
pub(super) async fn broken_body(bench: &Bench) -> Done {
    let stranger = bench.probe().stranger();
    let request = bench.request(Operation::SendMessage, &Say::text("hello").params(bench));
    let mut request = request.map_err(|none| skip(none.0))?;
    for body in ["{", "[]", "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"NoSuchMethod\"}"] {
        request.body = Some(body.as_bytes().to_vec());
        match stranger.ask(bench.generation(), bench.binding(), &request).await {
            Ok(Answer::Error(error)) if matches!(error.status, 401 | 403 | 429) => {}
            Ok(other) => {
                let wanted = format!("the body {} to be refused for its caller", json!(body));
                return Err(differs(wanted, other.summary()));
            }
            Err(error) if error.kind == Kind::CallerRefused => return Ok(()),
            Err(error) => return Err(fail(format!("no answer: {error}"))),
        }
    }
    Ok(())
}

/// Made-up credentials of the form that a card of any generation declares.
fn made_up(card: &Value) -> Option<Credentials> {
    // The beginning differs each time: failed attempts may be counted by the beginning of a credential.
    let junk = format!("{}-baton-lab", fresh_id());
    let schemes = card["securitySchemes"].as_object();
    let declared = schemes.into_iter().flat_map(serde_json::Map::values);
    let found = declared.into_iter().find_map(|scheme| {
        let key = &scheme["apiKeySecurityScheme"];
        let (key, place) = if key.is_object() { (key, &key["location"]) } else { (scheme, &scheme["in"]) };
        if let (Some(name), Some(place)) = (key["name"].as_str(), place.as_str()) {
            return match place.to_ascii_lowercase().as_str() {
                "header" => Some(Credentials::header(name, &junk)),
                "cookie" => Some(Credentials::header("Cookie", format!("{name}={junk}"))),
                "query" => Some(Credentials::in_query(name, &junk)),
                _ => None,
            };
        }
        let http = scheme["httpAuthSecurityScheme"]["scheme"].as_str().or_else(|| scheme["scheme"].as_str());
        let tokens = ["oauth2SecurityScheme", "openIdConnectSecurityScheme"];
        let by_token = tokens.iter().any(|name| scheme.get(name).is_some())
            || ["oauth2", "openIdConnect"].iter().any(|kind| scheme["type"] == *kind);
        by_name(http.or(by_token.then_some("bearer"))?, &junk)
    });
    // 0.1 has names only.
    let named = || {
        card["authentication"]["schemes"].as_array()?.iter().find_map(|name| by_name(name.as_str()?, &junk))
    };
    found.or_else(named)
}

fn by_name(scheme: &str, junk: &str) -> Option<Credentials> {
    match scheme.to_ascii_lowercase().as_str() {
        "basic" => {
            let pair = STANDARD.encode(format!("{junk}:{junk}"));
            Some(Credentials::header("Authorization", format!("Basic {pair}")))
        }
        "bearer" | "oauth2" => Some(Credentials::header("Authorization", format!("Bearer {junk}"))),
        "apikey" => Some(Credentials::header("X-API-Key", junk)),
        _ => None,
    }
}

/// A second user, as given on the command line.
pub(super) fn other_user(bench: &Bench) -> Done<Probe> {
    if let Some(other) = &bench.options().other {
        return Ok(bench.probe().acting_as(other.clone()));
    }
    let given = &bench.options().given;
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let credentials = match (text("otherBearer"), text("otherHeader")) {
        (Some(token), _) => Credentials::header("Authorization", format!("Bearer {token}")),
        (None, Some(header)) => {
            let Some((name, value)) = header.split_once(':') else {
                return Err(skip("--var otherHeader has to be `Name: value`"));
            };
            Credentials::header(name.trim(), value.trim())
        }
        (None, None) => {
            return Err(skip(
                "needs the credentials of a second user: --other-bearer, --other-api-key, --other-basic or \
                 --other-header",
            ));
        }
    };
    Ok(bench.probe().acting_as(credentials))
}

/// Another user's task must look like a missing one.
pub(super) async fn foreign_task(bench: &Bench) -> Done {
    let other = other_user(bench)?;
    let task = bench.ended().await?;
    let (own, nobodys) = (task["id"].as_str().unwrap_or_default().to_owned(), fresh_id());
    let foreign = asked(bench, &other, Operation::GetTask, &json!({ "id": own })).await?;
    let missing = asked(bench, &other, Operation::GetTask, &json!({ "id": nobodys })).await?;
    let (Answer::Error(foreign), Answer::Error(missing)) = (&foreign, &missing) else {
        return Err(differs("another user's task to look missing", foreign.summary()));
    };
    // The id may be in the message.
    let said = |error: &WireError, id: &str| error.message.as_ref().map(|text| text.replace(id, "*"));
    let parts = |error: &WireError, id: &str| (error.status, error.name.clone(), error.code, said(error, id));
    if parts(foreign, &own) == parts(missing, &nobodys) {
        return Ok(());
    }
    Err(differs(format!("the same as for a task that never was: {}", missing.summary()), foreign.summary()))
}

/// No operation of another user may find the task.
pub(super) async fn foreign_changes(bench: &Bench) -> Done {
    let (other, generation) = (other_user(bench)?, bench.generation());
    let task = bench.ended().await?;
    let id = json!({ "id": task["id"] });
    let mut all = vec![(Operation::CancelTask, id.clone())];
    // In 0.1 clients choose the ids of tasks, so a message with any id makes one.
    if generation != Generation::V0_1 {
        all.push((Operation::SendMessage, Say::text("hello").to(&task).params(bench)));
    }
    if bench.target().capability_in(generation, "streaming") == true {
        all.push((Operation::SubscribeToTask, id));
    }
    if bench.target().capability_in(generation, "pushNotifications") == true {
        let task = task["id"].as_str().unwrap_or_default();
        all.extend(push_operations(generation, task, "https://example.com/webhook"));
    }
    for (operation, params) in all {
        match asked(bench, &other, operation, &params).await? {
            Answer::Error(error) if bench.is_named(&error, "TaskNotFoundError") => {}
            other => {
                let wanted = format!("TaskNotFoundError for {} by another user", bench.called(operation));
                return Err(differs(wanted, other.summary()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_credentials_have_the_declared_form() {
        let made = |scheme: Value| made_up(&json!({"securitySchemes": {"s": scheme}}));
        let new = |place: &str| json!({"apiKeySecurityScheme": {"location": place, "name": "X-Key"}});
        let old = |place: &str| json!({"type": "apiKey", "in": place, "name": "X-Key"});
        for key in [new, old] {
            assert_eq!(made(key("header")).unwrap().headers[0].0, "X-Key");
            assert_eq!(made(key("cookie")).unwrap().headers[0].0, "Cookie");
            assert_eq!(made(key("query")).unwrap().query[0].0, "X-Key");
        }
        for scheme in [
            json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}),
            json!({"type": "http", "scheme": "bearer"}),
            json!({"type": "oauth2", "flows": {}}),
            json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://h"}}),
        ] {
            let headers = made(scheme).unwrap().headers;
            assert!(headers[0].0 == "Authorization" && headers[0].1.ends_with("-baton-lab"));
        }
        assert!(made(json!({"type": "http", "scheme": "basic"})).unwrap().headers[0].1.starts_with("Basic "));
        let oldest = |name: &str| made_up(&json!({"authentication": {"schemes": [name]}}));
        assert_eq!(oldest("apiKey").unwrap().headers[0].0, "X-API-Key");
        assert!(oldest("Bearer").is_some() && oldest("none").is_none());
        for nothing in [json!({"mtlsSecurityScheme": {}}), json!({"type": "mutualTLS"})] {
            assert!(made(nothing).is_none());
        }
        assert!(made_up(&json!({})).is_none());
    }

    #[test]
    fn a_missing_task_is_not_a_refused_caller() {
        let error = |status: u16, name: Option<&str>| WireError {
            status,
            headers: Vec::new(),
            code: None,
            name: name.map(str::to_owned),
            message: None,
            details: Value::Null,
            body: None,
        };
        for good in [error(401, None), error(403, Some("TaskNotFoundError")), error(200, None)] {
            assert!(is_about_the_caller(&good));
        }
        for bad in [
            error(404, None),
            error(200, Some("TaskNotFoundError")),
            error(500, None),
            error(400, Some("InternalError")),
            error(400, Some("JSONParseError")),
        ] {
            assert!(!is_about_the_caller(&bad));
        }
    }
}
