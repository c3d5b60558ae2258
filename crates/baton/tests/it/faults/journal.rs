//! What clients did and were told, in the order in which it happened to them.

use std::fmt;
use std::sync::{Arc, Mutex};

/// One thing a client did or saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A message was sent, for the first time or again.
    Sent { message: String },
    /// It was acknowledged with a task.
    Acked { message: String, task: String },
    /// It was acknowledged for a task that was busy: it may never get a place in the log, if the task ends first.
    Noted { message: String, task: String },
    /// It was answered with a message, without a task.
    Replied { message: String, reply: String },
    /// A client was told that the task had come to this end.
    Ended { task: String, state: String },
    /// A stream was opened that begins after this number.
    Opened { stream: u64, task: String, after: u64 },
    /// A stream showed an event.
    Seen { stream: u64, number: u64, json: String },
    /// A stream ended in order, not by a break.
    Closed { stream: u64 },
    /// An attempt of an agent began.
    Began { task: String, attempt: u32 },
    /// An attempt began while another one of the same task was still there.
    Overlapped { task: String, attempt: u32 },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Sent { message } => write!(f, "sent\t{message}"),
            Entry::Acked { message, task } => write!(f, "acked\t{message}\t{task}"),
            Entry::Noted { message, task } => write!(f, "noted\t{message}\t{task}"),
            Entry::Replied { message, reply } => write!(f, "replied\t{message}\t{reply}"),
            Entry::Ended { task, state } => write!(f, "ended\t{task}\t{state}"),
            Entry::Opened { stream, task, after } => write!(f, "opened\t{stream}\t{task}\t{after}"),
            Entry::Seen { stream, number, json } => write!(f, "seen\t{stream}\t{number}\t{json}"),
            Entry::Closed { stream } => write!(f, "closed\t{stream}"),
            Entry::Began { task, attempt } => write!(f, "began\t{task}\t{attempt}"),
            Entry::Overlapped { task, attempt } => write!(f, "overlapped\t{task}\t{attempt}"),
        }
    }
}

/// Shared by all clients of a run; kept in the tests' own process, so that no fault of the server reaches it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<Entry>>>);

impl Journal {
    pub(crate) fn note(&self, entry: Entry) {
        self.0.lock().unwrap().push(entry);
    }

    pub(crate) fn acked(&self, message: &str, task: &str) {
        self.note(Entry::Acked { message: message.to_owned(), task: task.to_owned() });
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, which: impl Fn(&Entry) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|entry| which(entry)).count()
    }
}

/// A line for each.
pub(crate) fn lines(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{entry}\n")).collect()
}
