//! JWTs of agents, of others, and of others who have seen one of an agent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{BadJwt, WebhookError, WebhookKeys, WebhookVerifier};

const BODY: &[u8] = br#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#;
const NOW: u64 = 1_700_000_000;
const RECEIVER: &str = "https://hooks.example";

fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// An agent with a key of each kind.
struct Agent {
    p256: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

impl Agent {
    fn new() -> Self {
        let p256 = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        Agent { p256, ed25519: Ed25519KeyPair::generate().unwrap() }
    }

    fn p256_key(&self) -> Value {
        let (x, y) = self.p256.public_key().as_ref()[1..].split_at(32);
        json!({"kty": "EC", "crv": "P-256", "x": base64url(x), "y": base64url(y), "kid": "p256"})
    }

    fn keys(&self) -> WebhookKeys {
        let ed25519 = base64url(self.ed25519.public_key());
        let ed25519 = json!({"kty": "OKP", "crv": "Ed25519", "x": ed25519, "kid": "ed25519"});
        let set = json!({"keys": [{"kty": "oct", "k": "c2VjcmV0"}, self.p256_key(), ed25519]});
        WebhookKeys::from_json(&set.to_string()).unwrap()
    }

    fn verifier(&self) -> WebhookVerifier {
        WebhookVerifier::with_keys(self.keys()).audience("https://other.example").audience(RECEIVER)
    }

    /// Signed with the key that the header names by its algorithm.
    fn token(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", base64url(header), base64url(claims));
        let signature = match header.contains("EdDSA") {
            true => self.ed25519.sign(message.as_bytes()).as_ref().to_vec(),
            false => self.p256.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec(),
        };
        format!("{message}.{}", base64url(signature))
    }
}

fn header() -> Value {
    json!({"alg": "ES256", "kid": "p256", "typ": "JWT"})
}

fn claims() -> Value {
    let digest: String = Sha256::digest(BODY).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"iss": "https://agent.example", "aud": RECEIVER, "iat": NOW, "exp": NOW + 300, "jti": "evt_1", "taskId": "t",
        "request_body_sha256": digest})
}

/// The object with one member more, changed or (null) less.
fn with(mut object: Value, name: &str, value: Value) -> Value {
    match value {
        Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
        value => object[name] = value,
    }
    object
}

fn call(authorization: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_str(authorization).unwrap());
    headers.insert("webhook-id", HeaderValue::from_static("evt_1"));
    headers
}

fn judge(verifier: &WebhookVerifier, headers: &HeaderMap, body: &[u8], now: u64) -> Result<(), WebhookError> {
    verifier.verify_at(headers, body, UNIX_EPOCH + Duration::from_secs(now)).map(drop)
}

#[track_caller]
fn refused(agent: &Agent, token: &str, expected: BadJwt) {
    let result = judge(&agent.verifier(), &call(&format!("Bearer {token}")), BODY, NOW);
    let error = result.unwrap_err();
    assert_eq!(error.http_status(), 401);
    assert_eq!(error, WebhookError::Jwt(expected), "{token}");
}

#[test]
fn s14_a_jwt_of_the_agent_is_accepted_once() {
    let agent = Agent::new();
    let ed25519 = json!({"alg": "EdDSA", "kid": "ed25519"});
    for header in [
        header(),
        with(header(), "typ", Value::Null),
        with(header(), "typ", json!("application/jwt")),
        ed25519,
    ] {
        let verifier = agent.verifier();
        let headers = call(&format!("bearer {}", agent.token(&header.to_string(), &claims().to_string())));
        let at = UNIX_EPOCH + Duration::from_secs(NOW + 2);
        let said = verifier.verify_at(&headers, BODY, at).unwrap().done();
        assert_eq!(said.id.as_deref(), Some("evt_1"));
        assert_eq!(said.sent, Some(UNIX_EPOCH + Duration::from_secs(NOW)));
        // Replayed for as long as it is valid, and as a later attempt of the agent.
        for later in (0..=360).step_by(10) {
            assert_eq!(judge(&verifier, &headers, BODY, NOW + later), Err(WebhookError::Duplicate));
        }
        let later = with(with(claims(), "iat", json!(NOW + 300)), "exp", json!(NOW + 600));
        let later = call(&format!("Bearer {}", agent.token(&header.to_string(), &later.to_string())));
        assert_eq!(judge(&verifier, &later, BODY, NOW + 300), Err(WebhookError::Duplicate));
    }
}

