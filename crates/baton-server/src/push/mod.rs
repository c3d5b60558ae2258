//! Webhooks: readers of task logs that the server calls.
//!
//! | file | holds |
//! |---|---|
//! | `registry` | the open webhooks in memory: which have something to deliver, and when |
//! | `worker`, `endpoints` | takes them one after the other, and bounds the calls to each host |
//! | `session` | delivers to one of them |
//! | `notification` | what is sent, as a function of the log |
//! | `webhook`, `credentials`, `jwt` | a webhook's record, its secrets and headers |
//! | `keys` | the server's own secrets for webhooks |
//! | `deliver`, `call_trace` | one call, and its part in the task's trace |
//! | `schedule` | what follows a call, as a pure function |
//! | `target` | the guard: callers choose URLs, so without it anybody could make the server call its own network |
//! | `failed`, `admin` | webhooks that failed for good, and what their operator can do |

pub(crate) mod admin;
mod call_trace;
pub(crate) mod credentials;
pub(crate) mod deliver;
mod endpoints;
pub(crate) mod failed;
#[cfg(feature = "jwt")]
pub(crate) mod jwt;
mod keys;
#[cfg(not(feature = "jwt"))]
mod no_jwt;
pub(crate) mod notification;
pub(crate) mod options;
pub(crate) mod registry;
pub(crate) mod schedule;
mod session;
pub(crate) mod target;
mod webhook;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{EventBody, PushConfig, PushConfigId, Scope, TaskId, Timestamp, TraceContext};
use baton_protocol::wire::http_json::fits_in_path;
use baton_protocol::{Error, ErrorKind, Generation};
use bytes::Bytes;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use self::call_trace::CallTrace;
use self::deliver::{DeliverOptions, Deliverer, NoAnswer, Outcome, Post};
#[cfg(feature = "jwt")]
pub(crate) use self::jwt::Jwt;
#[cfg(feature = "jwt")]
use self::jwt::SignedCall;
pub(crate) use self::keys::Keys;
#[cfg(not(feature = "jwt"))]
pub(crate) use self::no_jwt::Jwt;
#[cfg(not(feature = "jwt"))]
use self::no_jwt::SignedCall;
use self::notification::Notification;
use self::options::PushOptions;
use self::registry::{Job, Registry, Reservation, TooMany};
use self::target::hint::Hints;
use self::target::{Guard, NoAddress, TargetRules, resolver};
use self::webhook::{Webhook, event_id};
use crate::auth::random_bytes;
use crate::engine::clock::Clock;
use crate::engine::{WatchedStore, from_store, not_found};
use crate::secrets::Wrapping;
use crate::store::record::WebhookRecord;
use crate::store::{NewWebhook, OpenWebhook, PutWebhook, StoreResult, StoredWebhook, WebhookState};
use crate::telemetry::Telemetry;

/// How many open webhooks are read at once at start.
const PAGE: u32 = 500;

/// A cheap handle on the server's webhooks.
#[derive(Clone)]
pub(crate) struct Push(Arc<Shared>);

struct Shared {
    options: PushOptions,
    registry: Arc<Registry>,
    guard: Guard,
    deliverer: Deliverer,
    store: WatchedStore,
    clock: Arc<dyn Clock>,
    wrapping: Wrapping,
    /// Makes the ids of events.
    id_key: Vec<u8>,
    jwt: Option<Jwt>,
    telemetry: Telemetry,
    stopping: CancellationToken,
    /// The worker.
    running: TaskTracker,
    hints: Hints,
}

impl fmt::Debug for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Push").field("options", &self.0.options).finish_non_exhaustive()
    }
}

/// What the server gives to its webhooks.
pub(crate) struct Parts {
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: WatchedStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) keys: Keys,
    pub(crate) telemetry: Telemetry,
}

impl Push {
    /// Fails with a reason if an option cannot be used.
    pub(crate) fn new(options: PushOptions, parts: Parts) -> Result<Self, String> {
        let allow = options
            .allow
            .iter()
            .map(|text| text.parse().map_err(|bad: target::allow::BadAllowed| bad.to_string()));
        let rules = TargetRules { development: options.development, allow: allow.collect::<Result<_, _>>()? };
        let deliver = DeliverOptions {
            timeout: options.timeout,
            extra_roots: options.extra_roots.clone(),
            ..DeliverOptions::default()
        };
        let guard = Guard::new(rules, resolver::system());
        let deliverer = Deliverer::new(guard.clone(), deliver)?;
        let Parts { registry, store, clock, keys: Keys { wrapping, id_key, jwt }, telemetry } = parts;
        registry.set_max_failed(options.max_failed);
        Ok(Push(Arc::new(Shared {
            options,
            registry,
            guard,
            deliverer,
            store,
            clock,
            wrapping,
            id_key,
            jwt,
            telemetry,
            stopping: CancellationToken::new(),
            running: TaskTracker::new(),
            hints: Hints::default(),
        })))
    }

