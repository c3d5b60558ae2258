//! `baton card new`, `lint`, `sign`, `verify` and `diff`, and the cards of a server that signs them.

use std::fs;

use serde_json::{Value, json};

use super::scripted::{Answer, Scripted, card};
use super::{Said, User};
use crate::served::{Served, baton, finished};

/// Made by OpenSSL for these tests.
const P256: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKyoMJXHMC+kMrUB0
zhyeYbNywxoULfeDciT8ibHFBjuhRANCAAR0gb/KE4bMfKtUc/H+R6JzywlR7d7S
Jjp/KY0AMaq0rV8SJzBxDirbKB6WxZeAQjxkTmorulyX+JNk8/kcbraD
-----END PRIVATE KEY-----\n";
const P256_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdIG/yhOGzHyrVHPx/keic8sJUe3e
0iY6fymNADGqtK1fEicwcQ4q2ygelsWXgEI8ZE5qK7pcl/iTZPP5HG62gw==
-----END PUBLIC KEY-----
";

/// The example key of RFC 8037.
const ED25519: &str = r#"{"kty":"OKP","crv":"Ed25519","kid":"ed","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

/// With the keys in files.
fn user() -> User {
    let user = User::new();
    for (name, text) in [("ec.pem", P256), ("ec.pub", P256_PUBLIC), ("ed.jwk", ED25519)] {
        write(&user, name, text);
    }
    user
}

fn write(user: &User, name: &str, text: &str) {
    fs::write(user.folder().join(name), text).unwrap();
}

/// A card made and signed with these arguments, in a file.
fn signed(user: &User, name: &str, args: &[&str]) -> Value {
    write(user, "new.json", &user.run(&["card", "new"]).ok().out);
    let said = user.run(&[&["card", "sign", "new.json"], args].concat()).ok();
    write(user, name, &said.out);
    said.json()
}

fn changed(user: &User, name: &str, change: impl FnOnce(&mut Value)) {
    let mut card: Value =
        serde_json::from_str(&fs::read_to_string(user.folder().join(name)).unwrap()).unwrap();
    change(&mut card);
    write(user, name, &card.to_string());
}

#[test]
fn p08_a_new_card_is_valid_and_is_served() {
    let user = user();
    let said = user.run(&["card", "new", "Dice", "--description", "Rolls dice", "--skill", "roll"]).ok();
    write(&user, "card.json", &said.out);
    assert_eq!(said.json()["skills"][0]["id"], "roll");
    let lint = user.run(&["card", "lint", "./card.json"]).ok();
    assert_eq!(lint.field("Valid"), "true");
    let config = "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\ncard = \"card.json\"\n[[skill]]\nid = \"roll\"\nbuiltin = \"echo\"\n";
    write(&user, "baton.toml", config);
    let served = Served::of(baton(&["serve"]).current_dir(user.folder()));
    assert_eq!(user.run(&["card", "lint", &served.url]).ok().field("Valid"), "true");
    assert_eq!(user.run(&["card", "get", &served.url]).ok().field("Agent"), "Dice");
    for wrong in [&["", "--url", "http://h"][..], &["--url", "h"], &["--description", " "]] {
        let said = user.run(&[&["card", "new"], wrong].concat()).failed(2);
        assert!(said.err.contains("A2ACLI_ERR_USAGE"), "{said:?}");
    }
}

