//! HTTP with bounds: one request, one answer, no redirects, no surprises.
//!
//! Connections are set up when they are first needed: reading the system's certificates takes longer than a call to an
//! agent on the same machine, which has no TLS.

use std::error::Error as StdError;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use reqwest::Url;
use tokio::time::{Instant, timeout_at};

use crate::address::without_secrets;
use crate::error::{Error, TransportError, TransportKind};
use crate::observe::{Observer, Pair};
use crate::tls::{Proxies, TlsOptions};

/// Makes connections and keeps them.
#[derive(Debug)]
pub(crate) struct Http {
    tls: TlsOptions,
    proxies: Proxies,
    connect_timeout: Duration,
    user_agent: String,
    observer: Observer,
    http1: Connections,
    http2: Connections,
}

/// Connections of one version of HTTP.
#[derive(Debug, Default)]
struct Connections {
    plain: OnceLock<reqwest::Client>,
    secure: OnceLock<reqwest::Client>,
    with_certificate: OnceLock<reqwest::Client>,
}

/// A request that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
    /// Speak HTTP/2, without asking first. Otherwise HTTP/1.1.
    pub(crate) http2: bool,
    /// The body as JSON, for observers, if it is none.
    pub(crate) shown: Option<Bytes>,
    /// Query parameters that are credentials, by name.
    pub(crate) secret_query: Vec<String>,
    /// Show the client certificate to this server.
    pub(crate) with_certificate: bool,
    /// For everything up to the last byte of the answer.
    pub(crate) total: Option<Duration>,
    /// The longest silence in the middle of the answer.
    pub(crate) idle: Duration,
}

impl Request {
    pub(crate) fn get(url: Url, total: Duration, idle: Duration) -> Self {
        Request {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
            http2: false,
            shown: None,
            secret_query: Vec::new(),
            with_certificate: false,
            total: Some(total),
            idle,
        }
    }
}

impl Http {
    pub(crate) fn new(
        tls: TlsOptions,
        proxies: Proxies,
        connect_timeout: Duration,
        user_agent: String,
        observer: Observer,
    ) -> Self {
        Http {
            tls,
            proxies,
            connect_timeout,
            user_agent,
            observer,
            http1: Connections::default(),
            http2: Connections::default(),
        }
    }

    pub(crate) fn has_client_certificate(&self) -> bool {
        self.tls.has_client_certificate()
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_on()
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(&self, request: Request) -> Result<Answer, Error> {
        let mut pair = self.observer.request(&request);
        let Request { method, url, headers, body, http2, with_certificate, total, idle, .. } = request;
        let address = without_secrets(&url);
        let client = self.client(&url, http2, with_certificate)?;
        let deadline = total.and_then(after);
        let mut builder = client.request(method, url).headers(headers);
        if let Some(body) = body {
            builder = builder.body(body);
        }
        let response = match within(deadline, builder.send()).await {
            Some(Ok(response)) => response,
            Some(Err(error)) => {
                let error = classify(&address, &error);
                pair.failed(&error);
                return Err(error.into());
            }
            None => {
                let error = too_late(&address);
                pair.failed(&error);
                return Err(error.into());
            }
        };
        pair.response(response.status().as_u16(), response.headers());
        Ok(Answer { address, response: response.into(), trailers: HeaderMap::new(), deadline, idle, pair })
    }

    fn client(&self, url: &Url, http2: bool, with_certificate: bool) -> Result<reqwest::Client, Error> {
        let secure = url.scheme() == "https";
        // A proxy may itself be reached by TLS.
        let needs_tls = secure || self.proxies.any_secure();
        let connections = if http2 { &self.http2 } else { &self.http1 };
        let place = match (needs_tls, with_certificate && self.tls.has_client_certificate()) {
            (false, _) => &connections.plain,
            (true, false) => &connections.secure,
            (true, true) => &connections.with_certificate,
        };
        if let Some(client) = place.get() {
            return Ok(client.clone());
        }
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            // The environment is the binary's to read.
            .no_proxy()
            .user_agent(self.user_agent.as_str())
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30));
        builder = of_version(builder, http2);
        builder = self.proxies.apply(builder)?;
        builder = if needs_tls {
            self.tls.apply(builder, std::ptr::eq(place, &connections.with_certificate))?
        } else {
            builder.tls_certs_only([])
        };
        let client = builder.build().map_err(|error| Error::Invalid(format!("TLS: {}", causes(&error))))?;
        Ok(place.get_or_init(|| client).clone())
    }
}

