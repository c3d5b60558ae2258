//! What every binding does between a decoded call and its answer: find the agent, check that the caller is allowed to call
//! it, let the service execute the call, encode the outcome.

use std::borrow::Cow;

use axum::body::Body;
use baton_protocol::generation::AskedVersion;
use baton_protocol::operation::{Call, Operation};
use baton_protocol::wire::Decoded;
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::{Error, ErrorKind, Generation};
use http::request::Parts;
use http::{HeaderValue, Response};

use super::agent_card;
use super::answer::{self, AnswerFormat, Envelope};
use super::incoming;
use super::request_log::RequestLog;
use crate::auth::{Access, Challenge, Principal, SkillPermission};
use crate::engine::caller::Caller;
use crate::service::{CallContext, Outcome, Service};
use crate::site::Site;

/// A call that has passed all checks and can be executed.
pub(super) struct Exchange<'a> {
    service: &'a Service,
    context: CallContext,
    call: Call,
    dialect: Dialect,
    facts: AnswerFacts,
}

impl<'a> Exchange<'a> {
    /// `found` is the agent that the path leads to; the call may name another one by its tenant.
    pub(super) fn prepare(
        site: &'a Site,
        found: Option<&'a Service>,
        principal: &Principal,
        dialect: Dialect,
        decoded: Decoded,
        parts: &Parts,
        log: &mut RequestLog<'_>,
    ) -> Result<Self, Challenge> {
        let Decoded { tenant, call } = decoded;
        let service = site.of_tenant(found, tenant.as_deref())?;
        log.set_agent(service);
        // The tenant may belong to another agent, whose card allows other generations.
        service.generations().check(dialect.generation())?;
        let scope = service.scope(principal, tenant.as_deref())?;
        // The body may have taken long, and the credential may have been revoked meanwhile.
        check_validity(principal)?;
        let (operation, authenticator) = (call.operation(), site.authenticator());
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
        facts.is_unversioned =
            operation == Operation::GetExtendedCard && incoming::asked_version(parts) == AskedVersion::Unsaid;
        Ok(Exchange { service, context, call, dialect, facts })
    }

    /// For a call that is the same in 0.3 and 0.1, which was decoded as 0.3: answers in the generation of the task that it
    /// is about.
    pub(super) async fn in_generation_of_task(mut self) -> Result<Self, Error> {
        let generation = self.service.generation_of(&self.context.scope, &self.call).await?;
        (self.context.generation, self.dialect) = (generation, Dialect::in_jsonrpc(generation));
        Ok(self)
    }

    pub(super) fn generation(&self) -> Generation {
        self.context.generation
    }

    /// Boxed, so that its memory is not needed until the body has been read and decoded.
    pub(super) fn answer(
        self,
        envelope: Envelope,
        media_type: HeaderValue,
        parts: &Parts,
        log: &mut RequestLog<'_>,
    ) -> impl Future<Output = Result<Response<Body>, Challenge>> {
        Box::pin(async move {
            let (service, context) = (self.service, self.context);
            let answered = service.dispatch(&context, self.call).await.map_err(|error| {
                // A refusal by the skill's own requirements has headers, too.
                let refused = context.permission.as_ref().and_then(SkillPermission::refused);
                refused.unwrap_or_else(|| error.into())
            })?;
            // The agent may have worked for long.
            check_validity(&context.principal)?;
            let answered = match answered.outcome {
                Outcome::Card(card) => {
                    let card = agent_card::with_addresses(service, *card, log.peer(), parts);
                    Outcome::Card(Box::new(card)).fresh(None)
                }
                _ => answered,
            };
            let (dialect, facts) = (self.dialect, self.facts);
            let format = AnswerFormat { dialect, facts, envelope, media_type, http: parts.version };
            Ok(answer::response(service, &context, answered, format, log).await?)
        })
    }
}

/// Refuses a caller whose credential has expired or been revoked since it was verified.
fn check_validity(principal: &Principal) -> Result<(), Error> {
    if principal.is_still_valid() { Ok(()) } else { Err(no_longer_valid()) }
}

/// The error for such a caller.
pub(super) fn no_longer_valid() -> Error {
    Error::new(ErrorKind::Unauthenticated, "The credential is no longer valid")
}
