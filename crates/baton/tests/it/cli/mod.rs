//! The client commands, as users and programs run them. Each test is named after the requirement of the CLI specification
//! that it shows (`A2ACLI_SEND_001` is `cli_send_001`).

/// Credentials: where they are sent, and where they never appear.
mod auth;
/// Cards: references, validation, versions and interfaces.
mod cards;
/// `baton chat` without a terminal.
mod chat;
/// Errors and exit statuses.
mod errors;
/// JSON and JSON Lines.
mod json;
/// The client commands, judged by the lab's scripted agents: correct, odd, broken and lying ones.
mod judged;
/// Logging in with OAuth, and the tokens that are kept.
mod login;
/// An agent that says what a test wants, and remembers what it was asked.
mod scripted;
/// Sending, waiting, streaming, going on.
mod send;
/// Flags, variables and files.
mod settings;
/// The text of every command, compared with stored files.
mod snapshots;
/// Tasks that exist.
mod tasks;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::served::baton;

/// A user with a home of their own, in an empty folder.
struct User {
    home: tempfile::TempDir,
    folder: tempfile::TempDir,
}

/// How a command ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl User {
    fn new() -> Self {
        User { home: tempfile::tempdir().unwrap(), folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = baton(args);
        command.env("HOME", self.home.path()).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        Said::of(&mut self.command(args))
    }

    /// With this on the standard input.
    fn run_with(&self, args: &[&str], input: &str) -> Said {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Said::from(child.wait_with_output().unwrap())
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Said {
    fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    fn from(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// It must have worked.
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It must have failed with this status.
    #[track_caller]
    fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Stdout as one JSON document.
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Stdout as JSON Lines.
    #[track_caller]
    fn lines(&self) -> Vec<Value> {
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(line).collect()
    }

    /// The value of a field of the text form.
    #[track_caller]
    fn field(&self, label: &str) -> &str {
        let found = self.out.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {label}: {self:?}"))
    }

    /// The error's code and hint in an envelope.
    #[track_caller]
    fn error(&self) -> (String, String) {
        let error = self.json()["error"].take();
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (text("code"), text("hint"))
    }
}
