//! T5: damaged files. A start refuses with a clear line, or what is read is right: the whole, or, where the log of
//! writes was damaged, a beginning of it. Never a panic, never something else than what was written.

use std::fs;
use std::path::{Path, PathBuf};

use baton_server::store::StoreError;
use tempfile::TempDir;

use super::checker::{Facts, violations};
use super::field::{Field, RERUNNABLE};
use super::load::{Load, WITHIN};
use super::runs::{Random, Run};
use super::stored::{Stored, StoredTask, integrity};
use crate::served::{Served, finished, text};

/// A store with some of its tasks in the database and some only in the log, as a kill leaves it.
struct Victim {
    field: Field,
    whole: Stored,
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Victim {
    async fn make(run: &Run) -> Self {
        let field = Field::new("");
        let server = field.serve();
        let mut load = Load::start(&server.url, 4, run.seed, WITHIN);
        load.more(30).await;
        load.finish().await;
        field.settle(&server).await;
        assert!(server.terminate().success(), "which folds the log");
        let server = field.serve();
        let mut load = Load::start(&server.url, 4, run.seed ^ 1, WITHIN);
        load.more(30).await;
        load.finish().await;
        field.settle(&server).await;
        drop(server); // SIGKILL, which does not.
        let (database, log) = (field.database(), field.path("data/tasks.db-wal"));
        let (database, log) = (fs::read(database).unwrap(), fs::read(log).unwrap());
        assert!(log.len() > 100_000, "{}", log.len());
        let copy = laid_out(&database, &log);
        let whole = Stored::read(&copy.path().join("tasks.db")).await.unwrap();
        Victim { field, whole, database, log }
    }
}

fn laid_out(database: &[u8], log: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tasks.db"), database).unwrap();
    fs::write(folder.path().join("tasks.db-wal"), log).unwrap();
    folder
}

/// What is done to the files.
#[derive(Debug, Clone)]
enum Damage {
    LogCutAt(usize),
    LogBit(usize),
    DatabaseCutAt(usize),
    DatabaseBit(usize),
    DatabasePageZero(usize),
}

impl Damage {
    fn any(random: &mut Random, victim: &Victim) -> Self {
        let (log, database) = (victim.log.len() as u64, victim.database.len() as u64);
        match random.below(8) {
            0 | 1 => Damage::LogCutAt((random.below(log / 512) * 512) as usize),
            2 | 3 => Damage::LogBit(random.below(log * 8) as usize),
            4 => Damage::DatabaseCutAt(random.below(database) as usize),
            5 => Damage::DatabasePageZero(random.below(database / 4096) as usize),
            _ => Damage::DatabaseBit(random.below(database * 8) as usize),
        }
    }

    fn done_to(&self, database: &mut Vec<u8>, log: &mut Vec<u8>) {
        match *self {
            Damage::LogCutAt(length) => log.truncate(length),
            Damage::LogBit(bit) => log[bit / 8] ^= 1 << (bit % 8),
            Damage::DatabaseCutAt(length) => database.truncate(length),
            Damage::DatabaseBit(bit) => database[bit / 8] ^= 1 << (bit % 8),
            Damage::DatabasePageZero(page) => database[page * 4096..(page + 1) * 4096].fill(0),
        }
    }

