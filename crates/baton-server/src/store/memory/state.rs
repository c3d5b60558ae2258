//! The data of the store, protected by its lock. Nothing here blocks.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use baton_protocol::domain::{MessageId, PushConfigId, Scope, TaskId, TaskState, Timestamp};
use bytes::Bytes;

use super::entry::{Entry, IndexedBy, Pending, StatusEvent};
use super::lists::Row;
use super::log::Log;
use super::records::{CompactRecord, Records};
use super::scopes::{ScopeId, Scopes};
use super::tasks::Tasks;
use super::webhooks::{Put, Webhooks};
use crate::store::{
    Append, Appended, Birth, FailedWebhook, Head, HeadState, ListPage, ListQuery, MessageHash, MessageRecord,
    NewRequest, NewWebhook, OpenTask, OpenWebhook, OwnerUsage, PutWebhook, RequestId, Requested,
    StoredCredential, StoredEvent, StoredWebhook, TaskKey, WebhookCursor, WebhookState,
};

#[derive(Default)]
pub(super) struct State {
    scopes: Scopes,
    tasks: Tasks,
    sweeps: Sweeps,
    /// How many tasks are in each state, in the order of [`TaskState::ALL`].
    by_state: [u64; TaskState::ALL.len()],
    records: Records,
    secrets: HashMap<String, Vec<u8>>,
    notes: HashMap<String, String>,
    credentials: HashMap<String, Bytes>,
    webhooks: Webhooks,
    /// Keys are never reused, not even after a purge: webhook ids contain them.
    last_key: u64,
    last_request: u64,
}

/// Indexes for sweeps and restarts, over all scopes, so that they do not scan other tasks.
#[derive(Default)]
struct Sweeps {
    /// Ended tasks with events to fold.
    foldable: BTreeSet<(Timestamp, TaskKey)>,
    /// The other ended tasks.
    ended: BTreeSet<(Timestamp, TaskKey)>,
    /// Tasks with work or pending requests.
    open: BTreeSet<TaskKey>,
}

impl State {
    pub(super) fn append(&mut self, scope: &Scope, append: Append) -> Appended {
        let known = self.scopes.find(scope);
        if let (Some(message), Some(scope)) = (&append.message, known)
            && let Some(first) = self.records.find(scope, &message.message_id, &message.hash)
        {
            return Appended::Duplicate(first);
        }
        match (&append.birth, known.and_then(|scope| self.scopes.task(&self.tasks, scope, &append.task))) {
            (Some(birth), None) if append.expected == 0 && append.fence == 0 => {
                let scope = known.unwrap_or_else(|| self.scopes.find_or_add(scope));
                let key = self.create(scope, &append.task, birth, &append);
                self.write(key, None, append)
            }
            (None, Some(key)) => {
                let entry = self.task(key);
                let Head { version, current, .. } = &entry.head;
                if (*version, current.fence) != (append.expected, append.fence) {
                    return Appended::Conflict;
                }
                let left_out =
                    |waiting: &Pending| waiting.message.is_some() && !append.writes(waiting.request);
                if append.ends_task() && entry.log.pending().iter().any(left_out) {
                    return Appended::Conflict;
                }
                self.write(key, Some(entry.indexed_by()), append)
            }
            _ => Appended::Conflict,
        }
    }

    /// Creates the task, without events and not in any list yet.
    fn create(&mut self, scope: ScopeId, id: &TaskId, birth: &Birth, append: &Append) -> TaskKey {
        self.last_key += 1;
        let key = TaskKey(self.last_key);
        let Birth { context_id, generation, created_at } = birth.clone();
        let head = Head {
            key,
            context_id,
            generation,
            created_at,
            version: 0,
            folded_through: 0,
            current: append.head,
        };
        let entry = Entry {
            scope,
            id: id.clone(),
            head,
            log: Log::default(),
            snapshot_version: 0,
            status_event: StatusEvent::At(0),
            messages: Vec::new(),
            bytes: 0,
        };
        self.tasks.insert(Box::new(entry));
        self.scopes.usage(scope).tasks += 1;
        self.scopes.get_mut(scope).task_ids.insert(&self.tasks, key);
        key
    }

