//! The hot paths, each as a function that is repeated: `counts NAME TURNS`, run under valgrind. `cargo xtask bench
//! --counts` takes the difference between many turns and few, so that one-time work is not counted.

use std::hint::black_box;
use std::process::ExitCode;

use baton_protocol::Generation;
use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, Event, EventBody, ListFilter, Message, MessageId, Part,
    Role, Scope, StatusUpdate, Task, TaskId, TaskState, Timestamp,
};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::operation::{ListTasks, Operation, Reply};
use baton_protocol::wire::jsonrpc::{self, RpcId};
use baton_protocol::wire::{sse, v1};
use baton_server::store::memory::MemoryStore;
use baton_server::store::{
    Append, Appended, Birth, Detail, HeadState, ListQuery, Listed, Store, StoredEvent, StoredSnapshot, Work,
};
use bytes::BytesMut;
use tokio::runtime::Runtime;

type Bench = (&'static str, fn(u64));

const BENCHES: &[Bench] = &[
    ("append", append),
    ("decode-call", decode_call),
    ("encode-event", encode_event),
    ("encode-reply", encode_reply),
    ("frame", frame),
    ("lifecycle", lifecycle),
    ("list", list),
];

const REQUEST: &str = r#"{"jsonrpc":"2.0","id":"000000000001","method":"SendMessage","params":{"message":{"messageId":"0018a1b2c3d4e5f6071-000000000001","role":"ROLE_USER","parts":[{"text":"Please tell me what I have told you."}]}}}"#;
const AT: i64 = 1_763_200_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [flag] if flag == "--list" => {
            BENCHES.iter().for_each(|(name, _)| println!("{name}"));
            ExitCode::SUCCESS
        }
        [name, turns] => match (BENCHES.iter().find(|(known, _)| known == name), turns.parse()) {
            (Some((_, bench)), Ok(turns)) => {
                bench(turns);
                ExitCode::SUCCESS
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: counts --list | counts NAME TURNS");
    ExitCode::from(2)
}

/// Decodes the envelope and the call in it.
fn decode_call(turns: u64) {
    for _ in 0..turns {
        let request = jsonrpc::parse_request(black_box(REQUEST.as_bytes())).expect("a good request");
        black_box(v1::decode_call(Operation::SendMessage, request.params).expect("a good call"));
    }
}

/// Encodes a finished task as the answer to a send.
fn encode_reply(turns: u64) {
    let reply = Reply::SentTask(finished());
    let id = RpcId::number(1);
    for _ in 0..turns {
        let mut out = Vec::with_capacity(1024);
        jsonrpc::write_result(&mut out, black_box(&id), |out| v1::write_reply(out, black_box(&reply)));
        black_box(out);
    }
}

/// Encodes an event for the store.
fn encode_event(turns: u64) {
    let event = Event { number: 4, at: at(), body: artifact() };
    let (task, context) = (task_id(), context_id());
    for _ in 0..turns {
        black_box(StoredEvent::encode(&task, &context, black_box(&event)));
    }
}

/// Frames a stored event for a stream.
fn frame(turns: u64) {
    let event =
        StoredEvent::encode(&task_id(), &context_id(), &Event { number: 4, at: at(), body: artifact() });
    let mut prefix = Vec::new();
    jsonrpc::result_prefix(&mut prefix, &RpcId::number(1));
    let mut out = BytesMut::with_capacity(1024);
    for _ in 0..turns {
        out.clear();
        sse::write_event(&mut out, Some(black_box(4)), None, &[&prefix, &event.json(), b"}"]);
        black_box(&out);
    }
}

/// Folds all events of a task.
fn lifecycle(turns: u64) {
    let events = events();
    for _ in 0..turns {
        let mut snapshot = Snapshot::begin(task_id(), context_id(), at());
        // `apply` takes the event by value; making one is part of the path, too.
        for event in black_box(&events).clone() {
            snapshot.apply(event).expect("an order that is allowed");
        }
        black_box(snapshot);
    }
}

/// A short task in the memory store: encoding, folding, two appends.
fn append(turns: u64) {
    let store = MemoryStore::new();
    runtime().block_on(async {
        for turn in 0..turns {
            live(&store, turn).await;
        }
    });
}

/// A page of fifty tasks from memory, as 1.0 JSON.
fn list(turns: u64) {
    let store = MemoryStore::new();
    let query = ListQuery {
        filter: ListFilter::default(),
        after: None,
        not_after: Timestamp::MAX,
        limit: 50,
        detail: Detail::Whole,
        most_bytes: usize::MAX,
        counted: false,
    };
    runtime().block_on(async {
        for turn in 0..1000 {
            live(&store, turn).await;
        }
        for _ in 0..turns {
            let found = store.list(&scope(), black_box(&query)).await.expect("memory does not fail");
            let mut page = v1::PageWriter::new(&ListTasks::default(), 64 * 1024);
            for listed in &found.tasks {
                let Listed::Whole(loaded) = listed else { panic!("it was asked for as a whole") };
                let json = loaded.snapshot.as_ref().and_then(|stored| stored.task_json());
                assert!(json.is_some_and(|json| page.stored(&json)), "a task that rests is stored as JSON");
            }
            black_box(page.end("", 50, 1000));
        }
    });
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime without threads")
}

fn scope() -> Scope {
    Scope::new("agent", "", "owner")
}

/// Appends all events of a short task.
async fn live(store: &MemoryStore, turn: u64) {
    let (scope, context, events) = (scope(), context_id(), events());
    let task = TaskId::parse(&format!("0194f2c0-0000-7000-8000-{turn:012}")).expect("a good id");
    let encode = |events: &[Event]| -> Vec<StoredEvent> {
        events.iter().map(|event| StoredEvent::encode(&task, &context, event)).collect()
    };
    let mut head = HeadState {
        state: TaskState::Working,
        status_at: at(),
        work: Work::Running,
        attempts: 1,
        holder: None,
        fence: 0,
    };
    let birth = Birth { context_id: context.clone(), generation: Generation::V1, created_at: at() };
    let first = Append {
        task: task.clone(),
        birth: Some(birth),
        expected: 0,
        fence: 0,
        events: encode(&events[..2]),
        head,
        snapshot: None,
        message: None,
        settled: Vec::new(),
        webhook: None,
    };
    let written = store.append(&scope, first).await.expect("memory does not fail");
    assert!(matches!(written, Appended::Written(_)), "{written:?}");
    head.state = TaskState::Completed;
    head.work = Work::Idle;
    let mut snapshot = Snapshot::begin(task.clone(), context.clone(), at());
    for event in &events {
        snapshot.apply(event.clone()).expect("an order that is allowed");
    }
    let second = Append {
        events: encode(&events[2..]),
        snapshot: Some(StoredSnapshot::encode(&snapshot)),
        task: task.clone(),
        birth: None,
        expected: 2,
        fence: 0,
        head,
        message: None,
        settled: Vec::new(),
        webhook: None,
    };
    let written = store.append(&scope, second).await.expect("memory does not fail");
    assert!(matches!(written, Appended::Written(_)), "{written:?}");
}

fn at() -> Timestamp {
    Timestamp::from_millis(AT)
}

fn task_id() -> TaskId {
    TaskId::parse("0194f2c0-0000-7000-8000-000000000000").expect("a good id")
}

fn context_id() -> ContextId {
    ContextId::parse("0194f2c0-0000-7000-8000-000000000001").expect("a good id")
}

fn message() -> Message {
    let id = MessageId::parse("0018a1b2c3d4e5f6071-000000000001").expect("a good id");
    Message::new(id, Role::User, vec![Part::text("Please tell me what I have told you.")])
}

fn artifact() -> EventBody {
    let id = ArtifactId::parse("0194f2c0-0000-7000-8000-000000000002").expect("a good id");
    let mut artifact = Artifact::new(id, vec![Part::text("Please tell me what I have told you.")]);
    artifact.name = Some("echo".to_owned());
    EventBody::Artifact(ArtifactUpdate {
        artifact,
        append: false,
        joins: false,
        last_chunk: true,
        ordinal: 0,
        metadata: None,
    })
}

/// The events of the echo agent's task.
fn events() -> Vec<Event> {
    let status = |state| EventBody::Status(StatusUpdate { state, message: None, metadata: None });
    let bodies = [
        EventBody::said(message()),
        EventBody::AttemptStarted { attempt: 1, skill: None },
        status(TaskState::Working),
        artifact(),
        status(TaskState::Completed),
    ];
    bodies.into_iter().zip(1..).map(|(body, number)| Event { number, at: at(), body }).collect()
}

fn finished() -> Task {
    let mut snapshot = Snapshot::begin(task_id(), context_id(), at());
    for event in events() {
        snapshot.apply(event).expect("an order that is allowed");
    }
    snapshot.task
}