    /// Finds what is undelivered, and begins to deliver.
    pub(crate) async fn start(&self) -> StoreResult<()> {
        let shared = &self.0;
        let mut after = None;
        loop {
            let page = shared.store.open_webhooks(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.key, last.webhook.id.clone()));
            for open in page {
                shared.registry.put(open);
            }
        }
        if shared.registry.len() > 0 {
            tracing::info!(webhooks = shared.registry.len(), "delivering webhooks of unfinished tasks");
        }
        shared.running.spawn(worker::run(Arc::clone(shared)));
        Ok(())
    }

    /// Begins no further call, and gives those under way this long to end. The next process goes on with what is left.
    pub(crate) async fn stop(&self, within: Duration) {
        let Shared { stopping, running, .. } = &*self.0;
        stopping.cancel();
        running.close();
        if tokio::time::timeout(within, running.wait()).await.is_err() {
            tracing::warn!("webhooks are still being called; the next start calls them again");
        }
    }

    /// Signs calls, if the options say so.
    pub(crate) fn jwt(&self) -> Option<&Jwt> {
        self.0.jwt.as_ref()
    }

    /// Checks what a caller gives, before anything is stored.
    pub(crate) fn check(&self, config: &PushConfig) -> Result<(), Error> {
        let shared = &self.0;
        if let Err(bad) = shared.guard.check(&config.url) {
            shared.hints.give_for_url(&shared.guard, &config.url);
            return Err(Error::new(ErrorKind::WebhookUrlRefused, sentence(&bad.to_string())));
        }
        if config.id.as_ref().is_some_and(|id| !fits_in_path(id.as_str())) {
            let why = "must not be `.`, `..` or hold a backslash, `%2e`, `%2f` or `%5c`: no HTTP request could name the webhook";
            return Err(Error::invalid("id", why));
        }
        webhook::check_headers(config).map_err(|bad| Error::invalid(bad.member(), bad.to_string()))
    }

    /// A place for a webhook that is about to be stored.
    pub(crate) fn reserve(&self, owner: &Arc<str>) -> Result<Reservation, Error> {
        let PushOptions { max_per_owner, max_open, .. } = self.0.options;
        self.0.registry.reserve(owner, max_per_owner, max_open).map_err(|full| match full {
            TooMany::OfOwner => Error::new(
                ErrorKind::QuotaExceeded,
                format!(
                    "You have {max_per_owner} webhooks of tasks that are not finished; remove some of them"
                ),
            ),
            TooMany::OfServer => {
                Error::new(ErrorKind::ResourceExhausted, "The server has as many webhooks as it can have")
            }
        })
    }

    /// A webhook in the form for the store. It must have been checked. `trace` is that of its task.
    pub(crate) fn prepare(
        &self,
        task: &TaskId,
        generation: Generation,
        config: &PushConfig,
        trace: Option<TraceContext>,
    ) -> Result<NewWebhook, Error> {
        let shared = &self.0;
        let id = match &config.id {
            Some(id) => id.clone(),
            None => fresh_id(task, generation),
        };
        let no_random = |error| Error::of(ErrorKind::Internal).with_log(error);
        let record = WebhookRecord {
            url: config.url.clone(),
            generation,
            events: config.events,
            created_at: shared.clock.now(),
            trace,
            secrets: webhook::wrap_secrets(&shared.wrapping, task, &id, config).map_err(no_random)?,
        };
        Ok(NewWebhook { id, record: record.to_stored(), most: shared.options.max_per_task })
    }

    /// A webhook came with a new task and is stored.
    pub(crate) async fn born(&self, open: OpenWebhook) {
        let key = open.key;
        self.0.registry.put(open);
        // Events may have been appended before the registry knew of it.
        self.0.catch_up(key).await;
    }

    /// Stores a webhook of a task. Answers it as it is shown.
    pub(crate) async fn create(
        &self,
        scope: &Scope,
        task: &TaskId,
        generation: Generation,
        config: &PushConfig,
    ) -> Result<PushConfig, Error> {
        self.check(config)?;
        let trace = self.0.trace_of(scope, task).await?;
        let new = self.prepare(task, generation, config, trace)?;
        let reservation = match self.reserve(&scope.owner) {
            Ok(reservation) => Some(reservation),
            // One that replaces another takes no place.
            Err(full) => {
                let known = self.0.store.webhooks(scope, task).await.map_err(from_store)?;
                let is_open = |known: &StoredWebhook| known.cursor.state == WebhookState::Open;
                match known.iter().any(|known| known.id == new.id && is_open(known)) {
                    true => None,
                    false => return Err(full),
                }
            }
        };
        let (push, scope, task) = (self.clone(), scope.clone(), task.clone());
        to_its_end(async move {
            let _reservation = reservation;
            push.store_new(&scope, &task, new).await
        })
        .await
    }

    async fn store_new(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> Result<PushConfig, Error> {
        match self.0.store.put_webhook(scope, task, new).await.map_err(from_store)? {
            PutWebhook::Stored { key, webhook } => {
                let shown = self.0.shown(task, &webhook)?;
                if webhook.cursor.revision > 1 {
                    // It has replaced one, which may have failed: the new one goes on where that one was.
                    self.0.forget_failed(key, &webhook.id).await;
                }
                if webhook.cursor.state == WebhookState::Open {
                    let (scope, task) = (scope.clone(), task.clone());
                    // An append that came in between has rung; its number is in the head, which is read when it is delivered.
                    let version = webhook.cursor.done;
                    self.0.registry.put(OpenWebhook { key, scope, task, version, webhook });
                    self.0.catch_up(key).await;
                }
                Ok(shown)
            }
            PutWebhook::Full => Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!("The task has {} webhooks already; remove one of them", self.0.options.max_per_task),
            )),
            PutWebhook::NotFound => Err(not_found(task)),
        }
    }

    /// The webhooks of a task, as they are shown.
    pub(crate) async fn list(&self, scope: &Scope, task: &TaskId) -> Result<Vec<PushConfig>, Error> {
        let stored = self.0.store.webhooks(scope, task).await.map_err(from_store)?;
        if stored.is_empty() && self.0.store.head(scope, task).await.map_err(from_store)?.is_none() {
            return Err(not_found(task));
        }
        stored.iter().map(|webhook| self.0.shown(task, webhook)).collect()
    }

    /// Removes a webhook; it need not be there.
    pub(crate) async fn delete(&self, scope: &Scope, task: &TaskId, id: &PushConfigId) -> Result<(), Error> {
        let (push, scope, task, id) = (self.clone(), scope.clone(), task.clone(), id.clone());
        to_its_end(async move { push.remove(&scope, &task, &id).await }).await
    }

    async fn remove(&self, scope: &Scope, task: &TaskId, id: &PushConfigId) -> Result<(), Error> {
        let Some(head) = self.0.store.head(scope, task).await.map_err(from_store)? else {
            return Err(not_found(task));
        };
        let was_there = self.0.store.remove_webhook(scope, task, id, None).await.map_err(from_store)?;
        self.0.registry.remove(head.key, id);
        // Another call may have created it again meanwhile, and this has taken that one out of the registry.
        let open = self.0.store.open_webhooks_of(head.key).await.map_err(from_store)?;
        open.into_iter().filter(|open| open.webhook.id == *id).for_each(|open| self.0.registry.put(open));
        if was_there {
            // Its owner wants no more of it, and its credentials go, too.
            self.0.forget_failed(head.key, id).await;
        }
        Ok(())
    }
}

