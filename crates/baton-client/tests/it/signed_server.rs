//! The cards of a Baton server that signs them, as clients verify them.

use baton_client::protocol::Generation;
use baton_client::protocol::domain::{AgentCard, AgentInterface, AgentSkill};
use baton_client::protocol::signature::card::CardForm;
use baton_client::protocol::signature::jws::read_signature;
use baton_client::{CardKeys, CardTrust, Client, Discovered, Origin};
use baton_server::card::{CardSigning, SigningKey};
use baton_server::{Builder, Server, StartError};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{TestServer, obedient, serve_on};

/// The example key of RFC 8037.
const ED25519: &str = r#"{"kty":"OKP","crv":"Ed25519","kid":"ed","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

/// Made by OpenSSL for this test.
const P256: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKyoMJXHMC+kMrUB0
zhyeYbNywxoULfeDciT8ibHFBjuhRANCAAR0gb/KE4bMfKtUc/H+R6JzywlR7d7S
Jjp/KY0AMaq0rV8SJzBxDirbKB6WxZeAQjxkTmorulyX+JNk8/kcbraD
-----END PRIVATE KEY-----";

const AT: &str = "/.well-known/agent-card.json";

fn key(id: &str) -> SigningKey {
    SigningKey::read(if id == "ed" { ED25519 } else { P256 }, Some(id)).unwrap()
}

/// With nothing empty on its card.
fn agent() -> Builder {
    let card = AgentCard::new("signed", "An agent for tests", "1.0.0");
    let mut skill = AgentSkill::new("test", "test", "Does as it is told");
    skill.tags = vec!["test".to_owned()];
    Server::builder(card).task_skill(skill, obedient)
}

/// At the address where it listens, so that its own keys can be fetched.
async fn serve(builder: Builder, key_id: &str) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    serve_on(builder.public_url(&url).sign_cards(CardSigning::new(key(key_id))), listener).await
}

async fn get(url: &str, version: Option<&str>) -> String {
    let mut request = reqwest::Client::new().get(url);
    if let Some(version) = version {
        request = request.header("a2a-version", version);
    }
    request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
}

fn signatures(json: &str) -> Vec<Value> {
    let card: Value = serde_json::from_str(json).unwrap();
    card["signatures"].as_array().cloned().unwrap_or_default()
}

/// The card with one of its signatures, and with one change.
fn with(json: &str, signature: &Value, change: impl FnOnce(&mut Value)) -> String {
    let mut card: Value = serde_json::from_str(json).unwrap();
    card["signatures"] = json!([signature]);
    change(&mut card);
    card.to_string()
}

async fn verify(json: &str, keys: &CardKeys) -> CardTrust {
    Client::builder().verify_card(&Discovered::from_json(json).unwrap(), keys).await
}

async fn form(json: &str, keys: &CardKeys) -> Option<CardForm> {
    match verify(json, keys).await {
        CardTrust::Verified { form, .. } => Some(form),
        CardTrust::Unverifiable { .. } => None,
        CardTrust::Absent => panic!("no signature: {json}"),
    }
}

/// The document for readers of two generations has a signature for each way to read it, and each covers what its readers read.
#[tokio::test]
async fn s02_both_signatures_of_the_document_for_two_generations_verify_and_a_changed_value_does_not() {
    for id in ["ec", "ed"] {
        let server = serve(agent(), id).await;
        let keys = CardKeys::default()
            .add_key_set(&get(&format!("{}/.well-known/jwks.json", server.url), None).await);
        let keys = keys.unwrap();
        let superset = get(&format!("{}{AT}", server.url), None).await;
        let [v1, as_served] = &signatures(&superset)[..] else { panic!("{superset}") };
        let unchanged = |_: &mut Value| {};
        assert_eq!(form(&with(&superset, v1, unchanged), &keys).await, Some(CardForm::V1));
        assert_eq!(form(&with(&superset, as_served, unchanged), &keys).await, Some(CardForm::AsServed));
        // Of both generations, of 1.0, of 0.3.
        for (member, is_of_v1) in
            [("name", true), ("supportedInterfaces", true), ("url", false), ("protocolVersion", false)]
        {
            let change = |card: &mut Value| match member {
                "supportedInterfaces" => card[member][0]["url"] = "https://evil.example/".into(),
                _ => card[member] = "https://evil.example/".into(),
            };
            assert_eq!(form(&with(&superset, as_served, change), &keys).await, None, "{member}");
            let expected = if is_of_v1 { None } else { Some(CardForm::V1) };
            assert_eq!(form(&with(&superset, v1, change), &keys).await, expected, "{member}");
        }
        // The document of 1.0 has one form.
        let newest = get(&format!("{}{AT}", server.url), Some("1.0")).await;
        let [only] = &signatures(&newest)[..] else { panic!("{newest}") };
        assert_eq!(form(&with(&newest, only, unchanged), &keys).await, Some(CardForm::V1));
        server.stop().await;
    }
}

