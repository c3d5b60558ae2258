//! The keys of an issuer: when they are fetched, what happens while they cannot be, and issuers that send something else.

use std::sync::Arc;
use std::time::Duration;

use baton_server::auth::jwt::{Algorithm, FetchOptions, Fetcher, Jwt, JwtOptions, KeysFrom};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixtures::TestClock;
use crate::issuer::{
    AUDIENCE, Answers, CONFIGURATION, Issuer, KEYS, fetcher, fetcher_that_waits, move_clock, now, owner,
};
use crate::signers::{Signer, base64url};

const UNKNOWN: &str = "signed with an unknown key";
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

fn scheme(issuer: &Issuer) -> Jwt {
    let options = JwtOptions::jwks(&issuer.url, AUDIENCE, issuer.keys_url());
    Jwt::new(options, fetcher()).unwrap().clock(TestClock::new())
}

/// With the short times of the cache ten times as long: a slow machine makes no difference then.
fn slow_scheme(issuer: &Issuer) -> Jwt {
    let mut options = JwtOptions::jwks(&issuer.url, AUDIENCE, issuer.keys_url());
    options.key_cache.min_interval *= 10;
    options.key_cache.unknown_for *= 10;
    Jwt::new(options, fetcher()).unwrap().clock(TestClock::new())
}

/// Tokens that are never the same, so that none comes from the cache of verified ones.
fn token(issuer: &Issuer, signer: &Signer, number: usize) -> String {
    let mut claims = issuer.claims();
    claims["jti"] = json!(number);
    signer.token(&claims)
}

/// A token with a made-up key, which needs no signature to be refused.
fn unknown_key(issuer: &Issuer, number: usize) -> String {
    let header = json!({"alg": "ES256", "kid": format!("made-up-{number}")}).to_string();
    format!("{}.{}.AAAA", base64url(header), base64url(issuer.claims().to_string()))
}

fn ok(name: &str) -> Result<String, String> {
    Ok(format!("jwt:{name}"))
}

fn err(reason: &str) -> Result<String, String> {
    Err(reason.to_owned())
}

#[tokio::test]
async fn s16_a_stampede_of_unknown_keys_fetches_once_in_ten_seconds() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let scheme = Arc::new(scheme(&issuer));
    let began = Instant::now();
    for round in 0..2 {
        let callers = (0..5000).map(|number| {
            let (scheme, token) = (Arc::clone(&scheme), unknown_key(&issuer, round * 10_000 + number));
            tokio::spawn(async move { owner(&*scheme, &token).await })
        });
        for refused in join_all(callers).await {
            assert_eq!(refused.unwrap(), err(UNKNOWN));
        }
        let (fetched, elapsed) = (issuer.keys_fetched(), began.elapsed());
        let allowed = 1 + elapsed.as_secs() as usize / 10;
        assert!((round + 1..=allowed).contains(&fetched), "{fetched} fetches in {elapsed:?}");
        assert_eq!(owner(&*scheme, &token(&issuer, &signer, round)).await, ok("alice"));
        move_clock(10 * SECOND).await;
    }
}

#[tokio::test]
async fn s16_the_same_unknown_key_is_looked_for_every_thirty_seconds() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let scheme = slow_scheme(&issuer);
    assert_eq!(owner(&scheme, &token(&issuer, &signer, 0)).await, ok("alice"));
    let same = unknown_key(&issuer, 1);
    move_clock(100 * SECOND).await;
    let mut fetched = Vec::new();
    for _ in 0..8 {
        assert_eq!(owner(&scheme, &same).await, err(UNKNOWN));
        fetched.push(issuer.keys_fetched());
        move_clock(100 * SECOND).await;
    }
    assert_eq!(fetched, [2, 2, 2, 3, 3, 3, 4, 4]);
}