    /// Applies an append. All comparisons are done; nothing here can fail.
    fn write(&mut self, key: TaskKey, before: Option<IndexedBy>, append: Append) -> Appended {
        let entry = self.tasks.get_mut(key);
        debug_assert!(
            (append.expected + 1..).zip(&append.events).all(|(number, event)| event.number == number),
            "events must be numbered from {} on",
            append.expected + 1
        );
        entry.head.version = append.expected + append.events.len() as u64;
        entry.head.current = append.head;
        let usage = self.scopes.usage(entry.scope);
        usage.bytes -= entry.bytes;
        entry.write(append.events, append.snapshot);
        for settled in append.settled {
            let Some(pending) = entry.settle(settled.request) else { continue };
            if let (Some(message), Some(event)) = (pending.message, settled.event) {
                self.records.set_event(entry.scope, message, event);
            }
        }
        usage.bytes += entry.bytes;
        if let Some(record) = append.message {
            usage.bytes += record.counted_bytes();
            self.scopes.get_mut(entry.scope).records += 1;
            entry.messages.reserve_exact(1);
            entry.messages.push(self.records.insert(entry.scope, record, Some(&entry.id)));
        }
        let after = entry.indexed_by();
        if !after.open {
            entry.compact();
        }
        if let Some(new) = append.webhook
            && let Some(put) = self.webhooks.put(&entry.head, *new, 0)
        {
            self.scopes.usage(entry.scope).bytes += put.added;
        }
        self.reindex(key, before, Some(after));
        Appended::Written(key)
    }

    pub(super) fn request(&mut self, scope: &Scope, task: &TaskId, request: NewRequest) -> Requested {
        let Some(scope) = self.scopes.find(scope) else { return Requested::NotFound };
        if let Some(message) = &request.message
            && let Some(first) = self.records.find(scope, &message.message_id, &message.hash)
        {
            return Requested::Duplicate(first);
        }
        let Some(key) = self.scopes.task(&self.tasks, scope, task) else { return Requested::NotFound };
        let entry = self.tasks.get_mut(key);
        if entry.head.current.state.is_terminal() {
            return Requested::Ended(entry.head.clone());
        }
        if entry.log.pending().len() >= request.most_pending as usize {
            return Requested::Full;
        }
        let before = entry.indexed_by();
        self.last_request += 1;
        let id = RequestId(self.last_request);
        let message = request.message.as_ref().map(|record| (record.message_id.clone(), record.hash));
        let usage = self.scopes.usage(scope);
        usage.bytes += request.event.record().len() as u64;
        entry.note(Pending { request: id, event: request.event, message });
        if let Some(record) = request.message {
            usage.bytes += record.counted_bytes();
            self.scopes.get_mut(scope).records += 1;
            entry.messages.push(self.records.insert(scope, record, Some(&entry.id)));
        }
        let (after, head) = (entry.indexed_by(), entry.head.clone());
        self.reindex(key, Some(before), Some(after));
        Requested::Noted { request: id, head }
    }

    pub(super) fn entry(&self, scope: &Scope, task: &TaskId) -> Option<&Entry> {
        let key = self.scopes.task(&self.tasks, self.scopes.find(scope)?, task)?;
        Some(self.task(key))
    }

    pub(super) fn list(&self, scope: &Scope, query: &ListQuery) -> ListPage {
        let Some(scope) = self.scopes.find(scope) else {
            return ListPage { tasks: Vec::new(), more: false, total: query.counted.then_some(0) };
        };
        let data = self.scopes.get(scope);
        let found = data.lists.page(&self.tasks, query);
        let key = |id| data.task_ids.find(&self.tasks, id).expect("lists name only tasks that are there");
        let (mut tasks, mut bytes) = (Vec::with_capacity(found.len()), 0);
        for id in found.iter().take(query.limit as usize) {
            let listed = self.task(key(id)).list(query.detail);
            bytes += listed.bytes();
            if bytes > query.most_bytes && !tasks.is_empty() {
                break;
            }
            tasks.push(listed);
        }
        let total = query.counted.then(|| data.lists.count(&self.tasks, &query.filter));
        ListPage { more: tasks.len() < found.len(), tasks, total }
    }

