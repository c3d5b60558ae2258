//! P-09: tokens of an authorization server, in every flow, renewed when they are refused, and no secret for strangers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use baton_client::protocol::ErrorKind;
use baton_client::{
    Builder, Client, Credential, Discovered, Error, Flow, OAuthClient, Origin, Prompt, Token, TokenStore,
};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use crate::harness::{TEST_TIMEOUT, quick, serve_router};

#[derive(Default)]
struct Inner {
    url: String,
    issued: u32,
    /// The only token that the agent accepts.
    valid: Option<String>,
    refresh: Option<String>,
    /// What the browser was sent with.
    challenge: Option<String>,
    polls: u32,
    /// Forms that came to the token endpoint.
    forms: Vec<HashMap<String, String>>,
    /// The token endpoint waits before it answers.
    hold: Option<Arc<Hold>>,
}

#[derive(Default)]
struct Hold {
    came: Notify,
    answer: Notify,
}

type Shared = Arc<Mutex<Inner>>;

fn parse(form: &str) -> HashMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://x/?{form}")).unwrap();
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn refuse(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!(r#"{{"error":"{error}","error_description":"in this test"}}"#))
        .into_response()
}

/// An answer that breaks off in its body.
fn lost_connection() -> Response {
    let broken = futures_util::stream::once(async { Err::<String, _>(std::io::Error::other("lost")) });
    (StatusCode::OK, axum::body::Body::from_stream(broken)).into_response()
}

async fn token(State(shared): State<Shared>, headers: HeaderMap, body: String) -> Response {
    let hold = shared.lock().unwrap().hold.clone();
    if let Some(hold) = hold {
        hold.came.notify_one();
        hold.answer.notified().await;
    }
    let mut inner = shared.lock().unwrap();
    let form = parse(&body);
    inner.forms.push(form.clone());
    let secret = format!("Basic {}", STANDARD.encode("my%3Aapp:s3cret%2B"));
    let is_secret = headers.get(header::AUTHORIZATION).is_some_and(|value| value == secret.as_str());
    let is_public = form.get("client_id").is_some_and(|id| id == "my:app");
    let granted = match form["grant_type"].as_str() {
        "client_credentials" => is_secret,
        "refresh_token" => (is_secret || is_public) && inner.refresh.as_ref() == form.get("refresh_token"),
        "authorization_code" => {
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
            is_public && form["code"] == "the code" && inner.challenge == Some(challenge)
        }
        "urn:ietf:params:oauth:grant-type:device_code" => {
            inner.polls += 1;
            match inner.polls {
                1 => return refuse("authorization_pending"),
                2 => return (StatusCode::BAD_GATEWAY, "<h1>Bad gateway</h1>").into_response(),
                3 => return lost_connection(),
                _ => {}
            }
            is_public && form["device_code"] == "the device"
        }
        other => panic!("{other}"),
    };
    if !granted {
        return refuse("invalid_grant");
    }
    inner.issued += 1;
    let (access, refresh) = (format!("token-{}", inner.issued), format!("refresh-{}", inner.issued));
    inner.valid = Some(access.clone());
    inner.refresh = Some(refresh.clone());
    let answer = format!(
        r#"{{"access_token":"{access}","token_type":"Bearer","expires_in":3600,"refresh_token":"{refresh}"}}"#
    );
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

async fn device(body: String) -> String {
    assert!(matches!(body.as_str(), "client_id=my%3Aapp" | "scope=read+write&client_id=my%3Aapp"), "{body}");
    // More than any clock can add.
    r#"{"device_code":"the device","user_code":"WXYZ-1234","verification_uri":"https://id.example/device","interval":0,
        "expires_in":18446744073709551615}"#
        .to_owned()
}

/// The user agrees at once.
async fn authorize(State(shared): State<Shared>, uri: Uri) -> Redirect {
    let asked = parse(uri.query().unwrap());
    assert_eq!((asked["response_type"].as_str(), asked["code_challenge_method"].as_str()), ("code", "S256"));
    shared.lock().unwrap().challenge = Some(asked["code_challenge"].clone());
    let mut back = reqwest::Url::parse(&asked["redirect_uri"]).unwrap();
    back.query_pairs_mut().append_pair("code", "the code").append_pair("state", &asked["state"]);
    Redirect::temporary(back.as_str())
}

async fn metadata(State(shared): State<Shared>) -> String {
    let url = shared.lock().unwrap().url.clone();
    format!(
        r#"{{"issuer":"{url}","token_endpoint":"{url}/token","authorization_endpoint":"{url}/authorize",
        "device_authorization_endpoint":"{url}/device"}}"#
    )
}

