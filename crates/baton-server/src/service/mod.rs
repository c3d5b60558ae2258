//! The rules of each operation, apart from any transport: [`Service::dispatch`] takes a decoded call and
//! gives one reply, or a stream of events.

mod capability;
mod cursor;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod list;
mod media;
mod message_hash;
mod room;
mod send;
mod subscribe;

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use arc_swap::{ArcSwap, Guard};
use baton_protocol::domain::{AgentCard, Scope, TaskId, TraceContext};
use baton_protocol::generation::Generations;
use baton_protocol::operation::{Call, CancelTask, GetTask, HistoryLength, Reply};
use baton_protocol::wire::v1;
use baton_protocol::{Error, ErrorKind, Generation, Member, Name};
use bytes::Bytes;

pub use cursor::Cursors;

use crate::auth::Principal;
use crate::card::ServedCard;
use crate::engine::content_limits::{self, TooMuch};
use crate::engine::stream_places::StreamPlaces;
use crate::engine::{Canceled, Caps, Engine, EventStream, View, from_store, no_room};
use crate::mount::Place;
use crate::net::{Asker, Share};
use crate::telemetry::{AgentIndex, trace};

/// Bounds on what comes in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Largest request body.
    pub max_body_bytes: usize,
    /// Tasks on a page unless asked otherwise, and at most.
    pub default_page: u32,
    /// See `default_page`.
    pub max_page: u32,
    /// Stored bytes of tasks that are read for one page: a page of large tasks has fewer of them, and a token for the
    /// rest.
    pub max_page_bytes: usize,
    /// How long `tasks/send` waits for the task to come to rest; at once by default.
    pub legacy_wait: std::time::Duration,
    /// Pause between keep-alive comments on a quiet stream.
    pub keep_alive: std::time::Duration,
    /// Turns of this agent that may run at once, below what the server allows.
    pub max_running: Option<usize>,
    /// Tasks of this agent that may wait for a free place, below what the server allows.
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

/// What a binding knows about a call beside the call itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// Whose tasks the call may see.
    pub scope: Scope,
    /// The generation the caller speaks.
    pub generation: Generation,
    /// The `Last-Event-ID` header, as sent.
    pub last_event_id: Option<String>,
    /// URIs of the `A2A-Extensions` header.
    pub extensions: Vec<String>,
    /// The trace the call is part of.
    pub trace: Option<TraceContext>,
    /// Gets room for a large answer, where that is bounded.
    pub asker: Option<Asker>,
}

/// What a call comes to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// One reply.
    Reply {
        /// What the caller gets.
        reply: Reply,
        /// The same message had been answered before.
        replayed: bool,
        /// Its room.
        share: Option<Share>,
    },
    /// A task or a page of them, as the reply of the operation to a caller of 1.0.
    Stored {
        /// As 1.0 spells it.
        json: Bytes,
        /// Its room.
        share: Option<Share>,
        /// It answers a message.
        sent: bool,
        /// The same message had been answered before.
        replayed: bool,
    },
    /// Events as they come.
    Stream {
        /// The events.
        stream: EventStream,
        /// The same message had been sent before.
        replayed: bool,
    },
}

/// A cheap handle on the rules of one agent.
#[derive(Debug, Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    agent: Arc<str>,
    index: AgentIndex,
    prefix: String,
    tenant: Option<Arc<str>>,
    card: ServedCard,
    cursors: Cursors,
    limits: ArcSwap<Limits>,
    streams: StreamPlaces,
}

impl Service {
    pub(crate) fn new(
        engine: Engine,
        agent: Arc<str>,
        place: &Place,
        card: ServedCard,
        cursors: Cursors,
        limits: Limits,
        streams: StreamPlaces,
    ) -> Self {
        let (prefix, tenant) = (place.prefix(), place.tenant().cloned());
        engine.set_caps(Some(&agent), limits.caps());
        let limits = ArcSwap::from_pointee(limits);
        let index = engine.telemetry().agent(&agent);
        let inner = Inner { engine, agent, index, prefix, tenant, card, cursors, limits, streams };
        Service { inner: Arc::new(inner) }
    }

    /// The agent's name in stores and logs.
    pub(crate) fn id(&self) -> &str {
        &self.inner.agent
    }

    /// The agent's place among the numbers.
    pub(crate) fn index(&self) -> AgentIndex {
        self.inner.index
    }

    /// What the agent's paths begin with.
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

    /// What the card lets clients speak.
    pub(crate) fn generations(&self) -> Generations {
        self.inner.card.generations()
    }