/// However small the tolerance is, an event is known until its JWT is expired, or made too long ago.
#[test]
fn s14_a_replay_is_known_for_as_long_as_a_jwt_is_valid() {
    let agent = Agent::new();
    let claims = with(claims(), "exp", json!(NOW * 2));
    let headers = call(&format!("Bearer {}", agent.token(&header().to_string(), &claims.to_string())));
    for tolerance in [0, 1, 300, 10_000] {
        let verifier = agent.verifier().tolerance(Duration::from_secs(tolerance));
        let at = UNIX_EPOCH + Duration::from_secs(NOW - 60);
        verifier.verify_at(&headers, BODY, at).unwrap().done();
        let last = NOW + tolerance + 60;
        for now in [NOW, last] {
            assert_eq!(judge(&verifier, &headers, BODY, now), Err(WebhookError::Duplicate), "{tolerance}");
        }
        assert_eq!(judge(&verifier, &headers, BODY, last + 1), Err(WebhookError::Jwt(BadJwt::Expired)));
    }
}

#[test]
fn s14_jwts_with_a_bad_header_are_refused() {
    let agent = Agent::new();
    let good = claims().to_string();
    for (name, value, expected) in [
        ("alg", json!("none"), BadJwt::Algorithm),
        ("alg", json!("None"), BadJwt::Algorithm),
        ("alg", json!("HS256"), BadJwt::Algorithm),
        ("alg", json!("RS256"), BadJwt::Algorithm),
        ("alg", json!("ES384"), BadJwt::Algorithm),
        ("alg", json!("es256"), BadJwt::Algorithm),
        ("alg", json!(["ES256"]), BadJwt::Algorithm),
        ("alg", Value::Null, BadJwt::Algorithm),
        // The key decides the algorithm.
        ("alg", json!("EdDSA"), BadJwt::UnknownKey),
        ("kid", json!("ed25519"), BadJwt::UnknownKey),
        ("kid", json!("other"), BadJwt::UnknownKey),
        ("kid", json!("../p256"), BadJwt::UnknownKey),
        ("kid", json!(7), BadJwt::UnknownKey),
        ("kid", Value::Null, BadJwt::UnknownKey),
        ("jwk", agent.p256_key(), BadJwt::OwnKey),
        ("jku", json!("https://attacker.example/keys"), BadJwt::OwnKey),
        ("x5u", json!("https://attacker.example/certificate"), BadJwt::OwnKey),
        ("x5c", json!(["MIIB"]), BadJwt::OwnKey),
        ("crit", json!(["exp"]), BadJwt::Critical),
        ("crit", json!([]), BadJwt::Critical),
        ("b64", json!(false), BadJwt::Critical),
        ("typ", json!("at+jwt"), BadJwt::Type),
        ("typ", json!(1), BadJwt::Type),
    ] {
        refused(&agent, &agent.token(&with(header(), name, value).to_string(), &good), expected);
    }
    let twice = r#"{"alg":"none","kid":"p256","alg":"ES256"}"#;
    refused(&agent, &agent.token(twice, &good), BadJwt::Malformed);
    refused(&agent, &agent.token("[]", &good), BadJwt::Malformed);
    // Rightly signed by somebody else, who may name any key and bring one along.
    let attacker = Agent::new();
    refused(&agent, &attacker.token(&header().to_string(), &good), BadJwt::Signature);
    let own = with(header(), "jwk", attacker.p256_key()).to_string();
    refused(&agent, &attacker.token(&own, &good), BadJwt::OwnKey);
}