#[tokio::test]
async fn s16_a_new_key_is_found_and_a_removed_one_is_refused() {
    let (old, new) = (Signer::new("old", "ES256"), Signer::new("new", "EdDSA"));
    let issuer = Issuer::start(&[&old]).await;
    let scheme = slow_scheme(&issuer);
    let seen = token(&issuer, &old, 1);
    assert_eq!(owner(&scheme, &seen).await, ok("alice"));
    // Both keys are published while the issuer changes over.
    issuer.publish(vec![old.jwk(), new.jwk()]);
    assert_eq!(owner(&scheme, &token(&issuer, &new, 2)).await, err(UNKNOWN), "too early for a fetch");
    move_clock(100 * SECOND).await;
    assert_eq!(owner(&scheme, &token(&issuer, &new, 3)).await, ok("alice"));
    assert_eq!(owner(&scheme, &seen).await, ok("alice"));
    assert_eq!(issuer.keys_fetched(), 2);
    // The old key goes. Its tokens are accepted until the keys are fetched again, at most 5 min here.
    issuer.publish(vec![new.jwk()]);
    move_clock(4 * MINUTE).await;
    assert_eq!(owner(&scheme, &token(&issuer, &old, 4)).await, ok("alice"));
    assert_eq!(owner(&scheme, &seen).await, ok("alice"));
    move_clock(MINUTE).await;
    assert_eq!(owner(&scheme, &token(&issuer, &new, 5)).await, ok("alice"));
    assert_eq!(issuer.keys_fetched(), 3);
    assert_eq!(
        owner(&scheme, &seen).await,
        err(UNKNOWN),
        "what was verified before is forgotten with the key"
    );
    assert_eq!(owner(&scheme, &token(&issuer, &old, 6)).await, err(UNKNOWN));
}

#[tokio::test]
async fn s16_keys_live_as_long_as_the_issuer_says_within_limits() {
    let signer = Signer::new("es", "ES256");
    let keys = json!({"keys": [signer.jwk()]});
    for (cache, lifetime) in [
        ("max-age=0", 5 * MINUTE),
        ("no-store", 5 * MINUTE),
        ("max-age=99999999999999999999", 5 * MINUTE),
        ("public, Max-Age=600", 10 * MINUTE),
        ("max-age=\"1200\", must-revalidate", 20 * MINUTE),
        ("max-age=86400", 60 * MINUTE),
    ] {
        let issuer = Issuer::start(&[]).await;
        issuer.answer(KEYS, Answers::Cached(cache, keys.clone()));
        let scheme = scheme(&issuer);
        let mut fetched = Vec::new();
        for (number, wait) in [lifetime - MINUTE, MINUTE, Duration::ZERO].into_iter().enumerate() {
            assert_eq!(owner(&scheme, &token(&issuer, &signer, number)).await, ok("alice"), "{cache}");
            fetched.push(issuer.keys_fetched());
            move_clock(wait).await;
        }
        assert_eq!(fetched, [1, 1, 2], "{cache}");
    }
}

#[tokio::test]
async fn s16_while_the_issuer_is_down_its_keys_are_used_for_a_day() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let scheme = scheme(&issuer);
    assert_eq!(owner(&scheme, &token(&issuer, &signer, 0)).await, ok("alice"));
    issuer.answer(KEYS, Answers::Status(503));
    for number in 1..24 {
        move_clock(HOUR).await;
        assert_eq!(owner(&scheme, &token(&issuer, &signer, number)).await, ok("alice"), "hour {number}");
        // Nobody can say whether it exists.
        assert_eq!(owner(&scheme, &unknown_key(&issuer, number)).await, err("unavailable"));
    }
    move_clock(HOUR).await;
    assert_eq!(owner(&scheme, &token(&issuer, &signer, 24)).await, err("unavailable"));
    // It is back.
    issuer.publish(vec![signer.jwk()]);
    move_clock(10 * SECOND).await;
    assert_eq!(owner(&scheme, &token(&issuer, &signer, 25)).await, ok("alice"));
    assert_eq!(owner(&scheme, &unknown_key(&issuer, 26)).await, err(UNKNOWN));
}

#[tokio::test]
async fn s16_an_issuer_that_is_down_is_asked_once_in_ten_seconds() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    issuer.answer(KEYS, Answers::Status(500));
    let scheme = slow_scheme(&issuer);
    for number in 0..20 {
        assert_eq!(owner(&scheme, &token(&issuer, &signer, number)).await, err("unavailable"));
        assert_eq!(owner(&scheme, "no.jwt.at all").await, err("the credentials are not one token"));
    }
    assert_eq!(issuer.keys_fetched(), 1);
    move_clock(100 * SECOND).await;
    issuer.publish(vec![signer.jwk()]);
    assert_eq!(owner(&scheme, &token(&issuer, &signer, 21)).await, ok("alice"));
    assert_eq!(issuer.keys_fetched(), 2);
}

