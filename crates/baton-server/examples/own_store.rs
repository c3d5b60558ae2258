//! A store of one's own, made with `baton-server` alone: maps behind a lock. It is slow with many tasks and forgets
//! everything at the end; what it shows is all that a store has to do.
//!
//! `cargo run -p baton-server --example own_store --features store-suite` serves an agent with it, and
//! `cargo test -p baton-server --example own_store --features store-suite` checks that it keeps the contract.

use std::collections::{BTreeMap, btree_map};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_server::a2a::{MessageId, PushConfigId, TaskId, Timestamp};
use baton_server::store::{
    Append, Appended, Brief, Bytes, Detail, EVENTS_BYTES, FailedWebhook, HASH_DIGEST, Head, ListPage,
    ListQuery, Listed, Loaded, MessageHash, MessageRecord, NewRequest, NewWebhook, OpenTask, OpenWebhook,
    OwnerUsage, PendingRequest, PutWebhook, ReplicaId, RequestId, Requested, Scope, Store, StoreResult,
    StoredCredential, StoredEvent, StoredSnapshot, StoredWebhook, TaskKey, WebhookCursor, WebhookState, Work,
    said,
};
use baton_server::{AgentError, Server, StartError, Turn, async_trait};

#[derive(Debug, Default)]
struct OwnStore(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    tasks: BTreeMap<(Scope, TaskId), Row>,
    records: BTreeMap<RecordKey, MessageRecord>,
    secrets: BTreeMap<String, Vec<u8>>,
    notes: BTreeMap<String, String>,
    credentials: BTreeMap<String, Bytes>,
    webhooks: BTreeMap<(TaskKey, PushConfigId), StoredWebhook>,
    failed_webhooks: BTreeMap<(TaskKey, PushConfigId), FailedWebhook>,
    /// Of tasks and of requests: it only rises.
    last_number: u64,
}

#[derive(Debug)]
struct Row {
    head: Head,
    events: Vec<StoredEvent>,
    snapshot: Option<StoredSnapshot>,
    /// Each with the message whose record it settles.
    requests: Vec<(PendingRequest, Option<RecordKey>)>,
    said: Option<StoredEvent>,
}

type RecordKey = (Scope, MessageId, [u8; HASH_DIGEST]);

fn key(scope: &Scope, id: &MessageId, hash: &MessageHash) -> RecordKey {
    let mut digest = [0; HASH_DIGEST];
    digest.copy_from_slice(&hash[..HASH_DIGEST]);
    (scope.clone(), id.clone(), digest)
}

impl Row {
    fn load(&self, id: &TaskId) -> Loaded {
        let told = self.snapshot.as_ref().map_or(0, StoredSnapshot::version);
        let tail = self.events.iter().filter(|event| event.number > told).cloned().collect();
        Loaded { id: id.clone(), head: self.head.clone(), snapshot: self.snapshot.clone(), tail }
    }

    fn takes(&self, append: &Append) -> bool {
        let waits = |(pending, message): &(PendingRequest, Option<RecordKey>)| {
            message.is_some() && !append.writes(pending.request)
        };
        (self.head.version, self.head.current.fence) == (append.expected, append.fence)
            && !(append.ends_task() && self.requests.iter().any(waits))
    }

    fn ended_before(&self, before: Timestamp) -> bool {
        self.head.current.state.is_terminal() && self.head.current.status_at < before
    }
}

impl Rows {
    fn fresh_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn webhooks_of(&self, key: TaskKey) -> impl Iterator<Item = &StoredWebhook> {
        self.webhooks.iter().filter(move |((task, _), _)| *task == key).map(|(_, webhook)| webhook)
    }

    fn has_open_webhook(&self, key: TaskKey) -> bool {
        self.webhooks_of(key).any(|webhook| webhook.cursor.state == WebhookState::Open)
    }

