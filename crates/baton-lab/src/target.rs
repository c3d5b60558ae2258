//! The agent under test, as its card and the command line describe it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::generation::{Binding, Generation};
use crate::wire::Credentials;

/// An address for one generation in one binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    pub tenant: Option<String>,
}

/// The agent, as known before the first case.
#[derive(Debug, Clone)]
pub struct Target {
    /// As the user gave it, without a slash at the end.
    pub base: String,
    /// The card at `/.well-known/agent-card.json`, requested with version 1.0, or at `agent.json` if there is only
    /// that.
    pub card: Value,
    /// The same, requested without a version, as older clients do: some agents serve them another card.
    pub older_card: Option<Value>,
    /// The card at `/.well-known/agent.json`, if there is one.
    pub legacy_card: Option<Value>,
    pub interfaces: BTreeMap<(Generation, Binding), Interface>,
    pub behaviours: Behaviours,
    /// The HTTP status (401, 403) with which the agent refused the user's own credentials, or a user without any.
    pub refused: Option<u16>,
    /// Another agent, for the cases that need two.
    pub second: Option<Second>,
}

/// The second agent with its credentials, which are not the first agent's unless the user says so.
#[derive(Debug, Clone)]
pub struct Second {
    pub target: Arc<Target>,
    pub credentials: Credentials,
}

/// Which phrases can be sent to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviours {
    /// It knows the `tck-` prefixes.
    Prefixes,
    /// It does not know them: only the example phrases of its skills can be used. Empty if there are none.
    Examples(Vec<String>),
}

impl Target {
    /// The card that clients of a generation read.
    pub fn card_of(&self, generation: Generation) -> &Value {
        match generation {
            Generation::V1 => &self.card,
            Generation::V0_3 => self.older_card.as_ref().unwrap_or(&self.card),
            Generation::V0_1 => self.legacy_card.as_ref().or(self.older_card.as_ref()).unwrap_or(&self.card),
        }
    }

    /// The value of a capability in the card; a missing flag is `false`.
    pub fn capability(&self, name: &str) -> Value {
        self.capability_in(Generation::V1, name)
    }

    /// The same, in the card that clients of a generation read.
    pub fn capability_in(&self, generation: Generation, name: &str) -> Value {
        if name == "authentication" {
            return Value::Bool(match generation {
                Generation::V1 | Generation::V0_3 => self.requires_authentication(),
                Generation::V0_1 => self.requires_authentication() || self.names_schemes(),
            });
        }
        let found =
            self.card_of(generation).get("capabilities").and_then(|capabilities| capabilities.get(name));
        found.filter(|found| !found.is_null()).cloned().unwrap_or(Value::Bool(false))
    }

    /// True if the 0.1 card names an authentication scheme. Such cards also had words for "none".
    fn names_schemes(&self) -> bool {
        let schemes = self.card_of(Generation::V0_1)["authentication"]["schemes"].as_array();
        let real = |scheme: &Value| {
            scheme
                .as_str()
                .is_some_and(|name| !["none", "public"].contains(&name.to_ascii_lowercase().as_str()))
        };
        schemes.is_some_and(|schemes| schemes.iter().any(real) && schemes.iter().all(real))
    }

    /// True if the card requires credentials, without an alternative that requires none.
    pub fn requires_authentication(&self) -> bool {
        let lists = [&self.card["securityRequirements"], &self.card["security"]];
        let asked = lists.into_iter().filter_map(Value::as_array).find(|list| !list.is_empty());
        let empty = |requirement: &Value| {
            let schemes = requirement.get("schemes").unwrap_or(requirement);
            schemes.as_object().is_none_or(serde_json::Map::is_empty)
        };
        asked.is_some_and(|list| !list.iter().any(empty))
    }

    pub fn has_skill(&self, id: &str) -> bool {
        self.skills().iter().any(|skill| skill["id"] == id)
    }

