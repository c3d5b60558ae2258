//! A second implementation of the contract, as simple as possible: vectors and loops. A backend must answer any sequence of
//! calls as the model does.
//!
//! The backend chooses keys and request ids; the model takes them from its answers. Sweeps run without a limit here, because
//! the contract does not say which of several tasks with the same time goes first.

use std::sync::Arc;

use baton_protocol::domain::{EventKind, ListFilter, MessageId, Scope, TaskId, TaskState, Timestamp};

use crate::store::{
    Append, Appended, Brief, Detail, HASH_DIGEST, Head, ListPage, ListQuery, Listed, Loaded, MessageHash,
    MessageRecord, NewRequest, OpenTask, OwnerUsage, PendingRequest, RequestId, Requested, StoredEvent,
    StoredSnapshot, TaskKey, Work,
};

mod steps;

pub(super) use steps::check;

#[derive(Default)]
struct Model {
    tasks: Vec<ModelTask>,
    records: Vec<(Scope, MessageRecord)>,
}

struct ModelTask {
    scope: Scope,
    id: TaskId,
    head: Head,
    events: Vec<StoredEvent>,
    snapshot: Option<StoredSnapshot>,
    pending: Vec<(PendingRequest, Option<MessageRecord>)>,
    /// The event with the current status message or metadata.
    said: Option<StoredEvent>,
}

impl ModelTask {
    fn load(&self) -> Loaded {
        let snapshot_version = self.snapshot.as_ref().map_or(0, StoredSnapshot::version);
        let tail = self.events.iter().filter(|event| event.number > snapshot_version).cloned().collect();
        Loaded { id: self.id.clone(), head: self.head.clone(), snapshot: self.snapshot.clone(), tail }
    }

    /// Does the append end the task without writing every pending message into the log?
    fn would_lose_message(&self, append: &Append) -> bool {
        let ends = append.head.state.is_terminal() && !append.events.is_empty();
        let written = |waiting: &PendingRequest| {
            append.settled.iter().any(|s| s.request == waiting.request && s.event.is_some())
        };
        ends && self.pending.iter().any(|(waiting, message)| message.is_some() && !written(waiting))
    }

    fn matches(&self, filter: &ListFilter, not_after: Timestamp) -> bool {
        let current = &self.head.current;
        filter.context_id.as_ref().is_none_or(|context| *context == self.head.context_id)
            && (filter.states.is_empty() || filter.states.contains(&current.state))
            && filter.updated_since.is_none_or(|since| current.status_at >= since)
            && current.status_at <= not_after
    }

    fn ended_before(&self, before: Timestamp) -> bool {
        self.head.current.state.is_terminal() && self.head.current.status_at < before
    }
}

impl Model {
    fn task(&mut self, scope: &Scope, id: &TaskId) -> Option<&mut ModelTask> {
        self.tasks.iter_mut().find(|task| task.scope == *scope && task.id == *id)
    }

    fn record(&mut self, scope: &Scope, id: &MessageId, hash: &MessageHash) -> Option<&mut MessageRecord> {
        let mut same = self.records.iter_mut().filter(|(of, _)| of == scope).map(|(_, record)| record);
        same.find(|record| record.message_id == *id && record.hash[..HASH_DIGEST] == hash[..HASH_DIGEST])
    }

    fn on_record(&mut self, scope: &Scope, message: Option<&MessageRecord>) -> Option<MessageRecord> {
        let message = message?;
        self.record(scope, &message.message_id, &message.hash).cloned()
    }

    fn append(&mut self, scope: &Scope, append: Append, chosen: TaskKey) -> Appended {
        if let Some(first) = self.on_record(scope, append.message.as_ref()) {
            return Appended::Duplicate(first);
        }
        match (&append.birth, self.task(scope, &append.task)) {
            (Some(birth), None) => {
                let birth = birth.clone();
                let head = Head {
                    key: chosen,
                    context_id: birth.context_id,
                    generation: birth.generation,
                    created_at: birth.created_at,
                    version: 0,
                    folded_through: 0,
                    current: append.head,
                };
                let (scope, id) = (scope.clone(), append.task.clone());
                self.tasks.push(ModelTask {
                    scope,
                    id,
                    head,
                    events: vec![],
                    snapshot: None,
                    pending: vec![],
                    said: None,
                });
            }
            (None, Some(task))
                if (task.head.version, task.head.current.fence) == (append.expected, append.fence)
                    && !task.would_lose_message(&append) => {}
            _ => return Appended::Conflict,
        }
        let task = self.task(scope, &append.task).expect("born above if not before");
        task.head.version += append.events.len() as u64;
        task.head.current = append.head;
        for event in &append.events {
            match event.kind {
                EventKind::UserMessage => task.said = None,
                // The fixture's status JSON is not in the codec's form, so stores must assume that it has a message.
                EventKind::Status(_) => task.said = Some(event.clone()),
                _ => {}
            }
        }
        task.events.extend(append.events);
        task.snapshot = append.snapshot.or(task.snapshot.take());
        let key = task.head.key;
        for settled in append.settled {
            let task = self.task(scope, &append.task).expect("it is there");
            let Some(at) = task.pending.iter().position(|(pending, _)| pending.request == settled.request)
            else {
                continue;
            };
            let (_, message) = task.pending.remove(at);
            if let (Some(message), Some(event)) = (message, settled.event) {
                let record = self.record(scope, &message.message_id, &message.hash);
                record.expect("records outlive requests").event = Some(event);
            }
        }
        self.records.extend(append.message.map(|record| (scope.clone(), record)));
        Appended::Written(key)
    }