/// What is wrong is named by its place, and what is unsafe, too.
#[test]
fn p09_lint_says_what_is_wrong_with_a_card() {
    let user = user();
    let good: Value = user.run(&["card", "new"]).ok().json();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut card = good.clone();
        change(&mut card);
        card.to_string()
    };
    for (text, named) in [
        (with(&|card| card["skills"][0]["description"] = json!("")), "skills[0].description"),
        (with(&|card| card["supportedInterfaces"] = json!([])), "supportedInterfaces"),
        (with(&|card| drop(card.as_object_mut().unwrap().remove("description"))), "description: expected"),
        ("{".to_owned(), "not JSON"),
        (
            with(&|card| card["supportedInterfaces"][0]["url"] = json!("http://agent.example/")),
            "supportedInterfaces[0].url: expected an https:// address",
        ),
        (with(&|card| card["password"] = json!("s3cret")), "password: expected no secrets"),
        (
            with(&|card| card["supportedInterfaces"][0]["url"] = json!("https://me:s3cret@agent.example/")),
            "supportedInterfaces[0].url: expected no secrets",
        ),
        (
            with(&|card| card["supportedInterfaces"][0]["url"] = json!("http://agent.example/?access_token=s3cret")),
            "supportedInterfaces[0].url: expected no secrets",
        ),
        (
            with(&|card| card["description"] = json!("-----BEGIN PRIVATE KEY-----\ns3cret")),
            "description: expected no secrets",
        ),
        (
            with(&|card| card["securitySchemes"] = json!({"o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {
                "tokenUrl": "http://t.example/", "scopes": {}}}}}})),
            "tokenUrl: expected an https:// address",
        ),
        (
            with(&|card| card["supportedInterfaces"][0] = json!({
                "url": "agent.example:99999", "protocolBinding": "GRPC", "protocolVersion": "1.0"})),
            "supportedInterfaces[0].url: expected host:port",
        ),
        (
            with(&|card| card["supportedInterfaces"][0]["protocolVersion"] = json!("banana")),
            "supportedInterfaces[0].protocolVersion: expected",
        ),
        (with(&|card| card["name"] = json!("\u{1b}[31mred")), "name: expected no control characters"),
        (with(&|card| card["signatures"] = json!([{"protected": "e30", "signature": "AA"}])), "signatures[0].protected.alg"),
        (good.to_string().replacen('{', r#"{"name":"other","#, 1), "duplicate key"),
        (
            json!({"name": "n", "description": "d", "version": "1", "url": "http://127.0.0.1/", "protocolVersion": "0.3.0",
                "capabilities": {}, "skills": [], "defaultInputModes": [], "defaultOutputModes": []}).to_string(),
            "a card of 0.3",
        ),
    ] {
        write(&user, "bad.json", &text);
        let said = user.run(&["card", "lint", "bad.json"]).failed(1);
        let told = format!("{}{}", said.out, said.err);
        assert!(told.contains(named) && told.contains("A2ACLI_ERR_CARD_INVALID"), "{named}: {said:?}");
        assert!(!told.contains("s3cret"), "{said:?}");
        let said = user.run(&["card", "lint", "bad.json", "-o", "json"]).failed(1);
        assert_eq!(said.error().0, "A2ACLI_ERR_CARD_INVALID", "{named}");
    }
    user.run(&["card", "lint", "missing.json"]).failed(3);
    user.run(&["card", "lint"]).failed(2);
}

#[test]
fn p09_a_card_is_signed_and_verified_with_its_key_and_no_other() {
    let user = user();
    let card = signed(&user, "signed.json", &["--key", "ec.pem", "--key-id", "mine"]);
    assert_eq!(card["signatures"].as_array().unwrap().len(), 1, "{card}");
    let said = user.run(&["card", "verify", "signed.json", "--key", "ec.pub"]).ok();
    assert_eq!(said.field("Signature"), "verified kid=mine alg=ES256");
    let said = user.run(&["card", "verify", "signed.json", "--key", "ec.pub", "-o", "json"]).ok();
    assert_eq!(said.json(), json!({"signature": "verified", "keyId": "mine", "algorithm": "ES256"}));
    // One more signature, by another key: each is enough.
    write(&user, "twice.json", &user.run(&["card", "sign", "signed.json", "--key", "ed.jwk"]).ok().out);
    for (key, words) in [("ec.pub", "kid=mine alg=ES256"), ("ed.jwk", "kid=ed alg=EdDSA")] {
        let said = user.run(&["card", "verify", "twice.json", "--key", key]).ok();
        assert_eq!(said.field("Signature"), format!("verified {words}"));
    }
    let only = user.run(&["card", "sign", "twice.json", "--key", "ed.jwk", "--replace"]).ok();
    assert_eq!(only.json()["signatures"].as_array().unwrap().len(), 1);
    // Through a pipe.
    let unsigned = fs::read_to_string(user.folder().join("new.json")).unwrap();
    let piped = user.run_with(&["card", "sign", "-", "--key", "ed.jwk"], &unsigned).ok();
    assert_eq!(piped.json()["signatures"], only.json()["signatures"]);

    for (args, code, words) in [
        (&["signed.json"][..], 1, "--key FILE"),
        (&["signed.json", "--key", "ed.jwk"], 1, "no trusted key"),
        (&["new.json", "--key", "ec.pub"], 1, "has no signature"),
        (&["signed.json", "--key", "ec.pem"], 2, "expected a public key"),
        (&["signed.json", "--key", "missing"], 2, "missing"),
        (&["signed.json", "--jwks", "new.json"], 2, "key set"),
        (&["missing.json", "--key", "ec.pub"], 3, "missing.json"),
    ] {
        let said = user.run(&[&["card", "verify"], args].concat()).failed(code);
        assert!(said.err.contains(words), "{args:?}: {said:?}");
    }
    changed(&user, "signed.json", |card| card["version"] = json!("1.0.1"));
    let said = user.run(&["card", "verify", "signed.json", "--key", "ec.pub"]).failed(1);
    assert!(
        said.field("Signature").starts_with("unverifiable") && said.err.contains("was changed"),
        "{said:?}"
    );

    for (args, code, words) in [
        (&["new.json", "--key", "ec.pub"][..], 2, "public key"),
        (&["new.json", "--key", "missing"], 2, "missing"),
        (&["missing.json", "--key", "ec.pem"], 3, "missing.json"),
        (&["ec.pem", "--key", "ec.pem"], 1, "card lint"),
        (&["new.json"], 2, "--key"),
    ] {
        let said = user.run(&[&["card", "sign"], args].concat()).failed(code);
        assert!(said.err.contains(words) && !said.err.contains("MIGH"), "{args:?}: {said:?}");
    }
}

