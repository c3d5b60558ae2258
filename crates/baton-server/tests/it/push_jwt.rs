//! S-14: calls of webhooks that carry a JWT, and the keys with which receivers verify it. The receiver here follows the RFCs
//! (7515, 7517, 7518, 7519) by itself; it shares no code with the server.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_server::auth::{ApiKeys, Chain, KeySet};
use baton_server::card::{CardSigning, SigningKey};
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::{Builder, MasterKey, MasterKeys, PushOptions};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::fixtures::{Backend, TestClock};
use crate::harness::{TestServer, id, serve, with_agent};
use crate::push::{Got, Receiver, busy, options, with_webhook};

const KEYS: &str = "/.well-known/jwks.json";

fn signing() -> Builder {
    with_agent(busy).push(with_jwt())
}

fn with_jwt() -> PushOptions {
    let mut options = options();
    options.jwt = true;
    options
}

/// The published keys; `None` if there are none.
async fn keys(server: &TestServer) -> Option<Value> {
    let answer = server.http.get(format!("{}{KEYS}", server.url)).send().await.unwrap();
    match answer.status().as_u16() {
        200 => Some(answer.json().await.unwrap()),
        404 => None,
        other => panic!("{other}"),
    }
}

fn key_ids(keys: &Value) -> Vec<&str> {
    keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap()).collect()
}

/// The header and the claims of a call's JWT, if one of the keys has signed it and it is for this body.
fn verified(call: &Got, body: &[u8], keys: &Value) -> Result<(Value, Value), &'static str> {
    let token = call.header("authorization").strip_prefix("Bearer ").ok_or("no bearer token")?;
    let (message, signature) = token.rsplit_once('.').ok_or("no JWT")?;
    let (header, claims) = message.split_once('.').ok_or("no JWT")?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let parts = [header, claims].map(|part| serde_json::from_slice::<Value>(&decoded(part)).unwrap());
    let [header, claims] = parts;
    let named = |key: &&Value| key["kid"] == header["kid"];
    let key = keys["keys"].as_array().unwrap().iter().find(named).ok_or("an unknown key")?;
    let coordinate = |name: &str| decoded(key[name].as_str().unwrap());
    let point = [&[4][..], &coordinate("x"), &coordinate("y")].concat();
    let signature = decoded(signature);
    assert_eq!((signature.len(), point.len()), (64, 65));
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(message.as_bytes(), &signature)
        .map_err(|_| "a wrong signature")?;
    let digest: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    if claims["request_body_sha256"] != json!(digest) {
        return Err("another body");
    }
    Ok((header, claims))
}

#[tokio::test]
async fn s14_a_call_carries_a_jwt_that_the_published_keys_verify() {
    let receiver = Receiver::start(&[]).await;
    let server = serve(signing().public_url("https://agent.test/base")).await;
    let asked = with_webhook("go", json!({"url": receiver.url, "token": "tok-1"}));
    let task = server.call("SendMessage", asked).await.result()["task"].clone();
    let calls = receiver.wait_for_end().await;
    let published = keys(&server).await.unwrap();
    let key = &published["keys"][0];
    for (name, value) in [("kty", "EC"), ("crv", "P-256"), ("alg", "ES256"), ("use", "sig")] {
        assert_eq!(key[name], value);
    }
    assert_eq!(key.as_object().unwrap().len(), 7, "and nothing of the private key: {key}");
    let origin = receiver.url.strip_suffix("/hook").unwrap();
    for call in &calls {
        let (header, claims) = verified(call, &call.body, &published).unwrap();
        assert_eq!(header, json!({"alg": "ES256", "kid": key["kid"], "typ": "JWT"}));
        let sent: i64 = call.header("webhook-timestamp").parse().unwrap();
        let digest: String = Sha256::digest(&call.body).iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = json!({
            "iss": "https://agent.test/base", "aud": origin, "iat": sent, "exp": sent + 300,
            "jti": call.header("webhook-id"), "taskId": id(&task), "request_body_sha256": digest,
        });
        assert_eq!(claims, expected);
        assert_eq!(call.header("x-a2a-notification-token"), "tok-1", "beside the token");
        // Neither another body nor another key.
        let mut body = call.body.to_vec();
        *body.last_mut().unwrap() ^= 1;
        assert_eq!(verified(call, &body, &published), Err("another body"));
        let mut others = keys(&serve(signing()).await).await.unwrap();
        others["keys"][0]["kid"] = key["kid"].clone();
        assert_eq!(verified(call, &call.body, &others), Err("a wrong signature"));
    }
}

