//! JSON-RPC 2.0 over `POST /`, in all generations, and over `POST /subscribe` for the oldest.

use std::borrow::Cow;

use axum::body::Body;
use baton_protocol::domain::Scope;
use baton_protocol::generation::{self, Generations, Named};
use baton_protocol::operation::{Call, Operation};
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::jsonrpc::{self, NoRequest, RpcId};
use baton_protocol::wire::{Decoded, v0_1, v0_3, v1};
use baton_protocol::{Error, ErrorKind, Generation, Name};
use http::request::Parts;
use http::{Request, Response, StatusCode};

use super::event_stream::{self, Envelope};
use super::observed::{Observed, Route};
use super::{incoming, respond, stored_answer};
use crate::auth::Principal;
use crate::service::{CallContext, Outcome, Service};
use crate::site::Site;
use crate::telemetry::labels::Binding;

/// Where the request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Root,
    /// Takes `tasks/sendSubscribe` alone.
    Subscribe,
}

impl Door {
    fn path(self) -> &'static str {
        match self {
            Self::Root => "/",
            Self::Subscribe => "/subscribe",
        }
    }
}

/// What an error is spelled in, as far as the request was understood.
struct Failed {
    id: Option<RpcId>,
    generation: Generation,
    /// Overrules the table where a door has a rule of its own.
    status: Option<StatusCode>,
    /// The asker waits for events: clients of 0.3 take nothing else, not even for an error.
    as_event: bool,
    error: Error,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed { id: None, generation: Generation::V1, status: None, as_event: false, error }
    }
}

impl From<NoRequest> for Failed {
    fn from(NoRequest { id, error }: NoRequest) -> Self {
        Failed { id, ..error.into() }
    }
}