    /// A log that lost its end is one that never had it, for all that anybody can tell.
    fn is_of_log(&self) -> bool {
        matches!(self, Damage::LogCutAt(_) | Damage::LogBit(_))
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Refused,
    Whole,
    Beginning,
    /// The names by which a task is found are damaged: it seems not to be there. SQLite's own check finds that.
    Hidden,
}

/// What came of it, or what is wrong with that.
async fn outcome(victim: &Victim, damage: &Damage) -> Result<Outcome, String> {
    let (mut database, mut log) = (victim.database.clone(), victim.log.clone());
    damage.done_to(&mut database, &mut log);
    let folder = laid_out(&database, &log);
    let read = match Stored::read(&folder.path().join("tasks.db")).await {
        Ok(read) => read,
        Err(StoreError::Damaged(_) | StoreError::Unavailable(_)) => return Ok(Outcome::Refused),
        Err(other) => return Err(format!("it says {other}, which sends people to look at their disk")),
    };
    for (id, task) in &read.tasks {
        let Some(right) = victim.whole.tasks.get(id) else { return Err(format!("{id} never was")) };
        if task.folded.is_err() {
            // Whoever asks for this task is told that the store is damaged.
            return Ok(Outcome::Refused);
        }
        begins(task, right).map_err(|what| format!("{id}: {what}"))?;
    }
    let gone = victim.whole.tasks.len() - read.tasks.len();
    let shorter = read.tasks.iter().any(|(id, task)| task.version < victim.whole.tasks[id].version);
    let fewer = read.records.len() < victim.whole.records.len();
    if gone == 0 && !shorter && !fewer {
        return Ok(Outcome::Whole);
    }
    if !damage.is_of_log() {
        return match integrity(&folder.path().join("tasks.db")).as_str() {
            "ok" => Err(format!("{gone} tasks are gone without a word")),
            _ => Ok(Outcome::Hidden),
        };
    }
    let found = violations(&[], &read, Facts { rerunnable: RERUNNABLE, settled: false });
    match found.first() {
        None => Ok(Outcome::Beginning),
        Some(first) => Err(format!("it is no beginning of the story: {first}")),
    }
}

fn begins(task: &StoredTask, right: &StoredTask) -> Result<(), String> {
    for (line, right) in task.log.iter().zip(&right.log) {
        if (line.number, &line.kind, &line.json, line.at)
            != (right.number, &right.kind, &right.json, right.at)
        {
            return Err(format!("{line:?} is not {right:?}"));
        }
    }
    if task.log.len() as u64 != task.version || (task.version == right.version && task.folded != right.folded)
    {
        return Err(format!("version {} of {}, {:?}", task.version, right.version, task.folded));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_damaged_files_are_refused_or_read_as_they_were_written() {
    let mut run = Run::begin("damaged-files");
    let cases = run.count(80, 1000);
    let victim = Victim::make(&run).await;
    let mut random = run.random();
    let (mut outcomes, mut wrong) = ([0u64; 4], Vec::new());
    for _ in 0..cases {
        let damage = Damage::any(&mut random, &victim);
        match outcome(&victim, &damage).await {
            Ok(outcome) => outcomes[outcome as usize] += 1,
            Err(what) => wrong.push(format!("{damage:?}: {what}")),
        }
    }
    let [refused, whole, beginning, hidden] = outcomes;
    assert!(
        wrong.is_empty(),
        "{} of {cases}, seed {}:\n{}",
        wrong.len(),
        run.seed,
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert!(refused > 0 && whole > 0 && beginning > 0);
    run.figure("cases", cases);
    run.figure("refused", refused);
    run.figure("read whole", whole);
    run.figure("a beginning read", beginning);
    run.figure("a task or record hidden, and found by integrity_check alone", hidden);
    run.figure("other content than was written, or a panic", 0);
    run.end();
}

/// Files that are something else altogether: one line, code 1, no port.
#[tokio::test]
async fn s06_files_that_are_no_store_are_refused_by_the_binary() {
    let run = Run::begin("wrong-files");
    let victim = Victim::make(&run).await;
    let page = |number: usize| (number * 4096)..((number + 1) * 4096);
    let mut no_schema = victim.database.clone();
    no_schema[page(0)][100..].fill(0);
    let mut other = Vec::new();
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
        other.extend(fs::read(&path).unwrap());
    }
    let cases: [(&str, &[u8]); 4] = [
        ("text", b"This is a letter to my grandmother, and no database.\n"),
        ("half a header", &victim.database[..60]),
        ("no schema", &no_schema),
        ("somebody else's", &other),
    ];
    for (name, content) in cases {
        let folder = laid_out(content, b"");
        let path = folder.path().join("tasks.db");
        let before = fs::read(&path).unwrap();
        let (code, said) = finished(&mut victim.field.command(&path));
        assert_eq!(code, Some(1), "{name}: {said}");
        assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{name}: {said}");
        assert!(said.contains("tasks.db") && !said.contains("panicked"), "{name}: {said}");
        assert_eq!(fs::read(&path).unwrap(), before, "{name}: it was changed");
    }
    // A folder in its place.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    fs::create_dir(&path).unwrap();
    let (code, said) = finished(&mut victim.field.command(&path));
    assert!(code == Some(1) && said.contains("tasks.db"), "{code:?} {said}");
}

/// Acknowledged writes that can no longer be read are lost; what must not be lost is the word about it.
#[tokio::test]
async fn s06_a_log_that_is_damaged_in_the_middle_is_told_and_kept() {
    let run = Run::begin("damaged-log");
    let victim = Victim::make(&run).await;
    for damaged in [20, victim.log.len() / 2] {
        let mut log = victim.log.clone();
        log[damaged] ^= 1;
        let folder = laid_out(&victim.database, &log);
        let path = folder.path().join("tasks.db");
        let server = Served::of(&mut victim.field.command(&path));
        let said = server.log_with("write-ahead log is damaged");
        assert!(said.contains("tasks.db-wal.damaged"), "{said}");
        assert_eq!(
            fs::read(folder.path().join("tasks.db-wal.damaged")).unwrap(),
            log,
            "for whoever wants to look"
        );
        assert!(server.at("/demo").send(text("next", "echo next")).await["id"].is_string(), "and it goes on");
        assert!(server.terminate().success());
    }
    // A log whose last write was cut short is what every crash leaves.
    let folder = laid_out(&victim.database, &victim.log[..victim.log.len() - 700]);
    let path: PathBuf = folder.path().join("tasks.db");
    let server = Served::of(&mut victim.field.command(&path));
    let log = server.stop_and_log();
    assert!(!log.contains("damaged") && !exists(&path, "-wal.damaged"), "{log}");
}

fn exists(database: &Path, suffix: &str) -> bool {
    PathBuf::from(format!("{}{suffix}", database.display())).exists()
}
