//! Calls of agents, of others, and of others who repeat what an agent sent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_protocol::Generation;
use baton_protocol::signature::webhook::{BadWebhook, WebhookSecret, sign};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Notification, WebhookError, WebhookVerifier};

const BODY: &[u8] = br#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#;
const NOW: u64 = 1_700_000_000;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::new([byte; 32]).unwrap()
}

fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
    let row = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    let mut headers = HeaderMap::new();
    for (name, value) in rows.iter().map(row) {
        headers.append(name, value);
    }
    headers
}

fn signed(id: &str, time: u64, body: &[u8], secret: &WebhookSecret) -> HeaderMap {
    let (time, signature) = (time.to_string(), sign([secret], id, time, body));
    headers(&[("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signature)])
}

fn judge(
    verifier: &WebhookVerifier,
    headers: &HeaderMap,
    body: &[u8],
    now: u64,
) -> Result<Notification, WebhookError> {
    verifier.verify_at(headers, body, at(now)).map(super::Webhook::done)
}

/// Spec 13.2: whoever knows the secret may still say something about a task that is none of the receiver's.
#[test]
fn p10_calls_about_other_tasks_are_refused() {
    let (mine, others) =
        (secret(1), br#"{"kind":"task","id":"u","contextId":"c","status":{"state":"completed"}}"#);
    let verifier = WebhookVerifier::with_secret(mine.clone()).tasks(|task| task.as_str() == "t");
    judge(&verifier, &signed("wh_1", NOW, BODY, &mine), BODY, NOW).unwrap();
    let status =
        br#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
    judge(&verifier, &signed("wh_2", NOW, status, &mine), status, NOW).unwrap();
    let stranger = signed("wh_3", NOW, others, &mine);
    let refused = judge(&verifier, &stranger, others, NOW).unwrap_err();
    assert_eq!((&refused, refused.http_status()), (&WebhookError::Task("u".to_owned()), 404));
    // Once it is expected, the agent's next attempt is accepted: it was not seen.
    judge(&WebhookVerifier { expected: None, ..verifier.clone() }, &stranger, others, NOW).unwrap();
    let message = br#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}"#;
    let refused = judge(&verifier, &signed("wh_4", NOW, message, &mine), message, NOW).unwrap_err();
    assert_eq!(refused, WebhookError::Task("it names none".to_owned()));
    let forged = signed("wh_5", NOW, others, &secret(2));
    assert_eq!(judge(&verifier, &forged, others, NOW).unwrap_err().http_status(), 401, "it is told nothing");
}

#[test]
fn a_signed_call_is_accepted_once() {
    let verifier = WebhookVerifier::with_secret(secret(1));
    let call = signed("wh_1", NOW, BODY, &secret(1));
    let notification = judge(&verifier, &call, BODY, NOW + 2).unwrap();
    assert_eq!((notification.id.as_deref(), notification.sent), (Some("wh_1"), Some(at(NOW))));
    assert_eq!(notification.generation, Generation::V0_3);
    // Replayed as it was, and as a later attempt of the agent.
    assert_eq!(judge(&verifier, &call, BODY, NOW + 3), Err(WebhookError::Duplicate));
    let retried = signed("wh_1", NOW + 60, BODY, &secret(1));
    assert_eq!(judge(&verifier, &retried, BODY, NOW + 60), Err(WebhookError::Duplicate));
    // Another event is another one. A clone knows the same events.
    judge(&verifier.clone(), &signed("wh_2", NOW, BODY, &secret(1)), BODY, NOW).unwrap();
    assert_eq!(
        judge(&verifier, &signed("wh_2", NOW, BODY, &secret(1)), BODY, NOW),
        Err(WebhookError::Duplicate)
    );
}

/// An event is known for as long as its signature is valid, at both ends of the tolerance.
#[test]
fn a_replay_is_refused_until_it_is_too_old() {
    let verifier = WebhookVerifier::with_secret(secret(1));
    let call = signed("wh_1", NOW, BODY, &secret(1));
    judge(&verifier, &call, BODY, NOW - 300).unwrap();
    for later in (0..=600).step_by(10) {
        assert_eq!(judge(&verifier, &call, BODY, NOW - 300 + later), Err(WebhookError::Duplicate), "{later}");
    }
    assert_eq!(judge(&verifier, &call, BODY, NOW + 301), Err(WebhookError::Signature(BadWebhook::TooOld)));
    assert_eq!(judge(&verifier, &call, BODY, NOW - 301), Err(WebhookError::Signature(BadWebhook::TooNew)));
    let strict = WebhookVerifier::with_secret(secret(1)).tolerance(Duration::from_secs(10));
    assert_eq!(judge(&strict, &call, BODY, NOW + 11), Err(WebhookError::Signature(BadWebhook::TooOld)));
}

#[test]
fn changed_calls_are_refused() {
    let verifier = WebhookVerifier::with_secret(secret(1));
    let call = signed("wh_1", NOW, BODY, &secret(1));
    let reordered = br#"{"id":"t","kind":"task","contextId":"c","status":{"state":"completed"}}"#;
    let changed = |name: &'static str, value: &str| {
        let mut changed = call.clone();
        changed.insert(name, HeaderValue::from_str(value).unwrap());
        changed
    };
    let without = |name: &'static str| {
        let mut less = call.clone();
        less.remove(name);
        less
    };
    let twice = |name: &'static str| {
        let mut more = call.clone();
        more.append(name, call[name].clone());
        more
    };
    let wrong = WebhookError::Signature(BadWebhook::Signature);
    for (headers, body, expected) in [
        (call.clone(), &BODY[..BODY.len() - 1], wrong.clone()),
        (call.clone(), reordered.as_slice(), wrong.clone()),
        (call.clone(), b"".as_slice(), wrong.clone()),
        (changed("webhook-id", "wh_2"), BODY, wrong.clone()),
        (changed("webhook-timestamp", "1700000001"), BODY, wrong.clone()),
        (changed("webhook-signature", "v1,AAAA"), BODY, wrong.clone()),
        (signed("wh_1", NOW, BODY, &secret(2)), BODY, wrong),
        (changed("webhook-id", "wh.1"), BODY, WebhookError::Signature(BadWebhook::Id)),
        (changed("webhook-timestamp", "today"), BODY, WebhookError::Signature(BadWebhook::Timestamp)),
        (without("webhook-id"), BODY, WebhookError::Unsigned),
        (without("webhook-timestamp"), BODY, WebhookError::Unsigned),
        (without("webhook-signature"), BODY, WebhookError::Unsigned),
        (twice("webhook-id"), BODY, WebhookError::Unsigned),
        (twice("webhook-timestamp"), BODY, WebhookError::Unsigned),
        (twice("webhook-signature"), BODY, WebhookError::Unsigned),
        (HeaderMap::new(), BODY, WebhookError::Unsigned),
    ] {
        assert_eq!(judge(&verifier, &headers, body, NOW).unwrap_err(), expected, "{headers:?}");
        assert_eq!(expected.http_status(), 401);
    }
    // None of them used up the event.
    judge(&verifier, &call, BODY, NOW).unwrap();
}

/// A call that could not be handled is accepted again: the agent sends it again for that.
#[test]
fn a_call_that_failed_is_accepted_again() {
    let verifier = WebhookVerifier::with_secret(secret(1));
    let call = signed("wh_1", NOW, BODY, &secret(1));
    let handled = verifier.verify_at(&call, BODY, at(NOW)).unwrap();
    let meanwhile = verifier.verify_at(&call, BODY, at(NOW)).unwrap_err();
    assert_eq!((meanwhile.clone(), meanwhile.http_status()), (WebhookError::InProgress, 409));
    drop(handled);
    judge(&verifier, &call, BODY, NOW).unwrap();
    assert_eq!(judge(&verifier, &call, BODY, NOW), Err(WebhookError::Duplicate));
}

#[test]
fn tokens_come_by_several_headers() {
    let verifier = WebhookVerifier::with_token("old").token("new");
    for (rows, is_good) in [
        (&[("x-a2a-notification-token", "new")][..], true),
        (&[("a2a-notification-token", "old")], true),
        (&[("x-a2a-notification-token", "new"), ("a2a-notification-token", "new")], true),
        (&[("authorization", "Bearer new")], true),
        // Credentials for a webhook are not its token.
        (&[("x-a2a-notification-token", "new"), ("authorization", "Basic dTpw")], true),
        (&[], false),
        (&[("x-a2a-notification-token", "")], false),
        (&[("x-a2a-notification-token", "new ")], false),
        (&[("x-a2a-notification-token", "ne")], false),
        (&[("x-a2a-notification-token", "NEW")], false),
        (&[("x-a2a-notification-token", "other"), ("a2a-notification-token", "new")], false),
        (&[("x-a2a-notification-token", "new"), ("x-a2a-notification-token", "other")], false),
        (&[("x-a2a-notification-token", "other"), ("authorization", "Bearer new")], false),
        (&[("authorization", "new")], false),
        (&[("authorization", "Bearer other")], false),
    ] {
        let result = judge(&verifier, &headers(rows), BODY, NOW);
        assert_eq!(result.is_ok(), is_good, "{rows:?}");
        if let Err(error) = result {
            assert_eq!((error.http_status(), error), (401, WebhookError::Token));
        }
    }
}

/// With a token alone an id is used if there is one; without one every call is new.
#[test]
fn calls_with_a_token_alone_may_have_an_id() {
    let verifier = WebhookVerifier::with_token("t");
    let token = ("x-a2a-notification-token", "t");
    for _ in 0..2 {
        judge(&verifier, &headers(&[token]), BODY, NOW).unwrap();
    }
    let with_id = headers(&[token, ("webhook-id", "wh_1")]);
    let first = judge(&verifier, &with_id, BODY, NOW).unwrap();
    assert_eq!((first.id.as_deref(), first.sent), (Some("wh_1"), None));
    assert_eq!(judge(&verifier, &with_id, BODY, NOW), Err(WebhookError::Duplicate));
}

#[test]
fn a_token_and_a_secret_are_both_required() {
    let verifier = WebhookVerifier::with_secret(secret(1)).token("t");
    let mut call = signed("wh_1", NOW, BODY, &secret(1));
    assert_eq!(judge(&verifier, &call, BODY, NOW), Err(WebhookError::Token));
    call.insert("x-a2a-notification-token", HeaderValue::from_static("t"));
    judge(&verifier, &call, BODY, NOW).unwrap();
    let token = headers(&[("x-a2a-notification-token", "t")]);
    assert_eq!(judge(&verifier, &token, BODY, NOW), Err(WebhookError::Unsigned));
}

#[test]
fn bodies_of_every_generation_are_read() {
    let verifier = WebhookVerifier::with_token("t");
    let token = headers(&[("x-a2a-notification-token", "t")]);
    for (body, generation) in [
        (r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#, Generation::V1),
        (r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}"#, Generation::V0_3),
        (
            r#"{"taskId":"t","eventType":"status","status":{"state":"working"},"timestamp":"2026-01-02T03:04:05Z"}"#,
            Generation::V0_1,
        ),
    ] {
        assert_eq!(judge(&verifier, &token, body.as_bytes(), NOW).unwrap().generation, generation);
    }
    let unknown = judge(
        &verifier,
        &token,
        br#"{"kind":"task","id":"t","contextId":"c","status":{"state":"paused"}}"#,
        NOW,
    );
    assert_eq!(unknown.unwrap().unknown_state.as_deref(), Some("paused"));
    for body in [b"".as_slice(), b"{}", b"\xff", b"[1]", br#"{"task":1}"#] {
        let error = judge(&verifier, &token, body, NOW).unwrap_err();
        assert_eq!(error.http_status(), 400, "{error}");
    }
}

#[test]
fn nothing_prints_the_secrets() {
    let shown = format!("{:?}", WebhookVerifier::with_secret(secret(1)).token("s3cret"));
    assert!(!shown.contains("s3cret") && shown.contains("secrets: 1"), "{shown}");
}
