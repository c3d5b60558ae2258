use baton_protocol::signature::jws::read_signature;

use super::*;

/// The example key of RFC 8037. Its signatures are always the same.
const ED25519: &str = r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

/// One key in three spellings, made by OpenSSL.
const SEC1: &str = "-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEICsqDCVxzAvpDK1AdM4cnmGzcsMaFC33g3Ik/ImxxQY7oAoGCCqGSM49
AwEHoUQDQgAEdIG/yhOGzHyrVHPx/keic8sJUe3e0iY6fymNADGqtK1fEicwcQ4q
2ygelsWXgEI8ZE5qK7pcl/iTZPP5HG62gw==
-----END EC PRIVATE KEY-----";
const PKCS8: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKyoMJXHMC+kMrUB0
zhyeYbNywxoULfeDciT8ibHFBjuhRANCAAR0gb/KE4bMfKtUc/H+R6JzywlR7d7S
Jjp/KY0AMaq0rV8SJzBxDirbKB6WxZeAQjxkTmorulyX+JNk8/kcbraD
-----END PRIVATE KEY-----";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----";

fn ids(key: &str, id: Option<&str>) -> Result<String, BadSigningKey> {
    SigningKey::read(key, id).map(|key| key.id().to_owned())
}

/// The signatures were made by Python's `cryptography` over what the canonicaliser of a2a-sdk 1.3.0 wrote.
#[test]
fn s02_signatures_are_those_of_other_implementations() {
    let card = r#"{"name":"Zoë 😀","description":"","version":"1.0","url":"https://a.example/","protocolVersion":"0.3.0",
        "supportedInterfaces":[{"url":"https://a.example/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
        "capabilities":{"streaming":false,"extensions":[{"uri":"urn:x","params":{"b":1e21,"a":4.50,"€":[]}}]},
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
        "skills":[{"id":"s","name":"s","description":"s","tags":[]}]}"#;
    let key = SigningKey::read(ED25519, None).unwrap();
    let signatures = key.sign(&CardDocument::read(card).unwrap(), None).unwrap();
    let header = "eyJhbGciOiJFZERTQSIsImtpZCI6ImtQcktfcW14VldhWVZBOXd3QkY2SXVvM3ZWeno3VHhIQ1R3WEJ5Z3JTNGsiLCJ0eXAiOiJKT1NFIn0";
    assert!(signatures.iter().all(|signature| signature.protected == header));
    let made: Vec<&str> = signatures.iter().map(|signature| signature.signature.as_str()).collect();
    assert_eq!(
        made,
        [
            "YLKQQwd0L60MS43OPflCJmM-aE9VbixeyIcNIR9BdEbnPO7WMynJ5QmCreoIM3N9gM6lXrC-OKkx8RbHyM9RDg",
            "ZT8oWNj7o2sF-E68rsLlnSPYUFlLGJNZqKIFrWSZ8lUW5YEYnoGcdohgLg24KUesS7MrrDKiKUupIo9cDIe0Dw",
            "EoUnTad0IYykfot1U-d-epBOPHxcxAImRckxTf6tt7Ss5-WYyy3SlQQakx6Dvk6PJ2oCrk3oO3N9rW82ZHk4Dw",
        ]
    );
}

#[test]
fn s02_a_key_is_read_in_every_spelling() {
    let thumbprint = ids(PKCS8, None).unwrap();
    assert_eq!(ids(SEC1, None).unwrap(), thumbprint);
    assert_eq!(ids(ED25519, None).unwrap(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    let named = ED25519.replace("{", r#"{"kid":"own","#);
    assert_eq!(ids(&named, None).unwrap(), "own");
    assert_eq!(ids(&named, Some("given")).unwrap(), "given");
    let ed25519_pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIBCT9TYyRqTZ7mDExSroHaL3RNwK1OGNWXNO8ENYOcLk\n-----END PRIVATE KEY-----\n";
    assert_eq!(SigningKey::read(ed25519_pem, None).unwrap().algorithm().name(), "EdDSA");
    assert_eq!(SigningKey::read(PKCS8, None).unwrap().algorithm().name(), "ES256");
}

#[test]
fn s02_what_is_no_signing_key_says_why_and_shows_nothing() {
    let encrypted = PKCS8.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let no_private = ED25519.replace(r#""d""#, r#""canary""#);
    let other_public = ED25519.replace("11qY", "11qZ");
    for (text, reason) in [
        ("", BadSigningKey::Form),
        ("canary", BadSigningKey::Form),
        (r#"{"canary":1}"#, BadSigningKey::Form),
        (&no_private, BadSigningKey::Public),
        (PUBLIC, BadSigningKey::Public),
        (&encrypted, BadSigningKey::Encrypted),
        (&other_public, BadSigningKey::Kind),
        (&PKCS8.replacen("MIGH", "MIGG", 1), BadSigningKey::Kind),
        (r#"{"kty":"RSA","crv":"canary","x":"AA","d":"AA"}"#, BadSigningKey::Kind),
    ] {
        let error = SigningKey::read(text, None).unwrap_err();
        assert_eq!(error, reason, "{text}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    assert_eq!(ids(ED25519, Some("")), Err(BadSigningKey::NoId));
    let key = SigningKey::read(ED25519, None).unwrap();
    let shown = format!("{key:?} {:?} {}", CardSigning::new(key.clone()), key.public_key());
    assert!(!shown.contains("nWGx"), "{shown}");
}

/// A private key in the set is a mistake that must not be published.
#[test]
fn s02_of_earlier_keys_only_the_public_part_is_published() {
    let signing = || CardSigning::new(SigningKey::read(PKCS8, Some("new")).unwrap());
    let old = ED25519.replace("{", r#"{"kid":"old","#);
    let with_old = signing().publish(&format!(r#"{{"keys":[{old}]}}"#)).unwrap();
    let published: Vec<String> = with_old.public_keys().collect();
    assert!(published.len() == 2 && published[0].contains(r#""kid":"new""#), "{published:?}");
    let second: Value = serde_json::from_str(&published[1]).unwrap();
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    assert_eq!(
        second,
        serde_json::json!({"kty": "OKP", "crv": "Ed25519", "kid": "old", "x": x, "alg": "EdDSA"})
    );
    // The signing key itself, as an operator saved it, is not there twice.
    let again = format!(r#"{{"keys":[{old},{}]}}"#, published[0]);
    assert!(signing().publish(&again).unwrap().is_same(&with_old));
    assert!(!with_old.is_same(&signing()));
    for bad in ["", "{}", r#"{"keys":[{"kty":"EC"}]}"#, r#"{"keys":[{"kty":"oct","kid":"s","k":"AA"}]}"#] {
        assert_eq!(signing().publish(bad).unwrap_err(), BadSigningKey::NoKeySet, "{bad}");
    }
}

/// A key that takes the place of another needs an id of its own; else neither could be told from the other.
#[test]
fn s02_two_different_keys_cannot_have_one_id() {
    let old = ED25519.replace("{", r#"{"kid":"old","#);
    let set = |keys: &[&str]| format!(r#"{{"keys":[{}]}}"#, keys.join(","));
    let signing = |id: &str| CardSigning::new(SigningKey::read(PKCS8, Some(id)).unwrap());
    let other = signing("old").public_keys().next().unwrap();
    assert_eq!(signing("old").publish(&set(&[&old])).unwrap_err(), BadSigningKey::SameId);
    assert_eq!(signing("new").publish(&set(&[&old, &other])).unwrap_err(), BadSigningKey::SameId);
    assert_eq!(signing("new").publish(&set(&[&old, &old])).unwrap().public_keys().count(), 2);
    let twice = old.replacen('{', r#"{"kid":"older","#, 1);
    assert_eq!(signing("new").publish(&set(&[&twice])).unwrap_err(), BadSigningKey::NoKeySet);
}

#[test]
fn s02_a_signature_says_where_its_key_is() {
    let url = PublicUrl::new("https://a.example/agents/");
    let signing = CardSigning::new(SigningKey::read(PKCS8, None).unwrap());
    let signer = Signer::new(signing.clone(), Some(&url)).unwrap();
    let card = signer.sign_v1(AgentCard::new("n", "d", "1"));
    let read = read_signature(&card.signatures[0]).unwrap();
    assert_eq!(read.key_url.as_deref(), Some("https://a.example/agents/.well-known/jwks.json"));
    assert!(Signer::new(signing, None).unwrap_err().to_string().contains("public URL"));
}