    /// The owner is the caller's, the tenant the request's.
    pub fn scope(&self, principal: &Principal, tenant: Option<&str>) -> Result<Scope, Error> {
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
            static NONE: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));
            return Ok(self.scope_of(principal, Arc::clone(&NONE)));
        }
        Ok(self.scope_of(principal, Arc::from(tenant)))
    }

    fn scope_of(&self, principal: &Principal, tenant: Arc<str>) -> Scope {
        Scope::of(Arc::clone(&self.inner.agent), tenant, Arc::clone(&principal.owner))
    }

    /// The generation a task was born in, if it exists.
    pub async fn birth_of(&self, scope: &Scope, task: &TaskId) -> Result<Option<Generation>, Error> {
        let head = self.engine().store().head(scope, task).await.map_err(from_store)?;
        Ok(head.map(|head| head.generation))
    }

    /// The declared extensions among those a request names, as its answer lists them.
    pub fn active_extensions(&self, asked: &[String]) -> String {
        let declared = self.declared();
        let declared = &declared.capabilities.extensions;
        let known = asked.iter().filter(|uri| declared.iter().any(|extension| extension.uri == **uri));
        known.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Do legacy answers show the states a task went through?
    pub fn shows_state_history(&self) -> bool {
        self.declared().capabilities.state_transition_history == Some(true)
    }

    /// Does what the call asks for, or says why not.
    pub async fn dispatch(&self, context: &CallContext, call: Call) -> Result<Outcome, Error> {
        capability::check(&self.declared(), context, &call)?;
        match call {
            Call::SendMessage(send) => self.send(context, send).await,
            Call::SendStreamingMessage(send) => self.send_streaming(context, send).await,
            Call::GetTask(get) => self.get(context, get).await,
            Call::ListTasks(list) => self.list_with_room(context, list).await,
            Call::CancelTask(cancel) => self.cancel(context, cancel).await,
            Call::SubscribeToTask(subscribe) => self.subscribe(context, subscribe).await,
            // `capability::check` refuses these as long as the card does not declare them.
            Call::CreatePushConfig(_)
            | Call::GetPushConfig { .. }
            | Call::ListPushConfigs { .. }
            | Call::DeletePushConfig { .. } => Err(Error::of(ErrorKind::PushNotSupported)),
            Call::GetExtendedCard => Err(Error::of(ErrorKind::ExtendedCardNotConfigured)),
        }
    }

    async fn get(&self, context: &CallContext, get: GetTask) -> Result<Outcome, Error> {
        trace::about(&get.id, None);
        let asker = context.asker.as_ref();
        let (view, share) = self.engine().get_with_room(&context.scope, &get.id, asker).await?;
        shown(context, view, share, get.history_length, false, Shown::Asked)
    }

    async fn cancel(&self, context: &CallContext, cancel: CancelTask) -> Result<Outcome, Error> {
        trace::about(&cancel.id, None);
        let options = self.engine().options();
        content_limits::check_metadata(&options, cancel.metadata.as_ref()).map_err(|it| too_much("", &it))?;
        drop(options);
        let snapshot = match self.engine().cancel(&context.scope, &cancel.id, cancel.metadata).await? {
            // 1.0 calls a cancel idempotent; the error tables of the others name `canceled`.
            Canceled::Before(_) if context.generation != Generation::V1 => {
                return Err(Error::of(ErrorKind::TaskNotCancelable).with_info("taskId", cancel.id.as_str()));
            }
            Canceled::Before(snapshot) | Canceled::Now(snapshot) => snapshot,
        };
        let (view, share) = self.with_room(context, &cancel.id, View::from(snapshot)).await?;
        let task = Arc::unwrap_or_clone(view.snapshot()?).task;
        Ok(Outcome::Reply { reply: Reply::Task(task), replayed: false, share })
    }
}

/// A member of the call holds more than it may.
fn too_much(of: &str, found: &TooMuch) -> Error {
    // A message's parts are spelled by generation.
    let member = match found.member.strip_prefix(".parts") {
        Some(rest) if of == "message" => format!("{}{rest}", Name::Member(Member::Parts)),
        _ => format!("{of}{}", found.member),
    };
    Error::invalid(member.trim_start_matches('.'), found.fault.as_str())
}

fn reply(reply: Reply) -> Outcome {
    Outcome::Reply { reply, replayed: false, share: None }
}

/// A task as the answer to a call: in 1.0 as it is stored, where it is.
fn shown(
    context: &CallContext,
    view: View,
    share: Option<Share>,
    history_length: HistoryLength,
    replayed: bool,
    kind: Shown,
) -> Result<Outcome, Error> {
    if context.generation == Generation::V1
        && let Some(json) = view.v1_json()
    {
        let json = match history_length {
            HistoryLength::All => Some(json),
            less => v1::cut_history(&json, less).map(Bytes::from),
        };
        if let Some(json) = json {
            let sent = kind == Shown::Sent;
            let share = match (share, &context.asker) {
                (Some(share), Some(asker)) => Some(asker.fit(share, json.len()).map_err(no_room)?),
                (share, _) => share,
            };
            return Ok(Outcome::Stored { json, share, sent, replayed });
        }
    }
    let mut task = Arc::unwrap_or_clone(view.snapshot()?).task;
    history_length.trim(&mut task.history);
    let reply = match kind {
        Shown::Sent => Reply::SentTask(task),
        Shown::Asked => Reply::Task(task),
    };
    Ok(Outcome::Reply { reply, replayed, share })
}

/// What a task is the answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// A message.
    Sent,
    /// The question for it.
    Asked,
}