/// Without a public URL there is no name that receivers could know the server by.
#[tokio::test]
async fn s14_without_a_public_url_a_jwt_names_no_issuer() {
    let (receiver, server) = (Receiver::start(&[]).await, serve(signing()).await);
    server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
    let calls = receiver.wait_for(1).await;
    let (_, claims) = verified(&calls[0], &calls[0].body, &keys(&server).await.unwrap()).unwrap();
    assert_eq!((claims.get("iss"), claims["exp"].is_u64()), (None, true));
}

#[tokio::test]
async fn s14_every_attempt_has_a_jwt_of_its_own_for_the_same_event() {
    let (receiver, clock) = (Receiver::start(&[500]).await, TestClock::new());
    let server = serve(signing().clock(clock.clone())).await;
    let asked = with_webhook("go", json!({"url": receiver.url}));
    let task = server.call("SendMessage", asked).await.result()["task"].clone();
    // When the second attempt is due depends on when the first one was judged.
    while receiver.all().len() < 2 {
        clock.advance(Duration::from_secs(1));
        server.get(id(&task)).await;
    }
    let calls = receiver.all();
    let published = keys(&server).await.unwrap();
    let [(_, first), (_, second)] =
        [&calls[0], &calls[1]].map(|call| verified(call, &call.body, &published).unwrap());
    assert_eq!((&first["jti"], &calls[0].body), (&second["jti"], &calls[1].body));
    assert!(second["iat"].as_i64() > first["iat"].as_i64(), "{first} {second}");
    assert_eq!(second["exp"].as_i64().unwrap() - second["iat"].as_i64().unwrap(), 300);
}

/// `None`: a JWT of the server.
#[tokio::test]
async fn s14_credentials_of_a_webhook_are_never_replaced_by_a_jwt() {
    let server = serve(signing()).await;
    let bearer = |scheme: &str| json!({"scheme": scheme});
    for (authentication, expected) in [
        (Value::Null, None),
        (bearer("Bearer"), None),
        (bearer("bearer"), None),
        (json!({"scheme": "Bearer", "credentials": "s3cret"}), Some("Bearer s3cret")),
        (json!({"scheme": "Basic", "credentials": "dTpw"}), Some("Basic dTpw")),
        (bearer("Negotiate"), Some("Negotiate")),
    ] {
        let receiver = Receiver::start(&[]).await;
        let mut webhook = json!({"url": receiver.url, "token": "t0k"});
        if !authentication.is_null() {
            webhook["authentication"] = authentication.clone();
        }
        server.call("SendMessage", with_webhook("go", webhook)).await.result();
        check(&receiver.wait_for(1).await[0], expected, &server).await;
    }
    for (number, (token, expected)) in
        [(Some("t0k"), Some("Bearer t0k")), (None, None)].into_iter().enumerate()
    {
        let receiver = Receiver::start(&[]).await;
        let mut webhook = json!({"url": receiver.url});
        if let Some(token) = token {
            webhook["token"] = json!(token);
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {
            "id": format!("task-{number}"),
            "message": {"role": "user", "parts": [{"type": "text", "text": "go"}]},
            "pushNotification": webhook,
        }});
        server.post(&[("content-type", "application/json")], body.to_string()).await.result();
        check(&receiver.wait_for(1).await[0], expected, &server).await;
    }
}

async fn check(call: &Got, expected: Option<&str>, server: &TestServer) {
    match expected {
        Some(own) => assert_eq!(call.header("authorization"), own),
        None => assert!(verified(call, &call.body, &keys(server).await.unwrap()).is_ok()),
    }
    assert_eq!(call.headers.get_all("authorization").iter().count(), 1);
}

#[tokio::test]
async fn s14_jwts_are_off_by_default_and_then_no_keys_are_published() {
    assert!(!PushOptions::default().jwt);
    let (receiver, store) = (Receiver::start(&[]).await, Arc::new(MemoryStore::new()));
    let server = serve(with_agent(busy).push(options()).store(Arc::clone(&store))).await;
    server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
    let calls = receiver.wait_for_end().await;
    assert!(calls.iter().all(|call| !call.headers.contains_key("authorization")));
    assert_eq!(keys(&server).await, None);
    assert_eq!(store.find_secret("webhook-keys").await.unwrap(), None);
    assert_eq!(keys(&serve(with_agent(busy)).await).await, None, "nor without webhooks");
}