/// As two SDKs sign: without what is empty.
#[test]
fn p09_a_signature_that_leaves_something_out_does_not_count_if_all_has_to_be_covered() {
    let user = user();
    write(&user, "new.json", &user.run(&["card", "new"]).ok().out);
    changed(&user, "new.json", |card| card["skills"][0]["tags"] = json!([]));
    let signed = user.run(&["card", "sign", "new.json", "--key", "ec.pem"]).ok();
    write(&user, "signed.json", &signed.out);
    let strict = ["card", "verify", "signed.json", "--key", "ec.pub", "--strict"];
    user.run(&strict).ok();
    let card = signed.json();
    let [_, lesser] = &card["signatures"].as_array().unwrap()[..] else { panic!("{signed:?}") };
    changed(&user, "signed.json", |card| card["signatures"] = json!([lesser]));
    let said = user.run(&strict[..strict.len() - 1]).ok();
    assert!(said.field("Signature").ends_with("(empty members are not covered)"), "{said:?}");
    let said = user.run(&strict).failed(1);
    assert!(said.err.contains("does not cover what is empty"), "{said:?}");
}

/// What can be added, dropped or renamed without a trace on the weaker of two signatures is noticed by the other one.
#[test]
fn p09_the_weaker_of_two_signatures_does_not_outvote_the_other() {
    let user = user();
    write(&user, "new.json", &user.run(&["card", "new"]).ok().out);
    changed(&user, "new.json", |card| {
        card["securitySchemes"] = json!({
            "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}, "mtls": {"mtlsSecurityScheme": {}}});
        card["securityRequirements"] = json!([{"schemes": {"bearer": {}}}]);
    });
    let signed = user.run(&["card", "sign", "new.json", "--key", "ec.pem"]).ok();
    assert_eq!(signed.json()["signatures"].as_array().unwrap().len(), 2, "{signed:?}");
    let verify = |change: &dyn Fn(&mut Value)| {
        write(&user, "signed.json", &signed.out);
        changed(&user, "signed.json", change);
        user.run(&["card", "verify", "signed.json", "--key", "ec.pub"])
    };
    assert_eq!(verify(&|_| {}).ok().field("Signature").matches("covered").count(), 0);
    let tampered: [&dyn Fn(&mut Value); 6] = [
        &|card| drop(card["securitySchemes"].as_object_mut().unwrap().remove("mtls")),
        &|card| {
            let schemes = card["securitySchemes"].as_object_mut().unwrap();
            let scheme = schemes.remove("mtls").unwrap();
            schemes.insert("other".to_owned(), scheme);
        },
        &|card| drop(card.as_object_mut().unwrap().remove("securityRequirements")),
        &|card| card["securityRequirements"] = json!([]),
        &|card| card["securityRequirements"] = json!([{"schemes": {}}]),
        &|card| card["securityRequirements"] = json!([{"schemes": {"mtls": {}}}]),
    ];
    for (at, change) in tampered.into_iter().enumerate() {
        let said = verify(change).failed(1);
        assert!(said.err.contains("another with the same key is wrong"), "{at}: {said:?}");
    }
}

/// A signature of 1.0 leaves open what only readers of 0.3 use.
#[test]
fn p09_members_that_a_signature_does_not_cover_are_named() {
    let user = user();
    signed(&user, "signed.json", &["--key", "ec.pem", "--key-id", "mine"]);
    let verify =
        |more: &[&str]| user.run(&[&["card", "verify", "signed.json", "--key", "ec.pub"][..], more].concat());
    verify(&["--strict"]).ok();
    changed(&user, "signed.json", |card| card["url"] = json!("http://evil.example/"));
    let words = "verified kid=mine alg=ES256";
    assert_eq!(verify(&[]).ok().field("Signature"), format!("{words} (url is not covered)"));
    changed(&user, "signed.json", |card| card["security"] = json!([{}]));
    assert_eq!(verify(&[]).ok().field("Signature"), format!("{words} (security, url are not covered)"));
    let said = verify(&["-o", "json"]).ok();
    assert_eq!(said.json()["uncovered"], json!(["security", "url"]));
    let said = verify(&["--strict"]).failed(1);
    assert!(said.err.contains("does not cover security, url"), "{said:?}");
    changed(&user, "signed.json", |card| (0..20).for_each(|at| card[format!("z{at:02}")] = json!(at)));
    assert!(verify(&[]).ok().field("Signature").ends_with("z05, 14 more are not covered)"));
}

#[test]
fn p09_cards_are_compared_by_what_they_mean() {
    let user = user();
    signed(&user, "one.json", &["--key", "ec.pem"]);
    // The members in another order, another signature, other spaces.
    let card: Value =
        serde_json::from_str(&fs::read_to_string(user.folder().join("new.json")).unwrap()).unwrap();
    write(&user, "two.json", &card.to_string());
    assert_eq!(user.run(&["card", "diff", "one.json", "two.json"]).ok().out, "");
    let same = user.run(&["card", "diff", "one.json", "two.json", "-o", "json"]).ok().json();
    assert_eq!(same, json!({"same": true, "differences": []}));
    changed(&user, "two.json", |card| {
        card["name"] = json!("\u{202e}evil");
        card["skills"][0]["tags"] = json!(["answer", "more"]);
    });
    let said = user.run(&["card", "diff", "one.json", "two.json"]).failed(1);
    assert_eq!(
        (said.out.as_str(), said.err.as_str()),
        ("changed name: \"My agent\" -> \"\\u{202e}evil\"\nadded skills[answer].tags: \"more\"\n", "")
    );
    let said = user.run(&["card", "diff", "one.json", "two.json", "-o", "json"]).failed(1);
    assert_eq!(
        said.json()["differences"][1],
        json!({"path": "skills[answer].tags", "before": null, "after": "more"})
    );
    // An agent that runs, and a file.
    let agent = Scripted::start(card_of, |_, _| Answer::Error(-32603, "no"));
    fs::write(user.folder().join("seen.json"), user.run(&["card", "get", &agent.url, "-o", "json"]).ok().out)
        .unwrap();
    user.run(&["card", "diff", &agent.url, "seen.json"]).ok();
    user.run(&["card", "diff", "seen.json", &agent.url]).ok();
    user.run(&["card", "diff", "seen.json"]).failed(2);
    user.run(&["card", "diff", "seen.json", "missing.json"]).failed(3);
}

fn card_of(url: &str) -> Value {
    card(url, json!({}))
}

/// The server signs, `card verify` verifies with the keys that it publishes, and a reload changes the key.
#[test]
fn s02_a_server_signs_its_cards_and_changes_the_key_while_it_serves() {
    let user = user();
    let config = |signing: &str| {
        let head = "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\npublic_url = \"https://agent.example\"\n";
        write(
            &user,
            "baton.toml",
            &format!(
                "{head}[card]\nname = \"Signed\"\ndescription = \"d\"\nextended = \"more.json\"\n[[skill]]\nid = \"answer\"\nbuiltin = \"echo\"\n[auth.api_key]\nsecret = \"a-key-that-is-long-enough\"\n{signing}"
            ),
        );
    };
    write(&user, "more.json", &user.run(&["card", "new", "Signed, for friends"]).ok().out);
    config("[signing]\nkey = \"@ec.pem\"\nkey_id = \"2026-a\"\n");
    let served = Served::of(baton(&["serve"]).current_dir(user.folder()));
    let jwks = format!("{}/.well-known/jwks.json", served.url);
    let verify = |reference: &str, more: &[&str]| user.run(&[&["card", "verify", reference], more].concat());
    let said = verify(&served.url, &["--jwks", &jwks]).ok();
    assert_eq!(said.field("Signature"), "verified kid=2026-a alg=ES256");
    verify(&served.url, &["--key", "ec.pub"]).ok();
    verify(&served.url, &[]).failed(1);
    assert_eq!(user.run(&["card", "lint", &served.url]).ok().field("Valid"), "true");
    write(&user, "earlier.json", &user.run(&["card", "get", &served.url, "-o", "json"]).ok().out);
    write(&user, "earlier-keys.json", &fetched(&jwks));
    // The card for authenticated callers is made for each of them. 0.3 has no rule for what is signed of it.
    for (version, method, verified) in
        [("1.0", "GetExtendedAgentCard", 0), ("0.3", "agent/getAuthenticatedExtendedCard", 1)]
    {
        let answer = asked(&served.url, version, method);
        assert_eq!(answer["result"]["name"], "Signed, for friends", "{answer}");
        write(&user, "extended.json", &answer["result"].to_string());
        verify("extended.json", &["--jwks", &jwks]).failed(verified);
    }

    config("[signing]\nkey = \"@ed.jwk\"\npublished_keys = \"earlier-keys.json\"\n");
    served.signal("-HUP");
    served.log_with("configuration reloaded");
    assert!(
        served.log().contains("applied=\"signing\"") || served.log().contains("signing"),
        "{}",
        served.log()
    );
    let said = verify(&served.url, &["--jwks", &jwks]).ok();
    assert_eq!(said.field("Signature"), "verified kid=ed alg=EdDSA");
    verify("earlier.json", &["--jwks", &jwks]).ok();
    assert!(served.terminate().success());
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// The keys that the server publishes.
fn fetched(url: &str) -> String {
    block_on(async { reqwest::get(url).await.unwrap().error_for_status().unwrap().text().await.unwrap() })
}

/// The answer to a call without parameters, by somebody who has the key.
fn asked(url: &str, version: &str, method: &str) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method});
    block_on(async {
        let request = reqwest::Client::new().post(url).header("a2a-version", version);
        let request = request.header("x-api-key", "a-key-that-is-long-enough").json(&body);
        request.send().await.unwrap().json().await.unwrap()
    })
}

