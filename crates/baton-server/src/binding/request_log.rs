//! Logs, counts and traces each request: its id, its span, its metrics, its line in the log.
//!
//! Only values from closed sets are logged or used as labels: the operation and the route, never the path as it was sent;
//! no header, no query, nothing of the payload.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use baton_protocol::operation::Operation;
use baton_protocol::wire::http_json::{HEALTH_PATH, METRICS_PATH, READY_PATH, path_template};
#[cfg(feature = "grpc")]
use baton_protocol::wire::pb::Package;
use baton_protocol::{Error, ErrorKind, Generation};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Method, Request, Response};
use tracing::{Instrument as _, Span};

use super::request_id::{REQUEST_ID, RequestId};
use super::{front, incoming};
use crate::auth::Principal;
use crate::net::Asker;
use crate::service::Service;
use crate::site::Site;
use crate::telemetry::labels::{self, Binding, Outcome, RequestKind};
use crate::telemetry::{AgentIndex, OpenStream, RequestLabels, Telemetry, milliseconds, trace};

/// The handler for requests that come through a router.
pub(super) async fn handle(State(site): State<Arc<Site>>, request: Request<Body>) -> Response<Body> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    let asker = request.extensions().get::<Asker>().cloned();
    answer(&site, request, peer, asker).await
}

/// Answers a request; all requests come through here. `asker` reserves room for the answer, if the listener limits that.
pub(super) async fn answer(
    site: &Site,
    request: Request<Body>,
    peer: Option<IpAddr>,
    asker: Option<Asker>,
) -> Response<Body> {
    let mut log = RequestLog::new(site, &request, peer, asker);
    let span = log.facts.span.clone();
    // Boxed: hyper moves the future of each request to another place, and a connection has room for one as long as it is open.
    let handled = Box::pin(front::handle(site, request, peer, &mut log));
    let mut response = handled.instrument(span).await;
    response.headers_mut().insert(REQUEST_ID, log.facts.id.value());
    // What one caller gets is not for another, and a shared cache may know only `Authorization` as a credential.
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    log.answered(&response);
    response
}

/// Collects what is known about one request under way. If it is dropped before the request is answered, the client has
/// disconnected.
#[derive(Debug)]
pub(super) struct RequestLog<'a> {
    telemetry: &'a Telemetry,
    /// The address at the other end of the connection.
    peer: Option<IpAddr>,
    /// See [`AuthRequest::client`](crate::auth::AuthRequest::client).
    client: Option<IpAddr>,
    asker: Option<Asker>,
    facts: Facts,
    /// The request has been logged and counted, or is not to be, or its stream will be.
    done: bool,
}

/// What is known about a request so far.
#[derive(Debug, Clone)]
struct Facts {
    id: RequestId,
    since: Instant,
    span: Span,
    method: &'static str,
    route: Route,
    agent: AgentIndex,
    binding: Binding,
    generation: Option<Generation>,
    kind: RequestKind,
    outcome: Outcome,
    /// The part of an error that is logged and not sent to the client.
    cause: Option<String>,
    caller: Option<String>,
}