    fn move_webhook(
        &mut self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> bool {
        let known = self.webhooks.get_mut(&(task, id.clone()));
        let Some(known) = known.filter(|known| known.cursor.revision == revision) else { return false };
        known.cursor = WebhookCursor { revision: revision + 1, ..cursor };
        true
    }

    /// All open webhooks, sorted by key and id.
    fn open_webhooks(&self) -> impl Iterator<Item = OpenWebhook> {
        let is_open = |webhook: &StoredWebhook| webhook.cursor.state == WebhookState::Open;
        self.webhooks.iter().filter(move |(_, webhook)| is_open(webhook)).filter_map(|((key, _), webhook)| {
            let ((scope, task), row) = self.tasks.iter().find(|(_, row)| row.head.key == *key)?;
            let (scope, task, version) = (scope.clone(), task.clone(), row.head.version);
            Some(OpenWebhook { key: *key, scope, task, version, webhook: webhook.clone() })
        })
    }

    fn recorded(&self, scope: &Scope, message: Option<&MessageRecord>) -> Option<MessageRecord> {
        self.records.get(&key(scope, &message?.message_id, &message?.hash)).cloned()
    }

    fn record(&mut self, scope: &Scope, message: Option<MessageRecord>) -> Option<RecordKey> {
        let message = message?;
        let key = key(scope, &message.message_id, &message.hash);
        self.records.insert(key.clone(), message);
        Some(key)
    }
}

impl OwnStore {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, scope: &Scope, task: &TaskId, read: impl FnOnce(&Row) -> T) -> StoreResult<Option<T>> {
        Ok(self.rows().tasks.get(&(scope.clone(), task.clone())).map(read))
    }
}

