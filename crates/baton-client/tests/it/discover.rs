//! P-09: cards by address and from files, cached, redirected, absent, broken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use baton_client::protocol::Generation;
use baton_client::{CardCache, CardError, Client, Error, SizeLimits, TransportKind};

use crate::harness::{card_for, obedient, options, quick, serve, serve_bytes, serve_router, with_agent};

const NEW: &str = "/.well-known/agent-card.json";
const OLD: &str = "/.well-known/agent.json";

#[tokio::test]
async fn p09_a_card_is_found_by_agent_by_card_and_in_a_file() {
    let server = serve(with_agent(obedient)).await;
    let found = Client::builder().discover(&server.url).await.unwrap();
    assert_eq!(found.card.name, "test");
    assert_eq!(found.generation, Generation::V1);
    assert_eq!(found.url.as_deref(), Some(format!("{}{NEW}", server.url).as_str()));
    let by_card = Client::builder().discover(&format!("{}{OLD}", server.url)).await.unwrap();
    assert_eq!((by_card.card.name.as_str(), by_card.generation), ("test", Generation::V0_3));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("card.json");
    std::fs::write(&file, &found.json).unwrap();
    let from_file = Client::builder().discover(file.to_str().unwrap()).await.unwrap();
    assert_eq!(from_file.card, found.card);
    assert_eq!(from_file.file, Some(file.canonicalize().unwrap()));
    let client = Client::builder().connect(file.to_str().unwrap()).await.unwrap();
    client.send("hello").await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn p09_old_agents_have_their_card_under_the_old_name() {
    let legacy = r#"{"name":"old","url":"http://127.0.0.1:1/","version":"1","capabilities":{},"skills":[]}"#;
    let url = serve_router(Router::new().route(OLD, get(move || async move { legacy }))).await;
    let found = Client::builder().discover(&url).await.unwrap();
    assert_eq!((found.card.name.as_str(), found.generation), ("old", Generation::V0_1));
    assert_eq!(found.card.interfaces[0].protocol_version, "0.1");
}

#[tokio::test]
async fn p09_a_fresh_card_is_not_fetched_and_a_stale_one_is_revalidated() {
    let (asked, unchanged) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counts = (Arc::clone(&asked), Arc::clone(&unchanged));
    let answer = move |headers: HeaderMap, max_age: u32| {
        counts.0.fetch_add(1, Ordering::Relaxed);
        let caching =
            [(header::ETAG, "\"v1\"".to_owned()), (header::CACHE_CONTROL, format!("max-age={max_age}"))];
        if headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag == "\"v1\"") {
            counts.1.fetch_add(1, Ordering::Relaxed);
            return (StatusCode::NOT_MODIFIED, caching).into_response();
        }
        (caching, card_for("http://127.0.0.1:1")).into_response()
    };
    let (fresh, stale) = (answer.clone(), answer);
    let router = Router::new()
        .route("/fresh.json", get(move |headers: HeaderMap| async move { fresh(headers, 60) }))
        .route("/stale.json", get(move |headers: HeaderMap| async move { stale(headers, 0) }));
    let url = serve_router(router).await;
    let builder = Client::builder().card_cache(CardCache::default());
    for (path, fetched, revalidated) in [("/fresh.json", 1, 0), ("/stale.json", 3, 2)] {
        asked.store(0, Ordering::Relaxed);
        unchanged.store(0, Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(builder.discover(&format!("{url}{path}")).await.unwrap().card.name, "scripted");
        }
        let counted = (asked.load(Ordering::Relaxed), unchanged.load(Ordering::Relaxed));
        assert_eq!(counted, (fetched, revalidated), "{path}");
    }
}

#[tokio::test]
async fn p09_card_redirects_are_followed_without_credentials() {
    async fn moved(headers: HeaderMap) -> (StatusCode, String) {
        match headers.contains_key(header::AUTHORIZATION) {
            true => (StatusCode::IM_A_TEAPOT, "a credential came along".to_owned()),
            false => (StatusCode::OK, card_for("http://127.0.0.1:1")),
        }
    }
    let router = Router::new()
        .route(NEW, get(|| async { Redirect::temporary("/moved.json") }))
        .route("/moved.json", get(moved))
        .route("/loop.json", get(|| async { Redirect::permanent("/loop.json") }));
    let url = serve_router(router).await;
    let builder = Client::builder().bearer("secret");
    assert_eq!(builder.discover(&url).await.unwrap().card.name, "scripted");
    let error = builder.discover(&format!("{url}/loop.json")).await.unwrap_err();
    assert_eq!(error.transport().unwrap().kind(), TransportKind::Redirected);
}

