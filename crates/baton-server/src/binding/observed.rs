//! What is seen of a request from outside: its id, its span, its numbers, its line in the log.
//!
//! Of what a request holds only closed sets get out: the operation, never the path as it was typed; no header, no
//! query, no word of the payload.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use baton_protocol::operation::Operation;
use baton_protocol::{Error, ErrorKind, Generation};
use http::{Method, Request, Response};
use tracing::{Instrument as _, Span};

use super::request_id::{REQUEST_ID, RequestId};
use super::{front, incoming, metrics};
use crate::auth::Principal;
use crate::net::Asker;
use crate::service::Service;
use crate::site::Site;
use crate::telemetry::labels::{self, Asked, Binding, Outcome};
use crate::telemetry::{AgentIndex, OpenStream, Telemetry, Told, milliseconds, trace};

/// The way in of a request that came through a router.
pub(super) async fn handle(State(site): State<Arc<Site>>, request: Request<Body>) -> Response<Body> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    let asker = request.extensions().get::<Asker>().cloned();
    answer(&site, request, peer, asker).await
}

/// The way in of every request. `asker` gets room for its answer, where that is bounded.
pub(super) async fn answer(
    site: &Site,
    request: Request<Body>,
    peer: Option<IpAddr>,
    asker: Option<Asker>,
) -> Response<Body> {
    let mut seen = Observed::new(site.engine().telemetry(), &request, asker);
    let span = &seen.facts.span;
    // A request's future is large, and moving it into a span that nobody sees costs more than all the counting.
    let mut response = if span.is_disabled() {
        front::handle(site, request, peer, &mut seen).await
    } else {
        let span = span.clone();
        Box::pin(front::handle(site, request, peer, &mut seen)).instrument(span).await
    };
    response.headers_mut().insert(REQUEST_ID, seen.facts.id.value());
    seen.answered(&response);
    response
}

/// One request under way. Dropped unanswered, its client has hung up.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    telemetry: &'a Telemetry,
    asker: Option<Asker>,
    facts: Facts,
    over: bool,
}

/// What there is to tell of a request, as far as it is known.
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
    asked: Asked,
    outcome: Outcome,
    /// What only the log may see of an error.
    cause: Option<String>,
    caller: Option<String>,
}

/// A path with names in place of what stood there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Unknown,
    Fixed(&'static str),
    /// Of HTTP+JSON: what stands before the operation's own path.
    Operation(&'static str, Operation),
}

impl<'a> Observed<'a> {
    fn new(telemetry: &'a Telemetry, request: &Request<Body>, asker: Option<Asker>) -> Self {
        let id = RequestId::of(request.headers());
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
            trace::put_below(&span, &caller);
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
            asked: Asked::Unknown,
            outcome: Outcome::Ok,
            cause: None,
            caller: None,
        };
        Observed { telemetry, asker, facts, over: false }
    }

    pub(super) fn asker(&self) -> Option<&Asker> {
        self.asker.as_ref()
    }

    pub(super) fn came_by(&mut self, binding: Binding, route: Route) {
        (self.facts.binding, self.facts.route) = (binding, route);
        if binding == Binding::Card {
            self.facts.asked = Asked::Card;
            self.facts.span.record("otel.name", self.facts.asked.name());
        }
    }

    pub(super) fn agent(&mut self, service: &Service) {
        self.facts.agent = service.index();
    }

    pub(super) fn caller(&mut self, principal: &Principal) {
        if self.telemetry.logs_requests() || trace::wanted() {
            self.facts.caller = Some(self.telemetry.callers().name(&principal.owner));
        }
    }

    pub(super) fn operation(&mut self, operation: Operation) {
        self.facts.asked = Asked::Operation(operation);
        // At once: a span that has been started keeps its name.
        self.facts.span.record("otel.name", self.facts.asked.name());
    }

    pub(super) fn generation(&mut self, generation: Generation) {
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

    /// The request is about the server itself: it is not counted with those to agents, or a scrape would be what a
    /// quiet server does most.
    pub(super) fn pass_over(&mut self) {
        self.over = true;
    }

    /// The answer is a stream, which is watched from here on.
    pub(super) fn stream(&mut self) -> Watched {
        self.over = true;
        let open = self.telemetry.stream(self.facts.told());
        Watched { open, facts: self.facts.clone(), telemetry: self.telemetry.clone(), complete: false }
    }

    fn answered(mut self, response: &Response<Body>) {
        if !self.over {
            self.over = true;
            self.finish(Some(response.status().as_u16()));
        }
    }

    fn finish(&self, status: Option<u16>) {
        self.telemetry.request(self.facts.told(), self.facts.since.elapsed());
        self.facts.tell(self.telemetry, status, None);
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.facts.outcome = if std::thread::panicking() {
                Outcome::Error(ErrorKind::Internal)
            } else {
                Outcome::ClientGone
            };
            self.finish(None);
        }
    }
}

