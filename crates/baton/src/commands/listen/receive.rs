//! One call of the webhook, from its body to its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::State;
use baton_client::{Notification, Webhook, WebhookError, WebhookVerifier};
use baton_protocol::signature::webhook::ID_HEADER;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::show::{Form, Shown};
use crate::output;

/// Largest body: notifications of 0.3 hold whole tasks.
const MAX_BODY: usize = 16 * 1024 * 1024;
const TOO_LARGE: &str = "its body is larger than 16 MiB, or was cut off";
/// Most calls at the same time.
const MAX_CALLS: usize = 64;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Longest challenge that is answered.
const MAX_CHALLENGE: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct Receiver(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    verifier: Option<WebhookVerifier>,
    answers: Vec<StatusCode>,
    delay: Duration,
    count: Option<u64>,
    form: Form,
    places: Semaphore,
    /// Calls that were counted.
    calls: AtomicU64,
    done: CancellationToken,
}

impl Receiver {
    pub(super) fn new(
        verifier: Option<WebhookVerifier>,
        answers: Vec<StatusCode>,
        delay: Duration,
        count: Option<u64>,
        form: Form,
    ) -> Self {
        let (places, calls) = (Semaphore::new(MAX_CALLS), AtomicU64::new(0));
        let done = CancellationToken::new();
        Receiver(Arc::new(Shared { verifier, answers, delay, count, form, places, calls, done }))
    }

    /// Waits until as many calls came as were asked for, or nobody reads what is shown.
    pub(super) async fn until_done(&self) {
        self.0.done.cancelled().await;
    }
}

pub(super) async fn receive(State(receiver): State<Receiver>, request: Request<Body>) -> Response<Body> {
    let shared = &*receiver.0;
    let Ok(_place) = shared.places.try_acquire() else { return empty(StatusCode::SERVICE_UNAVAILABLE) };
    let (head, body) = request.into_parts();
    match head.method {
        Method::POST => {}
        Method::GET | Method::HEAD => return challenged(&head.uri),
        _ => return empty(StatusCode::METHOD_NOT_ALLOWED),
    }
    if body.size_hint().lower() > MAX_BODY as u64 {
        return shared.refuse(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE);
    }
    let body = match tokio::time::timeout(BODY_TIME, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return shared.refuse(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE),
        Err(_) => return shared.refuse(StatusCode::REQUEST_TIMEOUT, "its body did not come"),
    };
    match shared.verified(&head.headers, &body).await {
        Ok(call) => shared.accept(&head.headers, call).await,
        Err(error) => {
            let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
            shared.refuse(status, &error.to_string())
        }
    }
}

/// A call that is to be shown.
enum Call {
    Verified(Webhook),
    Unverified(Notification),
}

impl Call {
    fn notification(&self) -> &Notification {
        match self {
            Self::Verified(webhook) => webhook.notification(),
            Self::Unverified(notification) => notification,
        }
    }
}

impl Shared {
    async fn verified(&self, headers: &HeaderMap, body: &Bytes) -> Result<Call, WebhookError> {
        match &self.verifier {
            Some(verifier) => verifier.fetch_and_verify(headers, body).await.map(Call::Verified),
            None => Notification::read_unverified(body).map(Call::Unverified),
        }
    }

    async fn accept(&self, headers: &HeaderMap, call: Call) -> Response<Body> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.count.is_some_and(|count| number > count) {
            return empty(StatusCode::SERVICE_UNAVAILABLE);
        }
        let position = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let answer = self.answers.get(position).or(self.answers.last()).copied().unwrap_or(StatusCode::OK);
        let notification = call.notification();
        let id = notification.id.as_deref().or_else(|| headers.get(ID_HEADER)?.to_str().ok());
        let is_verified = matches!(call, Call::Verified(_));
        let shown = Shown { number, id, is_verified, answer: answer.as_u16(), notification };
        if !self.form.print(&shown) {
            self.done.cancel();
        }
        tokio::time::sleep(self.delay).await;
        if let (Call::Verified(webhook), true) = (call, answer.is_success()) {
            webhook.done();
        }
        if self.count == Some(number) {
            self.done.cancel();
        }
        empty(answer)
    }

    fn refuse(&self, status: StatusCode, why: &str) -> Response<Body> {
        output::note(&format!("Answered a call with {}: {why}", status.as_u16()));
        empty(status)
    }
}

/// Agents of 0.3 may ask a webhook to repeat a token before they use it.
fn challenged(uri: &Uri) -> Response<Body> {
    let query = uri.query().unwrap_or_default();
    let token = query.split('&').find_map(|pair| pair.strip_prefix("validationToken="));
    let is_plain = |token: &&str| {
        token.len() <= MAX_CHALLENGE
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
    };
    let Some(token) = token.filter(is_plain) else { return empty(StatusCode::METHOD_NOT_ALLOWED) };
    let mut response = Response::new(Body::from(token.to_owned()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
