//! What a store holds: read through the product's own store, so that a file only SQLite can make sense of counts for
//! nothing.

use std::collections::BTreeMap;
use std::path::Path;

use baton_protocol::domain::{EventBody, Scope, TaskId};
use baton_server::store::sqlite::{Options, SqliteStore};
use baton_server::store::{Store as _, StoreError, record};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// Everything the checker wants to know of a store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    pub(crate) tasks: BTreeMap<String, StoredTask>,
    /// Message id, and the task or the reply it has.
    pub(crate) records: Vec<(String, Answer)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Task(String),
    Reply(String),
}

#[derive(Debug, Clone)]
pub(crate) struct StoredTask {
    pub(crate) agent: String,
    /// What the head says.
    pub(crate) version: u64,
    pub(crate) log: Vec<Line>,
    /// What the product makes of it, or why it cannot.
    pub(crate) folded: Result<String, String>,
}

impl StoredTask {
    /// Was a message worked on more than once?
    pub(crate) fn has_rerun(&self) -> bool {
        let mut attempts = 0;
        self.log.iter().any(|line| {
            match line.kind {
                Kind::Message(_) => attempts = 0,
                Kind::Attempt(_) => attempts += 1,
                _ => {}
            }
            attempts > 1
        })
    }
}

/// One event of a log.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) at: i64,
    /// As a stream shows it.
    pub(crate) json: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Message(String),
    Attempt(u32),
    Cancel,
    /// The state as the protocol spells it, and whether it is an end.
    Status {
        state: String,
        terminal: bool,
    },
    Artifact,
}

impl Kind {
    /// Such events have a number and no frame.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self, Kind::Message(_) | Kind::Attempt(_) | Kind::Cancel)
    }

    /// A stream that ends in order ends with one of these.
    pub(crate) fn closes(&self) -> bool {
        matches!(self, Kind::Status { state, terminal } if *terminal || state == "TASK_STATE_INPUT_REQUIRED")
    }
}

impl Stored {
    /// Opens the store as a server would, which recovers it, and reads all of it.
    pub(crate) async fn read(database: &Path) -> Result<Self, StoreError> {
        let store = SqliteStore::open(database, Options::default())?;
        let (tasks, records) = rows(database)?;
        let mut stored = Stored::default();
        for (scope, id) in tasks {
            let task = task(&store, &scope, &id).await?;
            let twin = stored.tasks.insert(id.clone(), task);
            assert!(twin.is_none(), "{id} is in two scopes");
        }
        for (message, task, reply) in records {
            let answer = match (task, reply) {
                (Some(task), _) => Answer::Task(task),
                (None, Some(reply)) => Answer::Reply(record::read_reply(&reply)?.id.as_str().to_owned()),
                (None, None) => {
                    return Err(StoreError::damaged(format!("{message} has neither task nor reply")));
                }
            };
            stored.records.push((message, answer));
        }
        Ok(stored)
    }
}

/// Copies of a dead server's files: looking at them must not spare the next server its own recovery.
pub(crate) fn copied(database: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", database.display());
        if Path::new(&from).exists() {
            std::fs::copy(&from, folder.path().join(format!("tasks.db{suffix}"))).unwrap();
        }
    }
    folder
}

type Rows = (Vec<(Scope, String)>, Vec<(String, Option<String>, Option<Vec<u8>>)>);

/// Names of all there is: the store's own verbs ask for a scope.
pub(super) fn rows(database: &Path) -> Result<Rows, StoreError> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut find = connection
        .prepare("SELECT agent, tenant, owner, task.id FROM task LEFT JOIN scope ON scope.id = task.scope")?;
    let tasks = find.query_map([], |row| {
        let (agent, tenant, owner): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((Scope::new(&agent, &tenant, &owner), row.get(3)?))
    })?;
    let tasks = tasks.collect::<Result<_, _>>()?;
    let mut find = connection.prepare(
        "SELECT message_id, task, reply FROM message_record
         UNION ALL SELECT message_id, id, NULL FROM task WHERE message_id IS NOT NULL",
    )?;
    let records = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let records = records.collect::<Result<_, _>>()?;
    let miscounted = "SELECT count(*) FROM (SELECT sum(count) AS off FROM (
            SELECT scope, state, tasks AS count FROM tally UNION ALL SELECT scope, state, -1 FROM task
        ) GROUP BY scope, state) WHERE off <> 0";
    match connection.query_row(miscounted, [], |row| row.get(0))? {
        0 => Ok((tasks, records)),
        off => Err(StoreError::damaged(format!("{off} counters are not what a walk counts"))),
    }
}

async fn task(store: &SqliteStore, scope: &Scope, id: &str) -> Result<StoredTask, StoreError> {
    let task_id = TaskId::parse(id).map_err(|error| StoreError::damaged(error.to_string()))?;
    let gone = || StoreError::damaged(format!("{id} is a row and no task"));
    let loaded = store.load(scope, &task_id).await?.ok_or_else(gone)?;
    let folded = record::fold(&loaded);
    let (mut log, mut after) = (Vec::new(), 0);
    loop {
        let page = store.events(scope, &task_id, after, 100).await?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for event in page {
            let kind = match event.decode()?.body {
                EventBody::UserMessage { message, .. } => Kind::Message(message.id.as_str().to_owned()),
                EventBody::AttemptStarted { attempt, .. } => Kind::Attempt(attempt),
                EventBody::CancelRequested { .. } => Kind::Cancel,
                EventBody::Status(update) => {
                    Kind::Status { state: spelled(&event.json()), terminal: update.state.is_terminal() }
                }
                EventBody::Artifact(_) => Kind::Artifact,
            };
            let json: Value = serde_json::from_slice(&event.json())
                .map_err(|error| StoreError::damaged(format!("{id} {}: {error}", event.number)))?;
            let (number, at) = (event.number, event.at.as_millis());
            log.push(Line { number, kind, at, json: json.to_string() });
        }
    }
    Ok(StoredTask {
        agent: scope.agent.to_string(),
        version: loaded.head.version,
        log,
        folded: folded.map(|snapshot| format!("{:?}", snapshot.task)).map_err(|error| error.to_string()),
    })
}

/// The state of a status event.
fn spelled(json: &[u8]) -> String {
    let json: Value = serde_json::from_slice(json).unwrap_or_default();
    json["statusUpdate"]["status"]["state"].as_str().unwrap_or_default().to_owned()
}

/// What SQLite says of its file.
pub(crate) fn integrity(database: &Path) -> String {
    let connection = Connection::open(database).unwrap();
    let verdict = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    verdict.unwrap_or_else(|error| error.to_string())
}

/// How many tasks have neither ended nor wait for somebody, while a server may be at work.
pub(crate) fn unsettled(database: &Path) -> u64 {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    connection.busy_timeout(super::runs::HANG).unwrap();
    let open = "SELECT (SELECT count(*) FROM task WHERE work <> 0) + (SELECT count(*) FROM request)";
    let count: i64 = connection.query_row(open, [], |row| row.get(0)).unwrap();
    count.cast_unsigned()
}