    pub(super) fn message(&self, scope: &Scope, id: &MessageId, hash: &MessageHash) -> Option<MessageRecord> {
        self.records.find(self.scopes.find(scope)?, id, hash)
    }

    pub(super) fn put_reply(&mut self, scope: &Scope, record: MessageRecord) -> Option<MessageRecord> {
        let scope = self.scopes.find_or_add(scope);
        if let Some(first) = self.records.find(scope, &record.message_id, &record.hash) {
            return Some(first);
        }
        self.scopes.usage(scope).bytes += record.counted_bytes();
        self.scopes.get_mut(scope).records += 1;
        self.records.insert(scope, record, None);
        None
    }

    pub(super) fn open_tasks(&self, after: TaskKey, limit: u32) -> Vec<OpenTask> {
        let above = self.sweeps.open.range((Bound::Excluded(after), Bound::Unbounded));
        let open = |key: &TaskKey| {
            let entry = self.task(*key);
            OpenTask { key: *key, scope: self.scopes.get(entry.scope).scope.clone(), id: entry.id.clone() }
        };
        above.take(limit as usize).map(open).collect()
    }

    pub(super) fn find_secret(&self, name: &str) -> Option<Vec<u8>> {
        self.secrets.get(name).cloned()
    }

    pub(super) fn secret(&mut self, name: &str, fresh: Vec<u8>) -> Vec<u8> {
        self.secrets.entry(name.to_owned()).or_insert(fresh).clone()
    }

    pub(super) fn replace_secret(&mut self, name: &str, old: &[u8], new: Vec<u8>) -> bool {
        match self.secrets.get_mut(name) {
            Some(kept) if kept == old => {
                *kept = new;
                true
            }
            _ => false,
        }
    }

    pub(super) fn note(&mut self, name: &str, put: Option<String>) -> Option<String> {
        if let Some(text) = put {
            self.notes.insert(name.to_owned(), text);
        }
        self.notes.get(name).cloned()
    }

    pub(super) fn credentials(&self) -> Vec<StoredCredential> {
        let stored =
            |(id, record): (&String, &Bytes)| StoredCredential { id: id.clone(), record: record.clone() };
        self.credentials.iter().map(stored).collect()
    }

    pub(super) fn put_credential(&mut self, credential: StoredCredential) {
        self.credentials.insert(credential.id, credential.record);
    }

    pub(super) fn remove_credential(&mut self, id: &str) {
        self.credentials.remove(id);
    }

    pub(super) fn owner_usage(&self, owner: &str) -> OwnerUsage {
        self.scopes.usage_of(owner)
    }

    pub(super) fn task_count(&self) -> u64 {
        self.tasks.len() as u64
    }

    /// Entries of what grows with tasks, records and scopes.
    pub(super) fn entries(&self) -> u64 {
        let Sweeps { foldable, ended, open } = &self.sweeps;
        let sweeps = foldable.len() + ended.len() + open.len();
        (self.scopes.entries() + self.tasks.len() + self.records.entries() + sweeps) as u64
    }

    pub(super) fn by_state(&self) -> [u64; TaskState::ALL.len()] {
        self.by_state
    }

    pub(super) fn put_webhook(&mut self, scope: &Scope, task: &TaskId, new: NewWebhook) -> PutWebhook {
        let Some(entry) = self.entry(scope, task) else { return PutWebhook::NotFound };
        let (scope, head) = (entry.scope, entry.head.clone());
        let Some(Put { webhook, added, removed }) = self.webhooks.put(&head, new, head.version) else {
            return PutWebhook::Full;
        };
        let usage = self.scopes.usage(scope);
        usage.bytes = usage.bytes - removed + added;
        PutWebhook::Stored { key: head.key, webhook }
    }