#[async_trait]
impl Store for OwnStore {
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        let mut rows = self.rows();
        if let Some(first) = rows.recorded(scope, append.message.as_ref()) {
            return Ok(Appended::Duplicate(first));
        }
        let fresh = rows.fresh_number();
        let Rows { tasks, records, .. } = &mut *rows;
        let row = match (tasks.entry((scope.clone(), append.task.clone())), append.birth.clone()) {
            (btree_map::Entry::Vacant(entry), Some(birth)) => entry.insert(Row {
                head: Head {
                    key: TaskKey(fresh),
                    context_id: birth.context_id,
                    generation: birth.generation,
                    created_at: birth.created_at,
                    version: 0,
                    folded_through: 0,
                    current: append.head,
                },
                events: Vec::new(),
                snapshot: None,
                requests: Vec::new(),
                said: None,
            }),
            (btree_map::Entry::Occupied(entry), None) => {
                let row = entry.into_mut();
                if !row.takes(&append) {
                    return Ok(Appended::Conflict);
                }
                row
            }
            _ => return Ok(Appended::Conflict),
        };
        let said = said::after(row.said.as_ref().map_or(0, |said| said.number), &append.events);
        row.said = append.events.iter().cloned().chain(row.said.take()).find(|event| event.number == said);
        row.head.version += append.events.len() as u64;
        row.head.current = append.head;
        row.events.extend(append.events);
        row.snapshot = append.snapshot.or(row.snapshot.take());
        for settled in append.settled {
            let place = row.requests.iter().position(|(pending, _)| pending.request == settled.request);
            let message = place.and_then(|place| row.requests.remove(place).1);
            if let Some(record) = message.and_then(|message| records.get_mut(&message)) {
                record.event = settled.event.or(record.event);
            }
        }
        let written = row.head.key;
        rows.record(scope, append.message);
        if let Some(webhook) = append.webhook {
            let NewWebhook { id, record, .. } = *webhook;
            let webhook = StoredWebhook { id: id.clone(), record, cursor: WebhookCursor::after(0) };
            rows.webhooks.insert((written, id), webhook);
        }
        Ok(Appended::Written(written))
    }

    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested> {
        let mut rows = self.rows();
        if let Some(first) = rows.recorded(scope, request.message.as_ref()) {
            return Ok(Requested::Duplicate(first));
        }
        let of = (scope.clone(), task.clone());
        match rows.tasks.get(&of) {
            None => return Ok(Requested::NotFound),
            Some(row) if row.head.current.state.is_terminal() => {
                return Ok(Requested::Ended(row.head.clone()));
            }
            Some(row) if row.requests.len() >= request.most_pending as usize => return Ok(Requested::Full),
            Some(_) => {}
        }
        let number = RequestId(rows.fresh_number());
        let message = rows.record(scope, request.message);
        let Some(row) = rows.tasks.get_mut(&of) else { return Ok(Requested::NotFound) };
        row.requests.push((PendingRequest { request: number, event: request.event }, message));
        Ok(Requested::Noted { request: number, head: row.head.clone() })
    }

    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        let pending = |row: &Row| row.requests.iter().map(|(pending, _)| pending.clone()).collect();
        Ok(self.read(scope, task, pending)?.unwrap_or_default())
    }

    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        self.read(scope, task, |row| row.head.clone())
    }

    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        self.read(scope, task, |row| row.load(task))
    }

    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        let page = |row: &Row| {
            let behind = row.events.iter().filter(|event| event.number > after).take(limit as usize);
            let mut bytes = 0;
            let fits = |event: &&StoredEvent| {
                let first = bytes == 0;
                bytes += event.record().len();
                first || bytes <= EVENTS_BYTES
            };
            behind.take_while(fits).cloned().collect()
        };
        Ok(self.read(scope, task, page)?.unwrap_or_default())
    }

    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        let rows = self.rows();
        let matches = |head: &Head| {
            let (filter, current) = (&query.filter, &head.current);
            filter.context_id.as_ref().is_none_or(|context| *context == head.context_id)
                && (filter.states.is_empty() || filter.states.contains(&current.state))
                && filter.updated_since.is_none_or(|since| current.status_at >= since)
        };
        let own = rows.tasks.iter().filter(|((of, _), row)| of == scope && matches(&row.head));
        let mut found: Vec<_> = own.map(|((_, id), row)| ((row.head.current.status_at, id), row)).collect();
        let total = query.counted.then_some(found.len() as u64);
        let after = query.after.as_ref().map(|after| (after.status_at, &after.id));
        found.retain(|(place, _)| place.0 <= query.not_after && after.is_none_or(|after| *place < after));
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        for ((_, id), row) in found.iter().take(query.limit as usize) {
            let listed = match query.detail {
                Detail::Whole => Listed::Whole(row.load(id)),
                Detail::Status => Listed::Status(Brief {
                    id: (*id).clone(),
                    head: row.head.clone(),
                    said: row.said.clone(),
                }),
            };
            bytes += listed.bytes();
            if bytes > query.most_bytes && !tasks.is_empty() {
                break;
            }
            tasks.push(listed);
        }
        Ok(ListPage { more: tasks.len() < found.len(), tasks, total })
    }

    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        Ok(self.rows().records.get(&key(scope, id, hash)).cloned())
    }

    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>> {
        let mut rows = self.rows();
        let first = rows.recorded(scope, Some(&record));
        if first.is_none() {
            rows.record(scope, Some(record));
        }
        Ok(first)
    }

    async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>> {
        // The store is in the memory of this process.
        Ok(Vec::new())
    }

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        let rows = self.rows();
        let is_open = |row: &Row| row.head.current.work != Work::Idle || !row.requests.is_empty();
        let open = rows.tasks.iter().filter(|(_, row)| is_open(row) && row.head.key > after);
        let mut open: Vec<_> = open
            .map(|((scope, id), row)| OpenTask { key: row.head.key, scope: scope.clone(), id: id.clone() })
            .collect();
        open.sort_by_key(|task| task.key);
        open.truncate(limit as usize);
        Ok(open)
    }

    async fn find_secret(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        Ok(self.rows().secrets.get(name).cloned())
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        Ok(self.rows().secrets.entry(name.to_owned()).or_insert(fresh).clone())
    }

    async fn replace_secret(&self, name: &str, old: &[u8], new: Vec<u8>) -> StoreResult<bool> {
        let mut rows = self.rows();
        let Some(kept) = rows.secrets.get_mut(name).filter(|kept| *kept == old) else { return Ok(false) };
        *kept = new;
        Ok(true)
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        let mut rows = self.rows();
        rows.notes.extend(put.map(|text| (name.to_owned(), text)));
        Ok(rows.notes.get(name).cloned())
    }

    async fn credentials(&self) -> StoreResult<Vec<StoredCredential>> {
        let rows = self.rows();
        let stored =
            |(id, record): (&String, &Bytes)| StoredCredential { id: id.clone(), record: record.clone() };
        Ok(rows.credentials.iter().map(stored).collect())
    }

    async fn put_credential(&self, credential: StoredCredential) -> StoreResult<()> {
        self.rows().credentials.insert(credential.id, credential.record);
        Ok(())
    }

    async fn remove_credential(&self, id: &str) -> StoreResult<()> {
        self.rows().credentials.remove(id);
        Ok(())
    }

    async fn check(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn task_count(&self) -> StoreResult<u64> {
        Ok(self.rows().tasks.len() as u64)
    }

    /// Adds everything up; a store with many tasks should keep the sums.
    async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage> {
        let rows = self.rows();
        let tasks = rows.tasks.iter().filter(|((scope, _), _)| &*scope.owner == owner);
        let mut usage = OwnerUsage::default();
        for (_, row) in tasks {
            let requests = row.requests.iter().map(|(pending, _)| pending.event.record());
            let snapshot = row.snapshot.iter().map(StoredSnapshot::record);
            let records = row.events.iter().map(StoredEvent::record).chain(requests).chain(snapshot);
            usage.tasks += 1;
            let webhooks = rows.webhooks_of(row.head.key).map(|webhook| &webhook.record);
            usage.bytes += records.chain(webhooks).map(|record| record.len() as u64).sum::<u64>();
        }
        let records = rows.records.iter().filter(|((scope, ..), _)| &*scope.owner == owner);
        usage.bytes += records.map(|(_, record)| record.counted_bytes()).sum::<u64>();
        Ok(usage)
    }

    async fn put_webhook(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> StoreResult<PutWebhook> {
        let mut rows = self.rows();
        let Some(row) = rows.tasks.get(&(scope.clone(), task.clone())) else {
            return Ok(PutWebhook::NotFound);
        };
        let Head { key, version, current, .. } = row.head.clone();
        let mut cursor = match rows.webhooks.get(&(key, new.id.clone())) {
            Some(StoredWebhook { cursor, .. }) => {
                WebhookCursor { revision: cursor.revision + 1, ..WebhookCursor::after(cursor.done) }
            }
            None if rows.webhooks_of(key).count() >= new.most as usize => return Ok(PutWebhook::Full),
            None => WebhookCursor::after(version),
        };
        if current.state.is_terminal() && cursor.done >= version {
            cursor.state = WebhookState::Finished;
        }
        let webhook = StoredWebhook { id: new.id.clone(), record: new.record, cursor };
        rows.webhooks.insert((key, new.id), webhook.clone());
        Ok(PutWebhook::Stored { key, webhook })
    }

    async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>> {
        let rows = self.rows();
        let row = rows.tasks.get(&(scope.clone(), task.clone()));
        Ok(row.map(|row| rows.webhooks_of(row.head.key).cloned().collect()).unwrap_or_default())
    }

    async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool> {
        let mut rows = self.rows();
        let key = rows.tasks.get(&(scope.clone(), task.clone())).map(|row| row.head.key);
        let Some(of) = key.map(|key| (key, id.clone())) else { return Ok(false) };
        let is_meant =
            |known: &StoredWebhook| revision.is_none_or(|revision| known.cursor.revision == revision);
        let is_there = rows.webhooks.get(&of).is_some_and(is_meant);
        Ok(is_there && rows.webhooks.remove(&of).is_some())
    }

    async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool> {
        Ok(self.rows().move_webhook(task, id, revision, cursor))
    }

    async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        let rows = self.rows();
        let is_after = |open: &OpenWebhook| {
            after.as_ref().is_none_or(|(key, id)| (open.key, &open.webhook.id) > (*key, id))
        };
        Ok(rows.open_webhooks().filter(is_after).take(limit as usize).collect())
    }

    async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
        Ok(self.rows().open_webhooks().filter(|open| open.key == task).collect())
    }

    async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool> {
        let mut rows = self.rows();
        if !rows.move_webhook(failed.key, &failed.id, revision, cursor) {
            return Ok(false);
        }
        let failed_webhooks = &mut rows.failed_webhooks;
        failed_webhooks.insert((failed.key, failed.id.clone()), failed);
        while failed_webhooks.len() > most as usize {
            let oldest =
                failed_webhooks.values().map(|failed| (failed.at, failed.key, failed.id.clone())).min();
            let Some((_, key, id)) = oldest else { break };
            failed_webhooks.remove(&(key, id));
        }
        Ok(true)
    }

    async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>> {
        let position = |failed: &FailedWebhook| (failed.at, failed.key, failed.id.clone());
        let mut failed: Vec<_> = self.rows().failed_webhooks.values().cloned().collect();
        failed.retain(|failed| after.as_ref().is_none_or(|after| position(failed) < *after));
        failed.sort_by_key(|failed| std::cmp::Reverse(position(failed)));
        failed.truncate(limit as usize);
        Ok(failed)
    }

    async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
        Ok(self.rows().failed_webhooks.remove(&(task, id.clone())).is_some())
    }

    async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let mut rows = self.rows();
        let told = |row: &Row| row.snapshot.as_ref().map_or(0, StoredSnapshot::version);
        let may_go = |row: &Row| row.ended_before(despite_webhooks) || !rows.has_open_webhook(row.head.key);
        let foldable = rows.tasks.iter().filter(|(_, row)| {
            row.ended_before(before) && told(row) > row.head.folded_through && may_go(row)
        });
        let foldable: Vec<_> = foldable.take(limit as usize).map(|(of, _)| of.clone()).collect();
        for of in &foldable {
            let Some(row) = rows.tasks.get_mut(of) else { continue };
            row.head.folded_through = told(row);
            row.events.retain(|event| event.number > row.head.folded_through);
        }
        Ok(foldable.len() as u64)
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let mut rows = self.rows();
        let may_go = |row: &Row| !rows.has_open_webhook(row.head.key);
        let ended = rows.tasks.iter().filter(|(_, row)| row.ended_before(before) && may_go(row));
        let mut ended: Vec<_> = ended.map(|(of, row)| (row.head.current.status_at, of.clone())).collect();
        ended.sort();
        ended.truncate(limit as usize);
        for (_, of) in &ended {
            let Some(row) = rows.tasks.remove(of) else { continue };
            rows.webhooks.retain(|(key, _), _| *key != row.head.key);
        }
        Ok(ended.len() as u64)
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let mut rows = self.rows();
        let Rows { tasks, records, .. } = &mut *rows;
        let lives = |of: &RecordKey, record: &MessageRecord| {
            record.task.as_ref().is_some_and(|task| tasks.contains_key(&(of.0.clone(), task.clone())))
        };
        let old = records.iter().filter(|(of, record)| record.at < before && !lives(of, record));
        let old: Vec<_> = old.take(limit as usize).map(|(of, _)| of.clone()).collect();
        for of in &old {
            records.remove(of);
        }
        Ok(old.len() as u64)
    }
}

async fn hello(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("greeting", format!("Hello, {}!", turn.text())).await
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let server =
        Server::agent("hello", "Greets whoever writes", hello).store(OwnStore::default()).build().await?;
    server.serve(address).await
}

#[cfg(test)]
mod tests {
    use baton_server::a2a::TaskState;
    use baton_server::store::suite;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_store_from_outside_keeps_the_contract() {
        suite::check(|| async { OwnStore::default() }).await;
    }

    #[test]
    fn a_store_from_outside_answers_like_the_model() {
        suite::check_model(|| async { OwnStore::default() });
    }

    #[tokio::test]
    async fn a_store_from_outside_serves_an_agent() {
        let server =
            Server::agent("hello", "Greets", hello).store(OwnStore::default()).build().await.unwrap();
        let task = server.send("Baton").await.unwrap().into_task().unwrap();
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(server.client().task(&task.id).await.unwrap(), task);
    }
}
