//! P-09: credentials by the schemes of the card, and only where the user wants them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::routing::{get, post};
use baton_client::protocol::ErrorKind;
use baton_client::protocol::domain::AgentCard;
use baton_client::protocol::operation::ListTasks;
use baton_client::{Binding, Builder, Client, Credential, Error, Origin};
use baton_server::auth::{
    ApiKeys, Basic, BasicOptions, BearerTokens, Chain, Digest, DigestOptions, KeySet, Scopes, StoredUser,
    digest_password, hash_password,
};

use crate::harness::{TestServer, card_for, obedient, quick, serve, serve_router, with_agent};

const KEY: &str = "a-key-of-sixteen-characters";

fn keys() -> Arc<KeySet> {
    let keys = KeySet::new().unwrap();
    keys.add_chosen(KEY, "test", "ann", Scopes::default()).unwrap();
    Arc::new(keys)
}

fn digest(options: DigestOptions) -> Digest {
    let user = |name: &str| StoredUser::new(name, digest_password(name, "baton", &"open sesame".into()));
    Digest::new(vec![user("ann"), user("Jäsøn")], options).unwrap()
}

async fn serve_with(chain: Chain) -> TestServer {
    serve(with_agent(obedient).auth(chain)).await
}

/// One call in each binding; the first error.
async fn calls(builder: Builder, server: &TestServer) -> Result<(), Error> {
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let client = builder.clone().bindings([binding]).connect(&server.url).await?;
        client.send("hello").await?;
        if let Some(listed) = client.tasks(ListTasks::default()).next().await {
            listed?;
        }
    }
    Ok(())
}

#[track_caller]
fn is_refused(result: Result<(), Error>, credentials_sent: bool) {
    let error = result.unwrap_err();
    let agent = error.agent().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(agent.kind(), Some(ErrorKind::Unauthenticated), "{error}");
    assert_eq!(agent.http_status(), Some(401), "{error}");
    assert_eq!(agent.credentials_sent(), credentials_sent, "{error}");
}

#[tokio::test]
async fn p09_api_keys_go_where_the_card_says() {
    for scheme in [
        ApiKeys::header("X-My-Key", keys()).unwrap(),
        ApiKeys::query("my_key", keys()),
        ApiKeys::cookie("my-key", keys()),
    ] {
        let server = serve_with(Chain::new().scheme("key", scheme)).await;
        calls(quick().api_key(KEY), &server).await.unwrap();
        calls(quick().credential_for("key", Credential::api_key(KEY)), &server).await.unwrap();
        is_refused(calls(quick(), &server).await, false);
        is_refused(calls(quick().api_key("another-key-of-that-length"), &server).await, true);
        let client = quick().connect(&server.url).await.unwrap();
        assert_eq!(client.missing_credentials(), ["key"]);
        server.stop().await;
    }
}

#[tokio::test]
async fn p09_bearer_and_basic() {
    let hash = tokio::task::spawn_blocking(|| hash_password(&"open sesame".into()).unwrap()).await.unwrap();
    let basic = Basic::new(vec![StoredUser::new("ann", hash)], BasicOptions::default()).unwrap();
    let server = serve_with(Chain::new().scheme("user", basic)).await;
    calls(quick().password("ann", "open sesame"), &server).await.unwrap();
    is_refused(calls(quick().password("ann", "wrong"), &server).await, true);
    server.stop().await;
    let server = serve_with(Chain::new().scheme("token", BearerTokens::new(keys()))).await;
    calls(quick().bearer(KEY), &server).await.unwrap();
    is_refused(calls(quick().bearer("wrong"), &server).await, true);
    is_refused(calls(quick(), &server).await, false);
    server.stop().await;
}

#[tokio::test]
async fn p09_digest_answers_challenges_and_uses_a_nonce_again() {
    let server = serve_with(Chain::new().scheme("user", digest(DigestOptions::default()))).await;
    for user in ["ann", "Jäsøn"] {
        calls(quick().password(user, "open sesame"), &server).await.unwrap();
    }
    is_refused(calls(quick().password("ann", "wrong"), &server).await, true);
    is_refused(calls(quick(), &server).await, false);
    // Streams, and several calls at once.
    let client = quick().password("ann", "open sesame").connect(&server.url).await.unwrap();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send("hello").await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let mut stream = client.stream("hello").await.unwrap();
    while let Some(event) = stream.next().await {
        event.unwrap();
    }
    server.stop().await;
}