/// A stream that answers a request, until its last byte is handed over or its reader is gone.
#[derive(Debug)]
pub(super) struct Watched {
    open: OpenStream,
    facts: Facts,
    telemetry: Telemetry,
    complete: bool,
}

impl Watched {
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

    /// All has been shown.
    pub(super) fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.complete && self.facts.outcome == Outcome::Ok {
            self.facts.outcome = Outcome::ClientGone;
        }
        self.facts.tell(&self.telemetry, Some(200), Some(self.open.events()));
    }
}

impl Facts {
    fn told(&self) -> Told {
        let Facts { agent, binding, generation, asked, outcome, .. } = *self;
        Told { agent, binding, generation, asked, outcome }
    }

    /// One line per request, whose level says whom it concerns: `error` and `warn` somebody who mends things, `info`
    /// somebody who looks after the server, `debug` nobody.
    fn tell(&self, telemetry: &Telemetry, status: Option<u16>, events: Option<u64>) {
        self.describe_span(telemetry, status);
        macro_rules! line {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    name: $message,
                    target: "baton_server::request",
                    parent: &self.span,
                    method = self.method,
                    // The span says it too, but a log of level `info` does not show that.
                    request.id = %self.id,
                    route = %self.route,
                    agent = telemetry.agent_name(self.agent),
                    binding = self.binding.name(),
                    generation = labels::generation_name(self.generation),
                    operation = self.asked.name(),
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
        match (self.weight(), telemetry.logs_requests()) {
            (Weight::Fault, _) => line!(error, "a request failed"),
            (Weight::Trouble, _) => line!(warn, "a request could not be served"),
            (Weight::State, _) => line!(info, "a request was refused"),
            (Weight::Usual, true) => line!(info, "request"),
            (Weight::Usual, false) => line!(debug, "request"),
        }
    }

    fn weight(&self) -> Weight {
        match self.outcome {
            Outcome::Ok | Outcome::ClientGone => Weight::Usual,
            Outcome::Error(ErrorKind::Internal | ErrorKind::InvalidAgentResponse) => Weight::Fault,
            Outcome::Error(ErrorKind::Unavailable | ErrorKind::ResourceExhausted) if self.cause.is_some() => {
                Weight::Trouble
            }
            Outcome::Error(
                ErrorKind::Unavailable | ErrorKind::ResourceExhausted | ErrorKind::QuotaExceeded,
            ) => Weight::State,
            // What a client did wrong is told to the client.
            Outcome::Error(_) => Weight::Usual,
        }
    }

    /// In the words of OpenTelemetry's conventions for HTTP and RPC.
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
        if self.binding == Binding::JsonRpc {
            trace::attribute(span, "rpc.system", "jsonrpc");
        }
        trace::attribute(span, "rpc.method", self.asked.name());
        trace::attribute(span, "a2a.binding", self.binding.name());
        trace::attribute(span, "a2a.generation", labels::generation_name(self.generation));
        trace::attribute(span, "a2a.agent", telemetry.agent_name(self.agent));
        if self.outcome != Outcome::Ok {
            trace::attribute(span, "error.type", self.outcome.name());
        }
        if matches!(self.weight(), Weight::Fault | Weight::Trouble) {
            trace::fault(span);
        }
    }
}

/// Whom a request's end concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Usual,
    /// Refused for the state the server is in.
    State,
    /// The same, and something is broken.
    Trouble,
    Fault,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Unknown => f.write_str("unknown"),
            Route::Fixed(path) => f.write_str(path),
            Route::Operation(before, operation) => write!(f, "{before}{}", path_of(*operation)),
        }
    }
}

fn path_of(operation: Operation) -> &'static str {
    match operation {
        Operation::SendMessage => "/message:send",
        Operation::SendStreamingMessage => "/message:stream",
        Operation::GetTask => "/tasks/{id}",
        Operation::ListTasks => "/tasks",
        Operation::CancelTask => "/tasks/{id}:cancel",
        Operation::SubscribeToTask => "/tasks/{id}:subscribe",
        Operation::CreatePushConfig | Operation::ListPushConfigs => "/tasks/{id}/pushNotificationConfigs",
        Operation::GetPushConfig | Operation::DeletePushConfig => {
            "/tasks/{id}/pushNotificationConfigs/{configId}"
        }
        Operation::GetExtendedCard => "/extendedAgentCard",
    }
}

/// What monitors ask all day long, and nobody wants to see traces of.
fn is_about_server(path: &str) -> bool {
    matches!(path, metrics::PATH | "/healthz" | "/readyz")
}

/// A method may be any word; only those that mean something are repeated.
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