    fn request(&mut self, scope: &Scope, id: &TaskId, request: NewRequest, chosen: RequestId) -> Requested {
        if let Some(first) = self.on_record(scope, request.message.as_ref()) {
            return Requested::Duplicate(first);
        }
        let Some(task) = self.task(scope, id) else { return Requested::NotFound };
        if task.head.current.state.is_terminal() {
            return Requested::Ended(task.head.clone());
        }
        if task.pending.len() >= request.most_pending as usize {
            return Requested::Full;
        }
        let pending = PendingRequest { request: chosen, event: request.event };
        if let Some((last, _)) = task.pending.last() {
            assert!(last.request < chosen, "request ids rise");
        }
        task.pending.push((pending, request.message.clone()));
        let head = task.head.clone();
        self.records.extend(request.message.map(|record| (scope.clone(), record)));
        Requested::Noted { request: chosen, head }
    }

    fn events(&mut self, scope: &Scope, id: &TaskId, after: u64, limit: u32) -> Vec<StoredEvent> {
        let Some(task) = self.task(scope, id) else { return Vec::new() };
        task.events.iter().filter(|event| event.number > after).take(limit as usize).cloned().collect()
    }

    fn list(&self, scope: &Scope, query: &ListQuery) -> ListPage {
        let place = |task: &ModelTask| (task.head.current.status_at, task.id.clone());
        let mut found: Vec<_> = self.tasks.iter().filter(|task| task.scope == *scope).collect();
        found.retain(|task| task.matches(&query.filter, Timestamp::MAX));
        let total = query.counted.then_some(found.len() as u64);
        found.retain(|task| task.matches(&query.filter, query.not_after));
        found.retain(|task| query.after.as_ref().is_none_or(|p| place(task) < (p.status_at, p.id.clone())));
        found.sort_by_key(|task| place(task));
        let more = found.len() > query.limit as usize;
        let listed = |task: &ModelTask| match query.detail {
            Detail::Whole => Listed::Whole(task.load()),
            Detail::Status => Listed::Status(Brief {
                id: task.id.clone(),
                head: task.head.clone(),
                said: task.said.clone(),
            }),
        };
        let tasks = found.iter().rev().take(query.limit as usize).map(|task| listed(task)).collect();
        ListPage { tasks, more, total }
    }

    fn put_reply(&mut self, scope: &Scope, record: MessageRecord) -> Option<MessageRecord> {
        let first = self.on_record(scope, Some(&record));
        if first.is_none() {
            self.records.push((scope.clone(), record));
        }
        first
    }

    fn open_tasks(&self, after: TaskKey, limit: u32) -> Vec<OpenTask> {
        let is_open = |task: &&ModelTask| task.head.current.work != Work::Idle || !task.pending.is_empty();
        let open = |task: &ModelTask| OpenTask {
            key: task.head.key,
            scope: task.scope.clone(),
            id: task.id.clone(),
        };
        let mut found: Vec<_> = self.tasks.iter().filter(is_open).map(open).collect();
        found.retain(|open| open.key > after);
        found.sort_by_key(|open| open.key);
        found.truncate(limit as usize);
        found
    }

    fn fold_ended(&mut self, before: Timestamp) -> u64 {
        let mut folded = 0;
        for task in self.tasks.iter_mut().filter(|task| task.ended_before(before)) {
            let snapshot_version = task.snapshot.as_ref().map_or(0, StoredSnapshot::version);
            if snapshot_version > task.head.folded_through {
                task.events.retain(|event| event.number > snapshot_version);
                task.head.folded_through = snapshot_version;
                folded += 1;
            }
        }
        folded
    }

    fn purge_ended(&mut self, before: Timestamp) -> u64 {
        let had = self.tasks.len();
        self.tasks.retain(|task| !task.ended_before(before));
        (had - self.tasks.len()) as u64
    }

    fn owner_usage(&self, owner: &str) -> OwnerUsage {
        let tasks: Vec<_> = self.tasks.iter().filter(|task| &*task.scope.owner == owner).collect();
        let records = self.records.iter().filter(|(scope, _)| &*scope.owner == owner);
        let of_task = |task: &&ModelTask| {
            let events = task.events.iter().chain(task.pending.iter().map(|(pending, _)| &pending.event));
            let snapshot = task.snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len());
            events.map(|event| event.record().len()).sum::<usize>() + snapshot
        };
        let bytes = tasks.iter().map(of_task).sum::<usize>() as u64;
        let records: u64 = records.map(|(_, record)| record.counted_bytes()).sum();
        OwnerUsage { tasks: tasks.len() as u64, bytes: bytes + records }
    }

    fn purge_records(&mut self, before: Timestamp) -> u64 {
        let had = self.records.len();
        let tasks = &self.tasks;
        let lives = |scope: &Scope, record: &MessageRecord| {
            tasks.iter().any(|task| task.scope == *scope && Some(&task.id) == record.task.as_ref())
        };
        self.records.retain(|(scope, record)| record.at >= before || lives(scope, record));
        (had - self.records.len()) as u64
    }
}
