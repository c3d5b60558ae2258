//! Extensions: required, supported and unknown ones.

use serde_json::Value;

use super::talk::{COMPLETE, Say, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, Request};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.extensions.required" => required,
    "v1.extensions.unknown" => unknown,
    "v1.extensions.activated" => activated,
};

const HEADER: &str = "A2A-Extensions";

fn declared(bench: &Bench) -> impl Iterator<Item = (&str, bool)> {
    let list = bench.target().card["capabilities"]["extensions"].as_array();
    list.into_iter()
        .flatten()
        .filter_map(|one| Some((one["uri"].as_str()?, one["required"] == Value::Bool(true))))
}

async fn send(bench: &Bench, uris: &[&str]) -> Done<Answer> {
    let params = Say::text(COMPLETE).params(bench);
    let request = bench.request(Operation::SendMessage, &params).map_err(|none| skip(none.0))?;
    let asked = bench.ask(Operation::SendMessage, &with_extensions(request, uris)).await;
    asked.map_err(|error| fail(format!("no answer: {error}")))
}

fn with_extensions(mut request: Request, uris: &[&str]) -> Request {
    request.headers.retain(|(name, _)| name != HEADER);
    if !uris.is_empty() {
        request.headers.push((HEADER.to_owned(), uris.join(",")));
    }
    request
}

/// The active extensions according to the answer's header.
fn active(answer: &Answer) -> Vec<String> {
    let named = answer.headers().iter().filter(|(name, _)| name.eq_ignore_ascii_case(HEADER));
    named.flat_map(|(_, value)| value.split(',')).map(|uri| uri.trim().to_owned()).collect()
}

async fn required(bench: &Bench) -> Done {
    if !declared(bench).any(|(_, required)| required) {
        return Err(skip("the card requires no extension"));
    }
    match send(bench, &[]).await? {
        Answer::Error(error) => bench.expect_named(&error, "ExtensionSupportRequiredError"),
        other => Err(differs("ExtensionSupportRequiredError", other.summary())),
    }
}

async fn unknown(bench: &Bench) -> Done {
    let unknown = format!("https://example.com/extensions/unknown/{}", fresh_id());
    let required: Vec<&str> = declared(bench).filter(|(_, required)| *required).map(|(uri, _)| uri).collect();
    let mut all = required.clone();
    all.push(&unknown);
    match send(bench, &all).await? {
        answer @ Answer::Reply { .. } if active(&answer).contains(&unknown) => {
            Err(differs("an unknown extension not to be named as active", unknown))
        }
        Answer::Reply { .. } => Ok(()),
        other => Err(differs("an unknown extension to be ignored", other.summary())),
    }
}

async fn activated(bench: &Bench) -> Done {
    let all: Vec<&str> = declared(bench).map(|(uri, _)| uri).collect();
    if all.is_empty() {
        return Err(skip("the card declares no extensions"));
    }
    let answer = send(bench, &all).await?;
    if !matches!(answer, Answer::Reply { .. }) {
        return Err(differs("an answer to a request with the declared extensions", answer.summary()));
    }
    let active = active(&answer);
    match all.iter().find(|uri| !active.iter().any(|known| known == *uri)) {
        Some(missing) => {
            Err(differs(format!("`{HEADER}` of the answer with {missing}"), format!("{active:?}")))
        }
        None => Ok(()),
    }
}