#[tokio::test]
async fn p09_a_card_for_some_gets_the_credentials() {
    async fn card(headers: HeaderMap) -> (StatusCode, String) {
        match headers.get(header::AUTHORIZATION).is_some_and(|value| value == "Bearer secret") {
            true => (StatusCode::OK, card_for("http://127.0.0.1:1")),
            false => (StatusCode::UNAUTHORIZED, String::new()),
        }
    }
    let url = serve_router(Router::new().route(NEW, get(card))).await;
    assert_eq!(Client::builder().bearer("secret").discover(&url).await.unwrap().card.name, "scripted");
    let error = Client::builder().discover(&url).await.unwrap_err();
    let Error::Card(card) = error else { panic!("{error}") };
    assert!(matches!(*card, CardError::NotFound { status: Some(401), .. }), "{card}");
}

/// Clones of a builder share its cache, whatever credentials they are given afterwards.
#[tokio::test]
async fn p09_a_card_for_some_is_not_cached_for_all() {
    async fn card(headers: HeaderMap) -> impl axum::response::IntoResponse {
        let caching = [(header::ETAG, "\"v1\""), (header::CACHE_CONTROL, "max-age=60")];
        match headers.contains_key(header::AUTHORIZATION) {
            true => (StatusCode::OK, caching, card_for("http://127.0.0.1:1")),
            false => (StatusCode::UNAUTHORIZED, caching, String::new()),
        }
    }
    let url = serve_router(Router::new().route(NEW, get(card))).await;
    let nobody = Client::builder();
    let ann = nobody.clone().bearer("secret");
    for _ in 0..2 {
        assert_eq!(ann.discover(&url).await.unwrap().card.name, "scripted");
        nobody.discover(&url).await.unwrap_err();
    }
}

#[tokio::test]
async fn p09_what_is_no_card_is_told() {
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(2 << 20));
    let router = Router::new()
        .route("/text.json", get(|| async { "hello" }))
        .route("/empty.json", get(|| async { "{}" }))
        .route("/large.json", get(move || async move { large }));
    let url = serve_router(router).await;
    let builder = quick();
    let error = builder.discover(&url).await.unwrap_err();
    let Error::Card(card) = &error else { panic!("{error}") };
    assert!(matches!(**card, CardError::NotFound { status: Some(404), .. }), "{card}");
    assert!(error.to_string().contains("agent-card.json answered 404"), "{error}");
    for (path, is_json) in [("/text.json", false), ("/empty.json", true)] {
        let error = builder.discover(&format!("{url}{path}")).await.unwrap_err();
        let Error::Card(card) = &error else { panic!("{error}") };
        assert_eq!(matches!(**card, CardError::Invalid { .. }), is_json, "{card}");
        assert_eq!(matches!(**card, CardError::NotFound { status: Some(200), .. }), !is_json, "{card}");
    }
    let is_invalid = |error: &Error| match error {
        Error::Card(card) => matches!(**card, CardError::Invalid { .. }),
        _ => false,
    };
    let error = builder.discover(&format!("{url}/large.json")).await.unwrap_err();
    assert!(is_invalid(&error), "{error}");
    let small = Client::builder().size_limits(options(|it: &mut SizeLimits| it.card = 10));
    let (endless, _) = serve_bytes("HTTP/1.1 200 OK\r\n\r\n{\"name\":\"a longer one\"").await;
    let error = small.discover(&endless).await.unwrap_err();
    assert!(is_invalid(&error), "{error}");
    let error = builder.discover("http://127.0.0.1:1").await.unwrap_err();
    assert_eq!(error.transport().unwrap().kind(), TransportKind::Connect, "{error}");
    assert!(!error.transport().unwrap().may_have_reached());
}