/// The public key as a shared secret, in each form in which an attacker may have it.
#[test]
fn s14_a_public_key_is_no_shared_secret() {
    let agent = Agent::new();
    let public = agent.p256.public_key().as_ref();
    for secret in [public, &public[1..], agent.p256_key().to_string().as_bytes()] {
        let message = format!(
            "{}.{}",
            base64url(with(header(), "alg", json!("HS256")).to_string()),
            base64url(claims().to_string())
        );
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
        refused(&agent, &format!("{message}.{}", base64url(tag)), BadJwt::Algorithm);
    }
}

#[test]
fn s14_jwts_with_bad_claims_are_refused() {
    let agent = Agent::new();
    let other_body: String = Sha256::digest(b"{}").iter().map(|byte| format!("{byte:02x}")).collect();
    for (name, value, expected) in [
        ("exp", Value::Null, BadJwt::Claims),
        ("exp", json!((NOW + 300).to_string()), BadJwt::Claims),
        ("exp", json!([NOW + 300]), BadJwt::Claims),
        ("exp", json!(-1), BadJwt::Claims),
        ("exp", json!(NOW - 61), BadJwt::Expired),
        ("iat", Value::Null, BadJwt::Claims),
        ("iat", json!(NOW.to_string()), BadJwt::Claims),
        ("iat", json!(NOW + 61), BadJwt::TooNew),
        ("iat", json!(NOW - 361), BadJwt::Expired),
        ("nbf", json!(NOW + 61), BadJwt::TooNew),
        ("nbf", json!("soon"), BadJwt::Claims),
        ("jti", json!("evt_2"), BadJwt::Event),
        ("jti", json!(1), BadJwt::Claims),
        ("jti", Value::Null, BadJwt::Claims),
        ("request_body_sha256", json!(other_body), BadJwt::Body),
        ("request_body_sha256", json!(""), BadJwt::Body),
        ("request_body_sha256", Value::Null, BadJwt::Claims),
        ("aud", json!("https://hooks.example/"), BadJwt::Audience),
        ("aud", json!("http://hooks.example"), BadJwt::Audience),
        ("aud", json!(["https://a.example"]), BadJwt::Audience),
        ("aud", json!({"0": RECEIVER}), BadJwt::Audience),
        ("aud", Value::Null, BadJwt::Audience),
    ] {
        let token = agent.token(&header().to_string(), &with(claims(), name, value).to_string());
        refused(&agent, &token, expected);
    }
    let twice = claims().to_string().replacen('{', r#"{"exp":99999999999,"#, 1);
    refused(&agent, &agent.token(&header().to_string(), &twice), BadJwt::Malformed);
    // At the edges, and in other spellings.
    for (name, value) in [
        ("exp", json!(NOW - 60)),
        ("exp", json!(NOW as f64 + 0.5)),
        ("iat", json!(NOW + 60)),
        ("iat", json!(NOW - 360)),
        ("nbf", json!(NOW + 60)),
        ("aud", json!(["https://a.example", RECEIVER])),
        ("iss", Value::Null),
    ] {
        let token = agent.token(&header().to_string(), &with(claims(), name, value.clone()).to_string());
        let result = judge(&agent.verifier(), &call(&format!("Bearer {token}")), BODY, NOW);
        assert_eq!(result, Ok(()), "{name} {value}");
    }
    let anybody = with(claims(), "aud", Value::Null);
    let headers = call(&format!("Bearer {}", agent.token(&header().to_string(), &anybody.to_string())));
    assert_eq!(judge(&WebhookVerifier::with_keys(agent.keys()), &headers, BODY, NOW), Ok(()));
}

#[test]
fn s14_calls_that_were_changed_do_not_fit_their_jwt() {
    let agent = Agent::new();
    let token = agent.token(&header().to_string(), &claims().to_string());
    let good = call(&format!("Bearer {token}"));
    let changed = |name: &'static str, value: Option<&str>| {
        let mut headers = good.clone();
        match value {
            Some(value) => drop(headers.insert(name, HeaderValue::from_str(value).unwrap())),
            None => drop(headers.remove(name)),
        }
        headers
    };
    let mut twice = good.clone();
    twice.append("authorization", good["authorization"].clone());
    let (message, signature) = token.rsplit_once('.').unwrap();
    let other_s = format!("Bearer {message}.{}", base64url([0; 64]));
    let der = format!("Bearer {message}.{}", base64url([0x30; 70]));
    let flipped = format!("Bearer {}.{signature}", message.replacen("ey", "eY", 2));
    for (headers, body, expected) in [
        (good.clone(), &BODY[..BODY.len() - 1], BadJwt::Body),
        (good.clone(), b"{}".as_slice(), BadJwt::Body),
        (changed("webhook-id", Some("evt_2")), BODY, BadJwt::Event),
        (changed("webhook-id", None), BODY, BadJwt::Event),
        (changed("authorization", None), BODY, BadJwt::Missing),
        (changed("authorization", Some("Bearer")), BODY, BadJwt::Missing),
        (changed("authorization", Some("Basic dTpw")), BODY, BadJwt::Missing),
        (changed("authorization", Some("Bearer t0k")), BODY, BadJwt::Malformed),
        (changed("authorization", Some(&format!("Bearer {token}."))), BODY, BadJwt::Malformed),
        (changed("authorization", Some(&format!("Bearer {token}=="))), BODY, BadJwt::Malformed),
        (
            changed("authorization", Some(&format!("Bearer {token}{}", "A".repeat(10_000)))),
            BODY,
            BadJwt::Malformed,
        ),
        (changed("authorization", Some(&format!("Bearer {message}."))), BODY, BadJwt::Signature),
        (changed("authorization", Some(&other_s)), BODY, BadJwt::Signature),
        (changed("authorization", Some(&der)), BODY, BadJwt::Signature),
        (changed("authorization", Some(&flipped)), BODY, BadJwt::Malformed),
        (twice, BODY, BadJwt::Missing),
    ] {
        let result = judge(&agent.verifier(), &headers, body, NOW);
        assert_eq!(result, Err(WebhookError::Jwt(expected)), "{headers:?}");
    }
    // None of them used up the event.
    judge(&agent.verifier(), &good, BODY, NOW).unwrap();
}

