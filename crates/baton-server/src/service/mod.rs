//! The rules of each operation, independent of transport and encoding: [`Service::dispatch`] takes a decoded call and
//! returns a value ([`Outcome`]).

mod capability;
mod cursor;
mod file_urls;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod list;
mod media;
mod message_hash;
pub(crate) mod outcome;
mod push;
pub(crate) mod rates;
mod room;
mod send;
mod subscribe;

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use baton_protocol::domain::{ActiveExtension, AgentCard, Scope, TraceContext};
use baton_protocol::generation::Generations;
use baton_protocol::operation::{Call, CancelTask, GetTask, HistoryLength};
use baton_protocol::wire::dialect::AnswerFacts;
use baton_protocol::{Error, ErrorKind, Generation, Member, Name};

pub(crate) use cursor::Cursors;
pub(crate) use outcome::{Answered, Outcome, Page, ShownTask};

use crate::auth::{Principal, SkillPermission};
use crate::card::{ExtendedCard, Features, ServedCard};
use crate::engine::caller::Caller;
use crate::engine::content_limits::{self, TooMuch};
use crate::engine::stream_slots::{StreamSlot, StreamSlots};
use crate::engine::{Canceled, Caps, Engine, View, from_store};
use crate::mount::Place;
use crate::net::Asker;
use crate::push::Push;
use crate::telemetry::labels::Limited;
use crate::telemetry::{AgentIndex, trace};

/// Limits for the requests and turns of one agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Largest request body.
    pub max_body_bytes: usize,
    /// Tasks on a page if the request gives no page size.
    pub default_page: u32,
    /// Largest page size that a request may give.
    pub max_page: u32,
    /// Most stored bytes of tasks that are read for one page. A page of large tasks has fewer tasks, and a token for the
    /// next page.
    pub max_page_bytes: usize,
    /// How long `tasks/send` of 0.1 waits for the task to end or to need input. Zero, the default: it does not wait.
    pub legacy_wait: std::time::Duration,
    /// Pause between keep-alive comments on a stream without events.
    pub keep_alive: std::time::Duration,
    /// Most turns of this agent that run at the same time; the server's own limit applies as well.
    pub max_running: Option<usize>,
    /// Most tasks of this agent in the queue; the server's own limit applies as well.
    pub max_queued: Option<usize>,
}

impl Limits {
    fn caps(&self) -> Caps {
        let none = Caps::NONE;
        Caps {
            max_running: self.max_running.unwrap_or(none.max_running),
            max_queued: self.max_queued.unwrap_or(none.max_queued),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_body_bytes: 4 * 1024 * 1024,
            default_page: 50,
            max_page: 100,
            max_page_bytes: 4 * 1024 * 1024,
            legacy_wait: std::time::Duration::ZERO,
            keep_alive: std::time::Duration::from_secs(15),
            max_running: None,
            max_queued: None,
        }
    }
}

/// What a binding knows about a call in addition to the call itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub(crate) struct CallContext {
    /// Whose tasks the call may see.
    pub scope: Scope,
    /// Who is counted for the call.
    pub caller: Caller,
    /// The generation the caller speaks.
    pub generation: Generation,
    /// The `Last-Event-ID` header, as sent.
    pub last_event_id: Option<String>,
    /// URIs of the `A2A-Extensions` header.
    pub extensions: Vec<String>,
    /// The trace that the call is part of.
    pub trace: Option<TraceContext>,
    /// Whether the caller may use a skill; `None` if no skill has requirements of its own.
    pub permission: Option<SkillPermission>,
    /// The caller, for extended cards that differ by caller.
    pub principal: Principal,
    /// Reserves room (memory) for the answer. `None`: the listener does not limit that.
    pub asker: Option<Asker>,
}

/// A cheap handle on one agent and the rules of its operations.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    agent: Arc<str>,
    index: AgentIndex,
    prefix: String,
    tenant: Option<Arc<str>>,
    /// The empty tenant, shared by all requests that name none.
    no_tenant: Arc<str>,
    card: ServedCard,
    cursors: Cursors,
    limits: ArcSwap<Limits>,
    streams: StreamSlots,
    extended: Option<ExtendedCard>,
    /// `None`: the server calls no webhooks.
    push: Option<Push>,
}

impl Service {
    #[allow(clippy::too_many_arguments, reason = "each is a part of one agent")]
    pub(crate) fn new(
        engine: Engine,
        agent: Arc<str>,
        place: &Place,
        card: ServedCard,
        cursors: Cursors,
        limits: Limits,
        streams: StreamSlots,
        extended: Option<ExtendedCard>,
        push: Option<Push>,
    ) -> Self {
        let (prefix, tenant) = (place.prefix(), place.tenant().cloned());
        engine.set_caps(Some(&agent), limits.caps());
        let limits = ArcSwap::from_pointee(limits);
        let index = engine.telemetry().agent(&agent);
        let no_tenant = Arc::from("");
        let inner = Inner {
            engine,
            agent,
            index,
            prefix,
            tenant,
            no_tenant,
            card,
            cursors,
            limits,
            streams,
            extended,
            push,
        };
        Service { inner: Arc::new(inner) }
    }

