//! Cards across generations. `fixtures/cards/source` holds cards of 1.0, `superset` and `legacy` what is served of
//! them, `any` cards to be told apart by their members; the file's name says which generation it is of, `.expected`
//! is the card as 1.0 would say it.

use std::path::PathBuf;

use baton_protocol::domain::{AgentCard, AgentInterface};
use baton_protocol::wire::card::{read_any, write_superset, write_union_legacy, write_v0_3_rest};
use baton_protocol::wire::v0_1::{self, LegacyCardFacts};
use baton_protocol::wire::{v0_3, v1};
use baton_protocol::{ErrorKind, Generation};
use proptest::prelude::*;

use crate::codecs::written;
use crate::golden_files::{cases, content, fixtures};
use crate::strategies;

fn root() -> PathBuf {
    fixtures().join("cards")
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let text = String::from_utf8(written(write)).unwrap();
    assert!(!text.contains(['\n', '\r']), "{text}");
    text
}

fn superset(card: &AgentCard) -> String {
    text(|out| write_superset(out, card))
}

fn legacy(card: &AgentCard) -> String {
    text(|out| write_union_legacy(out, card, &LegacyCardFacts::default()))
}

#[test]
fn s02_cards_served_to_several_generations() {
    let sources = cases(&root().join("source"));
    assert!(sources.len() >= 4);
    for path in sources {
        let name = path.file_name().unwrap();
        let (generation, card) = read_any(&content(&path)).unwrap();
        assert_eq!(generation, Generation::V1, "{name:?}");
        assert_eq!(superset(&card), content(&root().join("superset").join(name)), "{name:?}");
        assert_eq!(legacy(&card), content(&root().join("legacy").join(name)), "{name:?}");
    }
}

/// What a2a-sdk 0.3 reads over HTTP+JSON: it refuses the requirements of ProtoJSON, and takes its schemes for `mutualTLS`.
#[test]
fn p05_a_card_of_0_3_over_http_json_can_be_read_in_both_forms() {
    let card = r#"{"name":"n","description":"d","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],
        "supportedInterfaces":[{"url":"https://a.example/","protocolBinding":"HTTP+JSON","protocolVersion":"0.3"}],
        "securitySchemes":{"key":{"apiKeySecurityScheme":{"location":"header","name":"X-Key"}}},
        "securityRequirements":[{"schemes":{"key":{"list":["read"]}}}],
        "skills":[{"id":"s","name":"s","description":"d","tags":[],"securityRequirements":[{"schemes":{"key":{"list":[]}}}]}]}"#;
    let card = v1::read_card(card).unwrap();
    let written = text(|out| write_v0_3_rest(out, &card));
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(json["security"], serde_json::json!([{"key": ["read"]}]));
    assert_eq!(json["skills"][0]["security"], serde_json::json!([{"key": []}]));
    let scheme = serde_json::json!({"type": "apiKey", "in": "header", "name": "X-Key",
        "apiKeySecurityScheme": {"location": "header", "name": "X-Key"}});
    assert_eq!(json["securitySchemes"]["key"], scheme);
    for read in [v0_3::read_card(&written).unwrap(), v0_3::proto_json::read_card(&written).unwrap()] {
        assert_eq!(
            (read.security_schemes, read.security_requirements),
            (card.security_schemes.clone(), card.security_requirements.clone())
        );
    }
}

#[test]
fn s02_a_card_of_any_generation_is_told_by_its_members() {
    let files = cases(&root().join("any"));
    assert!(files.len() >= 10);
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (generation, card) = read_any(&content(&path)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = match name.split('-').next() {
            Some("v1") => Generation::V1,
            Some("v0_3") => Generation::V0_3,
            _ => Generation::V0_1,
        };
        assert_eq!(generation, expected, "{name}");
        assert_eq!(
            text(|out| v1::write_card(out, &card)),
            content(&path.with_extension("expected")),
            "{name}"
        );
    }
}

