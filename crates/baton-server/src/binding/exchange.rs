//! What every binding does between a decoded call and its answer: find the agent, check that the caller is allowed to call
//! it, let the service execute the call, encode the outcome.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use axum::body::Body;
use baton_protocol::domain::Scope;
use baton_protocol::generation::AskedVersion;
use baton_protocol::operation::{Call, Operation};
use baton_protocol::wire::Decoded;
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::{Error, Generation};
use http::request::Parts;
use http::{HeaderValue, Response};

use super::agent_card;
use super::answer::{self, AnswerFormat, Envelope, JsonFormat};
use super::incoming;
use super::request_log::RequestLog;
use crate::auth::{Access, Authenticator, Challenge, Principal, SkillPermission};
use crate::engine::caller::Caller;
use crate::service::{CallContext, Outcome, Service};
use crate::site::Site;

/// A call whose agent is found; it is not known yet whether the caller may make it.
pub(super) struct Found<'a> {
    service: &'a Service,
    authenticator: &'a dyn Authenticator,
    scope: Scope,
    call: Call,
    dialect: Dialect,
}

/// A call that has passed all checks and can be executed.
pub(super) struct Exchange<'a> {
    service: &'a Service,
    authenticator: &'a dyn Authenticator,
    pub(super) context: CallContext,
    call: Call,
    dialect: Dialect,
    facts: AnswerFacts,
}

impl<'a> Found<'a> {
    /// `found` is the agent that the path leads to; the call, of `size` bytes, may name another one by its tenant.
    pub(super) fn find(
        site: &'a Site,
        found: Option<&'a Service>,
        principal: &Principal,
        dialect: Dialect,
        (decoded, size): (Decoded, usize),
        log: &mut RequestLog<'_>,
    ) -> Result<Self, Challenge> {
        let Decoded { tenant, call } = decoded;
        let service = site.of_tenant(found, tenant.as_deref())?;
        log.set_agent(service);
        // The tenant may belong to another agent, with another card and other limits than the one whose path it is.
        service.generations().check(dialect.generation())?;
        incoming::check_size(size, service.limits().max_body_bytes)?;
        let scope = service.scope(principal, tenant.as_deref())?;
        Ok(Found { service, authenticator: &**site.authenticator(), scope, call, dialect })
    }

    /// For a call that is the same in 0.3 and 0.1, which was decoded as 0.3: the generation of the task that it is about.
    pub(super) async fn generation_of_task(&self) -> Result<Generation, Error> {
        self.service.generation_of(&self.scope, &self.call).await
    }

    /// Refuses a caller who may not make the call, or makes too many.
    pub(super) fn check(
        &self,
        site: &Site,
        principal: &Principal,
        log: &RequestLog<'_>,
    ) -> Result<Checked, Challenge> {
        let Found { service, scope, call, .. } = self;
        let (operation, authenticator) = (call.operation(), site.authenticator());
        // The body may have taken long, and the credential may have been revoked meanwhile.
        check_validity(&**authenticator, principal)?;
        let declared = service.card().declared();
        let access = Access {
            agent: service.id(),
            tenant: &scope.tenant,
            operation,
            skill: None,
            requirements: &declared.security_requirements,
            card: Some(declared.shared()),
        };
        authenticator.authorize(principal, &access)?;
        let sends = matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage);
        let permission = if sends && authenticator.enforces() {
            let of = (service.shared_id(), &scope.tenant);
            SkillPermission::new(authenticator, principal, of, operation, declared.shared())
        } else {
            None
        };
        let caller = Caller::of(principal, log.client());
        site.admit(&caller, operation)?;
        Ok(Checked { caller, permission })
    }

    pub(super) fn allow(
        self,
        checked: Checked,
        principal: &Principal,
        parts: &Parts,
        log: &RequestLog<'_>,
    ) -> Exchange<'a> {
        let Found { service, authenticator, scope, call, dialect } = self;
        let Checked { caller, permission } = checked;
        let context = CallContext {
            caller,
            scope,
            generation: dialect.generation(),
            last_event_id: incoming::header(&parts.headers, &incoming::LAST_EVENT_ID).map(Cow::into_owned),
            extensions: incoming::extensions(&parts.headers),
            trace: incoming::trace(&parts.headers),
            permission,
            principal: principal.clone(),
            asker: log.asker().cloned(),
        };
        let mut facts = service.answer_facts(&call);
        facts.is_unversioned = call.operation() == Operation::GetExtendedCard
            && incoming::asked_version(parts) == AskedVersion::Unsaid;
        Exchange { service, authenticator, context, call, dialect, facts }
    }
}