#[tokio::test]
async fn s16_a_caller_who_leaves_does_not_stop_the_fetch() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let scheme = Arc::new(scheme(&issuer));
    let first = token(&issuer, &signer, 1);
    let mut leaving = Box::pin(owner(&*scheme, &first));
    assert!(futures_util::poll!(&mut leaving).is_pending());
    drop(leaving);
    assert_eq!(owner(&*scheme, &token(&issuer, &signer, 2)).await, ok("alice"));
    assert_eq!(issuer.keys_fetched(), 1);
}

#[tokio::test]
async fn s16_an_issuer_that_sends_something_else_gives_no_keys() {
    let signer = Signer::new("es", "ES256");
    let other = Issuer::start(&[&signer]).await;
    let key = signer.jwk();
    let many = vec![key.clone(); 101];
    for (name, answer) in [
        ("an endless body", Answers::Endless),
        ("no answer", Answers::Silence),
        ("a redirect", Answers::Redirect(other.keys_url())),
        ("an HTML page", Answers::Text("text/html", "<html>keys</html>".to_owned())),
        ("a list", Answers::Json(json!([key]))),
        ("an object without keys", Answers::Json(json!({"key": [key]}))),
        ("keys that are an object", Answers::Json(json!({"keys": {"es": key}}))),
        ("too many keys", Answers::Json(json!({ "keys": many }))),
        ("an empty body", Answers::Text("application/json", String::new())),
        ("half of it", Answers::Text("application/json", "{\"keys\":[".to_owned())),
        ("more than 256 KiB", Answers::Json(json!({"keys": [key], "x": "x".repeat(256 * 1024)}))),
        ("no content", Answers::Status(204)),
        ("not found", Answers::Status(404)),
    ] {
        let issuer = Issuer::start(&[]).await;
        issuer.answer(KEYS, answer);
        let options = JwtOptions::jwks(&issuer.url, AUDIENCE, issuer.keys_url());
        let scheme = Jwt::new(options, fetcher_that_waits(SECOND)).unwrap().clock(TestClock::new());
        assert_eq!(owner(&scheme, &token(&issuer, &signer, 1)).await, err("unavailable"), "{name}");
    }
    assert_eq!(other.keys_fetched(), 0, "redirects are not followed");
    // A set with useless keys is still a set.
    for keys in [json!([]), json!([7, null, {"kty": "EC"}, {"kid": "es"}])] {
        let issuer = Issuer::start(&[]).await;
        issuer.answer(KEYS, Answers::Json(json!({ "keys": keys })));
        assert_eq!(owner(&scheme(&issuer), &token(&issuer, &signer, 1)).await, err(UNKNOWN), "{keys}");
        let mut keys = keys;
        keys.as_array_mut().unwrap().push(signer.jwk());
        let issuer = Issuer::start(&[]).await;
        issuer.answer(KEYS, Answers::Json(json!({ "keys": keys })));
        assert_eq!(owner(&scheme(&issuer), &token(&issuer, &signer, 1)).await, ok("alice"), "{keys}");
    }
}

#[tokio::test]
async fn p05_discovery_finds_the_keys_of_this_issuer_only() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let check = async |issuer: &Issuer| {
        let options = JwtOptions::oidc(&issuer.url, AUDIENCE);
        let scheme = Jwt::new(options, fetcher()).unwrap().clock(TestClock::new());
        owner(&scheme, &token(issuer, &signer, 1)).await
    };
    assert_eq!(check(&issuer).await, Ok("oidc:alice".to_owned()));
    let good = json!({"issuer": issuer.url, "jwks_uri": issuer.keys_url()});
    for (name, member, value) in [
        ("another issuer", "issuer", json!("https://evil.test")),
        ("a slash more", "issuer", json!(format!("{}/", issuer.url))),
        ("no issuer", "issuer", Value::Null),
        ("no keys", "jwks_uri", Value::Null),
        ("keys in the clear", "jwks_uri", json!("http://keys.test/")),
        ("keys in a file", "jwks_uri", json!("file:///etc/passwd")),
        ("keys that are a number", "jwks_uri", json!(7)),
        ("an endpoint in the clear", "token_endpoint", json!("http://token.test/")),
    ] {
        let mut configuration = good.clone();
        configuration[member] = value;
        issuer.answer(CONFIGURATION, Answers::Json(configuration));
        assert_eq!(check(&issuer).await, err("unavailable"), "{name}");
    }
    issuer.answer(CONFIGURATION, Answers::Json(good));
    assert_eq!(check(&issuer).await, Ok("oidc:alice".to_owned()));
}