/// Without asking the server first: what it offers over TLS would decide between the two. No pings over HTTP/2: servers of gRPC
/// close connections that ping more often than every five minutes.
fn of_version(builder: reqwest::ClientBuilder, http2: bool) -> reqwest::ClientBuilder {
    #[cfg(feature = "grpc")]
    if http2 {
        return builder
            .http2_prior_knowledge()
            .http2_initial_stream_window_size(HTTP2_WINDOW)
            .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW);
    }
    let _ = http2;
    builder.http1_only()
}

/// How much of one answer may come before it is read: what would be on the way at 100 MB/s and 10 ms.
#[cfg(feature = "grpc")]
const HTTP2_WINDOW: u32 = 1 << 20;

/// The largest there is: streams that nobody reads fill their own windows, and never that of the calls beside them.
#[cfg(feature = "grpc")]
const HTTP2_CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct Answer {
    address: String,
    response: http::Response<reqwest::Body>,
    /// Empty until the body has ended.
    trailers: HeaderMap,
    deadline: Option<Instant>,
    idle: Duration,
    pair: Pair,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    pub(crate) fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// Headers behind the body, once it has ended.
    #[cfg(feature = "grpc")]
    pub(crate) fn trailers(&self) -> &HeaderMap {
        &self.trailers
    }

    /// Tells observers of a body that they could not read.
    #[cfg(feature = "grpc")]
    pub(crate) fn show(&self, text: impl FnOnce() -> Vec<u8>) {
        self.pair.show(text);
    }

    /// The media type without parameters, in lower case.
    pub(crate) fn media_type(&self) -> String {
        let value = self.header(header::CONTENT_TYPE).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    /// Takes the deadline off: a stream lasts as long as its task.
    pub(crate) fn has_no_deadline(&mut self) {
        self.deadline = None;
    }

    /// The next bytes; `None` at the end. Cancel safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let deadline = [self.deadline, after(self.idle)].into_iter().flatten().min();
        loop {
            match within(deadline, self.response.body_mut().frame()).await {
                Some(None) => {
                    self.pair.end();
                    return Ok(None);
                }
                Some(Some(Ok(frame))) => match frame.into_data() {
                    Ok(chunk) => {
                        self.pair.body(&chunk);
                        return Ok(Some(chunk));
                    }
                    Err(frame) => self.trailers.extend(frame.into_trailers().unwrap_or_default()),
                },
                Some(Some(Err(error))) => {
                    self.pair.failed(&causes(&error));
                    return Err(self.fail(TransportKind::Cut, causes(&error)));
                }
                None => {
                    let error = too_late(&self.address);
                    self.pair.failed(&error);
                    return Err(error.into());
                }
            }
        }
    }

    /// The whole body, if it is not larger than `limit`.
    pub(crate) async fn bytes(&mut self, limit: usize) -> Result<Bytes, Error> {
        let length: Option<u64> = self.header(header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
        if length.is_some_and(|length| length > limit as u64) {
            return Err(self.too_large(limit));
        }
        let mut whole = Vec::new();
        let mut first = None;
        while let Some(chunk) = self.chunk().await? {
            if whole.len() + chunk.len() + first.as_ref().map_or(0, Bytes::len) > limit {
                return Err(self.too_large(limit));
            }
            // Most answers are one chunk, which is not copied.
            match (first.take(), whole.is_empty()) {
                (None, true) => first = Some(chunk),
                (earlier, _) => {
                    whole.extend_from_slice(earlier.as_deref().unwrap_or_default());
                    whole.extend_from_slice(&chunk);
                }
            }
        }
        Ok(first.unwrap_or_else(|| whole.into()))
    }

    /// The same as text.
    pub(crate) async fn text(&mut self, limit: usize) -> Result<String, Error> {
        let bytes = self.bytes(limit).await?;
        String::from_utf8(bytes.into()).map_err(|error| {
            self.fail(TransportKind::Malformed, format!("not UTF-8 ({})", error.utf8_error()))
        })
    }

    pub(crate) fn too_large(&self, limit: usize) -> Error {
        self.fail(TransportKind::TooLarge, format!("more than {limit} bytes"))
    }

    pub(crate) fn malformed(&self, message: impl Into<String>) -> Error {
        self.fail(TransportKind::Malformed, message.into())
    }

    pub(crate) fn fail(&self, kind: TransportKind, message: impl Into<String>) -> Error {
        TransportError { kind, url: self.address.clone(), message: message.into(), reached: true }.into()
    }

    /// Where a redirect leads, for messages. Servers repeat the query that they were sent, API key included.
    pub(crate) fn redirect_target(&self) -> String {
        let target = self.header(header::LOCATION);
        let target = target.and_then(|to| Url::parse(&self.address).ok()?.join(to).ok());
        target.map_or_else(|| "nowhere".to_owned(), |url| without_secrets(&url))
    }

    /// A header before the body, or one behind it: gRPC has some in either place.
    fn anywhere(&self, name: header::HeaderName) -> impl Iterator<Item = &str> {
        let all = [self.response.headers(), &self.trailers].into_iter();
        all.flat_map(move |headers| headers.get_all(&name)).filter_map(|value| value.to_str().ok())
    }

    /// `WWW-Authenticate`, one item per header.
    pub(crate) fn challenges(&self) -> Vec<String> {
        self.anywhere(header::WWW_AUTHENTICATE).map(str::to_owned).collect()
    }

    /// The caller is not authenticated.
    pub(crate) fn is_unauthenticated(&self) -> bool {
        #[cfg(feature = "grpc")]
        if crate::transport::grpc::is_unauthenticated(self) {
            return true;
        }
        self.status() == 401
    }

    /// `Retry-After`: seconds, or a date.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let said = self.anywhere(header::RETRY_AFTER).next()?.trim();
        if let Ok(seconds) = said.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let at = httpdate::parse_http_date(said).ok()?;
        Some(at.duration_since(std::time::SystemTime::now()).unwrap_or_default())
    }
}

