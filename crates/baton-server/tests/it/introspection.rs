//! Tokens that only their issuer can read: what it is asked, how often, and which of its answers are believed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_server::auth::introspection::{ClientAuth, Introspection, IntrospectionOptions};
use baton_server::auth::{Scheme as _, Verdict};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fixtures::TestClock;
use crate::issuer::{
    AUDIENCE, Answers, INTROSPECT, Issuer, fetcher, fetcher_that_waits, move_clock, now, owner, verdict,
};

const SECOND: Duration = Duration::from_secs(1);
const SECRET: &str = "s3cret&with=signs %";

fn options(issuer: &Issuer) -> IntrospectionOptions {
    let client = ClientAuth::Basic { id: "baton:1".to_owned(), secret: SECRET.into() };
    let mut options = IntrospectionOptions::new(format!("{}{INTROSPECT}", issuer.url), client);
    options.issuer = Some(issuer.url.clone());
    options.audiences = vec![AUDIENCE.to_owned()];
    options
}

fn scheme(options: IntrospectionOptions) -> Introspection {
    Introspection::new(options, fetcher()).unwrap().clock(TestClock::new())
}

fn active(issuer: &Issuer) -> Value {
    let mut claims = issuer.claims();
    claims["active"] = json!(true);
    claims["client_id"] = json!("robot");
    claims["token_type"] = json!("Bearer");
    claims
}

fn knows(issuer: &Issuer, tokens: &[(&str, Value)]) {
    let tokens: HashMap<_, _> =
        tokens.iter().map(|(token, answer)| ((*token).to_owned(), answer.clone())).collect();
    issuer.answer(INTROSPECT, Answers::Tokens(tokens));
}

fn alice() -> Result<String, String> {
    Ok("oauth2:alice".to_owned())
}

fn err(reason: &str) -> Result<String, String> {
    Err(reason.to_owned())
}

#[tokio::test]
async fn p05_an_answer_is_checked_like_the_claims_of_a_token() {
    let issuer = Issuer::start(&[]).await;
    let bound = "the token is bound to a key of its holder, which is not supported";
    for (member, value, expected) in [
        ("x", json!(1), alice()),
        ("active", json!(false), err("not active")),
        ("active", json!("true"), err("not active")),
        ("active", json!(1), err("not active")),
        ("active", Value::Null, err("not active")),
        ("exp", json!(now() - 59), alice()),
        ("exp", json!(now() - 60), err("expired")),
        ("exp", json!("soon"), err("a time in the token is not valid")),
        ("nbf", json!(now() + 61), err("not valid yet")),
        ("aud", json!([AUDIENCE]), alice()),
        ("aud", json!("https://other.test"), err("for another audience")),
        ("iss", json!("https://evil.test"), err("from another issuer")),
        ("sub", json!(""), err("the token names an owner that cannot be used")),
        ("sub", json!(7), err("the token names no owner")),
        ("scope", json!(7), err("the scopes of the token cannot be read")),
        ("token_type", json!("bearer"), alice()),
        ("token_type", json!("DPoP"), err("not a bearer token")),
        ("token_type", json!(null), err("not a bearer token")),
        ("cnf", json!({"x5t#S256": "AAAA"}), err(bound)),
    ] {
        let mut answer = active(&issuer);
        answer[member] = value;
        knows(&issuer, &[("token", answer.clone())]);
        assert_eq!(owner(&scheme(options(&issuer)), "token").await, expected, "{answer}");
    }
    for (missing, expected) in [
        ("iss", alice()),
        ("exp", alice()),
        ("token_type", alice()),
        ("client_id", alice()),
        ("aud", err("for another audience")),
        ("sub", err("the token names no owner")),
    ] {
        let mut answer = active(&issuer);
        answer.as_object_mut().unwrap().remove(missing);
        knows(&issuer, &[("token", answer)]);
        assert_eq!(owner(&scheme(options(&issuer)), "token").await, expected, "without {missing}");
    }
}

