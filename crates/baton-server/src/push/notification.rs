//! What is sent to a webhook: a function of the log alone, so that every attempt sends the same bytes.
//!
//! - 1.0: every event, in its stored form. The birth of a task is shown as the task.
//! - 0.3: the task as of each change of its status and each complete artifact.
//! - 0.1: what happened, and the task's status as of then.

use std::collections::VecDeque;

use baton_protocol::Generation;
use baton_protocol::domain::{EventKind, PushEvents, Scope, Task, TaskId};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::wire::dialect::Dialect;
use baton_protocol::wire::{StreamItem, v0_1};
use bytes::Bytes;

use crate::engine::{WatchedStore, large};
use crate::store::{Head, Loaded, StoreError, StoreResult, StoredEvent};

/// Most events that are read at once.
const BATCH: u32 = 64;

/// The body of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notification {
    /// The event that it is about, or the last one of the task that it shows.
    pub(crate) number: u64,
    pub(crate) body: Bytes,
    /// Nothing follows: the task has ended with it.
    pub(crate) is_last: bool,
    /// It shows the task in place of the event with this number, whose own notification has other bytes.
    pub(crate) replaces_event: bool,
}

impl Notification {
    /// The whole task, as of the event with this number.
    pub(crate) fn of_task(generation: Generation, number: u64, task: &Task) -> Self {
        let mut body = Vec::new();
        match generation {
            Generation::V1 => Dialect::V1.write_stream_task(&mut body, task),
            Generation::V0_3 => Dialect::V0_3.write_stream_task(&mut body, task),
            Generation::V0_1 => {
                v0_1::write_notification(&mut body, &task.id, task.status.timestamp, &task.status, None);
            }
        }
        let replaces_event = match generation {
            // The birth of a task is shown as the task.
            Generation::V1 => number > 1,
            Generation::V0_3 => false,
            Generation::V0_1 => true,
        };
        let is_last = task.status.state.is_terminal();
        Notification { number, body: Bytes::from(body), is_last, replaces_event }
    }
}

/// What is next in the log.
#[derive(Debug)]
pub(crate) enum Next {
    Send(Notification),
    /// Nothing more is to be sent up to this event. `ended`: nor will there ever be.
    CaughtUp {
        through: u64,
        ended: bool,
    },
    /// The task is gone, or its log was folded past this point.
    Gone,
}

/// Reads the log of a task for one webhook.
#[derive(Debug)]
pub(crate) struct Notifications {
    store: WatchedStore,
    scope: Scope,
    task: TaskId,
    generation: Generation,
    events: PushEvents,
    /// Everything up to this number was looked at.
    after: u64,
    ready: VecDeque<StoredEvent>,
    /// The task as of `after`, once it was needed. The older generations show it with every event.
    folded: Option<Snapshot>,
}

/// The content type of notifications.
pub(crate) fn content_type(generation: Generation) -> &'static str {
    match generation {
        Generation::V1 => "application/a2a+json",
        Generation::V0_3 | Generation::V0_1 => "application/json",
    }
}

impl Notifications {
    pub(crate) fn new(
        store: WatchedStore,
        scope: Scope,
        task: TaskId,
        generation: Generation,
        events: PushEvents,
        after: u64,
    ) -> Self {
        Notifications { store, scope, task, generation, events, after, ready: VecDeque::new(), folded: None }
    }

    /// The next notification after the last one.
    pub(crate) async fn next(&mut self) -> StoreResult<Next> {
        let mut ended = false;
        loop {
            if self.ready.is_empty() {
                let events = self.store.events(&self.scope, &self.task, self.after, BATCH).await?;
                match events.first() {
                    Some(first) if first.number != self.after + 1 => return Ok(Next::Gone),
                    Some(_) => self.ready = events.into(),
                    None => return self.nothing(ended).await,
                }
            }
            let Some(event) = self.ready.pop_front() else { continue };
            let notification = self.notification(&event).await?;
            self.after = event.number;
            ended |= is_end(event.kind);
            if let Some(body) = notification {
                let (number, is_last) = (event.number, ended);
                return Ok(Next::Send(Notification { number, body, is_last, replaces_event: false }));
            }
        }
    }