    pub(super) fn webhooks(&self, scope: &Scope, task: &TaskId) -> Vec<StoredWebhook> {
        let entry = self.entry(scope, task);
        entry.map(|entry| self.webhooks.of(entry.head.key).to_vec()).unwrap_or_default()
    }

    pub(super) fn remove_webhook(
        &mut self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> bool {
        let Some(entry) = self.entry(scope, task) else { return false };
        let (scope, key) = (entry.scope, entry.head.key);
        let Some(bytes) = self.webhooks.remove(key, id, revision) else { return false };
        self.scopes.usage(scope).bytes -= bytes;
        true
    }

    pub(super) fn move_webhook(
        &mut self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> bool {
        self.webhooks.move_to(task, id, revision, cursor)
    }

    pub(super) fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> Vec<OpenWebhook> {
        self.webhooks.open(after, limit).map(|(key, webhook)| self.open_webhook(key, webhook)).collect()
    }

    pub(super) fn open_webhooks_of(&self, task: TaskKey) -> Vec<OpenWebhook> {
        let open = |webhook: &&StoredWebhook| webhook.cursor.state == WebhookState::Open;
        self.webhooks.of(task).iter().filter(open).map(|webhook| self.open_webhook(task, webhook)).collect()
    }

    fn open_webhook(&self, key: TaskKey, webhook: &StoredWebhook) -> OpenWebhook {
        let entry = self.task(key);
        OpenWebhook {
            key,
            scope: self.scopes.get(entry.scope).scope.clone(),
            task: entry.id.clone(),
            version: entry.head.version,
            webhook: webhook.clone(),
        }
    }

    pub(super) fn overdue_webhooks(&self, before: Timestamp, limit: u32) -> Vec<OpenWebhook> {
        let ended_at = |key| {
            let HeadState { state, status_at, .. } = self.task(key).head.current;
            state.is_terminal().then_some(status_at).filter(|at| *at < before)
        };
        let open = self.webhooks.open(None, u32::MAX);
        let mut overdue: Vec<_> =
            open.filter_map(|(key, webhook)| Some((ended_at(key)?, key, webhook))).collect();
        overdue.sort_by_key(|(ended_at, key, _)| (*ended_at, *key));
        overdue.truncate(limit as usize);
        overdue.into_iter().map(|(_, key, webhook)| self.open_webhook(key, webhook)).collect()
    }

    pub(super) fn set_aside_webhook(
        &mut self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> bool {
        let moved = self.webhooks.move_to(failed.key, &failed.id, revision, cursor);
        if moved {
            self.webhooks.put_failed(failed, most);
        }
        moved
    }

    pub(super) fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> Vec<FailedWebhook> {
        self.webhooks.failed(after, limit)
    }

    pub(super) fn remove_failed_webhook(&mut self, task: TaskKey, id: &PushConfigId) -> bool {
        self.webhooks.remove_failed(task, id)
    }

    /// Answers the dropped events, one list per task.
    pub(super) fn fold_ended(
        &mut self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> Vec<Vec<StoredEvent>> {
        let fold = |(_, key): (Timestamp, TaskKey)| {
            let entry = self.tasks.get_mut(key);
            let indexed_by = entry.indexed_by();
            let usage = self.scopes.usage(entry.scope);
            usage.bytes -= entry.bytes;
            let events = entry.fold();
            usage.bytes += entry.bytes;
            (key, indexed_by, entry.indexed_by(), events)
        };
        let webhooks = &self.webhooks;
        let may_go = |at, key| at < despite_webhooks || !webhooks.has_open(key);
        let folded: Vec<_> = oldest(&self.sweeps.foldable, before, limit, may_go).map(fold).collect();
        let reindex = |(key, before, after, log)| {
            self.reindex(key, Some(before), Some(after));
            log
        };
        folded.into_iter().map(reindex).collect()
    }

    /// Answers the removed tasks.
    pub(super) fn purge_ended(&mut self, before: Timestamp, limit: u32) -> Vec<Entry> {
        let Sweeps { foldable, ended, .. } = &self.sweeps;
        let may_go = |_, key| !self.webhooks.has_open(key);
        let mut purged: Vec<_> =
            oldest(foldable, before, limit, may_go).chain(oldest(ended, before, limit, may_go)).collect();
        purged.sort_unstable();
        purged.truncate(limit as usize);
        purged.into_iter().filter_map(|(_, key)| self.remove(key)).collect()
    }

    fn remove(&mut self, key: TaskKey) -> Option<Entry> {
        let indexed_by = self.task(key).indexed_by();
        self.reindex(key, Some(indexed_by), None);
        let scope = self.task(key).scope;
        self.scopes.get_mut(scope).task_ids.remove(&self.tasks, key);
        let entry = self.tasks.remove(key)?;
        let usage = self.scopes.usage(scope);
        usage.tasks -= 1;
        usage.bytes -= entry.bytes + self.webhooks.remove_all(key);
        for message in &entry.messages {
            self.records.orphan(scope, *message, &entry.id);
        }
        self.scopes.release(scope);
        Some(*entry)
    }

    /// Answers the removed records.
    pub(super) fn purge_records(&mut self, before: Timestamp, limit: u32) -> Vec<CompactRecord> {
        let lives = |scope: ScopeId, task: &TaskId| self.scopes.task(&self.tasks, scope, task).is_some();
        let purged = self.records.purge(before, limit, lives);
        for record in &purged {
            self.scopes.get_mut(record.scope()).records -= 1;
            self.scopes.usage(record.scope()).bytes -= record.counted_bytes();
        }
        for record in &purged {
            self.scopes.release(record.scope());
        }
        purged
    }

    fn task(&self, key: TaskKey) -> &Entry {
        self.tasks.get(key)
    }

    /// Updates a task in all indexes. `before` is `None` for a new task, `after` for a removed one.
    fn reindex(&mut self, key: TaskKey, before: Option<IndexedBy>, after: Option<IndexedBy>) {
        if before == after {
            return;
        }
        let Entry { scope, id, .. } = self.tasks.get(key);
        let list_key = |indexed_by: Option<IndexedBy>| indexed_by.map(|s| (s.state, s.status_at));
        let (from, to) = (list_key(before), list_key(after));
        if from != to {
            let [from, to] =
                [from, to].map(|key| key.map(|(state, at)| Row::new(state, at, Some(id.clone()))));
            self.scopes.get_mut(*scope).lists.move_row(&self.tasks, key, from.as_ref(), to.as_ref());
        }
        if let Some((state, _)) = from {
            self.by_state[state as usize] -= 1;
        }
        if let Some((state, _)) = to {
            self.by_state[state as usize] += 1;
        }
        if let Some(before) = before {
            self.sweeps.remove(key, before);
        }
        if let Some(after) = after {
            self.sweeps.insert(key, after);
        }
    }
}

impl Sweeps {
    fn insert(&mut self, key: TaskKey, indexed_by: IndexedBy) {
        if let Some(ended) = self.ended(indexed_by) {
            ended.insert((indexed_by.status_at, key));
        }
        if indexed_by.open {
            self.open.insert(key);
        }
    }

    fn remove(&mut self, key: TaskKey, indexed_by: IndexedBy) {
        if let Some(ended) = self.ended(indexed_by) {
            ended.remove(&(indexed_by.status_at, key));
        }
        if indexed_by.open {
            self.open.remove(&key);
        }
    }

    fn ended(&mut self, indexed_by: IndexedBy) -> Option<&mut BTreeSet<(Timestamp, TaskKey)>> {
        let ended = if indexed_by.foldable { &mut self.foldable } else { &mut self.ended };
        indexed_by.state.is_terminal().then_some(ended)
    }
}

fn oldest(
    index: &BTreeSet<(Timestamp, TaskKey)>,
    before: Timestamp,
    limit: u32,
    may_go: impl Fn(Timestamp, TaskKey) -> bool,
) -> impl Iterator<Item = (Timestamp, TaskKey)> {
    let may_go = move |(at, key): &&(Timestamp, TaskKey)| may_go(*at, *key);
    index.range(..(before, TaskKey(0))).filter(may_go).take(limit as usize).copied()
}