/// The moment after this time; `None` if it is later than any clock can say.
fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

/// `None` if the deadline came first.
async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

fn too_late(address: &str) -> TransportError {
    TransportError {
        kind: TransportKind::Timeout,
        url: address.to_owned(),
        message: "the timeout ran out".to_owned(),
        reached: true,
    }
}

fn classify(address: &str, error: &reqwest::Error) -> TransportError {
    let message = causes(error);
    let (kind, reached) = match () {
        () if is_tls(error) => (TransportKind::Tls, false),
        () if message.ends_with(HEAD_TOO_LARGE) => (TransportKind::TooLarge, true),
        () if error.is_connect() && error.is_timeout() => (TransportKind::Timeout, false),
        () if error.is_connect() => (TransportKind::Connect, false),
        () if error.is_timeout() => (TransportKind::Timeout, true),
        () => (TransportKind::Cut, true),
    };
    TransportError { kind, url: address.to_owned(), message, reached }
}

/// hyper's words for a status line and headers of more than about 400 kB, or more than 100 headers. Its own test for that
/// would need hyper as a dependency, whose features are those of the server here.
const HEAD_TOO_LARGE: &str = "message head is too large";

fn is_tls(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An I/O error does not name what it wraps as its source.
        cause = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

/// The innermost causes: the outer ones repeat the address, which may hold an API key.
fn causes(error: &reqwest::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // That much is in our own words already.
        if said.last() != Some(&text) && !text.starts_with("client error") {
            said.push(text);
        }
        cause = error.source();
    }
    match said.is_empty() {
        true => "the request failed".to_owned(),
        false => said.join(": "),
    }
}

/// A header value from text that a user or a card gave.
pub(crate) fn header_value(name: &str, value: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(value)
        .map_err(|_| Error::Invalid(format!("the value of {name} has characters that no header may have")))
}