#[test]
fn s14_a_jwt_beside_a_token_is_one_more_condition() {
    let agent = Agent::new();
    let mut headers = call(&format!("Bearer {}", agent.token(&header().to_string(), &claims().to_string())));
    let verifier = agent.verifier().token("t0k");
    assert_eq!(judge(&verifier, &headers, BODY, NOW), Err(WebhookError::Token));
    headers.insert("x-a2a-notification-token", HeaderValue::from_static("t0k"));
    judge(&verifier, &headers, BODY, NOW).unwrap();
    headers.remove("authorization");
    assert_eq!(judge(&verifier, &headers, BODY, NOW), Err(WebhookError::Jwt(BadJwt::Missing)));
}

#[test]
fn s14_key_sets_without_a_usable_key_are_refused() {
    let rsa = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "a"});
    let encryption = with(Agent::new().p256_key(), "use", json!("enc"));
    for keys in
        [json!([]), json!([rsa]), json!([encryption]), json!([{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}])]
    {
        WebhookKeys::from_json(&json!({ "keys": keys }).to_string()).unwrap_err();
    }
    for text in ["", "{}", "[]", "null", r#"{"keys":1}"#] {
        WebhookKeys::from_json(text).unwrap_err();
    }
    let builder = crate::Client::builder();
    for url in ["http://agent.example/keys", "file:///keys", "agent.example", ""] {
        builder.webhook_keys(url).unwrap_err();
    }
    builder.webhook_keys("http://127.0.0.1:3000/.well-known/jwks.json").unwrap();
    assert_eq!(format!("{:?}", Agent::new().keys()), "WebhookKeys { keys: 2, .. }");
}

/// Without a clock of the test's own: `verify` takes the system's.
#[test]
fn s14_verify_judges_by_the_time_of_day() {
    let agent = Agent::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for (made, is_good) in [(now, true), (now - 1000, false)] {
        let claims = with(with(claims(), "iat", json!(made)), "exp", json!(made + 300));
        let headers = call(&format!("Bearer {}", agent.token(&header().to_string(), &claims.to_string())));
        assert_eq!(agent.verifier().verify(&headers, BODY).is_ok(), is_good);
    }
}