/// Two SDKs leave out what is empty before they verify, so a card with something empty on it has a signature for them.
#[tokio::test]
async fn s02_a_card_with_something_empty_has_a_signature_for_readers_who_leave_that_out() {
    let card = AgentCard::new("signed", "An agent for tests", "1.0.0");
    let builder = Server::builder(card).task_skill(AgentSkill::new("test", "test", "No tags"), obedient);
    let server = serve(builder, "ec").await;
    let keys = CardKeys::default().add_key(&key("ec").public_key()).unwrap();
    for (version, expected) in [
        (None, &[CardForm::V1, CardForm::WithoutEmpty, CardForm::AsServed][..]),
        (Some("1.0"), &[CardForm::V1, CardForm::WithoutEmpty]),
    ] {
        let json = get(&format!("{}{AT}", server.url), version).await;
        let mut found = Vec::new();
        for signature in signatures(&json) {
            found.extend(form(&with(&json, &signature, |_| {}), &keys).await);
        }
        assert_eq!(found, expected);
        // The one for them counts least, and for who wants all members covered not at all.
        let [whole, lesser] = [signatures(&json)[0].clone(), signatures(&json)[1].clone()];
        let strict = keys.clone().require_every_member();
        // The first one leaves out what is there for readers of 0.3.
        let strictly = Some(CardForm::V1).filter(|_| version.is_some());
        for (listed, any, strictly) in [
            (json!([lesser]), CardForm::WithoutEmpty, None),
            (json!([lesser, whole]), CardForm::V1, strictly),
        ] {
            let card = with(&json, &lesser, |card| card["signatures"] = listed);
            assert_eq!((form(&card, &keys).await, form(&card, &strict).await), (Some(any), strictly));
        }
        // Who changes what is empty is noticed by the strict alone.
        let change = |card: &mut Value| card["securityRequirements"] = json!([{"schemes": {}}]);
        let changed = with(&json, &lesser, change);
        assert_eq!(form(&changed, &keys).await, Some(CardForm::WithoutEmpty));
        let CardTrust::Unverifiable { reasons } = verify(&changed, &strict).await else {
            panic!("it counts")
        };
        assert!(reasons[0].contains("does not cover what is empty"), "{reasons:?}");
        // With the others there, which are wrong then, everybody notices.
        let mut changed: Value = serde_json::from_str(&json).unwrap();
        change(&mut changed);
        assert_eq!(form(&changed.to_string(), &keys).await, None);
    }
    server.stop().await;
}

/// The members that only 0.3 has can be of anybody's, if a signature does not cover them: that is said, and the client does not use
/// them.
#[tokio::test]
async fn s02_what_is_added_for_readers_of_0_3_is_named_and_not_used() {
    let server = serve(agent(), "ec").await;
    let keys = CardKeys::default().add_key(&key("ec").public_key()).unwrap();
    let strict = keys.clone().require_every_member();
    let superset = get(&format!("{}{AT}", server.url), None).await;
    let newest = get(&format!("{}{AT}", server.url), Some("1.0")).await;
    for json in [&superset, &newest] {
        assert!(form(json, &strict).await.is_some(), "{json}");
    }
    let add = |json: &str| {
        let mut card: Value = serde_json::from_str(json).unwrap();
        card["url"] = json!("http://evil.example/");
        card["preferredTransport"] = json!("JSONRPC");
        card["protocolVersion"] = json!("0.3.0");
        card["additionalInterfaces"] = json!([{"url": "http://evil2.example/", "transport": "GRPC"}]);
        card["security"] = json!([{}]);
        card.to_string()
    };
    // The signature over the whole document is there, and wrong.
    for keys in [&keys, &strict] {
        let trust = verify(&add(&superset), keys).await;
        let CardTrust::Unverifiable { reasons } = &trust else { panic!("{trust:?}") };
        assert!(reasons.iter().any(|reason| reason.contains("with the same key is wrong")), "{reasons:?}");
    }
    let added = add(&newest);
    let trust = verify(&added, &keys).await;
    let CardTrust::Verified { form: CardForm::V1, mut uncovered, .. } = trust else { panic!("{trust:?}") };
    uncovered.sort();
    let names = ["additionalInterfaces", "preferredTransport", "protocolVersion", "security", "url"];
    assert_eq!(uncovered, names);
    let CardTrust::Unverifiable { reasons } = verify(&added, &strict).await else { panic!("it counts") };
    assert!(reasons[0].contains("does not cover") && reasons[0].contains("url"), "{reasons:?}");
    // Whoever wants 0.3 gets the address that is signed.
    let found = Discovered::from_json(added).unwrap();
    let client = Client::builder().versions([Generation::V0_3]).with_card(found).unwrap();
    assert!(client.interface().url().starts_with(&server.url), "{:?}", client.interface());
    server.stop().await;
}