    /// The log has no event after `after`: either there is none, or it is no longer in the log.
    async fn nothing(&self, ended: bool) -> StoreResult<Next> {
        match self.store.head(&self.scope, &self.task).await? {
            Some(head) if head.folded_through <= self.after || head.version <= self.after => {
                let ended = ended || (head.current.state.is_terminal() && head.version <= self.after);
                Ok(Next::CaughtUp { through: self.after, ended })
            }
            _ => Ok(Next::Gone),
        }
    }

    /// The whole task as of this event; the reading goes on after it. `None`: the log does not reach back that far.
    pub(crate) async fn task_as_of(&mut self, number: u64) -> StoreResult<Option<Notification>> {
        self.ready.clear();
        let Some(snapshot) = self.fold_to(number).await? else { return Ok(None) };
        let notification = Notification::of_task(self.generation, number, &snapshot.task);
        self.after = number;
        self.folded = Some(snapshot);
        Ok(Some(notification))
    }

    /// What this event is to the webhook; `None` if it is nothing.
    async fn notification(&mut self, event: &StoredEvent) -> StoreResult<Option<Bytes>> {
        let is_wanted = match event.kind {
            EventKind::Status(_) => self.events.status,
            EventKind::Artifact => self.events.artifact,
            // A birth.
            EventKind::UserMessage => self.generation == Generation::V1 && event.number == 1,
            EventKind::AttemptStarted | EventKind::CancelRequested => false,
        };
        if self.generation == Generation::V1 {
            return Ok(match event.kind {
                _ if !is_wanted => None,
                EventKind::UserMessage => self.task_as_of(1).await?.map(|born| born.body),
                _ => Some(event.json()),
            });
        }
        // Followed from the first event on, so that the log is folded once.
        let Some(mut snapshot) = self.take_folded(event.number - 1).await? else { return Ok(None) };
        snapshot
            .apply(event.decode()?)
            .map_err(|refused| StoreError::damaged(format!("task {}: {refused}", self.task)))?;
        let body = if is_wanted { self.older(event, &snapshot)? } else { None };
        self.folded = Some(snapshot);
        Ok(body)
    }

    fn older(&self, event: &StoredEvent, snapshot: &Snapshot) -> StoreResult<Option<Bytes>> {
        let update = match event.item()? {
            StreamItem::Artifact { update, .. } => Some(update),
            _ => None,
        };
        let mut body = Vec::new();
        match self.generation {
            Generation::V0_3 if update.as_ref().is_some_and(|update| !update.last_chunk) => return Ok(None),
            Generation::V0_3 => Dialect::V0_3.write_stream_task(&mut body, &snapshot.task),
            Generation::V0_1 | Generation::V1 => {
                let status = &snapshot.task.status;
                v0_1::write_notification(&mut body, &self.task, event.at, status, update.as_ref());
            }
        }
        Ok(Some(Bytes::from(body)))
    }

    async fn take_folded(&mut self, version: u64) -> StoreResult<Option<Snapshot>> {
        match self.folded.take().filter(|folded| folded.version == version) {
            Some(folded) => Ok(Some(folded)),
            None => self.fold_to(version).await,
        }
    }

    /// The task as of this event.
    async fn fold_to(&self, number: u64) -> StoreResult<Option<Snapshot>> {
        let Some(loaded) = self.store.load(&self.scope, &self.task).await? else { return Ok(None) };
        let Loaded { id, head, snapshot, mut tail } = loaded;
        let snapshot = snapshot.filter(|snapshot| snapshot.version() <= number);
        if snapshot.is_none() {
            if head.folded_through > 0 || number > head.version {
                return Ok(None);
            }
            // The stored snapshot is newer: fold from the beginning.
            tail.clear();
            while let after = tail.last().map_or(0, |last: &StoredEvent| last.number)
                && after < number
            {
                let events = self.store.events(&self.scope, &self.task, after, BATCH).await?;
                if events.first().is_none_or(|first| first.number != after + 1) {
                    return Ok(None);
                }
                tail.extend(events);
            }
        }
        tail.retain(|event| event.number <= number);
        let loaded = Loaded { id, head: Head { version: number, ..head }, snapshot, tail };
        Ok(Some(large::fold(loaded).await?.1))
    }
}

fn is_end(kind: EventKind) -> bool {
    matches!(kind, EventKind::Status(state) if state.is_terminal())
}