/// Runs it to its end even if the caller's connection closes meanwhile: what is in the store must be in the registry.
pub(crate) async fn to_its_end<T: Send + 'static>(
    change: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    match tokio::spawn(change.in_current_span()).await {
        Ok(done) => done,
        Err(error) => Err(Error::of(ErrorKind::Internal).with_log(error)),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}

/// Clients of 0.3 know the only webhook of a task by the task's id.
fn fresh_id(task: &TaskId, generation: Generation) -> PushConfigId {
    let text = match generation {
        Generation::V1 => uuid::Uuid::now_v7().to_string(),
        Generation::V0_3 | Generation::V0_1 => task.as_str().to_owned(),
    };
    PushConfigId::parse(&text).expect("every id follows the same rules")
}

impl Shared {
    /// A webhook as answers show it.
    fn shown(&self, task: &TaskId, stored: &StoredWebhook) -> Result<PushConfig, Error> {
        let unreadable = |error| Error::of(ErrorKind::Internal).with_log(error);
        let webhook = Webhook::read(&self.wrapping, task, stored).map_err(unreadable)?;
        Ok(webhook.to_config(task, &stored.id))
    }

    /// The webhook of a job; `None`, with a line in the log, if it cannot be read.
    fn read(&self, job: &Job) -> Option<Webhook> {
        Webhook::read(&self.wrapping, &job.task, &job.webhook)
            .inspect_err(|error| tracing::error!(task.id = %job.task, %error, "a webhook cannot be read"))
            .ok()
    }

