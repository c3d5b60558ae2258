//! A user who types commands, and how they ended.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::baton;

/// A user with a home of their own, in an empty folder.
pub(crate) struct User {
    home: tempfile::TempDir,
    folder: tempfile::TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Takes away what the environment of whoever runs this would change.
pub(crate) fn with_clean_environment(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_uppercase();
        let read = ["BATON_", "OTEL_", "A2ACLI_"].iter().any(|prefix| text.starts_with(prefix));
        if read || text == "PORT" || text.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
    command
}

impl User {
    pub(crate) fn new() -> Self {
        User { home: tempfile::tempdir().unwrap(), folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = baton(args);
        command.env("HOME", self.home.path()).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::of(&mut self.command(args))
    }

    /// With this on the standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Said {
        Said::with(&mut self.command(args), input)
    }

    /// A line for the shell that begins with `baton`, as it was printed for the user to copy.
    pub(crate) fn paste(&self, line: &str) -> Command {
        let program = baton(&[]).get_program().to_owned();
        let built = Path::new(&program).parent().unwrap().display().to_string();
        let path = format!("{built}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = with_clean_environment(Command::new("sh"));
        shell.args(["-c", line]).env("PATH", path).env("HOME", self.home()).current_dir(self.folder());
        shell.stdin(Stdio::null());
        shell
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Said {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// With this on the standard input.
    pub(crate) fn with(command: &mut Command, input: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Self::from(child.wait_with_output().unwrap())
    }

    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// It must have worked.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It must have failed with this status.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Stdout as JSON Lines.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(line).collect()
    }

    /// The value of a field of the text form.
    #[track_caller]
    pub(crate) fn field(&self, label: &str) -> &str {
        let found = self.out.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {label}: {self:?}"))
    }

    /// The error's code and hint in an envelope.
    #[track_caller]
    pub(crate) fn error(&self) -> (String, String) {
        let error = self.json()["error"].take();
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (text("code"), text("hint"))
    }
}
