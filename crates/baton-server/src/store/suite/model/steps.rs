//! Random calls, made on a backend and on the model; their answers are compared.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;
use crate::store::suite::fixture::{
    Fixture, Vary as _, at, birth, context, id, message_id, new_request, next, query, record, reply,
};
use crate::store::{ListPosition, ReplicaId, Settled, Store};

const CASES: u32 = 128;
const NO_LIMIT: u32 = 1_000;

/// Runs random sequences on fresh stores.
pub(in crate::store::suite) fn check(open: impl AsyncFn() -> Fixture) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let sequences = vec(step(), 1..80);
    let outcome = TestRunner::new(config).run(&sequences, |steps| {
        runtime.block_on(async {
            let fixture = open().await;
            run(&fixture.store, steps).await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// One call. Uses few names and few times, so that calls often concern the same tasks.
#[derive(Debug, Clone)]
enum Step {
    Append(Box<Write>),
    Request { who: u8, task: u8, message: Option<(u8, u8)>, most_pending: u32 },
    Events { who: u8, task: u8, after: u64, limit: u32 },
    List { who: u8, filter: Filter, after: Option<(i64, u8)>, not_after: i64, limit: u32, brief: bool },
    PutReply { who: u8, message: (u8, u8), millis: i64 },
    OpenTasks { skip: usize, limit: u32 },
    Fold { before: i64 },
    Purge { before: i64 },
    PurgeRecords { before: i64 },
}

#[derive(Debug, Clone)]
struct Write {
    who: u8,
    task: u8,
    /// 0: version, fence and birth are right; 1 to 3: one of them is wrong.
    wrong: u8,
    context: u8,
    events: u64,
    state: TaskState,
    millis: i64,
    work: Work,
    claim: bool,
    snapshot: bool,
    message: Option<(u8, u8)>,
    settle: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Filter {
    context: Option<u8>,
    states: Vec<TaskState>,
    since: Option<i64>,
}

fn step() -> impl Strategy<Value = Step> {
    let (who, task, millis) = (0..3_u8, 0..4_u8, 0..8_i64);
    let request = (who.clone(), task.clone(), prop::option::of(message()), 1..4_u32);
    let events = (who.clone(), task.clone(), 0..10_u64, 1..6_u32);
    let position = prop::option::of((millis.clone(), task.clone()));
    let list = (who.clone(), filter(), position, 0..9_i64, 1..6_u32, any::<bool>());
    prop_oneof![
        12 => write().prop_map(|write| Step::Append(Box::new(write))),
        4 => request.prop_map(|(who, task, message, most_pending)| Step::Request { who, task, message, most_pending }),
        2 => events.prop_map(|(who, task, after, limit)| Step::Events { who, task, after, limit }),
        4 => list.prop_map(|(who, filter, after, not_after, limit, brief)| {
            Step::List { who, filter, after, not_after, limit, brief }
        }),
        1 => (who, message(), millis.clone()).prop_map(|(who, message, millis)| Step::PutReply { who, message, millis }),
        1 => (0..4_usize, 1..4_u32).prop_map(|(skip, limit)| Step::OpenTasks { skip, limit }),
        1 => millis.clone().prop_map(|before| Step::Fold { before }),
        1 => millis.clone().prop_map(|before| Step::Purge { before }),
        1 => millis.prop_map(|before| Step::PurgeRecords { before }),
    ]
}

fn message() -> impl Strategy<Value = (u8, u8)> {
    (0..6_u8, 0..2_u8)
}

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(TaskState::ALL.to_vec())
}

fn filter() -> impl Strategy<Value = Filter> {
    (prop::option::of(0..2_u8), vec(state(), 0..4), prop::option::of(0..9_i64))
        .prop_map(|(context, states, since)| Filter { context, states, since })
}

fn write() -> impl Strategy<Value = Write> {
    let wrong = prop_oneof![8 => Just(0_u8), 1 => 1..5_u8];
    let work = prop::sample::select(vec![Work::Idle, Work::Queued, Work::Running]);
    let target = (0..3_u8, 0..4_u8, wrong, 0..2_u8);
    let head = (state(), 0..8_i64, work, any::<bool>());
    let rest = (0..4_u64, any::<bool>(), prop::option::of(message()), vec(0..3_usize, 0..2));
    (target, head, rest).prop_map(|(target, head, rest)| {
        let ((who, task, wrong, context), (state, millis, work, claim)) = (target, head);
        let (events, snapshot, message, settle) = rest;
        Write { who, task, wrong, context, events, state, millis, work, claim, snapshot, message, settle }
    })
}

fn who(n: u8) -> Scope {
    match n {
        0 => Scope::new("agent", "", "ann"),
        1 => Scope::new("agent", "", "bob"),
        _ => Scope::new("agent", "tenant", "ann"),
    }
}

fn name(task: u8) -> String {
    format!("t{task}")
}

fn record_of(task: u8, (message, hash): (u8, u8)) -> MessageRecord {
    MessageRecord { at: at(message.into()), ..record(&format!("m{message}"), hash, &name(task)) }
}

async fn run(store: &Arc<dyn Store>, steps: Vec<Step>) {
    let mut model = Model::default();
    for step in steps {
        apply(store, &mut model, step).await;
    }
    compare_everything(store, &mut model).await;
}

async fn apply(store: &Arc<dyn Store>, model: &mut Model, step: Step) {
    match step {
        Step::Append(write) => {
            let scope = who(write.who);
            let append = write.append(model);
            let answer = store.append(&scope, append.clone()).await.unwrap();
            let chosen = if let Appended::Written(key) = answer { key } else { TaskKey(0) };
            assert_eq!(model.append(&scope, append, chosen), answer);
            compare_task(store, model, &scope, &id(&name(write.task))).await;
        }
        Step::Request { who: n, task, message, most_pending } => {
            let (scope, task_id) = (who(n), id(&name(task)));
            let message = message.map(|message| record_of(task, message));
            let request = NewRequest { most_pending, ..new_request("request", message) };
            let answer = store.request(&scope, &task_id, request.clone()).await.unwrap();
            let chosen = if let Requested::Noted { request, .. } = answer { request } else { RequestId(0) };
            assert_eq!(model.request(&scope, &task_id, request, chosen), answer);
            compare_task(store, model, &scope, &task_id).await;
        }
        Step::Events { who: n, task, after, limit } => {
            let (scope, task) = (who(n), id(&name(task)));
            let answer = store.events(&scope, &task, after, limit).await.unwrap();
            assert_eq!(model.events(&scope, &task, after, limit), answer);
        }
        Step::List { who: n, filter, after, not_after, limit, brief } => {
            let filter = ListFilter {
                context_id: filter.context.map(|n| context(&format!("c{n}"))),
                states: filter.states,
                updated_since: filter.since.map(at),
            };
            let after =
                after.map(|(millis, task)| ListPosition { status_at: at(millis), id: id(&name(task)) });
            let detail = if brief { Detail::Status } else { Detail::Whole };
            let query = ListQuery {
                filter,
                after,
                not_after: at(not_after),
                limit,
                detail,
                counted: true,
                ..query()
            };
            assert_eq!(store.list(&who(n), &query).await.unwrap(), model.list(&who(n), &query));
        }
        Step::PutReply { who: n, message: (message, hash), millis } => {
            let record = MessageRecord { at: at(millis), ..reply(&format!("m{message}"), hash, "reply") };
            let answer = store.put_reply(&who(n), record.clone()).await.unwrap();
            assert_eq!(answer, model.put_reply(&who(n), record));
        }
        Step::OpenTasks { skip, limit } => {
            let all = model.open_tasks(TaskKey(0), NO_LIMIT);
            let after = all.get(skip).map_or(TaskKey(0), |open| open.key);
            assert_eq!(store.open_tasks(after, limit).await.unwrap(), model.open_tasks(after, limit));
        }
        Step::Fold { before } => {
            assert_eq!(
                store.fold_ended(at(before), at(before), NO_LIMIT).await.unwrap(),
                model.fold_ended(at(before))
            );
        }
        Step::Purge { before } => {
            assert_eq!(store.purge_ended(at(before), NO_LIMIT).await.unwrap(), model.purge_ended(at(before)));
            assert_eq!(store.task_count().await.unwrap(), model.tasks.len() as u64);
        }
        Step::PurgeRecords { before } => {
            assert_eq!(
                store.purge_records(at(before), NO_LIMIT).await.unwrap(),
                model.purge_records(at(before))
            );
        }
    }
    assert_eq!(store.owner_usage("ann").await.unwrap(), model.owner_usage("ann"));
}

impl Write {
    /// The append that an engine would make for the task's state in the model, except for what `wrong` changes.
    fn append(&self, model: &mut Model) -> Append {
        let task_name = name(self.task);
        let known = model.task(&who(self.who), &id(&task_name));
        let known = known.map(|task| (task.head.clone(), task.pending.clone()));
        let newborn = known.is_none() != (self.wrong == 1);
        let (version, fence, folded) = known
            .as_ref()
            .map_or((0, 0, false), |(head, _)| (head.version, head.current.fence, head.folded_through > 0));
        let pending = known.map(|(_, pending)| pending).unwrap_or_default();
        let expected = if newborn { 0 } else { version + u64::from(self.wrong == 2) };
        let append = if newborn {
            birth(&task_name).in_context(&format!("c{}", self.context))
        } else {
            next(&task_name, expected)
        };
        // A new task has at least one event. A folded task has ended, so it gets no more events.
        let events = if folded { 0 } else { self.events.max(u64::from(newborn)) };
        let mut append = append.events(events).state(self.state).at(self.millis).work(self.work);
        append.fence = if newborn { 0 } else { fence + u64::from(self.wrong == 3) };
        append.head.fence = append.fence + u64::from(self.claim);
        append.head.holder = self.claim.then_some(ReplicaId(self.millis as u64));
        append.message = self.message.map(|message| record_of(self.task, message));
        for (pending, _) in self.settle.iter().filter_map(|at| pending.get(*at)) {
            let event = (pending.request.0 % 2 == 0).then_some(append.expected + 1);
            append.settled.push(Settled { request: pending.request, event });
        }
        if self.snapshot { append.snapshot() } else { append }
    }
}

async fn compare_task(store: &Arc<dyn Store>, model: &mut Model, scope: &Scope, id: &TaskId) {
    let task = model.task(scope, id);
    let pending: Vec<_> =
        task.iter().flat_map(|task| &task.pending).map(|(pending, _)| pending.clone()).collect();
    let loaded = task.map(|task| task.load());
    assert_eq!(store.head(scope, id).await.unwrap(), loaded.as_ref().map(|loaded| loaded.head.clone()));
    assert_eq!(store.load(scope, id).await.unwrap(), loaded);
    assert_eq!(store.requests(scope, id).await.unwrap(), pending);
}

async fn compare_everything(store: &Arc<dyn Store>, model: &mut Model) {
    for n in 0..3 {
        for task in 0..4 {
            let (scope, task) = (who(n), id(&name(task)));
            compare_task(store, model, &scope, &task).await;
            let events = store.events(&scope, &task, 0, NO_LIMIT).await.unwrap();
            assert_eq!(events, model.events(&scope, &task, 0, NO_LIMIT));
        }
        for message in 0..6 {
            for hash in 0..2 {
                let message = message_id(&format!("m{message}"));
                let kept = model.record(&who(n), &message, &[hash; 32]).cloned();
                assert_eq!(store.message(&who(n), &message, &[hash; 32]).await.unwrap(), kept);
            }
        }
    }
    assert_eq!(store.open_tasks(TaskKey(0), NO_LIMIT).await.unwrap(), model.open_tasks(TaskKey(0), NO_LIMIT));
    assert_eq!(store.task_count().await.unwrap(), model.tasks.len() as u64);
    for owner in ["ann", "bob", "nobody"] {
        assert_eq!(store.owner_usage(owner).await.unwrap(), model.owner_usage(owner), "of {owner}");
    }
    for n in 0..3 {
        for states in TaskState::ALL.map(|state| vec![state]).into_iter().chain([vec![]]) {
            let filter = ListFilter { states, ..ListFilter::default() };
            let query = ListQuery { filter, counted: true, ..query() };
            assert_eq!(store.list(&who(n), &query).await.unwrap(), model.list(&who(n), &query));
        }
    }
    // Not every store has these numbers.
    if let Some(by_state) = store.measures().tasks {
        let in_state =
            |state| model.tasks.iter().filter(|task| task.head.current.state == state).count() as u64;
        assert_eq!(by_state, TaskState::ALL.map(in_state));
    }
}