async fn agent(State(shared): State<Shared>, headers: HeaderMap, body: String) -> Response {
    let expected = shared.lock().unwrap().valid.as_ref().map(|token| format!("Bearer {token}"));
    let came = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if came.is_none() || came != expected.as_deref() {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    }
    let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let task = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{task}}}"#).into_response()
}

/// The agent's address, the authorization server's, and what they know.
async fn serve(scheme: impl Fn(&str) -> String) -> (String, String, Shared) {
    let shared = Shared::default();
    let authorization = Router::new()
        .route("/token", post(token))
        .route("/device", post(device))
        .route("/authorize", get(authorize))
        .route("/.well-known/openid-configuration", get(metadata))
        .with_state(Arc::clone(&shared));
    let authorization = serve_router(authorization).await;
    shared.lock().unwrap().url.clone_from(&authorization);
    let scheme = scheme(&authorization);
    let agent = Router::new()
        .route("/", post(agent))
        .route("/.well-known/agent-card.json", get(move |headers: HeaderMap| async move {
            let url = format!("http://{}/", headers[header::HOST].to_str().unwrap());
            format!(
                r#"{{"name":"a","description":"","version":"1","capabilities":{{}},"defaultInputModes":["text/plain"],
                "defaultOutputModes":["text/plain"],"skills":[],
                "securitySchemes":{{"login":{scheme}}},
                "securityRequirements":[{{"schemes":{{"login":{{"list":["read","write"]}}}}}}],
                "supportedInterfaces":[{{"url":"{url}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
            )
        }))
        .with_state(Arc::clone(&shared));
    (serve_router(agent).await, authorization, shared)
}

fn client_credentials(url: &str) -> String {
    format!(
        r#"{{"oauth2SecurityScheme":{{"flows":{{"clientCredentials":{{"tokenUrl":"{url}/token","scopes":{{}}}}}}}}}}"#
    )
}

fn openid(url: &str) -> String {
    format!(
        r#"{{"openIdConnectSecurityScheme":{{"openIdConnectUrl":"{url}/.well-known/openid-configuration"}}}}"#
    )
}

fn with(client: OAuthClient) -> Builder {
    quick().credential(Credential::OAuth(client))
}

fn nobody(prompt: Prompt) {
    panic!("no user is needed: {prompt:?}");
}

#[tokio::test]
async fn p09_client_credentials_are_obtained_used_and_renewed() {
    let (url, authorization, shared) = serve(client_credentials).await;
    let kept = Arc::new(Mutex::new(Vec::<Token>::new()));
    let keep = Arc::clone(&kept);
    let app = OAuthClient::new("my:app")
        .secret("s3cret+")
        .trust(Origin::parse(&authorization).unwrap())
        .on_token(move |token| keep.lock().unwrap().push(token.clone()));
    let client = with(app).connect(&url).await.unwrap();
    for _ in 0..3 {
        client.send("hello").await.unwrap();
    }
    assert_eq!(shared.lock().unwrap().issued, 1, "one token for all calls");
    assert_eq!(shared.lock().unwrap().forms[0]["scope"], "read write");
    // The agent does not accept it any more: a new one is obtained, with the refresh token.
    shared.lock().unwrap().valid = Some("another".to_owned());
    client.send("hello").await.unwrap();
    assert_eq!(shared.lock().unwrap().forms[1]["grant_type"], "refresh_token");
    assert_eq!(kept.lock().unwrap().len(), 2);
    // Several calls at once renew it once.
    shared.lock().unwrap().valid = Some("another".to_owned());
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send("hello").await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(shared.lock().unwrap().issued, 3);
}

/// A store in memory that two clients share, as two processes share a file.
#[derive(Clone, Default)]
struct SharedStore {
    token: Arc<Mutex<Option<Token>>>,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl TokenStore for SharedStore {
    fn try_lock(&self) -> Option<Box<dyn std::any::Any + Send>> {
        Some(Box::new(Arc::clone(&self.lock).try_lock_owned().ok()?))
    }

    fn load(&self) -> Option<Token> {
        self.token.lock().unwrap().clone()
    }

    fn save(&self, token: &Token) {
        *self.token.lock().unwrap() = Some(token.clone());
    }
}

/// An expired token of the authorization server that the agents' card names.
fn expired(authorization: &str, shared: &Shared) -> Token {
    shared.lock().unwrap().refresh = Some("refresh".to_owned());
    Token {
        access: "old".into(),
        refresh: Some("refresh".into()),
        expires_at: Some(std::time::SystemTime::UNIX_EPOCH),
        issued_by: Origin::parse(authorization).unwrap(),
    }
}

/// Servers accept a refresh token once: whoever comes second takes what the first got.
#[tokio::test]
async fn p09_clients_that_share_a_token_renew_it_once() {
    let (url, authorization, shared) = serve(client_credentials).await;
    let store = SharedStore::default();
    store.save(&expired(&authorization, &shared));
    let mut calls = Vec::new();
    for _ in 0..4 {
        let client = with(OAuthClient::new("my:app").token_store(store.clone())).connect(&url).await.unwrap();
        calls.push(tokio::spawn(async move { client.send("hello").await }));
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(shared.lock().unwrap().forms.len(), 1, "one renewal for all");
    assert_eq!(store.load().unwrap().access.expose_secret(), "token-1");
}

/// The server has replaced the refresh token when its answer is on the way: it must be kept, although nobody waits for it.
#[tokio::test]
async fn p09_a_call_that_is_given_up_does_not_lose_the_new_token() {
    let (url, authorization, shared) = serve(client_credentials).await;
    let (kept, mut keeps) = tokio::sync::mpsc::channel(1);
    let app = OAuthClient::new("my:app")
        .token(expired(&authorization, &shared))
        .on_token(move |token| kept.try_send(token.clone()).unwrap());
    let client = with(app).connect(&url).await.unwrap();
    let hold = Arc::<Hold>::default();
    shared.lock().unwrap().hold = Some(Arc::clone(&hold));
    {
        let mut call = std::pin::pin!(client.send("hello"));
        // The server has the request, and then the call is dropped.
        tokio::select! {
            _ = &mut call => panic!("the server does not answer yet"),
            () = hold.came.notified() => {}
        }
    }
    hold.answer.notify_one();
    let token = tokio::time::timeout(TEST_TIMEOUT, keeps.recv()).await.unwrap().unwrap();
    assert_eq!(token.refresh.unwrap().expose_secret(), "refresh-1");
}

#[tokio::test]
async fn p09_a_token_that_stays_refused_is_an_error() {
    let (url, authorization, shared) = serve(client_credentials).await;
    let app = OAuthClient::new("my:app").secret("wrong").trust(Origin::parse(&authorization).unwrap());
    let error = with(app).connect(&url).await.unwrap().send("hello").await.unwrap_err();
    assert!(matches!(&error, Error::Credentials(why) if why.contains("invalid_grant")), "{error}");
    let stale = OAuthClient::new("my:app").token(Token {
        access: "old".into(),
        refresh: None,
        expires_at: None,
        issued_by: Origin::parse(&authorization).unwrap(),
    });
    let error = with(stale).connect(&url).await.unwrap().send("hello").await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Unauthenticated), "{error}");
    assert!(error.agent().unwrap().credentials_sent());
    assert_eq!(shared.lock().unwrap().issued, 0);
}

/// A card may name any server; the secret goes to none that the user does not know.
#[tokio::test]
async fn p09_a_card_cannot_collect_the_client_secret() {
    let (url, authorization, shared) = serve(client_credentials).await;
    let app = OAuthClient::new("my:app").secret("s3cret+");
    let error = with(app.clone()).connect(&url).await.unwrap().send("hello").await.unwrap_err();
    assert!(matches!(&error, Error::Credentials(why) if why.contains(&authorization)), "{error}");
    // A refresh token goes back to the server it is of.
    let token = Token {
        access: "old".into(),
        refresh: Some("refresh".into()),
        expires_at: Some(std::time::SystemTime::UNIX_EPOCH),
        issued_by: Origin::parse("https://id.example").unwrap(),
    };
    let app = OAuthClient::new("my:app").token(token);
    let error = with(app).connect(&url).await.unwrap().send("hello").await.unwrap_err();
    assert!(matches!(&error, Error::Credentials(why) if why.contains("log in again")), "{error}");
    assert!(shared.lock().unwrap().forms.is_empty());
}

/// A card file may have been changed, or be another one of the same name.
#[tokio::test]
async fn p09_a_token_goes_to_the_agents_it_is_for() {
    let (url, authorization, shared) = serve(client_credentials).await;
    let found = quick().discover(&url).await.unwrap();
    shared.lock().unwrap().valid = Some("mine".to_owned());
    let mut token = expired(&authorization, &shared);
    (token.access, token.expires_at) = ("mine".into(), None);
    let app = OAuthClient::new("my:app").token(token);
    let connect = |allowed: &str| {
        let app = app.clone().only_to([Origin::parse(allowed).unwrap()]);
        with(app).with_card(Discovered::from_json(&*found.json).unwrap()).unwrap()
    };
    let client = connect("https://elsewhere.example");
    assert!(client.withholds_credentials());
    let error = client.send("hello").await.unwrap_err();
    assert!(!error.agent().unwrap().credentials_sent(), "{error}");
    let client = connect(&url);
    assert!(!client.withholds_credentials());
    client.send("hello").await.unwrap();
}

/// The user confirms at the real server, and the card's own address would be given the code.
#[tokio::test]
async fn p09_a_card_cannot_collect_the_codes_of_a_login() {
    let (_, real, real_shared) = serve(client_credentials).await;
    let (_, collector, collected) = serve(client_credentials).await;
    let ends = |flow: &str, start: &str| {
        format!(
            r#"{{"oauth2SecurityScheme":{{"flows":{{"{flow}":{{"{start}":"{real}/{}","tokenUrl":"{collector}/token","scopes":{{}}}}}}}}}}"#,
            if flow == "deviceCode" { "device" } else { "authorize" }
        )
    };
    for (flow, scheme) in [
        (Flow::DeviceCode, ends("deviceCode", "deviceAuthorizationUrl")),
        (Flow::AuthorizationCode, ends("authorizationCode", "authorizationUrl")),
    ] {
        let (url, _, _) = serve(|_| scheme.clone()).await;
        let client = with(OAuthClient::new("my:app")).connect(&url).await.unwrap();
        let error = client.log_in(flow, nobody).await.unwrap_err();
        assert!(matches!(&error, Error::Credentials(why) if why.contains("trust both")), "{error}");
    }
    assert!(collected.lock().unwrap().forms.is_empty() && real_shared.lock().unwrap().forms.is_empty());
    // The user says that they belong together.
    let (url, _, _) = serve(|_| ends("deviceCode", "deviceAuthorizationUrl")).await;
    let origin = |url: &str| Origin::parse(url).unwrap();
    let app = OAuthClient::new("my:app").trust(origin(&real)).trust(origin(&collector));
    with(app).connect(&url).await.unwrap().log_in(Flow::DeviceCode, |_| ()).await.unwrap();
}

#[tokio::test]
async fn p09_openid_connect_in_all_three_flows() {
    let (url, authorization, shared) = serve(openid).await;
    let app = || OAuthClient::new("my:app");
    // The user has not logged in yet.
    let client = with(app()).connect(&url).await.unwrap();
    let error = client.send("hello").await.unwrap_err();
    assert!(matches!(&error, Error::Credentials(why) if why.contains("log in")), "{error}");
    // On another device.
    let seen = Mutex::new(None);
    client.log_in(Flow::DeviceCode, |prompt| *seen.lock().unwrap() = Some(prompt)).await.unwrap();
    let Some(Prompt::Device { url: page, code, .. }) = seen.into_inner().unwrap() else {
        panic!("no prompt")
    };
    assert_eq!((page.as_str(), code.as_str()), ("https://id.example/device", "WXYZ-1234"));
    client.send("hello").await.unwrap();
    assert_eq!(shared.lock().unwrap().polls, 4);
    // In a browser, which here is an HTTP client that follows the redirect.
    let client = with(app()).connect(&url).await.unwrap();
    let browse = |prompt| {
        let Prompt::Browser { url } = prompt else { panic!("{prompt:?}") };
        tokio::spawn(async move { reqwest::get(url).await.unwrap().text().await.unwrap() });
    };
    let token = client.log_in(Flow::AuthorizationCode, browse).await.unwrap();
    client.send("hello").await.unwrap();
    assert!(token.refresh.is_some());
    // A later process goes on with the token, and renews it.
    shared.lock().unwrap().valid = Some("another".to_owned());
    let later: Client = with(app().token(token)).connect(&url).await.unwrap();
    later.send("hello").await.unwrap();
    assert_eq!(shared.lock().unwrap().forms.last().unwrap()["grant_type"], "refresh_token");
    // For the program itself.
    let app = app().secret("s3cret+").trust(Origin::parse(&authorization).unwrap());
    let client = with(app).connect(&url).await.unwrap();
    client.log_in(Flow::ClientCredentials, nobody).await.unwrap();
    client.send("hello").await.unwrap();
}