    pub fn skills(&self) -> &[Value] {
        self.card["skills"].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn declares_extension(&self, uri: &str) -> bool {
        let declared = self.card["capabilities"]["extensions"].as_array();
        declared.is_some_and(|list| list.iter().any(|extension| extension["uri"] == uri))
    }
}

/// An address of gRPC need not have a scheme: then it is spoken as the agent itself is reached, with TLS or without.
pub fn with_scheme(base: &str, url: String, binding: Binding) -> String {
    let scheme = base.split_once("://").map_or("http", |(scheme, _)| scheme);
    if binding == Binding::Grpc && !url.contains("://") { format!("{scheme}://{url}") } else { url }
}

/// The header with the extensions that a card requires; `None` if it requires none.
pub fn extensions_header(card: &Value, generation: Generation) -> Option<(String, String)> {
    let declared = card["capabilities"]["extensions"].as_array().into_iter().flatten();
    let required = declared.filter(|extension| extension["required"] == true);
    let uris: Vec<&str> = required.filter_map(|extension| extension["uri"].as_str()).collect();
    let name = match generation {
        Generation::V1 => "A2A-Extensions",
        Generation::V0_3 => "X-A2A-Extensions",
        Generation::V0_1 => return None,
    };
    (!uris.is_empty()).then(|| (name.to_owned(), uris.join(",")))
}

/// The example phrases of a card's skills.
pub fn examples(card: &Value) -> Vec<String> {
    let skills = card["skills"].as_array().into_iter().flatten();
    let examples = skills.filter_map(|skill| skill["examples"].as_array()).flatten();
    examples.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The addresses in a card, by generation and binding; the first of each is used.
pub fn interfaces(card: &Value) -> BTreeMap<(Generation, Binding), Interface> {
    let mut all = BTreeMap::new();
    let binding = |name: &str| Binding::ALL.into_iter().find(|binding| binding.in_cards() == name);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    for entry in card["supportedInterfaces"].as_array().into_iter().flatten() {
        let version = entry["protocolVersion"].as_str().unwrap_or("1.0");
        let minor = version.split('.').take(2).collect::<Vec<_>>().join(".");
        let generation = Generation::ALL.into_iter().find(|generation| generation.version() == minor);
        let known = entry["protocolBinding"].as_str().and_then(binding);
        if let (Some(generation), Some(binding), Some(url)) = (generation, known, text(&entry["url"])) {
            let tenant = text(&entry["tenant"]).filter(|tenant| !tenant.is_empty());
            all.entry((generation, binding)).or_insert(Interface { url, tenant });
        }
    }
    // 0.3 has one main address and additional ones.
    let older = card["protocolVersion"].as_str().is_some_and(|version| version.starts_with("0."));
    if let (true, Some(url)) = (older, text(&card["url"])) {
        let main = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
        if let Some(binding) = binding(main) {
            all.entry((Generation::V0_3, binding)).or_insert(Interface { url, tenant: None });
        }
        for entry in card["additionalInterfaces"].as_array().into_iter().flatten() {
            let known = entry["transport"].as_str().and_then(binding);
            if let (Some(binding), Some(url)) = (known, text(&entry["url"])) {
                all.entry((Generation::V0_3, binding)).or_insert(Interface { url, tenant: None });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_card_of_any_generation_tells_its_addresses() {
        let card = json!({
            "url": "http://h/old", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
            "additionalInterfaces": [{"transport": "HTTP+JSON", "url": "http://h/rest"}],
            "supportedInterfaces": [
                {"url": "http://h/1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t"},
                {"url": "http://h/2", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": "http://h/3", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0.1"},
                {"url": "http://h/4", "protocolBinding": "urn:other", "protocolVersion": "1.0"},
                {"url": "http://h/5", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]});
        let found: Vec<_> = interfaces(&card)
            .into_iter()
            .map(|((generation, binding), at)| format!("{generation} {binding} {} {:?}", at.url, at.tenant))
            .collect();
        assert_eq!(
            found,
            [
                "1.0 jsonrpc http://h/1 Some(\"t\")",
                "1.0 rest http://h/3 None",
                "0.3 jsonrpc http://h/5 None",
                "0.3 rest http://h/rest None",
            ]
        );
    }
}