#[test]
fn s07_a_card_of_1_0_can_switch_state_history_on() {
    for (capabilities, expected) in [
        (r#"{"stateTransitionHistory":true}"#, Some(true)),
        (r#"{"stateTransitionHistory":false}"#, Some(false)),
        (r#"{"stateTransitionHistory":null}"#, None),
        ("{}", None),
        ("null", None),
    ] {
        let card = format!(
            r#"{{"name":"n","description":"d","version":"1","supportedInterfaces":[],"capabilities":{capabilities}}}"#
        );
        assert_eq!(
            read_any(&card).unwrap().1.capabilities.state_transition_history,
            expected,
            "{capabilities}"
        );
    }
}

#[test]
fn p01_a_card_that_is_none_says_what_is_missing() {
    for (text, message) in [
        ("{}", "Invalid response: name is required"),
        ("[]", "Invalid response: agent card must be an object"),
        (r#"{"name":"n"}"#, "Invalid response: url is required"),
        (r#"{"name":"n","supportedInterfaces":[]}"#, "Invalid response: description is required"),
        (r#"{"name":"n","protocolVersion":"0.3.0"}"#, "Invalid response: description is required"),
    ] {
        let error = read_any(text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
        assert_eq!(error.kind(), ErrorKind::InvalidAgentResponse);
    }
    assert!(read_any("{").unwrap_err().to_string().starts_with("Invalid response: not valid JSON"));
}

#[test]
fn s02_the_legacy_url_can_be_given() {
    let card = v1::read_card(&content(&root().join("source/rest-first.json"))).unwrap();
    let facts = LegacyCardFacts { url: Some("https://public.example.org/".to_owned()) };
    let card = text(|out| write_union_legacy(out, &card, &facts));
    let read = v0_3::read_card(&card).unwrap();
    assert_eq!(read.interfaces[0].url, "https://public.example.org/");
    assert_eq!(read.interfaces[0].protocol_binding, "JSONRPC");
    assert_eq!(read.interfaces.len(), 3);
    assert_eq!(v0_1::read_card(&card).unwrap().interfaces[0].url, "https://public.example.org/");
}

fn with_v0_3(mut card: AgentCard, url: String) -> AgentCard {
    let interface = |version: &str| AgentInterface {
        url: url.clone(),
        protocol_binding: "JSONRPC".to_owned(),
        protocol_version: version.to_owned(),
        tenant: None,
    };
    card.interfaces.insert(0, interface("0.3"));
    card.interfaces.insert(0, interface("1.0"));
    card
}

proptest! {
    /// Each generation reads its own card in the common one.
    #[test]
    fn s02_every_generation_finds_its_card(card in strategies::card(), url in strategies::text()) {
        let card = with_v0_3(card, url);
        let superset = superset(&card);
        let pure = |write: &dyn Fn(&mut Vec<u8>)| text(write);
        let newest = v1::read_card(&pure(&|out| v1::write_card(out, &card))).unwrap();
        let later = v0_3::read_card(&pure(&|out| v0_3::write_card(out, &card))).unwrap();
        prop_assert_eq!(v1::read_card(&superset).unwrap(), newest);
        // The flag has a second place in 1.0, which says the same.
        prop_assert_eq!(v0_3::read_card(&superset).unwrap(), later);

        let (generation, mut read) = read_any(&superset).unwrap();
        prop_assert_eq!(generation, Generation::V1);
        prop_assert_eq!(
            read.capabilities.state_transition_history.take(),
            card.capabilities.state_transition_history
        );
        prop_assert_eq!(read, v1::read_card(&superset).unwrap());
    }

    #[test]
    fn s02_the_legacy_document_serves_both_older_generations(
        card in strategies::card(),
        url in strategies::text(),
    ) {
        let card = with_v0_3(card, url);
        let union = legacy(&card);
        let oldest = v0_1::read_card(&text(|out| v0_1::write_card(out, &card, &LegacyCardFacts::default())));
        prop_assert_eq!(v0_1::read_card(&union).unwrap(), oldest.unwrap());
        let (generation, read) = read_any(&union).unwrap();
        prop_assert_eq!(generation, Generation::V0_3);
        let mut later = v0_3::read_card(&text(|out| v0_3::write_card(out, &card))).unwrap();
        // What 0.1 always says, it says for both.
        let said = |flag: &mut Option<bool>| *flag = Some(*flag == Some(true));
        said(&mut later.capabilities.streaming);
        said(&mut later.capabilities.push_notifications);
        said(&mut later.capabilities.state_transition_history);
        for skill in &mut later.skills {
            if skill.input_modes.is_empty() {
                skill.input_modes.clone_from(&later.default_input_modes);
            }
            if skill.output_modes.is_empty() {
                skill.output_modes.clone_from(&later.default_output_modes);
            }
        }
        later.signatures.clear();
        prop_assert_eq!(read, later);
    }
}