#[tokio::test]
async fn s14_everybody_may_read_the_keys() {
    let keys = ApiKeys::header("X-API-Key", Arc::new(KeySet::new().unwrap())).unwrap();
    let server = serve(signing().auth(Chain::new().scheme("apiKey", keys))).await;
    let ask = async |method: &str, path: &str| {
        let method = method.parse().unwrap();
        let request = server.http.request(method, format!("{}{path}", server.url));
        request.header("origin", "https://page.test").send().await.unwrap()
    };
    for (method, path, status) in [
        ("GET", KEYS, 200),
        ("GET", "/.well-known/jwks.json/", 200),
        ("HEAD", KEYS, 200),
        ("OPTIONS", KEYS, 204),
    ] {
        let answer = ask(method, path).await;
        assert_eq!(answer.status(), status, "{method} {path}");
        assert_eq!(answer.headers()["access-control-allow-origin"], "*", "{method}");
        if status == 200 {
            assert_eq!(answer.headers()["cache-control"], "public, max-age=300");
            assert_eq!(answer.headers()["content-type"], "application/json");
        }
        assert_eq!(answer.bytes().await.unwrap().is_empty(), method != "GET");
    }
    let refused = ask("POST", KEYS).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["allow"]),
        (405, &"GET, HEAD, OPTIONS".parse().unwrap())
    );
    assert_eq!(ask("GET", "/.well-known/other.json").await.status(), 401);
}

#[tokio::test]
async fn s14_the_key_is_kept_with_the_secrets_of_the_store() {
    for backend in Backend::each() {
        let mut published = Vec::new();
        for _ in 0..2 {
            let server = serve(signing().store(backend.open().await)).await;
            published.push(keys(&server).await.unwrap());
            server.stop().await;
        }
        assert_eq!(published[0], published[1], "a restart signs with the same key");
        // A master key wraps it; and its replacement does, too, while JWTs are switched off.
        let [one, other] =
            ["eKNJQC5x+hjYPoJk6mcGzslYX0hBg3R0F5xtbQzZ/0I=", "QF6+fKjI+eWA4i4WXvF+rO3bs9wqaLBuyorZvqSb+c4="]
                .map(|text| MasterKey::parse(text).unwrap());
        let off = with_agent(busy).push(options());
        for (builder, master_keys) in [
            (signing(), MasterKeys::from(one.clone())),
            (off, MasterKeys::from(other.clone()).with_old(one)),
            (signing(), MasterKeys::from(other.clone())),
        ] {
            let store = backend.open().await;
            let server = serve(builder.master_key(master_keys).store(Arc::clone(&store))).await;
            let stored = store.find_secret("webhook-keys").await.unwrap().unwrap();
            assert!(stored.starts_with(b"baton-secret 1 "), "it is wrapped");
            assert!(keys(&server).await.is_none_or(|keys| keys == published[0]));
            server.stop().await;
        }
    }
}

/// Two servers on one store: what one of them makes, the other publishes before it is used.
#[tokio::test]
async fn s14_a_new_key_takes_the_place_of_an_old_one_without_a_gap() {
    let (store, clock) = (Arc::new(MemoryStore::new()), TestClock::new());
    let replica = || {
        let mut options = with_jwt();
        options.jwt_key_age = Duration::from_secs(24 * 60 * 60);
        serve(with_agent(busy).push(options).store(Arc::clone(&store)).clock(clock.clone()))
    };
    let first = replica().await;
    let only = keys(&first).await.unwrap();
    clock.advance(Duration::from_secs(24 * 60 * 60));
    let second = replica().await;
    let both = keys(&second).await.unwrap();
    let (old, new) = (key_ids(&only)[0], key_ids(&both)[1]);
    assert_eq!(key_ids(&both), [old, new]);
    for (minutes, signing, published) in
        [(0, old, &[old, new][..]), (9, old, &[old, new]), (1, new, &[old, new]), (60, new, &[new])]
    {
        clock.advance(Duration::from_secs(minutes * 60));
        for server in [&first, &second] {
            let now = keys(server).await.unwrap();
            assert_eq!(key_ids(&now), published);
            let receiver = Receiver::start(&[]).await;
            server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
            let calls = receiver.wait_for(1).await;
            let (header, _) = verified(&calls[0], &calls[0].body, &now).unwrap();
            assert_eq!(header["kid"], signing);
        }
    }
}

/// The keys of cards are in the same list, and what an operator saves of it to change the key names those of webhooks, too.
#[tokio::test]
async fn s02_each_key_is_published_once_also_after_the_key_of_cards_was_changed() {
    let key = |seed: u8, id: &str| {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let (d, x) = (URL_SAFE_NO_PAD.encode([seed; 32]), URL_SAFE_NO_PAD.encode(pair.public_key()));
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "d": d, "x": x, "kid": id});
        CardSigning::new(SigningKey::read(&jwk.to_string(), None).unwrap())
    };
    let server = serve(signing().public_url("https://agent.test").sign_cards(key(1, "cards-a"))).await;
    let before = keys(&server).await.unwrap();
    let ids = key_ids(&before);
    assert_eq!((ids.len(), ids[1]), (2, "cards-a"));
    let changed = key(2, "cards-b").publish(&before.to_string()).unwrap();
    server.server.control().sign_cards(Some(changed)).unwrap();
    let after = keys(&server).await.unwrap();
    assert_eq!(key_ids(&after), [ids[0], "cards-b", "cards-a"]);
}
