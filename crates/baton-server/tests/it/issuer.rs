//! A server that publishes keys and knows tokens, well or badly.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_server::Clock as _;
use baton_server::auth::jwt::{FetchOptions, Fetcher};
use baton_server::auth::{AuthRequest, Scheme, Verdict};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fixtures::TestClock;
use crate::harness::TEST_TIMEOUT;
use crate::signers::Signer;

pub(crate) const AUDIENCE: &str = "https://agent.test";

/// Its answers by path; each can be replaced while it runs.
pub(crate) struct Issuer {
    pub(crate) url: String,
    answers: Mutex<HashMap<&'static str, Answers>>,
    requests: Mutex<Vec<(String, HeaderMap, String)>>,
    keys_fetched: AtomicUsize,
}

/// What is sent for a path.
#[derive(Clone)]
pub(crate) enum Answers {
    Json(Value),
    /// With `Cache-Control`.
    Cached(&'static str, Value),
    Status(u16),
    Error(u16, Value),
    Text(&'static str, String),
    Redirect(String),
    /// A body that never ends.
    Endless,
    /// No answer at all.
    Silence,
    /// By the `token` in the form.
    Tokens(HashMap<String, Value>),
}

pub(crate) const KEYS: &str = "/keys";
pub(crate) const CONFIGURATION: &str = "/.well-known/openid-configuration";
pub(crate) const INTROSPECT: &str = "/introspect";

impl Issuer {
    /// With these keys, and a configuration that names them.
    pub(crate) async fn start(signers: &[&Signer]) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let issuer = Arc::new(Issuer {
            url: url.clone(),
            answers: Mutex::default(),
            requests: Mutex::default(),
            keys_fetched: AtomicUsize::new(0),
        });
        issuer.publish(signers.iter().map(|signer| signer.jwk()).collect());
        let configuration = json!({
            "issuer": url,
            "jwks_uri": format!("{url}{KEYS}"),
            "token_endpoint": format!("{url}/token"),
            "authorization_endpoint": format!("{url}/auth"),
            "device_authorization_endpoint": format!("{url}/device"),
            "introspection_endpoint": format!("{url}{INTROSPECT}"),
            "code_challenge_methods_supported": ["S256"],
        });
        issuer.answer(CONFIGURATION, Answers::Json(configuration));
        let app = Router::new().fallback(answered).with_state(Arc::clone(&issuer));
        tokio::spawn(async move { axum::serve(listener, app).await });
        issuer
    }

    pub(crate) fn publish(&self, keys: Vec<Value>) {
        self.answer(KEYS, Answers::Json(json!({ "keys": keys })));
    }

    pub(crate) fn answer(&self, path: &'static str, answer: Answers) {
        self.answers.lock().unwrap().insert(path, answer);
    }

    /// How often the keys were fetched.
    pub(crate) fn keys_fetched(&self) -> usize {
        self.keys_fetched.load(Ordering::SeqCst)
    }

    /// Path, headers and body of every request.
    pub(crate) fn requests(&self) -> Vec<(String, HeaderMap, String)> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn keys_url(&self) -> String {
        format!("{}{KEYS}", self.url)
    }

    /// Claims that are right for [`AUDIENCE`] at the beginning of a [`TestClock`].
    pub(crate) fn claims(&self) -> Value {
        json!({"iss": self.url, "aud": AUDIENCE, "sub": "alice", "exp": now() + 600, "iat": now(), "scope": "read write"})
    }
}

/// The seconds at which a [`TestClock`] begins.
pub(crate) fn now() -> i64 {
    TestClock::new().now().as_millis() / 1000
}

async fn answered(State(issuer): State<Arc<Issuer>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let path = head.uri.path().to_owned();
    if path == KEYS {
        issuer.keys_fetched.fetch_add(1, Ordering::SeqCst);
    }
    let answer = issuer.answers.lock().unwrap().get(path.as_str()).cloned();
    issuer.requests.lock().unwrap().push((path, head.headers, body.clone()));
    match answer {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Answers::Json(value)) => json_response(&value, None),
        Some(Answers::Cached(cache, value)) => json_response(&value, Some(cache)),
        Some(Answers::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Answers::Error(status, value)) => {
            (StatusCode::from_u16(status).unwrap(), value.to_string()).into_response()
        }
        Some(Answers::Text(kind, text)) => ([("content-type", kind)], text).into_response(),
        Some(Answers::Redirect(to)) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Some(Answers::Silence) => std::future::pending().await,
        Some(Answers::Endless) => {
            let chunk = Bytes::from(vec![b' '; 16 * 1024]);
            let chunks = stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
            Body::from_stream(chunks).into_response()
        }
        Some(Answers::Tokens(tokens)) => {
            let token = body.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap_or_default();
            json_response(tokens.get(token).unwrap_or(&json!({"active": false})), None)
        }
    }
}

fn json_response(value: &Value, cache: Option<&'static str>) -> Response {
    let mut response = ([("content-type", "application/json")], value.to_string()).into_response();
    if let Some(cache) = cache {
        response.headers_mut().insert("cache-control", HeaderValue::from_static(cache));
    }
    response
}

pub(crate) fn fetcher() -> Fetcher {
    fetcher_that_waits(TEST_TIMEOUT)
}

/// For servers that never answer.
pub(crate) fn fetcher_that_waits(timeout: Duration) -> Fetcher {
    let mut options = FetchOptions::default();
    options.timeout = timeout;
    Fetcher::new(&options).unwrap()
}

/// The verdict on a request with this `Authorization` header.
pub(crate) async fn verdict(scheme: &impl Scheme, authorization: &str) -> Verdict {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_str(authorization).unwrap());
    scheme.verify(&AuthRequest::new(&Method::POST, &Uri::from_static("/"), &headers)).await
}

/// The owner of a token, or why it is refused; `unavailable` if that cannot be decided.
pub(crate) async fn owner(scheme: &impl Scheme, token: &str) -> Result<String, String> {
    match verdict(scheme, &format!("Bearer {token}")).await {
        Verdict::Verified(identity) => Ok(identity.owner.to_string()),
        Verdict::Refused(refusal) => Err(refusal.reason.to_owned()),
        Verdict::Unavailable(_) => Err("unavailable".to_owned()),
        Verdict::Absent => Err("absent".to_owned()),
    }
}

/// Moves tokio's clock; the sockets go on in real time before and after.
pub(crate) async fn move_clock(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}
