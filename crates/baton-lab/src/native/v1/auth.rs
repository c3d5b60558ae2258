//! Who may ask: strangers, people with wrong credentials, other users.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::talk::{Say, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, Credentials, Probe, WireError};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.auth.strangers" => strangers,
    "v1.auth.status" => status,
    "v1.auth.challenge" => challenge,
    "v1.auth.wrong-credentials" => wrong_credentials,
    "v1.auth.extended-card" => extended_card,
    "v1.auth.foreign-task" => foreign_task,
    "v1.auth.foreign-list" => foreign_list,
    "v1.auth.foreign-changes" => foreign_changes,
};

/// Asks as somebody else.
pub(in crate::native) async fn asked(
    bench: &Bench,
    probe: &Probe,
    operation: Operation,
    params: &Value,
) -> Done<Answer> {
    let request = bench.request(operation, params).map_err(|none| skip(none.0))?;
    let answer = probe.ask(bench.generation(), bench.binding(), &request).await;
    answer.map_err(|error| fail(format!("{}: no answer: {error}", bench.called(operation))))
}

/// An error that says who you are not, rather than what there is not.
pub(in crate::native) fn is_about_the_caller(error: &WireError) -> bool {
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
        "InvalidParamsError",
        "MethodNotFoundError",
        "InternalError",
    ];
    matches!(error.status, 401 | 403)
        || (error.status < 500
            && error.status != 404
            && error.name.as_deref().is_none_or(|name| !A2A.contains(&name)))
}

pub(in crate::native) async fn refuses_strangers(
    bench: &Bench,
    operation: Operation,
    params: &Value,
) -> Done {
    match asked(bench, &bench.probe().stranger(), operation, params).await? {
        Answer::Error(error) if is_about_the_caller(&error) => Ok(()),
        other => Err(differs(
            format!("{} to be refused without credentials", bench.called(operation)),
            other.summary(),
        )),
    }
}

/// Every operation the card offers; a stranger gets none of them.
async fn strangers(bench: &Bench) -> Done {
    let (id, task) = (json!({ "id": fresh_id() }), json!({ "taskId": fresh_id(), "id": fresh_id() }));
    let send = Say::text("hello").params(bench);
    let config = json!({"taskId": fresh_id(), "url": "https://example.com/webhook"});
    let mut all = vec![
        (Operation::SendMessage, &send),
        (Operation::GetTask, &id),
        (Operation::ListTasks, &Value::Null),
        (Operation::CancelTask, &id),
    ];
    if bench.target().capability("streaming") == true {
        all.extend([(Operation::SendStreamingMessage, &send), (Operation::SubscribeToTask, &id)]);
    }
    if bench.target().capability("pushNotifications") == true {
        all.extend([
            (Operation::CreatePushConfig, &config),
            (Operation::GetPushConfig, &task),
            (Operation::ListPushConfigs, &task),
            (Operation::DeletePushConfig, &task),
        ]);
    }
    for (operation, params) in all {
        refuses_strangers(bench, operation, params).await?;
    }
    Ok(())
}

async fn as_stranger(bench: &Bench) -> Done<WireError> {
    let send = Say::text("hello").params(bench);
    match asked(bench, &bench.probe().stranger(), Operation::SendMessage, &send).await? {
        Answer::Error(error) => Ok(error),
        other => Err(differs("SendMessage to be refused without credentials", other.summary())),
    }
}

pub(in crate::native) async fn status(bench: &Bench) -> Done {
    let error = as_stranger(bench).await?;
    if error.status == 401 { Ok(()) } else { Err(differs("HTTP 401 without credentials", error.summary())) }
}

pub(in crate::native) async fn challenge(bench: &Bench) -> Done {
    let error = as_stranger(bench).await?;
    if error.status != 401 {
        return Err(skip(format!("the refusal is HTTP {}, not 401", error.status)));
    }
    let told = error
        .headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("www-authenticate") && !value.is_empty());
    if told { Ok(()) } else { Err(differs("`WWW-Authenticate` with the 401", "no such header")) }
}

/// Credentials of the declared form that nobody ever issued.
fn made_up(card: &Value) -> Option<(String, String)> {
    let junk = format!("baton-lab-{}", fresh_id());
    card["securitySchemes"].as_object()?.values().find_map(|scheme| {
        if let Some(key) = scheme.get("apiKeySecurityScheme") {
            let name = key["name"].as_str()?.to_owned();
            return match key["location"].as_str()? {
                "header" => Some((name, junk.clone())),
                "cookie" => Some(("Cookie".to_owned(), format!("{name}={junk}"))),
                _ => None,
            };
        }
        if let Some(http) = scheme.get("httpAuthSecurityScheme") {
            return match http["scheme"].as_str()?.to_ascii_lowercase().as_str() {
                "basic" => {
                    let pair = STANDARD.encode(format!("{junk}:{junk}"));
                    Some(("Authorization".to_owned(), format!("Basic {pair}")))
                }
                "bearer" => Some(("Authorization".to_owned(), format!("Bearer {junk}"))),
                _ => None,
            };
        }
        let by_token =
            scheme.get("oauth2SecurityScheme").or_else(|| scheme.get("openIdConnectSecurityScheme"));
        by_token.map(|_| ("Authorization".to_owned(), format!("Bearer {junk}")))
    })
}