/// The template of a path, such as `/tasks/{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Unknown,
    Fixed(&'static str),
    /// HTTP+JSON: a prefix, and the operation that gives the rest of the path.
    Operation(&'static str, Operation),
    /// gRPC.
    #[cfg(feature = "grpc")]
    Method(Package, Operation),
}

impl<'a> RequestLog<'a> {
    fn new(site: &'a Site, request: &Request<Body>, peer: Option<IpAddr>, asker: Option<Asker>) -> Self {
        let telemetry = site.engine().telemetry();
        let id = site.request_ids().of(request.headers());
        let span = if is_about_server(request.uri().path()) {
            Span::none()
        } else {
            tracing::debug_span!(
                target: "baton_server::request",
                "request",
                request.id = %id,
                task.id = tracing::field::Empty,
                otel.kind = "server",
                otel.name = tracing::field::Empty,
            )
        };
        if !span.is_disabled()
            && let Some(caller) = incoming::trace(request.headers())
        {
            trace::set_parent(&span, &caller);
        }
        let facts = Facts {
            id,
            since: Instant::now(),
            span,
            method: known_method(request.method()),
            route: Route::Unknown,
            agent: AgentIndex::NONE,
            binding: Binding::HttpJson,
            generation: None,
            kind: RequestKind::Unknown,
            outcome: Outcome::Ok,
            cause: None,
            caller: None,
        };
        RequestLog { telemetry, peer, client: None, asker, facts, done: false }
    }

    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    pub(super) fn client(&self) -> Option<IpAddr> {
        self.client
    }

    pub(super) fn asker(&self) -> Option<&Asker> {
        self.asker.as_ref()
    }

    pub(super) fn set_route(&mut self, binding: Binding, route: Route) {
        (self.facts.binding, self.facts.route) = (binding, route);
        if binding == Binding::Card {
            self.facts.kind = RequestKind::Card;
            self.facts.span.record("otel.name", self.facts.kind.name());
        }
    }

    pub(super) fn set_agent(&mut self, service: &Service) {
        self.facts.agent = service.index();
    }

    /// Known before the caller is authenticated.
    pub(super) fn set_client(&mut self, client: Option<IpAddr>) {
        self.client = client;
    }

    pub(super) fn set_caller(&mut self, principal: &Principal) {
        if self.telemetry.logs_requests() || trace::enabled() {
            self.facts.caller = Some(self.telemetry.callers().pseudonym(principal.owner()));
        }
    }

    pub(super) fn set_operation(&mut self, operation: Operation) {
        self.facts.kind = RequestKind::Operation(operation);
        // Now, not at the end: the name of a span cannot change once the span is started.
        self.facts.span.record("otel.name", self.facts.kind.name());
    }

    pub(super) fn set_generation(&mut self, generation: Generation) {
        self.facts.generation = Some(generation);
    }

    pub(super) fn failed(&mut self, error: &Error) {
        self.facts.outcome = Outcome::Error(error.kind());
        self.facts.cause = error.log().map(str::to_owned);
    }

    pub(super) fn refused(&mut self, kind: ErrorKind) {
        self.facts.outcome = Outcome::Error(kind);
    }

    pub(super) fn replayed(&self) {
        self.telemetry.replayed();
    }

    /// Neither logs nor counts this request. For health probes and scrapes, which would outnumber the requests to agents
    /// on a quiet server.
    pub(super) fn exclude(&mut self) {
        self.done = true;
    }

    /// The answer is a stream: the returned value logs the rest of the request.
    pub(super) fn open_stream(&mut self) -> StreamLog {
        self.done = true;
        let open = self.telemetry.stream(self.facts.labels());
        StreamLog { open, facts: self.facts.clone(), telemetry: self.telemetry.clone(), complete: false }
    }

    fn answered(mut self, response: &Response<Body>) {
        if !self.done {
            self.done = true;
            self.finish(Some(response.status().as_u16()));
        }
    }

    fn finish(&self, status: Option<u16>) {
        self.telemetry.request(self.facts.labels(), self.facts.since.elapsed());
        self.facts.write_line(self.telemetry, status, None);
    }
}

impl Drop for RequestLog<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.facts.outcome = if std::thread::panicking() {
                Outcome::Error(ErrorKind::Internal)
            } else {
                Outcome::ClientGone
            };
            self.finish(None);
        }
    }
}

/// Logs and counts a stream that answers a request. It is dropped when the last byte has been handed to the connection, or
/// when the client has disconnected.
#[derive(Debug)]
pub(super) struct StreamLog {
    open: OpenStream,
    facts: Facts,
    telemetry: Telemetry,
    complete: bool,
}

impl StreamLog {
    pub(super) fn span(&self) -> Span {
        self.facts.span.clone()
    }

    pub(super) fn event(&mut self) {
        self.open.event(self.facts.since);
    }

    pub(super) fn broke(&mut self, error: &Error) {
        self.facts.outcome = Outcome::Error(error.kind());
        self.facts.cause = error.log().map(str::to_owned);
        self.open.broke(self.facts.outcome);
    }

    /// The whole stream has been sent.
    pub(super) fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for StreamLog {
    fn drop(&mut self) {
        if !self.complete && self.facts.outcome == Outcome::Ok {
            self.facts.outcome = Outcome::ClientGone;
        }
        self.facts.write_line(&self.telemetry, Some(200), Some(self.open.events()));
    }
}

impl Facts {
    fn labels(&self) -> RequestLabels {
        let Facts { agent, binding, generation, kind, outcome, .. } = *self;
        RequestLabels { agent, binding, generation, kind, outcome }
    }

