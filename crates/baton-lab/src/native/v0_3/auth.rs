//! Authentication: missing and wrong credentials, and the extended card.

use serde_json::{Value, json};

use super::shapes;
use crate::generation::Generation;
use crate::native::callers::{self, is_about_the_caller, refuses_strangers};
use crate::native::shape::{faults, judge};
use crate::native::talk::skip;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, WireError};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.auth.strangers" => callers::strangers,
    "v0_3.auth.status" => callers::status,
    "v0_3.auth.challenge" => callers::challenge,
    "v0_3.auth.wrong-credentials" => callers::wrong_credentials,
    "v0_3.auth.broken-body" => callers::broken_body,
    "v0_3.auth.foreign-task" => callers::foreign_task,
    "v0_3.auth.foreign-changes" => callers::foreign_changes,
    "v0_3.extended-card.not-offered" => not_offered,
    "v0_3.extended-card.code" => code,
    "v0_3.extended-card.answers" => answers,
    "v0_3.extended-card.strangers" => extended_strangers,
};

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

/// Over HTTP+JSON some servers send the card in 0.3 JSON, others in ProtoJSON. They differ only in the form of security
/// requirements.
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
}