/// The nonce is too old at once: each call is challenged again.
#[tokio::test]
async fn p09_digest_takes_a_new_nonce_when_the_old_one_is_stale() {
    let mut options = DigestOptions::default();
    options.max_nonces = 1;
    let server = serve_with(Chain::new().scheme("user", digest(options))).await;
    let one = quick().password("ann", "open sesame").connect(&server.url).await.unwrap();
    let other = quick().password("ann", "open sesame").connect(&server.url).await.unwrap();
    for _ in 0..3 {
        one.send("hello").await.unwrap();
        other.send("hello").await.unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_the_extended_card_needs_credentials() {
    let extended = AgentCard::new("test", "More for those who are known", "1.0.0");
    let builder = with_agent(obedient)
        .auth(Chain::new().scheme("token", BearerTokens::new(keys())))
        .extended_card(extended);
    let server = serve(builder).await;
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let client = quick().bearer(KEY).bindings([binding]).connect(&server.url).await.unwrap();
        assert_eq!(client.extended_card().await.unwrap().description, "More for those who are known");
        let nobody = quick().bindings([binding]).connect(&server.url).await.unwrap();
        assert_eq!(nobody.extended_card().await.unwrap_err().kind(), Some(ErrorKind::Unauthenticated));
    }
    server.stop().await;
}

/// What a server was sent.
type Seen = Arc<Mutex<Vec<(HeaderMap, Uri)>>>;

async fn recorder() -> (String, Seen) {
    async fn record(State(seen): State<Seen>, headers: HeaderMap, uri: Uri) -> &'static str {
        seen.lock().unwrap().push((headers, uri));
        "{}"
    }
    let seen = Seen::default();
    let router = Router::new().fallback(post(record)).with_state(Arc::clone(&seen));
    (serve_router(router).await, seen)
}

#[tokio::test]
async fn p09_a_card_cannot_send_credentials_to_another_origin() {
    let (elsewhere, seen) = recorder().await;
    let card = card_for(&elsewhere);
    let url =
        serve_router(Router::new().route("/.well-known/agent-card.json", get(move || async move { card })))
            .await;
    let secret = quick().bearer("secret").api_key("secret").header("x-mine", "secret");
    let client = secret.connect(&url).await.unwrap();
    assert!(client.withholds_credentials());
    let _ = client.send("hello").await;
    let sent = seen.lock().unwrap().pop().unwrap();
    assert!(!format!("{sent:?}").contains("secret"), "{sent:?}");
    assert!(!sent.0.contains_key(header::AUTHORIZATION) && !sent.0.contains_key("x-api-key"));
    // The user may allow it.
    let client = secret.trust_origin(Origin::parse(&elsewhere).unwrap()).connect(&url).await.unwrap();
    assert!(!client.withholds_credentials());
    let _ = client.send("hello").await;
    let (headers, _) = seen.lock().unwrap().pop().unwrap();
    assert_eq!(headers[header::AUTHORIZATION], "Bearer secret");
    assert_eq!(
        (&headers["x-api-key"], &headers["x-mine"]),
        (&"secret".parse().unwrap(), &"secret".parse().unwrap())
    );
}

#[tokio::test]
async fn p09_calls_are_not_redirected() {
    let (elsewhere, seen) = recorder().await;
    let to = elsewhere.clone();
    let moved = post(move || async move { axum::response::Redirect::temporary(&to) });
    let url = serve_router(Router::new().route("/", moved)).await;
    let client = crate::harness::scripted_client(quick().bearer("secret"), &url);
    let error = client.send("hello").await.unwrap_err();
    let transport = error.transport().unwrap();
    assert_eq!(transport.kind(), baton_client::TransportKind::Redirected);
    assert!(transport.message().contains(&elsewhere), "{error}");
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn p09_secrets_are_not_shown() {
    let builder = Client::builder().bearer("secret-1").api_key("secret-2").password("ann", "secret-3");
    assert!(!format!("{builder:?}").contains("secret"), "{builder:?}");
}