    /// Writes one line per request. `error` and `warn` need somebody to fix something; `info` tells operators about the
    /// server's state; `debug` is routine.
    fn write_line(&self, telemetry: &Telemetry, status: Option<u16>, events: Option<u64>) {
        self.describe_span(telemetry, status);
        macro_rules! line {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    name: $message,
                    target: "baton_server::request",
                    parent: &self.span,
                    method = self.method,
                    // The span has it too, but a log of level `info` does not show spans of level `debug`.
                    request.id = %self.id,
                    route = %self.route,
                    agent = telemetry.agent_name(self.agent),
                    binding = self.binding.name(),
                    generation = labels::generation_name(self.generation),
                    operation = self.kind.name(),
                    outcome = self.outcome.name(),
                    status = status.map(i64::from),
                    events,
                    duration_ms = milliseconds(self.since.elapsed()),
                    caller = self.caller.as_deref(),
                    cause = self.cause.as_deref(),
                    $message
                )
            };
        }
        match (self.severity(), telemetry.logs_requests()) {
            (Severity::Fault, _) => line!(error, "a request failed"),
            (Severity::Broken, _) => line!(warn, "a request could not be served"),
            (Severity::Busy, _) => line!(info, "a request was refused"),
            (Severity::Routine, true) => line!(info, "request"),
            (Severity::Routine, false) => line!(debug, "request"),
        }
    }

    fn severity(&self) -> Severity {
        match self.outcome {
            Outcome::Ok | Outcome::ClientGone => Severity::Routine,
            Outcome::Error(ErrorKind::Internal | ErrorKind::InvalidAgentResponse) => Severity::Fault,
            Outcome::Error(ErrorKind::Unavailable | ErrorKind::ResourceExhausted) if self.cause.is_some() => {
                Severity::Broken
            }
            Outcome::Error(
                ErrorKind::Unavailable | ErrorKind::ResourceExhausted | ErrorKind::QuotaExceeded,
            ) => Severity::Busy,
            // Mistakes of clients are reported to the client only.
            Outcome::Error(_) => Severity::Routine,
        }
    }

    /// Sets attributes by OpenTelemetry's conventions for HTTP and RPC.
    fn describe_span(&self, telemetry: &Telemetry, status: Option<u16>) {
        let span = &self.span;
        if span.is_disabled() {
            return;
        }
        trace::attribute(span, "http.request.method", self.method);
        trace::attribute(span, "http.route", &self.route.to_string());
        if let Some(status) = status {
            trace::number(span, "http.response.status_code", i64::from(status));
        }
        match self.binding {
            Binding::JsonRpc => trace::attribute(span, "rpc.system", "jsonrpc"),
            #[cfg(feature = "grpc")]
            Binding::Grpc => trace::attribute(span, "rpc.system", "grpc"),
            Binding::HttpJson | Binding::Card => {}
        }
        trace::attribute(span, "rpc.method", self.kind.name());
        trace::attribute(span, "a2a.binding", self.binding.name());
        trace::attribute(span, "a2a.generation", labels::generation_name(self.generation));
        trace::attribute(span, "a2a.agent", telemetry.agent_name(self.agent));
        if self.outcome != Outcome::Ok {
            trace::attribute(span, "error.type", self.outcome.name());
        }
        if matches!(self.severity(), Severity::Fault | Severity::Broken) {
            trace::set_error(span);
        }
    }
}

/// How much the end of a request matters to operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Routine,
    /// Refused because the server is busy, full or stopping, or by a quota.
    Busy,
    /// The same, and because something is broken (the error has a cause).
    Broken,
    /// An error of the server or the agent.
    Fault,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Unknown => f.write_str("unknown"),
            Route::Fixed(path) => f.write_str(path),
            Route::Operation(before, operation) => write!(f, "{before}{}", path_template(*operation)),
            #[cfg(feature = "grpc")]
            Route::Method(package, operation) => {
                write!(f, "/{}/{}", package.service(), package.method(*operation).unwrap_or_default())
            }
        }
    }
}

/// Paths that monitoring requests all the time; they get no span.
fn is_about_server(path: &str) -> bool {
    matches!(path, METRICS_PATH | HEALTH_PATH | READY_PATH)
}

/// The method as a label. A client may send any word as its method, so unknown ones become `other`.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}
