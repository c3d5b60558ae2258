//! Cards: references, validation, versions and interfaces.

use serde_json::json;

use super::scripted::{Answer, Scripted, card, task};
use super::{Said, User};
use crate::served::Served;

fn done() -> Answer {
    Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")}))
}

#[test]
fn p09_cli_card_get_001_by_host_address_card_or_file() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["card", "get", &served.url, "-o", "json"]).ok();
    std::fs::write(user.folder().join("card.json"), &said.out).unwrap();
    let host = served.url.trim_start_matches("http://").to_owned();
    let whole = format!("{}/.well-known/agent-card.json", served.url);
    let file = format!("file://{}/card.json", user.folder().display());
    for reference in [&served.url, &host, &whole, &file, "card.json"] {
        let said = user.run(&["card", "get", "-a", reference]).ok();
        assert_eq!(said.field("Agent"), "Baton demo agent", "{reference}");
        assert_eq!(user.run(&["send", "-a", reference, "hello"]).ok().field("State"), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn p09_cli_card_get_002_a_card_is_checked_against_the_schema() {
    let (served, user) = (Served::start(), User::new());
    assert_eq!(user.run(&["card", "get", &served.url, "--validate"]).ok().field("Valid"), "true");
    let wrong = Scripted::start(
        |url| {
            let interface =
                json!({"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
            card(
                url,
                json!({"supportedInterfaces": [interface], "skills": [{"id": "s", "name": "S", "description": "", "tags": []}]}),
            )
        },
        |_, _| done(),
    );
    let said = user.run(&["card", "get", &wrong.url, "--validate"]).failed(1);
    assert_eq!(said.field("Valid"), "false");
    assert!(said.field("Problem").contains("skills[0].description"), "{said:?}");
    assert!(said.err.contains("Error: A2ACLI_ERR_CARD_INVALID"), "{said:?}");
    let said = user.run(&["card", "get", &wrong.url, "--validate", "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "A2ACLI_ERR_CARD_INVALID");
}

#[test]
fn p09_cli_tx_001_002_003_the_card_s_order_a_preference_and_the_tenant() {
    let agent = Scripted::start(
        |url| {
            let interface = |binding: &str, path: &str| json!({"url": format!("{url}{path}"), "protocolBinding": binding, "protocolVersion": "1.0"});
            let mut rpc = interface("JSONRPC", "/rpc");
            rpc["tenant"] = json!("acme");
            card(
                url,
                json!({"supportedInterfaces": [interface("GRPC", ":1"), rpc, interface("HTTP+JSON", "/rest")]}),
            )
        },
        |heard, _| match heard.target.starts_with("/rpc") {
            true => done(),
            false => Answer::Plain(
                200,
                "application/json",
                json!({"task": task("TASK_STATE_COMPLETED")}).to_string(),
            ),
        },
    );
    let user = User::new();
    for (flags, path) in [
        (&[][..], "/rpc"),
        (&["--transport", "rest"], "/rest/message:send"),
        (&["--transport", "HTTP+JSON", "--transport", "jsonrpc"], "/rest/message:send"),
        (&["--transport", "grpc"], "/rpc"),
    ] {
        user.run(&[&["send", &agent.url, "hi", "--async"], flags].concat()).ok();
        let call = agent.calls().pop().unwrap();
        assert_eq!(call.target, path, "{flags:?}");
        assert_eq!(call.header("a2a-version"), Some("1.0"));
        let tenant = if path == "/rpc" { &call.body["params"]["tenant"] } else { &call.body["tenant"] };
        assert_eq!(*tenant, if path == "/rpc" { json!("acme") } else { json!(null) });
    }
    let mut command = user.command(&["send", &agent.url, "hi", "--async"]);
    Said::of(command.env("A2ACLI_TRANSPORT", "grpc,rest")).ok();
    assert_eq!(agent.calls().pop().unwrap().target, "/rest/message:send");
    user.run(&["send", &agent.url, "hi", "--transport", "carrier-pigeon"]).failed(2);
}

#[test]
fn p09_cli_ver_001_no_version_below_1_0_unless_it_is_asked_for() {
    let old = Scripted::start(
        |url| {
            let interface =
                json!({"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "0.3"});
            card(url, json!({"supportedInterfaces": [interface]}))
        },
        |_, _| done(),
    );
    let user = User::new();
    let said = user.run(&["send", &old.url, "hi", "-o", "json"]).failed(1);
    let (code, hint) = said.error();
    assert!(
        code == "VersionNotSupportedError" && hint.contains("0.3") && hint.contains("--a2a-version"),
        "{said:?}"
    );
    let said = user.run(&["send", &old.url, "hi", "--a2a-version", "2.7", "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "VersionNotSupportedError");
    assert!(old.calls().is_empty(), "nothing is called");
    // Asked for, an older version is spoken.
    let served = Served::start();
    for version in ["1.0", "0.3"] {
        let said = user.run(&["send", &served.url, "hello", "--a2a-version", version]).ok();
        assert_eq!(said.field("State"), "TASK_STATE_COMPLETED", "{version}");
    }
}

#[test]
fn p09_cli_tx_004_both_bindings_show_the_same() {
    let (served, user) = (Served::start(), User::new());
    for words in ["hello", "give me data", "ask me something"] {
        let texts = ["jsonrpc", "rest"].map(|binding| {
            let said = user.run(&["send", &served.url, words, "--transport", binding]).ok();
            let masked = said.out.replace(said.field("Task"), "T").replace(said.field("Context"), "C");
            masked.replace(said.field("Updated"), "U")
        });
        assert_eq!(texts[0], texts[1]);
    }
}

#[test]
fn p09_cli_ver_002_required_extensions_are_declared() {
    let agent = Scripted::start(
        |url| {
            let extensions = json!([{"uri": "urn:needed", "required": true}, {"uri": "urn:optional"}]);
            card(url, json!({"capabilities": {"extensions": extensions}}))
        },
        |_, _| done(),
    );
    User::new().run(&["send", &agent.url, "hi", "--async"]).ok();
    assert_eq!(agent.calls()[0].header("a2a-extensions"), Some("urn:needed"));
}

#[test]
fn p09_cli_card_get_003_the_extended_card_by_a_scheme_of_the_card() {
    let agent = Scripted::start(
        |url| {
            let schemes = json!({"main": {"httpAuthSecurityScheme": {"scheme": "bearer"}}});
            let requirements = json!([{"schemes": {"main": {"list": []}}}]);
            let capabilities = json!({"extendedAgentCard": true});
            card(
                url,
                json!({"securitySchemes": schemes, "securityRequirements": requirements, "capabilities": capabilities}),
            )
        },
        |heard, _| match heard.header("authorization") {
            Some("Bearer s3cret") => {
                Answer::Result(card("http://h", json!({"name": "Scripted, for friends"})))
            }
            _ => Answer::Plain(401, "application/json", "{}".to_owned()),
        },
    );
    let user = User::new();
    let said = user.run(&["card", "get", &agent.url, "--extended", "--bearer", "s3cret"]).ok();
    assert_eq!(said.field("Agent"), "Scripted, for friends");
    user.run(&["card", "get", &agent.url, "--extended"]).failed(4);
}

#[test]
fn p09_cli_card_get_004_a_signature_is_verified_with_a_trusted_key_only() {
    let user = User::new();
    let plain = Scripted::start(|url| card(url, json!({})), |_, _| done());
    assert_eq!(user.run(&["card", "get", &plain.url]).ok().field("Signature"), "absent");
    // {"alg":"ES256","kid":"k1","typ":"JOSE"}
    let protected = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIiwidHlwIjoiSk9TRSJ9";
    let signed = Scripted::start(
        move |url| card(url, json!({"signatures": [{"protected": protected, "signature": "AAAA"}]})),
        |_, _| done(),
    );
    let said = user.run(&["card", "get", &signed.url]).ok();
    assert!(said.field("Signature").starts_with("unverifiable"), "{said:?}");
    std::fs::write(user.folder().join("keys.json"), "{\"keys\":[]}").unwrap();
    let said = user.run(&["card", "get", &signed.url, "--card-keys", "keys.json"]).ok();
    assert!(said.field("Signature").starts_with("unverifiable"), "{said:?}");
    user.run(&["card", "get", &signed.url, "--card-keys", "missing.json"]).failed(2);
    // Signed by another SDK.
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/cards/signed");
    let (file, keys) =
        (format!("{fixtures}/python-1.3.0.json"), format!("{fixtures}/python-1.3.0.keys.json"));
    let said = user.run(&["card", "get", "-a", &file, "--card-keys", &keys]).ok();
    assert!(said.field("Signature").starts_with("verified kid="), "{said:?}");
    let changed = std::fs::read_to_string(&file).unwrap().replace("Signed by the SDK", "Changed later");
    std::fs::write(user.folder().join("changed.json"), changed).unwrap();
    let said = user.run(&["card", "get", "-a", "changed.json", "--card-keys", &keys]).ok();
    assert!(said.field("Signature").starts_with("unverifiable"), "{said:?}");
}

#[test]
fn p09_cli_card_get_005_an_entry_of_a_catalog_stands_for_a_card() {
    let (served, user) = (Served::start(), User::new());
    let entry =
        json!({"name": "Demo", "agentCardUrl": format!("{}/.well-known/agent-card.json", served.url)});
    let listed = json!({"agents": [{"name": "Other"}, entry]}).to_string();
    let text = listed.clone();
    let registry =
        Scripted::start(|_| json!({}), move |_, _| Answer::Plain(200, "application/json", text.clone()));
    std::fs::write(user.folder().join("agents.json"), listed).unwrap();
    for catalog in [format!("{}/agents", registry.url), "./agents.json".to_owned()] {
        let reference = format!("{catalog}#demo");
        assert_eq!(user.run(&["card", "get", "-a", &reference]).ok().field("Agent"), "Baton demo agent");
        assert_eq!(
            user.run(&["send", "-a", &reference, "hello"]).ok().field("State"),
            "TASK_STATE_COMPLETED"
        );
        let said = user.run(&["card", "get", "-a", &format!("{catalog}#nobody")]).failed(3);
        assert!(said.err.contains("it has Other, Demo"), "{said:?}");
        // A catalog cannot send the user's credentials to a host of its choice.
        user.run(&["send", "-a", &reference, "hello", "--bearer", "s3cret"]).failed(2);
    }
    assert!(registry.heard().iter().all(|heard| !format!("{:?}", heard.headers).contains("s3cret")));
}
