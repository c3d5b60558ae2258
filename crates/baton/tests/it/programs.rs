//! Programs for `--exec`, and their processes as `/proc` shows them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{Served, baton};

/// Longer than any healthy step takes on a busy machine.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// A program of the test's own, in a folder of its own. It finds that folder as `$FOLDER`.
pub(crate) struct Program {
    folder: TempDir,
    path: PathBuf,
}

/// A shell script.
pub(crate) fn shell(body: &str) -> Program {
    program("#!/bin/sh", body)
}

/// A Python script.
pub(crate) fn python(body: &str) -> Program {
    program("#!/usr/bin/env python3", body)
}

fn program(interpreter: &str, body: &str) -> Program {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    fs::write(&path, format!("{interpreter}\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Program { folder, path }
}

impl Program {
    pub(crate) fn serve(&self, flags: &[&str]) -> Served {
        Served::of(&mut self.command(&[&["--store", "memory:"], flags].concat()))
    }

    /// The command that serves it, for a test that wants more.
    pub(crate) fn command(&self, flags: &[&str]) -> std::process::Command {
        let folder = format!("FOLDER={}", self.folder.path().display());
        let exec = self.path.to_str().unwrap();
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--exec", exec, "--exec-env", &folder];
        baton(&[&fixed, flags].concat())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets a program go on that waits in [`UNTIL_GO`].
    pub(crate) fn go(&self) {
        fs::write(self.file("go"), "").unwrap();
    }

    pub(crate) fn remove(&self) {
        fs::remove_file(&self.path).unwrap();
    }
}

/// A line of a shell script that waits for [`Program::go`].
pub(crate) const UNTIL_GO: &str = "while [ ! -e \"$FOLDER/go\" ]; do sleep 0.01; done";

/// Flags for lines of JSON both ways.
pub(crate) const LINES: &[&str] = &["--exec-input", "json", "--exec-output", "jsonl"];

/// All text of a task's artifacts.
pub(crate) fn output(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().cloned().unwrap_or_default();
    let parts =
        artifacts.iter().flat_map(|artifact| artifact["parts"].as_array().cloned().unwrap_or_default());
    parts.map(|part| part["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The text of a task's status message.
pub(crate) fn reason(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

pub(crate) fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default().trim_start_matches("TASK_STATE_")
}

impl Served {
    /// The task once its output holds all of these.
    pub(crate) async fn until_said(&self, task: &Value, words: &[&str]) -> Value {
        let since = Instant::now();
        loop {
            let now = self.get(task).await;
            let said = output(&now);
            if words.iter().all(|word| said.contains(word)) {
                return now;
            }
            assert!(since.elapsed() < HANG, "{words:?} was not said: {now}\n{}", self.log());
        }
    }

    /// The log once it holds these words.
    pub(crate) async fn until_logged(&self, words: &str) -> String {
        let log = until(|| Some(self.log()).filter(|log| log.contains(words))).await;
        log.unwrap_or_else(|| panic!("{words:?} was not logged:\n{}", self.log()))
    }

    /// Runs the program on one text to its end.
    pub(crate) async fn answer_to(&self, said: &str) -> Value {
        self.send(crate::served::text(&format!("m-{said}"), said)).await
    }

    pub(crate) async fn start_on(&self, said: &str) -> Value {
        self.start_task(crate::served::text(&format!("m-{said}"), said)).await
    }

    pub(crate) async fn stream_on(&self, said: &str) -> reqwest::Response {
        self.post("SendStreamingMessage", json!({"message": crate::served::text("m-stream", said)})).await
    }
}

/// A process, identified by its process id and start time, since ids are reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) pid: u32,
    began: String,
}

impl Seen {
    /// A process that exists now.
    pub(crate) fn now(pid: u32) -> Self {
        let began = stat(pid).unwrap_or_else(|| panic!("no process {pid}"))[19].clone();
        Seen { pid, began }
    }

    /// Its state's letter; `None` when it is gone.
    fn state(&self) -> Option<String> {
        stat(self.pid).filter(|fields| fields[19] == self.began).map(|fields| fields[0].clone())
    }

    /// Waits until nothing is left of it, not even a zombie.
    pub(crate) async fn gone(&self) {
        let gone = until(|| self.state().is_none().then_some(())).await;
        assert!(gone.is_some(), "process {} is still there, as {:?}", self.pid, self.state());
    }

    /// Waits until it no longer runs; a zombie without parents may remain until the system reaps it.
    pub(crate) async fn ended(&self) {
        let ended = until(|| self.state().is_none_or(|state| state == "Z").then_some(())).await;
        assert!(ended.is_some(), "process {} still runs, as {:?}", self.pid, self.state());
    }

    pub(crate) fn is_there(&self) -> bool {
        self.state().is_some()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid.to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

/// What follows the name in `/proc/PID/stat`, the state first.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// `what 123` on lines of a program's output, as processes that are there.
pub(crate) fn processes(task: &Value) -> Vec<(String, Seen)> {
    let said = output(task);
    let lines = said.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(what, pid)| (what.to_owned(), Seen::now(pid.parse().unwrap()))).collect()
}

pub(crate) async fn all_gone(processes: &[(String, Seen)]) {
    for (what, process) in processes {
        let gone = until(|| (!process.is_there()).then_some(())).await;
        assert!(gone.is_some(), "{what} {} is still there, as {:?}", process.pid, process.state());
    }
}

/// Looks again until something is there, or for as long as anybody has patience.
pub(crate) async fn until<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let since = Instant::now();
    while since.elapsed() < HANG {
        if let Some(found) = look() {
            return Some(found);
        }
        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: allow-sleep polls what sends no word
    }
    None
}