#[tokio::test]
async fn p05_options_decide_about_claims() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[]).await;
    let check = async |change: &dyn Fn(&mut JwtOptions), claims: Value| {
        let mut options = JwtOptions::jwks(&issuer.url, AUDIENCE, "https://never.test/");
        options.keys = KeysFrom::Set(json!({"keys": [signer.jwk()]}).to_string());
        change(&mut options);
        let scheme = Jwt::new(options, fetcher()).unwrap().clock(TestClock::new());
        let mut all = issuer.claims();
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        owner(&scheme, &signer.token(&all)).await
    };
    let by_client = |options: &mut JwtOptions| {
        options.claims.owner = "client_id".to_owned();
        options.claims.owner_prefix = String::new();
    };
    assert_eq!(check(&by_client, json!({"client_id": "robot"})).await, Ok("robot".to_owned()));
    assert_eq!(check(&by_client, json!({})).await, err("the token names no owner"));
    let required = |options: &mut JwtOptions| {
        options.claims.required = vec![
            ("azp".to_owned(), vec!["app".to_owned(), "web".to_owned()]),
            ("email_verified".to_owned(), vec!["true".to_owned()]),
        ];
    };
    for (claims, expected) in [
        (json!({"azp": "web", "email_verified": true}), ok("alice")),
        (json!({"azp": ["x", "app"], "email_verified": "true"}), ok("alice")),
        (json!({"azp": "web"}), err("a required claim is missing")),
        (json!({"azp": "webs", "email_verified": true}), err("a required claim has another value")),
        (json!({"azp": null, "email_verified": true}), err("a required claim has another value")),
        (json!({"azp": [], "email_verified": true}), err("a required claim has another value")),
        (json!({"azp": "web", "email_verified": false}), err("a required claim has another value")),
    ] {
        assert_eq!(check(&required, claims.clone()).await, expected, "{claims}");
    }
    let fresh = |options: &mut JwtOptions| options.max_age = Some(HOUR);
    for (claims, expected) in [
        (json!({"iat": now() - 3660}), ok("alice")),
        (json!({"iat": now() - 3661}), err("issued too long ago")),
    ] {
        assert_eq!(check(&fresh, claims.clone()).await, expected, "{claims}");
    }
    let few = |options: &mut JwtOptions| options.claims.max_scopes = 2;
    assert_eq!(check(&few, json!({"scope": "a b a"})).await, ok("alice"));
    assert_eq!(
        check(&few, json!({"scope": "a b", "scp": ["c"]})).await,
        err("the token has too many scopes")
    );
    let only_rsa = |options: &mut JwtOptions| options.algorithms = vec![Algorithm::Rs256];
    assert_eq!(check(&only_rsa, json!({})).await, err("the signature algorithm is not allowed"));
}

#[test]
fn p05_options_that_cannot_work_stop_the_start() {
    let fetcher = Fetcher::new(&FetchOptions::default()).unwrap();
    let good = || JwtOptions::jwks("https://issuer.test", AUDIENCE, "https://issuer.test/keys");
    let refused = |change: &dyn Fn(&mut JwtOptions)| {
        let mut options = good();
        change(&mut options);
        Jwt::new(options, fetcher.clone()).err().map(|bad| bad.option().to_owned())
    };
    assert_eq!(refused(&|_| ()), None);
    for (option, change) in [
        ("issuer", (&|options: &mut JwtOptions| options.issuer.clear()) as &dyn Fn(&mut JwtOptions)),
        ("issuer", &|options| {
            options.issuer = "http://issuer.test".to_owned();
            options.keys = KeysFrom::Discovery;
        }),
        ("audiences", &|options| options.audiences.clear()),
        ("audiences", &|options| options.audiences.push(String::new())),
        ("algorithms", &|options| options.algorithms.clear()),
        ("keys", &|options| options.keys = KeysFrom::Url("http://issuer.test/keys".to_owned())),
        ("keys", &|options| options.keys = KeysFrom::Url("issuer.test".to_owned())),
        ("keys", &|options| options.keys = KeysFrom::Set("{}".to_owned())),
        ("realm", &|options| options.challenge.realm = "a\r\nb".to_owned()),
    ] {
        assert_eq!(refused(change).as_deref(), Some(option));
    }
    for name in ["HS256", "none", "NONE", "", "es256"] {
        assert_eq!(Algorithm::parse(name), None, "{name}");
    }
}
