//! S-14: calls that an agent has signed with a key of its own. The agent is a real Baton; its keys are fetched over a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use baton_client::protocol::domain::{Part, PushConfig};
use baton_client::protocol::operation::SendMessage;
use baton_client::protocol::wire::StreamItem;
use baton_client::{BadJwt, Client, WebhookError, WebhookKeys, WebhookVerifier, message};
use baton_server::PushOptions;
use tokio::sync::mpsc;

use crate::harness::{TEST_TIMEOUT, TestServer, obedient, options, quick, serve, serve_router, with_agent};

/// A call as it came.
type Call = (HeaderMap, Bytes);

async fn signing() -> TestServer {
    let push = options(|it: &mut PushOptions| (it.development, it.jwt) = (true, true));
    serve(with_agent(obedient).push(push)).await
}

fn keys_at(server: &str) -> WebhookKeys {
    Client::builder().webhook_keys(&format!("{server}/.well-known/jwks.json")).unwrap()
}

/// The origin of a receiver, and the calls that it gets; it takes all of them.
async fn receiver() -> (String, mpsc::Receiver<Call>) {
    let (sender, calls) = mpsc::channel(64);
    let take = async move |headers: HeaderMap, body: Bytes| sender.send((headers, body)).await.unwrap();
    (serve_router(Router::new().fallback(take)).await, calls)
}

/// Sends a message with a webhook, and returns all calls up to the one that tells the end.
async fn calls_of(server: &TestServer) -> (String, Vec<Call>) {
    let (origin, mut receiving) = receiver().await;
    let client = quick().connect(&server.url).await.unwrap();
    let mut send = SendMessage::new(message(vec![Part::text("hello")]));
    send.push_config = Some(PushConfig::new(format!("{origin}/hook")));
    client.send(send).await.unwrap();
    let mut calls = Vec::new();
    loop {
        let call = tokio::time::timeout(TEST_TIMEOUT, receiving.recv()).await.unwrap().unwrap();
        let is_last = String::from_utf8_lossy(&call.1).contains("COMPLETED");
        calls.push(call);
        if is_last {
            return (origin, calls);
        }
    }
}

#[tokio::test]
async fn s14_calls_of_baton_are_verified_with_the_keys_that_it_publishes() {
    let server = signing().await;
    let (origin, calls) = calls_of(&server).await;
    let verifier = WebhookVerifier::with_keys(keys_at(&server.url)).audience(origin);
    let unknown = verifier.verify(&calls[0].0, &calls[0].1).unwrap_err();
    assert_eq!(unknown, WebhookError::Jwt(BadJwt::UnknownKey), "nothing was fetched yet");
    for (headers, body) in &calls {
        let webhook = verifier.fetch_and_verify(headers, body).await.unwrap();
        assert!(webhook.notification().sent.is_some() && webhook.notification().id.is_some());
        let _said: StreamItem = webhook.done().event;
        let again = verifier.fetch_and_verify(headers, body).await.unwrap_err();
        assert_eq!(again, WebhookError::Duplicate);
    }
    let (headers, body) = &calls[0];
    let elsewhere = WebhookVerifier::with_keys(keys_at(&server.url)).audience("https://hooks.example");
    let refused = elsewhere.fetch_and_verify(headers, body).await.unwrap_err();
    assert_eq!(refused, WebhookError::Jwt(BadJwt::Audience), "a call for one receiver is none for another");
    let stranger = signing().await;
    let other = WebhookVerifier::with_keys(keys_at(&stranger.url));
    let refused = other.fetch_and_verify(headers, body).await.unwrap_err();
    assert_eq!(refused, WebhookError::Jwt(BadJwt::UnknownKey));
    let swapped = verifier.fetch_and_verify(headers, &calls[1].1).await.unwrap_err();
    assert_eq!(swapped, WebhookError::Jwt(BadJwt::Body));
}

/// Serves these keys, and counts how often they were asked for.
async fn key_server(
    answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let keys = get(async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        answer()
    });
    (serve_router(Router::new().route("/.well-known/jwks.json", keys)).await, asked)
}

#[tokio::test]
async fn s14_keys_are_fetched_once_whoever_calls_and_however_often() {
    let (server, other) = (signing().await, signing().await);
    let text =
        reqwest::get(format!("{}/.well-known/jwks.json", server.url)).await.unwrap().text().await.unwrap();
    let (url, asked) = key_server(move || text.clone().into_response()).await;
    let verifier = WebhookVerifier::with_keys(keys_at(&url));
    // Calls that have no JWT make nobody ask for keys.
    let nothing = verifier.fetch_and_verify(&HeaderMap::new(), b"{}").await.unwrap_err();
    assert_eq!((nothing, asked.load(Ordering::SeqCst)), (WebhookError::Jwt(BadJwt::Missing), 0));
    let (_, calls) = calls_of(&server).await;
    let together = calls.iter().map(|(headers, body)| verifier.fetch_and_verify(headers, body));
    for verified in futures_util::future::join_all(together).await {
        verified.unwrap().done();
    }
    // Nor do calls that name keys which do not exist, more often than every ten seconds.
    let (_, strangers) = calls_of(&other).await;
    for (headers, body) in &strangers {
        let refused = verifier.fetch_and_verify(headers, body).await.unwrap_err();
        assert_eq!(refused, WebhookError::Jwt(BadJwt::UnknownKey));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// A receiver that cannot have the keys says so, and the agent tries again. Nobody is believed meanwhile.
#[tokio::test]
async fn s14_without_the_keys_no_call_is_accepted() {
    let server = signing().await;
    let (_, calls) = calls_of(&server).await;
    let (headers, body) = &calls[0];
    let elsewhere = format!("{}/.well-known/jwks.json", server.url);
    let redirected = key_server(move || Redirect::temporary(&elsewhere).into_response()).await;
    for (url, asked) in [
        redirected,
        key_server(|| StatusCode::NOT_FOUND.into_response()).await,
        key_server(|| "{}".into_response()).await,
        key_server(|| r#"{"keys":[]}"#.into_response()).await,
        key_server(|| " ".repeat(1 << 20).into_response()).await,
    ] {
        let verifier = WebhookVerifier::with_keys(keys_at(&url));
        for _ in 0..2 {
            let refused = verifier.fetch_and_verify(headers, body).await.unwrap_err();
            assert!(matches!(refused, WebhookError::Keys(_)), "{refused:?}");
            assert_eq!(refused.http_status(), 503);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1, "and it is not asked again at once");
        keys_at(&url).fetch().await.unwrap_err();
    }
}