#[tokio::test]
async fn s02_a_document_for_readers_of_0_3_is_signed_as_it_is_served() {
    let mut card = AgentCard::new("signed", "An agent for tests", "1.0.0");
    let (url, protocol_binding) = (String::new(), "JSONRPC".to_owned());
    card.interfaces =
        vec![AgentInterface { url, protocol_binding, protocol_version: "0.3".to_owned(), tenant: None }];
    let builder = Server::builder(card).task_skill(AgentSkill::new("test", "test", "test"), obedient);
    let server = serve(builder, "ed").await;
    let keys = CardKeys::default().add_key(&key("ed").public_key()).unwrap();
    let json = get(&format!("{}{AT}", server.url), None).await;
    assert!(!json.contains("supportedInterfaces"), "{json}");
    assert_eq!(form(&json, &keys).await, Some(CardForm::AsServed));
    let [signature] = &signatures(&json)[..] else { panic!("{json}") };
    for member in ["name", "url", "protocolVersion"] {
        let changed = with(&json, signature, |card| card[member] = "0.2.9".into());
        assert_eq!(form(&changed, &keys).await, None, "{member}");
    }
    server.stop().await;
}

/// A client with an earlier card has to find the key of then; the card of now names the new one.
#[tokio::test]
async fn s02_a_key_takes_the_place_of_another_without_a_gap() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = agent().public_url(&url).sign_cards(CardSigning::new(key("ec"))).build().await.unwrap();
    let control = server.control();
    let serving = tokio::spawn(server.serve_until(listener, std::future::pending()));
    let (at, published) = (format!("{url}{AT}"), format!("{url}/.well-known/jwks.json"));
    let earlier = get(&at, None).await;
    assert_eq!(get(&at, None).await, earlier, "signed once, not for each request");
    let before = get(&published, None).await;

    control.sign_cards(Some(CardSigning::new(key("ed")).publish(&before).unwrap())).unwrap();
    let later = get(&at, None).await;
    let named = |json: &str| {
        let card = Discovered::from_json(json).unwrap().card;
        let read = |signature| read_signature(signature).unwrap();
        card.signatures.iter().map(|signature| read(signature).key_id).collect::<Vec<_>>()
    };
    assert_eq!((named(&earlier), named(&later)), (vec!["ec".to_owned(); 2], vec!["ed".to_owned(); 2]));
    // The keys are found where the signature says, if that server is trusted.
    let trusting = CardKeys::default().trust_key_server(Origin::parse(&url).unwrap());
    for card in [&earlier, &later] {
        assert!(matches!(verify(card, &trusting).await, CardTrust::Verified { .. }));
        assert!(matches!(verify(card, &CardKeys::default()).await, CardTrust::Unverifiable { .. }));
    }
    let expected: Value = serde_json::from_str(&before).unwrap();
    let now: Value = serde_json::from_str(&get(&published, None).await).unwrap();
    assert_eq!(
        (now["keys"][0]["kid"].clone(), &now["keys"][1]["x"]),
        (json!("ed"), &expected["keys"][0]["x"])
    );
    assert!(!now.to_string().contains(r#""d":"#), "{now}");

    control.sign_cards(None).unwrap();
    assert!(signatures(&get(&at, None).await).is_empty());
    assert_eq!(reqwest::get(&published).await.unwrap().status(), 404);
    serving.abort();
}

/// The addresses would come from requests, and whoever sends one would choose what is signed.
#[tokio::test]
async fn s02_a_server_without_a_public_url_signs_nothing() {
    let refused = agent().sign_cards(CardSigning::new(key("ec"))).build().await.unwrap_err();
    assert!(matches!(&refused, StartError::Signing(text) if text.contains("public URL")), "{refused}");
    let control = agent().build().await.unwrap().control();
    control.sign_cards(Some(CardSigning::new(key("ec")))).unwrap_err();
    // With one, no header of a request has any effect on what is signed.
    let server = serve(agent(), "ec").await;
    let http = reqwest::Client::new();
    let asked = http.get(format!("{}{AT}", server.url)).header("x-forwarded-host", "evil.example");
    let json = asked.header("forwarded", "host=evil.example").send().await.unwrap().text().await.unwrap();
    assert!(!json.contains("evil.example") && json.contains(&server.url), "{json}");
    server.stop().await;
}

/// A card that was read and then changed is not the one that was signed.
#[tokio::test]
async fn p09_a_card_that_was_changed_after_it_was_read_is_not_verified() {
    let server = serve(agent(), "ec").await;
    let keys = CardKeys::default().add_key(&key("ec").public_key()).unwrap();
    let mut found = Client::builder().discover(&server.url).await.unwrap();
    assert!(matches!(Client::builder().verify_card(&found, &keys).await, CardTrust::Verified { .. }));
    found.card.interfaces[0].url = "https://evil.example".to_owned();
    let trust = Client::builder().verify_card(&found, &keys).await;
    assert!(
        matches!(&trust, CardTrust::Unverifiable { reasons } if reasons[0].contains("was changed")),
        "{trust:?}"
    );
    server.stop().await;
}
