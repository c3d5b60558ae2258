//! Who may ask: strangers and people with wrong credentials; and the card that only friends get.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::shapes;
use crate::generation::Generation;
use crate::native::shape::{faults, judge};
use crate::native::talk::{Say, fresh_id, skip};
use crate::native::v1::auth::{asked, challenge, is_about_the_caller, refuses_strangers, status};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, Credentials, WireError};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.auth.strangers" => strangers,
    "v0_3.auth.status" => status,
    "v0_3.auth.challenge" => challenge,
    "v0_3.auth.wrong-credentials" => wrong_credentials,
    "v0_3.extended-card.not-offered" => not_offered,
    "v0_3.extended-card.code" => code,
    "v0_3.extended-card.answers" => answers,
    "v0_3.extended-card.strangers" => extended_strangers,
};

/// Every operation the card offers; a stranger gets none of them.
async fn strangers(bench: &Bench) -> Done {
    let id = json!({ "id": fresh_id() });
    let send = Say::text("hello").params(bench);
    let config =
        json!({"taskId": fresh_id(), "pushNotificationConfig": {"url": "https://example.com/webhook"}});
    let named = json!({"id": fresh_id(), "pushNotificationConfigId": fresh_id()});
    let mut all =
        vec![(Operation::SendMessage, &send), (Operation::GetTask, &id), (Operation::CancelTask, &id)];
    if bench.target().capability("streaming") == true {
        all.extend([(Operation::SendStreamingMessage, &send), (Operation::SubscribeToTask, &id)]);
    }
    if bench.target().capability("pushNotifications") == true {
        all.extend([
            (Operation::CreatePushConfig, &config),
            (Operation::GetPushConfig, &named),
            (Operation::ListPushConfigs, &id),
            (Operation::DeletePushConfig, &named),
        ]);
    }
    for (operation, params) in all {
        refuses_strangers(bench, operation, params).await?;
    }
    Ok(())
}

/// Credentials of the declared form that nobody ever issued.
fn made_up(card: &Value) -> Option<(String, String)> {
    let junk = format!("baton-lab-{}", fresh_id());
    let bearer = || Some(("Authorization".to_owned(), format!("Bearer {junk}")));
    card["securitySchemes"].as_object()?.values().find_map(|scheme| match scheme["type"].as_str()? {
        "apiKey" => {
            let name = scheme["name"].as_str()?.to_owned();
            match scheme["in"].as_str()? {
                "header" => Some((name, junk.clone())),
                "cookie" => Some(("Cookie".to_owned(), format!("{name}={junk}"))),
                _ => None,
            }
        }
        "http" => match scheme["scheme"].as_str()?.to_ascii_lowercase().as_str() {
            "basic" => {
                let pair = STANDARD.encode(format!("{junk}:{junk}"));
                Some(("Authorization".to_owned(), format!("Basic {pair}")))
            }
            "bearer" => bearer(),
            _ => None,
        },
        "oauth2" | "openIdConnect" => bearer(),
        _ => None,
    })
}

async fn wrong_credentials(bench: &Bench) -> Done {
    let Some(header) = made_up(bench.target().card_of(Generation::V0_3)) else {
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

fn offers_more(bench: &Bench) -> bool {
    bench.target().card_of(Generation::V0_3)["supportsAuthenticatedExtendedCard"] == true
}

/// The error of an agent that has no extended card.
async fn refused(bench: &Bench) -> Done<WireError> {
    if offers_more(bench) {
        return Err(skip("the card says `supportsAuthenticatedExtendedCard`; this is for agents without"));
    }
    bench.refusal(Operation::GetExtendedAgentCard, &json!({})).await
}

async fn not_offered(bench: &Bench) -> Done {
    refused(bench).await.map(|_| ())
}

async fn code(bench: &Bench) -> Done {
    let error = refused(bench).await?;
    let fits = [
        "AuthenticatedExtendedCardNotConfiguredError",
        "ExtendedAgentCardNotConfiguredError",
        "UnsupportedOperationError",
        "MethodNotFoundError",
    ];
    if is_about_the_caller(&error) && matches!(error.status, 401 | 403)
        || fits.iter().any(|name| bench.is_named(&error, name))
    {
        return Ok(());
    }
    Err(differs("AuthenticatedExtendedCardNotConfiguredError (-32007)", error.summary()))
}

async fn answers(bench: &Bench) -> Done {
    if !offers_more(bench) {
        return Err(skip("the card does not say `supportsAuthenticatedExtendedCard`"));
    }
    match bench.call(Operation::GetExtendedAgentCard, &json!({})).await? {
        Answer::Reply { root: Some(card), .. } => judge(faults(&shapes::CARD, &own_json(card), "")),
        Answer::Error(error) if matches!(error.status, 401 | 403) => {
            Err(skip("the extended card needs credentials; give them with --bearer, --api-key or --header"))
        }
        other => Err(differs("the extended card", other.summary())),
    }
}

/// HTTP+JSON has the card in its own JSON with some, in ProtoJSON with others: the same members, but for what stands
/// around the names of schemes.
fn own_json(mut card: Value) -> Value {
    for requirement in card.get_mut("security").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(schemes) = requirement.get("schemes").and_then(Value::as_object) else { continue };
        let plain = schemes.iter().map(|(name, scopes)| {
            // An empty list is left out.
            (name.clone(), scopes.get("list").cloned().unwrap_or_else(|| json!([])))
        });
        *requirement = Value::Object(plain.collect());
    }
    card
}

async fn extended_strangers(bench: &Bench) -> Done {
    if !offers_more(bench) {
        return Err(skip("the card does not say `supportsAuthenticatedExtendedCard`"));
    }
    refuses_strangers(bench, Operation::GetExtendedAgentCard, &json!({})).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_form_of_a_requirement_is_read() {
        let proto = json!({"security": [{"schemes": {"a": {}, "b": {"list": ["s"]}}}]});
        let own = json!({"security": [{"a": [], "b": ["s"]}]});
        assert_eq!(own_json(proto), own);
        assert_eq!(own_json(own.clone()), own);
    }

    #[test]
    fn made_up_credentials_have_the_declared_form() {
        let made = |scheme: Value| made_up(&json!({"securitySchemes": {"s": scheme}}));
        let key = |place: &str| json!({"type": "apiKey", "in": place, "name": "X-Key"});
        assert_eq!(made(key("header")).unwrap().0, "X-Key");
        assert_eq!(made(key("cookie")).unwrap().0, "Cookie");
        assert!(made(key("query")).is_none());
        let (name, value) = made(json!({"type": "http", "scheme": "Bearer"})).unwrap();
        assert!(name == "Authorization" && value.starts_with("Bearer baton-lab-"));
        assert!(made(json!({"type": "oauth2"})).unwrap().1.starts_with("Bearer "));
        assert!(made(json!({"type": "mutualTLS"})).is_none() && made_up(&json!({})).is_none());
    }
}