    /// The trace of a task's first message. It is kept with the webhook, so that no delivery has to look for it.
    async fn trace_of(&self, scope: &Scope, task: &TaskId) -> Result<Option<TraceContext>, Error> {
        let first = self.store.events(scope, task, 0, 1).await.map_err(from_store)?;
        // Without its log, a task has ended and its webhooks get nothing.
        let Some(first) = first.first().filter(|event| event.number == 1) else { return Ok(None) };
        match first.decode().map_err(from_store)?.body {
            EventBody::UserMessage { trace, .. } => Ok(trace),
            _ => Ok(None),
        }
    }

    /// The events of a task that were appended while its webhook was being stored.
    async fn catch_up(&self, key: crate::store::TaskKey) {
        match self.store.open_webhooks_of(key).await {
            Ok(open) => open.iter().for_each(|open| self.registry.ring(key, open.version)),
            Err(error) => tracing::warn!(%error, "a new webhook may be late: its task could not be read"),
        }
    }

    /// The host that a webhook calls, by which calls are bounded. Empty if the URL cannot be read.
    fn host_of(&self, record: &Bytes) -> String {
        let url = WebhookRecord::from_stored(record).map(|record| record.url);
        let target = url.ok().and_then(|url| self.guard.check(&url).ok());
        target.map(|target| target.host().to_string()).unwrap_or_default()
    }

    /// One call.
    async fn call(&self, job: &Job, webhook: &Webhook, notification: &Notification) -> Outcome {
        let id = event_id(&self.id_key, &job.scope, &job.task, &job.webhook.id, notification);
        let now = u64::try_from(self.clock.now().as_millis() / 1000).unwrap_or_default();
        let mut headers = webhook.headers(notification, &id, now);
        self.add_jwt(&mut headers, &id, job, &webhook.record.url, &notification.body).await;
        let trace = CallTrace::begin(job, webhook.record.trace.as_ref(), notification);
        trace.add_to(&mut headers);
        let post = Post { headers, body: notification.body.clone() };
        let outcome = self.deliverer.post(&webhook.record.url, post).instrument(trace.span.clone()).await;
        trace.end(&outcome);
        if let Outcome::NoAnswer(NoAnswer::Address(NoAddress::Refused(address))) = &outcome {
            self.hints.give_for_address(&webhook.record.url, *address);
        }
        outcome
    }

    /// Our own credentials, unless the webhook has some.
    async fn add_jwt(&self, headers: &mut HeaderMap, id: &str, job: &Job, url: &str, body: &[u8]) {
        let Some(jwt) = self.jwt.as_ref().filter(|_| webhook::has_no_credentials(headers)) else { return };
        // A URL that cannot be called is not called.
        let Ok(receiver) = self.guard.check(url) else { return };
        let call = SignedCall { id, task: &job.task, receiver: &receiver, body };
        if let Some(value) = jwt.authorization(&call).await {
            headers.insert(AUTHORIZATION, value);
        }
    }

    /// The number of the task's last event.
    async fn version(&self, job: &Job) -> Option<u64> {
        let head = self.store.head(&job.scope, &job.task).await.ok().flatten();
        head.map(|head| head.version)
    }

    /// The webhook as it is in the store; `None` if it is gone, or no longer open.
    async fn read_again(&self, job: &Job) -> StoreResult<Option<StoredWebhook>> {
        let open = self.store.open_webhooks_of(job.key).await?;
        Ok(open.into_iter().map(|open| open.webhook).find(|webhook| webhook.id == job.webhook.id))
    }

    /// A number from 0 to 1.
    fn jitter(&self) -> f64 {
        random_bytes::<4>().map_or(0.5, |bytes| f64::from(u32::from_be_bytes(bytes)) / f64::from(u32::MAX))
    }

    fn log(&self, job: &Job, what: &str) {
        tracing::info!(task.id = %job.task, webhook.id = %job.webhook.id, "{what}");
    }

    fn log_failure(&self, job: &Job, attempt: u32, outcome: &Outcome, again: Option<Duration>) {
        let (kind, why) = match outcome {
            Outcome::Answered { status, .. } => ("status", status.as_u16().to_string()),
            Outcome::NoAnswer(why) => (why.kind(), why.to_string()),
        };
        let (task, id) = (&job.task, &job.webhook.id);
        match again {
            Some(wait) => tracing::info!(
                task.id = %task, webhook.id = %id, attempt, kind, why, again_in_s = wait.as_secs(),
                "a webhook could not be delivered; it is tried again"
            ),
            None => tracing::warn!(
                task.id = %task, webhook.id = %id, attempt, kind, why,
                "a webhook could not be delivered and is not tried again"
            ),
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