/// What [`Found::check`] found out about the caller.
pub(super) struct Checked {
    caller: Caller,
    permission: Option<SkillPermission>,
}

impl Exchange<'_> {
    /// Answers in the generation of the task that the call is about: see [`Found::generation_of_task`].
    pub(super) fn answer_in(&mut self, generation: Generation) {
        (self.context.generation, self.dialect) = (generation, Dialect::in_jsonrpc(generation));
    }

    /// As JSON.
    pub(super) fn answer(
        mut self,
        envelope: Envelope,
        media_type: HeaderValue,
        parts: &Parts,
        log: &mut RequestLog<'_>,
    ) -> impl Future<Output = Result<Response<Body>, Challenge>> {
        let (dialect, facts, http) = (self.dialect, std::mem::take(&mut self.facts), parts.version);
        let format = AnswerFormat::Json(JsonFormat { dialect, facts, envelope, media_type, http });
        self.answer_as(format, parts, log)
    }

    /// Boxed, so that its memory is not needed until the body has been read and decoded.
    pub(super) fn answer_as(
        self,
        format: AnswerFormat,
        parts: &Parts,
        log: &mut RequestLog<'_>,
    ) -> impl Future<Output = Result<Response<Body>, Challenge>> {
        Box::pin(async move {
            let (service, context, operation) = (self.service, self.context, self.call.operation());
            // In its place: moved, it would be copied, and it is large.
            let mut dispatched = pin!(service.dispatch(&context, self.call));
            let answered = if may_wait_long(operation) {
                let valid = while_valid(&context.principal, dispatched.as_mut());
                valid.await.ok_or_else(|| self.authenticator.no_longer_valid(&context.principal))?
            } else {
                dispatched.await
            };
            let answered = answered.map_err(|error| {
                // A refusal by the skill's own requirements has headers, too.
                let refused = context.permission.as_ref().and_then(SkillPermission::refused);
                refused.unwrap_or_else(|| error.into())
            })?;
            // Asked once more: a credential that has just expired must not be told anything either.
            check_validity(self.authenticator, &context.principal)?;
            let answered = match answered.outcome {
                Outcome::Card(card) => {
                    let card = agent_card::with_addresses(service, *card, log.peer(), parts);
                    // Older generations have no rule for what is signed of a card that is not a document.
                    let card = match self.dialect.generation() {
                        Generation::V1 => service.card().signed_v1(card),
                        Generation::V0_3 | Generation::V0_1 => card,
                    };
                    Outcome::Card(Box::new(card)).fresh(None)
                }
                _ => answered,
            };
            Ok(answer::response(service, &context, answered, format, log).await?)
        })
    }
}

/// Whether the operation waits for an agent. The others wait for the store only, and for room for a large answer, at most
/// [`Connections::room_wait`](crate::Connections::room_wait); then the credential is asked for, too.
fn may_wait_long(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::CancelTask
            | Operation::SubscribeToTask
    )
}

/// Does the work while the caller's credentials are valid; `None` as soon as they are not. Dropping the work is what happens as
/// well if the client goes away: what it began goes on without it. A caller who is answered at once pays nothing for this.
async fn while_valid<T>(principal: &Principal, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        return Some(done);
    }
    let Some(until_invalid) = principal.until_invalid() else { return Some(work.await) };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = until_invalid => None,
    }
}

/// Refuses a caller whose credential has expired or been revoked since it was verified.
fn check_validity(authenticator: &dyn Authenticator, principal: &Principal) -> Result<(), Challenge> {
    if principal.is_still_valid() { Ok(()) } else { Err(authenticator.no_longer_valid(principal)) }
}
