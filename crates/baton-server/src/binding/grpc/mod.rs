//! gRPC: the services of 1.0 and 0.3, over HTTP/2 on the server's own port.
//!
//! The framing is written here and not tonic's: its server copies each message into a buffer of its own, and an answer would
//! lose its share of the room for answers before it is sent.

mod body;
mod deadline;
mod frames;
pub(super) mod health;
mod message;
mod messages;
pub(super) mod reflection;
mod status;

use std::sync::Arc;

use axum::body::Body;
use baton_protocol::error::GrpcCode;
use baton_protocol::generation::{self, AskedVersion, Generations};
use baton_protocol::operation::Operation;
use baton_protocol::wire::pb::{HEALTH_SERVICE, Package, REFLECTION_SERVICES, Reflection};
use baton_protocol::{Error, ErrorKind};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use tokio::time::{Instant, timeout_at};

use super::answer::AnswerFormat;
use super::event_stream::{self, Bounds};
use super::exchange::Found;
use super::request_log::{RequestLog, Route, StreamLog};
use super::{incoming, respond};
use crate::auth::{Challenge, Principal};
use crate::engine::EventStream;
use crate::service::Service;
use crate::site::Site;

pub(super) use self::body::body;
pub(super) use self::deadline::Deadline;
pub(crate) use baton_protocol::wire::pb::resume::RESUME;

use self::frames::Frames;
use self::status::Ending;

pub(super) const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");

/// What is served over gRPC beside A2A.
#[derive(Debug, Default)]
pub(crate) struct GrpcServices {
    pub(crate) health: bool,
    pub(crate) reflection: Option<Arc<Reflection>>,
}

impl GrpcServices {
    pub(crate) fn new(health: bool, reflection: bool) -> Self {
        let mut all = Package::ALL.map(Package::service).to_vec();
        all.extend(health.then_some(HEALTH_SERVICE));
        all.extend(REFLECTION_SERVICES);
        GrpcServices { health, reflection: reflection.then(|| Arc::new(Reflection::new(&all))) }
    }
}

/// The paths of a health service: also those that are answered while the server stops, whatever the name of the host.
pub(crate) fn health_paths() -> [String; 2] {
    ["Check", "Watch"].map(|method| format!("/{HEALTH_SERVICE}/{method}"))
}

/// How a call is answered.
pub(super) struct GrpcFormat {
    pub(super) package: Package,
    deadline: Option<Instant>,
}

/// What a path calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Called {
    /// The package in whose form errors are told: the path's, or that of 1.0.
    package: Package,
    operation: Option<Operation>,
}

impl Called {
    /// `path` is the request's path without the agent's prefix.
    pub(super) fn of(path: &str) -> Self {
        let (package, operation) = match Package::of_path(path) {
            Some((package, operation)) => (package, Some(operation)),
            None => {
                let service = path.trim_start_matches('/').split('/').next().unwrap_or_default();
                let named = Package::ALL.into_iter().find(|package| package.service() == service);
                (named.unwrap_or(Package::V1), None)
            }
        };
        Called { package, operation }
    }

    /// The template of the path.
    pub(super) fn route(self) -> Route {
        self.operation.map_or(Route::Unknown, |operation| Route::Method(self.package, operation))
    }
}

/// Why a call is refused, and the code of gRPC itself where its own rules name another than the error's.
struct Refused {
    challenge: Challenge,
    code: Option<GrpcCode>,
}

impl<E: Into<Challenge>> From<E> for Refused {
    fn from(error: E) -> Self {
        Refused { challenge: error.into(), code: None }
    }
}

/// Whether a request is a call of gRPC. gRPC-Web and JSON messages, whose types begin alike, are not spoken.
pub(super) fn is_call<B>(request: &Request<B>) -> bool {
    if *request.method() != Method::POST {
        return false;
    }
    let Some(kind) = incoming::header(request.headers(), &CONTENT_TYPE) else { return false };
    // Of two different types neither counts.
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["application/grpc", "application/grpc+proto"].iter().any(|ours| kind.eq_ignore_ascii_case(ours))
}

/// The answer to a call that no agent can get: gRPC is off, or the call came without HTTP/2. A client of gRPC would show an answer
/// of HTTP as a riddle.
pub(super) fn not_served(version: Version) -> Response<Body> {
    if version != Version::HTTP_2 {
        let text = "gRPC needs HTTP/2 from end to end: a proxy on the way has to forward it as such\n";
        return respond::plain(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text);
    }
    let message = "gRPC is off on this server; `grpc = true` in its configuration, or --grpc, switches it on";
    plain_failure(&Ending::saying(GrpcCode::Unimplemented, message))
}