    /// The agent's name in stores and logs.
    pub(crate) fn id(&self) -> &str {
        &self.inner.agent
    }

    pub(crate) fn shared_id(&self) -> &Arc<str> {
        &self.inner.agent
    }

    /// The agent's index in the metrics.
    pub(crate) fn index(&self) -> AgentIndex {
        self.inner.index
    }

    /// The prefix of the agent's paths.
    pub(crate) fn prefix(&self) -> &str {
        &self.inner.prefix
    }

    pub(crate) fn tenant(&self) -> Option<&Arc<str>> {
        self.inner.tenant.as_ref()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn card(&self) -> &ServedCard {
        &self.inner.card
    }

    /// The URIs of the extensions that clients have to request.
    pub(crate) fn required_extensions(&self) -> Vec<String> {
        let declared = self.card().declared();
        let required = declared.capabilities.extensions.iter().filter(|extension| extension.required);
        required.map(|extension| extension.uri.clone()).collect()
    }

    pub(crate) fn limits(&self) -> Guard<Arc<Limits>> {
        self.inner.limits.load()
    }

    pub(crate) fn set_limits(&self, limits: Limits) {
        self.inner.engine.set_caps(Some(&self.inner.agent), limits.caps());
        self.inner.limits.store(Arc::new(limits));
    }

    fn declared(&self) -> impl Deref<Target = AgentCard> {
        self.inner.card.declared()
    }

    /// The generations that the card allows clients to speak.
    pub(crate) fn generations(&self) -> Generations {
        self.inner.card.generations()
    }

    /// The scope of a call: this agent, the request's tenant, the caller as owner.
    pub(crate) fn scope(&self, principal: &Principal, tenant: Option<&str>) -> Result<Scope, Error> {
        let tenant = tenant.unwrap_or_default();
        if let Some(own) = &self.inner.tenant {
            if !tenant.is_empty() && tenant != &**own {
                return Err(Error::invalid("tenant", format!("must be `{own}`, this agent's own")));
            }
            return Ok(self.scope_of(principal, Arc::clone(own)));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        if tenant.len() > 64 || !tenant.bytes().all(allowed) {
            return Err(Error::invalid("tenant", "must be at most 64 of the characters A-Z a-z 0-9 . _ ~ -"));
        }
        if tenant.is_empty() {
            return Ok(self.scope_of(principal, Arc::clone(&self.inner.no_tenant)));
        }
        Ok(self.scope_of(principal, Arc::from(tenant)))
    }

    fn scope_of(&self, principal: &Principal, tenant: Arc<str>) -> Scope {
        Scope::of(Arc::clone(&self.inner.agent), tenant, Arc::clone(principal.shared_owner()))
    }

    /// The generation for answering a call whose name and parameters are the same in 0.3 and 0.1: the task's own, or 0.3.
    pub(crate) async fn generation_of(&self, scope: &Scope, call: &Call) -> Result<Generation, Error> {
        let task = match call {
            Call::GetTask(get) => &get.id,
            Call::CancelTask(cancel) => &cancel.id,
            Call::SubscribeToTask(subscribe) => &subscribe.id,
            _ => return Ok(Generation::V0_3),
        };
        let head = self.engine().store().head(scope, task).await.map_err(from_store)?;
        let legacy = head.is_some_and(|head| head.generation == Generation::V0_1);
        Ok(if legacy { Generation::V0_1 } else { Generation::V0_3 })
    }

    /// The declared extensions among those a request names, as its answer lists them.
    pub(crate) fn active_extensions(&self, asked: &[String]) -> String {
        let declared = self.declared();
        let declared = &declared.capabilities.extensions;
        let known = asked.iter().filter(|uri| declared.iter().any(|extension| extension.uri == **uri));
        known.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The same for the agent, with the parameters on the card; but not those that concern the transport alone.
    pub(crate) fn activated(&self, asked: &[String]) -> Vec<ActiveExtension> {
        #[cfg(feature = "grpc")]
        let is_for_agent = |uri: &&String| *uri != crate::binding::grpc::RESUME;
        #[cfg(not(feature = "grpc"))]
        let is_for_agent = |_: &&String| true;
        let declared = self.declared();
        let declared = &declared.capabilities.extensions;
        let known = asked.iter().filter(is_for_agent).filter_map(|uri| {
            let extension = declared.iter().find(|extension| extension.uri == *uri)?;
            Some(ActiveExtension { uri: uri.clone(), params: extension.params.clone() })
        });
        known.collect()
    }

    /// Whether a request names this extension, and the card declares it.
    #[cfg(feature = "grpc")]
    pub(crate) fn is_active(&self, uri: &str, asked: &[String]) -> bool {
        asked.iter().any(|asked| asked == uri)
            && self.declared().capabilities.extensions.iter().any(|extension| extension.uri == uri)
    }

    /// What the encoding of an answer depends on in addition to the outcome.
    pub(crate) fn answer_facts(&self, call: &Call) -> AnswerFacts {
        let state_history = self.declared().capabilities.state_transition_history == Some(true);
        let (task_id, history_length) = match call {
            Call::SendMessage(send) | Call::SendStreamingMessage(send) => {
                (send.client_task_id.clone(), send.history_length)
            }
            Call::GetTask(get) => (None, get.history_length),
            _ => (None, HistoryLength::default()),
        };
        AnswerFacts { state_history, history_length, task_id, is_unversioned: false }
    }

    /// Executes a call.
    pub(crate) async fn dispatch(&self, context: &CallContext, call: Call) -> Result<Answered, Error> {
        capability::check(&self.declared(), context, &call)?;
        // Boxed, except for reads: these futures are larger than all around them, which GetTask would pay for.
        match call {
            Call::SendMessage(send) => Box::pin(self.send(context, send)).await,
            Call::SendStreamingMessage(send) => Box::pin(self.send_streaming(context, send)).await,
            Call::GetTask(get) => self.get(context, get).await,
            Call::ListTasks(list) => Ok(Outcome::Page(self.list(context, list).await?).fresh(None)),
            Call::CancelTask(cancel) => Box::pin(self.cancel(context, cancel)).await,
            Call::SubscribeToTask(subscribe) => Box::pin(self.subscribe(context, subscribe)).await,
            Call::CreatePushConfig(config) => Box::pin(self.create_push_config(context, config)).await,
            Call::GetPushConfig { task_id, id } => {
                Box::pin(self.get_push_config(context, &task_id, id.as_ref())).await
            }
            Call::ListPushConfigs { task_id, page_size, page_token } => {
                Box::pin(self.list_push_configs(context, &task_id, page_size, page_token.as_deref())).await
            }
            Call::DeletePushConfig { task_id, id } => {
                Box::pin(self.delete_push_config(context, &task_id, &id)).await
            }
            Call::GetExtendedCard => match &self.inner.extended {
                // An authenticator of the application may let anonymous callers in.
                _ if context.principal.is_anonymous() => Err(Error::of(ErrorKind::Unauthenticated)),
                Some(extended) => {
                    let card = extended.of(&context.principal, &self.declared());
                    Ok(Outcome::Card(Box::new(card)).fresh(None))
                }
                None => Err(Error::of(ErrorKind::ExtendedCardNotConfigured)),
            },
        }
    }

    /// What cards of the agent may declare.
    pub(crate) fn features(&self) -> Features {
        Features {
            extended_card: self.inner.extended.is_some(),
            push: self.inner.push.is_some(),
            grpc: self.inner.card.takes_grpc(),
            tells_grpc: self.inner.card.tells_grpc(),
        }
    }

    fn stream_slot(&self, context: &CallContext) -> Result<StreamSlot, Error> {
        self.stream_slot_of(&context.caller)
    }

    /// Counts one more stream of the caller.
    pub(crate) fn stream_slot_of(&self, caller: &Caller) -> Result<StreamSlot, Error> {
        self.inner.streams.take(caller).inspect_err(|refused| {
            if refused.kind() == ErrorKind::QuotaExceeded {
                self.engine().telemetry().limited(Limited::Streams);
            }
        })
    }

    async fn get(&self, context: &CallContext, get: GetTask) -> Result<Answered, Error> {
        trace::record_task(&get.id, None);
        let asker = context.asker.as_ref();
        let (view, share) = self.engine().get_with_room(&context.scope, &get.id, asker).await?;
        let shown = ShownTask { view, history_length: get.history_length, answers_send: false };
        Ok(Outcome::Task(shown).fresh(share))
    }

    async fn cancel(&self, context: &CallContext, cancel: CancelTask) -> Result<Answered, Error> {
        trace::record_task(&cancel.id, None);
        let options = self.engine().options();
        content_limits::check_metadata(&options, cancel.metadata.as_ref()).map_err(|it| too_much("", &it))?;
        drop(options);
        let snapshot = match self.engine().cancel(&context.scope, &cancel.id, cancel.metadata).await? {
            // In 1.0 a cancel is idempotent; the older specifications list `canceled` among the states that cannot be
            // canceled.
            Canceled::Before(_) if context.generation != Generation::V1 => {
                return Err(Error::of(ErrorKind::TaskNotCancelable).with_info("taskId", cancel.id.as_str()));
            }
            Canceled::Before(snapshot) | Canceled::Now(snapshot) => snapshot,
        };
        let (view, share) = self.with_room(context, &cancel.id, View::from(snapshot)).await?;
        let shown = ShownTask { view, history_length: HistoryLength::All, answers_send: false };
        Ok(Outcome::Task(shown).fresh(share))
    }
}

/// The error for a member of the call that exceeds a limit.
fn too_much(of: &str, found: &TooMuch) -> Error {
    // The name of a message's parts differs by generation.
    let member = match found.member.strip_prefix(".parts") {
        Some(rest) if of == "message" => format!("{}{rest}", Name::Member(Member::Parts)),
        _ => format!("{of}{}", found.member),
    };
    Error::invalid(member.trim_start_matches('.'), found.fault.as_str())
}
