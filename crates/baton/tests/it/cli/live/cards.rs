//! Cards, and what is chosen by them.

use std::fs;

use super::{COMPLETED, Live, TRANSPORTS};

pub(crate) fn p09_cli_card_get_001_a_card_is_found_by_host_address_or_file_and_used(live: &Live) {
    let said = live.run(&["card", "get", "-o", "json"]).ok();
    let name = said.json()["name"].as_str().unwrap().to_owned();
    fs::write(live.user.folder().join("card.json"), &said.out).unwrap();
    let host = live.url.trim_start_matches("http://");
    let whole = format!("{}/.well-known/agent-card.json", live.url);
    let file = format!("file://{}/card.json", live.user.folder().display());
    for reference in [&live.url, host, &whole, &file, "./card.json"] {
        let said = live.run(&["card", "get", "-a", reference]).ok();
        assert_eq!(said.field("Agent"), name, "{reference}");
        assert!(said.field("Interface").contains(host), "{said:?}");
    }
    for reference in [host, "./card.json"] {
        let said = live.run(&["send", "-a", reference, "tck-complete-task"]).ok();
        assert_eq!(said.field("State"), COMPLETED, "{reference}");
    }
}

/// Some SDKs write members of an older version into their cards.
pub(crate) fn p09_cli_card_get_002_a_card_is_valid_or_its_problems_are_named(live: &Live) {
    let said = live.run(&["card", "get", "--validate"]);
    match said.field("Valid") {
        "true" => assert!(said.code == Some(0) && !said.out.contains("Problem: "), "{said:?}"),
        _ => {
            assert!(!said.field("Problem").is_empty(), "{said:?}");
            assert!(
                said.code == Some(1) && said.err.contains("Error: A2ACLI_ERR_CARD_INVALID\n"),
                "{said:?}"
            );
        }
    }
}

pub(crate) fn p09_cli_tx_001_002_the_card_s_order_unless_a_binding_is_preferred(live: &Live) {
    let card = live.run(&["card", "get", "-o", "json"]).ok().json();
    let first = card["supportedInterfaces"][0]["protocolBinding"].as_str().unwrap();
    let task = live.run(&["send", "tck-complete-task"]).ok();
    let mut command = live.command(&["task", "get", task.field("Task"), "--debug"]);
    let said = super::Said::of(command.env_remove("A2ACLI_TRANSPORT")).ok();
    assert!(said.err.contains(&format!("Debug: interface {first} 1.0 ")), "{said:?}");
    // The first one that the card offers.
    let offered = live.offered();
    let mut args = vec!["task", "get", task.field("Task"), "--debug"];
    for (transport, _) in TRANSPORTS.iter().filter(|(name, _)| !offered.contains(name)) {
        args.extend(["--transport", transport]);
    }
    args.extend(["--transport", live.transport, "--transport", offered[0]]);
    let said = live.run(&args).ok();
    assert!(said.err.contains(&format!("Debug: interface {} 1.0 ", live.binding())), "{said:?}");
}

pub(crate) fn p09_cli_tx_004_all_bindings_show_the_same(live: &Live) {
    let offered = live.offered();
    assert!(offered.len() > 1, "{offered:?}");
    for words in ["tck-complete-task", "tck-artifact-data", "tck-input-required"] {
        let texts = offered.iter().map(|transport| {
            let said = live.run(&["send", words, "--transport", transport]).ok();
            let masked = said.out.replace(said.field("Task"), "T").replace(said.field("Context"), "C");
            masked.replace(said.field("Updated"), "U").replace(&format!("--transport {transport}"), "B")
        });
        let texts: Vec<String> = texts.collect();
        assert!(texts.windows(2).all(|pair| pair[0] == pair[1]), "{texts:?}");
    }
}

pub(crate) fn p09_cli_ver_001_the_version_is_in_every_request(live: &Live) {
    let said = live.run(&["send", "tck-complete-task", "--debug"]).ok();
    let requests: Vec<&str> = said.err.split("Debug: > ").collect();
    let is_call = |line: &&&str| {
        (line.starts_with("POST ") || line.starts_with("GET ")) && !line.contains("agent-card")
    };
    let calls = requests.iter().filter(is_call).count();
    let versions = requests.iter().filter(|line| line.starts_with("a2a-version: 1.0\n")).count();
    assert!(calls >= 2 && calls == versions, "{calls} calls, {versions} versions: {said:?}");
    // Below 1.0 only if it is asked for.
    let said = live.run(&["send", "tck-complete-task", "--a2a-version", "0.3", "--debug"]).ok();
    assert_eq!(said.field("State"), COMPLETED);
    assert!(said.err.contains("Debug: > a2a-version: 0.3\n"), "{said:?}");
}