/// Refuses a call whose metadata names another version than the service's, in the words of gRPC: its keys are lower-case, and some
/// libraries refuse others.
fn check_version(asked: &AskedVersion, package: Package, served: Generations) -> Result<(), Error> {
    let generation = package.generation();
    served.check(generation)?;
    let Err(refused) = generation::check_path(asked, generation, served) else { return Ok(()) };
    let said = match asked {
        AskedVersion::Unsaid => "this call named none, which counts as 0.3".to_owned(),
        AskedVersion::Known(said) => format!("this call named {}", said.version()),
        AskedVersion::Unknown(said) => {
            format!("this call named {:?}", said.chars().take(32).collect::<String>())
        }
    };
    let (service, version) = (package.service(), generation.version());
    let message =
        format!("{service} is of A2A {version}: send the metadata `a2a-version: {version}`; {said}");
    Err(Error::new(refused.kind(), message))
}

/// `found` is the agent that the path leads to; the request may name another one by its tenant.
#[allow(clippy::too_many_arguments, reason = "each is a part of one request")]
pub(super) async fn handle(
    site: &Site,
    found: Option<&Service>,
    principal: &Principal,
    called: Called,
    deadline: Deadline,
    parts: &Parts,
    body: Body,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    let answered = match deadline.checked() {
        Ok(deadline) => {
            // What the call began goes on after its deadline, as it does when a client goes away.
            in_time(deadline, answer(site, found, principal, called, deadline, parts, body, log)).await
        }
        Err(error) => Err(error.into()),
    };
    answered.unwrap_or_else(|refused| failed(called, &refused, log))
}

/// Does the work, unless the deadline has passed or passes meanwhile.
async fn in_time<T, E: From<Error>>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match deadline {
        Some(deadline) if deadline <= Instant::now() => Err(Error::of(ErrorKind::DeadlineExceeded).into()),
        Some(deadline) => {
            let done = timeout_at(deadline, work).await;
            done.unwrap_or_else(|_| Err(Error::of(ErrorKind::DeadlineExceeded).into()))
        }
        None => work.await,
    }
}

/// The answer to a caller who is not authenticated.
pub(super) fn refuse(called: Called, challenge: Challenge, log: &mut RequestLog<'_>) -> Response<Body> {
    failed(called, &challenge.into(), log)
}

#[allow(clippy::too_many_arguments, reason = "each is a part of one request")]
async fn answer(
    site: &Site,
    found: Option<&Service>,
    principal: &Principal,
    called: Called,
    deadline: Option<Instant>,
    parts: &Parts,
    body: Body,
    log: &mut RequestLog<'_>,
) -> Result<Response<Body>, Refused> {
    let Called { package, operation } = called;
    let Some(operation) = operation else {
        let [one, other] = Package::ALL.map(Package::service);
        let message = format!("This server has no such method; its services are {one} and {other}");
        return Err(Error::new(ErrorKind::MethodNotFound, message).into());
    };
    log.set_operation(operation);
    log.set_generation(package.generation());
    message::check_encoding(&parts.headers)?;
    check_version(&incoming::asked_version(parts), package, site.generations(found))?;
    let message = message::read(site.body_limit(found), &parts.headers, body).await?;
    let size = message.len();
    let decoded = (package.decode_call(operation, message)?, size);
    let found = Found::find(site, found, principal, package.dialect(), decoded, log)?;
    let checked = found.check(site, principal, log)?;
    let mut exchange = found.allow(checked, principal, parts, log);
    // Numbers in the metadata of gRPC are doubles, and some languages write them so.
    if let Some(number) =
        exchange.context.last_event_id.as_mut().filter(|it| it.len() > 2 && it.ends_with(".0"))
    {
        number.truncate(number.len() - 2);
    }
    let format = AnswerFormat::Grpc(GrpcFormat { package, deadline });
    Ok(exchange.answer_as(format, parts, log).await?)
}

/// A call that ends without an answer: its status comes in the headers.
fn failed(called: Called, refused: &Refused, log: &mut RequestLog<'_>) -> Response<Body> {
    let error = refused.challenge.error();
    let mut ending = Ending::of(called.package, error);
    if let Some(code) = refused.code {
        ending.code = code;
    }
    let mut response = respond::json(StatusCode::OK, MEDIA_TYPE, Body::empty());
    response.headers_mut().extend(ending.trailers());
    message::advise(response.headers_mut());
    respond::refused(response, &refused.challenge, log)
}

/// The same for a service that is not of A2A, whose errors have no details.
fn plain_failure(ending: &Ending) -> Response<Body> {
    let mut response = respond::json(StatusCode::OK, MEDIA_TYPE, Body::empty());
    response.headers_mut().extend(ending.trailers());
    message::advise(response.headers_mut());
    response
}

/// A stream of events. `numbered`: they carry their numbers.
pub(super) fn stream(
    stream: EventStream,
    format: GrpcFormat,
    numbered: bool,
    bounds: Bounds,
    log: StreamLog,
) -> Response<Body> {
    let GrpcFormat { package, deadline } = format;
    let body = event_stream::body(stream, Frames::new(package, numbered, deadline), bounds, log);
    respond::json(StatusCode::OK, MEDIA_TYPE, body)
}
