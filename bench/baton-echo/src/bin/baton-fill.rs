//! `baton-fill FILE TASKS`: fills a SQLite store up to that number of small tasks, as the echo agent makes them. It
//! writes to the store directly, in large commits without syncs: a million sends would take minutes.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use baton_protocol::Generation;
use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, Event, EventBody, Message, MessageId, Part, Role, Scope,
    StatusUpdate, TaskId, TaskState, Timestamp,
};
use baton_protocol::lifecycle::Snapshot;
use baton_server::store::sqlite::{Options, SqliteStore, Synchronous};
use baton_server::store::{
    Append, Appended, Birth, HeadState, MessageRecord, Store, StoredEvent, StoredSnapshot, Work,
};
use tokio::task::JoinSet;

/// The scope of a server with one agent and without authentication.
const SCOPE: [&str; 3] = ["default", "", "anonymous"];

const AT_ONCE: u64 = 10_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let filled = match &args[..] {
        [file, tasks] => tasks.parse().map_err(|_| format!("no number: {tasks}")).and_then(|tasks| {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
            runtime.map_err(|error| error.to_string())?.block_on(fill(Path::new(file), tasks))
        }),
        _ => Err("usage: baton-fill FILE TASKS".to_owned()),
    };
    match filled {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

async fn fill(file: &Path, tasks: u64) -> Result<(), String> {
    let mut options = Options::default();
    options.synchronous = Synchronous::Off;
    options.write_queue = AT_ONCE as usize;
    options.batch = AT_ONCE as usize;
    let store = Arc::new(SqliteStore::open(file, options).map_err(|error| error.to_string())?);
    let mut there = store.task_count().await.map_err(|error| error.to_string())?;
    while there < tasks {
        let upto = tasks.min(there + AT_ONCE);
        let mut appends = JoinSet::new();
        for number in there..upto {
            let store = Arc::clone(&store);
            appends.spawn(async move {
                let [agent, tenant, owner] = SCOPE;
                store
                    .append(&Scope::new(agent, tenant, owner), task(number)?)
                    .await
                    .map_err(|e| e.to_string())
            });
        }
        for appended in appends.join_all().await {
            let appended = appended?;
            if !matches!(appended, Appended::Written(_)) {
                return Err(format!("{appended:?}"));
            }
        }
        there = upto;
    }
    Ok(())
}

/// All events of a task in one append.
fn task(number: u64) -> Result<Append, String> {
    // Ids of the usual length; some tasks share the same millisecond.
    let name = |kind: u64| format!("{kind:08x}-0000-7000-8000-{number:012x}");
    let id = TaskId::parse(&name(1)).map_err(|error| error.to_string())?;
    let context_id = ContextId::parse(&name(2)).map_err(|error| error.to_string())?;
    let message_id = MessageId::parse(&name(3)).map_err(|error| error.to_string())?;
    let artifact_id = ArtifactId::parse("echo").map_err(|error| error.to_string())?;
    let at = Timestamp::from_millis(1_763_200_000_000 + (number / 4) as i64);
    let status = |state| EventBody::Status(StatusUpdate { state, message: None, metadata: None });
    let artifact = Artifact::new(artifact_id, vec![Part::text("the text that was sent")]);
    let said = Message::new(message_id.clone(), Role::User, vec![Part::text("the text that was sent")]);
    let bodies = [
        EventBody::said(said),
        EventBody::AttemptStarted { attempt: 1, skill: Some(Arc::from("echo")) },
        status(TaskState::Working),
        EventBody::Artifact(ArtifactUpdate {
            artifact,
            append: false,
            joins: false,
            last_chunk: true,
            ordinal: 0,
            metadata: None,
        }),
        status(TaskState::Completed),
    ];
    let mut snapshot = Snapshot::begin(id.clone(), context_id.clone(), at);
    let mut events = Vec::new();
    for (number, body) in (1..).zip(bodies) {
        let event = Event { number, at, body };
        events.push(StoredEvent::encode(&id, &context_id, &event));
        snapshot.apply(event).map_err(|error| error.to_string())?;
    }
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    let message = MessageRecord { message_id, hash, task: Some(id.clone()), event: Some(1), reply: None, at };
    Ok(Append {
        task: id,
        birth: Some(Birth { context_id, generation: Generation::V1, created_at: at }),
        expected: 0,
        fence: 0,
        events,
        head: HeadState {
            state: TaskState::Completed,
            status_at: at,
            work: Work::Idle,
            attempts: 1,
            holder: None,
            fence: 1,
        },
        snapshot: Some(StoredSnapshot::encode(&snapshot)),
        message: Some(message),
        settled: Vec::new(),
        webhook: None,
    })
}