#[tokio::test]
async fn an_expired_token_never_counts_against_the_caller() {
    let issuer = Issuer::start(&[]).await;
    let mut answer = active(&issuer);
    answer["exp"] = json!(now() - 60);
    knows(&issuer, &[("token", answer)]);
    let scheme = scheme(options(&issuer));
    for asked in ["of the issuer", "of what is remembered"] {
        let Verdict::Refused(refusal) = verdict(&scheme, "Bearer token").await else { panic!("{asked}") };
        assert_eq!((refusal.reason, refusal.is_failure), ("expired", false), "{asked}");
    }
    assert_eq!(issuer.requests().len(), 1);
}

#[tokio::test]
async fn p05_the_server_shows_who_it_is() {
    let issuer = Issuer::start(&[]).await;
    knows(&issuer, &[("a%2Fb", active(&issuer))]);
    let encoded = "s3cret%26with%3Dsigns%20%25";
    let id = || "baton:1".to_owned();
    let basic = format!("Basic {}", STANDARD.encode(format!("baton%3A1:{encoded}")));
    let posted = format!("&client_id=baton%3A1&client_secret={encoded}");
    for (client, header, form) in [
        (ClientAuth::Basic { id: id(), secret: SECRET.into() }, Some(basic), String::new()),
        (ClientAuth::Post { id: id(), secret: SECRET.into() }, None, posted),
    ] {
        let mut options = options(&issuer);
        options.client = client;
        let scheme = scheme(options);
        assert_eq!(owner(&scheme, "a/b").await, alice());
        let (path, headers, body) = issuer.requests().pop().unwrap();
        assert_eq!(path, INTROSPECT);
        assert_eq!(headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()), header);
        assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
        assert_eq!(body, format!("token=a%2Fb&token_type_hint=access_token{form}"));
        let shown = format!("{scheme:?}");
        for secret in [SECRET, encoded] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

#[tokio::test]
async fn s16_an_answer_is_remembered_for_a_minute_or_until_the_token_ends() {
    let issuer = Issuer::start(&[]).await;
    let mut ending = active(&issuer);
    ending["exp"] = json!(now() - 500);
    knows(&issuer, &[("long", active(&issuer)), ("ending", ending)]);
    // Ten times as long as by default: a slow machine makes no difference then.
    let mut options = options(&issuer);
    options.active.lifetime *= 10;
    options.inactive.lifetime *= 10;
    options.leeway *= 10;
    let scheme = scheme(options);
    let asked = async |token: &str| {
        let before = issuer.requests().len();
        let found = owner(&scheme, token).await;
        (found.is_ok(), issuer.requests().len() - before)
    };
    assert_eq!(
        [asked("long").await, asked("ending").await, asked("bad").await],
        [(true, 1), (true, 1), (false, 1)]
    );
    move_clock(50 * SECOND).await;
    assert_eq!(
        [asked("long").await, asked("ending").await, asked("bad").await],
        [(true, 0), (true, 0), (false, 0)]
    );
    move_clock(50 * SECOND).await;
    assert_eq!(
        [asked("long").await, asked("ending").await, asked("bad").await],
        [(true, 0), (true, 1), (false, 1)]
    );
    // Revoked: noticed within a minute.
    knows(&issuer, &[]);
    move_clock(350 * SECOND).await;
    assert_eq!(asked("long").await, (true, 0));
    move_clock(150 * SECOND).await;
    assert_eq!(asked("long").await, (false, 1));
}

#[tokio::test]
async fn s16_callers_with_the_same_token_ask_once() {
    let issuer = Issuer::start(&[]).await;
    knows(&issuer, &[("token", active(&issuer))]);
    let scheme = Arc::new(scheme(options(&issuer)));
    // One who leaves before the answer.
    let mut leaving = Box::pin(owner(&*scheme, "token"));
    assert!(futures_util::poll!(&mut leaving).is_pending());
    drop(leaving);
    let callers = (0..500).map(|_| {
        let scheme = Arc::clone(&scheme);
        tokio::spawn(async move { owner(&*scheme, "token").await })
    });
    for found in join_all(callers).await {
        assert_eq!(found.unwrap(), alice());
    }
    assert_eq!(issuer.requests().len(), 1);
}

#[tokio::test]
async fn s16_a_flood_of_tokens_is_bounded() {
    let issuer = Issuer::start(&[]).await;
    knows(&issuer, &[]);
    let mut options = options(&issuer);
    options.max_waiting = 100;
    options.max_requests = 4;
    let scheme = Arc::new(scheme(options));
    let callers = (0..1000).map(|number| {
        let scheme = Arc::clone(&scheme);
        tokio::spawn(async move { owner(&*scheme, &format!("made-up-{number}")).await })
    });
    let found = join_all(callers).await;
    let asked = found.iter().filter(|found| *found.as_ref().unwrap() == err("not active")).count();
    assert_eq!(
        found.iter().filter(|found| *found.as_ref().unwrap() == err("unavailable")).count(),
        1000 - asked
    );
    assert_eq!(issuer.requests().len(), asked);
    assert!((100..1000).contains(&asked), "{asked}");
    // And nothing stays behind.
    knows(&issuer, &[("good", active(&issuer))]);
    assert_eq!(owner(&*scheme, "good").await, alice());
}

#[tokio::test]
async fn s16_an_issuer_that_does_not_answer_refuses_nobody() {
    let issuer = Issuer::start(&[]).await;
    let other = Issuer::start(&[]).await;
    knows(&other, &[("token", active(&issuer))]);
    let hasty = Introspection::new(options(&issuer), fetcher_that_waits(SECOND)).unwrap();
    for (name, answer) in [
        ("down", Answers::Status(503)),
        ("our own secret is wrong", Answers::Error(401, json!({"error": "invalid_client"}))),
        ("our request is wrong", Answers::Error(400, json!({"error": "invalid_request"}))),
        ("an active token with an error", Answers::Error(500, active(&issuer))),
        ("silence", Answers::Silence),
        ("an endless body", Answers::Endless),
        ("a redirect", Answers::Redirect(format!("{}{INTROSPECT}", other.url))),
        ("a page", Answers::Text("text/html", "<html>active</html>".to_owned())),
        ("a list", Answers::Json(json!([{"active": true}]))),
        ("a member twice", Answers::Text("application/json", r#"{"active":false,"active":true}"#.to_owned())),
    ] {
        issuer.answer(INTROSPECT, answer);
        assert_eq!(owner(&hasty, "token").await, err("unavailable"), "{name}");
    }
    // But this is about the token: it can be read without its issuer.
    let unsupported = json!({"error": "unsupported_token_type"});
    issuer.answer(INTROSPECT, Answers::Error(400, unsupported));
    assert_eq!(owner(&hasty, "a.b.c").await, err("not a token that its issuer looks up"));
    let scheme = scheme(options(&issuer));
    assert!(other.requests().is_empty(), "redirects are not followed: the token would go with them");
    issuer.answer(INTROSPECT, Answers::Status(503));
    assert_eq!(owner(&scheme, "token").await, err("unavailable"));
    knows(&issuer, &[("token", active(&issuer))]);
    assert_eq!(owner(&scheme, "token").await, alice(), "failures are not remembered");
    issuer.answer(INTROSPECT, Answers::Status(503));
    assert_eq!(owner(&scheme, "token").await, alice(), "what is known is used");
    // What cannot be a token is not sent.
    let before = issuer.requests().len();
    assert_eq!(owner(&scheme, &"t".repeat(8193)).await, err("the token is too long"));
    assert_eq!(owner(&scheme, "a b").await, err("the credentials are not one token"));
    assert_eq!(issuer.requests().len(), before);
}

#[test]
fn p05_an_endpoint_in_the_clear_stops_the_start() {
    for (url, option) in [
        ("http://issuer.test/introspect", Some("url")),
        ("https://user:pass@issuer.test/introspect", Some("url")),
        ("https://issuer.test/introspect", None),
    ] {
        let client = ClientAuth::Basic { id: "a".to_owned(), secret: "b".into() };
        let scheme = Introspection::new(IntrospectionOptions::new(url, client), fetcher());
        assert_eq!(scheme.as_ref().err().map(|bad| bad.option()), option);
        if let Ok(scheme) = scheme {
            assert_eq!(scheme.challenge(None).unwrap(), "Bearer realm=\"baton\"");
        }
    }
}
