//! What the log of a task is to a webhook of each generation, by the store alone.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;

use baton_protocol::Generation;
use baton_protocol::domain::{EventBody, Scope, Task, TaskId};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::wire::dialect::Dialect;
use baton_protocol::wire::{StreamItem, v0_1};
use baton_server::store::sqlite::{Options, SqliteStore};
use baton_server::store::{Store as _, StoreError, StoredEvent};

use crate::faults::stored;

/// A task, for the webhooks that it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskLog {
    /// When each event was stored, in milliseconds; the first one is number 1.
    pub(crate) at: Vec<i64>,
    /// The number of each of the user's messages.
    pub(crate) messages: BTreeMap<String, u64>,
    pub(crate) told: BTreeMap<Generation, Told>,
}

/// What a webhook of one generation is told. Of bodies only a hash is kept: a long task is in many of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// The body of each event, by its number. Events that are not here are none of the webhook's business.
    pub(crate) due: BTreeMap<u64, u64>,
    /// The whole task as of each event; the first one is number 1. 0.1 shows no whole tasks.
    pub(crate) as_of: Vec<u64>,
}

pub(crate) fn hash(body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    hasher.finish()
}

/// All tasks that have webhooks, with the generations of these.
pub(crate) async fn read(
    database: &Path,
    tasks: &BTreeMap<String, BTreeSet<Generation>>,
) -> Result<BTreeMap<String, TaskLog>, StoreError> {
    let store = SqliteStore::open(database, Options::default())?;
    let mut logs = BTreeMap::new();
    for (scope, id) in stored::rows(database)?.0 {
        if let Some(generations) = tasks.get(&id) {
            let log = task(&store, &scope, &TaskId::parse(&id).unwrap(), generations).await?;
            logs.insert(id, log);
        }
    }
    Ok(logs)
}

async fn task(
    store: &SqliteStore,
    scope: &Scope,
    id: &TaskId,
    generations: &BTreeSet<Generation>,
) -> Result<TaskLog, StoreError> {
    let head = store.load(scope, id).await?.expect("a row is a task").head;
    assert_eq!(head.folded_through, 0, "nothing here lets a log be folded");
    let mut events: Vec<StoredEvent> = Vec::new();
    while (events.len() as u64) < head.version {
        events.extend(store.events(scope, id, events.len() as u64, 100).await?);
    }
    let mut log = TaskLog::default();
    let mut snapshot = Snapshot::begin(id.clone(), head.context_id, head.created_at);
    for event in &events {
        let decoded = event.decode()?;
        if let EventBody::UserMessage { message, .. } = &decoded.body {
            log.messages.insert(message.id.as_str().to_owned(), event.number);
        }
        log.at.push(event.at.as_millis());
        snapshot.apply(decoded).map_err(|refused| StoreError::damaged(format!("{id}: {refused}")))?;
        for generation in generations {
            let told = log.told.entry(*generation).or_default();
            told.as_of.extend(whole(*generation, &snapshot.task));
            if let Some(body) = due(*generation, id, event, &snapshot)? {
                told.due.insert(event.number, body);
            }
        }
    }
    Ok(log)
}

/// The whole task; `None` where none is ever shown.
fn whole(generation: Generation, task: &Task) -> Option<u64> {
    let mut body = Vec::new();
    match generation {
        Generation::V1 => Dialect::V1.write_stream_task(&mut body, task),
        Generation::V0_3 => Dialect::V0_3.write_stream_task(&mut body, task),
        Generation::V0_1 => return None,
    }
    Some(hash(&body))
}

/// What an event is to a webhook; `None` if it is nothing. `snapshot` is the task as of the event.
fn due(
    generation: Generation,
    id: &TaskId,
    event: &StoredEvent,
    snapshot: &Snapshot,
) -> Result<Option<u64>, StoreError> {
    let artifact = match &event.decode()?.body {
        EventBody::UserMessage { .. } if generation == Generation::V1 && event.number == 1 => {
            return Ok(whole(generation, &snapshot.task));
        }
        EventBody::UserMessage { .. }
        | EventBody::AttemptStarted { .. }
        | EventBody::CancelRequested { .. } => return Ok(None),
        EventBody::Status(_) => None,
        EventBody::Artifact(_) => match event.item()? {
            StreamItem::Artifact { update, .. } => Some(update),
            other => panic!("{other:?} is no artifact"),
        },
    };
    match generation {
        Generation::V1 => Ok(Some(hash(&event.json()))),
        Generation::V0_3 if artifact.as_ref().is_some_and(|update| !update.last_chunk) => Ok(None),
        Generation::V0_3 => Ok(whole(generation, &snapshot.task)),
        Generation::V0_1 => {
            let mut body = Vec::new();
            let status = &snapshot.task.status;
            v0_1::write_notification(&mut body, id, event.at, status, artifact.as_ref());
            Ok(Some(hash(&body)))
        }
    }
}
