//! The content and form of the card.

use serde_json::{Value, json};

use super::shapes::{self, without_nulls};
use crate::acts::assertion::Mismatch;
use crate::generation::{Binding, Generation};
use crate::native::older::{self, list};
use crate::native::shape::{fault, faults, judge};
use crate::native::talk::skip;
use crate::native::v1::card::is_json;
use crate::native::v1::endpoints;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::target::Interface;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_1.card.place" => place,
    "v0_1.card.public" => public,
    "v0_1.card.shape" => shape,
    "v0_1.card.whole" => whole,
    "v0_1.card.skills" => skills,
    "v0_1.card.whole-skills" => whole_skills,
    "v0_1.card.authentication" => authentication,
    "v0_1.card.endpoint" => endpoint,
};

/// The card at the path of 0.1; an agent whose newer card has all members may have no other.
async fn read(bench: &Bench) -> Done<Value> {
    match &bench.target().legacy_card {
        Some(_) => older::card(bench, bench.probe()).await.map(|(_, card)| without_nulls(&card)),
        None => Ok(without_nulls(bench.target().card_of(Generation::V0_1))),
    }
}

async fn place(bench: &Bench) -> Done {
    let (answer, _) = older::card(bench, bench.probe()).await?;
    let kind = answer.header("content-type").unwrap_or_default();
    if is_json(kind) { Ok(()) } else { Err(differs("a JSON content type", json!(kind).to_string())) }
}

async fn public(bench: &Bench) -> Done {
    if bench.target().legacy_card.is_none() {
        return Err(skip("there is no card at /.well-known/agent.json"));
    }
    older::card(bench, &bench.probe().stranger()).await.map(|_| ())
}

async fn shape(bench: &Bench) -> Done {
    judge(faults(&shapes::CARD, &read(bench).await?, ""))
}

async fn whole(bench: &Bench) -> Done {
    judge(faults(&shapes::WHOLE_CARD, &read(bench).await?, ""))
}

async fn skills(bench: &Bench) -> Done {
    judge(skill_faults(&read(bench).await?))
}

fn skill_faults(card: &Value) -> Vec<Mismatch> {
    let skills = list(card, "skills");
    let mut found = Vec::new();
    for (index, skill) in skills.iter().enumerate() {
        let place = format!("skills[{index}]");
        found.extend(faults(&shapes::SKILL, skill, &place));
        let id = &skill["id"];
        if id.is_string() && skills[..index].iter().any(|earlier| earlier["id"] == *id) {
            found.push(fault(&format!("{place}.id"), "an id no other skill has", Some(id)));
        }
    }
    found
}

async fn whole_skills(bench: &Bench) -> Done {
    let card = read(bench).await?;
    let skills = list(&card, "skills").iter().enumerate();
    judge(
        skills
            .flat_map(|(index, skill)| faults(&shapes::WHOLE_SKILL, skill, &format!("skills[{index}]")))
            .collect(),
    )
}

async fn authentication(bench: &Bench) -> Done {
    let card = read(bench).await?;
    if list(&card["authentication"], "schemes").is_empty() {
        return Err(skip("the card names no authentication scheme"));
    }
    judge(authentication_faults(&card["authentication"]))
}

/// In the guide `credentials` is an object, in the specification a string that may contain JSON.
fn authentication_faults(authentication: &Value) -> Vec<Mismatch> {
    let told = match &authentication["credentials"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        other => other.clone(),
    };
    let has = |scheme: &str| {
        let named = |name: &Value| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(scheme));
        list(authentication, "schemes").iter().any(named)
    };
    let says = |scheme: &str, names: &[&str]| {
        let inner = told.get(scheme).unwrap_or(&told);
        names.iter().any(|name| inner.get(*name).and_then(Value::as_str).is_some_and(|text| !text.is_empty()))
    };
    let mut found = Vec::new();
    if has("oauth2") && !says("oauth2", &["tokenUrl"]) {
        found.push(fault(
            "authentication.credentials.oauth2",
            "a `tokenUrl`",
            authentication.get("credentials"),
        ));
    }
    if has("apiKey") && !says("apiKey", &["headerName", "name"]) {
        found.push(fault(
            "authentication.credentials.apiKey",
            "a `headerName`",
            authentication.get("credentials"),
        ));
    }
    found
}

async fn endpoint(bench: &Bench) -> Done {
    let card = read(bench).await?;
    let Some(url) = card["url"].as_str() else { return Err(skip("the card has no `url`")) };
    let interface = Interface { url: url.to_owned(), tenant: None };
    let answered = endpoints::speaks(bench, Generation::V0_1, Binding::Jsonrpc, interface).await;
    answered.map_err(|(expected, actual)| differs(expected, actual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_say_how_they_are_used() {
        let count = |authentication: Value| authentication_faults(&authentication).len();
        assert_eq!(count(json!({"schemes": ["Bearer"]})), 0);
        assert_eq!(count(json!({"schemes": ["oauth2", "apiKey"]})), 2);
        let told = json!({"oauth2": {"tokenUrl": "https://h/token"}, "apiKey": {"headerName": "X-Key"}});
        assert_eq!(count(json!({"schemes": ["OAuth2", "ApiKey"], "credentials": told})), 0);
        assert_eq!(
            count(json!({"schemes": ["apiKey"], "credentials": "{\"in\":\"header\",\"name\":\"X-Key\"}"})),
            0
        );
        assert_eq!(count(json!({"schemes": ["apiKey"], "credentials": "X-Key"})), 1);
    }

    #[test]
    fn skills_and_cards_are_judged() {
        let skill = json!({"id": "a", "name": "A"});
        assert_eq!(skill_faults(&json!({"skills": [skill]})), []);
        assert_eq!(skill_faults(&json!({"skills": [skill, skill, {"id": ""}]})).len(), 3);
        assert_eq!(faults(&shapes::WHOLE_SKILL, &skill, "").len(), 3);
        let card = json!({"name": "n", "url": "u", "skills": [], "capabilities": {"streaming": "yes"}});
        assert_eq!(faults(&shapes::CARD, &card, "")[0].path, "capabilities.streaming");
        assert_eq!(faults(&shapes::WHOLE_CARD, &card, "").len(), 4);
    }
}
