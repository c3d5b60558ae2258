//! JSON-RPC 2.0 over `POST /`, in all generations, and over `POST /subscribe` for the oldest.

use axum::body::Body;
use baton_protocol::generation::{self, Named};
use baton_protocol::operation::Operation;
use baton_protocol::wire::dialect::Dialect;
use baton_protocol::wire::jsonrpc::{self, NoRequest, RpcId};
use baton_protocol::wire::{v0_1, v0_3};
use baton_protocol::{Error, ErrorKind, Generation, Name};
use http::request::Parts;
use http::{Response, StatusCode};

use super::answer::Envelope;
use super::exchange::Found;
use super::request_log::RequestLog;
use super::{event_stream, incoming, respond};
use crate::auth::{Challenge, Principal};
use crate::service::Service;
use crate::site::Site;

/// The path of the request, below the agent's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Root,
    /// Takes `tasks/sendSubscribe` only.
    Subscribe,
}

impl Endpoint {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Root => "/",
            Self::Subscribe => "/subscribe",
        }
    }
}

/// An error, and what is known of the request for encoding it.
struct Failure {
    id: Option<RpcId>,
    generation: Generation,
    /// Replaces the status that the error table gives.
    status: Option<StatusCode>,
    /// Sends the error as an SSE event: clients of 0.3 that wait for a stream accept no other answer.
    as_event: bool,
    challenge: Challenge,
}

impl<E: Into<Challenge>> From<E> for Failure {
    fn from(error: E) -> Self {
        let challenge = error.into();
        Failure { id: None, generation: Generation::V1, status: None, as_event: false, challenge }
    }
}

impl Failure {
    fn response(self, log: &mut RequestLog<'_>) -> Response<Body> {
        let Failure { id, generation, status, as_event, challenge } = self;
        let error = challenge.error();
        let mut json = Vec::with_capacity(512);
        jsonrpc::write_error(&mut json, id.as_ref(), generation, error);
        let usual = StatusCode::from_u16(error.kind().row().rpc_http);
        let status = status.or(usual.ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let response = if as_event && status == StatusCode::OK {
            event_stream::only_event(&json)
        } else {
            respond::json(status, respond::JSON, json)
        };
        respond::refused(response, &challenge, log)
    }
}

/// `found` is the agent that the path leads to; the request may name another one by its tenant.
pub(super) async fn handle(
    site: &Site,
    found: Option<&Service>,
    principal: &Principal,
    endpoint: Endpoint,
    parts: &Parts,
    body: Body,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    match answer(site, found, principal, endpoint, parts, body, log).await {
        Ok(response) => response,
        Err(failed) => failed.response(log),
    }
}

/// The answer to a caller who is not authenticated. The body has not been read, so id and generation are unknown.
pub(super) fn refuse(challenge: Challenge, log: &mut RequestLog<'_>) -> Response<Body> {
    Failure::from(challenge).response(log)
}

async fn answer(
    site: &Site,
    found: Option<&Service>,
    principal: &Principal,
    endpoint: Endpoint,
    parts: &Parts,
    body: Body,
    log: &mut RequestLog<'_>,
) -> Result<Response<Body>, Failure> {
    incoming::check_content_type(&parts.headers)?;
    let body = incoming::read_body(site.body_limit(found), &parts.headers, body).await?;
    let request =
        jsonrpc::parse_request(&body).map_err(|NoRequest { id, error }| Failure { id, ..error.into() })?;
    let id = request.id;
    if endpoint == Endpoint::Subscribe
        && v0_1::operation_of(&request.method) != Some(Operation::SendStreamingMessage)
    {
        let only = Name::Method(Operation::SendStreamingMessage);
        let message = format!("POST /subscribe takes {only} only; send other methods to POST /");
        let error = Error::new(ErrorKind::InvalidRequest, message);
        return Err(Failure {
            id,
            generation: Generation::V0_1,
            status: Some(StatusCode::BAD_REQUEST),
            as_event: false,
            challenge: error.into(),
        });
    }
    let streams = v0_3::operation_of(&request.method).is_some_and(|operation| operation.facts().streams);
    let mut generation = Generation::V1;
    let prepared = async {
        let asked = incoming::asked_version(parts);
        let named = generation::of_method(&request.method, &asked, site.generations(found))?;
        let (assumed, operation, shared) = match named {
            Named::Generation(generation, operation) => (generation, operation, false),
            // 0.3 and 0.1 have the same method and parameters; the task's own generation decides which it is.
            Named::ByBirth(operation) => (Generation::V0_3, operation, true),
        };
        generation = assumed;
        log.set_operation(operation);
        log.set_generation(assumed);
        let dialect = Dialect::in_jsonrpc(assumed);
        let decoded = dialect.decode_call(operation, request.params)?;
        let found = Found::find(site, found, principal, dialect, (decoded, body.len()), log)?;
        let checked = found.check(site, principal, log);
        if shared {
            // Also of a refusal: a caller of 0.1 that calls too often is told so with the code of 0.1. Boxed: only few requests
            // need its memory.
            match (Box::pin(found.generation_of_task()).await, &checked) {
                (Ok(of_task), _) => generation = of_task,
                (Err(error), Ok(_)) => return Err(error.into()),
                (Err(_), Err(_)) => {}
            }
            log.set_generation(generation);
        }
        let mut exchange = found.allow(checked?, principal, parts, log);
        exchange.answer_in(generation);
        // Checked last, so that other errors are reported first.
        let id = id.clone().ok_or_else(jsonrpc::without_id)?;
        Ok::<_, Challenge>((exchange, id))
    };
    let prepared = prepared.await;
    // Freed now: no limit counts these bytes while the agent works or the answer waits for room.
    drop(body);
    let answer = async {
        let (exchange, id) = prepared?;
        exchange.answer(Envelope::Rpc(id), respond::JSON, parts, log).await
    };
    answer.await.map_err(|challenge: Challenge| {
        let as_event = generation == Generation::V0_3
            && streams
            && incoming::accepts(&parts.headers, "text/event-stream");
        Failure { id, generation, status: None, as_event, challenge }
    })
}
