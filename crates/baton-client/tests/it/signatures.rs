//! P-09: a signed card is verified, unverifiable, or has no signature; never more than that is claimed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_client::protocol::domain::{AgentCard, CardSignature};
use baton_client::protocol::signature::card::{CardDocument, CardForm};
use baton_client::protocol::signature::jws::signing_input;
use baton_client::protocol::wire::{card, v1};
use baton_client::{CardKeys, CardTrust, Client, Discovered, Origin};

use crate::harness::{card_for, serve_router};

enum Signer {
    P256(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl Signer {
    fn all() -> Vec<(&'static str, Signer)> {
        vec![
            ("ES256", Signer::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())),
            ("EdDSA", Signer::Ed(Ed25519KeyPair::generate().unwrap())),
            ("RS256", Signer::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))),
        ]
    }

    fn keys(&self) -> String {
        let b64 = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let key = match self {
            Signer::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(32);
                format!(r#""kty":"EC","crv":"P-256","x":"{}","y":"{}""#, b64(x), b64(y))
            }
            Signer::Ed(pair) => {
                format!(r#""kty":"OKP","crv":"Ed25519","x":"{}""#, b64(pair.public_key().as_ref()))
            }
            Signer::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                format!(r#""kty":"RSA","n":"{}","e":"{}""#, b64(&public.n), b64(&public.e))
            }
        };
        format!(r#"{{"keys":[{{"kid":"k1",{key}}},{{"kty":"oct","k":"c2VjcmV0"}}]}}"#)
    }

    fn sign(&self, header: &str, card: &AgentCard) -> CardSignature {
        let protected = URL_SAFE_NO_PAD.encode(header);
        let input = signing_input(&protected, &payload(card));
        let random = SystemRandom::new();
        let signature = match self {
            Signer::P256(pair) => pair.sign(&random, &input).unwrap().as_ref().to_vec(),
            Signer::Ed(pair) => pair.sign(&input).as_ref().to_vec(),
            Signer::Rsa(pair) => {
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, &input, &mut out).unwrap();
                out
            }
        };
        CardSignature { protected, signature: URL_SAFE_NO_PAD.encode(signature), header: None }
    }
}

/// The specification's form of a card.
fn payload(card: &AgentCard) -> Vec<u8> {
    let mut json = Vec::new();
    v1::write_card(&mut json, card);
    let document = CardDocument::read(std::str::from_utf8(&json).unwrap()).unwrap();
    document.payloads().remove(0).bytes
}

fn unsigned() -> AgentCard {
    card::read_any(&card_for("http://127.0.0.1:1")).unwrap().1
}

/// As an agent serves it: the card goes over the wire once.
async fn served(card: &AgentCard) -> Discovered {
    let mut json = Vec::new();
    v1::write_card(&mut json, card);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("card.json");
    std::fs::write(&file, json).unwrap();
    Client::builder().discover(file.to_str().unwrap()).await.unwrap()
}

fn verified(key_id: &str, algorithm: &'static str) -> CardTrust {
    CardTrust::Verified { key_id: key_id.to_owned(), algorithm, form: CardForm::V1, uncovered: Vec::new() }
}

