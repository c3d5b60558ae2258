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

use crate::harness::{TestServer, card_for, obedient, options, quick, serve, serve_router, with_agent};

const BINDINGS: [Binding; 3] = [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc];

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

/// One call in each binding; their error, which is the same in all.
async fn calls(builder: Builder, server: &TestServer) -> Result<(), Error> {
    let mut results = Vec::new();
    for binding in BINDINGS {
        results.push(call(builder.clone().bindings([binding]), server).await);
    }
    let kinds: Vec<_> = results.iter().map(|result| result.as_ref().map_err(Error::kind)).collect();
    assert!(kinds.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
    results.pop().unwrap()
}

async fn call(builder: Builder, server: &TestServer) -> Result<(), Error> {
    let client = builder.connect(&server.url).await?;
    client.send("hello").await?;
    if let Some(listed) = client.tasks(ListTasks::default()).next().await {
        listed?;
    }
    Ok(())
}

#[track_caller]
fn is_refused(result: Result<(), Error>, credentials_sent: bool) {
    let error = result.unwrap_err();
    let agent = error.agent().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(agent.kind(), Some(ErrorKind::Unauthenticated), "{error}");
    assert!(agent.http_status() == Some(401) || agent.grpc_code() == Some(16), "{error}");
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

/// A token of which only the newest is good; a client lives longer than one.
#[tokio::test]
async fn p09_a_bearer_token_may_change_under_a_client() {
    let server = serve_with(Chain::new().scheme("token", BearerTokens::new(keys()))).await;
    let now = Arc::new(Mutex::new(vec![KEY.to_owned()]));
    let known = Arc::clone(&now);
    let builder = quick().bearer_from(move || {
        let mut known = known.lock().unwrap();
        // The last one stays; the others are given once each.
        let token = if known.len() > 1 { known.remove(0) } else { known[0].clone() };
        async move { Ok::<_, std::convert::Infallible>(token) }
    });
    calls(builder.clone(), &server).await.unwrap();
    // The provider finds out only by the refusal that its token is old.
    for binding in BINDINGS {
        let client = builder.clone().bindings([binding]).connect(&server.url).await.unwrap();
        *now.lock().unwrap() = vec!["an-old-key-of-that-length".to_owned(), KEY.to_owned()];
        client.send("hello").await.unwrap();
        *now.lock().unwrap() = vec!["a-wrong-key-of-that-length".to_owned()];
        assert!(client.send("hello").await.unwrap_err().agent().unwrap().credentials_sent());
    }
    let none = quick().bearer_from(|| async { Err::<String, _>("the vault is closed") });
    let error = none.connect(&server.url).await.unwrap().send("hello").await.unwrap_err();
    assert!(matches!(&error, Error::Credentials(why) if why.contains("the vault is closed")), "{error}");
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
    for binding in BINDINGS {
        let client = quick().bearer(KEY).bindings([binding]).connect(&server.url).await.unwrap();
        assert_eq!(client.extended_card().await.unwrap().description, "More for those who are known");
        let nobody = quick().bindings([binding]).connect(&server.url).await.unwrap();
        assert_eq!(nobody.extended_card().await.unwrap_err().kind(), Some(ErrorKind::Unauthenticated));
    }
    server.stop().await;
}

/// For the session: that is the client and its clones.
#[tokio::test]
async fn p09_the_extended_card_takes_the_place_of_the_public_one() {
    let extended = AgentCard::new("test", "More for those who are known", "1.0.0");
    let builder = with_agent(obedient)
        .auth(Chain::new().scheme("token", BearerTokens::new(keys())))
        .extended_card(extended);
    let server = serve(builder).await;
    for binding in BINDINGS {
        let client = quick().bearer(KEY).bindings([binding]).connect(&server.url).await.unwrap();
        let clone = client.clone();
        assert_eq!(clone.card().description, "An agent for tests");
        client.extended_card().await.unwrap();
        assert_eq!(clone.card().description, "More for those who are known");
        // It was found as it was, and others go on with that.
        assert_eq!(client.discovered().card.description, "An agent for tests");
        let another = quick().with_card(client.discovered().clone()).unwrap();
        another.extended_card().await.unwrap_err();
        assert_eq!(another.card().description, "An agent for tests");
        client.send("hello").await.unwrap();
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

/// The user named `http://agent.example`, whose card leads to the same host by https. A proxy stands in for the network.
#[tokio::test]
async fn p09_credentials_may_go_from_http_to_https_on_the_same_host() {
    for (interface, withheld) in [
        ("https://agent.example/rpc", false),
        ("https://other.example/rpc", true),
        ("https://agent.example:8443/rpc", true),
    ] {
        let card = card_for(interface);
        let proxy = serve_router(Router::new().fallback(get(move || async move { card }))).await;
        let proxies = options(|it: &mut baton_client::Proxies| it.http = Some(proxy));
        let builder = quick().proxies(proxies);
        for builder in [builder.clone().bearer("secret"), builder.clone().header("x-mine", "secret")] {
            let client = builder.connect("http://agent.example").await.unwrap();
            assert_eq!(client.withholds_credentials(), withheld, "{interface}");
        }
        assert!(!builder.connect("http://agent.example").await.unwrap().withholds_credentials());
    }
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

/// Agents refuse with statuses and codes of their own.
#[tokio::test]
async fn p09_every_refusal_tells_whether_credentials_were_sent() {
    use axum::http::StatusCode;
    let rpc = |code: i32| format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"no"}}}}"#);
    for (status, body) in [
        (StatusCode::UNAUTHORIZED, String::new()),
        (StatusCode::UNAUTHORIZED, rpc(-32603)),
        (StatusCode::FORBIDDEN, String::new()),
        (StatusCode::OK, rpc(-32099)),
    ] {
        let answer = body.clone();
        let url = serve_router(Router::new().route("/", post(move || async move { (status, answer) }))).await;
        for (builder, sent) in [
            (quick(), false),
            (quick().header("x-trace", "1"), false),
            (quick().bearer("secret"), true),
            (quick().header("Authorization", "Custom secret"), true),
        ] {
            let error = crate::harness::scripted_client(builder, &url).send("hello").await.unwrap_err();
            assert_eq!(error.agent().unwrap().credentials_sent(), sent, "{status} {body} {error}");
        }
    }
}

/// A card that takes an API key in the query, or has one in its address.
fn card_with_query(url: &str) -> String {
    let scheme = r#"{"key":{"apiKeySecurityScheme":{"location":"query","name":"tenant"}}}"#;
    let more = format!(
        r#""securitySchemes":{scheme},"securityRequirements":[{{"schemes":{{"key":{{"list":[]}}}}}}],"name""#
    );
    card_for(&format!("{url}/?own=s3cret")).replacen(r#""name""#, &more, 1)
}

/// Servers repeat the query in the address that they redirect to.
#[tokio::test]
async fn p09_errors_do_not_show_what_is_in_the_query() {
    let moved = |uri: Uri| async move {
        (axum::http::StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("/moved{uri}"))])
    };
    let url = serve_router(Router::new().route("/", post(moved))).await;
    let card = baton_client::Discovered::from_json(card_with_query(&url)).unwrap();
    let client = quick().api_key("s3cret").with_card(card.clone()).unwrap();
    let error = client.send("hello").await.unwrap_err();
    assert_eq!(error.transport().unwrap().kind(), baton_client::TransportKind::Redirected);
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    // A stream that ends before it has said anything.
    let silent = || async { [(header::CONTENT_TYPE, "text/event-stream")] };
    let url = serve_router(Router::new().route("/", post(silent))).await;
    let card = baton_client::Discovered::from_json(card_with_query(&url)).unwrap();
    let client = quick().api_key("s3cret").with_card(card).unwrap();
    let mut events = client.stream("hello").await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error.transport().unwrap().url(), format!("{url}/"), "{error}");
}

