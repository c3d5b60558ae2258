//! Caching headers of the card.

use super::talk::skip;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.caching.max-age" => max_age,
    "v1.caching.etag" => etag,
    "v1.caching.not-modified" => not_modified,
    "v1.caching.extended-card" => extended_card,
};

async fn max_age(bench: &Bench) -> Done {
    let (answer, _) = bench.card().await?;
    match answer.header("cache-control") {
        Some(value) if value.to_ascii_lowercase().contains("max-age=") => Ok(()),
        other => Err(differs("`Cache-Control` with `max-age`", other.unwrap_or("no such header"))),
    }
}

async fn etag(bench: &Bench) -> Done {
    let (answer, _) = bench.card().await?;
    match answer.header("etag") {
        Some(tag) if is_etag(tag) => Ok(()),
        Some(tag) => Err(differs("an `ETag` in double quotes", tag)),
        None => Err(differs("an `ETag`", "no such header")),
    }
}

fn is_etag(tag: &str) -> bool {
    let opaque = tag.strip_prefix("W/").unwrap_or(tag);
    opaque.len() > 2 && opaque.starts_with('"') && opaque.ends_with('"')
}

async fn not_modified(bench: &Bench) -> Done {
    let (answer, _) = bench.card().await?;
    let Some(tag) = answer.header("etag") else { return Err(skip("the card has no `ETag` to ask with")) };
    let asked = vec![("If-None-Match".to_owned(), tag.to_owned())];
    let again = bench.card_answer(bench.probe(), asked).await?;
    if again.status() == 304 { Ok(()) } else { Err(differs("HTTP 304 for the same `ETag`", again.summary())) }
}

async fn extended_card(bench: &Bench) -> Done {
    let answer = bench.call(Operation::GetExtendedAgentCard, &serde_json::json!({})).await?;
    if !(200..300).contains(&answer.status()) {
        return Err(skip(format!("the extended card could not be read: {}", answer.summary())));
    }
    if answer.header("cache-control").is_some() || answer.header("etag").is_some() {
        return Ok(());
    }
    Err(differs("`Cache-Control` or `ETag` on the extended card", "neither"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_quoted() {
        assert!(is_etag("\"a\"") && is_etag("W/\"a\""));
        assert!(!is_etag("a") && !is_etag("\"\"") && !is_etag("W/a"));
    }
}
