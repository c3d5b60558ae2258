//! A folder with a store, the agents on it, and the marks that their attempts leave.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::checker::{Facts, Violation, violations};
use super::journal::{Entry, Journal, lines};
use super::runs::{HANG, Run};
use super::stored::{self, Stored};
use crate::served::{Served, baton};

/// `again` may be run again, and so may the demo agent; `once` may not.
pub(crate) const RERUNNABLE: &[&str] = &["demo", "again"];

/// Leaves a mark for each attempt. The lock goes with the process and its children: an attempt that cannot take it has
/// company. It does not hear SIGTERM: a program may have something to finish.
const PROGRAM: &str = r#"#!/bin/sh
trap '' TERM
exec 9>>"$MARKS/$BATON_TASK_ID.lock"
flock -n 9 || echo "overlapped $BATON_ATTEMPT" >>"$MARKS/$BATON_TASK_ID"
echo "began $BATON_ATTEMPT" >>"$MARKS/$BATON_TASK_ID"
read -r words || true
case "$words" in *slow*) sleep 0.3;; esac
echo "$words"
"#;

pub(crate) struct Field {
    folder: TempDir,
}

impl Field {
    /// `settings` are lines of a configuration file.
    pub(crate) fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let marks = folder.path().join("marks");
        fs::create_dir(&marks).unwrap();
        let program = folder.path().join("program");
        fs::write(&program, PROGRAM).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let agent = |id: &str, skill: &str| {
            format!("[[agent]]\nid = \"{id}\"\n[[agent.skill]]\nid = \"work\"\n{skill}\n")
        };
        let exec =
            format!("exec = ['{}']\nenvironment = {{ MARKS = '{}' }}", program.display(), marks.display());
        let text = format!(
            "listen = \"127.0.0.1:0\"\n{settings}\n{}{}{}{}",
            agent("demo", "builtin = \"demo\""),
            agent("answer", "builtin = \"echo\"\nreplies = \"message\""),
            agent("once", &exec),
            agent("again", &format!("{exec}\nrerunnable = true")),
        );
        fs::write(folder.path().join("baton.toml"), text).unwrap();
        Field { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// In a folder that the server makes itself.
    pub(crate) fn database(&self) -> PathBuf {
        self.path("data/tasks.db")
    }

    pub(crate) fn command(&self, database: &Path) -> Command {
        let store = format!("sqlite:{}", database.display());
        let config = self.path("baton.toml");
        baton(&["serve", "--config", config.to_str().unwrap(), "--store", &store])
    }

    pub(crate) fn serve(&self) -> Served {
        Served::of(&mut self.command(&self.database()))
    }

    /// What the attempts of programs left, as entries of a journal.
    pub(crate) fn marks(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for file in fs::read_dir(self.path("marks")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some() {
                continue;
            }
            let task = path.file_name().unwrap().to_str().unwrap().to_owned();
            for mark in fs::read_to_string(&path).unwrap().lines() {
                let (what, attempt) = mark.split_once(' ').unwrap();
                let (task, attempt) = (task.clone(), attempt.parse().unwrap());
                entries.push(match what {
                    "began" => Entry::Began { task, attempt },
                    "overlapped" => Entry::Overlapped { task, attempt },
                    other => panic!("{other} is no mark"),
                });
            }
        }
        entries
    }

    /// Waits until nothing is at work any more.
    pub(crate) async fn settle(&self, server: &Served) {
        let since = Instant::now();
        while stored::unsettled(&self.database()) > 0 {
            assert!(since.elapsed() < HANG, "tasks stay open\n{}", server.log());
            tokio::time::sleep(Duration::from_millis(5)).await; // tidy: allow-sleep polling a database
        }
    }

    /// Holds the journal against the store. All servers have ended, and everything was at rest.
    pub(crate) async fn check(&self, run: &Run, journal: &Journal) -> Stored {
        let mut entries = journal.entries();
        entries.extend(self.marks());
        let stored = Stored::read(&self.database()).await.unwrap();
        let found = violations(&entries, &stored, Facts { rerunnable: RERUNNABLE, settled: true });
        complain(run, &entries, &found);
        assert_eq!(stored::integrity(&self.database()), "ok");
        stored
    }
}

/// Fails with what was found, and leaves the journal.
pub(crate) fn complain(run: &Run, entries: &[Entry], found: &[Violation]) {
    if found.is_empty() {
        return;
    }
    let journal = run.leave("journal", &lines(entries));
    let all: Vec<_> = found.iter().take(20).map(ToString::to_string).collect();
    panic!(
        "{} violations; seed {}, journal {}\n{}",
        found.len(),
        run.seed,
        journal.display(),
        all.join("\n")
    );
}
