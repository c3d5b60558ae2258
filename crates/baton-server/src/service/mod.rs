//! The rules of each operation, apart from any transport: [`Service::dispatch`] takes a decoded call and
//! gives one reply, or a stream of events.

mod capability;
mod cursor;
mod list;
mod media;
mod send;
mod subscribe;

use std::sync::Arc;

use baton_protocol::domain::{AgentCard, Scope, TaskId, TraceContext};
use baton_protocol::operation::{Call, CancelTask, GetTask, Reply};
use baton_protocol::{Error, ErrorKind, Generation};
use http::HeaderMap;

pub use cursor::Cursors;

use crate::auth::{Authenticator, Principal};
use crate::card::ServedCard;
use crate::engine::stream_places::StreamPlaces;
use crate::engine::{Canceled, Engine, EventStream, from_store};

/// Bounds on what comes in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Largest request body.
    pub max_body_bytes: usize,
    /// Tasks on a page unless asked otherwise, and at most.
    pub default_page: u32,
    pub max_page: u32,
    /// How long `tasks/send` waits for the task to come to rest; at once by default.
    pub legacy_wait: std::time::Duration,
    /// Pause between keep-alive comments on a quiet stream.
    pub keep_alive: std::time::Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_body_bytes: 4 * 1024 * 1024,
            default_page: 50,
            max_page: 100,
            legacy_wait: std::time::Duration::ZERO,
            keep_alive: std::time::Duration::from_secs(15),
        }
    }
}

/// What a binding knows about a call beside the call itself.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub scope: Scope,
    pub generation: Generation,
    /// The `Last-Event-ID` header, as sent.
    pub last_event_id: Option<String>,
    /// URIs of the `A2A-Extensions` header.
    pub extensions: Vec<String>,
    /// The trace the call is part of.
    pub trace: Option<TraceContext>,
}

/// What a call comes to.
#[derive(Debug)]
pub enum Outcome {
    Reply {
        reply: Reply,
        /// The same message had been answered before.
        replayed: bool,
    },
    Stream {
        stream: EventStream,
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
    card: ServedCard,
    authenticator: Arc<dyn Authenticator>,
    cursors: Cursors,
    limits: Limits,
    streams: StreamPlaces,
}

impl Service {
    pub(crate) fn new(
        engine: Engine,
        agent: Arc<str>,
        card: ServedCard,
        authenticator: Arc<dyn Authenticator>,
        cursors: Cursors,
        limits: Limits,
        streams: StreamPlaces,
    ) -> Self {
        Service { inner: Arc::new(Inner { engine, agent, card, authenticator, cursors, limits, streams }) }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn card(&self) -> &ServedCard {
        &self.inner.card
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    fn declared(&self) -> &AgentCard {
        self.inner.card.declared()
    }

    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error> {
        self.inner.authenticator.authenticate(headers).await
    }

    /// The owner is the caller's, the tenant the request's.
    pub fn scope(&self, principal: &Principal, tenant: Option<&str>) -> Result<Scope, Error> {
        let tenant = tenant.unwrap_or_default();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        if tenant.len() > 64 || !tenant.bytes().all(allowed) {
            return Err(Error::invalid("tenant", "must be at most 64 of the characters A-Z a-z 0-9 . _ ~ -"));
        }
        Ok(Scope {
            agent: Arc::clone(&self.inner.agent),
            tenant: Arc::from(tenant),
            owner: Arc::clone(&principal.owner),
        })
    }

    /// The generation a task was born in, if it exists.
    pub async fn birth_of(&self, scope: &Scope, task: &TaskId) -> Result<Option<Generation>, Error> {
        let head = self.engine().store().head(scope, task).await.map_err(from_store)?;
        Ok(head.map(|head| head.generation))
    }

    /// The declared extensions among those a request names, as its answer lists them.
    pub fn active_extensions(&self, asked: &[String]) -> String {
        let declared = &self.declared().capabilities.extensions;
        let known = asked.iter().filter(|uri| declared.iter().any(|extension| extension.uri == **uri));
        known.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Do legacy answers show the states a task went through?
    pub fn shows_state_history(&self) -> bool {
        self.declared().capabilities.state_transition_history == Some(true)
    }

    pub async fn dispatch(&self, context: &CallContext, call: Call) -> Result<Outcome, Error> {
        capability::check(self.declared(), context, &call)?;
        match call {
            Call::SendMessage(send) => self.send(context, send).await,
            Call::SendStreamingMessage(send) => self.send_streaming(context, send).await,
            Call::GetTask(get) => self.get(context, get).await,
            Call::ListTasks(list) => self.list(context, list).await,
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
        let snapshot = self.engine().get(&context.scope, &get.id).await?;
        let mut task = Arc::unwrap_or_clone(snapshot).task;
        get.history_length.trim(&mut task.history);
        Ok(reply(Reply::Task(task)))
    }

    async fn cancel(&self, context: &CallContext, cancel: CancelTask) -> Result<Outcome, Error> {
        let snapshot = match self.engine().cancel(&context.scope, &cancel.id, cancel.metadata).await? {
            Canceled::Before(_) if context.generation == Generation::V0_1 => {
                return Err(Error::of(ErrorKind::TaskNotCancelable).with_info("taskId", cancel.id.as_str()));
            }
            Canceled::Before(snapshot) | Canceled::Now(snapshot) => snapshot,
        };
        Ok(reply(Reply::Task(Arc::unwrap_or_clone(snapshot).task)))
    }
}

fn reply(reply: Reply) -> Outcome {
    Outcome::Reply { reply, replayed: false }
}