async fn wrong_credentials(bench: &Bench) -> Done {
    let Some(header) = made_up(&bench.target().card) else {
        return Err(skip(
            "the card declares no scheme whose credentials could be made up (header or cookie)",
        ));
    };
    let liar = bench.probe().acting_as(Credentials { headers: vec![header] });
    match asked(bench, &liar, Operation::GetTask, &json!({ "id": fresh_id() })).await? {
        Answer::Error(error) if is_about_the_caller(&error) => Ok(()),
        other => Err(differs("made-up credentials to be refused", other.summary())),
    }
}

async fn extended_card(bench: &Bench) -> Done {
    match asked(bench, &bench.probe().stranger(), Operation::GetExtendedAgentCard, &json!({})).await? {
        Answer::Error(error) if is_about_the_caller(&error) => Ok(()),
        Answer::Error(error) if bench.is_named(&error, "ExtendedAgentCardNotConfiguredError") => {
            Err(skip("no extended card is configured"))
        }
        other => Err(differs("the extended card to be refused without credentials", other.summary())),
    }
}

/// Somebody else, as the command line describes them.
fn other_user(bench: &Bench) -> Done<Probe> {
    let given = &bench.options().given;
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let header = match (text("otherBearer"), text("otherHeader")) {
        (Some(token), _) => ("Authorization".to_owned(), format!("Bearer {token}")),
        (None, Some(header)) => {
            let Some((name, value)) = header.split_once(':') else {
                return Err(skip("--var otherHeader has to be `Name: value`"));
            };
            (name.trim().to_owned(), value.trim().to_owned())
        }
        (None, None) => {
            return Err(skip(
                "needs the credentials of a second user: --var otherBearer=TOKEN or --var otherHeader='Name: value'",
            ));
        }
    };
    Ok(bench.probe().acting_as(Credentials { headers: vec![header] }))
}

/// A task of ours looks to others like one that never was.
async fn foreign_task(bench: &Bench) -> Done {
    let other = other_user(bench)?;
    let task = bench.ended().await?;
    let foreign = asked(bench, &other, Operation::GetTask, &json!({ "id": task["id"] })).await?;
    let missing = asked(bench, &other, Operation::GetTask, &json!({ "id": fresh_id() })).await?;
    let (Answer::Error(foreign), Answer::Error(missing)) = (&foreign, &missing) else {
        return Err(differs("another user's task to look missing", foreign.summary()));
    };
    if (foreign.status, &foreign.name, foreign.code) == (missing.status, &missing.name, missing.code) {
        return Ok(());
    }
    Err(differs(format!("the same as for a task that never was: {}", missing.summary()), foreign.summary()))
}

async fn foreign_list(bench: &Bench) -> Done {
    let other = other_user(bench)?;
    let task = bench.ended().await?;
    for params in [json!({}), json!({ "contextId": task["contextId"] })] {
        match asked(bench, &other, Operation::ListTasks, &params).await? {
            Answer::Reply { root: Some(page), .. } => {
                let seen = page["tasks"]
                    .as_array()
                    .is_some_and(|list| list.iter().any(|one| one["id"] == task["id"]));
                if seen {
                    return Err(differs("no task of another user in the list", task["id"].to_string()));
                }
            }
            Answer::Error(error) if is_about_the_caller(&error) => {}
            other => return Err(differs("the other user's own list", other.summary())),
        }
    }
    Ok(())
}

async fn foreign_changes(bench: &Bench) -> Done {
    let other = other_user(bench)?;
    let task = bench.ended().await?;
    let id = json!({ "id": task["id"] });
    let say = Say::text("hello").to(&task).params(bench);
    let mut all = vec![(Operation::CancelTask, &id), (Operation::SendMessage, &say)];
    if bench.target().capability("streaming") == true {
        all.push((Operation::SubscribeToTask, &id));
    }
    for (operation, params) in all {
        match asked(bench, &other, operation, params).await? {
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
        let key = |place: &str| json!({"apiKeySecurityScheme": {"location": place, "name": "X-Key"}});
        assert_eq!(made(key("header")).unwrap().0, "X-Key");
        assert_eq!(made(key("cookie")).unwrap().0, "Cookie");
        assert!(made(key("query")).is_none());
        let (name, value) = made(json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}})).unwrap();
        assert!(name == "Authorization" && value.starts_with("Bearer baton-lab-"));
        assert!(made(json!({"mtlsSecurityScheme": {}})).is_none() && made_up(&json!({})).is_none());
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
        ] {
            assert!(!is_about_the_caller(&bad));
        }
    }
}