fn reasons(trust: CardTrust) -> String {
    match trust {
        CardTrust::Unverifiable { reasons } => reasons.join("; "),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn p09_a_good_signature_is_verified_and_a_changed_card_is_not() {
    let builder = Client::builder();
    for (algorithm, signer) in Signer::all() {
        let keys = CardKeys::default().add_key_set(&signer.keys()).unwrap();
        let mut card = unsigned();
        assert_eq!(builder.verify_card(&served(&card).await, &keys).await, CardTrust::Absent);
        let header = format!(r#"{{"alg":"{algorithm}","kid":"k1","typ":"JOSE"}}"#);
        card.signatures = vec![signer.sign(&header, &card)];
        let trust = builder.verify_card(&served(&card).await, &keys).await;
        assert_eq!(trust, verified("k1", algorithm));
        // One good signature is enough, and a bad one beside it does no harm.
        let mut rotated = card.clone();
        let unknown = format!(r#"{{"alg":"{algorithm}","kid":"older"}}"#);
        rotated.signatures.insert(0, signer.sign(&unknown, &card));
        let trust = builder.verify_card(&served(&rotated).await, &keys).await;
        assert_eq!(trust, verified("k1", algorithm), "not by the signature that names another key");
        let mut changed = card.clone();
        changed.interfaces[0].url = "https://evil.example".to_owned();
        let trust = builder.verify_card(&served(&changed).await, &keys).await;
        assert!(reasons(trust).contains("is wrong"));
        let trust = builder.verify_card(&served(&card).await, &CardKeys::default()).await;
        assert!(reasons(trust).contains("no trusted key"));
    }
}

/// A header cannot make a key do for another algorithm.
#[tokio::test]
async fn p09_the_key_decides_the_algorithm() {
    let builder = Client::builder();
    let (_, signer) = Signer::all().remove(0);
    let keys = CardKeys::default().add_key_set(&signer.keys()).unwrap();
    for (header, expected) in [
        (r#"{"alg":"RS256","kid":"k1"}"#, "no trusted key"),
        (r#"{"alg":"none","kid":"k1"}"#, "not accepted"),
        (r#"{"alg":"HS256","kid":"k1"}"#, "not accepted"),
        (r#"{"alg":"ES256"}"#, "names no key"),
    ] {
        let mut card = unsigned();
        card.signatures = vec![signer.sign(header, &card)];
        let trust = builder.verify_card(&served(&card).await, &keys).await;
        assert!(reasons(trust.clone()).contains(expected), "{header}: {trust:?}");
    }
}

#[tokio::test]
async fn p09_keys_are_fetched_from_trusted_servers_only() {
    let (algorithm, signer) = Signer::all().remove(1);
    let (keys, asked) = (signer.keys(), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&asked);
    let url = serve_router(Router::new().route(
        "/keys.json",
        get(move || async move {
            count.fetch_add(1, Ordering::Relaxed);
            keys
        }),
    ))
    .await;
    let mut card = unsigned();
    let header = format!(r#"{{"alg":"{algorithm}","kid":"k1","jku":"{url}/keys.json"}}"#);
    card.signatures = vec![signer.sign(&header, &card)];
    let card = served(&card).await;
    let builder = Client::builder();
    let trust = builder.verify_card(&card, &CardKeys::default()).await;
    assert!(reasons(trust).contains("not a trusted key server"));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let trusting = CardKeys::default().trust_key_server(Origin::parse(&url).unwrap());
    let trust = builder.verify_card(&card, &trusting).await;
    assert_eq!(trust, verified("k1", algorithm));
}

/// Whoever is between could give another key, so that a trusted name is not enough.
#[tokio::test]
async fn p09_keys_of_other_machines_are_fetched_over_https_only() {
    let (algorithm, signer) = Signer::all().remove(1);
    let origin = "http://keys.example";
    let mut card = unsigned();
    let header = format!(r#"{{"alg":"{algorithm}","kid":"k1","jku":"{origin}/keys.json"}}"#);
    card.signatures = vec![signer.sign(&header, &card)];
    let trusting = CardKeys::default().trust_key_server(Origin::parse(origin).unwrap());
    let trust = Client::builder().verify_card(&served(&card).await, &trusting).await;
    assert!(reasons(trust).contains("its key address is not encrypted"));
}

/// Signed three times by the Python SDK (a2a-sdk 1.3.0), once with each algorithm.
#[tokio::test]
async fn p09_signatures_of_the_python_sdk_are_verified() {
    let fixture = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/cards/signed");
        std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
    };
    let keys = CardKeys::default().add_key_set(&fixture("python-1.3.0.keys.json")).unwrap();
    let whole = Discovered::from_json(fixture("python-1.3.0.json")).unwrap();
    assert_eq!(whole.card.signatures.len(), 3);
    for (at, key_id, algorithm) in [(0, "es", "ES256"), (1, "ed", "EdDSA"), (2, "rs", "RS256")] {
        let mut one: serde_json::Value = serde_json::from_str(&whole.json).unwrap();
        one["signatures"] = serde_json::json!([one["signatures"][at]]);
        let read = |card: &serde_json::Value| Discovered::from_json(card.to_string()).unwrap();
        let trust = Client::builder().verify_card(&read(&one), &keys).await;
        assert_eq!(trust, verified(key_id, algorithm));
        one["skills"][0]["name"] = "another".into();
        let trust = Client::builder().verify_card(&read(&one), &keys).await;
        assert!(reasons(trust).contains("is wrong"), "{algorithm}");
    }
}

/// Readers disagree about which of two members counts, so one could be signed and the other one used.
#[tokio::test]
async fn p09_a_card_with_a_member_twice_is_not_verified() {
    let (algorithm, signer) = Signer::all().remove(1);
    let keys = CardKeys::default().add_key_set(&signer.keys()).unwrap();
    let mut card = unsigned();
    card.signatures = vec![signer.sign(&format!(r#"{{"alg":"{algorithm}","kid":"k1"}}"#), &card)];
    let good = served(&card).await;
    assert!(matches!(Client::builder().verify_card(&good, &keys).await, CardTrust::Verified { .. }));
    let mut twice = good.clone();
    twice.json = good.json.replacen('{', r#"{"x":{"y":1,"y":2},"#, 1);
    let trust = Client::builder().verify_card(&twice, &keys).await;
    assert!(reasons(trust).contains("duplicate key"));
}

/// RFC 7517, section 4.3: what a key may be used for.
#[tokio::test]
async fn p09_keys_that_are_not_for_verifying_are_left_out() {
    let (algorithm, signer) = Signer::all().remove(1);
    let mut card = unsigned();
    card.signatures = vec![signer.sign(&format!(r#"{{"alg":"{algorithm}","kid":"k1"}}"#), &card)];
    let card = served(&card).await;
    for (says, counts) in [
        (r#""use":"sig""#, true),
        (r#""use":"enc""#, false),
        (r#""key_ops":["verify"]"#, true),
        (r#""key_ops":["sign","verify"]"#, true),
        (r#""key_ops":["sign"]"#, false),
        (r#""key_ops":[]"#, false),
        (r#""key_ops":"verify""#, false),
    ] {
        let set = signer.keys().replacen(r#""kid""#, &format!(r#"{says},"kid""#), 1);
        let keys = CardKeys::default().add_key_set(&set).unwrap();
        let trust = Client::builder().verify_card(&card, &keys).await;
        assert_eq!(matches!(trust, CardTrust::Verified { .. }), counts, "{says}: {trust:?}");
    }
}

/// What is not looked at is said.
#[tokio::test]
async fn p09_more_signatures_than_are_looked_at_are_a_reason() {
    let (algorithm, signer) = Signer::all().remove(1);
    let keys = CardKeys::default().add_key_set(&signer.keys()).unwrap();
    let mut card = unsigned();
    let sign = |kid: &str| signer.sign(&format!(r#"{{"alg":"{algorithm}","kid":"{kid}"}}"#), &card);
    let (good, unknown) = (sign("k1"), sign("k2"));
    for (before, counts) in [(15, true), (16, false)] {
        card.signatures = vec![unknown.clone(); before];
        card.signatures.push(good.clone());
        let trust = Client::builder().verify_card(&served(&card).await, &keys).await;
        match counts {
            true => assert_eq!(trust, verified("k1", algorithm)),
            false => assert!(reasons(trust).ends_with("not looked at, only the first 16")),
        }
    }
}

#[tokio::test]
async fn p09_a_single_key_verifies_whatever_key_is_named() {
    let (algorithm, signer) = Signer::all().remove(0);
    let set: serde_json::Value = serde_json::from_str(&signer.keys()).unwrap();
    let mut key = set["keys"][0].clone();
    key.as_object_mut().unwrap().remove("kid");
    let keys = CardKeys::default().add_key(&key.to_string()).unwrap();
    let mut card = unsigned();
    card.signatures = vec![signer.sign(&format!(r#"{{"alg":"{algorithm}","kid":"whatever"}}"#), &card)];
    let trust = Client::builder().verify_card(&served(&card).await, &keys).await;
    assert_eq!(trust, verified("whatever", algorithm));
    let pem = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdIG/yhOGzHyrVHPx/keic8sJUe3e\n0iY6fymNADGqtK1fEicwcQ4q2ygelsWXgEI8ZE5qK7pcl/iTZPP5HG62gw==\n-----END PUBLIC KEY-----";
    CardKeys::default().add_key(pem).unwrap();
    for bad in ["", "{}", &pem.replace("PUBLIC", "PRIVATE"), &pem.replacen('M', "N", 1)] {
        CardKeys::default().add_key(bad).unwrap_err();
    }
}

/// Every part of such a card may be nested as deep as JSON may be, and then the whole is deeper.
#[tokio::test]
async fn p09_a_card_that_is_nested_too_deep_is_not_verified_and_does_no_harm() {
    let (algorithm, signer) = Signer::all().remove(1);
    let keys = CardKeys::default().add_key_set(&signer.keys()).unwrap();
    let mut card = unsigned();
    card.signatures = vec![signer.sign(&format!(r#"{{"alg":"{algorithm}","kid":"k1"}}"#), &card)];
    let params = format!(r#"{{"a":{}1{}}}"#, "[".repeat(99), "]".repeat(99));
    let extension = format!(r#""capabilities":{{"extensions":[{{"uri":"urn:x","params":{params}}}]"#);
    let json = served(&card).await.json.replacen(r#""capabilities":{"#, &format!("{extension},"), 1);
    let deep = Discovered::from_json(json.replacen(",}", "}", 1)).unwrap();
    assert_eq!(deep.card.capabilities.extensions.len(), 1);
    let trust = Client::builder().verify_card(&deep, &keys).await;
    assert!(reasons(trust).contains("nested deeper"));
}