#[test]
fn s02_a_server_that_cannot_sign_does_not_start_and_says_what_to_do() {
    let user = user();
    let head = "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n";
    let url = "public_url = \"https://agent.example\"\n";
    write(&user, "private.json", r#"{"keys":[{"kty":"EC"}]}"#);
    for (text, words) in [
        (format!("{head}[signing]\nkey = \"@ec.pem\"\n"), "signed cards need `public_url` (--public-url)"),
        (format!("{head}{url}[signing]\nkey = \"@missing.pem\"\n"), "No such file"),
        (format!("{head}{url}[signing]\nkey = \"@ec.pub\"\n"), "this is a public key"),
        (format!("{head}{url}[signing]\nkey = \"canary\"\n"), "expected a private key in PEM"),
        (format!("{head}{url}[signing]\nkey_id = \"k\"\n"), "set `signing.key`, too"),
        (
            format!("{head}{url}[signing]\nkey = \"@ec.pem\"\npublished_keys = \"private.json\"\n"),
            "expected a JSON Web Key Set",
        ),
    ] {
        write(&user, "baton.toml", &text);
        let (code, told) = finished(baton(&["serve"]).current_dir(user.folder()));
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(words) && !told.contains("canary"), "{words}: {told}");
    }
    // The key is no part of what is shown.
    write(&user, "baton.toml", &format!("{head}{url}[signing]\nkey = '''{P256}'''\n"));
    let shown = Said::of(baton(&["serve", "config", "show"]).current_dir(user.folder())).ok();
    assert!(shown.out.contains("[signing]") && !shown.out.contains("MIGH"), "{shown:?}");
}
