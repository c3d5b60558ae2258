//! Catalogs: a document that lists agents. `CATALOG#NAME` names one of them wherever an agent is named.
//!
//! There is no one format. An entry is found by its name or id in any list of the document; it holds the address of a card.
//! A catalog on the web leads to the web only: a card in a file is taken for the user's own word, and that it is not.

use std::path::Path;

use baton_client::Reference;
use serde_json::Value;

use super::error::{CallError, Code};

/// Members that name an entry, and those that hold the address of its card, the most precise first.
const NAMES: &[&str] = &["id", "identifier", "name", "displayName", "title"];
const ADDRESSES: &[&str] =
    &["agentCardUrl", "agent_card_url", "cardUrl", "card_url", "agentCard", "card", "href", "url"];

/// How deep lists are looked for: an agent may say anything.
const DEEPEST: usize = 8;

/// The catalog and the entry, if the reference names one.
pub(super) fn split(reference: &str) -> Option<(&str, &str)> {
    reference.split_once('#').filter(|(catalog, entry)| !catalog.is_empty() && !entry.is_empty())
}

/// A reference to an entry's card; a relative address is below the catalog.
pub(super) fn find(text: &str, catalog: &Reference, name: &str) -> Result<String, CallError> {
    let wrong = |message: String| CallError::new(Code::CardNotFound, message);
    let shown = shown(catalog);
    let document: Value = serde_json::from_str(text)
        .map_err(|error| wrong(format!("the catalog {shown} is not JSON: {error}")))?;
    let mut entries = Vec::new();
    collect(&document, DEEPEST, &mut entries);
    let is_named = |entry: &&&Value| {
        NAMES
            .iter()
            .any(|member| entry[*member].as_str().is_some_and(|value| value.eq_ignore_ascii_case(name)))
    };
    let Some(entry) = entries.iter().find(is_named) else {
        let known: Vec<&str> = entries
            .iter()
            .filter_map(|entry| NAMES.iter().find_map(|member| entry[*member].as_str()))
            .take(20)
            .collect();
        return Err(wrong(format!("the catalog {shown} has no entry {name}; it has {}", known.join(", "))));
    };
    let address = ADDRESSES.iter().find_map(|member| entry[*member].as_str());
    let address =
        address.ok_or_else(|| wrong(format!("the entry {name} of {shown} has no address of a card")))?;
    below(catalog, address).ok_or_else(|| {
        wrong(format!("the entry {name} of {shown} does not lead to an http or https address"))
    })
}

/// The catalog's own address, if it has one.
pub(super) fn address(catalog: &Reference) -> Option<&str> {
    match catalog {
        Reference::Agent(url) | Reference::Card(url) => Some(url.as_str()),
        Reference::File(_) => None,
    }
}

/// Without a query, which may hold a key.
fn shown(catalog: &Reference) -> String {
    match catalog {
        Reference::Agent(url) | Reference::Card(url) => {
            url.as_str().split(['?', '#']).next().unwrap_or_default().to_owned()
        }
        Reference::File(path) => path.display().to_string(),
    }
}

/// Objects in lists, at any place.
fn collect<'a>(value: &'a Value, depth: usize, into: &mut Vec<&'a Value>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Array(items) => {
            into.extend(items.iter().filter(|item| item.is_object()));
            items.iter().for_each(|item| collect(item, depth - 1, into));
        }
        Value::Object(members) => members.values().for_each(|member| collect(member, depth - 1, into)),
        _ => {}
    }
}

fn below(catalog: &Reference, address: &str) -> Option<String> {
    match catalog {
        Reference::Agent(url) | Reference::Card(url) => {
            let joined = url.join(address).ok()?;
            matches!(joined.scheme(), "http" | "https").then(|| joined.into())
        }
        Reference::File(path) => Some(match address.parse().ok()? {
            Reference::File(card) => {
                let card = path.parent().unwrap_or(Path::new("")).join(card);
                format!("file:{}", card.display())
            }
            Reference::Agent(url) | Reference::Card(url) => url.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_card_get_005_entries_are_found_by_name_in_any_list() {
        let catalog: Reference = "https://h.example/a/catalog.json?key=s3cret".parse().unwrap();
        let text = r#"{"version": 1, "data": {"agents": [
            {"name": "Other", "url": "https://x.example"},
            {"identifier": "planner", "displayName": "Route Planner", "agentCardUrl": "cards/planner.json", "url": "https://h.example/rpc"},
            {"name": "Rooted", "href": "/r.json"}, {"name": "Empty"}, {"name": "Local", "url": "file:///etc/card.json"}]}}"#;
        for (name, expected) in [
            ("planner", "https://h.example/a/cards/planner.json"),
            ("route planner", "https://h.example/a/cards/planner.json"),
            ("Rooted", "https://h.example/r.json"),
            ("Other", "https://x.example/"),
        ] {
            assert_eq!(find(text, &catalog, name).unwrap(), expected);
        }
        for (text, name, words) in [
            (text, "nobody", "it has Other, planner"),
            (text, "Empty", "no address"),
            (text, "Local", "does not lead to an http or https address"),
            ("<p>", "x", "not JSON"),
        ] {
            let error = find(text, &catalog, name).unwrap_err();
            assert!(error.message.contains(words) && !error.message.contains("s3cret"), "{}", error.message);
        }
        // However it is named: by a host alone, or in a file.
        for (catalog, expected) in [
            ("h.example/a/agents", Some("https://h.example/a/cards/planner.json")),
            ("localhost:1/a/agents", Some("http://localhost:1/a/cards/planner.json")),
            ("./a/agents.json", Some("file:./a/cards/planner.json")),
            ("agents.json", Some("file:cards/planner.json")),
        ] {
            assert_eq!(find(text, &catalog.parse().unwrap(), "planner").ok().as_deref(), expected);
        }
        assert_eq!(split("c.json#x"), Some(("c.json", "x")));
        assert_eq!((split("https://h"), split("https://h#")), (None, None));
    }
}