/// `service` is the agent the path leads to; the request may name the tenant of another.
pub(super) async fn handle(
    site: &Site,
    service: Option<&Service>,
    door: Door,
    request: Request<Body>,
    seen: &mut Observed<'_>,
) -> Response<Body> {
    seen.came_by(Binding::JsonRpc, Route::Fixed(door.path()));
    let (parts, body) = request.into_parts();
    match answer(site, service, door, &parts, body, seen).await {
        Ok(response) => response,
        Err(Failed { id, generation, status, as_event, error }) => {
            let mut json = Vec::with_capacity(512);
            jsonrpc::write_error(&mut json, id.as_ref(), generation, &error);
            let usual = StatusCode::from_u16(error.kind().row().rpc_http);
            let status = status.or(usual.ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let response = if as_event && status == StatusCode::OK {
                event_stream::only_event(&json)
            } else {
                respond::json(status, respond::JSON, json)
            };
            respond::error(response, &error, seen)
        }
    }
}

async fn answer(
    site: &Site,
    found: Option<&Service>,
    door: Door,
    parts: &Parts,
    body: Body,
    seen: &mut Observed<'_>,
) -> Result<Response<Body>, Failed> {
    let principal = site.authenticator().authenticate(&parts.headers).await?;
    seen.caller(&principal);
    incoming::check_content_type(&parts.headers)?;
    let body = incoming::read_body(site.body_limit(found), &parts.headers, body).await?;
    let request = jsonrpc::parse_request(&body)?;
    let id = request.id;
    let mut generation = Generation::V1;
    if door == Door::Subscribe && v0_1::operation_of(&request.method) != Some(Operation::SendStreamingMessage)
    {
        let only = Name::Method(Operation::SendStreamingMessage);
        let message = format!("POST /subscribe takes {only} only; send other methods to POST /");
        let error = Error::new(ErrorKind::InvalidRequest, message);
        return Err(Failed {
            id,
            generation: Generation::V0_1,
            status: Some(StatusCode::BAD_REQUEST),
            as_event: false,
            error,
        });
    }
    let extensions = incoming::extensions(&parts.headers);
    let streams = v0_3::operation_of(&request.method).is_some_and(|operation| operation.facts().streams);
    let decoded = async {
        let served = found.map_or(Generations::ALL, Service::generations);
        let named = generation::of_method(&request.method, &incoming::asked_version(parts), served)?;
        let (Named::Generation(_, operation) | Named::ByBirth(operation)) = named;
        seen.operation(operation);
        let decoding = decode(found, &principal, named, request.params, &mut generation).await;
        seen.generation(generation);
        let (dialect, decoded) = decoding?;
        let service = site.of_tenant(found, decoded.tenant.as_deref())?;
        seen.agent(service);
        service.generations().check(generation)?;
        let facts = facts(service, &decoded.call);
        let context = CallContext {
            scope: service.scope(&principal, decoded.tenant.as_deref())?,
            generation,
            last_event_id: incoming::header(&parts.headers, &incoming::LAST_EVENT_ID).map(Cow::into_owned),
            extensions: extensions.clone(),
            trace: incoming::trace(&parts.headers),
            asker: seen.asker().cloned(),
        };
        // Looked at last, so that the caller learns first what else is wrong.
        let id = id.as_ref().ok_or_else(jsonrpc::without_id)?;
        Ok((id, service, dialect, facts, context, decoded.call))
    };
    let decoded: Result<_, Error> = decoded.await;
    // Nobody counts what lies here while an agent works, or while the answer waits for room.
    drop(body);
    let outcome = async {
        let (id, service, dialect, facts, context, call) = decoded?;
        Ok::<_, Error>((id, service, dialect, facts, service.dispatch(&context, call).await?))
    };
    match outcome.await {
        Ok((id, service, dialect, facts, Outcome::Reply { reply, replayed, share })) => {
            let mut json = Vec::with_capacity(1024);
            jsonrpc::write_result(&mut json, id, |out| dialect.write_reply(out, &reply, &facts));
            drop(reply);
            let json = match respond::held(json, share, seen) {
                Ok(json) => json,
                Err(error) => {
                    return Err(Failed {
                        id: Some(id.clone()),
                        generation,
                        status: None,
                        as_event: false,
                        error,
                    });
                }
            };
            let response = respond::json(StatusCode::OK, respond::JSON, json);
            Ok(respond::answered(response, service, &extensions, replayed, seen))
        }
        Ok((id, service, _, _, Outcome::Stored { json, share, sent, replayed })) => {
            let (before, after) = v1::around_stored_reply(sent);
            let mut out = Vec::with_capacity(128 + stored_answer::copied(&json));
            jsonrpc::result_prefix(&mut out, id);
            out.extend_from_slice(before);
            let mut end = Vec::with_capacity(2);
            end.extend_from_slice(after);
            jsonrpc::result_suffix(&mut end);
            let body = stored_answer::body(out, json, &end, share);
            let response = respond::json(StatusCode::OK, respond::JSON, body);
            Ok(respond::answered(response, service, &extensions, replayed, seen))
        }
        Ok((id, service, dialect, facts, Outcome::Stream { stream, replayed })) => {
            let keep_alive = service.limits().keep_alive;
            let envelope = Envelope::rpc(id.clone());
            let watched = seen.stream();
            let response =
                event_stream::response(stream, dialect, facts, envelope, keep_alive, parts.version, watched);
            Ok(respond::answered(response, service, &extensions, replayed, seen))
        }
        Err(error) => {
            let as_event = generation == Generation::V0_3
                && streams
                && incoming::accepts(&parts.headers, "text/event-stream");
            Err(Failed { id, generation, status: None, as_event, error })
        }
    }
}

/// The call in the dialect of its generation. `generation` is set as soon as it is known, for errors to be spelled in.
async fn decode(
    service: Option<&Service>,
    principal: &Principal,
    named: Named,
    params: Option<&str>,
    generation: &mut Generation,
) -> Result<(Dialect, Decoded), Error> {
    let (dialect, operation) = match named {
        Named::Generation(Generation::V1, operation) => (Dialect::V1, operation),
        Named::Generation(Generation::V0_3, operation) => (Dialect::V0_3, operation),
        Named::Generation(Generation::V0_1, operation) => (Dialect::V0_1, operation),
        Named::ByBirth(operation) => {
            *generation = Generation::V0_3;
            // The shared names have the same params, so either dialect finds the task they speak of.
            let decoded = Dialect::V0_3.decode_call(operation, params)?;
            let born = match service {
                Some(service) => birth(service, &service.scope(principal, None)?, &decoded.call).await?,
                None => None,
            };
            let dialect = if born == Some(Generation::V0_1) { Dialect::V0_1 } else { Dialect::V0_3 };
            (dialect, operation)
        }
    };
    *generation = dialect.generation();
    Ok((dialect, dialect.decode_call(operation, params)?))
}

async fn birth(service: &Service, scope: &Scope, call: &Call) -> Result<Option<Generation>, Error> {
    let task = match call {
        Call::GetTask(get) => &get.id,
        Call::CancelTask(cancel) => &cancel.id,
        Call::SubscribeToTask(subscribe) => &subscribe.id,
        _ => return Ok(None),
    };
    service.birth_of(scope, task).await
}

fn facts(service: &Service, call: &Call) -> AnswerFacts {
    let (task_id, history_length) = match call {
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => {
            (send.client_task_id.clone(), send.history_length)
        }
        Call::GetTask(get) => (None, get.history_length),
        _ => return AnswerFacts { state_history: service.shows_state_history(), ..AnswerFacts::default() },
    };
    AnswerFacts { state_history: service.shows_state_history(), history_length, task_id }
}
