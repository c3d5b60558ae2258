//! Logs the program's stderr line by line, and keeps its last lines for the reason of a failure, if clients may see
//! them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use baton_protocol::domain::{ContextId, TaskId};
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

/// Longer lines are cut in the log.
const LOGGED_BYTES: usize = 1024;
/// Longer lines are cut in the reason that a client gets.
const CLIENT_CHARS: usize = 200;
/// Lines that are logged per second; of further lines only the number is logged.
const PER_SECOND: u32 = 50;
/// How long the last lines are waited for after all processes of the program are gone.
const LAST_LINES_WAIT: Duration = Duration::from_secs(1);

/// Reads stderr until its last writer has closed it.
pub(super) struct StderrLog(Option<JoinHandle<VecDeque<String>>>);

impl StderrLog {
    /// Keeps the last `last` lines. An agent that replies with messages has no task.
    pub(super) fn keep(
        stderr: Option<ChildStderr>,
        task: Option<&TaskId>,
        context: &ContextId,
        last: usize,
    ) -> Self {
        let log = Log {
            task: task.cloned(),
            context: context.clone(),
            open: Vec::new(),
            last: VecDeque::new(),
            most: last,
            second: Instant::now(),
            logged: 0,
        };
        StderrLog(stderr.map(|stderr| tokio::spawn(log.keep(stderr))))
    }

    /// The last lines, for a client.
    pub(super) async fn last_lines(&mut self) -> Vec<String> {
        let Some(mut keeping) = self.0.take() else { return Vec::new() };
        match tokio::time::timeout(LAST_LINES_WAIT, &mut keeping).await {
            Ok(Ok(lines)) => lines.into(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }
}

struct Log {
    task: Option<TaskId>,
    context: ContextId,
    open: Vec<u8>,
    last: VecDeque<String>,
    most: usize,
    second: Instant,
    logged: u32,
}

impl Log {
    async fn keep(mut self, mut stderr: ChildStderr) -> VecDeque<String> {
        let mut buffer = vec![0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            for byte in &buffer[..count] {
                match byte {
                    b'\n' => self.end_line(),
                    // The rest of a long line is dropped.
                    byte if self.open.len() < LOGGED_BYTES => self.open.push(*byte),
                    _ => {}
                }
            }
        }
        self.end_line();
        self.end_second();
        self.last
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.open);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        if self.most > 0 {
            if self.last.len() == self.most {
                self.last.pop_front();
            }
            self.last.push_back(line.chars().take(CLIENT_CHARS).collect());
        }
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.end_second();
        }
        self.logged += 1;
        if self.logged <= PER_SECOND {
            // Quoted, so that a program's output cannot look like another line of the log.
            let task = self.task.as_ref().map(tracing::field::display);
            tracing::info!(target: "exec", { task.id = task, context.id = %self.context, ?line }, "stderr");
        }
    }

    fn end_second(&mut self) {
        if let Some(left_out @ 1..) = self.logged.checked_sub(PER_SECOND) {
            let task = self.task.as_ref().map(tracing::field::display);
            tracing::info!(target: "exec", { task.id = task, left_out }, "too many lines on stderr; the rest is not logged");
        }
        (self.second, self.logged) = (Instant::now(), 0);
    }
}