/// What a server repeats comes in pieces, and may be cut anywhere.
#[tokio::test]
async fn p09_an_observer_sees_whole_bodies_and_events_without_credentials() {
    use axum::body::{Body, Bytes};
    use baton_client::Observed;
    for (media_type, pieces, expected) in [
        (
            "application/json",
            &["{\"said\": \"s3c", "ret-of-", "ann\"}"][..],
            &["{\"said\": \"[redacted]\"}"][..],
        ),
        (
            "text/event-stream; charset=utf-8",
            // Comments, so that the stream goes on.
            &[": s3cret", "-of-ann\n", "\n: 2\r\n\r", "\n: s3cret-of-", "ann"],
            &[": [redacted]\n\n", ": 2\r\n\r\n", ": [redacted]"],
        ),
    ] {
        let answer = move || async move {
            let pieces = pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from(*piece)));
            ([(header::CONTENT_TYPE, media_type)], Body::from_stream(futures_util::stream::iter(pieces)))
        };
        let url = serve_router(Router::new().route("/", post(answer))).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&seen);
        let builder = quick().reconnects(options(|it: &mut baton_client::Reconnects| it.most = 0));
        let builder = builder.observe(move |observed| {
            if let Observed::Body(bytes) = observed {
                tell.lock().unwrap().push(String::from_utf8_lossy(bytes).into_owned());
            }
        });
        let client = crate::harness::scripted_client(builder.bearer("s3cret-of-ann"), &url);
        match client.stream("hello").await {
            Ok(mut events) => while events.next().await.is_some_and(|event| event.is_ok()) {},
            Err(error) => assert!(error.transport().is_some(), "{error}"),
        }
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}

#[test]
fn p09_secrets_are_not_shown() {
    let builder = Client::builder().bearer("secret-1").api_key("secret-2").password("ann", "secret-3");
    assert!(!format!("{builder:?}").contains("secret"), "{builder:?}");
}
